//! Damaged files, and files that other programs wrote.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::content::Keep;
use super::*;
use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState, Observations};
use downbeat_files::Checksums;
use downbeat_files::testing::{TemporaryFolder, seal_record};

const HEAD: &str = "# downbeat launch 1\n# factor ranks = 4\n# fact seed = 1\noperation,bytes,ranks,call,state,nanos\n";
const GROUP: &str = "allreduce,8,4,0,valid,375\nallreduce,8,4,2,valid,381.25\n# end allreduce,8,4 valid=2 late=1 long=0 drifted=0 avg=378.125\n";

pub(super) fn read_text(text: &[u8], checksums: Checksums) -> Result<Launch, String> {
    let (_folder, path) = TemporaryFolder::with_file("a.csv", text);
    read_launch(&path, checksums).map_err(|why| {
        let why = why.to_string();
        assert!(!why.contains('\n'), "{why}");
        why.strip_prefix(&format!("{}: ", path.display()))
            .expect("the file is named")
            .to_owned()
    })
}

/// Reads a text without checksums.
fn read_csv(text: &str) -> Result<Launch, String> {
    read_text(text.as_bytes(), Checksums::Ignore)
}

/// Error of a file with a valid header and this body.
fn body(text: &str) -> String {
    read_csv(&format!("{HEAD}{text}")).unwrap_err()
}

#[test]
fn invalid_headers() {
    let none = "a record of a launch begins with \"# downbeat launch 1\"";
    for text in [
        "x",
        "hello\n",
        "operation,bytes\n",
        "\n",
        "# downbeat lunch 1\n",
        "# downbeat launch\n",
        "\u{feff}# downbeat launch 1\n",
    ] {
        assert_eq!(
            read_csv(text).unwrap_err(),
            format!("line 1: {none}"),
            "{text}"
        );
    }
    assert_eq!(
        read_csv("# downbeat launch 4\n").unwrap_err(),
        "line 1: version \"4\" is not supported"
    );
    assert_eq!(
        read_csv("").unwrap_err(),
        "line 1: the file ends within the header"
    );
    assert_eq!(
        read_csv("# downbeat launch 1\n# fac").unwrap_err(),
        "line 2: the file ends within the header"
    );
    assert_eq!(
        read_text(&[0; 100], Checksums::Ignore).unwrap_err(),
        format!("line 1: {none}")
    );
    assert_eq!(
        read_text(b"\xff\xfe\n", Checksums::Ignore).unwrap_err(),
        format!("line 1: {none}")
    );
    let with = |line: &str| read_csv(&HEAD.replace("# fact seed = 1", line)).unwrap_err();
    assert_eq!(
        with("# factor ranks = 5"),
        "line 3: there is a second factor \"ranks\""
    );
    assert_eq!(
        with("# factor ranks"),
        "line 3: it is not of the form NAME = VALUE"
    );
    assert_eq!(with("# factor  = 5"), "line 3: a factor has no name");
    assert!(
        with("# end allreduce,8,4 valid=0 late=0 long=0 drifted=0")
            .starts_with("line 3: this is neither a factor, nor")
    );
    assert!(
        with("operation,bytes,ranks,call,nanos")
            .starts_with("line 3: this is neither a factor, nor")
    );
    let broken = [
        b"# downbeat launch 1\n# factor x = \xff\n".as_slice(),
        HEAD.as_bytes(),
    ]
    .concat();
    assert_eq!(
        read_text(&broken, Checksums::Ignore).unwrap_err(),
        "line 2: it is not UTF-8"
    );
    let many: String = (0..5_000).map(|i| format!("# factor {i} = \n")).collect();
    let many = read_csv(&format!("# downbeat launch 1\n{many}")).unwrap_err();
    assert_eq!(many, "line 4098: there are more than 4096 factors");
    let raw = HEAD.replace("state,nanos", "state,rank,start_ns,end_ns");
    assert!(
        read_csv(&raw)
            .unwrap_err()
            .starts_with("line 4: this is neither a factor")
    );
}

