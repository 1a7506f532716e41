//! `downbeat simulate --keep`: clocks that short sessions keep synchronized, and their true errors over all the time.

use std::num::NonZero;

use clap::Args;
use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
use downbeat_clock_core::{
    Clock as _, ClockModel, Counter, Duration, Global, Local, SlewedModel, Ticks, Timestamp,
};
use downbeat_common::cli::positive;
use downbeat_common::kept::{AllanDeviation, KeptPage, LargestErrors};
use downbeat_common::page::curves::Curve;
use downbeat_common::page::{Page, PageOptions};
use downbeat_common::records::{Factors, all_or_first_failure, median, serialize_factors};
use downbeat_common::{DeclaredRates, Failure, PrintOptions, Table, Text, units};
use downbeat_sync::keep::{KeptSession, NodeKeeper, SlewingClock};
use downbeat_sync::sim::{SimClock, SimCluster, SimComm, TrueClocks, VirtualTime};
use downbeat_sync::{Algorithm, SyncError};
use serde::Serialize;

use super::runs::{SimulatedRuns, size};
use crate::memory;

#[derive(Args, Debug)]
pub(super) struct KeepOptions {
    /// Keep the clocks synchronized by sessions of a millisecond, this time apart, and print their true errors over all the time
    #[arg(long, value_name = "PERIOD", value_parser = positive, allow_hyphen_values = true,
          conflicts_with_all = ["check", "check_by", "sample", "csv"])]
    keep: Option<Duration>,
    /// Time for which the clocks are kept
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = positive, requires = "keep", allow_hyphen_values = true)]
    lasting: Duration,
}

impl KeepOptions {
    /// The options, if the clocks are kept.
    pub(super) fn kept(&self, declared: DeclaredRates) -> Option<Keeping> {
        let keeping = |period| Keeping {
            period,
            lasting: self.lasting,
            declared,
        };
        self.keep.map(keeping)
    }
}

/// Sessions that keep the clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping {
    period: Duration,
    lasting: Duration,
    declared: DeclaredRates,
}

/// Sessions that come closer to each other, before the usual ones.
const FIRST_SESSIONS: i64 = 4;
/// Moments between two sessions at which the errors are taken.
const MOMENTS: i64 = 20;

/// Clock that a rank shows from a session on.
struct Change {
    ended: Timestamp<VirtualTime>,
    shown: SlewingClock,
    session: KeptSession,
}

/// A rank after the simulation.
struct KeptRank {
    changes: Vec<Change>,
    past: Vec<SplineKnot<Local, Global>>,
    deviations: Vec<(Duration, f64)>,
}

