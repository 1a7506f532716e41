//! Files that were not written by this library, or were damaged.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::{Matching, Place, TraceBuilder};
use proptest::prelude::*;

use super::tests::{TEXT, UNSEALED};
use super::*;
use downbeat_files::Checksums;
use downbeat_files::testing::TemporaryFolder;

fn read(bytes: &[u8]) -> Result<(crate::Trace, TraceFile), String> {
    let (_folder, path) = TemporaryFolder::with_file("a", bytes);
    TraceFile::read(&path, Matching::default()).map_err(|why| {
        let why = why.to_string();
        assert!(!why.contains('\n'), "{why}");
        why.strip_prefix(&format!("{}: ", path.display()))
            .expect("the file is named")
            .to_owned()
    })
}

/// Returns the error for a text with two locations and a communicator, followed by `text`.
fn body(text: &str) -> String {
    let head = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 0 1 b\ncommunicator 0 0 1\nregion 0 f\n";
    read(format!("{head}{text}").as_bytes()).unwrap_err()
}

#[test]
fn first_lines() {
    let none = "line 1: a trace begins with \"# downbeat trace 1\"";
    for text in [
        "",
        "x",
        "\n",
        "# downbeat launch 1\n",
        "# downbeat trace 1",
        "\u{feff}# downbeat trace 1\n",
        "OTF2",
    ] {
        assert_eq!(read(text.as_bytes()).unwrap_err(), none, "{text:?}");
    }
    assert_eq!(read(&[0; 100]).unwrap_err(), none);
    let long = if cfg!(miri) { 1 << 14 } else { 1 << 24 };
    assert_eq!(read(&vec![b'x'; long]).unwrap_err(), none);
    assert_eq!(
        read(b"# downbeat trace 7\n").unwrap_err(),
        "line 1: version \"7\" is not known here"
    );
    assert_eq!(
        read(b"# downbeat trace 1\n").unwrap_err(),
        "line 2: the file is cut off here"
    );
    assert_eq!(
        read(b"# downbeat trace 1 without checksum\r\nend 0\r\n")
            .unwrap()
            .0
            .events(),
        0
    );
}

#[test]
fn lines() {
    let line = |line: &str| body(&format!("{line}\nend 1\n")).replacen("line 6: ", "", 1);
    for time in [
        "NaN",
        "inf",
        "1.5",
        "",
        "+1",
        "-0",
        "01",
        "9223372036854775808",
        "0x1",
    ] {
        assert_eq!(
            line(&format!("0 {time} note x")),
            format!("\"{time}\" is not a time in nanoseconds")
        );
    }
    assert_eq!(line("2 0 note x"), "location 2 is not defined before this");
    assert_eq!(
        line("99999999999999999999 0 note x"),
        "\"99999999999999999999\" is not the number of a location"
    );
    assert_eq!(line("0"), "a time in nanoseconds is missing");
    assert_eq!(line("0 0"), "the kind of an event is missing");
    assert_eq!(line("0 0 jump 1"), "\"jump\" is not the kind of an event");
    assert_eq!(line("0 0 note"), "there is no name");
    assert_eq!(
        line("0 0 note a\tb"),
        "a name has a control character, '\\t'"
    );
    assert_eq!(line("0 0 enter 1"), "region 1 is not defined before this");
    assert_eq!(line("0 0 enter 0 0"), "\"0\" is too much");
    assert_eq!(line("0 0 enter 0 "), "\"\" is too much");
    assert_eq!(line("0  0 enter 0"), "\"\" is not a time in nanoseconds");
    assert_eq!(
        line("0 0 send 2 0 0"),
        "location 2 is not defined before this"
    );
    assert_eq!(
        line("0 0 send 1 1 0"),
        "communicator 1 is not defined before this"
    );
    assert_eq!(
        line("0 0 send 1 0 2147483648"),
        "\"2147483648\" is not a tag"
    );
    assert_eq!(line("0 0 send 1 0"), "a tag is missing");
    assert_eq!(
        line("0 0 collective-end 0 fork 0 both"),
        "\"fork\" is not a collective operation"
    );
    assert_eq!(
        line("0 0 collective-end 0 scan 0 all"),
        "\"all\" is not none, sent, received or both"
    );
    let left = "event 0 of location 0 leaves a collective operation that was not entered";
    assert_eq!(line("0 0 collective-end 0 scan 0 both"), left);
    assert_eq!(
        line("location 1 0 0 c"),
        "the number of a location is 1, but would have to be 2 here"
    );
    assert_eq!(
        line("location 2 0 4294967296 c"),
        "\"4294967296\" is not the number of a process"
    );
    assert_eq!(line("location 2 0 0 "), "there is no name");
    assert_eq!(
        line("thread 2 2 c"),
        "location 2 is not defined before this"
    );
    assert_eq!(
        line("communicator 1 0 0"),
        "location 0 is in one communicator twice"
    );
    assert_eq!(
        line("communicator 1 0 2"),
        "location 2 is not defined before this"
    );
    assert_eq!(
        line("region 3000000000 g"),
        "the number of a region is 3000000000, but would have to be 1 here"
    );
    assert_eq!(
        line("sample 1 1 0 0"),
        "session 1 of location 1 is its first, which must have number 0"
    );
    assert_eq!(line("sample 1 0 0"), "a time in nanoseconds is missing");
    let other = "is neither the number of a location, nor anything else that a line begins with";
    assert_eq!(line(""), format!("\"\" {other}"));
    assert_eq!(line("# note"), format!("\"#\" {other}"));
    assert_eq!(line("endless 1"), format!("\"endless\" {other}"));
    assert_eq!(
        line(&"x".repeat(99)),
        format!("\"{}...\" {other}", "x".repeat(40))
    );
    assert_eq!(
        line(&"0 ".repeat(1 << 20)),
        "\"0\" is not the kind of an event"
    );
    assert_eq!(
        line(&"0 ".repeat(10_000_000)),
        "it is longer than 8388608 bytes"
    );
    assert_eq!(
        line(&format!("0 0 note {}", "x".repeat(70_000))),
        "a name is longer than 65536 bytes"
    );
    let broken = [
        b"# downbeat trace 1 without checksum\nlocation 0 0 0 ".as_slice(),
        b"\xff\n",
    ]
    .concat();
    assert_eq!(read(&broken).unwrap_err(), "line 2: it is no UTF-8");
}

