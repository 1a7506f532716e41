//! Correction of a trace whose events are in temporary files instead of in memory.

use downbeat_clock_core::Duration;
use downbeat_common::cli::unreadable;
use downbeat_common::trace::{ArchiveRead, ArchiveReport, Document, extent, files};
use downbeat_common::{Failure, ProgressBar};
use downbeat_files::FileError;
use downbeat_trace::CorrectionSettings;
use downbeat_trace::formats::otf2::Archive;
use downbeat_trace::formats::{CorrectedStream, StreamedError, StreamedTrace, TraceFormat};

use super::{StreamingOption, TraceCorrectOptions};

impl TraceCorrectOptions {
    /// Corrects the trace by streaming; returns the report and the names of the locations. `None` if
    /// it must be corrected in memory, and the user did not demand streaming.
    pub(super) fn correct_streamed(&self) -> Result<Option<(Document, Vec<String>)>, Failure> {
        let options = &self.correction;
        if options.rewrite && !files::is_archive(&options.input) {
            return Err(files::is_no_archive("--rewrite", &options.input));
        }
        let progress = ProgressBar::new(0);
        progress.stage(1, 3, "reading and matching");
        let trace = match self.read_streamed() {
            Ok(trace) => trace,
            Err(StreamedError::InMemory(_)) if self.streaming == StreamingOption::Auto => {
                return Ok(None);
            }
            Err(StreamedError::Unwritten(why)) => return Err(Failure::run(why)),
            Err(StreamedError::Record(why)) => return Err(Failure::Input(unreadable(why))),
            Err(why) => return Err(Failure::Input(why.to_string())),
        };
        let span = trace
            .span
            .map_or(Duration::ZERO, |[first, last]| last - first);
        let archive = trace.archive();
        let applied = match archive {
            Some((archive, origin)) if trace.sessions.iter().all(Vec::is_empty) => {
                let (applied, applied_for) = extent(&archive.sessions(origin));
                (applied, [applied_for, span])
            }
            _ => (0, [Duration::ZERO, span]),
        };
        let master = trace.census.ids().nth(trace.master as usize);
        let (pre_synchronization, mut report) =
            options.pre_synchronization(&trace.sessions, applied, master);
        let settings = CorrectionSettings {
            pre_synchronization,
            latencies: options.latencies.given(),
            clock: options.clock(),
            control: options.control,
            backward: !options.no_backward,
            only_pre_synchronized: false,
            resolution: archive.map(|(archive, _)| archive.resolution()),
        };
        progress.stage(2, 3, "correcting");
        let corrected = match trace.correct(&settings) {
            Ok(corrected) => corrected,
            // A temporary file cannot be written.
            Err(StreamedError::Record(why @ FileError::Io { .. })) => {
                return Err(Failure::run(why));
            }
            Err(StreamedError::Violated(why)) => return Err(options.failure(why)),
            Err(why) => return Err(Failure::Input(why.to_string())),
        };
        progress.stage(3, 3, "writing");
        let written = self.write_streamed(&trace, &corrected)?;
        report.complete(&corrected.report);
        let latencies = options.latencies.setting(corrected.report.latencies);
        let read = archive.map(|(archive, origin)| ArchiveRead::of(archive, origin));
        let about = (&trace.names[..], &read.unwrap_or_default());
        let document = Document::new(&corrected.report, (report, latencies, written), about);
        Ok(Some((document, trace.names.clone())))
    }

    fn read_streamed(&self) -> Result<StreamedTrace, StreamedError> {
        let options = &self.correction;
        let reading = options.reading(1);
        if files::is_archive(&options.input) {
            let archive = Archive::open(&options.input)?;
            return StreamedTrace::read_archive(archive, &reading.of_archive(), &options.output);
        }
        let (matching, checksums) = (reading.matching, reading.checksums);
        StreamedTrace::read(&options.input, matching, checksums, &options.output)
    }

    fn write_streamed(
        &self,
        trace: &StreamedTrace,
        corrected: &CorrectedStream<'_>,
    ) -> Result<Option<ArchiveReport>, Failure> {
        let options = &self.correction;
        let Some((archive, _)) = trace.archive() else {
            let format = trace.format().unwrap_or(TraceFormat::Text);
            let format = files::format(&options.output, format);
            let written = corrected.write(&options.output, format);
            return written.map(|()| None).map_err(Failure::run);
        };
        let written = corrected.write_archive(&options.output, options.rewrite);
        let written = written.map_err(files::archive_failure)?;
        let locations = written.knots.into_iter().zip(written.rewritten);
        Ok(Some(ArchiveReport::of(archive, locations)))
    }
}
