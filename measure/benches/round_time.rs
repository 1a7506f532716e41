//! Measures the overhead of Round-Time: run `cargo bench -p downbeat-measure --features mpi --bench round_time --no-run`,
//! and then `mpirun -np 2` with the program that cargo names; `cargo xtask bench` does both. With `--gate`, the exit code
//! is 1 if a promised limit is exceeded.
//!
//! A round needs a broadcast to announce its start, the slack until that start, and an allreduce to agree on the outcome.
//! The baseline is a loop of these two calls by hand. Both are measured alternately, so that neither changes of frequency
//! nor other load favour one of them. Round-Time on a grid, which needs neither in a round, is measured in the same turns; and once
//! more with these two calls before each of its own, because what precedes a call affects its latency.
//!
//! A rank that is interrupted while it waits begins late, which a grid finds and Round-Time does not look for: calls that the ranks began
//! apart are counted by the counter that they share, in measurements of their own.

#![expect(clippy::print_stdout, reason = "the program prints its result")]
#![expect(clippy::expect_used, reason = "a benchmark may panic")]
#![expect(unsafe_code, reason = "the baseline calls MPI by hand")]

use std::process::ExitCode;

use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global};
use downbeat_measure::mpi::{MpiGroup, MpiOperation, OperationSettings};
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{RoundGrid, RoundTime, Scheme};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{ClockBasis, MeasureContext, Measurement, Method, Operation, Ticks};
use downbeat_records::stats::Sample;
use downbeat_records::{Observation, ObservationState, Observations};
use downbeat_sync::{Comm, CommError, MpiComm, block_on_ready, collective};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::cores::{allowed_cores, pin_to};
use downbeat_timers::{SystemClock, SystemClockId, TscClock};
use mpi::ffi;
use mpi::traits::{AsRaw, Communicator, Equivalence};

/// Number of measurements of each of the two.
const TURNS: usize = 30;
const SLICE: Duration = Duration::from_millis(100);
const ROUNDS_BY_HAND: u32 = 20_000;

// Promised limits: what a round takes besides the operation, relative to a broadcast and an allreduce by hand and the scheme's own
// slack; slack relative to the broadcast; and share of invalid rounds.
const OVERHEAD: f64 = 1.15;
const SLACK: f64 = 1.0;
const INVALID: f64 = 0.001;
// On a grid: valid observations as a multiple of those of Round-Time, and difference of the medians.
const ON_GRID: f64 = 1.3;
const APART: f64 = 0.02;

/// Ranks that begin a call further apart than this have not begun it together.
const TOGETHER: Duration = Duration::from_nanos(400);

fn main() -> ExitCode {
    let universe = mpi::initialize().expect("MPI is initialized only once");
    let world = universe.world();
    let comm = MpiComm::duplicate(&world).expect("MPI runs");
    assert_eq!(comm.size(), 2, "this benchmark needs two ranks");
    if let Some(core) = allowed_cores()
        .into_iter()
        .cycle()
        .nth(comm.rank() as usize)
    {
        pin_to(core).expect("the core is allowed");
    }
    let tsc = TscClock::detect().expect("this benchmark needs the time stamp counter");
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).expect("Linux has this clock");
    let calibration =
        calibrate_during(&tsc, &raw, Duration::from_millis(100)).expect("both clocks run");
    // Ranks of one machine read the same counter: with the same model, it is a global clock.
    let model: ClockModel<Counter, Global> = calibration.model().expect("in range").renamed();
    let model = block_on_ready(collective::broadcast(&comm, model)).expect("no rank is gone");

    let group = MpiGroup::all(&comm).expect("no rank is gone");
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let floor = by_hand(&world, &tsc, &model);
        let rounds = Scheme::RoundTime(RoundTime::default());
        let grid = Scheme::RoundGrid(RoundGrid::default());
        let found = [rounds, grid]
            .map(|scheme| measure(&group, &tsc, model, scheme, &mut allreduce(&group)));
        let mut behind_messages = BehindMessages {
            operation: allreduce(&group),
            comm: world.as_raw(),
        };
        let behind_messages = measure(&group, &tsc, model, grid, &mut behind_messages);
        let apart = [rounds, grid].map(|scheme| apart(&group, &tsc, model, scheme));
        if let (
            [Some(rounds), Some(grid)],
            Some(behind_messages),
            [Some(by_rounds), Some(on_grid)],
        ) = (found, behind_messages, apart)
        {
            let apart = [by_rounds, on_grid];
            turns.push(Turn::new(floor, &rounds, &grid, &behind_messages, apart));
        }
    }
    if comm.rank() == 0 && !show(&turns) && std::env::args().any(|argument| argument == "--gate") {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns the nanoseconds of a broadcast followed by an allreduce, each of 8 bytes.
fn by_hand(world: &impl Communicator, tsc: &TscClock, model: &ClockModel<Counter, Global>) -> f64 {
    let comm = world.as_raw();
    // SAFETY: MPI runs.
    unsafe { ffi::MPI_Barrier(comm) };
    let began = tsc.open();
    for _ in 0..ROUNDS_BY_HAND {
        broadcast_and_reduce(comm);
    }
    let took = model.apply(tsc.close()) - model.apply(began);
    took.as_nanos() as f64 / f64::from(ROUNDS_BY_HAND)
}

fn broadcast_and_reduce(comm: ffi::MPI_Comm) {
    let word = u64::equivalent_datatype().as_raw();
    let (mut start, mut mine, mut all) = (0_u64, 1_u64, 0_u64);
    // SAFETY: a constant.
    let or = unsafe { ffi::RSMPI_BOR };
    // SAFETY: MPI runs, and the buffer has one writable element.
    unsafe { ffi::MPI_Bcast((&raw mut start).cast(), 1, word, 0, comm) };
    // SAFETY: as above; both buffers have one element, and do not overlap.
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

/// Operation each of whose calls follows the messages that Round-Time sends in a round.
struct BehindMessages<O> {
    operation: O,
    comm: ffi::MPI_Comm,
}

impl<O: Operation> Operation for BehindMessages<O> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        self.operation.call(number).await
    }

    fn prepare(&mut self) {
        self.operation.prepare();
        broadcast_and_reduce(self.comm);
    }
}

