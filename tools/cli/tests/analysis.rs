//! Command-line tests of the commands that analyse experiments.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use downbeat_files::testing::seal_record;
use serde_json::Value;

/// Folder of a test, empty at first and removed at the end.
struct AnalysisFolder(PathBuf);

impl AnalysisFolder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    fn path(&self, inner: &str) -> String {
        self.0
            .join(inner)
            .to_str()
            .expect("the path is UTF-8")
            .to_owned()
    }

    /// Writes a file; a record gets its checksums.
    fn write(&self, file: &str, content: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a file is in a folder"))
            .expect("a folder can be made");
        fs::write(path, seal_record(content)).expect("a file can be written");
    }

    /// Writes a launch for each list of run-times of `allreduce, 8 bytes, 2 ranks`.
    fn experiment(&self, folder: &str, mpi: &str, launches: &[&[f64]]) {
        for (i, nanos) in launches.iter().enumerate() {
            let text = launch(mpi, &[("allreduce", 8, nanos)]);
            self.write(&format!("{folder}/launch-{:03}.csv", i + 1), &text);
        }
    }
}

impl Drop for AnalysisFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the record of a launch with 2 ranks; each group has one late call, and reports its maximum.
fn launch(mpi: &str, groups: &[(&str, u64, &[f64])]) -> String {
    let mut text = format!(
        "# downbeat launch 1\n# factor mpi = {mpi}\n# factor ranks = 2\n# fact seed = 1\noperation,bytes,ranks,call,state,nanos\n"
    );
    for (operation, bytes, nanos) in groups {
        for (call, nanos) in nanos.iter().enumerate() {
            let _ = writeln!(text, "{operation},{bytes},2,{call},valid,{nanos}");
        }
        let largest = nanos.iter().copied().fold(0.0, f64::max);
        let valid = nanos.len();
        let _ = writeln!(
            text,
            "# end {operation},{bytes},2 valid={valid} late=1 long=0 drifted=0 max={largest}"
        );
    }
    text + "# complete\n"
}

fn downbeat(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_downbeat"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

fn stdout_of(arguments: &[&str]) -> String {
    let output = downbeat(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    let shown = text(&output.stdout).to_owned();
    assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
    shown
}

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout_of(&[arguments, &["--json"]].concat())).expect("it is JSON")
}

/// Asserts that bad input gives one line that names all `culprits`, exit code 2 and no output.
fn refuses(arguments: &[&str], culprits: &[&str]) {
    let output = downbeat(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(
        (said.lines().count(), text(&output.stdout)),
        (1, ""),
        "{arguments:?}: {said}"
    );
    assert!(
        culprits.iter().all(|culprit| said.contains(culprit)),
        "{arguments:?}: {said}"
    );
}

/// Returns the cells of a row, which are separated by at least two blanks.
fn row<'a>(shown: &'a str, begin: &str) -> Vec<&'a str> {
    let line = shown
        .lines()
        .find(|line| line.starts_with(begin))
        .expect("there is such a row");
    line.split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

/// Medians 13 and 21, the first without its outlier.
const TWO: [&[f64]; 2] = [&[16.0, 10.0, 12.0, 100.0, 14.0], &[22.0, 21.0, 20.0]];

#[test]
fn an_analysis_equals_one_by_hand() {
    let scratch = AnalysisFolder::new("analyze");
    scratch.experiment(".", "A", &TWO);
    let folder = scratch.path("");
    let shown = stdout_of(&["analyze", &folder]);
    let cells = row(&shown, "allreduce");
    let expected = [
        "allreduce",
        "8",
        "2",
        "2",
        "8",
        "2 late",
        "1",
        "17.0 [13.0, 21.0] ns",
        "17.0 ns",
        "61.5 %",
    ];
    assert_eq!(cells[..10], expected, "{shown}");
    assert_eq!(cells[12], "61.0 [22.0, 100.0] ns", "{shown}");
    for what in [
        "2 launches",
        "quartiles by R's type 7",
        "too few for an interval of 95 %: their whole range has 50 %",
    ] {
        assert!(shown.contains(what), "no {what} in:\n{shown}");
    }

    let report = json_of(&[
        "analyze",
        &folder,
        "--confidence",
        "50%",
        "--interval",
        "5%",
    ]);
    assert_eq!(
        (&report["schema"], &report["version"]),
        (&"downbeat.analysis".into(), &1.into())
    );
    assert_eq!(
        (&report["quartiles"], &report["outliers"]),
        (&"R type 7".into(), &"tukey".into())
    );
    assert_eq!(
        (&report["interval"], &report["confidence"]),
        (&0.05.into(), &0.5.into())
    );
    let experiment = &report["experiments"][0];
    assert_eq!(
        experiment["factors"],
        serde_json::json!({"mpi": "A", "ranks": "2"})
    );
    let group = &experiment["groups"][0];
    assert_eq!(
        (&group["operation"], &group["bytes"], &group["late"]),
        (&"allreduce".into(), &8.into(), &2.into())
    );
    assert_eq!(group["medians"]["mean_ns"], 17.0);
    assert_eq!(group["launches"][0]["median_ns"], 13.0);
    // Two launches say nearly nothing about the variance between launches.
    assert!(group["launches_needed_at_most"].is_null(), "{group}");

    let kept = json_of(&["analyze", &folder, "--outliers", "keep"]);
    assert_eq!(
        kept["experiments"][0]["groups"][0]["launches"][0]["median_ns"],
        14.0
    );
}

