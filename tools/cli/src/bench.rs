//! `downbeat bench`: run-times of communication operations between threads.

use std::sync::OnceLock;

use clap::Args;
use downbeat_clock_core::{Clock, ClockModel, Counter, Local, Timestamp};
use downbeat_common::bench::{
    BenchGroup, BenchPlan, BenchResults, GlobalClockOptions, GroupOutcome, MethodOptions,
    OutputOptions, RankTimes, agree_on_measured, check_ranks, headline, measure_all, rank_counts,
};
use downbeat_common::output::count;
use downbeat_common::records::Factors;
use downbeat_common::{CalibrationOptions, Failure, machine};
use downbeat_measure::{
    BuiltinKind, BuiltinOperation, ClockBasis, MeasureContext, MessageCoordinator, Method,
    RenewableClock,
};
use downbeat_records::{CLOCK_STEP, GroupKey, HOSTS, NODES};
use downbeat_sync::RankPlacement;
use downbeat_sync::{Comm, LocalClock, ThreadCluster, ThreadComm, block_on_ready};
use downbeat_timers::cores::allowed_cores;
use downbeat_timers::skew::{SkewSpec, SkewedClock};
use downbeat_timers::{ClockUnavailable, Duration, SystemClock, SystemClockId, TickRate, TscClock};

use crate::threads;

#[derive(Args, Debug)]
#[command(
    after_help = "Messages have 8 bytes, or none. With --skew every thread has a skewed clock: schemes that use a global clock \
                  find the same run-times, except for some nanoseconds that reading such a clock takes.\n\n\
                  Examples:\n  downbeat bench --operation ping-pong,allreduce --ranks 2\n  \
                  downbeat bench --operation bcast --scheme ms1 --time-slice 1s \\\n    \
                  --out results\n  \
                  downbeat bench --operation barrier,dissemination \\\n    \
                  --skew offset=1s,drift=20ppm"
)]
pub(crate) struct ThreadBenchOptions {
    /// Operations to measure, separated by commas: ping-pong, sendrecv, barrier (tree barrier), dissemination
    /// (dissemination barrier), bcast, allreduce, gather, empty (no operation); or all
    #[arg(long, value_name = "NAMES", default_value = "all", value_parser = operations)]
    operation: BenchOperations,
    /// Numbers of ranks, separated by commas; each rank is a thread [default: number of cores, at least 2]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(ThreadCluster::MAX_RANKS)), allow_hyphen_values = true)]
    ranks: Vec<u32>,
    #[command(flatten)]
    method: MethodOptions,
    /// Seed of the random order of the measurements [default: a new one each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    seed: Option<u64>,
    #[command(flatten)]
    sync: GlobalClockOptions,
    #[arg(long, value_name = "SPEC", help = SkewSpec::HELP)]
    skew: Option<SkewSpec>,
    #[command(flatten)]
    calibration: CalibrationOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Distinct operations.
#[derive(Clone, Debug)]
struct BenchOperations(Vec<BuiltinKind>);

fn operations(text: &str) -> Result<BenchOperations, String> {
    BuiltinKind::list(text)
        .map(BenchOperations)
        .map_err(|why| why.to_string())
}

pub(crate) fn run(options: &ThreadBenchOptions) -> Result<(), Failure> {
    options.output.show(&measure(options)?)
}

/// Measures all groups, and writes the record if requested.
pub(crate) fn measure(options: &ThreadBenchOptions) -> Result<BenchResults, Failure> {
    let sizes = options.rank_counts();
    let session = ThreadBench {
        options,
        groups: options.groups(&sizes)?,
        sizes,
        // Refuse invalid options before anything takes time.
        usual: options.method.usual_method()?,
    };
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(Failure::run)?;
    let tsc = TscClock::detect();
    let known = options.calibration.calibrate(&tsc, &raw, CALIBRATION)?;
    match (tsc, known) {
        (Ok(tsc), Some(known)) => {
            let (rate, uncertainty) = (known.calibration.rate(), known.calibration.uncertainty());
            session.with_counter(
                tsc,
                &BenchCounter {
                    rate,
                    uncertainty,
                    tsc_unavailable: None,
                },
            )
        }
        (tsc, _) => session.with_counter(
            raw,
            &BenchCounter {
                rate: SystemClock::RATE,
                uncertainty: 0.0,
                tsc_unavailable: tsc.err(),
            },
        ),
    }
}

/// Duration of the calibration of the time stamp counter.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Counter that all threads read.
struct BenchCounter {
    rate: TickRate,
    uncertainty: f64,
    /// Reason for using `CLOCK_MONOTONIC_RAW`, if it is used.
    tsc_unavailable: Option<ClockUnavailable>,
}

impl ThreadBenchOptions {
    fn rank_counts(&self) -> Vec<u32> {
        let all = (allowed_cores().len() as u32).clamp(2, ThreadCluster::MAX_RANKS);
        rank_counts(&self.ranks, all)
    }

