//! Names of traces that commands read and write, and outputs that cannot be written.

use super::*;

/// Anchor files of other programs have other names than `traces.otf2`.
#[test]
fn a_folder_stands_for_its_only_anchor_file() {
    let folder = TraceFolder::new("anchors");
    folder.says("generate -o a --nodes 2 --events 400");
    for name in ["traces", "traces.def", "traces.otf2"] {
        let other = name.replace("traces", "eztrace_log");
        let [from, to] = [name, &other].map(|name| folder.path("a").join(name));
        fs::rename(from, to).expect("it can be renamed");
    }
    folder.says("correct a/eztrace_log.otf2 -o right");
    let checked = folder.says("check right --against a");
    assert!(checked.contains("right/eztrace_log.otf2: "), "{checked}");
    for command in [
        "correct a -o again --truth right",
        "convert right right.dbt",
        "waits right",
        "show right -o page.html --beside a",
    ] {
        folder.says(command);
    }
    fs::copy(
        folder.path("a/eztrace_log.otf2"),
        folder.path("a/other.otf2"),
    )
    .expect("it can be copied");
    fs::create_dir(folder.path("empty")).expect("there can be a folder");
    for (name, why) in [
        ("empty", "no anchor file, NAME.otf2, is in this folder"),
        ("a", "several anchor files are in this folder: name one"),
    ] {
        for command in [
            "check NAME",
            "check right --against NAME",
            "correct NAME -o new",
            "correct right -o new --truth NAME",
            "convert NAME new.dbt",
            "waits NAME",
            "show NAME -o new.html",
            "show right -o new.html --beside NAME",
        ] {
            let (line, _) = folder.fails(2, &command.replace("NAME", name));
            assert_eq!(line, format!("{name}: {why}"), "{command}");
        }
    }
    folder.says("waits a/eztrace_log.otf2");
}

#[test]
fn names_of_outputs_select_formats_that_a_command_writes() {
    let folder = TraceFolder::new("outputs");
    folder.says("generate -o a --nodes 2 --events 400");
    folder.says("generate -o a.dbt --nodes 2 --events 400");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measure/recording/tests/golden/version-1/rank-0.dbrank");
    fs::create_dir(folder.path("run")).expect("there can be a folder");
    fs::copy(golden, folder.path("run/rank-0.dbrank")).expect("it can be written");
    let others = ["json", "gz", "csv", "parquet", "pftrace", "perfetto-trace"];
    for ending in others {
        let name = format!("new.{ending}");
        let why = "the name must end in .dbt, or be that of a new folder for an archive; \
                   downbeat trace convert writes other formats";
        for (command, option) in [
            ("merge run -o", "--output"),
            ("generate -o", "-o"),
            ("generate -o new.dbt --truth", "--truth"),
        ] {
            let (line, _) = folder.fails(2, &format!("{command} {name}"));
            assert_eq!(line, format!("{option}: {name}: {why}"), "{command}");
        }
    }
    for ending in others.into_iter().chain(["dbt", "dbtb"]) {
        let name = format!("new.{ending}");
        let what = if ending == "dbt" { "text" } else { "a file" };
        folder.refuses(
            &format!("correct a -o {name}"),
            &format!(
                "-o: {name}: a corrected archive is a folder, not {what}: \
                 see downbeat trace convert"
            ),
        );
    }
    for (command, option) in [
        ("correct a -o -", "-o"),
        ("correct a.dbt -o -", "-o"),
        ("convert a -", "OUT"),
        ("merge run -o -", "--output"),
        ("generate -o -", "-o"),
        ("generate -o new.dbt --truth -", "--truth"),
    ] {
        folder.refuses(
            command,
            &format!("{option}: -: a trace is not written to standard output: name a file"),
        );
    }
}

/// A limited file size is like a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_is_not_an_error_of_the_input() {
    let folder = TraceFolder::new("output-full");
    folder.says("generate -o a --nodes 3 --events 20000");
    // Some are enough for definitions, and none for events.
    for blocks in [1, 40] {
        let limit = format!("ulimit -f {blocks}; trap '' XFSZ");
        let (code, said) = folder.limited(&limit, "correct a -o out");
        assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(": File too large"), "{said}");
        assert!(!said.starts_with("downbeat: a/"), "{blocks}: {said}");
        assert_eq!(folder.names(), ["a"]);
    }
}

#[test]
fn a_threshold_that_is_not_reached_is_told() {
    let folder = TraceFolder::new("threshold");
    folder.says("generate -o a.dbt --events 3000");
    let correct = "correct a.dbt -o right.dbt --pre-synchronization linear";
    for (options, expected) in [
        (
            "--threshold 1ns --max-passes 3",
            "(3 passes, the threshold of 1 ns was not reached, control factor ",
        ),
        (
            "--threshold 1ns --max-passes 1",
            "(1 pass, the threshold of 1 ns was not reached, control factor ",
        ),
        ("--threshold 1s", "The logical clock (control factor "),
    ] {
        let said = folder.says(&format!("{correct} {options}"));
        assert!(said.contains(expected), "{said}");
    }
}
