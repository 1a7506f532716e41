//! `downbeat bench`: how long operations by messages between threads take.

use std::sync::OnceLock;

use clap::Args;
use downbeat_clock_core::{Clock, ClockModel, Counter, Local, Timestamp};
use downbeat_common::bench::{
    BenchPlan, BenchResults, GlobalClockOptions, GlobalTime, MethodOptions, NearnessOptions,
    OutputOptions, agree_on_measured, check_ranks, headline, measure_all, rank_counts,
};
use downbeat_common::output::count;
use downbeat_common::records::Factors;
use downbeat_common::{CalibrationOptions, Failure, SkewSpec, machine};
use downbeat_measure::{ByMessages, Measured, OwnKind, OwnOperation, Stage, Time};
use downbeat_records::GroupKey;
use downbeat_sync::{Comm, LocalClock, RankPlacement, ThreadCluster, ThreadComm, block_on_ready};
use downbeat_timers::{
    ClockUnavailable, Duration, SkewedClock, SystemClock, SystemClockId, TickRate, TscClock,
    allowed_cores,
};

use crate::threads;

#[derive(Args, Debug)]
#[command(
    after_help = "Each operation moves 8 bytes, or none. With --skew every thread has a clock that is wrong: schemes with a \
                  global clock find the same, but for some nanoseconds that such a clock takes longer to read.\n\n\
                  Examples:\n  downbeat bench --operation ping-pong,allreduce --ranks 2\n  \
                  downbeat bench --operation bcast --scheme ms1 --time-slice 1s --out results\n  \
                  downbeat bench --operation barrier,dissemination --skew offset=1s,drift=20ppm"
)]
pub(crate) struct ThreadBenchOptions {
    /// What to measure, with commas: ping-pong, sendrecv, barrier (along a tree), dissemination (a barrier, too), bcast,
    /// allreduce, gather, empty; or all
    #[arg(long, value_name = "NAMES", default_value = "all", value_parser = kinds)]
    operation: BenchOperations,
    /// Among how many ranks, with commas; each is a thread [default: as many as there are cores, but 2 at least]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(ThreadCluster::MAX_RANKS)), allow_hyphen_values = true)]
    ranks: Vec<u32>,
    #[command(flatten)]
    method: MethodOptions,
    #[command(flatten)]
    near: NearnessOptions,
    /// Draws the order of the measurements by lot [default: another each time]
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

/// Operations, each once.
#[derive(Clone, Debug)]
struct BenchOperations(Vec<OwnKind>);

fn kinds(text: &str) -> Result<BenchOperations, String> {
    OwnKind::list(text)
        .map(BenchOperations)
        .map_err(|why| why.to_string())
}

pub(crate) fn run(options: &ThreadBenchOptions) -> Result<(), Failure> {
    options.output.show(&measure(options)?)
}

/// Measures everything, and keeps it where that was asked for.
pub(crate) fn measure(options: &ThreadBenchOptions) -> Result<BenchResults, Failure> {
    let sizes = options.rank_counts();
    let session = ThreadBench {
        options,
        groups: options.groups(&sizes)?,
        sizes,
    };
    // Before anything takes time.
    options.method.method(0)?;
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(Failure::run)?;
    let tsc = TscClock::detect();
    let known = options.calibration.calibrate(&tsc, &raw, CALIBRATION)?;
    match (tsc, known) {
        (Ok(tsc), Some(known)) => {
            let (rate, uncertainty) = (known.calibration.rate(), known.calibration.uncertainty());
            session.by(
                tsc,
                &BenchCounter {
                    rate,
                    uncertainty,
                    instead_of: None,
                },
            )
        }
        (tsc, _) => session.by(
            raw,
            &BenchCounter {
                rate: SystemClock::RATE,
                uncertainty: 0.0,
                instead_of: tsc.err(),
            },
        ),
    }
}

/// How long the time stamp counter is calibrated.
const CALIBRATION: Duration = Duration::from_millis(20);

/// The counter that all threads read.
struct BenchCounter {
    rate: TickRate,
    uncertainty: f64,
    /// Why it is `CLOCK_MONOTONIC_RAW`, if it is.
    instead_of: Option<ClockUnavailable>,
}

impl ThreadBenchOptions {
    fn rank_counts(&self) -> Vec<u32> {
        let all = (allowed_cores().len() as u32).clamp(2, ThreadCluster::MAX_RANKS);
        rank_counts(&self.ranks, all)
    }

