//! The page of `downbeat report` as its readers meet it: in a browser, on a phone, in print.

#![expect(clippy::expect_used, clippy::panic, reason = "in a test, that is how a failure is told")]

#[path = "report/browser.rs"]
mod browser;
#[path = "report/experiments.rs"]
mod experiments;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::Browser;
use experiments::Made;

/// A folder of this test's own, which is a new one.
fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a test may write here");
    path
}

fn report(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    command.current_dir(folder).arg("report").args(arguments).output().expect("the program starts")
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = report(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("the page is UTF-8")
}

/// That bad input gives one line which names `culprit`, exit code 2 and nothing else.
fn refuses(folder: &Path, arguments: &[&str], culprit: &str) {
    let output = report(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(said.starts_with("downbeat: ") && said.lines().count() == 1, "{arguments:?}: {said}");
    assert!(said.contains(culprit), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

const OPEN_MPI: Made = Made { launches: 10, observations: 300, slower: 1.0, library: "Open MPI 4.1.4" };
const MPICH: Made = Made { launches: 10, observations: 300, slower: 1.08, library: "MPICH 4.0" };

#[test]
fn two_experiments_are_a_page_for_every_reader() {
    let folder = scratch("two");
    OPEN_MPI.write(&folder.join("openmpi"));
    MPICH.write(&folder.join("mpich"));
    succeeds(&folder, &["openmpi", "mpich", "-o", "page.html", "--svg", "pictures"]);
    let page = folder.join("page.html");
    let html = fs::read_to_string(&page).expect("it was written");
    assert!(html.len() < 3_000_000, "{}", html.len());
    // Three kinds: medians and shifts of each; at 3 + 1 + 3 sizes violins, histograms, and two orders.
    let figures = 3 + 3 + 7 * 4;
    let pictures = fs::read_dir(folder.join("pictures")).expect("it was written").count();
    assert_eq!((html.matches("<figure>").count(), pictures), (figures, figures));

    let Some(browser) = Browser::find(&folder) else { return };
    for width in [390, 768, 1_200] {
        let found = browser.look(&page, width);
        let none = serde_json::json!([]);
        for wrong in ["errors", "overlaps", "clipped", "hidden", "dead"] {
            assert_eq!(found[wrong], none, "{wrong} at {width} pixels");
        }
        assert!(found["overflow"].as_f64().is_some_and(|pixels| pixels < 1.0), "{width}: {}", found["overflow"]);
        for what in ["figures", "svgs", "named"] {
            assert_eq!(found[what], figures, "{what} at {width} pixels");
        }
        assert_eq!(found["scripts"], 0);
        assert!(found["smallest"].as_f64().is_some_and(|size| size > 8.0), "{width}: {}", found["smallest"]);
        let text = found["text"].as_str().expect("there is text");
        for said in ["mpich is significantly slower than openmpi in 13", "\u{2260} mpi", "Open MPI 4.1.4", "launch-010"]
        {
            assert!(text.contains(said), "no \"{said}\" in:\n{text}");
        }
    }
    for size in [(390, 3_000), (1_200, 3_000)] {
        let seen = browser.screenshot(&page, size);
        // Both experiments are there in their colours, on paper that is white.
        assert!(seen.count([0x00, 0x72, 0xb2]) > 200 && seen.count([0xd5, 0x5e, 0x00]) > 200, "{size:?}");
        assert!((0.02..0.6).contains(&seen.inked()), "{size:?}: {}", seen.inked());
    }
    assert!(browser.print(&page).starts_with(b"%PDF-"));
    let alone = browser.screenshot(&folder.join("pictures/run-time-allreduce-4.svg"), (480, 400));
    assert!(alone.count([0x00, 0x72, 0xb2]) > 100 && alone.inked() < 0.5, "{}", alone.inked());
}

#[test]
fn many_experiments_with_long_names_stay_readable() {
    let folder = scratch("many");
    for i in 0..7 {
        let made = Made { launches: 33, observations: 12, slower: 1.0 + 0.3 * f64::from(i), ..OPEN_MPI };
        made.write(&folder.join(format!("all/{i}-a-very-long-name-of-an-experiment-with-every-option-in-it")));
    }
    // A folder without launches stands for the experiments in it.
    succeeds(&folder, &["all", "-o", "page.html", "--confidence", "99%", "--of", "mean"]);
    let Some(browser) = Browser::find(&folder) else { return };
    let found = browser.look(&folder.join("page.html"), 390);
    let none = serde_json::json!([]);
    for wrong in ["errors", "overlaps", "clipped", "hidden", "dead"] {
        assert_eq!(found[wrong], none, "{wrong}");
    }
    assert!(found["overflow"].as_f64().is_some_and(|pixels| pixels < 1.0), "{}", found["overflow"]);
}

#[test]
fn one_experiment_needs_no_comparison_and_may_go_to_standard_output() {
    let folder = scratch("one");
    Made { launches: 1, observations: 20, ..OPEN_MPI }.write(&folder.join("alone"));
    let page = succeeds(&folder, &["alone", "-o", "-"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("Too few launches") && !page.contains("id=\"comparison\""), "{page}");
}

#[test]
fn hostile_names_stay_text() {
    let folder = scratch("hostile");
    fs::create_dir_all(folder.join("a<b>&")).expect("a test may write here");
    let hostile = "<script>document.title='owned'</script><img/src=x/onerror=alert(1)>";
    let record = format!(
        "# downbeat launch 1\n# factor {hostile} = {hostile}\n# fact \"'>{hostile} = --></style></svg>{hostile}\n\
         operation,bytes,ranks,call,state,nanos\n{hostile},8,2,0,valid,5\n{hostile},8,2,1,valid,6\n\
         # end {hostile},8,2 valid=2 late=0 long=0 avg=5.5\n# complete\n"
    );
    fs::write(folder.join("a<b>&/x.csv"), record).expect("a test may write here");
    succeeds(&folder, &["a<b>&", "-o", "page.html", "--svg", "."]);
    let Some(browser) = Browser::find(&folder) else { return };
    let found = browser.look(&folder.join("page.html"), 390);
    assert_eq!((&found["scripts"], &found["errors"]), (&0.into(), &serde_json::json!([])));
    assert_eq!(found["title"], "Run-times of a<b>&");
    assert!(found["overflow"].as_f64().is_some_and(|pixels| pixels < 1.0), "{}", found["overflow"]);
    assert_eq!((&found["overlaps"], &found["clipped"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[test]
fn bad_input_is_one_line() {
    let folder = scratch("bad");
    Made { launches: 2, observations: 3, ..OPEN_MPI }.write(&folder.join("good"));
    fs::create_dir_all(folder.join("empty")).expect("a test may write here");
    fs::create_dir_all(folder.join("damaged")).expect("a test may write here");
    fs::write(folder.join("damaged/x.csv"), "# downbeat launch 9\n").expect("a test may write here");
    refuses(&folder, &["missing", "-o", "x.html"], "missing");
    refuses(&folder, &["empty", "-o", "x.html"], "empty");
    refuses(&folder, &["damaged", "-o", "x.html"], "x.csv: line 1");
    refuses(&folder, &["good", "missing", "-o", "x.html"], "missing");
    refuses(&folder, &["-o", "x.html"], "DIR");
    refuses(&folder, &["good"], "--output");
    refuses(&folder, &["good", "-o", "no/such/folder/x.html"], "-o: no/such/folder/x.html");
    refuses(&folder, &["good", "-o", "x.html", "--svg", "good/launch-001.csv"], "--svg: good/launch-001.csv");
    assert!(!folder.join("x.html").exists());

    // A full disk is nobody's choice.
    let full = report(&folder, &["good", "-o", "/dev/full"]);
    let said = String::from_utf8_lossy(&full.stderr);
    assert_eq!((full.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("/dev/full: No space"), "{said}");
}
