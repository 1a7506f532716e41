//! `downbeat simulate --keep`: clocks that short sessions keep synchronized, and their true errors over all the time.

use std::num::NonZero;

use clap::Args;
use downbeat_clock_core::spline::{ConstrainedSpline, Knot};
use downbeat_clock_core::{
    Clock as _, ClockModel, Counter, Duration, ErrorBound, Global, Local, SlewedModel, Ticks,
    Timestamp,
};
use downbeat_common::cli::{positive, share};
use downbeat_common::records::{Factors, all_or_first_failure, serialize_factors};
use downbeat_common::{Failure, PrintOptions, Table, Text, TrialOptions, units};
use downbeat_records::stats::Sample;
use downbeat_sync::keep::{KeptSession, NodeKeeper};
use downbeat_sync::sim::{SimClock, SimCluster, SimComm, TrueClocks, VirtualTime};
use downbeat_sync::{Algorithm, SyncError};
use serde::Serialize;

use super::runs::{each_run, size};
use crate::memory;

#[derive(Args, Debug)]
pub(super) struct KeepOptions {
    /// Keep the clocks synchronized by sessions of a millisecond, this time apart, and print their true errors over all the time
    #[arg(long, value_name = "PERIOD", value_parser = positive, allow_hyphen_values = true,
          conflicts_with_all = ["check", "check_by", "sample", "output", "csv"])]
    keep: Option<Duration>,
    /// Time for which the clocks are kept
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = positive, requires = "keep", allow_hyphen_values = true)]
    lasting: Duration,
    /// Declare the largest drift of clocks from that of rank 0, by which the bounds of their errors grow [default: 0.001]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "keep", allow_hyphen_values = true)]
    max_drift: Option<f64>,
    /// Declare the largest deviation of a clock's rate from its mean over 32 sessions, by which bounds grow between sessions instead
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "keep", allow_hyphen_values = true)]
    max_wander: Option<f64>,
}

impl KeepOptions {
    /// The options, if the clocks are kept.
    pub(super) fn kept(&self) -> Option<Keeping> {
        let keeping = |period| Keeping {
            period,
            lasting: self.lasting,
            max_drift: self.max_drift,
            max_wander: self.max_wander,
        };
        self.keep.map(keeping)
    }
}

/// Sessions that keep the clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping {
    period: Duration,
    lasting: Duration,
    max_drift: Option<f64>,
    max_wander: Option<f64>,
}

/// Sessions that come closer to each other, before the usual ones.
const FIRST_SESSIONS: i64 = 4;
/// Moments between two sessions at which the errors are taken.
const MOMENTS: i64 = 20;

/// Clock that a rank shows from a session on.
struct Change {
    ended: Timestamp<VirtualTime>,
    shown: SlewedModel<Global>,
    /// Bound of what is shown.
    bound: ErrorBound<Global>,
    session: KeptSession,
}

/// A rank after the simulation.
struct KeptRank {
    changes: Vec<Change>,
    past: Vec<Knot<Local, Global>>,
    deviations: Vec<(Duration, f64)>,
}

/// Simulates the cluster with each algorithm, the numbers of runs and seed of `trial`, and prints the results.
pub(super) fn run(
    sim: &mut SimCluster,
    threads: NonZero<usize>,
    algorithms: &[Algorithm],
    keeping: Keeping,
    trial: &TrialOptions,
    print: PrintOptions,
    factors: Factors,
) -> Result<(), Failure> {
    let Keeping {
        period, lasting, ..
    } = keeping;
    let sessions = lasting.as_nanos() / period.as_nanos();
    if sessions < 2 {
        let why = format!("must be at least twice the period of --keep, {period}");
        return Err(Failure::option("--lasting", why));
    }
    let mut rank_bytes = sessions as u64 * size_of::<Change>() as u64;
    if let Some(wander) = &mut sim.clocks.wander {
        // The clocks wander all the time.
        wander.lasting = wander.lasting.max(lasting + Duration::from_secs(60));
        let intervals = wander.lasting.as_nanos() / wander.interval.as_nanos().max(1);
        rank_bytes += 16 * intervals as u64 / u64::from(sim.ranks_per_node);
        sim.validate()
            .map_err(|why| Failure::option("--lasting", why.to_string()))?;
    }
    memory::require("--lasting", u64::from(sim.ranks) * rank_bytes)?;
    let runs = each_run(sim, algorithms, trial, |sim, algorithm, run| {
        simulate_once(sim, threads, algorithm, run, keeping)
    })?;
    let title = format!(
        "{}, kept by a session every {period} for {lasting}, seed {}",
        size(sim),
        trial.seed
    );
    let mut factors = factors.with("keep", &period).with("lasting", &lasting);
    for (name, declared) in [
        ("max_drift", keeping.max_drift),
        ("max_wander", keeping.max_wander),
    ] {
        if let Some(declared) = declared {
            factors = factors.with(name, &declared);
        }
    }
    let document = || KeptClocksReport {
        schema: "downbeat.kept_clocks",
        version: 1,
        factors: &factors,
        runs: &runs,
    };
    print.print(document, || text(&title, &runs))
}