#[test]
fn single_files_are_read_and_records_in_json_lines_are_refused() {
    let scratch = AnalysisFolder::new("formats");
    scratch.experiment("csv", "A", &TWO[..1]);
    let groups =
        |path: &str| json_of(&["analyze", &scratch.path(path)])["experiments"][0]["groups"].clone();
    assert_eq!(groups("csv"), groups("csv/launch-001.csv"));
    scratch.write(
        "json/launch-001.jsonl",
        "{\"schema\":\"downbeat.launch\",\"version\":1}\n",
    );
    let refused = "json/launch-001.jsonl: records in JSON lines are not supported; a record is CSV or Parquet";
    refuses(&["analyze", &scratch.path("json")], &[refused]);
    refuses(
        &["analyze", &scratch.path("json/launch-001.jsonl")],
        &[refused],
    );
}

/// What an earlier program wrote, which called itself version 1 and had no checksums.
#[test]
fn a_record_without_checksums_is_refused() {
    let scratch = AnalysisFolder::new("unsealed");
    let file = scratch.path("launch-001.csv");
    fs::write(&file, launch("A", &[("bcast", 8, &[1.0])])).expect("a file can be written");
    let refused = "launch-001.csv: line 6: the checksum of the lines before is missing: \
                   the file was damaged or edited after it was written (--no-verify accepts it)";
    refuses(&["analyze", &file], &[refused]);
    assert!(stdout_of(&["analyze", &file, "--no-verify"]).contains("bcast"));
}

#[test]
fn a_single_launch_has_no_intervals() {
    let scratch = AnalysisFolder::new("one");
    scratch.experiment("one", "A", &TWO[..1]);
    scratch.experiment("two", "A", &TWO);
    let (one, two) = (scratch.path("one"), scratch.path("two"));
    let shown = stdout_of(&["analyze", &one]);
    assert_eq!(
        row(&shown, "allreduce")[7..12],
        ["13.0 ns", "13.0 ns", "-", "-", "-"],
        "{shown}"
    );
    assert!(
        shown.contains("1 launch\n") && shown.contains("one launch does not show the variation"),
        "{shown}"
    );
    let group = &json_of(&["analyze", &one])["experiments"][0]["groups"][0];
    assert!(
        group["medians"]["median_interval"].is_null() && group["launches_needed_at_most"].is_null(),
        "{group}"
    );

    let shown = stdout_of(&["compare", &one, &two]);
    assert!(
        shown.contains("too few launches for intervals of 95 %"),
        "{shown}"
    );
    assert!(
        shown.contains("t-test missing: the test needs 2 values, and the sample has 1"),
        "{shown}"
    );
    assert_eq!(
        json_of(&["compare", &one, &two])["groups"][0]["t_test"],
        Value::Null
    );
}

#[test]
fn missing_and_incomplete_launches_are_named() {
    let scratch = AnalysisFolder::new("missing");
    scratch.write(
        "launch-001.csv",
        &launch("A", &[("bcast", 8, &[1.0, 2.0]), ("bcast", 16, &[])]),
    );
    scratch.write(
        "launch-002.csv",
        launch("A", &[("bcast", 16, &[1.0])]).trim_end_matches("# complete\n"),
    );
    let shown = stdout_of(&["analyze", &scratch.path("")]);
    for what in [
        "only complete groups are used: launch-002",
        "bcast, 8 bytes, 2 ranks: not measured in launch-002",
        "bcast, 16 bytes, 2 ranks: no valid observation in launch-001",
    ] {
        assert!(shown.contains(what), "no {what} in:\n{shown}");
    }
    assert_eq!(row(&shown, "bcast")[3], "1 of 2", "{shown}");
}

