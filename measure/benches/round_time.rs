//! What Round-Time costs beside what it cannot do without: `cargo bench -p downbeat-measure --features mpi --bench round_time
//! --no-run`, and then `mpirun -np 2` on the program that cargo names; `cargo xtask bench` does both. With `--gate`, misses
//! of the bounds that the project promises are named, and the exit code is 1.
//!
//! A round needs a broadcast, which tells its start, the slack that ranks are given to hear of it, and an allreduce, in
//! which they agree on how it went. The floor is a loop of these two calls by hand. The two take turns, so that neither a
//! change of frequency nor a neighbour's load favours one of them.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark has nobody to report to")]
#![expect(unsafe_code, reason = "what is compared with calls MPI by hand")]

use std::process::ExitCode;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global};
use downbeat_measure::{
    Measured, Method, MpiGroup, MpiOperation, OperationSettings, Processing, RoundTime, Scheme,
    Stage, Stopping, Time,
};
use downbeat_records::stats::Sample;
use downbeat_records::{ObservationState, Observations};
use downbeat_sync::{Comm, MpiComm, block_on_ready, collective};
use downbeat_timers::{
    SystemClock, SystemClockId, TscClock, allowed_cores, calibrate_during, pin_to,
};
use mpi::ffi;
use mpi::traits::{AsRaw, Communicator, Equivalence};

/// How often each of the two has its turn.
const TURNS: usize = 30;
const SLICE: Duration = Duration::from_millis(100);
const ROUNDS_BY_HAND: u32 = 20_000;

/// What is promised: overhead beside the floor and the slack, slack beside the broadcast, and how many rounds are lost.
const OVERHEAD: f64 = 1.15;
const SLACK: f64 = 1.0;
const INVALID: f64 = 0.001;

