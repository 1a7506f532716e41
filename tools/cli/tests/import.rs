//! Command-line tests of `downbeat import`: outputs of other suites become records, exactly these.
//!
//! The outputs in `tests/import` are excerpts of what users published: OSU in discussions of container and cloud clusters and the
//! OCI tutorials of Oracle Japan, IMB in the documentation of xFasterTransformer, of azurehpc and on Open MPI's mailing list,
//! ReproMPI (October 2020) in the description of an experiment. That of hyperfine 1.15 was made for this test.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[expect(dead_code, reason = "helpers of other tests")]
mod shown;

use std::fmt::Write as _;
use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use shown::{refuses, scratch, succeeds};

/// Names of outputs, with the options that they need.
const GOLDEN: [(&str, &[&str]); 7] = [
    (
        "osu-collectives.txt",
        &["--ranks", "4", "--factor", "library=Cray MPICH"],
    ),
    ("osu-pairs.txt", &[]),
    ("osu-old.txt", &[]),
    ("imb.txt", &[]),
    ("imb-excerpts.txt", &["--column", "t_max"]),
    ("reprompi.txt", &[]),
    ("hyperfine.json", &[]),
];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

/// Returns the paths below a folder and the contents of its files, as one text.
fn contents(folder: &Path) -> String {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort_unstable();
    let mut all = String::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().display();
        let inner = match path.is_dir() {
            true => contents(&path),
            false => fs::read_to_string(&path).expect("records are UTF-8"),
        };
        writeln!(all, "== {name}\n{inner}").expect("a string grows");
    }
    all
}

#[test]
fn outputs_become_the_records_that_are_known() {
    let out = scratch("import-golden");
    for (file, options) in GOLDEN {
        let (name, _) = file.split_once('.').expect("the name has an extension");
        let target = out.join(name);
        let target = target.to_str().expect("the path is UTF-8");
        let arguments = [&["import", file, "--out", target], options].concat();
        succeeds(&sources(), &arguments);
        let known = contents(&sources().join("records").join(name));
        assert_eq!(contents(target.as_ref()), known, "{file}");
        // The same again changes nothing, nor does what is appended.
        for more in [&[][..], &["--append"]] {
            let shown = succeeds(&sources(), &[&arguments, more].concat());
            assert!(shown.contains("\n0 records written, "), "{shown}");
            assert_eq!(contents(target.as_ref()), known, "{file}");
        }
        succeeds(&out, &["analyze", target]);
    }
}

/// Writes the output of a launch of `osu_allreduce` for each average in microseconds.
fn osu_launches(folder: &Path, averages: &[&str]) {
    for (i, average) in averages.iter().enumerate() {
        let text = format!(
            "\n# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n8 {average}\n"
        );
        fs::write(folder.join(format!("{}.txt", i + 1)), text).expect("a file can be written");
    }
}

#[test]
fn imported_launches_are_compared_and_reported() {
    let folder = scratch("import-compare");
    osu_launches(&folder, &["10.10", "10.40", "10.20", "10.60", "10.30"]);
    let files = ["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"];
    let import = |library: &str, out: &str| {
        succeeds(
            &folder,
            &[
                &["import"],
                &files[..],
                &["--ranks", "4", "--factor", library, "--out", out],
            ]
            .concat(),
        )
    };
    let shown = import("library=A", "a");
    assert!(
        shown.contains("5 records written.") && shown.contains("only launches can be compared"),
        "{shown}"
    );
    osu_launches(&folder, &["20.10", "20.40", "20.20", "20.60", "20.30"]);
    import("library=B", "b");
    let shown = succeeds(&folder, &["compare", "a", "b"]);
    // The only order of ten medians with all of A first, and its reverse, of 252.
    assert!(
        shown.starts_with("b is 1.97 times ")
            && shown.contains("5 + 5")
            && shown.contains("0.0079"),
        "{shown}"
    );
    assert!(shown.contains("Factors that differ: library\n"), "{shown}");
    succeeds(&folder, &["report", "a", "b", "-o", "report.html"]);
    let page = fs::read_to_string(folder.join("report.html")).expect("the page is written");
    assert!(page.contains("an unknown number of calls"));
    succeeds(&folder, &["reproducibility", "a", "b"]);
    succeeds(&folder, &["samplesize", "a"]);
}

