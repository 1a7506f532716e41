//! Accuracy of calibrations: `cargo bench -p downbeat-timers --bench calibration`.
//!
//! 500 processes are started one after the other while every core is kept busy. Each calibrates the time stamp counter for
//! 10 ms, and also with quanta and minstant; meanwhile this process compares the counter with each calibration's own reference for
//! at least 10 s, which gives the true rate: ours is `CLOCK_MONOTONIC_RAW`, theirs `CLOCK_MONOTONIC`, whose rate NTP adjusts. With `-- --gate`, the exit code is 1 if the largest error of ours exceeds
//! 0.1 ppm, if any error exceeds its stated uncertainty, or if a stated uncertainty exceeds ten times the largest error.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark may panic")]

use std::hash::{Hash, Hasher};
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration as StdDuration, Instant};

use downbeat_timers::calibration::{Calibration, calibrate, calibrate_during};
use downbeat_timers::{Duration, SystemClock, SystemClockId, TscClock};

const STARTS: usize = 500;
const TRUTH: StdDuration = StdDuration::from_secs(10);

/// The argument that makes this program one of its own children.
const CHILD: &str = "--calibrate-once";

fn clocks() -> (TscClock, SystemClock) {
    let tsc = TscClock::detect().expect("the benchmark needs the time stamp counter");
    (
        tsc,
        SystemClock::detect(SystemClockId::MonotonicRaw).expect("available on Linux"),
    )
}

/// Nanoseconds per tick by Downbeat, quanta and minstant, and the uncertainty of the first.
fn calibrate_once() -> [f64; 4] {
    let (tsc, raw) = clocks();
    let ours = calibrate_during(&tsc, &raw, Duration::from_millis(10)).expect("both clocks run");
    let ticks = 26_000_000_000_u64;
    let quanta = quanta::Clock::new().delta_as_nanos(0, ticks) as f64 / ticks as f64;
    let span = StdDuration::from_secs(10);
    let minstant = span.as_nanos() as f64 / minstant_ticks(minstant::Instant::ZERO + span) as f64;
    [
        ours.rate().nanos_per_tick(),
        quanta,
        minstant,
        ours.uncertainty(),
    ]
}

/// The ticks of an `Instant`, which only a hasher can read.
fn minstant_ticks(instant: minstant::Instant) -> u64 {
    struct TickHasher(u64);
    impl Hasher for TickHasher {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, _: &[u8]) {}
        fn write_u64(&mut self, ticks: u64) {
            self.0 = ticks;
        }
    }
    let mut hasher = TickHasher(0);
    instant.hash(&mut hasher);
    hasher.finish()
}

/// Starts this program again as a child that calibrates once.
fn fresh_start() -> [f64; 4] {
    let this = std::env::current_exe().expect("the path of this program");
    let output = Command::new(this)
        .arg(CHILD)
        .output()
        .expect("start of a child process");
    let numbers = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = numbers
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    numbers.try_into().expect("four numbers")
}

/// Keeps every core busy while `work` goes on.
fn under_load<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in downbeat_timers::cores::allowed_cores() {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    black_box((0..1_000_u64).sum::<u64>());
                }
            });
        }
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == CHILD) {
        let [ours, quanta, minstant, uncertainty] = calibrate_once();
        println!("{ours} {quanta} {minstant} {uncertainty}");
        return ExitCode::SUCCESS;
    }
    let (tsc, raw) = clocks();
    let began = Instant::now();
    let mut found: Vec<[f64; 4]> = Vec::new();
    let monotonic = SystemClock::detect(SystemClockId::Monotonic).expect("available on Linux");
    let mut adjusted = None;
    let truth = calibrate(&tsc, &raw, || {
        adjusted = Some(calibrate(&tsc, &monotonic, || {
            found = under_load(|| (0..STARTS).map(|_| fresh_start()).collect());
            std::thread::sleep(TRUTH.saturating_sub(began.elapsed()));
        }));
    });
    let truth = truth.expect("both clocks run");
    let adjusted = adjusted.expect("it was measured").expect("both clocks run");

    println!(
        "{STARTS} fresh starts on busy cores, over {:.0} s: ours against CLOCK_MONOTONIC_RAW (error at most {:.4} ppm), the others \
         against CLOCK_MONOTONIC (at most {:.4} ppm), whose rate was adjusted by {:.3} ppm\n",
        truth.duration().as_secs_f64(),
        truth.uncertainty() * 1e6,
        adjusted.uncertainty() * 1e6,
        (truth.rate().nanos_per_tick() / adjusted.rate().nanos_per_tick() - 1.0) * 1e6
    );
    println!("| calibration | median, ppm | worst, ppm |\n|---|---|---|");
    let off = |rate: f64, truth: &Calibration| (rate / truth.rate().nanos_per_tick() - 1.0).abs();
    let mut worst = [0.0; 3];
    let contestants = [
        ("**ours, 10 ms**", &truth),
        ("quanta", &adjusted),
        ("minstant", &adjusted),
    ];
    for (i, (name, truth)) in contestants.into_iter().enumerate() {
        let mut errors: Vec<f64> = found
            .iter()
            .map(|rates| off(rates[i], truth) * 1e6)
            .collect();
        errors.sort_by(f64::total_cmp);
        worst[i] = errors[STARTS - 1];
        println!("| {name} | {:.3} | {:.3} |", errors[STARTS / 2], worst[i]);
    }
    let outside = found
        .iter()
        .filter(|rates| off(rates[0], &truth) > rates[3] + truth.uncertainty())
        .count();
    let stated = found.iter().map(|rates| rates[3] * 1e6).fold(0.0, f64::max);
    println!(
        "\nours outside its own stated uncertainty (at most {stated:.2} ppm): {outside} of {STARTS}"
    );
    let missed = outside > 0 || worst[0] > 0.1 || stated > 10.0 * worst[0];
    u8::from(missed && std::env::args().any(|argument| argument == "--gate")).into()
}
