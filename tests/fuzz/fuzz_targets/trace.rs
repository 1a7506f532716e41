//! Traces as text: read, matched, and corrected if they are valid.
#![no_main]

use std::cell::RefCell;
use std::path::Path;

use downbeat_files::Checksums;
use downbeat_fuzz::{MemoryFile, correct};
use downbeat_trace::formats::{TraceFile, TraceReader};
use downbeat_trace::{ControlledLogicalClock, Latencies, Matching, TraceBuilder};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: RefCell<MemoryFile> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    let Ok(reader) = TraceReader::new(Path::new("a"), data) else {
        return;
    };
    let mut reader = reader.with_checksums(Checksums::Ignore);
    while let Ok(Some(_)) = reader.next_item() {}
    FILE.with_borrow_mut(|file| {
        let path = file.with(data);
        let _ = TraceFile::read(path, Matching::default());
        let read = || {
            let builder = TraceBuilder::new(Matching::default());
            TraceFile::read_with_builder(path, builder, Checksums::Ignore, 1)
        };
        if let Ok((trace, file)) = read() {
            let _ = ControlledLogicalClock::new(Latencies::ZERO).correct(&trace);
            correct(trace, file.sessions);
        }
    });
});
