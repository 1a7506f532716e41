//! `downbeat bench`: run-times of communication operations between threads.

use std::sync::OnceLock;

use clap::Args;
use downbeat_clock_core::Clock;
use downbeat_common::bench::{
    BenchGroup, BenchPlan, BenchResults, GlobalClockOptions, GroupOutcome, MethodOptions,
    OutputOptions, RankTimes, agree_on_measured, check_ranks, headline, measure_all, rank_counts,
};
use downbeat_common::output::count;
use downbeat_common::records::Factors;
use downbeat_common::{CalibrationOptions, Failure};
use downbeat_jobs::{Job, JobClockName, JobRanks, PlaceOptions, RankClocks, factors};
use downbeat_measure::{
    BuiltinKind, BuiltinOperation, ClockBasis, MeasureContext, MessageCoordinator, Method,
    RenewableClock,
};
use downbeat_records::{CLOCK_STEP, GroupKey};
use downbeat_sync::{Comm, LocalClock, RankPlacement, ThreadCluster, ThreadComm, block_on_ready};
use downbeat_timers::cores::allowed_cores;
use downbeat_timers::skew::SkewSpec;
use downbeat_timers::{ClockName, ClockUnavailable, MachineClock};

use crate::threads::{self, ThreadJob};

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
    /// Clock that every rank reads
    #[arg(long, default_value = "recommended", value_parser = JobClockName::machine_parser(), ignore_case = true)]
    clock: JobClockName,
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
    let session = ThreadBench::new(options)?;
    session.run(|job, first_failure| {
        let ranks = JobRanks::find(job, &PlaceOptions::default())?;
        let ThreadBenchOptions {
            clock,
            calibration,
            skew,
            ..
        } = options;
        let clocks = RankClocks::find(&ranks, *clock, false, calibration, skew.as_ref())?;
        session.measure_on(&ranks, &clocks, first_failure)
    })
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
    /// Number of cores of all threads; each is pinned to one.
    cores: usize,
}

impl<'a> ThreadBench<'a> {
    /// Plans the measurements; refuses invalid options before anything takes time.
    fn new(options: &'a ThreadBenchOptions) -> Result<Self, Failure> {
        let sizes = options.rank_counts();
        Ok(Self {
            options,
            groups: options.groups(&sizes)?,
            sizes,
            usual: options.method.usual_method()?,
            cores: allowed_cores().len(),
        })
    }

