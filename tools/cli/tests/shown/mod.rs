//! Tests of pages in a browser, and commands that write them.

mod browser;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) use browser::Browser;
use serde_json::Value;

/// Returns true in a long run.
pub(crate) fn is_long() -> bool {
    env::var_os("DOWNBEAT_LONG").is_some()
}

/// Returns widths of pages in pixels: of a telephone, in a long run of a tablet, and of a
/// computer.
pub(crate) fn device_widths() -> &'static [u32] {
    if is_long() {
        &[390, 768, 1_200]
    } else {
        &[390, 1_200]
    }
}

/// Makes a new folder for this test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a test may write here");
    path
}

pub(crate) fn downbeat(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the program starts")
}

pub(crate) fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = downbeat(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{arguments:?}: {said}"
    );
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

/// Asserts that bad input gives one line that names `culprit`, exit code 2 and no output.
pub(crate) fn refuses(folder: &Path, arguments: &[&str], culprit: &str) {
    let output = downbeat(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(
        said.starts_with("downbeat: ") && said.lines().count() == 1,
        "{arguments:?}: {said}"
    );
    assert!(said.contains(culprit), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

/// Asserts that a page has no defects in a window of this width, and no other script than its own; returns its properties.
pub(crate) fn looks_well(browser: &Browser, page: &Path, width: u32) -> Value {
    let found = has_no_defects(browser, page, width);
    assert_eq!(found["scripts"], 1);
    found
}

/// Writes a page without its scripts next to it.
pub(crate) fn without_scripts(page: &Path) -> PathBuf {
    let html = fs::read_to_string(page).expect("it was written");
    let mut parts = html.split("<script");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.split("</script>").nth(1).unwrap_or_default();
    }
    let plain = page.with_extension("plain.html");
    fs::write(&plain, text).expect("a test may write here");
    plain
}

/// Asserts that a page has the same texts and pictures without its scripts; returns the page without them.
pub(crate) fn needs_no_script(browser: &Browser, page: &Path) -> PathBuf {
    let plain = without_scripts(page);
    let seen = [&plain, page].map(|page| {
        let found = has_no_defects(browser, page, 1_200);
        // Only the filters are added.
        let text = found["text"].as_str().expect("there is text");
        let text = text.replace("Rows with", "");
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        (words, found["svgs"].clone())
    });
    assert!(seen[0] == seen[1], "{}", page.display());
    plain
}

/// Asserts that a page has no defects in a window of this width; returns its properties.
pub(crate) fn has_no_defects(browser: &Browser, page: &Path, width: u32) -> Value {
    let found = browser.look(page, width);
    let none = serde_json::json!([]);
    for wrong in ["errors", "overlaps", "clipped", "hidden", "dead"] {
        assert_eq!(found[wrong], none, "{wrong} at {width} pixels");
    }
    assert!(
        found["overflow"]
            .as_f64()
            .is_some_and(|pixels| pixels < 1.0),
        "{width}: {}",
        found["overflow"]
    );
    assert!(
        found["smallest"].as_f64().is_some_and(|size| size > 8.0),
        "{width}: {}",
        found["smallest"]
    );
    found
}

/// Asserts that a page has no defects, and contains this number of pictures and these texts.
pub(crate) fn shows(browser: &Browser, page: &Path, width: u32, figures: usize, texts: &[&str]) {
    let found = looks_well(browser, page, width);
    for what in ["figures", "svgs", "named"] {
        assert_eq!(found[what], figures, "{what} at {width} pixels");
    }
    let shown = found["text"].as_str().expect("there is text");
    for text in texts {
        assert!(shown.contains(text), "no \"{text}\" in:\n{shown}");
    }
}