#[test]
fn hosts_and_unequal_nodes_are_pointed_out() {
    let scratch = AnalysisFolder::new("hosts");
    let record = launch("A", &[("bcast", 8, &[1.0, 2.0])]);
    let begun = "# fact seed = 1\n";
    scratch.write(
        "former/1.csv",
        &record.replace(begun, "# fact hosts = n0 n1\n"),
    );
    for (i, facts) in [
        "# fact hosts = n0 n1\n# fact kinds of nodes = x\n",
        "# fact hosts = n2 n1\n# fact kinds of nodes = unequal: n2: y | n1: x\n",
    ]
    .into_iter()
    .enumerate()
    {
        scratch.write(&format!("new/{i}.csv"), &record.replace(begun, facts));
    }
    let [former, new] = ["former", "new"].map(|folder| scratch.path(folder));
    let shown = stdout_of(&["analyze", &new]);
    for note in [
        "Note: launches ran on different hosts: n0 n1, others on n2 n1\n",
        "Note: the nodes are not of one kind: x, others unequal: n2: y | n1: x\n",
    ] {
        assert!(shown.contains(note), "{shown}");
    }
    assert!(!stdout_of(&["analyze", &former]).contains("different hosts"));
    let shown = stdout_of(&["compare", &former, &new]);
    for note in [
        "Note: B: launches ran on different hosts: ",
        "Note: A and B ran on different hosts: n0 n1 and n0 n1, n2 n1\n",
    ] {
        assert!(shown.contains(note), "{shown}");
    }
    let page = stdout_of(&["report", &former, &new, "-o", "-"]);
    assert!(page.contains("launches ran on different hosts: n0 n1, others on n2 n1."));
}

#[test]
fn folders_of_experiments_stand_for_all_of_them() {
    let scratch = AnalysisFolder::new("variants");
    scratch.experiment("all/b", "B", &TWO);
    scratch.experiment("all/a", "A", &TWO[..1]);
    scratch.write("all/notes/readme.txt", "nothing");
    let report = json_of(&["analyze", &scratch.path("all")]);
    let folders: Vec<&str> = report["experiments"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|of| of["folder"].as_str())
        .collect();
    assert_eq!(folders, [scratch.path("all/a"), scratch.path("all/b")]);
}

/// All of B's medians are above all of A's: one order in 20.
#[test]
fn experiments_are_compared_by_their_medians() {
    let scratch = AnalysisFolder::new("compare");
    scratch.experiment(
        "a",
        "A",
        &[&[1.0, 1.0, 4.0], &[2.0, 2.0, 5.0], &[3.0, 3.0, 6.0]],
    );
    scratch.experiment("b", "B", &[&[4.0], &[5.5], &[6.0]]);
    let (a, b) = (scratch.path("a"), scratch.path("b"));
    let report = json_of(&["compare", &a, &b, "--alternative", "greater"]);
    assert_eq!(
        (&report["schema"], &report["alternative"]),
        (&"downbeat.comparison".into(), &"greater".into())
    );
    assert_eq!(report["differing_factors"], serde_json::json!(["mpi"]));
    assert_eq!(report["experiments"][1]["factors"]["mpi"], "B");
    let group = &report["groups"][0];
    assert_eq!(
        (
            &group["p"]["greater"],
            &group["p_holm"]["greater"],
            &group["stars"]
        ),
        (&0.05.into(), &0.05.into(), &"*".into())
    );
    assert_eq!(
        (&group["p"]["two_sided"], &group["p_method"]),
        (&0.1.into(), &"exact".into())
    );
    // The differences are 1 to 5, with 3 in the middle.
    assert_eq!(
        (&group["shift_ns"], &group["medians_ns"]),
        (&3.0.into(), &serde_json::json!([2.0, 5.5]))
    );
    let ratio = ["ratio", "ratio_low", "ratio_high"].map(|name| group[name].as_f64().unwrap());
    assert_eq!(ratio, [2.5, 1.5, 3.5]);

    let shown = stdout_of(&[
        "compare",
        &a,
        &b,
        "--alternative",
        "greater",
        "--factor-differences",
    ]);
    assert_eq!(row(&shown, "mpi"), ["mpi", "A", "B"], "{shown}");
    let cells = row(&shown, "allreduce");
    assert_eq!(
        cells[3..7],
        ["3 + 3", "2.0 ns", "5.5 ns", "3.0 [1.0, 5.0] ns"],
        "{shown}"
    );
    assert_eq!(
        cells[7..12],
        ["150 %", "0.0500", "exact", "0.0500", "*"],
        "{shown}"
    );
    assert_eq!(
        shown.lines().next().unwrap(),
        format!("{b} is 2.50 times [1.50, 3.50] slower than {a}: allreduce, 8 bytes, 2 ranks")
    );
    let less = stdout_of(&["compare", &a, &b, "--alternative", "less"]);
    assert_eq!(row(&less, "allreduce")[8], "1.0000", "{less}");
    let same = format!("{a} and {b} do not differ significantly (2.20 times [1.22, 11.00] faster)");
    let other_way = stdout_of(&["compare", &b, &a]);
    assert!(other_way.starts_with(&same), "{other_way}");
    // The maxima are 4, 5, 6 and 4, 5.5, 6: two ties are counted, too.
    let reported = stdout_of(&["compare", &a, &b, "--of", "reported"]);
    assert_eq!(row(&reported, "allreduce")[9], "exact", "{reported}");
    assert!(stdout_of(&["compare", &a, &a]).contains("No recorded factor differs"));
}