#[test]
fn invalid_rows() {
    let row = |row: &str| body(&format!("{row}\n"));
    for nanos in ["NaN", "inf", "-inf", "1e999", "", "1 ", "0x1p3", "375ns"] {
        assert_eq!(
            row(&format!("a,8,4,0,valid,{nanos}")),
            format!("line 5: \"{nanos}\" is not a valid run-time")
        );
    }
    assert_eq!(
        row("a,8,4,0,lost,1"),
        "line 5: \"lost\" is not a valid state"
    );
    assert_eq!(
        row("a,8,4,-1,valid,1"),
        "line 5: \"-1\" is not a valid number of a call"
    );
    assert_eq!(
        row("a,8,4,99999999999999999999,valid,1"),
        "line 5: \"99999999999999999999\" is not a valid number of a call"
    );
    assert_eq!(
        row("a,8,4294967296,0,valid,1"),
        "line 5: \"4294967296\" is not a valid number of ranks"
    );
    assert_eq!(
        row("a,1e3,4,0,valid,1"),
        "line 5: \"1e3\" is not a valid number of bytes"
    );
    assert_eq!(
        row(",8,4,0,valid,1"),
        "line 5: \"\" is not a valid operation name"
    );
    assert_eq!(
        row("a b,8,4,0,valid,1"),
        "line 5: \"a b\" is not a valid operation name"
    );
    assert_eq!(
        row("a,8,4,0,valid"),
        "line 5: it has 5 columns instead of 6"
    );
    assert_eq!(
        row("a,8,4,0,valid,1,2"),
        "line 5: it has 7 columns instead of 6"
    );
    assert_eq!(
        row("a,8,4,0,valid,1,"),
        "line 5: it has 7 columns instead of 6"
    );
    assert_eq!(row(""), "line 5: it has 1 columns instead of 6");
    assert_eq!(
        row(&"1,".repeat(100_000)),
        "line 5: it has 100001 columns instead of 6"
    );
    assert_eq!(
        row(&"1,".repeat(10_000_000)),
        "line 5: it is longer than 1048576 bytes"
    );
    let long = row(&format!("a,8,4,0,valid,{}", "x".repeat(1_000)));
    assert_eq!(
        long,
        format!("line 5: \"{}...\" is not a valid run-time", "x".repeat(40))
    );
    assert_eq!(
        body("a,8,4,1,valid,1\na,8,4,1,valid,1\n"),
        "line 6: call 1 comes after call 1"
    );
    assert_eq!(
        body("a,8,4,1,valid,1\na,8,4,0,valid,1\n"),
        "line 6: call 0 comes after call 1"
    );
    assert_eq!(
        body("a,8,4,1,valid,1\n\n"),
        "line 6: it has 1 columns instead of 6"
    );
    assert_eq!(
        body("a,8,4,1,valid,1\nb,8,4,1,valid,1\n"),
        "line 6: a row of b, 8 bytes, 4 ranks is inside the group of a, 8 bytes, 4 ranks"
    );
    let invalid = [
        HEAD.as_bytes(),
        b"a,8,4,0,valid,1\n\xff\xff,8,4,0,valid,1\n",
    ]
    .concat();
    assert_eq!(
        read_text(&invalid, Checksums::Ignore).unwrap_err(),
        "line 6: \"\u{fffd}\u{fffd}\" is not a valid operation name"
    );
}

