//! Cost of reading a clock relative to the bare instruction, measured in one run: `cargo bench -p downbeat-timers --bench
//! ratios`. With `-- --gate`, the exit code is 1 if a limit of the project is exceeded.
//!
//! All reads take turns, a millisecond each, for several hundred rounds; a ratio is the median of the ratios of the
//! rounds. Changes of frequency and the load of neighbours therefore affect all of them alike.
//!
//! Each read is timed in two loops. *Back to back*, the processor may start the next read before the last one is complete.
//! *Waited for*, a fence after each read makes the program wait for the result, like a program that uses it.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark may panic")]

use core::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use core::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Domain, ErrorBound, Global, Local, ModelClock, Timestamp,
};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::{Duration, SystemClock, SystemClockId, TickRate, TscClock};

const ROUNDS: usize = 400;
const READS: u32 = 10_000;

struct TimedRead<'a> {
    name: &'static str,
    /// Index of the read that this one is compared with.
    floor: usize,
    back_to_back: Box<dyn Fn() + 'a>,
    waited_for: Box<dyn Fn() + 'a>,
}

/// Creates a read that is timed in loops of [`READS`], so that the call through the box is negligible.
fn timed_read<'a, T>(
    name: &'static str,
    floor: usize,
    read: impl Fn() -> T + Copy + 'a,
) -> TimedRead<'a> {
    let back_to_back = Box::new(move || {
        for _ in 0..READS {
            black_box(read());
        }
    });
    let waited_for = Box::new(move || {
        for _ in 0..READS {
            black_box(read());
            // SAFETY: every x86-64 processor has the instruction.
            unsafe { _mm_lfence() };
        }
    });
    TimedRead {
        name,
        floor,
        back_to_back,
        waited_for,
    }
}

/// A model that is not the identity, so that the compiler cannot remove it.
fn drifted<A: Domain, B: Domain>() -> ClockModel<A, B> {
    let rate = TickRate::NANOSECOND.with_drift(1.5e-6).expect("a rate");
    ClockModel::through(Timestamp::from_nanos(3), Timestamp::from_nanos(17), rate).expect("a model")
}

/// The composition of a calibration and `depth` models.
fn composed(local: ClockModel<Counter, Local>, depth: usize) -> ClockModel<Counter, Global> {
    let hops = (1..depth)
        .try_fold(local, |model, _| model.then(&drifted::<Local, Local>()))
        .expect("in range");
    hops.then(&drifted()).expect("in range")
}