/// Largest error of any rank: at half of all moments, at 95 % of them, and ever; in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct LargestErrors {
    median_ns: f64,
    most_ns: f64,
    ever_ns: f64,
}

impl LargestErrors {
    fn of(mut errors: Vec<f64>) -> Self {
        let sample = Sample::new(&mut errors).ok();
        let at = |share: f64| sample.as_ref().map_or(0.0, |sample| sample.quantile(share));
        let [median_ns, most_ns, ever_ns] = [0.5, 0.95, 1.0].map(at);
        Self {
            median_ns,
            most_ns,
            ever_ns,
        }
    }
}

/// Result of one simulation.
#[derive(Clone, Debug, Serialize)]
struct KeptRun {
    algorithm: String,
    run: u32,
    sessions: usize,
    /// Longest session of any rank.
    longest_session_s: f64,
    /// True errors of what clocks show: at all moments, right after they have slewed to a new line, and before the next session.
    shown: LargestErrors,
    after_session: LargestErrors,
    before_session: LargestErrors,
    /// Errors that clocks of exactly known offset and rate would have before the next session, because the rates wander.
    wander_alone: LargestErrors,
    /// Errors of times in the past, by all sessions.
    past: LargestErrors,
    /// Largest errors that the bounds of clocks allow.
    certain: LargestErrors,
    /// Readings that were earlier than the one before.
    backward: usize,
    /// True errors beyond the bound of the clock.
    beyond_bound: usize,
    /// Median over ranks: standard error of a session, and change of a rate in a second, as they were found.
    noise_ns: f64,
    wander_ppb: f64,
    /// Median and largest Allan deviation of any rank from rank 0, for averaging times.
    allan_deviations: Vec<AllanDeviation>,
    messages: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct AllanDeviation {
    seconds: f64,
    median: f64,
    largest: f64,
}

#[derive(Serialize)]
struct KeptClocksReport<'a> {
    schema: &'static str,
    version: u32,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    runs: &'a [KeptRun],
}

/// Runs on each rank: synchronizes, and keeps the clock.
async fn keep_clock(
    comm: &SimComm,
    algorithm: &Algorithm,
    keeping: Keeping,
) -> Result<KeptRank, SyncError> {
    let Keeping {
        period, lasting, ..
    } = keeping;
    let clock = comm.clock();
    let mut me = comm.local_clock(&clock)?.max_wander(keeping.max_wander);
    if let Some(drift) = keeping.max_drift {
        me = me.max_drift(drift);
    }
    let synchronized = Box::pin(algorithm.synchronize(&me, comm)).await?;
    let mut keeper = NodeKeeper::new(&me, &synchronized, comm, period).await?;
    let mut shown = SlewedModel::from(synchronized.model);
    let mut bound = synchronized.bound;
    let mut changes = Vec::new();
    // All ranks make the same sessions: rank 0 decides by its own clock.
    let sessions = FIRST_SESSIONS + lasting.as_nanos() / period.as_nanos();
    for _ in 0..sessions {
        let now = clock.ticks();
        comm.pause(keeper.due_in(now).max(Duration::ZERO));
        let Some(session) = keeper.keep_now(&me).await? else {
            break;
        };
        // A clock that slews still, because the period is short, goes on to its line.
        if let Some(next) = shown.toward(session.model, clock.ticks(), session.slew)? {
            shown = next;
            bound = shown.bound(session.bound);
        }
        changes.push(Change {
            ended: comm.true_now(),
            shown,
            bound,
            session,
        });
    }
    let past = keeper.past(&me.base());
    Ok(KeptRank {
        deviations: keeper.allan_deviation(),
        changes,
        past,
    })
}

