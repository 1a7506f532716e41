//! Saved calibrations, without the line of their checksum.
#![no_main]

use std::cell::RefCell;

use downbeat_files::{ChecksumLine, Checksums, Crc32};
use downbeat_fuzz::MemoryFile;
use downbeat_timers::calibration::SavedCalibration;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: RefCell<MemoryFile> = RefCell::default();
}

const CHECKSUM: ChecksumLine = ChecksumLine {
    before: "crc32 = \"",
    after: "\"",
};

fuzz_target!(|data: &[u8]| {
    let sealed = |text| format!("{text}{}\n", CHECKSUM.line_of(Crc32::of_bytes(data)));
    if let Ok(text) = str::from_utf8(data)
        && let Ok(saved) = sealed(text).parse::<SavedCalibration>()
    {
        assert!(saved.calibration.uncertainty() >= 0.0);
        let _ = (saved.calibration.model(), saved.calibration.rate().hz());
    }
    FILE.with_borrow_mut(|file| {
        let _ = SavedCalibration::load(file.with(data), Checksums::Ignore);
    });
});
