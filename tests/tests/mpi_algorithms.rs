//! A program for `mpirun`: every algorithm over MPI, on ranks with clocks of known errors, compared with true time.
//! True time exists because all ranks of one machine read one clock.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod job;
mod messages;
mod yielding_recv;

use std::cell::Cell;
use std::thread;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Ticks, Timestamp};
use downbeat_sync::RankPlacement;
use downbeat_sync::payload::Payload;
use downbeat_sync::{
    Algorithm, Comm, CommError, LocalClock, MpiComm, MpiError, SyncError, Synchronized,
};
use downbeat_timers::skew::{Skew, SkewedClock, Truth};
use downbeat_timers::{SystemClock, SystemClockId};
use job::job;
use messages::{recv, send};
use mpi::Threading;
use mpi::environment::threading_support;
use mpi::topology::SimpleCommunicator;

type Skewed = SkewedClock<SystemClock>;

const FLAT: [&str; 14] = [
    "none",
    "skampi/skampi/6",
    "skampi/mean-rtt/5",
    "nbcbench/skampi/6",
    "jk/3/skampi/6",
    "jk/1/trace-collector/5",
    "hca/3/skampi/6",
    "hca2/3/skampi/6",
    "hca3/3/skampi/6",
    "hca3/3/skampi/6/recompute",
    "hca3/3/mean-rtt/6",
    "hca3/3/trace-collector/6",
    "hca3-offset/skampi/6",
    "cube/3/6",
];

const HIERARCHIES: [&str; 7] = [
    "h2hca(hca3/3/skampi/6,skampi/skampi/6)",
    "h2hca(cube/3/6,cube/1ms/6)",
    "h2hca(nbcbench/skampi/6,hca3-offset/skampi/6)",
    "h3hca(jk/3/skampi/6,hca2/3/skampi/6,hca3/3/skampi/6)",
    "h3hca(skampi/skampi/6,hca/3/skampi/6,hca3-offset/skampi/6)",
    "h3hca(hca3/3/mean-rtt/6,hca2/3/trace-collector/6,skampi/mean-rtt/5)",
    "hlhca(rack=cube/3/6,node=hca3/3/skampi/6,numa=skampi/skampi/6,rank=skampi/skampi/6)",
];

fn main() {
    job(Threading::Serialized, |world| {
        let ranks = Ranks::new(MpiComm::duplicate(world).unwrap());
        for label in FLAT {
            ranks.assert_within_the_bounds(
                label,
                &Setting {
                    skew: distinct(label),
                    ..ALIKE
                },
            );
        }
        for label in HIERARCHIES {
            ranks.assert_within_the_bounds(
                label,
                &Setting {
                    skew: ahead,
                    place: round_robin,
                    ..ALIKE
                },
            );
        }
        ranks.a_line_learns_the_drift_and_an_offset_does_not();
        ranks.one_model_serves_a_node_that_shares_a_clock();
        ranks.ranks_that_mpi_finds_on_one_node_share_its_clock();
        ranks.a_source_that_only_claims_to_be_the_same_is_refused_on_all_ranks();
        ranks.different_algorithms_are_an_error_on_all_ranks();
        ranks.a_clock_that_steps_during_a_synchronization_fails_it_on_all_ranks();
        drop(ranks);
        a_rank_may_be_a_thread_that_mpi_allows();
    });
}

/// This rank and the job.
struct Ranks {
    comm: MpiComm,
    raw: SystemClock,
    /// True time, the same on all ranks.
    truth: ClockModel<Counter, Truth>,
}

/// Properties that differ between ranks.
#[derive(Clone, Copy)]
struct Setting {
    skew: fn(u32) -> Skew,
    place: fn(u32) -> RankPlacement,
    source: fn(u32) -> u64,
}

/// Setting of equal ranks.
const ALIKE: Setting = Setting {
    skew: |_| Skew::default(),
    place: |_| RankPlacement::default(),
    source: |_| 7,
};

/// Clocks ahead by very different amounts.
fn ahead(rank: u32) -> Skew {
    let rank = i64::from(rank);
    Skew {
        offset: Duration::from_millis(rank * rank * 700 - 1_000),
        ..Skew::default()
    }
}