#[test]
fn invalid_ends_of_groups() {
    let group = "a,8,4,0,valid,1\na,8,4,2,late,1\n";
    let end = |end: &str| body(&format!("{group}# {end}\n"));
    assert_eq!(
        end("end a,8,4 valid=2 late=1 long=0 drifted=0"),
        "line 7: there are 1 rows in state valid, but their count is 2"
    );
    assert_eq!(
        end("end a,8,4 valid=0 late=3 long=0 drifted=0"),
        "line 7: there are 1 rows in state valid, but their count is 0"
    );
    assert_eq!(
        end("end a,8,4 valid=1 late=0 long=9 drifted=0"),
        "line 7: there are 1 rows in state late, but their count is 0"
    );
    assert_eq!(
        end("end a,8,4 valid=1 late=1 long=0 drifted=0"),
        "line 7: there is a call 2, but the counts add up to 2 calls"
    );
    assert_eq!(
        end("end b,8,4 valid=1 late=2 long=0 drifted=0"),
        "line 7: the group of a, 8 bytes, 4 ranks ends as one of b, 8 bytes, 4 ranks"
    );
    assert_eq!(
        end("end a,8 valid=1 late=2 long=0 drifted=0"),
        "line 7: \"a,8\" is not a group"
    );
    assert_eq!(
        end("end a,8,4 valid=1 long=0 late=2"),
        "line 7: the count of state late is missing"
    );
    assert_eq!(
        end("end a,8,4"),
        "line 7: the count of state valid is missing"
    );
    assert_eq!(
        end("end a,8,4 valid=1 late=2 long=0 drifted=0 avg=NaN"),
        "line 7: \"avg=NaN\" is not a figure"
    );
    assert_eq!(
        end("end a,8,4 valid=1 late=2 long=0 drifted=0 avg"),
        "line 7: \"avg\" is not a figure"
    );
    assert_eq!(
        end("end a,8,4 valid=1 late=2 long=0 drifted=0 avg=1 avg=2"),
        "line 7: there is a second figure avg"
    );
    assert_eq!(
        end("fact x = 1"),
        "line 7: the group of a, 8 bytes, 4 ranks has not ended"
    );
    assert_eq!(
        end("complete"),
        "line 7: the group of a, 8 bytes, 4 ranks has not ended"
    );
    assert_eq!(
        body("# nonsense\n"),
        "line 5: this is neither the end of a group, nor a fact, nor the end of the record"
    );
    assert_eq!(
        body(&format!("{GROUP}{GROUP}")),
        "line 8: there is a second group of allreduce, 8 bytes, 4 ranks"
    );
    assert_eq!(
        body(&format!("{GROUP}# fact seed = 2\n")),
        "line 8: there is a second fact \"seed\""
    );
    for after in ["\n", "x", "# complete\n"] {
        assert_eq!(
            body(&format!("{GROUP}# complete\n{after}")),
            "line 9: something comes after the end of the record"
        );
    }
}

#[test]
fn unusual_but_valid_files_are_read() {
    let usual = read_csv(&format!("{HEAD}{GROUP}# complete\n")).unwrap();
    assert_eq!(usual.groups[0].nanos, [375.0, 381.25]);
    let mixed = format!("{HEAD}{GROUP}# complete\n")
        .replace("valid,375\n", "valid,375\r\n")
        .replace("4\n#", "4\r\n#")
        .replace("125\n", "125\r\n");
    assert_eq!(read_csv(&mixed).unwrap(), usual);
    assert_eq!(
        read_csv(&format!("{HEAD}{GROUP}# complete\n").replace('\n', "\r\n")).unwrap(),
        usual
    );
    // With wrong clocks, an operation may end before it begins.
    let odd = read_csv(&format!(
        "{HEAD}a,0,1,0,valid,-1e300\n# end a,0,1 valid=1 late=0 long=0 drifted=0\n# end b,0,1 valid=0 late=7 long=0 drifted=0\n"
    ))
    .unwrap();
    assert_eq!(
        (&odd.groups[0].nanos[..], odd.groups[1].counts[1]),
        (&[-1e300][..], (ObservationState::Late, 7))
    );
}

/// The header, then a line without end: reading stops at the limit.
#[test]
fn long_lines_are_rejected_early() {
    struct Counted(u64);
    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert!(self.0 < 2 << 20, "{} bytes were read", self.0);
            buffer.fill(b'1');
            self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }
    let found = csv::read(
        HEAD.as_bytes().chain(Counted(0)),
        Keep::Valid,
        Checksums::Ignore,
    )
    .unwrap_err();
    assert_eq!(
        found.in_file(Path::new("a")).to_string(),
        "a: line 5: it is longer than 1048576 bytes"
    );
}

