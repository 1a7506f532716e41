//! Traces as text and as bytes: read, matched, and corrected if they are valid, in memory and as a stream with the same
//! result.
#![no_main]

use std::cell::RefCell;
use std::path::Path;

use downbeat_files::Checksums;
use downbeat_fuzz::MemoryFile;
use downbeat_trace::check::Verdict;
use downbeat_trace::formats::{StreamedTrace, TraceFile, TraceReader};
use downbeat_trace::{ControlledLogicalClock, CorrectionSettings, Latencies, Matching};
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
        let matching = Matching {
            lenient: true,
            ..Matching::default()
        };
        // On two threads, binary traces are read in chunks.
        let strict = TraceFile::read_on(path, Matching::default(), Checksums::Ignore, 2);
        let lenient = TraceFile::read_on(path, matching, Checksums::Ignore, 1);
        if let Ok(file) = strict {
            let _ = ControlledLogicalClock::new(Latencies::ZERO).correct(&file.trace);
        }
        let settings = CorrectionSettings {
            latencies: Some(Latencies::ZERO),
            ..CorrectionSettings::default()
        };
        let beside = Path::new("/dev/shm/downbeat-fuzz");
        let streamed = StreamedTrace::read(path, matching, Checksums::Ignore, beside);
        let in_memory = lenient.map(|file| {
            let clock = ControlledLogicalClock::new(Latencies::ZERO);
            let times = clock.correct(&file.trace).map(|found| found.into_times());
            times.map(|times| Verdict::new(&file.trace, &times, &Latencies::ZERO).ok())
        });
        if let (Ok(Ok(Some(verdict))), Ok(streamed)) = (in_memory, streamed)
            && let Ok(corrected) = streamed.correct(&settings)
        {
            assert_eq!(corrected.report.corrected, verdict);
        }
    });
});