/// Clocks that also drift by some parts per million.
fn drifting(rank: u32) -> Skew {
    Skew {
        drift: f64::from(rank * 37 % 11) * 1e-6 - 5e-6,
        ..ahead(rank)
    }
}

/// Skews of clocks that the algorithm can correct.
fn distinct(label: &str) -> fn(u32) -> Skew {
    if label == "none" {
        |_| Skew::default()
    } else {
        ahead
    }
}

/// Two sockets per node, and ranks placed round-robin, as some launchers do; with racks, fewer ranks share a node.
fn round_robin(rank: u32) -> RankPlacement {
    RankPlacement {
        rack: rank % 2,
        numa: rank / 6,
        ..RankPlacement::new(rank % 3, rank / 3 % 2)
    }
}

/// Outcome of a rank, known to all ranks.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    end: End,
    /// Difference of its global clock from that of rank 0 right after the synchronization.
    error: i64,
    /// Stated bound of that difference.
    bound: i64,
    steepness: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Synchronized,
    /// No line fits the offsets, or no offset agrees with all exchanges, or a clock seemed to step.
    Unfit,
    OtherRank,
    Otherwise,
}

impl End {
    fn new(result: &Result<Synchronized, SyncError>) -> Self {
        match result {
            Ok(_) => Self::Synchronized,
            Err(SyncError::Model(_) | SyncError::Pair { .. }) => Self::Unfit,
            Err(SyncError::OtherRank(_)) => Self::OtherRank,
            Err(_) => Self::Otherwise,
        }
    }
}

impl Payload for Outcome {
    const WORDS: usize = 4;

    fn put(self, words: &mut [u64; 6]) {
        words[..4].copy_from_slice(&[
            self.end as u64,
            self.error as u64,
            self.bound as u64,
            self.steepness.to_bits(),
        ]);
    }

    fn get(words: &[u64; 6]) -> Option<Self> {
        let ends = [
            End::Synchronized,
            End::Unfit,
            End::OtherRank,
            End::Otherwise,
        ];
        Some(Self {
            end: ends.into_iter().find(|end| *end as u64 == words[0])?,
            error: words[1] as i64,
            bound: words[2] as i64,
            steepness: f64::from_bits(words[3]),
        })
    }
}

impl Ranks {
    fn new(comm: MpiComm) -> Self {
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let own = ClockModel::through(raw.ticks(), Timestamp::ORIGIN, SystemClock::RATE).unwrap();
        let truth = share(&comm, own)[0];
        Self { comm, raw, truth }
    }

    fn me(&self) -> u32 {
        self.comm.rank()
    }

    fn size(&self) -> u32 {
        self.comm.size()
    }

    fn clock(&self, skew: Skew) -> Skewed {
        Skewed::new(self.raw, self.truth, skew).unwrap()
    }

    /// Synchronizes by `label`; returns the result of this rank and the outcomes of all.
    fn synchronize(
        &self,
        label: &str,
        setting: &Setting,
    ) -> (Result<Synchronized, SyncError>, Vec<Outcome>) {
        let Setting {
            skew,
            place,
            source,
        } = setting;
        let clock = self.clock(skew(self.me()));
        let base = Skewed::nominal_model().unwrap();
        let me = LocalClock::new(&clock, base)
            .source(source(self.me()))
            .placement(place(self.me()));
        let result = label
            .parse::<Algorithm>()
            .unwrap()
            .synchronize_blocking(&me, &self.comm);
        let now = share(&self.comm, clock.true_now())
            .into_iter()
            .max()
            .unwrap();
        // Global time is that of rank 0.
        let here = result
            .map_or(base.renamed(), |found| found.model)
            .apply(clock.ticks_at(now));
        let mine = Outcome {
            end: End::new(&result),
            error: (here - share(&self.comm, here)[0]).as_nanos(),
            bound: result.map_or(-1, |found| found.bound.at_time(here).as_nanos()),
            steepness: result.map_or(0.0, |found| {
                (found.model.rate().nanos_per_tick() - 1.0).abs()
            }),
        };
        (result, share(&self.comm, mine))
    }

