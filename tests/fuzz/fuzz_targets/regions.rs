//! Saved reports of regions: read, merged, compared and shown.
#![no_main]

use std::cell::RefCell;

use downbeat_files::Checksums;
use downbeat_fuzz::MemoryFile;
use downbeat_regions::{ProfileReport, ReportDiff, TextOptions};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: RefCell<MemoryFile> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    FILE.with_borrow_mut(|file| {
        let path = file.with(data);
        let _ = ProfileReport::load(path, Checksums::Verify);
        let Ok(report) = ProfileReport::load(path, Checksums::Ignore) else {
            return;
        };
        let _ = report.text(&TextOptions::default());
        if let Ok(merged) = report.clone().merge(report.clone()) {
            let _ = merged.text(&TextOptions::default());
            let _ = ReportDiff::new(&report, &merged);
        }
    });
});