    /// Runs the ranks. Each gets the place for the message of the first one that fails
    /// alone.
    fn run(
        &self,
        measure: impl Fn(&ThreadJob<'_>, &OnceLock<String>) -> Result<BenchResults, Failure> + Sync,
    ) -> Result<BenchResults, Failure> {
        let first_failure = OnceLock::new();
        let found = threads::run_job(self.ranks(), |job| measure(job, &first_failure));
        // Ranks that waited for one that failed alone only know that it left.
        let found = first_failure
            .into_inner()
            .map_or(found, |why| Err(Failure::Run(why)));
        found.map_err(|why| self.explain_failure(why))
    }

    /// Number of threads.
    fn ranks(&self) -> u32 {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// Measures on one rank; returns the results on rank 0. All ranks call this.
    fn measure_on<J: Job<Comm = ThreadComm>>(
        &self,
        ranks: &JobRanks<'_, J>,
        clocks: &RankClocks<J>,
        first_failure: &OnceLock<String>,
    ) -> Result<BenchResults, Failure> {
        let Self { options, usual, .. } = self;
        // For hierarchical algorithms, ranks that share a clock are a node.
        let clock = options.skew.map_or(ranks.place.node, |spec| {
            spec.clock_of_rank(ranks.all.rank(), ranks.place.node)
        });
        let me = ranks
            .local_clock(&clocks.local)
            .placement(RankPlacement::new(clock, 0));
        let comms = self.subcommunicators(ranks.all)?;
        let mut parts = Vec::new();
        for (size, comm) in &comms {
            if let Some(comm) = comm {
                let (size, global) = (*size, options.sync.clock(comm, me, usual));
                parts.push(BenchPart { size, comm, global });
            }
        }
        let rank = BenchRank {
            all: ranks.all,
            me,
            parts,
            first_failure,
        };
        measure_all(
            ranks.all,
            ranks.node_comm(),
            &options.output,
            self.plan(ranks, clocks),
            |group, times| rank.measure(group, times),
        )
    }

    /// Adds the number of cores to a failure if threads share them: such ranks miss every common
    /// start, which explains most failures.
    fn explain_failure(&self, failure: Failure) -> Failure {
        let (threads, cores) = (self.ranks() as usize, self.cores);
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

    /// Returns why the recommended clock is not the counter of the processor, if it is
    /// another.
    fn reason_for_no_counter(&self, found: JobClockName) -> Option<ClockUnavailable> {
        let is_other = self.options.clock == JobClockName::RECOMMENDED
            && !matches!(
                found,
                JobClockName::Machine(ClockName::Tsc | ClockName::Cntvct)
            );
        is_other.then(MachineClock::counter)?.err()
    }

    fn plan<J: Job>(
        &self,
        ranks: &JobRanks<'_, J>,
        clocks: &RankClocks<J>,
    ) -> BenchPlan<BuiltinKind> {
        let Self {
            options,
            groups,
            usual,
            cores,
            ..
        } = self;
        let RankClocks { name, counter, .. } = clocks;
        let factors = factors::for_experiment(ranks, *name).with("cores", cores);
        let factors = options.method.factors(factors, usual);
        let mut factors = options.sync.factors(factors, usual);
        if let Some(skew) = &options.skew {
            factors = factors.with("skew", skew);
        }
        let facts = factors::add_counter(counter.as_ref(), Factors::default());
        let mut facts = factors::add_place(ranks, facts).with(CLOCK_STEP, &clocks.step_nanos());
        let mut note = String::new();
        if let Some(why) = self.reason_for_no_counter(*name) {
            facts = facts.with("no counter", &why);
            note = format!(" (counter of the processor not usable: {why})");
        }
        let setup = format!(
            "{} on {}, clock {name}{note}",
            count(self.ranks() as usize, "thread"),
            count(*cores, "core")
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
    use downbeat_sync::CommError;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicI64, AtomicU64};
    use std::time::Instant;

    #[derive(Parser)]
    struct ParsedBench {
        #[command(flatten)]
        options: ThreadBenchOptions,
    }

    /// Counts nanoseconds, and stands still after a number of readings.
    #[derive(Clone, Debug)]
    struct StoppableClock {
        began: Instant,
        remaining: Arc<AtomicI64>,
        last: Arc<AtomicU64>,
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

    /// Threads that have such clocks.
    #[derive(Debug)]
    struct StoppableJob<'a> {
        comm: &'a ThreadComm,
        clock: StoppableClock,
    }

    impl Job for StoppableJob<'_> {
        type Comm = ThreadComm;
        type OwnClock = StoppableClock;

        const IS_ONE_PROCESS: bool = true;

        const PROGRAM: &'static str = "a test";

        fn comm(&self) -> &ThreadComm {
            self.comm
        }

        fn node(&self) -> Result<u32, CommError> {
            Ok(0)
        }

        fn own_clock(&self) -> Option<StoppableClock> {
            Some(self.clock.clone())
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
        let session = ThreadBench::new(&options).unwrap();
        let began = Instant::now();
        let found = session.run(|job, first_failure| {
            let comm = job.comm();
            // Rank 1 is synchronized, and then waits for a start forever.
            let readings = [i64::MAX, 100, i64::MAX][comm.rank() as usize];
            let clock = StoppableClock {
                began,
                remaining: Arc::new(AtomicI64::new(readings)),
                last: Arc::default(),
            };
            let job = StoppableJob { comm, clock };
            let ranks = JobRanks::find(&job, &PlaceOptions::default())?;
            let own = JobClockName::Wtime;
            let clocks = RankClocks::find(&ranks, own, false, &options.calibration, None)?;
            session.measure_on(&ranks, &clocks, first_failure)
        });
        match found {
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