#[test]
fn invalid_folders() {
    let folder = TemporaryFolder::new();
    let message = |path: &Path| {
        read_experiment(path, Checksums::Ignore)
            .unwrap_err()
            .to_string()
    };
    let shown = |path: &Path| path.display().to_string();
    assert!(message(&folder.0).starts_with(&format!("{}: No such file", shown(&folder.0))));
    fs::create_dir_all(folder.file("variant.csv")).unwrap();
    assert_eq!(
        message(&folder.0),
        format!("{}: it is not a file", shown(&folder.file("variant.csv")))
    );
    fs::remove_dir(folder.file("variant.csv")).unwrap();
    fs::write(folder.file("a.raw.csv"), "").unwrap();
    fs::write(folder.file(".b.csv"), "").unwrap();
    fs::write(folder.file("notes.txt"), "").unwrap();
    assert_eq!(
        message(&folder.0),
        format!(
            "{}: this folder contains no record of a launch",
            shown(&folder.0)
        )
    );
    let (one, two) = (folder.file("1.csv"), folder.file("2.csv"));
    let complete = format!("{HEAD}# complete\n");
    fs::write(&two, complete.replace("ranks = 4", "ranks = 8")).unwrap();
    assert_eq!(
        read_experiment(&folder.0, Checksums::Ignore)
            .unwrap()
            .factors()
            .get("ranks"),
        Some("8")
    );
    fs::write(&one, complete).unwrap();
    assert_eq!(
        message(&folder.0),
        format!(
            "{}: the factor \"ranks\" is \"4\" here, but \"8\" in {}",
            shown(&one),
            shown(&two)
        )
    );
    assert_eq!(
        read_experiment(&one, Checksums::Ignore)
            .unwrap()
            .launches
            .len(),
        1
    );
    fs::write(&two, HEAD).unwrap();
    let names: Vec<String> = read_experiment(&folder.0, Checksums::Ignore)
        .unwrap()
        .launches
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["1", "2"]);
    fs::write(folder.file("2.jsonl"), "").unwrap();
    assert_eq!(
        message(&folder.0),
        format!(
            "{}: records in JSON lines are not supported; a record is CSV or Parquet",
            shown(&folder.file("2.jsonl"))
        )
    );
    assert!(message(Path::new("/dev/zero")).starts_with("/dev/zero: "));
    assert!(Experiment::default().factors().get("ranks").is_none());
}

fn measured() -> (MeasuredGroup, Observations) {
    let observations = Observations::of_durations(&[375.0, 1.5]);
    let key = GroupKey {
        operation: "allreduce".to_owned(),
        bytes: 8,
        ranks: 4,
    };
    (
        MeasuredGroup {
            key,
            nanos: vec![],
            counts: vec![],
            figures: vec![],
        },
        observations,
    )
}

#[test]
fn content_that_cannot_be_read_again_is_rejected() {
    let folder = TemporaryFolder::new();
    let none = Factors::default();
    let message =
        |result: Result<Journal, RecordError>| result.map(|_| ()).unwrap_err().to_string();
    for name in ["", "a/b", "..", ".a", "a.raw", "a.node1", "a\nb"] {
        let shown = name.escape_debug();
        assert_eq!(
            message(Journal::open(
                &folder.0,
                name,
                RecordFormat::Csv,
                false,
                &none,
                &none
            )),
            format!("\"{shown}\" is not a valid launch name")
        );
    }
    let twice = none.clone().with("x", &1).with("x", &1);
    assert_eq!(
        message(Journal::open(
            &folder.0,
            "a",
            RecordFormat::Csv,
            false,
            &twice,
            &none
        )),
        "there is a second factor \"x\""
    );
    let equal = none.clone().with("x = 1", &1);
    assert_eq!(
        message(Journal::open(
            &folder.0,
            "a",
            RecordFormat::Csv,
            false,
            &none,
            &equal
        )),
        "\"x = 1\" contains \"=\" and cannot be written"
    );
    assert!(!folder.0.exists());

    let mut journal =
        Journal::open(&folder.0, "a", RecordFormat::Csv, false, &none, &none).unwrap();
    let (group, observations) = measured();
    let mut refused = |group: &MeasuredGroup, observations: &Observations| {
        journal.append(group, observations).unwrap_err().to_string()
    };
    let named = |operation: &str| MeasuredGroup {
        key: GroupKey {
            operation: operation.to_owned(),
            ..group.key.clone()
        },
        ..group.clone()
    };
    for operation in ["", "a b", "a,b", "#a", "a\n"] {
        assert!(
            refused(&named(operation), &observations).ends_with("is not a valid operation name")
        );
    }
    let key = "allreduce, 8 bytes, 4 ranks";
    let figures = |figures: &[(&str, f64)]| MeasuredGroup {
        figures: figures
            .iter()
            .map(|(name, x)| ((*name).to_owned(), *x))
            .collect(),
        ..group.clone()
    };
    assert_eq!(
        refused(&figures(&[("a", f64::NAN)]), &observations),
        format!("{key}: the figure a is NaN")
    );
    assert_eq!(
        refused(&figures(&[("a=b", 1.0)]), &observations),
        format!("{key}: \"a=b\" is not a valid figure name")
    );
    let miscounted = MeasuredGroup {
        counts: vec![(ObservationState::Valid, 3)],
        ..group.clone()
    };
    assert_eq!(
        refused(&miscounted, &observations),
        format!("{key}: there are 2 rows in state valid, but their count is 3")
    );
    let endless = Observations::of_durations(&[f64::INFINITY]);
    assert_eq!(
        refused(&group, &endless),
        format!("{key}: call 0 took inf ns")
    );
    journal.append(&group, &observations).unwrap();
    assert_eq!(
        journal
            .append(&group, &observations)
            .unwrap_err()
            .to_string(),
        format!("{key}: it is in the record already")
    );
    journal.complete().unwrap();
    journal.complete().unwrap();
    assert!(
        journal
            .append(&named("b"), &observations)
            .unwrap_err()
            .to_string()
            .ends_with("the record is complete")
    );
    assert_eq!(
        fs::read_to_string(folder.file("a.csv"))
            .unwrap()
            .lines()
            .count(),
        9
    );
}