/// Most observations by a clock in steps of 10 ns are equal.
#[test]
fn observations_of_the_next_step_of_the_clock_are_no_outliers() {
    let scratch = AnalysisFolder::new("steps");
    let nanos = [vec![80.0; 80], vec![90.0; 20]].concat();
    let record = launch("A", &[("bcast", 8, &nanos)]);
    let stated = record.replace("# fact seed", "# fact clock_step_ns = 10\n# fact seed");
    for i in 1..4 {
        scratch.write(&format!("unknown/{i}.csv"), &record);
        scratch.write(&format!("stated/{i}.csv"), &stated);
    }
    let unknown = stdout_of(&["analyze", &scratch.path("unknown")]);
    let note = "Note: bcast, 8 bytes, 2 ranks: 20.0 % of the observations are set aside as outliers, \
                all of them long: with them, the median is 80.0 ns and the mean 82.0 ns\n";
    assert!(unknown.contains(note), "{unknown}");
    let stated = stdout_of(&["analyze", &scratch.path("stated")]);
    assert!(
        !stated.contains("set aside") && stated.contains("82.0 ns"),
        "{stated}"
    );
}

/// A copy is no further evidence; records without times of their start cannot be told from each other.
#[test]
fn the_same_launch_does_not_count_twice() {
    let scratch = AnalysisFolder::new("twice");
    let record = |started| {
        let record = launch("A", &[("bcast", 8, &[1.0, 2.0])]);
        record.replace(
            "# fact seed",
            &format!("# fact started = {started}\n# fact seed"),
        )
    };
    scratch.write("a/1.csv", &record("12:00"));
    scratch.write("a/2.csv", &record("12:01"));
    scratch.write("b/1.csv", &record("12:02"));
    scratch.write("b/copy.csv", &record("12:01"));
    let [a, b] = ["a", "b"].map(|folder| scratch.path(folder));
    for arguments in [
        &["compare", &a, &b][..],
        &["compare", &a, &a],
        &["reproducibility", &a, &b],
        &["report", &a, &b, "-o", "-"],
    ] {
        refuses(arguments, &[": the same launch as "]);
    }
    refuses(
        &["compare", &a, &b],
        &["b/copy: ", "a/2: started 12:01, seed 1"],
    );
    assert!(stdout_of(&["analyze", &a, &b]).contains("bcast"));
}

#[test]
fn groups_of_one_experiment_are_named_and_no_common_group_is_refused() {
    let scratch = AnalysisFolder::new("common");
    scratch.write(
        "a/1.csv",
        &launch("A", &[("bcast", 8, &[1.0]), ("scan", 8, &[1.0])]),
    );
    scratch.write(
        "b/1.csv",
        &launch("A", &[("bcast", 8, &[1.0]), ("bcast", 16, &[1.0])]),
    );
    scratch.write("c/1.csv", &launch("A", &[("reduce", 8, &[1.0])]));
    let [a, b, c] = ["a", "b", "c"].map(|folder| scratch.path(folder));
    let shown = stdout_of(&["compare", &a, &b]);
    assert!(
        shown.contains("A has no medians of bcast, 16 bytes, 2 ranks"),
        "{shown}"
    );
    assert!(
        shown.contains("B has no medians of scan, 8 bytes, 2 ranks"),
        "{shown}"
    );
    refuses(
        &["compare", &a, &c],
        &[
            "no group in common",
            "bcast, 8 bytes, 2 ranks",
            "reduce, 8 bytes, 2 ranks",
        ],
    );
}

