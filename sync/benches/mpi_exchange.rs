//! Time of a synchronization over MPI compared with a hand-written ping-pong, and its accuracy:
//! `cargo bench -p downbeat-sync --features mpi --bench mpi_exchange --no-run`, and then `mpirun
//! -np 2` on the program that cargo names; `cargo xtask bench` does both. With `--gate`, bounds of
//! the project that are missed are listed, and the exit code is 1.
//!
//! The two alternate in turns of a millisecond or less, so that neither a change of frequency nor
//! the load of other programs favours one of them. The ranks of one machine read one counter, which
//! is the truth for the error: one of them sees it through a clock with a known error.

#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]
#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::ffi::c_int;
use std::hint::black_box;
use std::process::ExitCode;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Local, Timestamp};
use downbeat_sync::payload::Payload;
use downbeat_sync::{
    Algorithm, Comm, CommError, LocalClock, MpiComm, Synchronized, block_on_ready,
};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::cores::pin_rank;
use downbeat_timers::skew::{Skew, SkewedClock, Truth};
use downbeat_timers::{SystemClock, SystemClockId, TscClock};
use mpi::ffi::{self, MPI_Comm};
use mpi::traits::{AsRaw, Equivalence};

/// Algorithms whose error is measured: that of the peers' figures, and one that takes longer. The
/// asymmetry of the latency varies by some nanoseconds within a tenth of a second, so a line that
/// was learned in less cannot predict ten seconds.
const LABELS: [&str; 2] = ["hca3/1000/skampi/100", "hca3/10000/skampi/100"];
/// Algorithms whose time is measured: one whose messages are so few that most turns are not
/// disturbed, and the one of the peers' figures; each with its exchanges and turns.
const TIMED: [(&str, usize, usize); 2] = [
    ("hca3/10/skampi/100", 10 * 100, 1_000),
    (LABELS[0], 1_000 * 100, 50),
];
/// Number of measurements of the error.
const RUNS: usize = 10;

struct MpiBench {
    comm: MpiComm,
    world: MPI_Comm,
    tsc: TscClock,
    /// Model from the counter to local time, the same on both ranks.
    local: ClockModel<Counter, Local>,
}

fn main() -> ExitCode {
    let universe = mpi::initialize().expect("the first to initialize MPI");
    let world = universe.world();
    let bench = MpiBench::new(
        MpiComm::duplicate(&world).expect("MPI runs"),
        world.as_raw(),
    );

    let costs = TIMED.map(|(label, exchanges, turns)| bench.cost(label, exchanges, turns));
    let [quick, patient] = LABELS.map(|label| bench.errors(label));
    let bounds = [
        (
            format!(
                "`{}` / ping-pong by hand of as many messages, time",
                TIMED[0].0
            ),
            costs[0].ratio,
            1.10,
        ),
        (
            format!(
                "`{}` / ping-pong by hand of as many messages, time",
                TIMED[1].0
            ),
            costs[1].ratio,
            1.10,
        ),
        (
            format!("`{}`, median error right after, ns", LABELS[0]),
            quick.now,
            25.0,
        ),
        (
            format!("`{}`, median error 10 s later, ns", LABELS[1]),
            patient.later,
            50.0,
        ),
    ];
    let missed: Vec<_> = bounds
        .iter()
        .filter(|(_, found, most)| found > most)
        .map(|(name, ..)| name.as_str())
        .collect();
    if bench.comm.rank() == 0 {
        println!("| rank 0 of 2 | us | ns per exchange |\n|---|---|---|");
        for ((label, exchanges, _), cost) in TIMED.iter().zip(&costs) {
            for (name, nanos) in [
                (*label, cost.by_algorithm),
                ("as many by hand", cost.by_hand),
            ] {
                println!(
                    "| {name} | {:.1} | {:.0} |",
                    nanos / 1e3,
                    nanos / *exchanges as f64
                );
            }
        }
        println!("\n| bound | found | must not exceed |\n|---|---|---|");
        for (name, found, most) in &bounds {
            println!("| {name} | {found:.2} | {most:.2} |");
        }
        println!(
            "\n| algorithm | took, ms | scatter, ns | error right after, ns | 10 s later, ns |\n|---|---|---|---|---|"
        );
        for (
            label,
            MedianErrors {
                now,
                later,
                scatter,
                session,
            },
        ) in LABELS.iter().zip([&quick, &patient])
        {
            println!(
                "| {label} | {:.1} | {scatter:.2} | {now:.1} | {later:.1} |",
                session / 1e6
            );
        }
        if !missed.is_empty() {
            println!("missed: {}", missed.join("; "));
        }
    }
    // Both ranks have the same results.
    u8::from(!missed.is_empty() && std::env::args().any(|argument| argument == "--gate")).into()
}

