//! Records with checksums, and edited records.

use downbeat_files::Checksums;
use downbeat_files::checksum::DAMAGED;
use downbeat_files::testing::TemporaryFolder;

use super::hostile::read_text;
use super::{Launch, is_complete, read_launch};

/// A record, as every later version must read it.
const SEALED: &str = "# downbeat launch 1
# factor ranks = 4
# fact seed = 123
operation,bytes,ranks,call,state,nanos
# crc32 cb599d74
allreduce,8,4,0,valid,375
allreduce,8,4,2,valid,381.25
# end allreduce,8,4 valid=2 late=1 long=0 drifted=0 avg=378.125 min=375
# crc32 e387eeab
# complete
# crc32 75e89ee8
";

fn read_csv(text: &str) -> Result<Launch, String> {
    read_text(text.as_bytes(), Checksums::Verify)
}

#[test]
fn a_record_with_checksums_is_read() {
    let launch = read_csv(SEALED).unwrap();
    assert!(launch.complete);
    assert_eq!(launch.groups[0].nanos, [375.0, 381.25]);
    for (from, to, why) in [
        ("ranks = 4", "ranks = 3", "line 5: its checksum is wrong"),
        ("381.25", "391.25", "line 9: its checksum is wrong"),
        ("# complete\n", "", "line 10: its checksum is wrong"),
        (
            "launch 1",
            "launch 2",
            "line 1: version \"2\" is not supported",
        ),
    ] {
        let found = read_csv(&SEALED.replace(from, to)).unwrap_err();
        assert!(found.starts_with(why), "{found}");
    }
    // Missing checksums.
    let lines: Vec<&str> = SEALED.split_inclusive('\n').collect();
    for (missing, number) in [(4, 5), (8, 9)] {
        let mut lines = lines.clone();
        lines.remove(missing);
        assert_eq!(
            read_csv(&lines.concat()).unwrap_err(),
            format!("line {number}: the checksum of the lines before is missing: {DAMAGED}")
        );
    }
    let without_last = read_csv(&lines[..10].concat()).unwrap();
    assert!(!without_last.complete && without_last.groups.len() == 1);
    assert_eq!(
        read_csv(&format!("{SEALED}# complete\n")).unwrap_err(),
        "line 12: something comes after the end of the record"
    );
}

/// What an earlier program wrote, which called itself version 1 and had no checksums.
#[test]
fn a_record_without_checksums_is_refused() {
    let lines = SEALED.split_inclusive('\n');
    let bare: String = lines.filter(|line| !line.contains("crc32")).collect();
    let refused = format!("line 5: the checksum of the lines before is missing: {DAMAGED}");
    for text in [bare.replace(" drifted=0", ""), bare] {
        assert_eq!(read_csv(&text).unwrap_err(), refused);
        let (_folder, path) = TemporaryFolder::with_file("a.csv", text.as_bytes());
        assert!(!is_complete(&path).unwrap());
    }
}

#[test]
fn edited_records_are_read_on_request() {
    let read = |text: &str| {
        let (_folder, path) = TemporaryFolder::with_file("a.csv", text.as_bytes());
        read_launch(&path, Checksums::Ignore).map_err(|why| why.to_string())
    };
    let edited = SEALED.replace("381.25", "391.25").replace('\n', "\r\n");
    assert_eq!(read(&edited).unwrap().groups[0].nanos, [375.0, 391.25]);
    // Checksums may have been removed.
    let lines = edited.split_inclusive('\n');
    let bare: String = lines.filter(|line| !line.contains("crc32")).collect();
    assert_eq!(read(&bare).unwrap(), read(&edited).unwrap());
    assert!(read(&edited.replace("valid=2", "valid=3")).is_err());
}