/// Operation whose calls note when they begin.
struct NotingBegins<'a, O> {
    operation: O,
    tsc: &'a TscClock,
    begins: Vec<Ticks>,
}

impl<O: Operation> Operation for NotingBegins<'_, O> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        self.begins.push(self.tsc.open());
        self.operation.call(number).await
    }

    fn prepare(&mut self) {
        self.operation.prepare();
    }
}

fn allreduce(group: &MpiGroup) -> MpiOperation {
    let settings = OperationSettings::default();
    let kind = "allreduce".parse().expect("a name");
    MpiOperation::prepare(kind, group, 8, &settings).expect("MPI has it")
}

/// Returns on rank 0 the number of calls that are valid but began apart, of those that are late, and of all.
fn apart(
    group: &MpiGroup,
    tsc: &TscClock,
    model: ClockModel<Counter, Global>,
    scheme: Scheme,
) -> Option<[f64; 3]> {
    let mut operation = NotingBegins {
        operation: allreduce(group),
        tsc,
        begins: Vec::new(),
    };
    let measured = measure(group, tsc, model, scheme, &mut operation);
    // From the first rank to the last: the greatest time plus the greatest negated one.
    let begins = || {
        operation
            .begins
            .iter()
            .map(|ticks| model.apply(*ticks).as_nanos())
    };
    let mut both: Vec<i64> = begins().chain(begins().map(|nanos| -nanos)).collect();
    block_on_ready(collective::greatest_to_first(group.comm(), &mut both))
        .expect("no rank is gone");
    let (last, first) = both.split_at(operation.begins.len());
    let observations = measured?.observations;
    let before = last.len() - observations.len();
    let spreads = last
        .iter()
        .zip(first)
        .skip(before)
        .map(|(last, first)| last + first);
    let states = observations.iter().map(Observation::is_valid);
    let began_apart = spreads
        .zip(states)
        .filter(|(spread, is_valid)| *is_valid && *spread > TOGETHER.as_nanos());
    let valid = observations.count(ObservationState::Valid);
    Some(
        [
            began_apart.count(),
            observations.len() - valid,
            observations.len(),
        ]
        .map(|calls| calls as f64),
    )
}

/// Measures an operation for a time slice.
fn measure(
    group: &MpiGroup,
    tsc: &TscClock,
    model: ClockModel<Counter, Global>,
    scheme: Scheme,
    operation: &mut impl Operation,
) -> Option<Measurement> {
    let method = Method {
        warm_up: 1_000,
        scheme,
        stopping: Stopping::TimeSlice {
            slice: SLICE,
            most: u32::MAX,
        },
        processing: Processing::Median,
        root: 0,
    };
    let context = MeasureContext {
        comm: group.comm(),
        coordinator: group,
        clock: tsc,
        clock_basis: ClockBasis::Global(model),
    };
    block_on_ready(method.measure(&context, operation)).expect("both ranks measure")
}

