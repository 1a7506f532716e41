//! `downbeat-mpi keep`: clocks that short sessions keep synchronized, and how far they are off meanwhile.

mod errors;
mod kept_clock;
mod questions;
mod report;

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_common::cli::positive;
use downbeat_common::kept::AllanDeviation;
use downbeat_common::records::{CsvFile, Factors, median};
use downbeat_common::{DeclaredRates, Failure};
use downbeat_measure::drift::{DriftRound, DriftWatch};
use downbeat_sync::{
    Algorithm, Comm, CommError, OffsetAlgorithm, block_on_ready, collective, payload_of_fields,
};

use crate::Job;
use crate::clock::{JobClockName, RankClocks};
use crate::comparison::ComparisonOptions;
use crate::factors;
use crate::ranks::JobRanks;
use crate::truth::true_offsets;
use crate::watch;
use errors::ErrorsOverTime;
use kept_clock::KeptClock;
use questions::ask;
use report::{KeepReport, SessionFigures};

/// Options of `keep`.
#[derive(Args, Debug)]
#[command(
    after_help = "The clocks are synchronized once. From then on a session of at most a millisecond corrects them each period, by which they slew: \
                  they neither jump nor run backward. Meanwhile the offsets of all ranks are measured with messages. With --truth the \
                  true errors are shown as well: the ranks of one machine share a counter.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi keep --period 10s --during 10min -o keep.html\n  \
                  mpirun -np 2 downbeat-mpi keep --skew drift=20ppm,wander=0.01ppm \\\n    \
                  --truth --during 30s"
)]
pub struct KeepOptions {
    /// Time between two sessions, which are closer to each other at first
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive, allow_hyphen_values = true)]
    period: Duration,
    /// Time for which the clocks are kept, at least two periods
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = positive, allow_hyphen_values = true)]
    during: Duration,
    /// Interval between two measurements of the errors, at most a period [default: a tenth of the period]
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    every: Option<Duration>,
    /// Offset algorithm of the measurements and number of its exchanges: ALGORITHM/EXCHANGES
    #[arg(
        long,
        value_name = "LABEL",
        default_value = "skampi/100",
        allow_hyphen_values = true
    )]
    check_by: OffsetAlgorithm,
    /// Synchronization algorithm: a LABEL of the command sync [default: auto/100ms]
    #[arg(long, value_name = "LABEL")]
    sync: Option<Algorithm>,
    #[command(flatten)]
    declared: DeclaredRates,
    /// Clock that every rank reads
    #[arg(long, value_enum, default_value_t = JobClockName::TSC, ignore_case = true)]
    clock: JobClockName,
    /// Show the true errors, too; all ranks must run on one machine
    #[arg(long)]
    truth: bool,
    #[command(flatten)]
    comparison: ComparisonOptions,
}

impl KeepOptions {
    /// Returns the measurements.
    fn watch(&self) -> Result<DriftWatch, Failure> {
        let Self { period, during, .. } = *self;
        if during.as_nanos() / 2 < period.as_nanos() {
            let why = format!("{during} is shorter than two periods of {period}");
            return Err(Failure::option("--during", why));
        }
        let tenth = Duration::from_nanos((period.as_nanos() / 10).max(1));
        let watch = DriftWatch {
            every: self.every.unwrap_or(tenth),
            during,
            offset: self.check_by,
        };
        if watch.every > period {
            // Sessions are made between two measurements.
            let why = format!("{} is longer than the period of {period}", watch.every);
            return Err(Failure::option("--every", why));
        }
        watch::check(&watch)?;
        Ok(watch)
    }
}

/// Keeps the clocks of all ranks, which all call this, and shows their errors on rank 0.
///
/// # Errors
/// If a clock or a file cannot be used, or a rank is gone.
pub fn run<J: Job>(options: &KeepOptions, job: &J) -> Result<(), Failure> {
    if job.comm().size() < 2 {
        return Err(Failure::Input(
            "clocks are kept between ranks, and there is only one".to_owned(),
        ));
    }
    let watch = options.watch()?;
    let ranks = JobRanks::find(job, &options.comparison.place)?;
    let algorithm = options.sync.unwrap_or_default();
    ranks.have_levels_of("--sync", &algorithm)?;
    let comparison = &options.comparison;
    let clocks = comparison.find_clocks(&ranks, options.clock, options.truth)?;
    let session = KeepSession {
        options,
        ranks: &ranks,
        watch,
        algorithm,
        clocks,
    };
    session.keep()
}

