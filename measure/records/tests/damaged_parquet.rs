//! Parquet files that were damaged and have a right checksum: an error, and no message of a panic within the decoder.

#![cfg(feature = "parquet")]
#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

use std::fs;
use std::panic;
use std::sync::atomic::{AtomicU32, Ordering};

use downbeat_files::Checksums;
use downbeat_files::checksum::seal;
use downbeat_records::{
    Factors, GroupKey, Journal, MeasuredGroup, Observations, RecordFormat, read_launch,
};

/// Returns the bytes of a small record.
fn record(folder: &std::path::Path) -> Vec<u8> {
    let (format, none) = (RecordFormat::Parquet, Factors::default());
    let mut journal = Journal::open(folder, "a", format, true, &none, &none).unwrap();
    let times: Vec<f64> = (0..100).map(f64::from).collect();
    let observations = Observations::of_durations(&times);
    let group = MeasuredGroup {
        key: GroupKey {
            operation: "bcast".to_owned(),
            bytes: 8,
            ranks: 4,
        },
        nanos: observations.run_times(),
        counts: vec![],
        figures: vec![],
    };
    journal.append(&group, &observations).unwrap();
    journal.complete().unwrap();
    fs::read(folder.join("a.parquet")).unwrap()
}

#[test]
fn no_message_of_a_panic_is_printed() {
    static PRINTED: AtomicU32 = AtomicU32::new(0);
    panic::set_hook(Box::new(|_| {
        PRINTED.fetch_add(1, Ordering::Relaxed);
    }));
    let folder = std::env::temp_dir().join(format!("downbeat-parquet-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (whole, path) = (record(&folder), folder.join("a.parquet"));
    // The metadata at the end, on whose numbers the decoder relies.
    for place in whole.len() - 500..whole.len() {
        for value in [0, 0x7f, 0x8f, 0xf7] {
            let mut bytes = whole.clone();
            bytes[place] = value;
            if seal(&mut bytes) {
                fs::write(&path, &bytes).unwrap();
                let _ = read_launch(&path, Checksums::Verify);
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(PRINTED.load(Ordering::Relaxed), 0);
}