    /// Everything that is to be measured.
    fn groups(&self, rank_counts: &[u32]) -> Result<Vec<GroupKey>, Failure> {
        let pairs = self
            .operation
            .0
            .iter()
            .flat_map(|kind| rank_counts.iter().map(move |ranks| (kind, *ranks)));
        let group = |(kind, ranks): (&OwnKind, u32)| {
            check_ranks(kind, kind.least_ranks(), ranks)?;
            Ok(GroupKey {
                operation: kind.to_string(),
                bytes: kind.bytes(),
                ranks,
            })
        };
        pairs.map(group).collect()
    }
}

struct ThreadBench<'a> {
    options: &'a ThreadBenchOptions,
    groups: Vec<GroupKey>,
    /// Numbers of ranks, the greatest last.
    sizes: Vec<u32>,
}

impl ThreadBench<'_> {
    /// Measures by this counter, or by clocks that read it and are wrong.
    fn by<K: Clock + Copy + Sync>(
        &self,
        counter: K,
        read: &BenchCounter,
    ) -> Result<BenchResults, Failure> {
        let (now, ranks) = (counter.ticks(), self.ranks());
        let Some(spec) = &self.options.skew else {
            let base =
                ClockModel::through(now, Timestamp::ORIGIN, read.rate).map_err(Failure::run)?;
            return self.among(&vec![counter; ranks as usize], base, |_| 0, read);
        };
        let truth = ClockModel::through(now, Timestamp::ORIGIN, read.rate).map_err(Failure::run)?;
        let base = SkewedClock::<K>::nominal_model().map_err(Failure::run)?;
        self.among(
            &threads::skewed(spec, ranks, counter, truth)?,
            base,
            |rank| threads::clock_of(rank, spec),
            read,
        )
    }

    /// How many threads there are.
    fn ranks(&self) -> u32 {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// Measures among threads that read one clock each.
    fn among<K: Clock + Sync>(
        &self,
        clocks: &[K],
        base: ClockModel<Counter, Local>,
        which: impl Fn(u32) -> u32 + Sync,
        read: &BenchCounter,
    ) -> Result<BenchResults, Failure> {
        let plan = self.plan(read)?;
        let method = self.options.method.method(0)?;
        let casualty = OnceLock::new();
        let found = threads::pinned(self.ranks()).run(|all| {
            let (clock, which) = (&clocks[all.rank() as usize], which(all.rank()));
            // Ranks that share a clock make a node for those algorithms that tell nodes apart.
            let me = LocalClock::new(clock, base)
                .source(which.into())
                .placement(RankPlacement {
                    node: which,
                    socket: 0,
                });
            let mut global = GlobalTime::new(all, me, &self.options.sync, &method)?;
            let rank = BenchRank {
                session: self,
                all,
                parts: self.parts(all)?,
                casualty: &casualty,
            };
            measure_all(all, &self.options.output, plan.clone(), |key| {
                self.options
                    .near
                    .while_near(all, || rank.measure(key, clock, global.time()?))
            })
        });
        let found = found.map_err(Failure::run)?;
        let found = match casualty.into_inner() {
            // The others know only that it left.
            Some(why) => Err(Failure::Run(why)),
            // All ranks fail alike, and rank 0 knows why.
            None => found
                .into_iter()
                .next()
                .unwrap_or_else(|| Err(Failure::run("there is no rank 0"))),
        };
        match (found, allowed_cores().len()) {
            // That explains most of what fails then: who shares a core is late for every common start.
            (Err(Failure::Run(why)), cores) if cores < self.ranks() as usize => {
                let (threads, cores) =
                    (count(self.ranks() as usize, "thread"), count(cores, "core"));
                Err(Failure::Run(format!("{why} ({threads} on {cores})")))
            }
            (found, _) => found,
        }
    }

    /// A communicator for every number of ranks, where this rank is one of them. All ranks call this.
    fn parts(&self, all: &ThreadComm) -> Result<Vec<(u32, Option<ThreadComm>)>, Failure> {
        let part = |size: &u32| {
            let color = (all.rank() < *size).then_some(0);
            Ok((
                *size,
                block_on_ready(all.split(color, all.rank())).map_err(Failure::run)?,
            ))
        };
        self.sizes.iter().map(part).collect()
    }

    fn plan(&self, read: &BenchCounter) -> Result<BenchPlan, Failure> {
        let Self {
            options, groups, ..
        } = self;
        let method = options.method.method(0)?;
        let cores = allowed_cores().len();
        let clock = if read.instead_of.is_none() {
            "tsc"
        } else {
            "raw"
        };
        let factors = Factors::default()
            .with("program", &concat!("downbeat ", env!("CARGO_PKG_VERSION")))
            .with("ranks", &self.ranks())
            .with("cores", &cores)
            .with("host", &machine::host_name())
            .with("clock", &clock);
        let mut factors = options
            .near
            .factors(options.method.factors(machine::factors(factors))?);
        factors = options.sync.factors(factors, &method)?;
        if let Some(skew) = &options.skew {
            factors = factors.with("skew", skew);
        }
        let facts = match &read.instead_of {
            None => Factors::default()
                .with("tsc_hz", &read.rate.hz())
                .with("tsc_uncertainty_ppm", &(read.uncertainty * 1e6)),
            Some(why) => Factors::default().with("no tsc", why),
        };
        let note = read.instead_of.as_ref().map_or_else(String::new, |why| {
            format!(" (no time stamp counter: {why})")
        });
        let who = format!(
            "{} on {}, clock {clock}{note}",
            count(self.ranks() as usize, "thread"),
            count(cores, "core")
        );
        let headline = headline(&who, &method);
        Ok(BenchPlan {
            groups: groups.clone(),
            seed: options.seed,
            factors,
            facts,
            headline,
        })
    }
}

