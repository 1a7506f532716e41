//! Time to merge the profiles of many ranks, relative to an `MPI_Reduce` of as many bytes as the
//! report has: `cargo bench -p downbeat-regions --features mpi --bench regions_mpi --no-run`, and then
//! `mpirun -np 16` on the program that cargo names; `cargo xtask bench` does both. With `--gate`,
//! the exit code is 1 if the promised limit is exceeded.
//!
//! The two alternate, so that changes of frequency and load by other processes affect both. A turn
//! lasts from the first rank's start until rank 0 has the result: the ranks of one machine read one
//! clock.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark aborts on errors")]
#![expect(unsafe_code, reason = "the baseline calls MPI directly")]

use std::cell::Cell;
use std::hint::black_box;
use std::process::ExitCode;

use downbeat_clock_core::histogram::DecimalBin;

use downbeat_clock_core::region::RegionEvent;
use downbeat_clock_core::{Clock, Duration};
use downbeat_records::stats::Sample;
use downbeat_regions::{Overhead, Profile, RegionProfile, ThreadEvent, gather};
use downbeat_sync::payload::Payload;
use downbeat_sync::{
    Comm, CommError, MpiComm, ThreadCluster, ThreadComm, block_on_ready, collective,
};
use downbeat_timers::{SystemClock, SystemClockId};
use mpi::ffi::{self, MPI_Comm};
use mpi::traits::{AsRaw, Equivalence};

const REGIONS: u32 = 1_000;
/// Number of turns of each.
const TURNS: usize = 300;
/// Maximum median of the ratios of turns.
const MOST: f64 = 1.7;

fn main() -> ExitCode {
    let universe = mpi::initialize().expect("the first to initialize MPI");
    let world = universe.world();
    let comm = MpiComm::duplicate(&world).expect("MPI runs");
    let clock = SystemClock::detect(SystemClockId::MonotonicRaw).expect("Linux has it");
    let profile = profile(comm.rank());
    let bytes = bytes_of_a_report();
    let mut reduction = SumReduction::new(world.as_raw(), bytes);

    // Dropping the report is not measured.
    let mut report = None;
    let turn = |work: &mut dyn FnMut()| time(&comm, &clock, work);
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        drop(report.take());
        let merging = turn(&mut || {
            report = block_on_ready(gather(&profile, &comm)).expect("all ranks are there");
        });
        turns.push([merging, turn(&mut || reduction.call())]);
    }
    if comm.rank() == 0
        && !show(&turns, comm.size(), bytes)
        && std::env::args().any(|argument| argument == "--gate")
    {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Invented profile of a rank: every seventh has little work.
fn profile(rank: u32) -> Profile {
    let region = |i: u32| {
        let length = if rank % 7 == 6 {
            6
        } else {
            4_000 + 100 * u64::from(i)
        };
        let event = |length, number| {
            Some(ThreadEvent {
                event: RegionEvent { length, number },
                thread: 0,
            })
        };
        let mut bins = vec![
            (DecimalBin::containing(length), 900),
            (DecimalBin::containing(2 * length), 99),
        ];
        bins.push((DecimalBin::containing(900_000), 1));
        RegionProfile {
            threads: 1,
            events: 1_000,
            total: 1_098 * length + 900_000 + u64::from(rank),
            longest: event(900_000, 1),
            second_longest: event(2 * length, 500),
            shortest: event(length, 2),
            bins,
            ..RegionProfile::new(&format!("a region of the program, number {i}"))
        }
    };
    Profile::new(
        "clock",
        Duration::from_nanos(1),
        Overhead::default(),
        (0..REGIONS).map(region).collect(),
    )
}

/// Number of bytes of a report of two ranks, which one of these threads sends for itself and the one after it.
fn bytes_of_a_report() -> usize {
    let sent = ThreadCluster::new(18).run(|comm| {
        let counting = Counting {
            comm,
            sent: Cell::new(0),
        };
        block_on_ready(gather(&profile(comm.rank()), &counting)).expect("all ranks are there");
        counting.sent.get()
    });
    let sent = sent.expect("no rank panics");
    sent[16] as usize
}

/// Communicator that counts sent bytes.
struct Counting<'a> {
    comm: &'a ThreadComm,
    sent: Cell<u64>,
}

impl Comm for Counting<'_> {
    fn rank(&self) -> u32 {
        self.comm.rank()
    }
    fn size(&self) -> u32 {
        self.comm.size()
    }
    async fn send<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.sent
            .set(self.sent.get() + (P::WORDS * size_of::<u64>()) as u64);
        self.comm.send(to, payload).await
    }
    async fn send_sync<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.comm.send_sync(to, payload).await
    }
    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        self.comm.recv(from).await
    }
    async fn send_bytes(&self, to: u32, bytes: &[u8]) -> Result<(), CommError> {
        self.sent.set(self.sent.get() + bytes.len() as u64);
        self.comm.send_bytes(to, bytes).await
    }
    async fn recv_bytes(&self, from: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        self.comm.recv_bytes(from, bytes).await
    }
    async fn split(&self, _: Option<u32>, _: u32) -> Result<Option<Self>, CommError> {
        Ok(None)
    }
}

/// Sums arrays of integers with `MPI_Reduce`.
struct SumReduction {
    comm: MPI_Comm,
    mine: Vec<u64>,
    sums: Vec<u64>,
}

impl SumReduction {
    fn new(comm: MPI_Comm, bytes: usize) -> Self {
        let words = bytes.div_ceil(size_of::<u64>());
        Self {
            comm,
            mine: vec![1; words],
            sums: vec![0; words],
        }
    }

    fn call(&mut self) {
        let (mine, sums) = (self.mine.as_ptr().cast(), self.sums.as_mut_ptr().cast());
        let (words, word) = (self.mine.len() as i32, u64::equivalent_datatype().as_raw());
        // SAFETY: a constant.
        let sum = unsafe { ffi::RSMPI_SUM };
        // SAFETY: MPI is initialized, and both buffers have the given number of elements.
        unsafe { ffi::MPI_Reduce(mine, sums, words, word, sum, 0, self.comm) };
        black_box(&mut self.sums);
    }
}

/// Nanoseconds from the first rank's start to the end of rank 0, on rank 0.
fn time(comm: &MpiComm, clock: &SystemClock, work: &mut dyn FnMut()) -> f64 {
    block_on_ready(collective::barrier(comm)).expect("all ranks are there");
    let start = clock.ticks();
    work();
    let end = clock.ticks();
    let first = block_on_ready(collective::all_reduce(comm, start.0, u64::min))
        .expect("all ranks are there");
    (end.0 - first) as f64
}

/// Returns true if the ratio is within the limit.
fn show(turns: &[[f64; 2]], ranks: u32, bytes: usize) -> bool {
    let median = |of: &dyn Fn(&[f64; 2]) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(of).collect();
        Sample::new(&mut all).expect("there were turns").median()
    };
    let ratio = median(&|[merging, reduction]| merging / reduction);
    println!("| rank 0 of {ranks}, medians of {TURNS} turns | us |\n|---|---|");
    println!(
        "| merging {REGIONS} regions, reports of {bytes} bytes | {:.0} |",
        median(&|turn| turn[0]) / 1e3
    );
    println!(
        "| MPI_Reduce of as many bytes | {:.0} |",
        median(&|turn| turn[1]) / 1e3
    );
    println!("\n| bound | found | must not exceed |\n|---|---|---|");
    println!("| merging / MPI_Reduce | {ratio:.2} | {MOST:.2} |");
    if ratio > MOST {
        println!("missed: merging / MPI_Reduce");
    }
    ratio <= MOST
}
