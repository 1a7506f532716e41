//! Options of the commands that correct traces.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat_clock_core::{Duration, parse_share};
use downbeat_sync::Comm;
use downbeat_trace::formats::otf2::WriteOptions;
use downbeat_trace::logical::ControlVariable;
use downbeat_trace::presync::{Interpolation, PreSynchronization};
use downbeat_trace::ranks::common_span;
use downbeat_trace::{
    ArrayStore, ClockOwner, ControlledLogicalClock, CorrectionError, CorrectionReport,
    CorrectionSettings, Gradient, Latencies, MeasuredTrace,
};

use super::document::{ARCHIVE, Document, HULL, NONE, PassReport, PreSyncReport};
use super::recording::{Reading, Recording};
use super::settings::{LatencyOption, MatchingOptions};
use super::{
    Contents, DeviationReport, LatencyReport, NewTrace, PageContents, PageOptions, TruthStages,
    Unfinished, Violations, files,
};
use crate::cli::VerifyOptions;
use crate::text::PrintOptions;
use crate::{Failure, Outputs, ProgressBar, cli};

/// Options for the correction of a trace.
#[derive(Args, Debug)]
pub struct CorrectionOptions {
    /// Trace to correct; it is not modified
    #[arg(value_name = "IN", value_parser = files::path_parser())]
    pub input: PathBuf,
    /// Corrected trace: a file, which is replaced when the correction is complete; a new folder for an OTF2 archive
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Pre-synchronization between sessions; with this option, the clock offsets of an OTF2 archive are its sessions
    /// [default: spline; without sessions, hull if messages arrive before they are sent; for an archive, interpolation
    /// of its clock offsets as OTF2 defines it]
    #[arg(long, value_enum, value_name = "METHOD")]
    pre_synchronization: Option<PreSyncOption>,
    /// Maximum number of samples used per session, from its start [default: all]
    #[arg(long, value_name = "NUMBER", value_parser = cli::whole_number::<u32>(1..=u32::MAX.into()), allow_hyphen_values = true)]
    samples: Option<u32>,
    /// Maximum time from the first sample of a session to the last one used [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = cli::not_negative, allow_hyphen_values = true)]
    session_length: Option<Duration>,
    /// Minimum latencies of messages.
    #[arg(long, value_name = "LATENCIES", help = LatencyOption::HELP, default_value = "measured", allow_hyphen_values = true)]
    latencies: LatencyOption,
    /// Control factor: speed of a clock that was moved forward, relative to its measured
    /// times, from 0 to 1; with 1 it stays forward [default: derived from the largest
    /// violation that pre-synchronization leaves]
    #[arg(long, value_name = "FACTOR", value_parser = control, allow_hyphen_values = true)]
    control: Option<ControlVariable>,
    /// Stretching of intervals before a jump; less where other events limit it
    #[arg(long, value_name = "SHARE", value_parser = gradient, default_value = "1%", allow_hyphen_values = true)]
    gradient: Gradient,
    /// Maximum displacement of an event; beyond it, another pass with slower clocks follows [default: one pass only]
    #[arg(long, value_name = "DURATION", value_parser = cli::not_negative, allow_hyphen_values = true)]
    threshold: Option<Duration>,
    /// Maximum number of passes
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = cli::whole_number::<u32>(1..=u32::MAX.into()), allow_hyphen_values = true)]
    max_passes: u32,
    /// Do not move the events before a jump
    #[arg(long)]
    no_backward: bool,
    /// End after pre-synchronization: clocks are mapped to one, and violations are
    /// counted and left
    #[arg(long, conflicts_with_all = ["control", "gradient", "threshold", "max_passes", "no_backward"])]
    only_pre_synchronize: bool,
    /// Options for the matching of events.
    #[command(flatten)]
    matching: MatchingOptions,
    /// Rewrite the events of all locations of an OTF2 archive, instead of changing only clock offsets where they suffice
    #[arg(long)]
    rewrite: bool,
    /// Same trace with true timestamps, to report the errors of the correction
    #[arg(long, value_name = "FILE", value_parser = files::path_parser())]
    pub truth: Option<PathBuf>,
    /// Treatment of checksums.
    #[command(flatten)]
    verify: VerifyOptions,
    /// Form of the report.
    #[command(flatten)]
    print: PrintOptions,
    /// Options of the page with diagrams.
    #[command(flatten)]
    page: PageOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PreSyncOption {
    /// No correction: clocks are taken as correct
    None,
    /// Straight line from the first session to the last
    Linear,
    /// Straight line through all samples by least squares
    LeastSquares,
    /// Constrained spline through all sessions; with two sessions, the same as least-squares
    Spline,
    /// Straight lines between the convex hulls of the messages there and back; needs no sessions
    Hull,
}