fn simulate_once(
    sim: &SimCluster,
    threads: NonZero<usize>,
    algorithm: &Algorithm,
    run: u32,
    keeping: Keeping,
) -> Result<KeptRun, Failure> {
    // Boxed to keep the slots of ranks that have no result yet small.
    let program = async |comm: &SimComm| keep_clock(comm, algorithm, keeping).await.map(Box::new);
    let simulated = sim.simulate_on(threads, program).map_err(Failure::run)?;
    let ranks = all_or_first_failure(simulated.results)?;
    let changes = ranks
        .iter()
        .map(|rank| rank.changes.len())
        .min()
        .unwrap_or(0);
    let mut truth = Truth::new(sim, &ranks)?;
    for session in 0..changes.saturating_sub(1) {
        truth.judge(session);
    }
    let sessions = || {
        ranks
            .iter()
            .flat_map(|rank| rank.changes.iter().map(|change| &change.session))
    };
    let longest = sessions()
        .map(|session| session.took)
        .max()
        .unwrap_or(Duration::ZERO);
    let last = |value: fn(&KeptSession) -> f64| {
        let learned = learners(&ranks).filter_map(|rank| rank.changes.last());
        median(learned.map(|change| value(&change.session)).collect())
    };
    Ok(KeptRun {
        algorithm: algorithm.to_string(),
        run,
        sessions: changes,
        longest_session_s: longest.as_secs_f64(),
        shown: LargestErrors::of(truth.shown),
        after_session: LargestErrors::of(truth.after),
        before_session: LargestErrors::of(truth.before),
        wander_alone: LargestErrors::of(truth.alone),
        past: LargestErrors::of(truth.past),
        certain: LargestErrors::of(truth.certain),
        backward: truth.backward,
        beyond_bound: truth.beyond_bound,
        noise_ns: last(|session| session.noise),
        wander_ppb: last(|session| 1e9 * session.wander),
        allan_deviations: allan_deviations(&ranks),
        messages: simulated.messages,
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    Sample::new(&mut values).map_or(0.0, |sample| sample.median())
}

fn allan_deviations(ranks: &[Box<KeptRank>]) -> Vec<AllanDeviation> {
    let deviations = || learners(ranks).map(|rank| &rank.deviations);
    let times = deviations().map(Vec::len).min().unwrap_or(0);
    let deviation = |index: usize| {
        let of_ranks: Vec<f64> = deviations().map(|found| found[index].1).collect();
        let time = deviations().map(|found| found[index].0).max();
        AllanDeviation {
            seconds: time.unwrap_or_default().as_secs_f64(),
            largest: of_ranks.iter().copied().fold(0.0, f64::max),
            median: median(of_ranks),
        }
    };
    (0..times).map(deviation).collect()
}

/// Returns the ranks that do not read the counter of rank 0.
fn learners(ranks: &[Box<KeptRank>]) -> impl Iterator<Item = &KeptRank> {
    let all = ranks.iter().map(|rank| &**rank);
    all.filter(|rank| !rank.past.is_empty())
}

/// True errors, each the largest of all ranks at a moment.
struct Truth<'a> {
    ranks: &'a [Box<KeptRank>],
    clocks: TrueClocks,
    base: ClockModel<Counter, Local>,
    pasts: Vec<Option<ConstrainedSpline<'a, Local, Global>>>,
    /// Times that ranks showed last.
    last: Vec<Timestamp<Global>>,
    shown: Vec<f64>,
    after: Vec<f64>,
    before: Vec<f64>,
    alone: Vec<f64>,
    past: Vec<f64>,
    certain: Vec<f64>,
    backward: usize,
    beyond_bound: usize,
}

impl<'a> Truth<'a> {
    fn new(sim: &SimCluster, ranks: &'a [Box<KeptRank>]) -> Result<Self, Failure> {
        // Ranks that read the counter of rank 0 have none.
        let past = |rank: &'a KeptRank| match rank.past.is_empty() {
            true => Ok(None),
            false => ConstrainedSpline::new(&rank.past).map(Some),
        };
        let pasts = ranks.iter().map(|rank| past(rank));
        Ok(Self {
            ranks,
            clocks: sim.true_clocks().map_err(Failure::run)?,
            base: SimClock::nominal_model().map_err(Failure::run)?,
            pasts: pasts.collect::<Result<_, _>>().map_err(Failure::run)?,
            last: vec![Timestamp::from_nanos(i64::MIN); ranks.len()],
            shown: Vec::new(),
            after: Vec::new(),
            before: Vec::new(),
            alone: Vec::new(),
            past: Vec::new(),
            certain: Vec::new(),
            backward: 0,
            beyond_bound: 0,
        })
    }

    /// Adds the errors from the end of a session on all ranks to the beginning of the next.
    fn judge(&mut self, session: usize) {
        let changes = |session: usize| self.ranks.iter().map(move |rank| &rank.changes[session]);
        let Some(end) = changes(session).map(|change| change.ended).max() else {
            return;
        };
        let begin = |change: &Change| change.ended - change.session.took;
        let Some(next) = changes(session + 1).map(begin).min() else {
            return;
        };
        let slew = changes(session).map(|change| change.session.slew).max();
        let slewed = end + SlewedModel::<Global>::LEAD + slew.unwrap_or(Duration::ZERO);
        let step = Duration::from_nanos((next - end).as_nanos() / MOMENTS);
        let mut moments: Vec<_> = (0..=MOMENTS).map(|moment| end + step * moment).collect();
        moments.extend((slewed < next).then_some(slewed));
        moments.sort();
        let before = moments.last().copied();
        for at in moments {
            let error = self.largest_error(session, at);
            self.shown.push(error);
            if at == slewed {
                self.after.push(error);
            }
            if Some(at) == before {
                self.before.push(error);
            }
        }
        let jumps = changes(session).filter(|change| jumps_back(&change.shown));
        self.backward += jumps.count();
        self.alone.push(self.wandered(end, next));
    }

    /// Largest error of any rank at a moment between a session and the next.
    fn largest_error(&mut self, session: usize, at: Timestamp<VirtualTime>) -> f64 {
        let (mut largest, mut largest_past, mut certain) = (0.0_f64, 0.0_f64, 0.0_f64);
        let mut reference = Timestamp::ORIGIN;
        for (rank, kept) in self.ranks.iter().enumerate() {
            let change = &kept.changes[session];
            let ticks = self.clocks.ticks_at(rank as u32, at);
            let shown = change.shown.apply(ticks);
            if rank == 0 {
                reference = shown;
            }
            self.backward += usize::from(shown < self.last[rank]);
            self.last[rank] = shown;
            self.beyond_bound += usize::from(!change.bound.allows(shown, reference));
            certain = certain.max(change.bound.at_time(shown).as_nanos() as f64);
            largest = largest.max(((shown - reference).as_nanos() as f64).abs());
            if let Some(past) = &self.pasts[rank] {
                let then = past.apply(self.base.apply(ticks));
                largest_past = largest_past.max(((then - reference).as_nanos() as f64).abs());
            }
        }
        self.past.push(largest_past);
        self.certain.push(certain);
        largest
    }

    /// Largest error that clocks have when their rates wander after they were known exactly.
    fn wandered(&self, from: Timestamp<VirtualTime>, to: Timestamp<VirtualTime>) -> f64 {
        let gained = |rank: u32| {
            let [begin, end] = [from, to].map(|at| self.clocks.ticks_at(rank, at));
            let drift = self.clocks.drift_at(rank, from);
            end.signed_since(begin) as f64 - (to - from).as_nanos() as f64 * (1.0 + drift)
        };
        let of_first = gained(0);
        let ranks = 0..self.ranks.len() as u32;
        let wandered = ranks.map(|rank| (gained(rank) - of_first).abs());
        wandered.fold(0.0, f64::max)
    }
}