    /// All groups to measure.
    fn groups(&self, rank_counts: &[u32]) -> Result<Vec<BenchGroup<BuiltinKind>>, Failure> {
        let mut groups = Vec::new();
        for kind in &self.operation.0 {
            let (operation, bytes) = (kind.to_string(), kind.bytes());
            let method = self.method.method(&operation, bytes)?;
            for ranks in rank_counts {
                check_ranks(kind, kind.min_ranks()..=u32::MAX, *ranks)?;
                groups.push(BenchGroup {
                    key: GroupKey {
                        operation: operation.clone(),
                        bytes,
                        ranks: *ranks,
                    },
                    method: method.clone(),
                    subject: *kind,
                });
            }
        }
        Ok(groups)
    }
}

struct ThreadBench<'a> {
    options: &'a ThreadBenchOptions,
    groups: Vec<BenchGroup<BuiltinKind>>,
    /// Numbers of ranks, ascending.
    sizes: Vec<u32>,
    /// Method of most operations.
    usual: Method,
}

impl ThreadBench<'_> {
    /// Measures with this counter, or with skewed clocks that read it.
    fn with_counter<K: Clock + Copy + Sync>(
        &self,
        counter: K,
        read: &BenchCounter,
    ) -> Result<BenchResults, Failure> {
        let (now, ranks) = (counter.ticks(), self.ranks());
        let Some(spec) = &self.options.skew else {
            let base =
                ClockModel::through(now, Timestamp::ORIGIN, read.rate).map_err(Failure::run)?;
            return self.with_clocks(&vec![counter; ranks as usize], base, |_| 0, read);
        };
        let truth = ClockModel::through(now, Timestamp::ORIGIN, read.rate).map_err(Failure::run)?;
        let base = SkewedClock::<K>::nominal_model().map_err(Failure::run)?;
        self.with_clocks(
            &threads::skewed(spec, ranks, counter, truth)?,
            base,
            |rank| spec.clock_of_rank(rank, threads::NODE),
            read,
        )
    }

    /// Number of threads.
    fn ranks(&self) -> u32 {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// Measures between threads that read one clock each.
    fn with_clocks<K: Clock + Sync>(
        &self,
        clocks: &[K],
        base: ClockModel<Counter, Local>,
        clock_index: impl Fn(u32) -> u32 + Sync,
        read: &BenchCounter,
    ) -> Result<BenchResults, Failure> {
        let step = clocks.iter().map(Clock::grain).max().unwrap_or(1) as f64;
        let plan = self.plan(read, step * base.rate().nanos_per_tick());
        let first_failure = OnceLock::new();
        let found = threads::pinned(self.ranks()).run(|all| {
            let (clock, index) = (&clocks[all.rank() as usize], clock_index(all.rank()));
            // For hierarchical algorithms, ranks that share a clock are a node.
            let me = LocalClock::new(clock, base)
                .source(index.into())
                .placement(RankPlacement::new(index, 0));
            let comms = self.subcommunicators(all)?;
            let mut parts = Vec::new();
            for (size, comm) in &comms {
                if let Some(comm) = comm {
                    let (size, global) = (*size, self.options.sync.clock(comm, me, &self.usual));
                    parts.push(BenchPart { size, comm, global });
                }
            }
            let rank = BenchRank {
                all,
                me,
                parts,
                first_failure: &first_failure,
            };
            // All threads are on one node.
            measure_all(
                all,
                all,
                &self.options.output,
                plan.clone(),
                |group, times| rank.measure(group, times),
            )
        });
        let found = found.map_err(Failure::run)?;
        let found = match first_failure.into_inner() {
            // The other ranks only know that this one left.
            Some(why) => Err(Failure::Run(why)),
            // All ranks fail together, and rank 0 knows the reason.
            None => found
                .into_iter()
                .next()
                .unwrap_or_else(|| Err(Failure::run("there is no rank 0"))),
        };
        found.map_err(|why| self.explain_failure(why))
    }

    /// Adds the number of cores to a failure if threads share them: such ranks miss every common
    /// start, which explains most failures.
    fn explain_failure(&self, failure: Failure) -> Failure {
        let (threads, cores) = (self.ranks() as usize, allowed_cores().len());
        match failure {
            Failure::Run(why) if cores < threads => {
                let (threads, cores) = (count(threads, "thread"), count(cores, "core"));
                Failure::Run(format!("{why} ({threads} on {cores})"))
            }
            failure => failure,
        }
    }

    /// Makes a communicator for each number of ranks, `None` where this rank is no member. All ranks call this.
    fn subcommunicators(
        &self,
        all: &ThreadComm,
    ) -> Result<Vec<(u32, Option<ThreadComm>)>, Failure> {
        let part = |size: &u32| {
            let color = (all.rank() < *size).then_some(0);
            Ok((
                *size,
                block_on_ready(all.split(color, all.rank())).map_err(Failure::run)?,
            ))
        };
        self.sizes.iter().map(part).collect()
    }

    fn plan(&self, read: &BenchCounter, step_nanos: f64) -> BenchPlan<BuiltinKind> {
        let Self {
            options,
            groups,
            usual,
            ..
        } = self;
        let cores = allowed_cores().len();
        let clock = if read.tsc_unavailable.is_none() {
            "tsc"
        } else {
            "raw"
        };
        let factors = Factors::default()
            .with("program", &concat!("downbeat ", env!("CARGO_PKG_VERSION")))
            .with("ranks", &self.ranks())
            .with("cores", &cores)
            .with("clock", &clock);
        let governors = machine::governors();
        let factors = machine::factors(factors, &governors);
        let factors = options.method.factors(factors, usual);
        let mut factors = options.sync.factors(factors, usual);
        if let Some(skew) = &options.skew {
            factors = factors.with("skew", skew);
        }
        let facts = match &read.tsc_unavailable {
            None => Factors::default()
                .with("tsc_hz", &read.rate.hz())
                .with("tsc_uncertainty_ppm", &(read.uncertainty * 1e6)),
            Some(why) => Factors::default().with("no tsc", why),
        };
        let facts = facts
            .with(CLOCK_STEP, &step_nanos)
            .with(HOSTS, &machine::host_name())
            .with(NODES, &machine::kind_of_node(&governors));
        let note = read
            .tsc_unavailable
            .as_ref()
            .map_or_else(String::new, |why| {
                format!(" (time stamp counter not usable: {why})")
            });
        let setup = format!(
            "{} on {}, clock {clock}{note}",
            count(self.ranks() as usize, "thread"),
            count(cores, "core")
        );
        BenchPlan {
            groups: groups.clone(),
            seed: options.seed,
            factors,
            facts,
            headline: headline(&setup, usual),
        }
    }
}