/// Nanoseconds per read: for every timed_read, back to back and waited for.
fn time_rounds(timed_reads: &[TimedRead<'_>]) -> Vec<[Vec<f64>; 2]> {
    let time = |reads: &dyn Fn()| {
        let start = Instant::now();
        reads();
        start.elapsed().as_nanos() as f64 / f64::from(READS)
    };
    let mut times = vec![[vec![], vec![]]; timed_reads.len()];
    for _ in 0..ROUNDS {
        for (timed_read, times) in timed_reads.iter().zip(&mut times) {
            times[0].push(time(&timed_read.back_to_back));
            times[1].push(time(&timed_read.waited_for));
        }
    }
    times
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn median_ratio(times: &[f64], floor: &[f64]) -> f64 {
    median(
        times
            .iter()
            .zip(floor)
            .map(|(time, floor)| time / floor)
            .collect(),
    )
}

fn main() -> std::process::ExitCode {
    let tsc = TscClock::detect().expect("the benchmark needs the time stamp counter");
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).expect("available on Linux");
    let calibration =
        calibrate_during(&tsc, &raw, Duration::from_millis(10)).expect("both clocks run");
    let local = calibration.model().expect("in range");

    let ordered = [1, 3, 10].map(|depth| ModelClock::new(tsc, composed(local, depth)));
    let unordered = [1, 10].map(|depth| ModelClock::new(tsc.unordered(), composed(local, depth)));
    let replaced = ModelClock::new(tsc, composed(local, 3));
    let bound = ErrorBound {
        at: ordered[1].now(),
        ahead: Duration::from_nanos(800),
        behind: Duration::from_nanos(700),
        drift: 1e-6,
    };
    let bounded = ModelClock::with_bound(tsc, composed(local, 3), bound);
    // The whole benchmark is over before the clock has slewed.
    let slewing = ModelClock::new(tsc, composed(local, 3));
    let begun = slewing.slew_toward(
        composed(local, 4),
        ErrorBound::UNKNOWN,
        Duration::from_secs(3_600),
    );
    assert_eq!(begun, Ok(true));
    quanta::Instant::now();

    let rdtsc = timed_read("bare `rdtsc`", 0, || {
        // SAFETY: detection found the instruction.
        unsafe { _rdtsc() }
    });
    let rdtscp = timed_read("bare `rdtscp`", 1, || {
        let mut core = 0;
        // SAFETY: detection found the instruction, and `core` is writable.
        unsafe { __rdtscp(&raw mut core) }
    });
    let timed_reads = [
        rdtsc,
        rdtscp,
        timed_read("**global clock, unordered, 1 model deep**", 0, || {
            unordered[0].now()
        }),
        timed_read("**global clock, unordered, 10 deep**", 0, || {
            unordered[1].now()
        }),
        timed_read("quanta `Instant::now`, unordered", 0, quanta::Instant::now),
        timed_read(
            "minstant `Instant::now`, unordered, left in cycles",
            0,
            minstant::Instant::now,
        ),
        timed_read("**global clock, ordered, 1 model deep**", 1, || {
            ordered[0].now()
        }),
        timed_read("**global clock, ordered, 3 deep**", 1, || ordered[1].now()),
        timed_read("**global clock, ordered, 10 deep**", 1, || ordered[2].now()),
        timed_read("**global clock, ordered, replaced every ms**", 1, || {
            replaced.now()
        }),
        timed_read("**global clock with certain bounds, ordered**", 1, || {
            bounded.now_with_bounds()
        }),
        timed_read("**global clock with its error, ordered**", 1, || {
            bounded.now_with_error()
        }),
        timed_read("**global clock while it slews, ordered**", 1, || {
            slewing.now()
        }),
        timed_read("fenced `open`", 1, || tsc.open()),
        timed_read("fenced `close`", 1, || tsc.close()),
        timed_read("std `Instant::now`", 1, Instant::now),
        timed_read("`CLOCK_MONOTONIC_RAW`", 1, || raw.ticks()),
    ];

    let done = AtomicBool::new(false);
    let times = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = replaced.writer().expect("no other writer");
            while !done.load(Ordering::Relaxed) {
                writer.publish(composed(local, 3));
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let times = time_rounds(&timed_reads);
        done.store(true, Ordering::Relaxed);
        times
    });

    println!("| read | ns | x floor | waited for, ns | x floor |\n|---|---|---|---|---|");
    let ratio = |read: usize, floor: usize, mode: usize| {
        median_ratio(&times[read][mode], &times[floor][mode])
    };
    for (i, timed_read) in timed_reads.iter().enumerate() {
        let cells = [0, 1].map(|mode| {
            format!(
                "{:.1} | {:.2}",
                median(times[i][mode].clone()),
                ratio(i, timed_read.floor, mode)
            )
        });
        println!("| {} | {} | {} |", timed_read.name, cells[0], cells[1]);
    }

    let bounds = [
        (
            "ordered global clock / rdtscp, back to back",
            ratio(6, 1, 0),
            1.15,
        ),
        (
            "ordered global clock / rdtscp, waited for",
            ratio(6, 1, 1),
            1.15,
        ),
        (
            "ordered global clock being replaced / rdtscp",
            ratio(9, 1, 0),
            1.15,
        ),
        (
            "ordered global clock with bounds / rdtscp, back to back",
            ratio(10, 1, 0),
            1.25,
        ),
        (
            "ordered global clock with bounds / rdtscp, waited for",
            ratio(10, 1, 1),
            1.25,
        ),
        (
            "ordered global clock with its error / rdtscp, back to back",
            ratio(11, 1, 0),
            1.30,
        ),
        (
            "ordered global clock while it slews / rdtscp, back to back",
            ratio(12, 1, 0),
            1.50,
        ),
        (
            "unordered global clock / rdtsc, back to back",
            ratio(2, 0, 0),
            1.10,
        ),
        (
            "unordered global clock / quanta, waited for",
            ratio(2, 4, 1),
            0.90,
        ),
        ("ordered, 10 models deep / 1 deep", ratio(8, 6, 0), 1.02),
        ("unordered, 10 models deep / 1 deep", ratio(3, 2, 0), 1.02),
    ];
    println!("\n| bound | found | must not exceed |\n|---|---|---|");
    for (name, found, most) in bounds {
        println!("| {name} | {found:.3} | {most:.2} |");
    }
    println!(
        "\nunordered global clock / quanta, back to back: {:.3}",
        ratio(2, 4, 0)
    );
    let missed: Vec<_> = bounds
        .iter()
        .filter(|(_, found, most)| found > most)
        .map(|(name, ..)| *name)
        .collect();
    if missed.is_empty() {
        return std::process::ExitCode::SUCCESS;
    }
    println!("missed: {}", missed.join("; "));
    u8::from(std::env::args().any(|argument| argument == "--gate")).into()
}