#[test]
fn what_a_folder_has_is_not_replaced() {
    let folder = scratch("import-again");
    osu_launches(&folder, &["1.50", "1.60", "1.70"]);
    let import = ["import", "--ranks", "4", "--out", "r"];
    let with = |more: &[&'static str]| [&import, more].concat();
    succeeds(&folder, &with(&["1.txt", "2.txt"]));
    let before = contents(&folder.join("r"));
    refuses(
        &folder,
        &with(&["2.txt"]),
        "r/launch-001 has other content than 2.txt: choose another folder, or --append",
    );
    refuses(
        &folder,
        &with(&["1.txt", "3.txt"]),
        "r/launch-002 has other content than 3.txt",
    );
    refuses(
        &folder,
        &with(&["3.txt", "--append", "--factor", "library=A"]),
        "3.txt: library is \"A\" here, but not stated in r/launch-001",
    );
    refuses(
        &folder,
        &with(&["1.txt", "./1.txt"]),
        "./1.txt: this file is given twice",
    );
    assert_eq!(contents(&folder.join("r")), before);
    let shown = succeeds(&folder, &with(&["3.txt", "1.txt", "--append"]));
    assert!(
        shown.contains("\n1 record written, 1 record as before.\n"),
        "{shown}"
    );
    let after = contents(&folder.join("r"));
    assert!(
        after.starts_with(before.trim_end()) && after.contains("== launch-003.csv"),
        "{after}"
    );
    // An import that was interrupted is repeated.
    fs::remove_file(folder.join("r/launch-002.csv")).expect("the record exists");
    succeeds(&folder, &with(&["1.txt", "2.txt", "3.txt"]));
    assert_eq!(contents(&folder.join("r")), after);
    // A record that nobody can read may be the same launch.
    let [first, twice] = ["r/launch-001.csv", "r/launch-001.jsonl"].map(|file| folder.join(file));
    let record = fs::read(&first).expect("the record exists");
    fs::write(&twice, "").expect("a file can be written");
    refuses(
        &folder,
        &with(&["2.txt"]),
        "records in JSON lines are not supported",
    );
    assert_eq!(fs::read(&first).expect("the record exists"), record);
    fs::remove_file(twice).expect("the file exists");
    fs::write(folder.join("r/launch-004.csv"), "x").expect("a file can be written");
    refuses(
        &folder,
        &with(&["1.txt"]),
        "--out: r/launch-004.csv: line 1: ",
    );
}

#[test]
fn bad_input_is_named() {
    let folder = scratch("import-bad");
    osu_launches(&folder, &["1.50"]);
    fs::write(folder.join("empty"), "").expect("a file can be written");
    fs::write(
        folder.join("cut"),
        "# OSU MPI Barrier Latency Test v7.1\n# Avg Latency(us)\n  4.9",
    )
    .expect("a file can be written");
    let out = ["--out", "r"];
    for (arguments, why) in [
        (
            &["1.txt"][..],
            "1.txt: line 3: the output does not state the number of ranks; give it (--ranks)",
        ),
        (&["1.txt", "--ranks", "0"], "--ranks"),
        (
            &["1.txt", "--ranks", "2", "--column", "max"],
            "1.txt: line 3: there is no column \"max\"; the table has avg",
        ),
        (
            &["1.txt", "--ranks", "2", "--from", "imbs"],
            "known are osu, imb, reprompi, hyperfine; did you mean imb?",
        ),
        (
            &["1.txt", "--ranks", "2", "--from", "imb"],
            "1.txt: there is no table of times of imb in it",
        ),
        (
            &["1.txt", "--ranks", "2", "--factor", "library"],
            "must be of the form NAME=VALUE",
        ),
        (
            &["1.txt", "--ranks", "2", "--factor", "suite=OSU"],
            "--factor: suite is \"OSU Micro-Benchmarks\" in 1.txt",
        ),
        (
            &["empty"],
            "empty: this is no output of a suite that is known: osu, imb, reprompi, hyperfine",
        ),
        (
            &["cut", "--ranks", "2"],
            "cut: line 3: the table ends within a line",
        ),
        (&["missing"], "missing: "),
        (&["."], ".: it is not a file"),
        (&[], "<FILE>"),
    ] {
        refuses(&folder, &[&["import"], &out[..], arguments].concat(), why);
    }
    refuses(
        &folder,
        &["import", "1.txt", "--ranks", "2", "--out", "empty"],
        "--out: empty: ",
    );
    assert!(!folder.join("r").exists());
}

#[test]
fn standard_input_and_a_document_are_used_as_elsewhere() {
    let folder = scratch("import-stdin");
    let output = Command::new(env!("CARGO_BIN_EXE_downbeat"))
        .args(["import", "-", "--out", "r", "--json"])
        .current_dir(&folder)
        .stdin(File::open(sources().join("imb.txt")).expect("the output exists"))
        .output()
        .expect("the program starts");
    assert!(output.status.success());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(
        (&document["schema"], &document["written"]),
        (&"downbeat.import".into(), &1.into())
    );
    assert_eq!(
        (
            &document["files"][0]["suite"],
            &document["files"][0]["groups"]
        ),
        (&"imb".into(), &4.into())
    );
}
