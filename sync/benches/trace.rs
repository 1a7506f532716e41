//! How fast a trace is corrected, and in how much memory: `cargo bench -p downbeat-sync --bench trace`. With `-- --gate`, the
//! exit code is 1 when a figure that the project promises is missed.
//!
//! Locations send to neighbours at distances that change, and their clocks are wrong by as much as a message takes some
//! times over, one in this direction and one in the other: so of every two messages one is violated. Every row is a
//! process of its own, started from here, so that each has its own peak of memory.

#![expect(clippy::print_stdout, reason = "this is a program, and this is its output")]
#![expect(clippy::expect_used, reason = "a benchmark has nobody to report to")]

use std::process::{Command, ExitCode};
use std::time::Instant;

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_sync::postmortem::{
    Action, CollectiveKind, CommunicatorId, ControlledLogicalClock, Latencies, LocationId, Matching, Place,
    TraceBuilder,
};

/// The argument that makes this program one of its own children: locations, millions of events and threads follow.
const CHILD: &str = "--row";

/// Of two nodes or more, in nanoseconds.
const LATENCIES: [i64; 3] = [200, 500, 2_000];

/// Every row is measured so often, and the middle one counts.
const TURNS: usize = if cfg!(debug_assertions) { 1 } else { 3 };

/// Messages of a location between two barriers of all.
const BETWEEN_BARRIERS: u32 = 1_000;

/// A trace that is generated while it is built, or for nothing, to see what that takes by itself.
struct Generator {
    builder: TraceBuilder,
    builds: bool,
    locations: Vec<LocationId>,
    world: CommunicatorId,
    random: fastrand::Rng,
    /// When each is, in truth.
    now: Vec<i64>,
    /// What its clock is ahead by, and how many billionths it is fast by.
    wrong: Vec<(i64, i64)>,
}

impl Generator {
    fn new(locations: u32, events: u64, builds: bool) -> Self {
        let mut builder = TraceBuilder::new(Matching::default());
        let each = (events / u64::from(locations)) as usize;
        let locations: Vec<LocationId> = (0..locations)
            .map(|process| builder.add_location(Place { node: process / 2, process }).expect("there are few"))
            .collect();
        for location in locations.iter().filter(|_| builds) {
            builder.reserve(*location, each + each / 50, each / 2 + each / 50);
        }
        let mut random = fastrand::Rng::with_seed(1);
        let wrong = locations.iter().map(|_| (random.i64(-50_000..50_000), random.i64(-2_000..2_000))).collect();
        let world = builder.add_communicator(&locations).expect("all are there");
        Self { builder, builds, now: vec![0; locations.len()], locations, world, random, wrong }
    }

    /// Adds an event to a location, after what it does until then.
    fn add(&mut self, location: usize, action: Action) {
        self.now[location] += self.random.i64(100..2_000);
        let (ahead, fast) = self.wrong[location];
        let shown = self.now[location] + ahead + self.now[location] / 1_000 * fast / 1_000_000;
        let (location, time) = (self.locations[location], Timestamp::<Global>::from_nanos(shown));
        if self.builds {
            self.builder.push(location, time, action).expect("in order");
        } else {
            std::hint::black_box((location, time, action));
        }
    }

    /// One message from everyone, to the one that is so far from it, between two internal events.
    fn exchange(&mut self, distance: usize) {
        let (size, communicator) = (self.locations.len(), self.world);
        let mut arrive = vec![0; size];
        for from in 0..size {
            let to = (from + distance) % size;
            self.add(from, Action::Internal);
            self.add(from, Action::Send { to: self.locations[to], communicator, tag: 0 });
            arrive[to] = self.now[from] + self.random.i64(2_000..10_000);
        }
        for (to, arrive) in arrive.into_iter().enumerate() {
            let from = self.locations[(to + size - distance) % size];
            self.add(to, Action::Internal);
            self.now[to] = self.now[to].max(arrive);
            self.add(to, Action::Receive { from, communicator, tag: 0 });
        }
    }

    fn barrier(&mut self) {
        let communicator = self.world;
        (0..self.now.len()).for_each(|location| self.add(location, Action::Enter { communicator }));
        let last = self.now.iter().copied().max().unwrap_or_default();
        for location in 0..self.now.len() {
            self.now[location] = last + LATENCIES[2];
            let kind = CollectiveKind::Barrier;
            self.add(location, Action::Exit { communicator, kind, root: 0, sent: false, received: false });
        }
    }
}

/// Generates about so many events.
fn generate(locations: u32, events: u64, builds: bool) -> TraceBuilder {
    let mut generator = Generator::new(locations, events, builds);
    for round in 0..(events / u64::from(locations) / 4) as u32 {
        let distance = 1 + round % (locations - 1).min(6);
        generator.exchange(distance as usize);
        if round % BETWEEN_BARRIERS == 0 {
            generator.barrier();
        }
    }
    generator.builder
}

