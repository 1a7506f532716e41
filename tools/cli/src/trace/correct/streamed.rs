//! Correction of a trace whose events are in temporary files instead of in memory.

use downbeat_clock_core::Duration;
use downbeat_common::Failure;
use downbeat_common::cli::unreadable;
use downbeat_common::trace::{ArchiveRead, Document, files};
use downbeat_files::FileError;
use downbeat_trace::CorrectionSettings;
use downbeat_trace::formats::{StreamedError, StreamedTrace};

use super::{StreamingOption, TraceCorrectOptions};

impl TraceCorrectOptions {
    /// Corrects the trace by streaming; returns the report and the names of the locations. `None` if
    /// it must be corrected in memory, and the user did not demand streaming.
    pub(super) fn correct_streamed(&self) -> Result<Option<(Document, Vec<String>)>, Failure> {
        let options = &self.correction;
        let (matching, checksums) = (options.matching.matching(), options.verify.checksums());
        let trace = match StreamedTrace::read(&options.input, matching, checksums, &options.output)
        {
            Ok(trace) => trace,
            Err(StreamedError::InMemory(_)) if self.streaming == StreamingOption::Auto => {
                return Ok(None);
            }
            Err(StreamedError::Unwritten(why)) => return Err(Failure::run(why)),
            Err(why) => return Err(Failure::Input(unreadable(why))),
        };
        let master = trace.census.ids().nth(trace.master as usize);
        let (pre_synchronization, mut report) =
            options.pre_synchronization(&trace.sessions, (0, [Duration::ZERO; 2]), master);
        let settings = CorrectionSettings {
            pre_synchronization,
            latencies: options.latencies.given(),
            clock: options.clock(),
            backward: !options.no_backward,
            resolution: None,
        };
        let format = files::format(&options.output, trace.format);
        let found = match trace.correct(&settings, (&options.output, format)) {
            Ok(found) => found,
            Err(StreamedError::InMemory(_)) if self.streaming == StreamingOption::Auto => {
                return Ok(None);
            }
            // An output or temporary file cannot be written.
            Err(StreamedError::Record(why @ FileError::Io { .. })) => {
                return Err(Failure::run(why));
            }
            Err(StreamedError::Violated(why)) => return Err(options.failure(why)),
            Err(why) => return Err(Failure::Input(why.to_string())),
        };
        report.complete(&found);
        let latencies = options.latencies.setting(found.latencies);
        let read = ArchiveRead::default();
        let document = Document::new(&found, (report, latencies, None), (&trace.names, &read));
        Ok(Some((document, trace.names)))
    }
}