/// Makes all simulations of the cluster, and prints the results.
pub(super) fn run(
    sim: &mut SimCluster,
    threads: NonZero<usize>,
    simulated: SimulatedRuns<'_>,
    keeping: Keeping,
    (page, print): (&PageOptions, PrintOptions),
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
    let runs = simulated.each(sim, |sim, algorithm, run| {
        simulate_once(sim, threads, algorithm, run, keeping)
    })?;
    let title = format!(
        "{}, kept by a session every {period} for {lasting}, seed {}",
        size(sim),
        simulated.seed
    );
    let factors = factors.with("keep", &period).with("lasting", &lasting);
    let document = || KeptClocksReport {
        schema: "downbeat.kept_clocks",
        version: 1,
        factors: &factors,
        runs: &runs,
    };
    let results = KeptResults::new(&runs);
    page.write_or(
        &title,
        || results.page(&runs),
        || print.print(document, || results.text(&title, &runs)),
    )
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
    /// Allan deviation of all ranks from rank 0, for averaging times.
    allan_deviations: Vec<AllanDeviation>,
    messages: u64,
    /// Largest errors over time, for pictures: of what clocks show, and of clocks without wander before each session.
    #[serde(skip)]
    curves: [Curve; 2],
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
    let me = keeping.declared.of(comm.local_clock(&clock)?);
    let synchronized = Box::pin(algorithm.synchronize(&me, comm)).await?;
    let mut keeper = NodeKeeper::new(&me, &synchronized, comm, period).await?;
    let mut shown = SlewingClock::new(&synchronized);
    let mut changes = Vec::new();
    // All ranks make the same sessions: rank 0 decides by its own clock.
    let sessions = FIRST_SESSIONS + lasting.as_nanos() / period.as_nanos();
    for _ in 0..sessions {
        let now = clock.ticks();
        comm.pause(keeper.due_in(now).max(Duration::ZERO));
        let Some(session) = keeper.keep_now(&me).await? else {
            break;
        };
        shown.follow(&session, clock.ticks())?;
        changes.push(Change {
            ended: comm.true_now(),
            shown,
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
    let deviations: Vec<_> = learners(&ranks).map(|rank| &rank.deviations).collect();
    let curves = truth.curves();
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
        median(learned.map(|change| value(&change.session)).collect()).unwrap_or_default()
    };
    Ok(KeptRun {
        algorithm: algorithm.to_string(),
        run,
        sessions: changes,
        longest_session_s: longest.as_secs_f64(),
        shown: LargestErrors::of(errors(truth.shown)),
        after_session: LargestErrors::of(truth.after),
        before_session: LargestErrors::of(truth.before),
        wander_alone: LargestErrors::of(errors(truth.alone)),
        past: LargestErrors::of(truth.past),
        certain: LargestErrors::of(truth.certain),
        backward: truth.backward,
        beyond_bound: truth.beyond_bound,
        noise_ns: last(|session| session.noise),
        wander_ppb: last(|session| 1e9 * session.wander),
        allan_deviations: AllanDeviation::of_ranks(&deviations),
        messages: simulated.messages,
        curves,
    })
}

fn errors(over_time: Vec<(Timestamp<VirtualTime>, f64)>) -> Vec<f64> {
    over_time.into_iter().map(|(_, error)| error).collect()
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
    /// With the time.
    shown: Vec<(Timestamp<VirtualTime>, f64)>,
    after: Vec<f64>,
    before: Vec<f64>,
    /// With the time.
    alone: Vec<(Timestamp<VirtualTime>, f64)>,
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
            self.shown.push((at, error));
            if at == slewed {
                self.after.push(error);
            }
            if Some(at) == before {
                self.before.push(error);
            }
        }
        let jumps = changes(session).filter(|change| jumps_back(&change.shown.model));
        self.backward += jumps.count();
        self.alone.push((next, self.wandered(end, next)));
    }

    /// Returns the errors of what clocks show over time, and those that wander alone leaves before a session.
    fn curves(&self) -> [Curve; 2] {
        let began = self
            .shown
            .first()
            .map_or(Timestamp::ORIGIN, |first| first.0);
        let curve = |name: &str, errors: &[(Timestamp<VirtualTime>, f64)]| Curve {
            name: name.to_owned(),
            points: errors
                .iter()
                .map(|(at, error)| ((*at - began).as_secs_f64(), *error))
                .collect(),
        };
        [
            curve("kept", &self.shown),
            curve("wander alone", &self.alone),
        ]
    }

    /// Largest error of any rank at a moment between a session and the next.
    fn largest_error(&mut self, session: usize, at: Timestamp<VirtualTime>) -> f64 {
        let (mut largest, mut largest_past, mut certain) = (0.0_f64, 0.0_f64, 0.0_f64);
        let mut reference = Timestamp::ORIGIN;
        for (rank, kept) in self.ranks.iter().enumerate() {
            let change = &kept.changes[session];
            let ticks = self.clocks.ticks_at(rank as u32, at);
            let shown = change.shown.model.apply(ticks);
            if rank == 0 {
                reference = shown;
            }
            self.backward += usize::from(shown < self.last[rank]);
            self.last[rank] = shown;
            self.beyond_bound += usize::from(!change.shown.bound.allows(shown, reference));
            certain = certain.max(change.shown.bound.at_time(shown).as_nanos() as f64);
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

/// Table of all runs, and the notes below it.
struct KeptResults {
    table: Table,
    notes: Vec<String>,
}

impl KeptResults {
    fn new(runs: &[KeptRun]) -> Self {
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
        let backward: usize = runs.iter().map(|run| run.backward).sum();
        let beyond: usize = runs.iter().map(|run| run.beyond_bound).sum();
        let messages: u64 = runs.iter().map(|run| run.messages).sum();
        let notes = vec![
            "Errors: the largest of all ranks at a moment; usual: the median over all moments. Wander alone: error before the next session \
             of a clock whose offset and rate are exactly known after a session. Past: error of earlier times by all sessions. Certain to: \
             largest error that the bounds allow."
                .to_owned(),
            format!(
                "Readings earlier than the one before: {backward}. True errors beyond the stated bound of their clock: {beyond}. \
                 {messages} messages simulated."
            ),
        ];
        Self { table, notes }
    }

    fn text(&self, title: &str, runs: &[KeptRun]) -> Text {
        let mut text = Text::from(format!("{title}\n\n"));
        text += self.table.clone();
        text += format!("\n{}\n", self.notes.join("\n"));
        if let Some((run, stability)) = last_stability(runs) {
            text += format!("\n{stability}\n\n");
            text += AllanDeviation::table(&run.allan_deviations);
        }
        text
    }

    /// Returns a page with pictures of the last run.
    fn page(&self, runs: &[KeptRun]) -> Page {
        let mut notes = self.notes.clone();
        notes.extend(last_stability(runs).map(|(_, stability)| stability));
        let last = runs.last();
        let curve = |index: usize| last.map(|run| run.curves[index].clone());
        let page = KeptPage {
            kept: curve(0).into_iter().collect(),
            compared: curve(1).into_iter().collect(),
            comparison: "Beside what wander alone leaves before a session",
            results: &self.table,
            notes: &notes,
            allan_deviations: last.map_or(&[], |run| &run.allan_deviations),
        };
        page.page()
    }
}

/// Returns the last run, if its clocks were compared, and a sentence about their stability.
fn last_stability(runs: &[KeptRun]) -> Option<(&KeptRun, String)> {
    let run = runs.last().filter(|run| !run.allan_deviations.is_empty())?;
    let found = format!(
        "Allan deviation from rank 0 in the last run, by the sessions; found on the way: sessions are off by {}, and rates change by {} ppb in a second.",
        units::time(run.noise_ns),
        units::digits(run.wander_ppb, 2),
    );
    Some((run, found))
}
