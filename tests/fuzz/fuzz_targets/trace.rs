//! Traces as text and as bytes: read, matched, corrected if they are valid, and written.
#![no_main]

use std::cell::RefCell;
use std::path::Path;

use downbeat_files::Checksums;
use downbeat_fuzz::MemoryFile;
use downbeat_trace::formats::{TraceFile, TraceReader};
use downbeat_trace::{ControlledLogicalClock, Latencies, Matching};
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
        let lenient = Matching {
            lenient: true,
            ..Matching::default()
        };
        // On two threads, binary traces are read in chunks.
        let strict = TraceFile::read_on(path, Matching::default(), Checksums::Ignore, 2);
        let lenient = TraceFile::read_on(path, lenient, Checksums::Ignore, 1);
        for file in strict.into_iter().chain(lenient) {
            let _ = ControlledLogicalClock::new(Latencies::ZERO).correct(&file.trace);
        }
    });
});