/// Medians 10 and 14, 12 and 18, and 11: means 12, 15 and 11. Maxima 13 and 14, 12 and 18, and 12: 13.5, 15 and 12.
#[test]
fn trials_are_compared_by_the_ratio_of_their_means() {
    let scratch = AnalysisFolder::new("trials");
    scratch.experiment("all/one", "A", &[&[9.0, 10.0, 13.0], &[14.0]]);
    scratch.experiment("all/two", "A", &[&[12.0, 12.0], &[18.0]]);
    scratch.experiment("all/six", "A", &[&[10.0, 12.0]]);
    let report = json_of(&["reproducibility", &scratch.path("all")]);
    assert_eq!(
        (&report["schema"], &report["of"]),
        (&"downbeat.reproducibility".into(), &"median".into())
    );
    let group = &report["groups"][0];
    assert_eq!(group["spread"], 15.0 / 11.0 - 1.0);
    let ratios: Vec<f64> = group["trials"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|of| of["ratio"].as_f64())
        .collect();
    assert_eq!(ratios, [12.0 / 11.0, 1.0, 15.0 / 11.0]);

    let page = stdout_of(&["reproducibility", &scratch.path("all"), "-o", "-"]);
    // A dot for each trial, and the spread in text.
    assert_eq!(page.matches("class=\"half c0\"").count(), 3, "{page}");
    for part in [
        "one, 8 B: 1.0909 times the fastest, 12.00 ns",
        "8 B: spread 36.4 %.",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let json = ["reproducibility", &scratch.path("all"), "-o", "-", "--json"];
    refuses(&json, &["--json"]);
    let record = scratch.path("all/one/launch-001.csv");
    refuses(
        &["reproducibility", &scratch.path("all"), "-o", &record],
        &["-o", "which is only read"],
    );
    assert_eq!(report["trials"][0]["factors"]["ranks"], "2");

    let [one, two, six] = ["one", "two", "six"].map(|trial| scratch.path(&format!("all/{trial}")));
    let shown = stdout_of(&["reproducibility", &one, &two, &six, "--of", "reported"]);
    let expected = [
        "allreduce",
        "8",
        "2",
        "3",
        "1 to 2",
        "12.0 ns",
        "15.0 ns",
        "25.0 %",
        "11.1 %",
        "5.8 % to 69.8 %",
    ];
    assert_eq!(row(&shown, "allreduce"), expected, "{shown}");
    refuses(&["reproducibility", &one], &["at least two"]);
    scratch.experiment("other", "B", &TWO);
    let shown = stdout_of(&["reproducibility", &one, &scratch.path("other")]);
    assert!(
        shown.contains("these are not repetitions: the factor \"mpi\" of"),
        "{shown}"
    );
}

#[test]
fn sample_sizes_depend_on_the_seed() {
    let scratch = AnalysisFolder::new("sizes");
    let nanos: Vec<f64> = (0..500_u32)
        .map(|i| f64::from(i % 7) + if i % 50 == 0 { 300.0 } else { 0.0 })
        .collect();
    scratch.experiment(".", "A", &[&nanos, &[5.0; 20]]);
    let folder = scratch.path("");
    let arguments = [
        "samplesize",
        &folder,
        "--sizes",
        "10,30,100",
        "--means",
        "200",
    ];
    let filtered = [&arguments[..], &["--outliers", "tukey"]].concat();
    let shown = stdout_of(&filtered);
    assert_eq!(
        row(&shown, "allreduce"),
        ["allreduce", "8", "2", "2", "20", "1", "10", "10", "10"],
        "{shown}"
    );
    assert!(
        shown.contains("launch-002 cannot be tested: all values are the same"),
        "{shown}"
    );
    assert!(
        shown.contains("Tested: 10, 30, 100; 200 means of each, drawn with seed 1"),
        "{shown}"
    );
    let kept = json_of(&arguments);
    assert_eq!(
        (&kept["schema"], &kept["seed"]),
        (&"downbeat.sample_sizes".into(), &1.into())
    );
    assert_eq!(kept["groups"][0]["launches"][0]["smallest"], Value::Null);
    let page = stdout_of(&[&arguments[..], &["-o", "-"]].concat());
    let none = "No launch passes at any size that was tested.";
    assert!(page.contains(none) && !page.contains("Each dot"), "{page}");
    assert_eq!(json_of(&filtered), json_of(&filtered));

    let page = stdout_of(&[&filtered[..], &["-o", "-"]].concat());
    assert_eq!(page.matches("class=\"half c0\"").count(), 1, "{page}");
    for part in [
        "launch-001, 8 B: from 10 of ",
        "Note: allreduce, 8 bytes, 2 ranks: launch-002 cannot be tested",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
}

#[test]
fn launches_draw_their_own_samples() {
    let scratch = AnalysisFolder::new("seeds");
    let nanos: Vec<f64> = (0..500_u32).map(|i| f64::from(i % 7)).collect();
    scratch.experiment(".", "A", &[&nanos, &nanos]);
    let report = json_of(&["samplesize", &scratch.path(""), "--sizes", "30"]);
    let [one, other] = [0, 1].map(|launch| &report["groups"][0]["launches"][launch]["normality_p"]);
    assert!(one.is_f64() && other.is_f64() && one != other, "{report}");
    // Samples are drawn with replacement.
    let beyond = "Note: allreduce, 8 bytes, 2 ranks: extrapolated beyond the observations of launch-001, launch-002:";
    for (size, is_beyond) in [("30", false), ("1000", true)] {
        let shown = stdout_of(&["samplesize", &scratch.path(""), "--sizes", size]);
        assert_eq!(shown.contains(beyond), is_beyond, "{shown}");
    }
}

#[test]
fn bad_folders_are_one_line_and_exit_code_2() {
    let scratch = AnalysisFolder::new("bad");
    scratch.write("empty/readme.txt", "nothing");
    scratch.write(
        "mixed/launch-001.csv",
        &launch("A", &[("bcast", 8, &[1.0])]),
    );
    scratch.write(
        "mixed/launch-002.csv",
        &launch("B", &[("bcast", 8, &[1.0])]),
    );
    scratch.write(
        "hostile/launch-001.csv",
        &launch("A", &[("bcast", 8, &[1.0, f64::NAN])]),
    );
    scratch.write(
        "long/launch-001.csv",
        &launch("A", &[("bcast", 8, &[1.0, 1e300])]),
    );
    scratch.write("none/launch-001.csv", &launch("A", &[]));
    let [missing, empty, mixed, hostile, long, none] =
        ["missing", "empty", "mixed", "hostile", "long", "none"].map(|folder| scratch.path(folder));
    for command in ["analyze", "samplesize"] {
        refuses(&[command, &missing], &["missing"]);
        refuses(&[command, &empty], &["empty", "no record"]);
        refuses(
            &[command, &mixed],
            &["launch-001.csv", "launch-002.csv", "\"mpi\""],
        );
        refuses(&[command, &hostile], &["launch-001.csv: line 8", "NaN"]);
        refuses(&[command, &long], &["launch-001", "longer than 292 years"]);
        refuses(&[command, &none], &["none", "no group"]);
    }
    scratch.experiment("good", "A", &TWO);
    let good = scratch.path("good");
    for bad in [&missing, &empty, &mixed, &hostile] {
        refuses(&["compare", &good, bad], &[bad]);
        refuses(&["reproducibility", &good, bad], &[bad]);
    }
}

#[test]
fn bad_options_are_one_line_and_exit_code_2() {
    let scratch = AnalysisFolder::new("options");
    scratch.experiment(".", "A", &TWO);
    let folder = scratch.path("");
    for share in ["0", "95", "100%", "-1%", "8abc", "NaN"] {
        refuses(
            &["analyze", &folder, "--confidence", share],
            &["--confidence"],
        );
        refuses(&["analyze", &folder, "--interval", share], &["--interval"]);
        refuses(&["samplesize", &folder, "--level", share], &["--level"]);
    }
    refuses(&["analyze"], &["DIR"]);
    refuses(&["compare", &folder], &["<B>"]);
    refuses(&["analyze", &folder, "--outliers", "some"], &["--outliers"]);
    refuses(
        &["compare", &folder, &folder, "--alternative", "more"],
        &["--alternative"],
    );
    refuses(
        &["reproducibility", &folder, &folder, "--of", "best"],
        &["--of"],
    );
    refuses(&["samplesize", &folder, "--sizes", "10,x"], &["--sizes"]);
    refuses(&["samplesize", &folder, "--sizes", "0"], &["--sizes"]);
    refuses(&["samplesize", &folder, "--means", "2"], &["--means"]);
}

#[test]
fn output_that_cannot_be_written_is_a_failure_in_one_line() {
    let scratch = AnalysisFolder::new("full");
    scratch.experiment(".", "A", &TWO);
    let folder = scratch.path("");
    let commands: [&[&str]; 5] = [
        &["analyze", &folder],
        &["analyze", &folder, "--json"],
        &["compare", &folder, &folder],
        &["reproducibility", &folder, &folder],
        &["samplesize", &folder],
    ];
    for arguments in commands {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        let output = command
            .args(arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(1), 1),
            "{arguments:?}: {said}"
        );
        assert!(said.contains("standard output"), "{arguments:?}: {said}");
    }
}

#[test]
fn help_shows_an_example() {
    for command in ["analyze", "compare", "reproducibility", "samplesize"] {
        assert!(
            stdout_of(&[command, "--help"]).contains("Example"),
            "{command}"
        );
    }
}

/// Launches of which one was measured while its round trips doubled, on processors with
/// much other work.
fn disturbed_experiment(scratch: &AnalysisFolder) -> String {
    let launches = [
        ("0.4", "400", "410", 1, ""),
        ("3.25", "420", "900", 60, " stolen_per_s=120000000"),
        ("0.9", "405", "399", 0, ""),
    ];
    for (number, (load, start, end, late, stolen)) in (1..).zip(launches) {
        let mut text = format!(
            "# downbeat launch 1\n# fact started = 2026-11-28T10:0{number}:00Z\n# fact seed = {number}\n\
             # fact load_per_core = {load}\n# fact round_trip_at_start_ns = {start}\noperation,bytes,ranks,call,state,nanos\n"
        );
        for call in 0..40 {
            let _ = writeln!(text, "allreduce,8,2,{call},valid,{}", 1000 + call);
        }
        let _ = writeln!(
            text,
            "# end allreduce,8,2 valid=40 late={late} long=0 drifted=0 between_interrupts=1000000{stolen}\n\
             # fact round_trip_at_end_ns = {end}\n# complete"
        );
        scratch.write(&format!("a/launch-{number}.csv"), &text);
    }
    scratch.path("a")
}

#[test]
fn launches_on_a_busy_machine_are_named_in_one_line() {
    let scratch = AnalysisFolder::new("busy");
    let folder = disturbed_experiment(&scratch);
    let shown = stdout_of(&["analyze", &folder]);
    let told = "Note: measured on a busy machine: launch-2 (the host took 12.0 % of the processors' time, load of 3.25 for each \
                processor, 60.0 % of the calls late, round trip of 900.0 ns instead of 399.0 ns)\n";
    assert!(shown.contains(told), "{shown}");
    let found = &json_of(&["analyze", &folder])["experiments"][0]["conditions"];
    let busy = |launch: usize| found[launch]["busy"].as_bool();
    assert_eq!(
        [0, 1, 2].map(busy),
        [Some(false), Some(true), Some(false)],
        "{found}"
    );
    assert_eq!(found[1]["stolen_share"], 0.12);
    assert_eq!(found[2]["round_trip_at_end_ns"], 399.0);

    let page = stdout_of(&["report", &folder, "-o", "-"]);
    let section = page
        .split_once("<h2 id=\"conditions\"")
        .expect("there is a section")
        .1;
    for part in [
        "Round trips between neighbouring ranks",
        "Late calls",
        "Load of each processor",
        "Time that the host took",
        "launch 2, after 60.00 s: 900.0 ns at the end",
        "measured on a busy machine: launch-2",
    ] {
        assert!(section.contains(part), "{part}");
    }
}

/// Launches in which allreduce takes longer than reduce and bcast together at 8 bytes, and as long as at 16 bytes.
fn guided_experiment(scratch: &AnalysisFolder, folder: &str, launches: u32) -> String {
    let groups = [
        ("allreduce", 8, 1500),
        ("allreduce", 16, 1550),
        ("reduce", 8, 400),
        ("bcast", 8, 600),
    ];
    repeated_launches(scratch, folder, launches, &groups)
}

/// Writes launches of groups, with operation, size and time.
fn repeated_launches(
    scratch: &AnalysisFolder,
    folder: &str,
    launches: u32,
    groups: &[(&str, u32, u32)],
) -> String {
    for launch in 0..launches {
        let mut text = "# downbeat launch 1\noperation,bytes,ranks,call,state,nanos\n".to_owned();
        for (operation, bytes, nanos) in groups {
            for call in 0..10 {
                // What differs from launch to launch is common to all operations.
                let nanos = (nanos + 3 * call) * (100 + launch) / 100;
                let _ = writeln!(text, "{operation},{bytes},2,{call},valid,{nanos}");
            }
            let _ = writeln!(
                text,
                "# end {operation},{bytes},2 valid=10 late=0 long=0 drifted=0"
            );
        }
        scratch.write(
            &format!("{folder}/launch-{launch}.csv"),
            &(text + "# complete\n"),
        );
    }
    scratch.path(folder)
}

#[test]
fn violated_guidelines_are_shown_by_their_factor() {
    let scratch = AnalysisFolder::new("guidelines");
    let folder = guided_experiment(&scratch, "a", 12);
    let shown = stdout_of(&["guidelines", &folder]);
    assert!(
        shown.starts_with("1 of 4 guidelines is violated: "),
        "{shown}"
    );
    let cells = row(&shown, "allreduce");
    assert_eq!(cells[3], "reduce + bcast");
    assert_eq!(cells.last(), Some(&"violated"));
    assert!(!shown.contains("2 x 8 bytes"), "{shown}");
    assert!(
        shown.contains(
            "add --operation allgather,bcast,gather,reduce,reduce_scatter_block,scatter and --sizes 4,8,16"
        ),
        "{shown}"
    );
    let all = stdout_of(&["guidelines", &folder, "--all"]);
    assert!(all.contains("2 x 8 bytes"), "{all}");

    let found = json_of(&["guidelines", &folder]);
    assert_eq!(found["schema"], "downbeat.guidelines");
    assert_eq!(
        (&found["violated"], &found["untested"]),
        (&1.into(), &5.into())
    );
    let first = &found["guidelines"][0];
    assert_eq!(
        (&first["kind"], &first["launches"]),
        (&"mockup".into(), &12.into())
    );
    let times = first["times"].as_f64().expect("it is a number");
    assert!((times - 1.47).abs() < 0.01, "{first}");
    assert_eq!(first["others"][1]["operation"], "bcast");

    let page = stdout_of(&["guidelines", &folder, "-o", "-"]);
    for part in [
        "allreduce and reduce + bcast, 2 ranks",
        "1 of 4 guidelines is violated",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn every_kind_of_violated_guideline_is_drawn() {
    let scratch = AnalysisFolder::new("guideline-pictures");
    let groups = [("scan", 8, 1_000), ("scan", 16, 900), ("scan", 64, 8_000)];
    let folder = repeated_launches(&scratch, "a", 12, &groups);
    let page = stdout_of(&["guidelines", &folder, "-o", "-"]);
    for part in [
        "2 of 4 guidelines are violated",
        "scan and the next larger message, 2 ranks",
        "scan and several calls with parts of the message, 2 ranks",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn guidelines_are_listed_without_an_experiment() {
    let listed = stdout_of(&["guidelines", "--list"]);
    assert_eq!(row(&listed, "scan"), ["scan", "exscan + reduce_local"]);
    let found = json_of(&["guidelines", "--list"]);
    let rules = found["rules"].as_array().expect("a list");
    assert!(rules.len() > 20 && rules.iter().any(|rule| rule["bound"] == "reduce + bcast"));
    refuses(&["guidelines"], &["<DIR>"]);
    refuses(&["guidelines", "x", "--list"], &["--list"]);
}

#[test]
fn guidelines_decide_the_exit_code_if_that_is_wanted() {
    let scratch = AnalysisFolder::new("guideline-check");
    let folder = guided_experiment(&scratch, "a", 12);
    let output = downbeat(&["guidelines", &folder, "--check"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("1 guideline is violated"));
    stdout_of(&["guidelines", &folder, "--check", "--tolerance", "2"]);
    // Four launches cannot show anything among four guidelines.
    let few = guided_experiment(&scratch, "few", 4);
    let why = "4 guidelines are measured in too few launches to find a violation among 4 guidelines, which takes 7";
    let shown = stdout_of(&["guidelines", &few]);
    assert!(shown.contains(why), "{shown}");
    let output = downbeat(&["guidelines", &few, "--check"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), shown);
    let said = text(&output.stderr);
    assert_eq!(said, format!("downbeat: --check: {why}\n"));
}

#[test]
fn bad_options_of_guidelines_are_refused() {
    let scratch = AnalysisFolder::new("guideline-input");
    let folder = guided_experiment(&scratch, "a", 3);
    for tolerance in ["0.9", "-1", "NaN", "inf", "x"] {
        refuses(
            &["guidelines", &folder, "--tolerance", tolerance],
            &["--tolerance"],
        );
    }
    refuses(&["guidelines", &folder, "--level", "0"], &["--level"]);
    refuses(&["guidelines", &folder, "--svg", "x"], &["--output"]);
    scratch.experiment("lone", "A", &TWO);
    refuses(
        &["guidelines", &scratch.path("lone")],
        &["no guideline can be tested", "add --operation"],
    );
}
