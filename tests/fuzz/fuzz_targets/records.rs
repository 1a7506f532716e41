//! Records of launches; the first byte selects the format.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::process;

use downbeat_files::Checksums;
use downbeat_records::{is_complete, read_header, read_launch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((format, data)) = data.split_first() else {
        return;
    };
    let format = match format % 2 {
        0 => "csv",
        _ => "parquet",
    };
    // The format is that of the name, which a file without a name has not.
    let path = PathBuf::from(format!("/dev/shm/downbeat-{}.{format}", process::id()));
    if fs::write(&path, data).is_err() {
        return;
    }
    for checksums in [Checksums::Verify, Checksums::Ignore] {
        let _ = read_launch(&path, checksums);
        let _ = read_header(&path, checksums);
    }
    let _ = is_complete(&path);
    let _ = fs::remove_file(&path);
});