/// The figures of a row, as a child prints them: events; seconds that are generated, matched, corrected forward, and
/// backward; bytes at the peak; the share of messages that were violated, before and after.
fn measure(locations: u32, millions: f64, workers: usize) -> [f64; 8] {
    let events = (millions * 1e6) as u64;
    let before = peak_bytes();
    let started = Instant::now();
    generate(locations, events, false);
    let generated = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let trace = generate(locations, events, true).finish().expect("all is there");
    let built = started.elapsed().as_secs_f64();
    let [process, node, other] = LATENCIES.map(Duration::from_nanos);
    let mut clock = ControlledLogicalClock::new(Latencies::new(process, node, other).expect("they grow"));
    clock.workers = workers;
    let started = Instant::now();
    let mut corrected = clock.forward(&trace).expect("it has happened");
    let forward = started.elapsed().as_secs_f64();
    let started = Instant::now();
    corrected.amortize(clock.gradient);
    let backward = started.elapsed().as_secs_f64();
    let peak = peak_bytes() - before;

    let violated = |times: &dyn Fn(usize, u32) -> Timestamp<Global>| {
        let (mut all, mut violated) = (0.0, 0.0);
        for message in trace.messages() {
            let latency = clock.latencies.between(&trace, message.send.location, message.receive.location);
            let [sent, received] = [message.send, message.receive].map(|id| times(id.location.index(), id.event));
            all += 1.0;
            violated += f64::from(u8::from(received - sent < latency));
        }
        violated / all
    };
    let was = violated(&|location, event| trace.locations()[location].times()[event as usize]);
    let is = violated(&|location, event| corrected.times()[location][event as usize]);
    [trace.events() as f64, generated, built - generated, forward, backward, peak, was, is]
}

/// The most memory that this process ever had.
fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux has it");
    line.trim().trim_end_matches("kB").trim().parse::<f64>().expect("a number") * 1_024.0
}

fn in_a_child(arguments: [String; 3]) -> [f64; 8] {
    let this = std::env::current_exe().expect("this program has a file");
    let output = Command::new(this).arg(CHILD).args(arguments).output().expect("it can be started again");
    let numbers = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = numbers.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("eight numbers")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == CHILD) {
        let [locations, millions, workers] = &arguments[at + 1..] else { return ExitCode::FAILURE };
        let workers = workers.parse().expect("a number");
        let figures = measure(locations.parse().expect("a number"), millions.parse().expect("a number"), workers);
        figures.iter().for_each(|number| println!("{number}"));
        return ExitCode::SUCCESS;
    }
    // A test, which is not optimized, only wants to see that it runs.
    let (small, large) = if cfg!(debug_assertions) { (0.02, 0.1) } else { (8.0, 50.0) };
    // Locations, millions of events, threads; millions of events per second, and bytes per event, that are promised.
    let rows = [
        (4, small, 1, 10.0, 32.0),
        (4, small, 2, 18.0, 32.0),
        (1_024, large, 1, 0.0, 80.0),
        (1_024, large, 2, 0.0, 80.0),
    ];
    println!(
        "| locations | events, M | threads | matching, ns per event | forward | backward | M/s | bytes per event | violated messages, % | after, % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let (mut missed, mut each) = (vec![], vec![]);
    for (locations, millions, workers, least, most_bytes) in rows {
        let child = || in_a_child([locations.to_string(), millions.to_string(), workers.to_string()]);
        let mut turns: Vec<_> = (0..TURNS).map(|_| child()).collect();
        let sum = |[_, _, matching, forward, backward, ..]: &[f64; 8]| matching + forward + backward;
        turns.sort_by(|a, b| sum(a).total_cmp(&sum(b)));
        let [events, _, matching, forward, backward, peak, was, is] = turns[TURNS / 2];
        let [matching, forward, backward] = [matching, forward, backward].map(|seconds| seconds / events * 1e9);
        let (sum, bytes) = (matching + forward + backward, peak / events);
        println!(
            "| {locations} | {:.1} | {workers} | {matching:.1} | {forward:.1} | {backward:.1} | {:.1} | {bytes:.1} | {:.1} | {:.1} |",
            events / 1e6,
            1e3 / sum,
            was * 100.0,
            is * 100.0,
        );
        each.push(sum);
        if 1e3 / sum < least || bytes > most_bytes || is > 0.0 {
            missed.push(format!(
                "{locations} locations, {workers} threads: {least} M/s, {most_bytes} bytes, no violation left"
            ));
        }
    }
    println!(
        "\ntime per event at 1,024 locations / at 4: {:.2} with one thread, {:.2} with two",
        each[2] / each[0],
        each[3] / each[1]
    );
    if each[2] > 1.5 * each[0] {
        missed.push("time per event at 1,024 locations: at most 1.5 x".into());
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nmissed: {}", missed.join("; "));
    u8::from(arguments.iter().any(|argument| argument == "--gate")).into()
}