    /// Retries until the clocks can be fitted: on a busy machine, points within some microseconds can be so far off that
    /// the line through them is not that of a clock. Then all ranks must fail, and one must report it.
    fn synchronize_with_retries(
        &self,
        label: &str,
        setting: &Setting,
    ) -> (Synchronized, Vec<Outcome>) {
        let mut why = None;
        for _ in 0..100 {
            let (result, outcomes) = self.synchronize(label, setting);
            why = result.err().or(why);
            if outcomes
                .iter()
                .all(|outcome| outcome.end == End::Synchronized)
            {
                return (result.unwrap(), outcomes);
            }
            let count = |end| outcomes.iter().filter(|outcome| outcome.end == end).count();
            let (unfit, other) = (count(End::Unfit), count(End::OtherRank));
            assert!(
                unfit > 0 && unfit + other == outcomes.len(),
                "{label}: {result:?} here, {outcomes:?}"
            );
        }
        panic!("{label}: the clocks could not be fitted in 100 tries: {why:?}");
    }

    /// Checks that the global clocks are right to within the stated bounds.
    fn assert_within_the_bounds(&self, label: &str, setting: &Setting) -> Synchronized {
        let (mine, outcomes) = self.synchronize_with_retries(label, setting);
        assert_eq!(outcomes[0].error, 0, "{label}: {outcomes:?}");
        for outcome in &outcomes {
            assert!(outcome.error.abs() <= outcome.bound, "{label}: {outcome:?}");
        }
        mine
    }

    /// Lines learn the drift; for offsets the drift is the whole error, and known. The offsets of a line may be equal by chance, to
    /// a nanosecond: then its drift is zero.
    fn a_line_learns_the_drift_and_an_offset_does_not(&self) {
        for (label, learns) in [
            ("hca3/3/skampi/6", true),
            ("jk/3/skampi/6", true),
            ("hca3-offset/skampi/6", false),
        ] {
            let learned = || {
                let (_, outcomes) = self.synchronize_with_retries(
                    label,
                    &Setting {
                        skew: drifting,
                        ..ALIKE
                    },
                );
                assert_eq!(outcomes[0].steepness, 0.0, "{label}: {outcomes:?}");
                let steep = outcomes[1..]
                    .iter()
                    .filter(|outcome| outcome.steepness > 1e-12)
                    .count();
                assert!(learns || steep == 0, "{label}: {outcomes:?}");
                !learns || steep == outcomes.len() - 1
            };
            assert!(
                (0..100).any(|_| learned()),
                "{label}: a hundred times a rank learned no drift"
            );
        }
    }

    /// Nodes of two ranks each: the clocks of a node are ahead by the same amount.
    fn one_model_serves_a_node_that_shares_a_clock(&self) {
        let setting = Setting {
            skew: |rank| ahead(rank / 2),
            place: |rank| RankPlacement::new(rank / 2, 0),
            source: |rank| u64::from(rank / 2),
        };
        for label in [
            "h2hca(hca3/3/skampi/6,prop)",
            "h3hca(hca3/3/skampi/6,none,prop)",
        ] {
            let mine = self.assert_within_the_bounds(label, &setting);
            let models = share(&self.comm, mine.model);
            for (rank, model) in models.iter().enumerate() {
                assert!(
                    *model == models[rank / 2 * 2],
                    "{label}: rank {rank} and its node differ"
                );
                assert!(
                    rank < 2 || *model != models[rank - 2],
                    "{label}: rank {rank} and another node agree"
                );
            }
        }
    }

    fn ranks_that_mpi_finds_on_one_node_share_its_clock(&self) {
        let me = LocalClock::new(&self.raw, self.truth.renamed());
        let me = me.placement(RankPlacement::new(self.comm.node().unwrap(), 0));
        let algorithm: Algorithm = "h2hca(hca3/3/skampi/6,prop)".parse().unwrap();
        let found = algorithm.synchronize_blocking(&me, &self.comm).unwrap();
        assert_eq!(found.model, self.truth.renamed());
    }