fn control(text: &str) -> Result<ControlVariable, String> {
    let share = text.parse().ok().and_then(ControlVariable::new);
    share.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

fn gradient(text: &str) -> Result<Gradient, String> {
    let share = parse_share(text).map_err(|why| why.to_string())?;
    Gradient::new(share).ok_or_else(|| "must be more than 1e-9".to_owned())
}

/// Largest part of a trace, in times of their sessions, to which offsets are extrapolated without
/// asking messages.
const MOST_EXTRAPOLATED: i64 = 10;

impl CorrectionOptions {
    /// Checks, before hours of work, that the output can be written. While the returned value is
    /// alive, a signal that ends the program removes incomplete output.
    ///
    /// # Errors
    /// If the output cannot be written; the message names the option and the reason.
    pub fn begin(&self) -> Result<Unfinished, Failure> {
        let unfinished = Unfinished::of(&self.output)?;
        let (input, output, truth) = (&*self.input, &*self.output, self.truth.as_deref());
        let inputs = [input].into_iter().chain(truth);
        inputs.clone().try_for_each(files::refuse_folder)?;
        let mut outputs = Outputs::new(inputs.flat_map(files::all_of));
        NewTrace::claim_corrected(&mut outputs, "-o", [input, output])?;
        self.page.add_to(&mut outputs)?;
        Ok(unfinished)
    }

    /// Prints the report and writes the page.
    ///
    /// # Errors
    /// If the page or the standard output cannot be written.
    pub fn show(&self, document: &Document) -> Result<(), Failure> {
        document.contents.archive.warn_of_damage();
        let title = format!("Correction of {}", self.input.display());
        self.page
            .write(&title, &PageContents::correction(document))?;
        let text = || document.text(&self.input, &self.output);
        self.print.print(|| document, text)
    }

    /// Corrects the trace, whose events are in `store`, on this number of threads per
    /// rank; collective. Returns the report, complete on rank 0 only.
    ///
    /// # Errors
    /// If the trace cannot be read, corrected or written; on all ranks.
    pub async fn correct<C: Comm>(
        &self,
        workers: usize,
        store: &ArrayStore,
        comm: &C,
    ) -> Result<Document, Failure> {
        let progress = ProgressBar::new(0);
        let stage = |number, what: &str| {
            if comm.rank() == 0 {
                progress.stage(number, 3, what);
            }
        };
        stage(1, "reading and matching");
        let mut reading = Reading {
            matching: self.matching.matching(),
            apply_offsets: self.pre_synchronization.is_none(),
            checksums: self.verify.checksums(),
            workers,
            store: store.clone(),
        };
        let recording = Recording::read_on_ranks(&self.input, &reading, comm).await?;
        reading.apply_offsets = true;
        let mut damaged = vec![];
        let mut truth = None;
        if let Some(path) = &self.truth {
            let Recording { trace, source } =
                Recording::read_on_ranks(path, &reading, comm).await?;
            damaged = source.read_on_ranks(comm).await?.changed;
            truth = Some(trace);
        }
        let (settings, mut report) = self.settings(&recording, workers, comm).await?;
        let Recording { trace, mut source } = recording;
        let sessions = std::mem::take(&mut source.sessions);
        stage(2, "correcting");
        let measured = MeasuredTrace {
            trace,
            sessions,
            truth,
        };
        let corrected = downbeat_trace::correct(comm, measured, &settings).await;
        let (found, corrected) = corrected.map_err(|why| self.failure(why))?;
        stage(3, "writing");
        let writing = WriteOptions {
            rewrite: self.rewrite,
            workers,
        };
        let written = source.write_corrected((&self.output, writing), &corrected, comm);
        let archive = written.await?;
        report.complete(&found);
        let mut read = source.read_on_ranks(comm).await?;
        read.changed.append(&mut damaged);
        let contents = Contents {
            locations: source.names.len(),
            totals: found.totals,
            archive: read,
        };
        let mut document = self.document(found, &source.names, contents, report);
        (document.archive, document.in_file) = (archive, store.is_file());
        Ok(document)
    }

    /// Creates the report on a correction of locations with these names.
    fn document(
        &self,
        found: CorrectionReport,
        names: &[String],
        contents: Contents,
        pre_synchronization: PreSyncReport,
    ) -> Document {
        let violations = |verdict| Violations::new(verdict, names);
        let last = found.passes.last();
        let missed_threshold = self
            .threshold
            .filter(|most| last.is_some_and(|pass| pass.error > *most));
        let passes = found.passes.iter().map(|pass| PassReport {
            control: pass.control.get(),
            largest_displacement_nanos: pass.error.as_nanos(),
        });
        Document {
            schema: "downbeat.trace_correction",
            version: 1,
            contents,
            pre_synchronization,
            latencies: LatencyReport::new(self.latencies.source, found.latencies, found.levels),
            passes: passes.collect(),
            missed_threshold,
            explicitly_corrected: found.jumps,
            as_measured: violations(&found.as_measured),
            pre_synchronized: violations(&found.pre_synchronized),
            corrected: violations(&found.corrected),
            deviation: DeviationReport(found.deviation),
            truth: found
                .truth
                .map(|[pre_synchronized, corrected]| TruthStages {
                    pre_synchronized,
                    corrected,
                }),
            archive: None,
            in_file: false,
        }
    }

    /// Returns the settings of the correction, and the report on the pre-synchronization,
    /// which lacks the numbers of what was left out. Collective.
    async fn settings<C: Comm>(
        &self,
        recording: &Recording,
        workers: usize,
        comm: &C,
    ) -> Result<(CorrectionSettings, PreSyncReport), Failure> {
        let span = common_span(recording.trace.span(), comm).await;
        let span = span.map_err(Failure::run)?;
        let span = span.map_or(Duration::ZERO, |[first, last]| last - first);
        let (pre_synchronization, report) = self.pre_synchronization(recording, span);
        let mut clock = ControlledLogicalClock::new(Latencies::ZERO);
        clock.threshold = self.threshold;
        clock.most_passes = self.max_passes;
        clock.gradient = self.gradient;
        clock.workers = workers;
        let settings = CorrectionSettings {
            pre_synchronization,
            latencies: self.latencies.given,
            clock,
            control: self.control,
            backward: !self.no_backward,
            only_pre_synchronized: self.only_pre_synchronize,
            resolution: recording.source.resolution(),
        };
        Ok((settings, report))
    }

    /// Returns the pre-synchronization, if any is needed, and its report; `span` is the
    /// time of the trace.
    fn pre_synchronization(
        &self,
        recording: &Recording,
        span: Duration,
    ) -> (Option<PreSynchronization>, PreSyncReport) {
        let source = &recording.source;
        let most = source.sessions.iter().map(Vec::len).max().unwrap_or(0);
        let otherwise = match most {
            0 => PreSyncOption::Hull,
            _ => PreSyncOption::Spline,
        };
        let method = self.pre_synchronization.unwrap_or(otherwise);
        let mut report = PreSyncReport {
            method: method.name(),
            sessions: most,
            is_default: self.pre_synchronization.is_none(),
            ..PreSyncReport::default()
        };
        let (applied, covered) = source.applied;
        if applied > 0 {
            (report.method, report.sessions) = (ARCHIVE, applied);
            if covered.as_nanos() >= span.as_nanos() / MOST_EXTRAPOLATED {
                return (None, report);
            }
            report.extrapolated = Some([covered, span]);
        }
        let master = recording.trace.ids().nth(source.master as usize);
        let master = master.filter(|_| method != PreSyncOption::None);
        let settings = master.map(|master| {
            let mut settings = PreSynchronization::new(master);
            settings.interpolation = method.into();
            settings.most_samples = self.samples.map_or(usize::MAX, |samples| samples as usize);
            settings.longest_session = self.session_length.unwrap_or(Duration::MAX);
            settings.unless_possible = self.pre_synchronization.is_none();
            settings
        });
        (settings, report)
    }

    /// Returns the failure for an error of the correction.
    fn failure(&self, why: CorrectionError) -> Failure {
        let input = self.input.display();
        let text = format!("{input}: {why}");
        let clock_of = self.matching.matching().clock_of;
        match why {
            // Events that were recorded in an impossible order by what counts as one clock.
            CorrectionError::Cycle(_) if clock_of != ClockOwner::Location => Failure::Input(
                text + "; if locations do not share a clock, use --clock-of location",
            ),
            CorrectionError::Trace(_) | CorrectionError::Cycle(_) | CorrectionError::Clocks(_) => {
                Failure::Input(text)
            }
            CorrectionError::OtherTruth => {
                let truth = self.truth.as_deref().unwrap_or(Path::new("")).display();
                Failure::option(
                    "--truth",
                    format!("{truth} is not the same trace as {input}"),
                )
            }
            CorrectionError::Violated(_) => Failure::Run(text),
            other => Failure::run(other),
        }
    }
}

impl PreSyncOption {
    fn name(self) -> &'static str {
        match self {
            Self::None => NONE,
            Self::Linear => "linear",
            Self::LeastSquares => "least-squares",
            Self::Spline => "spline",
            Self::Hull => HULL,
        }
    }
}

impl From<PreSyncOption> for Interpolation {
    fn from(option: PreSyncOption) -> Self {
        match option {
            PreSyncOption::None => Self::Unchanged,
            PreSyncOption::Linear => Self::Linear,
            PreSyncOption::LeastSquares => Self::LeastSquares,
            PreSyncOption::Spline => Self::Spline,
            PreSyncOption::Hull => Self::Hull,
        }
    }
}
