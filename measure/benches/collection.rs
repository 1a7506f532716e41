//! Collection of 10,000 observations of 16,384 ranks: `cargo bench -p downbeat-measure --bench collection`. With `-- --gate`,
//! the exit code is 1 when a figure that the project promises is missed.
//!
//! Virtual time is that of the simulated cluster of `Network::typical()`, with 16 ranks per node that share a network card of
//! 12.5 GB/s; the time for comparing values is not in it. Every rank generates its times, as the simulator has no memory for those
//! of all. The memory is that of a process that is rank 0 of a measurement from its begin to the figures, and receives generated
//! times from the other ranks.

#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]
#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::cell::Cell;
use std::process::{Command, ExitCode, Stdio};

use downbeat_clock_core::{Counter, Local, ReadOrdering};
use downbeat_measure::collection::reduce_calls;
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{EachCall, Scheme};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{
    Clock, ClockBasis, ClockModel, Comm, Coordinator, MeasureContext, Method, Operation, TickRate,
    Ticks, Timestamp,
};
use downbeat_records::stats::Sample;
use downbeat_sync::payload::{Payload, Words};
use downbeat_sync::sim::{Clocks, Network, SimCluster, SimComm};
use downbeat_sync::{CommError, collective};

const RANKS: u32 = if cfg!(debug_assertions) { 64 } else { 16_384 };
const CALLS: u32 = if cfg!(debug_assertions) { 100 } else { 10_000 };

/// Argument of the child process whose memory is measured.
const CHILD: &str = "--rank-0";

/// Promised figures.
const MOST_SECONDS: f64 = 2.0;
const MOST_MEGABYTES: f64 = 64.0;

/// Returns times of a call: 10 to 11 us, in some order.
fn nanos(rank: u32, call: usize) -> i64 {
    10_000 + (i64::from(rank) * 7_919 + call as i64 * 104_729) % 1_000
}

/// Collects what the processing with the most messages needs: the run-times, the states, and the slowest ranks' durations.
/// Returns the virtual seconds.
fn simulated() -> f64 {
    let cluster = SimCluster {
        ranks: RANKS,
        ranks_per_node: 16,
        sockets_per_node: 2,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks: Clocks::typical(),
        seed: 1,
    };
    let simulated = cluster.simulate(async |comm: &SimComm| {
        let (rank, mut found) = (comm.rank(), 0);
        let run_time = |call| [0, 0, nanos(rank, call), nanos(rank, call)];
        reduce_calls(comm, CALLS as usize, run_time, |_| found += 1).await?;
        let states = collective::broadcast_bytes(comm, vec![0; CALLS as usize]).await?;
        assert_eq!(states.len(), CALLS as usize);
        reduce_calls(
            comm,
            CALLS as usize,
            |call| [nanos(rank, call)],
            |_| found += 1,
        )
        .await?;
        assert_eq!(found, if rank == 0 { 2 * CALLS } else { 0 });
        Ok::<_, CommError>(())
    });
    let simulated = simulated.expect("no rank waits for ever");
    assert!(simulated.results.iter().all(Result::is_ok));
    (simulated.ended - Timestamp::ORIGIN).as_nanos() as f64 * 1e-9
}

/// Communicator of rank 0, whose other ranks send generated times, and no failure.
struct GeneratedComm;

impl Comm for GeneratedComm {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        RANKS
    }

    async fn send<P: Payload>(&self, _: u32, _: P) -> Result<(), CommError> {
        Ok(())
    }

    async fn send_sync<P: Payload>(&self, _: u32, _: P) -> Result<(), CommError> {
        Ok(())
    }

    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        // None of its ranks is the lowest that failed.
        let words: Words = [u64::MAX; 6];
        P::get(&words).ok_or(CommError::WrongType { from })
    }

    async fn recv_bytes(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        let (words, _) = bytes.as_chunks_mut();
        for (at, word) in words.iter_mut().enumerate() {
            // State, negative begin, end, and the bits of the duration.
            let nanos = nanos(from, at / 4);
            let value = match at % 4 {
                0 | 1 => 0,
                2 => nanos,
                _ => (nanos as f64).to_bits() as i64,
            };
            *word = value.to_le_bytes();
        }
        Ok(())
    }

    async fn split(&self, _: Option<u32>, _: u32) -> Result<Option<Self>, CommError> {
        Ok(Some(Self))
    }
}