fn main() -> ExitCode {
    let universe = mpi::initialize().expect("the first to initialize MPI");
    let world = universe.world();
    let comm = MpiComm::duplicate(&world).expect("MPI runs");
    assert_eq!(comm.size(), 2, "this is about two ranks");
    if let Some(core) = allowed_cores()
        .into_iter()
        .cycle()
        .nth(comm.rank() as usize)
    {
        pin_to(core).expect("the core is allowed");
    }
    let tsc = TscClock::detect().expect("this is about the time stamp counter");
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).expect("Linux has it");
    let calibration =
        calibrate_during(&tsc, &raw, Duration::from_millis(100)).expect("both clocks run");
    // Ranks of one machine read one counter: theirs is one clock already, if they convert it alike.
    let model: ClockModel<Counter, Global> = calibration.model().expect("in range").renamed();
    let model = block_on_ready(collective::broadcast(&comm, model)).expect("both ranks are there");

    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let floor = by_hand(&world, &tsc, &model);
        turns.extend(measure(&comm, &tsc, model).map(|measured| Turn::new(floor, &measured)));
    }
    if comm.rank() == 0 && !show(&turns) && std::env::args().any(|argument| argument == "--gate") {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Nanoseconds of a broadcast and an allreduce of a word, called one after the other.
fn by_hand(world: &impl Communicator, tsc: &TscClock, model: &ClockModel<Counter, Global>) -> f64 {
    let (comm, word) = (world.as_raw(), u64::equivalent_datatype().as_raw());
    let (mut start, mut mine, mut all) = (0_u64, 1_u64, 0_u64);
    // SAFETY: a constant.
    let or = unsafe { ffi::RSMPI_BOR };
    // SAFETY: MPI runs.
    unsafe { ffi::MPI_Barrier(comm) };
    let began = tsc.open();
    for _ in 0..ROUNDS_BY_HAND {
        // SAFETY: MPI runs, and there is one word that can be written to.
        unsafe { ffi::MPI_Bcast((&raw mut start).cast(), 1, word, 0, comm) };
        // SAFETY: as above, with one word each to be read and to be written.
        unsafe {
            ffi::MPI_Allreduce(
                (&raw mut mine).cast(),
                (&raw mut all).cast(),
                1,
                word,
                or,
                comm,
            )
        };
    }
    let took = model.apply(tsc.close()) - model.apply(began);
    took.as_nanos() as f64 / f64::from(ROUNDS_BY_HAND)
}

/// A time slice of an allreduce of eight bytes.
fn measure(comm: &MpiComm, tsc: &TscClock, model: ClockModel<Counter, Global>) -> Option<Measured> {
    let group = MpiGroup::all(comm).expect("both ranks are there");
    let settings = OperationSettings::default();
    let kind = "allreduce".parse().expect("a name");
    let mut operation = MpiOperation::prepare(kind, &group, 8, &settings).expect("MPI has it");
    let method = Method {
        warm_up: 1_000,
        scheme: Scheme::RoundTime(RoundTime::default()),
        stopping: Stopping::TimeSlice {
            slice: SLICE,
            most: u32::MAX,
        },
        processing: Processing::Median,
        root: 0,
    };
    let stage = Stage {
        comm: group.comm(),
        together: &group,
        clock: tsc,
        time: Time::Global(model),
    };
    block_on_ready(method.measure(&stage, &mut operation)).expect("both ranks measure")
}

/// One turn of each, in nanoseconds.
struct Turn {
    floor: f64,
    slack: f64,
    broadcast: f64,
    latency: f64,
    /// What a valid round takes besides.
    overhead: f64,
    valid: f64,
    invalid: f64,
}

impl Turn {
    fn new(floor: f64, measured: &Measured) -> Self {
        let found = |name| {
            let found = measured.found.iter().find(|(known, _)| *known == name);
            found.expect("Round-Time says so").1.as_nanos() as f64
        };
        let seen: &Observations = &measured.observations;
        let (valid, latency) = (
            seen.count(ObservationState::Valid) as f64,
            measured.figures[0].nanos,
        );
        Self {
            floor,
            slack: found("slack"),
            broadcast: found("broadcast"),
            latency,
            overhead: measured.elapsed.as_nanos() as f64 / valid - latency,
            valid,
            invalid: seen.len() as f64 - valid,
        }
    }
}

/// Whether all bounds are met.
fn show(turns: &[Turn]) -> bool {
    let of = |figure: fn(&Turn) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(figure).collect();
        Sample::new(&mut all).expect("there were turns").median()
    };
    println!("| rank 0 of 2, medians of {TURNS} turns | ns |\n|---|---|");
    println!(
        "| broadcast and allreduce by hand | {:.0} |",
        of(|turn| turn.floor)
    );
    println!(
        "| until a broadcast has arrived | {:.0} |",
        of(|turn| turn.broadcast)
    );
    println!("| slack | {:.0} |", of(|turn| turn.slack));
    println!(
        "| latency of an allreduce of 8 bytes | {:.0} |",
        of(|turn| turn.latency)
    );
    println!(
        "| what a valid round takes besides | {:.0} |",
        of(|turn| turn.overhead)
    );
    let seconds = SLICE.as_secs_f64() * turns.len() as f64;
    let [valid, invalid]: [f64; 2] =
        [|turn: &Turn| turn.valid, |turn: &Turn| turn.invalid].map(|of| turns.iter().map(of).sum());
    println!("\n{:.0} valid rounds a second\n", valid / seconds);
    let bounds = [
        (
            "overhead / (by hand + slack)",
            of(|turn| turn.overhead / (turn.floor + turn.slack)),
            OVERHEAD,
        ),
        (
            "slack / broadcast",
            of(|turn| turn.slack / turn.broadcast),
            SLACK,
        ),
        (
            "share of invalid rounds",
            invalid / (valid + invalid),
            INVALID,
        ),
    ];
    println!("| bound | found | must not exceed |\n|---|---|---|");
    for (name, found, most) in bounds {
        println!("| {name} | {found:.4} | {most} |");
    }
    let missed: Vec<&str> = bounds
        .iter()
        .filter(|(_, found, most)| found > most)
        .map(|(name, ..)| *name)
        .collect();
    if !missed.is_empty() {
        println!("missed: {}", missed.join("; "));
    }
    missed.is_empty()
}