/// What a thread measures with.
struct BenchRank<'a> {
    session: &'a ThreadBench<'a>,
    all: &'a ThreadComm,
    parts: Vec<(u32, Option<ThreadComm>)>,
    /// What the first rank had to say that failed while others were waiting for it.
    casualty: &'a OnceLock<String>,
}

impl BenchRank<'_> {
    /// One group. Ranks that do not take part only hear how it went.
    fn measure(
        &self,
        key: &GroupKey,
        clock: &impl Clock,
        time: Time,
    ) -> Result<Option<Measured>, Failure> {
        let method = self.session.options.method.method(key.bytes)?;
        let part = self
            .parts
            .iter()
            .find(|(size, _)| *size == key.ranks)
            .and_then(|(_, part)| part.as_ref());
        let mut measured = Ok(None);
        if let Some(comm) = part {
            let kind = key.operation.parse().map_err(Failure::run)?;
            let stage = Stage {
                comm,
                together: &ByMessages(comm),
                clock,
                time,
            };
            let mut operation = OwnOperation { kind, comm };
            measured = method.measure_blocking(&stage, &mut operation);
        }
        match measured {
            // It leaves, and so nobody goes on waiting for it.
            Err(why) if why.is_of_one_rank() => {
                let why = format!("rank {}: {key}: {why}", self.all.rank());
                // Those that fail because it left come later.
                let _ = self.casualty.set(why.clone());
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
    use downbeat_clock_core::Ticks;
    use std::time::Instant;

    #[derive(Parser)]
    struct ParsedBench {
        #[command(flatten)]
        options: ThreadBenchOptions,
    }

    /// Counts nanoseconds, or nothing.
    struct StoppableClock {
        began: Instant,
        stands: bool,
    }

    impl Clock for StoppableClock {
        fn ticks(&self) -> Ticks {
            Ticks(if self.stands {
                0
            } else {
                self.began.elapsed().as_nanos() as u64
            })
        }
    }

    #[test]
    fn a_rank_that_fails_alone_is_heard_and_leaves_nobody_waiting() {
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
        };
        let base = ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
        let read = BenchCounter {
            rate: TickRate::NANOSECOND,
            uncertainty: 0.0,
            instead_of: None,
        };
        let began = Instant::now();
        // It waits for the first start for ever.
        let clocks = [false, true, false].map(|stands| StoppableClock { began, stands });
        match session.among(&clocks, base, |_| 0, &read) {
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
