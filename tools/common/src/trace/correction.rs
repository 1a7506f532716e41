//! How a trace is to be corrected: the options of all commands that do it.

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use downbeat_clock_core::{Duration, Timestamp};
use downbeat_trace::ControlVariable;
use downbeat_trace::formats::Sessions;
use downbeat_trace::{
    ClockMaps, ClockOwner, ControlledLogicalClock, Gradient, Interpolation, Latencies, Location,
    LocationId, Place, PreSynchronization,
};

use super::document::{Document, PreSyncReport, Printed};
use super::settings::{LatencyOption, MatchingOptions};
use super::{PageContents, PageOptions, Recording, Unfinished, files};
use crate::output::{print, print_json};
use crate::{Failure, cli};

/// Which trace is to be corrected, and how.
#[derive(Args, Debug)]
pub struct CorrectionOptions {
    /// The trace, which stays as it is
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Where to write the corrected trace: a file, which is replaced when all is done; for an OTF2 archive a new folder
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// What is drawn through the sessions of a clock [default: spline; none, where there are no sessions; what is between
    /// the clock offsets of an OTF2 archive, which are its sessions, as all who read it]
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
    /// How long messages take at least.
    #[arg(long, value_name = "LATENCIES", help = LatencyOption::HELP, default_value = "measured", allow_hyphen_values = true)]
    pub latencies: LatencyOption,
    /// How fast clocks run after they were moved forward, as a share of their speed
    #[arg(long, value_name = "SHARE", value_parser = control, default_value = "0.999", allow_hyphen_values = true)]
    control: ControlVariable,
    /// By how much intervals before a jump are stretched at most, where nothing stands in the way
    #[arg(long, value_name = "SHARE", value_parser = gradient, default_value = "1%", allow_hyphen_values = true)]
    pub gradient: Gradient,
    /// Do it again with slower clocks as long as an event is moved farther than this [default: once is enough]
    #[arg(long, value_name = "DURATION", value_parser = cli::not_negative, allow_hyphen_values = true)]
    threshold: Option<Duration>,
    /// So often at most
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    max_passes: u32,
    /// Leave what is before a jump where it is
    #[arg(long)]
    pub no_backward: bool,
    /// How events are matched.
    #[command(flatten)]
    pub matching: MatchingOptions,
    /// Rewrite all events of an OTF2 archive, rather than only those that clock offsets cannot move apart
    #[arg(long)]
    pub rewrite: bool,
    /// The same trace with its true times, to say how far they are missed
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Print histograms, too, of how far events are moved and intervals changed
    #[arg(long, conflicts_with = "json")]
    histograms: bool,
    /// A page with pictures.
    #[command(flatten)]
    page: PageOptions,
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

impl CorrectionOptions {
    /// Says no, before hours of work, where what is made cannot be written. As long as what is returned is there, a
    /// signal that ends the program removes what it has written so far.
    ///
    /// # Errors
    /// Names the option, and why.
    pub fn begin(&self) -> Result<Unfinished, Failure> {
        let unfinished = Unfinished::of(&self.output)?;
        let (input, output, truth) = (&*self.input, &*self.output, self.truth.as_deref());
        files::check_corrected("-o", output, input, truth.as_slice())?;
        self.page.check(truth.into_iter().chain([input, output]))?;
        Ok(unfinished)
    }

    /// Says what was found and done with locations of such names; whether all events were read again and again.
    ///
    /// # Errors
    /// When the page cannot be written, or nobody listens.
    pub fn show(
        &self,
        document: &Document,
        names: &[String],
        streamed: bool,
    ) -> Result<(), Failure> {
        let title = format!("Correction of {}", self.input.display());
        self.page
            .write(&title, &PageContents::correction(document, names))?;
        if self.json {
            return print_json(&Printed { document, streamed });
        }
        let mut text = document.text(&self.input, &self.output);
        if streamed {
            text += "Never were all events in memory: the trace was read again and again\n";
        }
        if self.histograms {
            text += &format!("\n{}", document.deviation.histograms());
        }
        print(&text)
    }

    /// The logical clock that is asked for, on one thread.
    pub fn clock(&self, latencies: Latencies) -> ControlledLogicalClock {
        let mut clock = ControlledLogicalClock::new(latencies);
        clock.rule.control = self.control;
        clock.threshold = self.threshold;
        clock.most_passes = self.max_passes;
        clock.gradient = self.gradient;
        clock
    }

