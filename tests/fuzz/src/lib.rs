//! Parts that fuzz targets share: files in memory for parsers that read paths, and the
//! correction of a trace.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use downbeat_sync::{ThreadComm, block_on_ready};
use downbeat_trace::CorrectionError;
use downbeat_trace::presync::Sessions;
use downbeat_trace::{CorrectionSettings, Latencies, MeasuredTrace, Trace};

/// A file in memory with some content. It is gone with the process, however that ends.
#[derive(Debug)]
pub struct MemoryFile {
    file: fs::File,
    path: PathBuf,
}

impl MemoryFile {
    /// Creates an empty file.
    #[expect(
        clippy::expect_used,
        reason = "without its file, a target can test nothing"
    )]
    pub fn new() -> Self {
        use std::os::fd::AsRawFd as _;
        let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::empty());
        let file = fs::File::from(fd.expect("Linux has files in memory"));
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Self { file, path }
    }

    /// Replaces the content, and returns the path of the file.
    #[expect(clippy::expect_used, reason = "as above")]
    pub fn with(&mut self, content: &[u8]) -> &Path {
        use std::os::unix::fs::FileExt as _;
        let written = self.file.set_len(0);
        let written = written.and_then(|()| self.file.write_all_at(content, 0));
        written.and_then(|()| self.file.flush()).expect("it fits");
        &self.path
    }
}

impl Default for MemoryFile {
    fn default() -> Self {
        Self::new()
    }
}

/// Corrects a trace; a violation that is left is a finding.
pub fn correct(trace: Trace, sessions: Sessions) {
    let measured = MeasuredTrace {
        trace: trace.into(),
        sessions,
        truth: None,
    };
    let settings = CorrectionSettings {
        latencies: Some(Latencies::ZERO),
        ..CorrectionSettings::default()
    };
    let comm = ThreadComm::alone();
    let corrected = downbeat_trace::correct(&comm, measured, &settings);
    if let Err(why @ CorrectionError::Violated(_)) = block_on_ready(corrected) {
        panic!("{why}");
    }
}
