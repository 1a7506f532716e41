//! How fast a trace is corrected, in how much memory, and how much nearer the truth it then is: `cargo bench -p downbeat-sync
//! --bench trace`. With `-- --gate`, the exit code is 1 when a figure that the project promises is missed.
//!
//! The traces are those of synthetic programs, after clocks were made one by linear interpolation. Every row is a process of its own, started from here, so that each has its own peak of
//! memory.

#![expect(clippy::print_stdout, reason = "this is a program, and this is its output")]
#![expect(clippy::expect_used, reason = "a benchmark has nobody to report to")]

use std::process::{Command, ExitCode};
use std::time::Instant;

use downbeat_clock_core::Duration;
use downbeat_sync::SimError;
use downbeat_sync::postmortem::{ControlledLogicalClock, Matching, PreSynchronization, SyntheticProgram, Verdict};

/// The argument that makes this program one of its own children: locations, millions of events, threads and the share of
/// messages that are violated follow.
const CHILD: &str = "--row";

/// Every row is measured so often, and the middle one counts.
const TURNS: usize = if cfg!(debug_assertions) { 1 } else { 3 };

/// What is promised of the centred error, as a share of that after linear interpolation.
const CENTRED: f64 = 0.78;

/// The figures of a row, as a child prints them: events; seconds that are matched, corrected forward, and backward; bytes
/// at the peak; the share of messages that were violated, before and after; and the centred error after as a share of
/// that before.
fn measure(nodes: u32, millions: f64, workers: usize, violated: f64) -> [f64; 8] {
    let program = SyntheticProgram { violated, noise: Duration::ZERO, ..SyntheticProgram::new(nodes, 1) };
    let program = program.with_events((millions * 1e6) as u64);
    let started = Instant::now();
    let alone = program.run(|event| {
        std::hint::black_box(event);
        Ok::<(), SimError>(())
    });
    alone.expect("it is sound");
    let ran = started.elapsed().as_secs_f64();
    let before = peak_bytes();
    let started = Instant::now();
    let mut trace = program.trace(Matching::default()).expect("all is there");
    let matched = started.elapsed().as_secs_f64() - ran;
    let linear = PreSynchronization::new(program.master());
    let maps = linear.maps(&program.places(), &program.sessions().expect("it is sound")).expect("clocks run");
    maps.correct(&mut trace).expect("in order");

    let mut clock = ControlledLogicalClock::new(program.latencies);
    clock.workers = workers;
    let started = Instant::now();
    let mut corrected = clock.forward(&trace).expect("it has happened");
    let forward = started.elapsed().as_secs_f64();
    let started = Instant::now();
    corrected.amortize(clock.gradient);
    let backward = started.elapsed().as_secs_f64();
    let peak = peak_bytes() - before;

    let was = trace.times();
    let wrong = |verdict: Verdict| verdict.messages.violated as f64 / verdict.messages.total as f64;
    let [was_wrong, is_wrong] = [
        Verdict::of(&trace, &was, &program.latencies).map(wrong),
        Verdict::of(&trace, corrected.times(), &program.latencies).map(wrong),
    ]
    .map(|share| share.expect("as many times as events"));
    let linear = program.error(&was).expect("as many times as events").centred();
    let error = program.error(corrected.times()).expect("as many times as events").centred() / linear;
    [trace.events() as f64, matched, forward, backward, peak, was_wrong, is_wrong, error]
}

/// The most memory that this process ever had.
fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux has it");
    line.trim().trim_end_matches("kB").trim().parse::<f64>().expect("a number") * 1_024.0
}

fn in_a_child(arguments: [String; 4]) -> [f64; 8] {
    let this = std::env::current_exe().expect("this program has a file");
    let output = Command::new(this).arg(CHILD).args(arguments).output().expect("it can be started again");
    let numbers = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = numbers.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("eight numbers")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == CHILD) {
        let [nodes, millions, workers, violated] = &arguments[at + 1..] else { return ExitCode::FAILURE };
        let [nodes, workers] = [nodes, workers].map(|count| count.parse::<u32>().expect("a number"));
        let [millions, violated] = [millions, violated].map(|number| number.parse().expect("a number"));
        let figures = measure(nodes, millions, workers as usize, violated);
        figures.iter().for_each(|number| println!("{number}"));
        return ExitCode::SUCCESS;
    }
    // A test, which is not optimized, only wants to see that it runs.
    let (small, large) = if cfg!(debug_assertions) { (0.02, 0.1) } else { (8.0, 50.0) };
    // Locations, millions of events, threads, the share of violated messages; millions of events per second, and bytes
    // per event, that are promised.
    let rows = [
        (4, small, 1, 0.5, 10.0, 32.0),
        (4, small, 2, 0.5, 18.0, 32.0),
        (4, small, 1, 0.43, 0.0, 32.0),
        (1_024, large, 1, 0.5, 0.0, 80.0),
        (1_024, large, 2, 0.5, 0.0, 80.0),
    ];
    println!(
        "| locations | events, M | threads | matching, ns per event | forward | backward | M/s | bytes per event | violated messages, % | after, % | centred error / linear |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let (mut missed, mut each) = (vec![], vec![]);
    for (nodes, millions, workers, violated, least, most_bytes) in rows {
        let child = || in_a_child([nodes.to_string(), millions.to_string(), workers.to_string(), violated.to_string()]);
        let mut turns: Vec<_> = (0..TURNS).map(|_| child()).collect();
        let sum = |[_, matching, forward, backward, ..]: &[f64; 8]| matching + forward + backward;
        turns.sort_by(|a, b| sum(a).total_cmp(&sum(b)));
        let [events, matching, forward, backward, peak, was, is, error] = turns[TURNS / 2];
        let [matching, forward, backward] = [matching, forward, backward].map(|seconds| seconds / events * 1e9);
        let (sum, bytes) = (matching + forward + backward, peak / events);
        println!(
            "| {nodes} | {:.1} | {workers} | {matching:.1} | {forward:.1} | {backward:.1} | {:.1} | {bytes:.1} | {:.1} | {:.1} | {error:.2} |",
            events / 1e6,
            1e3 / sum,
            was * 100.0,
            is * 100.0,
        );
        each.push(sum);
        let row = format!("{nodes} locations, {workers} threads");
        if 1e3 / sum < least || bytes > most_bytes || is > 0.0 {
            missed.push(format!("{row}: {least} M/s, {most_bytes} bytes, no violation left"));
        }
        if violated == 0.43 && error > CENTRED {
            missed.push(format!("{row}: centred error at most {CENTRED} of that after linear interpolation"));
        }
    }
    println!(
        "\ntime per event at 1,024 locations / at 4: {:.2} with one thread, {:.2} with two",
        each[3] / each[0],
        each[4] / each[1]
    );
    if each[3] > 1.5 * each[0] {
        missed.push("time per event at 1,024 locations: at most 1.5 x".into());
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nmissed: {}", missed.join("; "));
    u8::from(arguments.iter().any(|argument| argument == "--gate")).into()
}