#[test]
fn write_errors_name_the_file() {
    let none = Factors::default();
    let open = |dir: &Path| Journal::open(dir, "a", RecordFormat::Csv, true, &none, &none);
    let message = |dir: &Path| open(dir).map(|_| ()).unwrap_err().to_string();
    assert!(message(Path::new("/proc/nowhere")).starts_with("/proc/nowhere: "));
    let (folder, file) = TemporaryFolder::with_file("file", b"");
    assert!(message(&file).starts_with(&format!("{}: ", file.display())));
    fs::create_dir(folder.file("a.csv")).unwrap();
    assert_eq!(
        message(&folder.0),
        format!("{}: it is not a file", folder.file("a.csv").display())
    );
    fs::remove_dir(folder.file("a.csv")).unwrap();
    // A file of another program is not changed.
    fs::write(folder.file("a.csv"), "x,y\n1,2\n").unwrap();
    assert!(message(&folder.0).contains("a.csv: line 1: a record of a launch begins with"));
    assert_eq!(
        fs::read_to_string(folder.file("a.csv")).unwrap(),
        "x,y\n1,2\n"
    );
    fs::remove_file(folder.file("a.csv")).unwrap();

    let mut journal = open(&folder.0).unwrap();
    let (group, observations) = measured();
    journal.append(&group, &observations).unwrap();
    journal.complete().unwrap();
    let raw = fs::read_to_string(folder.file("a.raw.csv")).unwrap();
    assert_eq!(raw.lines().nth(3), Some("allreduce,8,4,0,valid,0,0,375"));
    // Raw observations without their record, and the other way round.
    let incomplete = |name: &str| {
        let text = fs::read_to_string(folder.file(name)).unwrap();
        seal_record(&text.replace("# complete\n", ""))
    };
    let raw = incomplete("a.raw.csv");
    fs::write(folder.file("a.csv"), incomplete("a.csv")).unwrap();
    let renamed = seal_record(&raw.replace("allreduce", "bcast"));
    fs::write(folder.file("a.raw.csv"), renamed).unwrap();
    assert!(
        message(&folder.0)
            .contains("a.raw.csv: line 6: the record's next group is allreduce, 8 bytes, 4 ranks")
    );
    let four_lines: String = raw.split_inclusive('\n').take(4).collect();
    fs::write(folder.file("a.raw.csv"), four_lines).unwrap();
    assert!(
        message(&folder.0)
            .contains("a.raw.csv: line 5: the group of allreduce, 8 bytes, 4 ranks is missing")
    );
}
