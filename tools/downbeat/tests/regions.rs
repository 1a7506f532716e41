//! What is shown of the regions of programs, as its readers meet it: a page in a browser, and what two reports differ in.

#![expect(clippy::expect_used, clippy::panic, reason = "in a test, that is how a failure is told")]

#[path = "report/browser.rs"]
mod browser;
#[path = "regions/made.rs"]
mod made;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::Browser;
use made::Made;

/// A folder of this test's own, which is a new one.
fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("regions-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a test may write here");
    path
}

fn regions(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    command.current_dir(folder).arg("regions").args(arguments).output().expect("the program starts")
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = regions(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

#[test]
fn sample() {
    let folder = scratch("sample");
    Made::on(64, 8).write(&folder.join("before.json"));
    Made { balanced: true, ..Made::on(64, 8) }.write(&folder.join("after.json"));
    Made::on(360, 20).write(&folder.join("paper.json"));
    Made { steps: 8, ..Made::on(16_384, 128) }.write(&folder.join("large.json"));
    for name in ["before", "paper", "large"] {
        succeeds(&folder, &["show", &format!("{name}.json"), "-o", &format!("{name}.html")]);
        let Some(browser) = Browser::find(&folder) else { return };
        for size in [(390, 4_000), (1_200, 3_000)] {
            browser.screenshot(&folder.join(format!("{name}.html")), size);
        }
    }
}