/// Ranks that measure some groups.
struct BenchPart<'a, K> {
    size: u32,
    comm: &'a ThreadComm,
    global: Option<RenewableClock<'a, ThreadComm, K>>,
}

/// State of a thread that measures.
struct BenchRank<'a, K> {
    all: &'a ThreadComm,
    me: LocalClock<'a, K>,
    /// Parts of which this rank is a member.
    parts: Vec<BenchPart<'a, K>>,
    /// Message of the first rank that failed alone, while others waited for it.
    first_failure: &'a OnceLock<String>,
}

impl<K: Clock> BenchRank<'_, K> {
    /// Measures one group. Ranks that do not take part only receive the outcome.
    fn measure(
        &self,
        group: &BenchGroup<BuiltinKind>,
        times: &mut RankTimes,
    ) -> Result<Option<GroupOutcome>, Failure> {
        let (key, kind) = (&group.key, group.subject);
        let mut measured = Ok(None);
        if let Some(part) = self.parts.iter().find(|part| part.size == key.ranks) {
            let comm = part.comm;
            let context = MeasureContext {
                comm,
                coordinator: &MessageCoordinator(comm),
                clock: self.me.clock(),
                clock_basis: ClockBasis::new(part.global.as_ref(), self.me.base()),
            };
            let mut operation = BuiltinOperation { kind, comm };
            measured = times.measure(&group.method, &context, &mut operation);
        }
        match measured {
            // This rank leaves, so that no other waits for it forever.
            Err(why) if why.is_local() => {
                let why = format!("rank {}: {key}: {why}", self.all.rank());
                // Ranks that fail because it left come later.
                let _ = self.first_failure.set(why.clone());
                Err(Failure::Run(why))
            }
            measured => agree_on_measured(self.all, key, measured),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use downbeat_clock_core::{ReadOrdering, Ticks};
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicI64, AtomicU64};
    use std::time::Instant;

    #[derive(Parser)]
    struct ParsedBench {
        #[command(flatten)]
        options: ThreadBenchOptions,
    }

    /// Counts nanoseconds, and stands still after a number of readings.
    struct StoppableClock {
        began: Instant,
        remaining: AtomicI64,
        last: AtomicU64,
    }

    impl Clock for StoppableClock {
        fn ticks(&self) -> Ticks {
            if self.remaining.fetch_sub(1, Relaxed) > 0 {
                let now = self.began.elapsed().as_nanos() as u64;
                self.last.store(now, Relaxed);
            }
            Ticks(self.last.load(Relaxed))
        }

        fn ordering(&self) -> ReadOrdering {
            ReadOrdering::Fenced
        }
    }

    #[test]
    fn a_rank_that_fails_alone_ends_the_measurement_with_its_message() {
        let words = [
            "bench",
            "--operation",
            "allreduce,bcast",
            "--ranks",
            "2,3",
            "--sync",
            "none",
            "--reps",
            "50",
        ];
        let ParsedBench { options } = ParsedBench::try_parse_from(words).unwrap();
        let sizes = options.rank_counts();
        let session = ThreadBench {
            options: &options,
            groups: options.groups(&sizes).unwrap(),
            sizes,
            usual: options.method.usual_method().unwrap(),
        };
        let base = ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
        let read = BenchCounter {
            rate: TickRate::NANOSECOND,
            uncertainty: 0.0,
            tsc_unavailable: None,
        };
        let began = Instant::now();
        // Rank 1 is synchronized, and then waits for a start forever.
        let clocks = [i64::MAX, 100, i64::MAX].map(|readings| StoppableClock {
            began,
            remaining: AtomicI64::new(readings),
            last: AtomicU64::new(0),
        });
        match session.with_clocks(&clocks, base, |_| 0, &read) {
            Err(Failure::Run(why)) => {
                assert!(
                    why.starts_with("rank 1: ") && why.contains("the clock stands still"),
                    "{why}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}
