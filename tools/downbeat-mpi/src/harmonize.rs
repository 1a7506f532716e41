//! `downbeat-mpi harmonize`: how far apart ranks return from a meeting at one instant of their global clock, beside MPI_Barrier.

use clap::Args;
use downbeat::LocalTime;
use downbeat_clock_core::{Clock, Duration};
use downbeat_common::cli::positive;
use downbeat_common::output::count;
use downbeat_common::records::{Factors, serialize_factors};
use downbeat_common::{CalibrationOptions, Failure, PrintOptions, Table, Text};
use downbeat_jobs::{JobClockName, PlaceOptions, factors};
use downbeat_records::stats::Sample;
use downbeat_sync::harmonize::{Harmonizer, Meeting};
use downbeat_sync::{Algorithm, Comm, Synchronized, block_on_ready, collective};
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;
use serde::Serialize;

use crate::job::{JobClock, JobRanks, MpiJob, RankClocks};

#[derive(Args, Debug)]
#[command(
    after_help = "In each round the ranks call MPI_Barrier, and then meet: they agree on the latest arrival, and all return some slack later, \
                  by their global clock. The slack adapts to what the slowest rank needs. A rank that learns of the instant too late \
                  returns at once, and counts as a miss.\n\n\
                  Skew: time from the first rank that returns to the last. Ranks of one node that read one counter are compared \
                  by that, others by their global clock, whose error is then part of the skew.\n\n\
                  Example:\n  mpirun -np 4 downbeat-mpi harmonize --rounds 100000"
)]
pub(crate) struct HarmonizeOptions {
    /// Number of rounds
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000), allow_hyphen_values = true)]
    rounds: u32,
    /// Synchronize again when the certain error of a clock exceeds this
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = positive, allow_hyphen_values = true)]
    max_error: Duration,
    /// Synchronization algorithm: a LABEL of the command sync [default: auto/100ms]
    #[arg(long, value_name = "LABEL")]
    sync: Option<Algorithm>,
    /// Clock that every rank reads
    #[arg(long, value_enum, default_value_t = JobClockName::TSC, ignore_case = true)]
    clock: JobClockName,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    calibration: CalibrationOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &HarmonizeOptions, job: &MpiJob<'_>) -> Result<(), Failure> {
    let ranks = JobRanks::find(job, &options.place)?;
    let algorithm = options.sync.unwrap_or_default();
    ranks.have_levels_of("--sync", &algorithm)?;
    let clocks = RankClocks::find(&ranks, options.clock, false, &options.calibration, None)?;
    let factors = factors::for_job(&ranks, clocks.name);
    let session = HarmonizeSession {
        options,
        ranks: &ranks,
        algorithm,
        clock: clocks.name,
        factors: factors::add_counter(clocks.counter.as_ref(), factors),
    };
    session.measure(&clocks.local)
}

struct HarmonizeSession<'a> {
    options: &'a HarmonizeOptions,
    ranks: &'a JobRanks<'a>,
    algorithm: Algorithm,
    clock: JobClockName,
    factors: Factors,
}

/// Rounds of this rank, in the order of time.
#[derive(Default)]
struct Rounds {
    /// Times before MPI_Barrier, after it and after the meeting, in nanoseconds: by what judges the round on all ranks.
    times: Vec<[i64; 3]>,
    /// Time by which the rank missed each meeting, in nanoseconds.
    missed: Vec<i64>,
    synchronizations: u32,
    slack: Duration,
}