/// Returns true if a clock shows an earlier time where it reaches its line.
fn jumps_back(shown: &SlewedModel<Global>) -> bool {
    let settled = shown.settled();
    settled.0 > 0 && shown.apply(settled) < shown.apply(Ticks(settled.0 - 1))
}

fn text(title: &str, runs: &[KeptRun]) -> Text {
    let mut table = Table::new([
        "Algorithm",
        "Run",
        "Sessions",
        "Longest session",
        "Largest error ever",
        "Before a session, usual",
        "After one, usual",
        "After one, ever",
        "Wander alone, ever",
        "Past, ever",
        "Certain to, usual",
    ])
    .named_by(2);
    for run in runs {
        table.row([
            run.algorithm.clone(),
            run.run.to_string(),
            run.sessions.to_string(),
            units::time(1e9 * run.longest_session_s),
            units::time(run.shown.ever_ns),
            units::time(run.before_session.median_ns),
            units::time(run.after_session.median_ns),
            units::time(run.after_session.ever_ns),
            units::time(run.wander_alone.ever_ns),
            units::time(run.past.ever_ns),
            units::time(run.certain.median_ns),
        ]);
    }
    let mut text = Text::from(format!("{title}\n\n"));
    text += table;
    let backward: usize = runs.iter().map(|run| run.backward).sum();
    let beyond: usize = runs.iter().map(|run| run.beyond_bound).sum();
    let messages: u64 = runs.iter().map(|run| run.messages).sum();
    text += format!(
        "\nErrors: the largest of all ranks at a moment; usual: the median over all moments. Wander alone: error before the next session of \
         a clock whose offset and rate are exactly known after a session. Past: error of earlier times by all sessions. Certain to: largest error \
         that the bounds allow.\n\
         Readings earlier than the one before: {backward}. True errors beyond the stated bound of their clock: {beyond}. {messages} messages simulated.\n",
    );
    let Some(run) = runs.last().filter(|run| !run.allan_deviations.is_empty()) else {
        return text;
    };
    text += format!(
        "\nAllan deviation from rank 0 in the last run, by the sessions; found on the way: sessions are off by {}, and rates change by {} ppb in a second.\n\n",
        units::time(run.noise_ns),
        units::digits(run.wander_ppb, 2),
    );
    let mut table = Table::new(["Averaging time", "Median rank", "Worst rank"]);
    for deviation in &run.allan_deviations {
        table.row([
            units::time(1e9 * deviation.seconds),
            format!("{:.1e}", deviation.median),
            format!("{:.1e}", deviation.largest),
        ]);
    }
    text += table;
    text
}