struct KeepSession<'a, J: Job> {
    options: &'a KeepOptions,
    ranks: &'a JobRanks<'a, J>,
    watch: DriftWatch,
    algorithm: Algorithm,
    clocks: RankClocks<J>,
}

/// Errors that rank 0 has measured.
#[derive(Default)]
struct Observed {
    rounds: u64,
    contradictory: u64,
    by_messages: ErrorsOverTime,
    by_counter: ErrorsOverTime,
}

/// Figures of a rank about its sessions.
#[derive(Clone, Copy)]
struct RankFigures {
    /// True if sessions measure something: the rank does not read the counter of rank 0.
    is_learner: bool,
    /// Number of times with an Allan deviation.
    deviations: u64,
    longest_session: Duration,
    noise: f64,
    wander: f64,
}

payload_of_fields!([] RankFigures { is_learner, deviations, longest_session, noise, wander });

/// Name of the counter that all ranks share, as a way to measure errors.
const COUNTER: &str = "counter";

impl<J: Job> KeepSession<'_, J> {
    fn keep(&self) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let factors = self.factors();
        let create = |path: &_| {
            let columns = "after_s,rank,by,kept_ns,once_ns,half_width_ns,certain_ns";
            CsvFile::with_columns(path, &factors, columns)
        };
        let mut csv = options.comparison.begin_outputs(ranks, create)?;
        let me = options.declared.of(ranks.local_clock(&self.clocks.local));
        let synchronized = ranks.synchronize(&me, &self.algorithm)?;
        let kept = KeptClock::new(me, ranks.all, &synchronized, options.period);
        let mut kept = block_on_ready(kept).map_err(Failure::run)?;
        let mut observed = Observed::default();
        self.observe(&mut kept, &mut observed, csv.as_mut())?;
        let sessions = self.finish(&kept, &mut observed);
        let sessions = block_on_ready(sessions).map_err(Failure::run)?;
        ranks.on_first(|| self.show(&factors, observed, sessions))
    }

    /// Measures the errors of all clocks, and keeps them between the measurements. All ranks call this.
    fn observe(
        &self,
        kept: &mut KeptClock<'_, J>,
        observed: &mut Observed,
        mut csv: Option<&mut CsvFile>,
    ) -> Result<(), Failure> {
        let comm = self.ranks.all;
        let RankClocks { local, counter, .. } = &self.clocks;
        let once = kept.once.renamed();
        let take = async |round: DriftRound<'_>| {
            let mut measured = vec![(
                &mut observed.by_messages,
                self.options.check_by.to_string(),
                round.offsets.to_vec(),
            )];
            if let Some(counter) = counter.as_ref().filter(|_| self.options.truth) {
                let offsets = true_offsets(
                    self.ranks,
                    counter,
                    &local.clock,
                    &kept.once,
                    Duration::ZERO,
                )
                .await?;
                measured.push((&mut observed.by_counter, COUNTER.to_owned(), offsets));
            }
            let after = round.after.as_secs_f64();
            let mut lines = String::new();
            for (errors, by, offsets) in measured {
                let answers = ask(comm, &offsets, |at| kept.at(at)).await?;
                lines += &errors.add(after, &by, &answers, offsets);
            }
            observed.rounds += 1;
            let unknown = round
                .offsets
                .iter()
                .filter(|offset| offset.sample.is_none());
            observed.contradictory += unknown.count() as u64;
            // After the measurement, so that the longest time since a session is measured as well.
            kept.keep().await?;
            Ok(csv.as_mut().map_or(Ok(()), |csv| csv.write(&lines)))
        };
        watch::run(&self.watch, self.ranks, (&local.clock, &once), take)
    }

    /// Asks all ranks for the past by all sessions, and for figures about these. All ranks call this; rank 0 gets the figures.
    async fn finish(
        &self,
        kept: &KeptClock<'_, J>,
        observed: &mut Observed,
    ) -> Result<SessionFigures, CommError> {
        let comm = self.ranks.all;
        let knots = kept.knots();
        let past = kept.past(&knots);
        for errors in [&mut observed.by_messages, &mut observed.by_counter] {
            let rounds = collective::broadcast(comm, errors.offsets().len() as u64).await?;
            for round in 0..rounds as usize {
                let offsets = errors.offsets().get(round).map_or(&[][..], |round| round);
                let answers = ask(comm, offsets, |at| past.at(at)).await?;
                errors.add_past(&answers);
            }
        }
        let deviations = kept.allan_deviation();
        let last = kept.last;
        let mine = RankFigures {
            is_learner: !knots.is_empty(),
            deviations: deviations.len() as u64,
            longest_session: kept.longest_session,
            noise: last.map_or(0.0, |session| session.noise),
            wander: last.map_or(0.0, |session| session.wander),
        };
        let all = collective::gather(comm, mine).await?;
        let learners: Vec<usize> = (0..all.len())
            .filter(|rank| all[*rank].is_learner)
            .collect();
        let times = learners.iter().map(|rank| all[*rank].deviations).min();
        let times = collective::broadcast(comm, times.unwrap_or(0)).await?;
        let mut of_ranks = vec![Vec::new(); learners.len()];
        for index in 0..times as usize {
            let mine = deviations.get(index).copied().unwrap_or_default();
            let all = collective::gather(comm, mine).await?;
            for (rank, found) in learners.iter().zip(&mut of_ranks) {
                found.push(all[*rank]);
            }
        }
        let of_learners = |figure: fn(&RankFigures) -> f64| {
            let values = learners.iter().map(|rank| figure(&all[*rank]));
            median(values.collect()).unwrap_or_default()
        };
        let longest = all.iter().map(|rank| rank.longest_session).max();
        Ok(SessionFigures {
            sessions: kept.sessions,
            longest_s: longest.unwrap_or_default().as_secs_f64(),
            kept_ranks: learners.len(),
            noise_ns: of_learners(|rank| rank.noise),
            wander_ppb: 1e9 * of_learners(|rank| rank.wander),
            allan_deviations: AllanDeviation::of_ranks(&of_ranks),
        })
    }

    /// Returns the factors on which the results depend, as rank 0 knows them.
    fn factors(&self) -> Factors {
        let Self {
            options,
            ranks,
            clocks,
            ..
        } = self;
        let factors = factors::for_experiment(ranks, clocks.name)
            .with("started", &downbeat_common::now())
            .with("sync", &self.algorithm)
            .with("period", &options.period)
            .with("during", &options.during)
            .with("every", &self.watch.every)
            .with("check", &options.check_by);
        let factors = options.declared.add_to(factors);
        options
            .comparison
            .add_to(ranks, clocks.counter.as_ref(), factors)
    }

    fn show(
        &self,
        factors: &Factors,
        observed: Observed,
        sessions: SessionFigures,
    ) -> Result<(), Failure> {
        let Self {
            options,
            ranks,
            watch,
            ..
        } = self;
        let by_messages = observed.by_messages.summary(
            &options.check_by.to_string(),
            ["kept, by messages", "once, by messages"],
        );
        let by_counter = observed
            .by_counter
            .summary(COUNTER, ["kept, by the counter", "once, by the counter"]);
        let report = KeepReport {
            schema: "downbeat.keep",
            version: 1,
            factors,
            rounds: observed.rounds,
            missed: watch.rounds() - observed.rounds,
            contradictory: observed.contradictory,
            sessions,
            errors: by_messages.into_iter().chain(by_counter).collect(),
            counters: self.clocks.counter.and_then(|counter| counter.agreement),
        };
        let clock = self.clocks.name;
        let KeepOptions { period, during, .. } = options;
        let headline = format!(
            "{}, clock {clock}, synchronized by {}, kept by a session every {period} for {during}",
            ranks.description(),
            self.algorithm
        );
        let ComparisonOptions { page, print, .. } = &options.comparison;
        page.write_or(
            &headline,
            || report.page(watch.every),
            || print.print(|| &report, || report.text(&headline, watch.every)),
        )
    }
}