#[test]
fn inconsistent_files_are_rejected() {
    let decreasing = "line 7: event 1 of location 0 is earlier than the event before it";
    assert_eq!(body("0 5 note x\n0 4 note x\nend 2\n"), decreasing);
    assert_eq!(
        body("0 -4611686018427387905 note x\n"),
        "line 6: event 0 of location 0 is more than 146 years from the origin"
    );
    assert_eq!(
        body("0 5 note x\nend 2\n"),
        "line 7: there are 1 events, but 2 are said to be"
    );
    assert_eq!(body("end\n"), "line 6: a number of events is missing");
    assert_eq!(
        body("end 0\n\n"),
        "line 7: something comes after the end of the record"
    );
    assert_eq!(
        body("end 0\nx"),
        "line 7: something comes after the end of the record"
    );
    assert_eq!(
        body("end 0\ncrc32 00000000\n"),
        "line 7: a checksum in a trace whose first line says \"without checksum\": remove this line, or these two words"
    );
    assert_eq!(body("end 0"), "line 6: the file is cut off here");
    assert_eq!(
        body("master 0\nmaster 0\n"),
        "line 7: a second master is defined"
    );
    assert_eq!(
        body("sample 1 0 0 0\nsample 1 2 0 0\n"),
        "line 7: session 2 of location 1 comes after session 0"
    );
}

#[test]
fn truncation_is_detected_everywhere() {
    for text in [TEXT, UNSEALED] {
        for end in 0..text.len() {
            assert!(read(&text.as_bytes()[..end]).is_err(), "{end}");
        }
    }
}

#[test]
fn a_device_or_missing_file_is_rejected() {
    assert_eq!(
        TraceReader::open(Path::new("/dev/zero"))
            .unwrap_err()
            .to_string(),
        "/dev/zero: it is not a file"
    );
    let why = TraceReader::open(Path::new("/no/such/a.dbt"))
        .unwrap_err()
        .to_string();
    assert!(why.starts_with("/no/such/a.dbt: No such file"), "{why}");
}

#[test]
fn disk_errors_are_reported() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    for bytes in [TEXT.as_bytes(), UNSEALED.as_bytes()] {
        let mut reader =
            TraceReader::new(Path::new("a"), bytes[..bytes.len() - 9].chain(Broken)).unwrap();
        let why = loop {
            match reader.next_item() {
                Ok(item) => assert!(item.is_some()),
                Err(why) => break why,
            }
        };
        assert_eq!(why.to_string(), "a: no storage space");
    }
}

#[test]
fn an_invalid_output_path_is_reported() {
    let (folder, path) = TemporaryFolder::with_file("a.dbt", b"before");
    let told = |path: &Path| TraceWriter::create(path).unwrap_err().to_string();
    assert_eq!(
        told(&folder.0),
        format!("{}: it is not a file", folder.0.display())
    );
    assert!(told(Path::new("/no/such/a.dbt")).starts_with("/no/such/a.dbt: No such file"));
    assert_eq!(told(Path::new("/dev/null")), "/dev/null: it is not a file");
    let mut writer = TraceWriter::create(&path).unwrap();
    let nowhere = Item::Master { location: 0 };
    assert_eq!(
        writer.write(&nowhere).unwrap_err().to_string(),
        "location 0 is not defined before this"
    );
    let broken = Item::Location {
        place: Place {
            node: 0,
            process: 0,
        },
        name: "a\nend 0",
    };
    assert_eq!(
        writer.write(&broken).unwrap_err().to_string(),
        "a name has a control character, '\\n'"
    );
    drop(writer);
    assert_eq!(
        fs::read(&path).unwrap(),
        b"before",
        "what was there before is still there"
    );
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

proptest! {
    /// A damaged file is still read, or fails with an error in one line.
    #[test]
    fn a_wrong_byte_causes_no_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for bytes in [TEXT.as_bytes(), UNSEALED.as_bytes()] {
            let mut bytes = bytes.to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = read(&bytes);
            let (_folder, path) = TemporaryFolder::with_file("a", &bytes);
            let _ = TraceFile::read_with_builder(&path, TraceBuilder::new(Matching::default()), Checksums::Ignore, 1);
        }
    }

    #[test]
    fn random_bytes_cause_no_panic(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let head = &TEXT.as_bytes()[..60];
        let _ = read(&[head, &noise].concat());
        let _ = read(&noise);
    }
}