/// Figures of one measurement of each, in nanoseconds.
struct Turn {
    floor: f64,
    slack: f64,
    broadcast: f64,
    latency: f64,
    /// Time of a valid round without the operation.
    overhead: f64,
    valid: f64,
    invalid: f64,
    /// Latency by a grid, its valid and its invalid calls.
    grid: [f64; 3],
    /// Latency by a grid, behind the messages of Round-Time.
    behind_messages: f64,
    /// Calls of Round-Time, and of a grid: valid but begun apart, late, and all.
    apart: [[f64; 3]; 2],
}

impl Turn {
    fn new(
        floor: f64,
        measured: &Measurement,
        grid: &Measurement,
        behind_messages: &Measurement,
        apart: [[f64; 3]; 2],
    ) -> Self {
        let found = |name| {
            let found = measured.details.iter().find(|(known, _)| *known == name);
            found.expect("Round-Time reports it").1.as_nanos() as f64
        };
        let counts = |observations: &Observations| {
            let valid = observations.count(ObservationState::Valid) as f64;
            [valid, observations.len() as f64 - valid]
        };
        let ([valid, invalid], latency) =
            (counts(&measured.observations), measured.figures[0].nanos);
        let [on_grid, late_on_grid] = counts(&grid.observations);
        Self {
            floor,
            slack: found("slack"),
            broadcast: found("broadcast"),
            latency,
            overhead: measured.elapsed.as_nanos() as f64 / valid - latency,
            valid,
            invalid,
            grid: [grid.figures[0].nanos, on_grid, late_on_grid],
            behind_messages: behind_messages.figures[0].nanos,
            apart,
        }
    }
}

/// Prints the figures; returns true if no limit is exceeded.
fn show(turns: &[Turn]) -> bool {
    let median = |figure: fn(&Turn) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(figure).collect();
        Sample::new(&mut all).expect("there are turns").median()
    };
    println!("| rank 0 of 2, medians of {TURNS} turns | ns |\n|---|---|");
    println!(
        "| broadcast and allreduce by hand | {:.0} |",
        median(|turn| turn.floor)
    );
    println!(
        "| until a broadcast has arrived | {:.0} |",
        median(|turn| turn.broadcast)
    );
    println!("| slack | {:.0} |", median(|turn| turn.slack));
    println!(
        "| latency of an allreduce of 8 bytes | {:.0} |",
        median(|turn| turn.latency)
    );
    println!(
        "| what a valid round takes besides | {:.0} |",
        median(|turn| turn.overhead)
    );
    println!(
        "| the same / by hand alone | {:.2} times |",
        median(|turn| turn.overhead / turn.floor)
    );
    let seconds = SLICE.as_secs_f64() * turns.len() as f64;
    let [valid, invalid]: [f64; 2] = [|turn: &Turn| turn.valid, |turn: &Turn| turn.invalid]
        .map(|figure| turns.iter().map(figure).sum());
    println!("\n{:.0} valid rounds a second\n", valid / seconds);
    let [on_grid, late_on_grid]: [f64; 2] =
        [1, 2].map(|place: usize| turns.iter().map(|turn| turn.grid[place]).sum());
    println!(
        "On a grid: {:.0} valid calls a second, {:.4} of all calls are late, median latency {:.0} ns, {:+.1} %\n",
        on_grid / seconds,
        late_on_grid / (on_grid + late_on_grid),
        median(|turn| turn.grid[0]),
        100.0 * median(|turn| turn.grid[0] / turn.latency - 1.0),
    );
    let [by_rounds, of_grid] = [0, 1].map(|scheme: usize| {
        let [apart, late, all] = [0, 1, 2].map(|count: usize| {
            turns
                .iter()
                .map(|turn| turn.apart[scheme][count])
                .sum::<f64>()
        });
        [apart / all, late / all]
    });
    for (name, [apart, late]) in [("Round-Time", by_rounds), ("on a grid", of_grid)] {
        println!(
            "{name}: {late:.5} of the calls are late, {apart:.5} are valid though ranks began them more than {TOGETHER} apart\n"
        );
    }
    let bounds = [
        (
            "besides the operation / (broadcast and allreduce by hand + slack)",
            median(|turn| turn.overhead / (turn.floor + turn.slack)),
            OVERHEAD,
        ),
        (
            "slack / duration of a broadcast",
            median(|turn| turn.slack / turn.broadcast),
            SLACK,
        ),
        (
            "share of invalid rounds",
            invalid / (valid + invalid),
            INVALID,
        ),
        (
            "valid rounds * 1.3 / valid calls on a grid",
            median(|turn| ON_GRID * turn.valid / turn.grid[1]),
            1.0,
        ),
        (
            "difference of the medians behind the same messages / that of Round-Time",
            median(|turn| (turn.behind_messages / turn.latency - 1.0).abs()),
            APART,
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