impl HarmonizeSession<'_> {
    fn measure(&self, local: &LocalTime<JobClock<'_>>) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let me = ranks.local_clock(local);
        let mut synchronized = ranks.synchronize(&me, &self.algorithm)?;
        let shares_counter = self.shares_counter(local)?;
        let world = SimpleCommunicator::world();
        let mut harmonizer = Harmonizer::new(options.max_error);
        let mut rounds = Rounds {
            synchronizations: 1,
            ..Rounds::default()
        };
        let clock = &local.clock;
        for _ in 0..options.rounds {
            let entered = clock.ticks();
            world.barrier();
            let left = clock.ticks();
            let mut meeting = self.meet(clock, &synchronized, &mut harmonizer)?;
            if meeting.is_none() {
                synchronized = ranks.synchronize(&me, &self.algorithm)?;
                rounds.synchronizations += 1;
                meeting = self.meet(clock, &synchronized, &mut harmonizer)?;
            }
            let meeting = meeting.ok_or_else(|| {
                let why = "the error of a clock can be larger, even right after a synchronization";
                Failure::option("--max-error", why)
            })?;
            let ticks = [entered, left, clock.ticks()];
            // One model for all times of a round: a step of the global clock between them would be no skew.
            let judge = if shares_counter {
                local.model.renamed()
            } else {
                synchronized.model
            };
            rounds
                .times
                .push(ticks.map(|ticks| judge.apply(ticks).as_nanos()));
            rounds.missed.push(match meeting {
                Meeting::Met => 0,
                Meeting::Missed { by } => by.as_nanos(),
            });
        }
        rounds.slack = harmonizer.slack();
        let report = self.report(&rounds, shares_counter)?;
        ranks.on_first(|| options.print.print(|| &report, || report.text()))
    }

    fn meet(
        &self,
        clock: &impl Clock,
        synchronized: &Synchronized,
        harmonizer: &mut Harmonizer,
    ) -> Result<Option<Meeting>, Failure> {
        let Synchronized { model, bound, .. } = synchronized;
        let error = bound.at_time(model.apply(clock.ticks()));
        let met = harmonizer.meet(clock, model, error, self.ranks.all);
        block_on_ready(met).map_err(Failure::run)
    }

    /// Returns true if all ranks are on one node and read one counter, whose local time is then the same for all.
    fn shares_counter(&self, local: &LocalTime<JobClock<'_>>) -> Result<bool, Failure> {
        let ranks = self.ranks;
        let one_node = ranks.node_comm().size() == ranks.all.size();
        let one_source = collective::all_equal(ranks.all, local.source);
        let one_source = block_on_ready(one_source).map_err(Failure::run)?;
        Ok(one_source && one_node && ranks.one_machine)
    }

    /// Returns the report about the rounds of all ranks, on rank 0.
    fn report(&self, rounds: &Rounds, by_counter: bool) -> Result<HarmonizeReport<'_>, Failure> {
        let (all, repeat) = (self.ranks.all, rounds.times.len());
        let greatest = |mut values: Vec<i64>| {
            let done = block_on_ready(collective::greatest_to_first(all, &mut values));
            done.map(|()| values).map_err(Failure::run)
        };
        // From the first rank to the last: the greatest time plus the greatest negated one.
        let skew = |place: usize| {
            let times = || rounds.times.iter().map(|times| times[place]);
            let first = greatest(times().map(|nanos| -nanos).collect())?;
            let last = greatest(times().collect())?;
            let spans = first
                .iter()
                .zip(&last)
                .map(|(first, last)| (first + last) as f64);
            Ok::<Vec<f64>, Failure>(spans.collect())
        };
        let (barrier, harmonize) = (skew(1)?, skew(2)?);
        // Of the slowest rank in each round.
        let of_rank = |from: usize, to: usize| {
            let calls = rounds.times.iter().map(|times| times[to] - times[from]);
            let greatest = greatest(calls.collect())?;
            Ok::<Vec<f64>, Failure>(greatest.into_iter().map(|nanos| nanos as f64).collect())
        };
        let (barrier_took, harmonize_took) = (of_rank(0, 1)?, of_rank(1, 2)?);
        let missed = greatest(rounds.missed.clone())?;
        let met = harmonize
            .iter()
            .zip(&missed)
            .filter(|(_, missed)| **missed == 0);
        let met: Vec<f64> = met.map(|(skew, _)| *skew).collect();
        Ok(HarmonizeReport {
            schema: "downbeat.harmonize",
            version: 1,
            factors: &self.factors,
            algorithm: self.algorithm.to_string(),
            job: self.ranks.description(),
            clock: self.clock.to_string(),
            rounds: repeat,
            by_shared_counter: by_counter,
            missed_rounds: repeat - met.len(),
            slack_ns: rounds.slack.as_nanos(),
            synchronizations: rounds.synchronizations,
            barrier: Skews::new(barrier, barrier_took),
            harmonize: Skews::new(harmonize, harmonize_took.clone()),
            harmonize_met: Skews::new(met, harmonize_took),
        })
    }
}

