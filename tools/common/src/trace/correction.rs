//! Options of the commands that correct traces.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat_clock_core::{Duration, parse_share};
use downbeat_sync::Comm;
use downbeat_trace::formats::Sessions;
use downbeat_trace::logical::ControlVariable;
use downbeat_trace::presync::{Interpolation, PreSynchronization};
use downbeat_trace::ranks::{TracePart, common_span};
use downbeat_trace::{
    Array, ArrayStore, ClockOwner, ControlledLogicalClock, CorrectionError, CorrectionSettings,
    Gradient, Latencies, LocationId, MeasuredTrace,
};

use super::document::{ARCHIVE, Document, HULL, NONE, PreSyncReport, Printed};
use super::recording::{Destination, Reading, Recording};
use super::settings::{LatencyOption, MatchingOptions};
use super::{PageContents, PageOptions, Unfinished, files};
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
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
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
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
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
        let mut outputs = Outputs::new(inputs.flat_map(files::all_of));
        files::add_corrected(&mut outputs, "-o", output, input)?;
        self.page.add_to(&mut outputs)?;
        Ok(unfinished)
    }

    /// Prints the report and writes the page. `names` are those of the locations;
    /// `in_file` is true if the events were in a temporary file instead of in memory.
    ///
    /// # Errors
    /// If the page or the standard output cannot be written.
    pub fn show(
        &self,
        document: &Document,
        names: &[String],
        in_file: bool,
    ) -> Result<(), Failure> {
        let title = format!("Correction of {}", self.input.display());
        self.page
            .write(&title, &PageContents::correction(document, names))?;
        self.print.print(
            || Printed { document, in_file },
            || {
                let mut text = document.text(&self.input, &self.output);
                if in_file {
                    text += "The events were in a temporary file instead of in memory\n";
                }
                text
            },
        )
    }

    /// Corrects the trace, whose events are in `store`, on this number of threads per
    /// rank; collective. Returns the report, complete on rank 0 only, and the names of
    /// the locations.
    ///
    /// # Errors
    /// If the trace cannot be read, corrected or written; on all ranks.
    pub async fn correct<C: Comm>(
        &self,
        workers: usize,
        store: &ArrayStore,
        comm: &C,
    ) -> Result<(Document, Vec<String>), Failure> {
        let progress = ProgressBar::new(0);
        let stage = |number, what: &str| {
            if comm.rank() == 0 {
                progress.stage(number, 3, what);
            }
        };
        stage(1, "reading and matching");
        let mut reading = self.reading(workers, store);
        let recording = Recording::read_on_ranks(&self.input, &reading, comm).await?;
        reading.apply_offsets = true;
        let truth = match &self.truth {
            Some(path) => Some(Recording::read_on_ranks(path, &reading, comm).await?.trace),
            None => None,
        };
        let Recording {
            trace,
            sessions,
            source,
        } = recording;
        let master = trace.ids().nth(source.master as usize);
        let span = common_span(trace.span(), comm).await;
        let span = span.map_err(|why| self.failure(CorrectionError::from(why)))?;
        let span = span.map_or(Duration::ZERO, |[first, last]| last - first);
        let applied = (source.applied, [source.applied_for, span]);
        let (method, mut report) = self.pre_synchronization(&sessions, applied, master);
        let mut clock = self.clock();
        clock.workers = workers;
        let settings = CorrectionSettings {
            pre_synchronization: method,
            latencies: self.latencies.given(),
            clock,
            control: self.control,
            backward: !self.no_backward,
            only_pre_synchronized: self.only_pre_synchronize,
            resolution: source.resolution(),
        };
        let place = Destination {
            path: &self.output,
            rewrite: self.rewrite,
            workers,
        };
        let sink = async |part: &TracePart, times: &[Array<_>], sessions: &Sessions| {
            stage(3, "writing");
            source
                .write_corrected(&place, part, times, sessions, comm)
                .await
        };
        let measured = MeasuredTrace {
            trace,
            sessions,
            truth,
        };
        stage(2, "correcting");
        let corrected = downbeat_trace::correct(comm, measured, &settings, sink).await;
        progress.clear();
        let (correction, archive) = corrected.map_err(|why| self.failure(why))?;
        report.complete(&correction);
        let latencies = self.latencies.setting(correction.latencies);
        let read = source.read_on_ranks(comm).await?;
        let reports = (report, latencies, archive?);
        let document = Document::new(&correction, reports, (&source.names, &read));
        Ok((document, source.names))
    }

    /// Returns the options for reading the trace.
    fn reading(&self, workers: usize, store: &ArrayStore) -> Reading {
        Reading {
            matching: self.matching.matching(),
            apply_offsets: self.pre_synchronization.is_none(),
            checksums: self.verify.checksums(),
            workers,
            store: store.clone(),
        }
    }

    /// Returns the controlled logical clock for these options, on one thread and without latencies.
    fn clock(&self) -> ControlledLogicalClock {
        let mut clock = ControlledLogicalClock::new(Latencies::ZERO);
        clock.threshold = self.threshold;
        clock.most_passes = self.max_passes;
        clock.gradient = self.gradient;
        clock
    }

    /// Returns the pre-synchronization, if any is needed, and its report, which lacks the numbers of
    /// what was left out. `applied` is the number of sessions that the timestamps already include,
    /// the time that they cover, and that of the trace; `master` is the location whose clock is the
    /// reference.
    fn pre_synchronization(
        &self,
        sessions: &Sessions,
        (applied, [covered, whole]): (usize, [Duration; 2]),
        master: Option<LocationId>,
    ) -> (Option<PreSynchronization>, PreSyncReport) {
        let most = sessions.iter().map(Vec::len).max().unwrap_or(0);
        let otherwise = match most {
            0 => PreSyncOption::Hull,
            _ => PreSyncOption::Spline,
        };
        let method = self.pre_synchronization.unwrap_or(otherwise);
        let mut report = PreSyncReport {
            method: method.name(),
            sessions: most,
            unknown: 0,
            sessions_left_out: 0,
            clock_error_nanos: None,
            extrapolated: None,
            is_default: self.pre_synchronization.is_none(),
        };
        if applied > 0 {
            (report.method, report.sessions) = (ARCHIVE, applied);
            if covered.as_nanos() >= whole.as_nanos() / MOST_EXTRAPOLATED {
                return (None, report);
            }
            report.extrapolated = Some([covered, whole]);
        }
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
        let text = format!("{}: {why}", self.input.display());
        match why {
            // Events that were recorded in an impossible order by what counts as one clock.
            CorrectionError::Cycle(_)
                if self.matching.matching().clock_of != ClockOwner::Location =>
            {
                Failure::Input(format!(
                    "{text}; if locations do not share a clock, use --clock-of location"
                ))
            }
            CorrectionError::Trace(_) | CorrectionError::Cycle(_) | CorrectionError::Clocks(_) => {
                Failure::Input(text)
            }
            CorrectionError::OtherTruth => {
                let truth = self.truth.as_deref().unwrap_or(Path::new(""));
                let (truth, input) = (truth.display(), self.input.display());
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