    /// Emulates hosts with one boot id and different clocks.
    fn a_source_that_only_claims_to_be_the_same_is_refused_on_all_ranks(&self) {
        let Some(liar) = self.size().checked_sub(1).filter(|last| *last > 0) else {
            return;
        };
        let offset = Duration::from_secs(1_000);
        let clock = self.clock(Skew {
            offset: if self.me() == liar {
                offset
            } else {
                Duration::ZERO
            },
            ..Skew::default()
        });
        let me = LocalClock::new(&clock, Skewed::nominal_model().unwrap()).source(7);
        let result = "prop"
            .parse::<Algorithm>()
            .unwrap()
            .synchronize_blocking(&me, &self.comm);
        if self.me() == liar {
            let near = |found: Duration, width| (found - offset).abs() <= width;
            assert!(
                matches!(result, Err(SyncError::OtherSource { offset, half_width, .. }) if near(offset, half_width))
            );
        } else {
            assert_eq!(result, Err(SyncError::OtherRank(liar)));
        }
    }

    fn different_algorithms_are_an_error_on_all_ranks(&self) {
        if self.size() == 1 {
            return;
        }
        for odd_one in [0, self.size() - 1] {
            let label = if self.me() == odd_one {
                "jk/10/skampi/10"
            } else {
                "jk/10/skampi/11"
            };
            let me = LocalClock::new(&self.raw, self.truth.renamed());
            let result = label
                .parse::<Algorithm>()
                .unwrap()
                .synchronize_blocking(&me, &self.comm);
            assert_eq!(result, Err(SyncError::DifferentAlgorithms));
        }
    }

    fn a_clock_that_steps_during_a_synchronization_fails_it_on_all_ranks(&self) {
        if self.size() == 1 {
            return;
        }
        let labels = [
            "hca/3/skampi/10",
            "hca2/3/mean-rtt/10",
            "hca3/3/trace-collector/10",
            "jk/3/skampi/10",
            "nbcbench/skampi/50",
        ];
        for label in labels {
            for stepping in [0, self.size() - 1] {
                let steps = if self.me() == stepping { 25 } else { u64::MAX };
                let clock = Stepping {
                    clock: self.raw,
                    steps,
                    reads: Cell::new(0),
                };
                let me = LocalClock::new(&clock, self.truth.renamed());
                let result = label
                    .parse::<Algorithm>()
                    .unwrap()
                    .synchronize_blocking(&me, &self.comm);
                let own = |why| matches!(why, SyncError::Pair { .. } | SyncError::Model(_));
                let ends = share(
                    &self.comm,
                    [
                        u64::from(result.is_err()),
                        u64::from(result.is_err_and(own)),
                    ],
                );
                assert!(
                    ends.iter().all(|[failed, _]| *failed == 1),
                    "{label}, rank {stepping} steps: {ends:?}"
                );
                assert!(
                    ends.iter().any(|[_, own]| *own == 1),
                    "{label}, rank {stepping} steps: {ends:?}"
                );
            }
        }
    }
}

/// Returns the values of all ranks.
fn share<P: Payload>(comm: &MpiComm, mine: P) -> Vec<P> {
    (0..comm.size()).for_each(|to| send(comm, to, mine).unwrap());
    (0..comm.size())
        .map(|from| recv(comm, from))
        .collect::<Result<_, CommError>>()
        .unwrap()
}

/// A clock that steps back by a second after a fixed number of readings.
struct Stepping {
    clock: SystemClock,
    steps: u64,
    reads: Cell<u64>,
}

impl Clock for Stepping {
    fn ticks(&self) -> Ticks {
        let reads = self.reads.replace(self.reads.get() + 1);
        Ticks(self.clock.ticks().0 - reads / self.steps * 1_000_000_000)
    }
}

fn a_rank_may_be_a_thread_that_mpi_allows() {
    if threading_support() < Threading::Serialized {
        return;
    }
    let program = || {
        let ranks = Ranks::new(MpiComm::duplicate(&SimpleCommunicator::world()).unwrap());
        ranks.assert_within_the_bounds(
            "hca3-offset/skampi/6",
            &Setting {
                skew: ahead,
                ..ALIKE
            },
        );
    };
    thread::spawn(program).join().unwrap();
    // Two threads with a communicator each could call MPI at the same time.
    let here = MpiComm::duplicate(&SimpleCommunicator::world()).unwrap();
    if threading_support() == Threading::Serialized {
        let duplicate = || MpiComm::duplicate(&SimpleCommunicator::world()).map(drop);
        let there = thread::spawn(duplicate).join().unwrap();
        assert_eq!(there, Err(MpiError::SecondThread));
    }
    drop(here);
}