impl MpiBench {
    fn new(comm: MpiComm, world: MPI_Comm) -> Self {
        assert_eq!(comm.size(), 2, "this is about two ranks");
        pin_rank(comm.rank()).expect("the core is allowed");
        let tsc = TscClock::detect().expect("this is about the time stamp counter");
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).expect("Linux has it");
        let calibration =
            calibrate_during(&tsc, &raw, Duration::from_millis(100)).expect("both clocks run");
        let local = value_of_rank_0(&comm, calibration.model().expect("in range"));
        Self {
            comm,
            world,
            tsc,
            local,
        }
    }

    /// Compares an algorithm with a ping-pong of as many exchanges.
    fn cost(&self, label: &str, exchanges: usize, turns: usize) -> MedianCost {
        let algorithm: Algorithm = label.parse().expect("a label");
        let mut times = [vec![], vec![]];
        for _ in 0..turns {
            times[0].push(self.time(|| {
                let me = LocalClock::new(&self.tsc, self.local);
                // Ignores failures: on a busy machine, points that span so little time give no
                // line.
                let _ = black_box(algorithm.synchronize_blocking(&me, &self.comm));
            }));
            times[1].push(self.time(|| self.by_hand(exchanges)));
        }
        let ratio = median(
            times[0]
                .iter()
                .zip(&times[1])
                .map(|(algorithm, hand)| algorithm / hand),
        );
        let [by_algorithm, by_hand] = times.map(|times| median(times.into_iter()));
        MedianCost {
            ratio: value_of_rank_0(&self.comm, FloatPayload(ratio)).0,
            by_algorithm,
            by_hand,
        }
    }

    /// Returns the time of the work in nanoseconds, on rank 0.
    fn time(&self, work: impl FnOnce()) -> f64 {
        // Waits until both ranks are ready.
        value_of_rank_0(&self.comm, ());
        let start = self.local.apply(self.tsc.open());
        work();
        (self.local.apply(self.tsc.close()) - start).as_nanos() as f64
    }

    /// Sends the messages of the algorithm, with the same number of words and of clock readings.
    fn by_hand(&self, exchanges: usize) {
        let client = self.comm.rank() == 1;
        // The ranks agree on the algorithm.
        self.agree_by_hand::<2>();
        for exchange in 0..exchanges as u64 {
            // Before every measurement the reference sends a message that it is ready.
            if exchange % 100 == 0 {
                if client {
                    self.recv_by_hand::<0>();
                } else {
                    self.send_by_hand([0; 0]);
                }
            }
            if client {
                let sent = self.tsc.open();
                self.send_by_hand([exchange]);
                let answered = self.recv_by_hand::<1>();
                let received = self.tsc.close();
                black_box((sent, answered, received));
            } else {
                black_box(self.recv_by_hand::<1>());
                self.send_by_hand([self.tsc.ticks().0]);
            }
        }
        // The reference sends the quality of its own clock, and the ranks agree on success. The closing exchange is left out:
        // it has ten exchanges.
        if client {
            self.recv_by_hand::<4>();
        } else {
            self.send_by_hand([0; 4]);
        }
        self.agree_by_hand::<1>();
    }

    fn agree_by_hand<const N: usize>(&self) {
        if self.comm.rank() == 1 {
            self.send_by_hand([0; N]);
            self.recv_by_hand::<N>();
        } else {
            self.recv_by_hand::<N>();
            self.send_by_hand([0; N]);
        }
    }

    fn other(&self) -> c_int {
        1 - self.comm.rank() as c_int
    }

    fn send_by_hand<const N: usize>(&self, words: [u64; N]) {
        let (buffer, word) = (words.as_ptr().cast(), u64::equivalent_datatype().as_raw());
        // SAFETY: MPI is running, and the buffer has `N` words.
        unsafe { ffi::MPI_Send(buffer, N as c_int, word, self.other(), 0, self.world) };
    }

    fn recv_by_hand<const N: usize>(&self) -> [u64; N] {
        let mut words = [0; N];
        let (buffer, word) = (
            words.as_mut_ptr().cast(),
            u64::equivalent_datatype().as_raw(),
        );
        // SAFETY: a constant.
        let ignored = unsafe { ffi::RSMPI_STATUS_IGNORE };
        // SAFETY: MPI is running, and the buffer has space for `N` words.
        unsafe {
            ffi::MPI_Recv(
                buffer,
                N as c_int,
                word,
                self.other(),
                0,
                self.world,
                ignored,
            )
        };
        words
    }

    fn errors(&self, label: &str) -> MedianErrors {
        let algorithm: Algorithm = label.parse().expect("a label");
        let skew = Skew {
            offset: Duration::from_millis(3),
            drift: 7e-6,
            ..Skew::default()
        };
        let skew = if self.comm.rank() == 1 {
            skew
        } else {
            Skew::default()
        };
        let clock = SkewedClock::new(self.tsc, self.local.renamed(), skew).expect("a skew");
        let base = SkewedClock::<TscClock>::nominal_model().expect("in range");
        let mut found = [const { vec![] }; 4];
        for _ in 0..RUNS {
            let began = clock.true_now();
            let learned =
                algorithm.synchronize_blocking(&LocalClock::new(&clock, base), &self.comm);
            let Synchronized { model, quality, .. } = learned.expect("the clocks are fitted");
            let now: Timestamp<Truth> = value_of_rank_0(&self.comm, clock.true_now());
            let error = |at| {
                let here = model.apply(clock.ticks_at(at));
                (here - value_of_rank_0(&self.comm, here)).as_nanos().abs() as f64
            };
            let scatter = quality.residual_deviation.unwrap_or_default();
            let values = [
                error(now),
                error(now + Duration::from_secs(10)),
                scatter,
                (now - began).as_nanos() as f64,
            ];
            found
                .iter_mut()
                .zip(values)
                .for_each(|(found, value)| found.push(value));
        }
        // Only the client has these values.
        let [now, later, scatter, session] = found
            .map(|values| value_of_rank(1, &self.comm, FloatPayload(median(values.into_iter()))).0);
        MedianErrors {
            now,
            later,
            scatter,
            session,
        }
    }
}