/// Result of all rounds.
#[derive(Debug, Serialize)]
struct HarmonizeReport<'a> {
    schema: &'static str,
    version: u32,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    algorithm: String,
    job: String,
    clock: String,
    rounds: usize,
    /// True if ranks were compared by the counter that they share, and false if by the global clock.
    by_shared_counter: bool,
    /// Number of rounds that at least one rank missed.
    missed_rounds: usize,
    /// Slack of the last meeting.
    slack_ns: i64,
    /// Number of synchronizations, with the first.
    synchronizations: u32,
    barrier: Option<Skews>,
    harmonize: Option<Skews>,
    /// Of the rounds that no rank missed.
    harmonize_met: Option<Skews>,
}

/// Times from the first rank that returns to the last, in nanoseconds.
#[derive(Debug, Serialize)]
struct Skews {
    median_ns: f64,
    p90_ns: f64,
    p99_ns: f64,
    p999_ns: f64,
    max_ns: f64,
    /// Median duration of a call, of the slowest rank.
    took_ns: f64,
}

impl Skews {
    /// Returns nothing if there are no skews.
    fn new(mut skews: Vec<f64>, mut took: Vec<f64>) -> Option<Self> {
        let (skews, took) = (Sample::new(&mut skews).ok()?, Sample::new(&mut took).ok()?);
        Some(Self {
            median_ns: skews.median(),
            p90_ns: skews.quantile(0.9),
            p99_ns: skews.quantile(0.99),
            p999_ns: skews.quantile(0.999),
            max_ns: skews.quantile(1.0),
            took_ns: took.median(),
        })
    }

    fn row(&self, name: &str) -> Vec<String> {
        let Self {
            median_ns,
            p90_ns,
            p99_ns,
            p999_ns,
            max_ns,
            took_ns,
        } = self;
        let nanos = [median_ns, p90_ns, p99_ns, p999_ns, max_ns, took_ns];
        let time = |nanos: &f64| downbeat_common::units::time(*nanos);
        let times = nanos.map(time);
        [name.to_owned()].into_iter().chain(times).collect()
    }
}

impl HarmonizeReport<'_> {
    fn text(&self) -> Text {
        let mut text = Text::from(format!(
            "{}, clock {}, {}, synchronized by {}\n\n",
            self.job,
            self.clock,
            count(self.rounds, "round"),
            self.algorithm
        ));
        let headings = [
            "skew",
            "median",
            "90 %",
            "99 %",
            "99.9 %",
            "largest",
            "a call takes",
        ];
        let mut table = Table::new(headings);
        let rows = [
            ("MPI_Barrier", &self.barrier),
            ("harmonize", &self.harmonize),
            ("harmonize, all met", &self.harmonize_met),
        ];
        for (name, skews) in rows {
            if let Some(skews) = skews {
                table.row(skews.row(name));
            }
        }
        text += table;
        let by = match self.by_shared_counter {
            true => "the counter that the ranks share",
            false => "the global clock, whose error is part of the skew",
        };
        let missed = 100.0 * self.missed_rounds as f64 / self.rounds as f64;
        text += format!(
            "\nSkew: from the first rank that returns to the last, by {by}.\n\
             Missed by a rank: {missed:.2} % of the meetings. Slack at the end: {}. Synchronizations: {}.\n",
            downbeat_common::units::time(self.slack_ns as f64),
            self.synchronizations
        );
        text
    }
}