    /// Reads the trace that is to be corrected. So many threads share the work.
    ///
    /// # Errors
    /// When it cannot be read, is none, or its events do not go together.
    pub fn read(&self, workers: usize) -> Result<Recording, Failure> {
        Recording::read(
            &self.input,
            self.matching.matching(),
            self.applies_offsets(),
            workers,
        )
    }

    /// Whether clock offsets of an archive are added to its times, rather than being its sessions.
    pub fn applies_offsets(&self) -> bool {
        self.pre_synchronization.is_none()
    }

    fn method(&self, sessions: &Sessions) -> (PreSyncOption, usize) {
        let sessions = sessions.iter().map(Vec::len).max().unwrap_or(0);
        let otherwise = if sessions > 0 {
            PreSyncOption::Spline
        } else {
            PreSyncOption::None
        };
        (self.pre_synchronization.unwrap_or(otherwise), sessions)
    }

    /// Whether times of events are others when clocks were made one.
    pub fn moves_clocks(&self, file: &Recording) -> bool {
        self.method(&file.sessions).0 != PreSyncOption::None
    }

    /// Makes one clock of all. What the clocks showed in their sessions is corrected, too: a corrected trace is not to
    /// be corrected for the same again.
    ///
    /// # Errors
    /// When what the clocks showed makes no sense.
    pub fn pre_synchronize(
        &self,
        file: &mut Recording,
    ) -> Result<(Sessions, PreSyncReport), Failure> {
        let places: Vec<_> = file.trace.locations().iter().map(Location::place).collect();
        let ids: Vec<_> = file.trace.ids().collect();
        let (maps, sessions, report) =
            self.clock_maps((&ids, &places), (&file.sessions, file.applied), file.master)?;
        if let Some(maps) = maps {
            maps.correct(&mut file.trace)
                .map_err(|why| self.at_fault(&why))?;
        }
        Ok((sessions, report))
    }

    /// What makes one clock of all, if anything does: of locations, what their clocks showed in their sessions, how many
    /// sessions are in the times already, and the number of whose is right. And what they showed on one clock.
    ///
    /// # Errors
    /// When what the clocks showed makes no sense.
    pub fn clock_maps(
        &self,
        (ids, places): (&[LocationId], &[Place]),
        (sessions, applied): (&Sessions, usize),
        master: u32,
    ) -> Result<(Option<ClockMaps>, Sessions, PreSyncReport), Failure> {
        if applied > 0 {
            let report = PreSyncReport {
                method: "archive",
                sessions: applied,
                unknown: 0,
                sessions_left_out: 0,
            };
            return Ok((None, sessions.clone(), report));
        }
        let (method, most) = self.method(sessions);
        let mut report = PreSyncReport {
            method: method.name(),
            sessions: most,
            unknown: 0,
            sessions_left_out: 0,
        };
        let Some(master) = ids
            .get(master as usize)
            .filter(|_| method != PreSyncOption::None)
        else {
            return Ok((None, sessions.clone(), report));
        };
        let mut settings = PreSynchronization::new(*master);
        settings.interpolation = method.into();
        settings.owner = self.clock_of.into();
        settings.most_samples = self.samples.map_or(usize::MAX, |samples| samples as usize);
        settings.longest_session = self.session_length.unwrap_or(Duration::MAX);
        settings.lenient = self.matching.matching().lenient;
        let maps = settings
            .maps(places, sessions)
            .map_err(|why| self.at_fault(&why))?;
        (report.unknown, report.sessions_left_out) = (maps.unknown, maps.left_out);
        let mut corrected = sessions.clone();
        for (location, sessions) in ids.iter().zip(&mut corrected) {
            let map = maps.for_location(*location);
            for sample in sessions.iter_mut().flatten() {
                sample.at = Timestamp::from_nanos(map.apply(sample.at).as_nanos());
            }
        }
        Ok((Some(maps), corrected, report))
    }

    /// That the trace cannot be corrected.
    pub fn at_fault(&self, why: &dyn Display) -> Failure {
        Failure::Input(format!("{}: {why}", self.input.display()))
    }
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
