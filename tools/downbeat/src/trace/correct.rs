//! `downbeat trace correct`: times of a trace corrected so that they can be true.

mod report;

use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args, ValueEnum};
use downbeat_clock_core::{ControlVariable, Duration, Timestamp};
use downbeat_common::output::{self, print, print_json};
use downbeat_common::{Failure, cli};
use downbeat_measure::trace::{Sessions, TraceFile};
use downbeat_sync::postmortem::{
    ClockMaps, ClockOwner, ControlledLogicalClock, Corrected, Deviation, Gradient, Interpolation, Latencies, Location,
    PreSynchronization, TruthError, Verdict,
};
use report::{Document, PreSyncReport, TruthStages};

use super::files;
use super::settings::{LatencyOption, MatchingOptions};
use super::tables::{Contents, LatencyReport, TruthReport, Violations};

#[derive(Args, Debug)]
#[command(
    after_help = "First, clocks are made one by the sessions in which they were compared, as far as the trace has any. \
                  Then events are moved forward by a controlled logical clock, so that every message arrives after it \
                  can have arrived, and no collective operation is left before everyone needed is in it.\n\n\
                  A name that ends in .dbt stands for text, in .dbtb for bytes.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && downbeat trace correct wrong.dbt -o right.dbt\n  \
                  downbeat trace generate -o wrong.dbtb --truth truth.dbtb && downbeat trace correct wrong.dbtb -o \
                  right.dbtb --truth truth.dbtb --pre-synchronization linear --latencies 200ns,500ns,2us"
)]
pub(crate) struct Options {
    /// The trace, which stays as it is
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write the corrected trace; what is there is replaced when all is done
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// What is drawn through the sessions of a clock [default: spline; none, where there are no sessions]
    #[arg(long, value_enum, value_name = "METHOD")]
    pre_synchronization: Option<PreSyncOption>,
    /// Who has a clock in common
    #[arg(long, value_enum, default_value_t = OwnerOption::Process, value_name = "OWNER")]
    clock_of: OwnerOption,
    /// Take no more samples of a session than its first so many
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    samples: Option<u32>,
    /// Take no samples that are later than so long after the first of their session
    #[arg(long, value_name = "DURATION", value_parser = cli::not_negative, allow_hyphen_values = true)]
    session_length: Option<Duration>,
    #[arg(long, value_name = "LATENCIES", help = LatencyOption::HELP, default_value = "measured", allow_hyphen_values = true)]
    latencies: LatencyOption,
    /// How fast clocks run after they were moved forward, as a share of their speed
    #[arg(long, value_name = "SHARE", value_parser = control, default_value = "0.999", allow_hyphen_values = true)]
    control: ControlVariable,
    /// By how much intervals before a jump are stretched at most, where nothing stands in the way
    #[arg(long, value_name = "SHARE", value_parser = gradient, default_value = "1%", allow_hyphen_values = true)]
    gradient: Gradient,
    /// Do it again with slower clocks as long as an event is moved farther than this [default: once is enough]
    #[arg(long, value_name = "DURATION", value_parser = cli::not_negative, allow_hyphen_values = true)]
    threshold: Option<Duration>,
    /// So often at most
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    max_passes: u32,
    /// Leave what is before a jump where it is
    #[arg(long)]
    no_backward: bool,
    /// How many threads share the work; the result is the same [default: one for each core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    threads: Option<u32>,
    #[command(flatten)]
    matching: MatchingOptions,
    /// The same trace with its true times, to say how far they are missed
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PreSyncOption {
    /// Nothing: clocks are right as they are
    None,
    /// The line from the first session to the last
    Linear,
    /// The line that is closest to all samples
    LeastSquares,
    /// The constrained spline through all sessions; with two, as least-squares
    Spline,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OwnerOption {
    /// Nobody
    Location,
    /// The threads of a process
    Process,
    /// The processes of a node
    Node,
    /// All
    Cluster,
}

fn control(text: &str) -> Result<ControlVariable, String> {
    let share = text.parse().ok().and_then(ControlVariable::new);
    share.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

fn gradient(text: &str) -> Result<Gradient, String> {
    Gradient::new(cli::share(text)?).ok_or_else(|| "must be more than a billionth".to_owned())
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let inputs = [Some(&options.input), options.truth.as_ref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
    files::check_output("-o", &options.output, &inputs)?;
    let mut file = files::read(&options.input, options.matching.matching())?;
    let truth = options.truth.as_ref().map(|path| files::read(path, options.matching.matching())).transpose()?;
    let document = options.correct(&mut file, truth.as_ref())?;
    if options.json { print_json(&document) } else { print(&document.text(&options.input, &options.output)) }
}

impl Options {
    fn correct(&self, file: &mut TraceFile, truth: Option<&TraceFile>) -> Result<Document, Failure> {
        let measured: Vec<Vec<Timestamp<_>>> = file.trace.times().into_iter().map(<[_]>::to_vec).collect();
        let (sessions, pre_synchronization) = self.pre_synchronize(file)?;
        let latencies = self.latencies.find(&file.trace);
        let judge = |times: &[&[Timestamp<_>]]| {
            let verdict = Verdict::of(&file.trace, times, &latencies.latencies);
            verdict.map(|verdict| Violations::from(&verdict)).map_err(Failure::run)
        };
        let as_measured = judge(&measured.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        drop(measured);
        let pre_synchronized = judge(&file.trace.times())?;

        let corrected = self.clock(latencies.latencies).forward(&file.trace);
        let mut corrected = corrected.map_err(|why| self.at_fault(&why))?;
        let explicitly_corrected = corrected.jumps().count();
        let passes = corrected.passes().iter().map(Into::into).collect();
        if !self.no_backward {
            corrected.amortize(self.gradient);
        }
        let found = judge(&corrected.times().iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        if found.count() > 0 {
            let count = output::count(found.count() as usize, "violation");
            return Err(Failure::Run(format!(
                "{}: {count} are left, which is a mistake of this program",
                self.input.display()
            )));
        }
        let deviation = Deviation::between(&file.trace, corrected.times()).map_err(Failure::run)?;
        let truth = truth.map(|truth| self.compare(file, &corrected, truth)).transpose()?;
        let format = files::format(&self.output, file.format);
        file.write_corrected(&self.output, format, corrected.times(), &sessions).map_err(Failure::run)?;
        Ok(Document {
            schema: "downbeat.trace_correction",
            version: 1,
            contents: Contents::of(&file.trace),
            pre_synchronization,
            latencies: LatencyReport::of(latencies),
            passes,
            explicitly_corrected,
            as_measured,
            pre_synchronized,
            corrected: found,
            deviation: (&deviation).into(),
            truth,
        })
    }

    fn at_fault(&self, why: &dyn std::fmt::Display) -> Failure {
        Failure::Input(format!("{}: {why}", self.input.display()))
    }

    fn clock(&self, latencies: Latencies) -> ControlledLogicalClock {
        let mut clock = ControlledLogicalClock::new(latencies);
        clock.rule.control = self.control;
        clock.threshold = self.threshold;
        clock.most_passes = self.max_passes;
        clock.gradient = self.gradient;
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        clock.workers = self.threads.map_or_else(cores, |threads| threads as usize);
        clock
    }

    /// Makes one clock of all. What the clocks showed in their sessions is corrected, too: a corrected trace is not to
    /// be corrected for the same again.
    fn pre_synchronize(&self, file: &mut TraceFile) -> Result<(Sessions, PreSyncReport), Failure> {
        let sessions = file.sessions.iter().map(Vec::len).max().unwrap_or(0);
        let otherwise = if sessions > 0 { PreSyncOption::Spline } else { PreSyncOption::None };
        let method = self.pre_synchronization.unwrap_or(otherwise);
        let mut report = PreSyncReport { method: method.name(), sessions, unknown: 0, sessions_left_out: 0 };
        let Some(master) = file.trace.ids().nth(file.master as usize).filter(|_| method != PreSyncOption::None) else {
            return Ok((file.sessions.clone(), report));
        };
        let mut settings = PreSynchronization::new(master);
        settings.interpolation = method.into();
        settings.owner = self.clock_of.into();
        settings.most_samples = self.samples.map_or(usize::MAX, |samples| samples as usize);
        settings.longest_session = self.session_length.unwrap_or(Duration::MAX);
        settings.lenient = self.matching.matching().lenient;
        let places: Vec<_> = file.trace.locations().iter().map(Location::place).collect();
        let maps = settings.maps(&places, &file.sessions).map_err(|why| self.at_fault(&why))?;
        (report.unknown, report.sessions_left_out) = (maps.unknown, maps.left_out);
        let sessions = corrected_sessions(file, &maps);
        maps.correct(&mut file.trace).map_err(|why| self.at_fault(&why))?;
        Ok((sessions, report))
    }

    fn compare(&self, file: &TraceFile, corrected: &Corrected<'_>, truth: &TraceFile) -> Result<TruthStages, Failure> {
        let (times, expected) = (file.trace.times(), truth.trace.times());
        if !times.iter().map(|times| times.len()).eq(expected.iter().map(|times| times.len())) {
            let why = format!("{} is another trace than {}", truth.path.display(), file.path.display());
            return Err(Failure::option("--truth", why));
        }
        let mut errors = [TruthError::default(); 2];
        for ((before, after), truth) in times.into_iter().zip(corrected.times()).zip(expected) {
            for ((before, after), truth) in before.iter().zip(after).zip(truth) {
                errors[0].add(*before, *truth);
                errors[1].add(*after, *truth);
            }
        }
        let [pre_synchronized, corrected] = errors.map(TruthReport::from);
        Ok(TruthStages { pre_synchronized, corrected })
    }
}

fn corrected_sessions(file: &TraceFile, maps: &ClockMaps) -> Sessions {
    let mut sessions = file.sessions.clone();
    for (location, sessions) in file.trace.ids().zip(&mut sessions) {
        let map = maps.of(location);
        for sample in sessions.iter_mut().flatten() {
            sample.at = Timestamp::from_nanos(map.apply(sample.at).as_nanos());
        }
    }
    sessions
}

impl PreSyncOption {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Linear => "linear",
            Self::LeastSquares => "least-squares",
            Self::Spline => "spline",
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
        }
    }
}

impl From<OwnerOption> for ClockOwner {
    fn from(option: OwnerOption) -> Self {
        match option {
            OwnerOption::Location => Self::Location,
            OwnerOption::Process => Self::Process,
            OwnerOption::Node => Self::Node,
            OwnerOption::Cluster => Self::Cluster,
        }
    }
}