/// Times of an algorithm and of a ping-pong by hand, in nanoseconds: medians.
struct MedianCost {
    /// Ratio of the times of one turn.
    ratio: f64,
    by_algorithm: f64,
    by_hand: f64,
}

/// Error of rank 1 relative to rank 0, in nanoseconds: medians.
struct MedianErrors {
    /// Right after the synchronization.
    now: f64,
    /// Ten seconds later, computed without waiting.
    later: f64,
    /// Standard deviation of the offsets from the line.
    scatter: f64,
    /// Duration of the synchronization.
    session: f64,
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

#[derive(Clone, Copy)]
struct FloatPayload(f64);

impl Payload for FloatPayload {
    const WORDS: usize = 1;
    fn put(self, words: &mut [u64; 6]) {
        words[0] = self.0.to_bits();
    }
    fn get(words: &[u64; 6]) -> Option<Self> {
        Some(Self(f64::from_bits(words[0])))
    }
}

/// Returns the value of rank 0 on both ranks.
fn value_of_rank_0<P: Payload>(comm: &MpiComm, mine: P) -> P {
    value_of_rank(0, comm, mine)
}

fn value_of_rank<P: Payload>(rank: u32, comm: &MpiComm, mine: P) -> P {
    let value = block_on_ready(async {
        comm.send(1 - comm.rank(), mine).await?;
        let other = comm.recv(1 - comm.rank()).await?;
        Ok::<_, CommError>(if comm.rank() == rank { mine } else { other })
    });
    value.expect("the other rank is there")
}