impl Coordinator for GeneratedComm {
    async fn barrier(&self) -> Result<(), CommError> {
        Ok(())
    }

    async fn broadcast(&self, value: u64) -> Result<u64, CommError> {
        Ok(value)
    }

    async fn bitwise_or(&self, value: u64) -> Result<u64, CommError> {
        Ok(value)
    }
}

/// Clock that shows 1 us more whenever it is read.
#[derive(Default)]
struct CountingClock(Cell<u64>);

impl Clock for CountingClock {
    fn ticks(&self) -> Ticks {
        self.0.set(self.0.get() + 1_000);
        Ticks(self.0.get())
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Fenced
    }
}

struct Nothing;

impl Operation for Nothing {
    async fn call(&mut self, _: u32) -> Result<(), CommError> {
        Ok(())
    }
}

/// Measures as rank 0; returns the greatest memory of this process.
fn megabytes_of_rank_0() -> f64 {
    let basis =
        ClockModel::<Counter, Local>::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND);
    let context = MeasureContext {
        comm: &GeneratedComm,
        coordinator: &GeneratedComm,
        clock: &CountingClock::default(),
        clock_basis: ClockBasis::Local(basis.expect("a rate")),
    };
    let method = Method {
        warm_up: 0,
        scheme: Scheme::EachCall(EachCall::default()),
        stopping: Stopping::Count { most: CALLS },
        processing: Processing::Median,
        root: 0,
    };
    let measured = method.measure_blocking(&context, &mut Nothing);
    let measured = measured.expect("no rank fails").expect("this is rank 0");
    assert_eq!(measured.observations.len(), CALLS as usize);
    // Each call takes as long as on the slowest of the ranks that send to rank 0, whose numbers are powers of two.
    let senders =
        || core::iter::successors(Some(1), |rank| Some(2 * rank)).take_while(|rank| *rank < RANKS);
    let slowest = |call| senders().map(|rank| nanos(rank, call)).max();
    let mut slowest: Vec<f64> = (0..CALLS as usize)
        .filter_map(slowest)
        .map(|nanos| nanos as f64)
        .collect();
    let median = Sample::new(&mut slowest).expect("there are calls").median();
    assert_eq!(measured.figures[0].nanos, median, "{:?}", measured.figures);
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kilobytes: f64 = kilobytes
        .expect("Linux has it")
        .trim()
        .parse()
        .expect("a number");
    // A kB of the kernel has 1,024 bytes.
    kilobytes * 1_024.0 / 1e6
}

fn main() -> ExitCode {
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    if asked(CHILD) {
        println!("{}", megabytes_of_rank_0());
        return ExitCode::SUCCESS;
    }
    let this = std::env::current_exe().expect("this program has a file");
    let child = Command::new(this)
        .arg(CHILD)
        .stderr(Stdio::inherit())
        .output()
        .expect("it can be started again");
    let megabytes = String::from_utf8_lossy(&child.stdout);
    let megabytes: f64 = megabytes.trim().parse().expect("a number");
    let seconds = simulated();
    println!("| ranks | observations | virtual seconds | rank 0: MB |");
    println!("|---|---|---|---|");
    println!("| {RANKS} | {CALLS} | {seconds:.4} | {megabytes:.1} |");
    if seconds <= MOST_SECONDS && megabytes <= MOST_MEGABYTES {
        return ExitCode::SUCCESS;
    }
    println!("missed: at most {MOST_SECONDS} s and {MOST_MEGABYTES} MB");
    if asked("--gate") {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
