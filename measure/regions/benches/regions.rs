//! Cost of timing a region, relative to two bare reads of the counter: `cargo bench -p
//! downbeat-regions --features ranks --bench regions`. With `-- --gate`, the exit code is 1 if a promised limit is
//! exceeded. Below the table: time to merge the reports of many simulated ranks.
//!
//! All contestants alternate, a fraction of a millisecond each, for several hundred rounds; a ratio
//! is the median over rounds. Therefore changes of frequency and load by other processes affect all
//! of them. The regions are empty: only the timing is measured.
//!
//! A program has one configuration of regions, so that the ordered clock and call paths are measured in child
//! processes, with their own baselines.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark aborts on errors")]

use core::arch::x86_64::{__rdtscp, _rdtsc};
use core::hint::black_box;
use std::cell::{Cell, RefCell};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use downbeat_clock_core::histogram::DecimalBin;

use downbeat_clock_core::region::{RegionEvent, RegionTimer, TickScale};
use downbeat_regions::region;
use downbeat_regions::{
    ClockChoice, Overhead, Profile, Region, RegionProfile, RegionSettings, TextOptions,
    ThreadEvent, gather,
};
use downbeat_sync::Comm;
use downbeat_sync::sim::{Clocks, Network, SimCluster};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::{Duration, SystemClock, SystemClockId, TscClock};

/// Arguments that make this program its own child.
const ORDERED: &str = "--ordered";
const NESTED: &str = "--nested";
/// Unoptimized tests only check that it runs.
const ROUNDS: usize = if cfg!(debug_assertions) { 3 } else { 400 };
const PAIRS: u32 = 5_000;
/// Maximum time to merge the reports of many ranks.
const MOST_SECONDS: f64 = 10.0;

struct SpanContestant<'a> {
    name: &'static str,
    /// The contestant to compare with, and the maximum ratio.
    floor: usize,
    most: Option<f64>,
    pairs: Box<dyn Fn() + 'a>,
}

/// Times a batch of pairs: the call through the box is negligible.
fn contestant<'a>(
    name: &'static str,
    floor: usize,
    most: Option<f64>,
    pair: impl Fn() + 'a,
) -> SpanContestant<'a> {
    let pairs = Box::new(move || (0..PAIRS).for_each(|_| pair()));
    SpanContestant {
        name,
        floor,
        most,
        pairs,
    }
}

fn rdtsc() -> u64 {
    // SAFETY: detection found the instruction.
    unsafe { _rdtsc() }
}

fn rdtscp() -> u64 {
    let mut core = 0;
    // SAFETY: as above, and `core` is writable.
    unsafe { __rdtscp(&raw mut core) }
}

/// Nanoseconds per pair of every contestant in every round.
fn play_rounds(contestants: &[SpanContestant<'_>]) -> Vec<Vec<f64>> {
    let mut times = vec![vec![]; contestants.len()];
    for _ in 0..ROUNDS {
        for (contestant, times) in contestants.iter().zip(&mut times) {
            let start = Instant::now();
            (contestant.pairs)();
            times.push(start.elapsed().as_nanos() as f64 / f64::from(PAIRS));
        }
    }
    times
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints the rows; returns the names of those that exceeded their limits.
fn table(contestants: &[SpanContestant<'_>]) -> Vec<String> {
    let times = play_rounds(contestants);
    let mut missed = vec![];
    for (contestant, of) in contestants.iter().zip(&times) {
        let ratios = of
            .iter()
            .zip(&times[contestant.floor])
            .map(|(time, floor)| time / floor)
            .collect();
        let (ratio, floor) = (median(ratios), contestants[contestant.floor].name);
        let most = contestant
            .most
            .map_or("-".to_owned(), |most| format!("{most:.2}"));
        println!(
            "| {} | {:.1} | {ratio:.2} | {floor} | {most} |",
            contestant.name,
            median(of.clone())
        );
        if contestant.most.is_some_and(|most| ratio > most) {
            missed.push(contestant.name.replace('*', ""));
        }
    }
    missed
}

/// Minimal span as in other libraries: a count and a total.
#[derive(Default)]
struct CountAndTotal {
    spans: AtomicU64,
    events: AtomicU64,
    total: AtomicU64,
}

thread_local!(static ENTERED: Cell<Option<Instant>> = const { Cell::new(None) });

impl tracing::Subscriber for CountAndTotal {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &tracing::span::Id) {
        ENTERED.set(Some(Instant::now()));
    }
    fn exit(&self, _: &tracing::span::Id) {
        let nanos = ENTERED
            .get()
            .map_or(0, |start| start.elapsed().as_nanos() as u64);
        self.events.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(nanos, Ordering::Relaxed);
    }
}

fn scale(tsc: &TscClock) -> TickScale {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).expect("Linux has it");
    let calibration =
        calibrate_during(tsc, &raw, Duration::from_millis(10)).expect("both clocks run");
    TickScale::new(calibration.rate(), Duration::from_nanos(1)).expect("a tick of 1 ns")
}

static EXPLICIT: Region = Region::new("explicit");

fn guard() {
    let _guard = region!("guard");
}

fn explicit() {
    EXPLICIT.start();
    EXPLICIT.stop();
}

/// Begins with the two baselines, that of the measured clock first.
fn floors<'a>(ordered: bool) -> [SpanContestant<'a>; 2] {
    let plain = contestant("two bare `rdtsc`", 0, None, || {
        black_box(rdtsc());
        black_box(rdtsc());
    });
    let waiting = contestant("two bare `rdtscp`", 0, None, || {
        black_box(rdtscp());
        black_box(rdtscp());
    });
    if ordered {
        [waiting, plain]
    } else {
        [plain, waiting]
    }
}

/// Sets the clock of all regions.
fn configure(clock: ClockChoice, nested: bool) {
    let settings = RegionSettings {
        clock,
        nested,
        ..RegionSettings::default()
    };
    downbeat_regions::configure(settings).expect("there was no region yet");
}

fn ordered() -> Vec<String> {
    configure(ClockChoice::OrderedTsc, false);
    let tsc = TscClock::detect().expect("it was found before");
    let timer = RegionTimer::new(tsc, scale(&tsc));
    let mut contestants: Vec<_> = floors(true).into_iter().collect();
    contestants.pop();
    contestants.extend([
        contestant(
            "**`RegionTimer`, ordered, start and stop**",
            0,
            Some(1.25),
            || {
                let _ = black_box(&timer).start();
                let _ = black_box(&timer).stop();
            },
        ),
        contestant("**`region!`, ordered**", 0, Some(1.25), guard),
        contestant(
            "**`Region`, ordered, start and stop**",
            0,
            Some(1.25),
            explicit,
        ),
    ]);
    table(&contestants)
}

/// Regions with call paths, in a running region.
fn nested() -> Vec<String> {
    configure(ClockChoice::Cheapest, true);
    let _outer = region!("outer");
    let mut contestants: Vec<_> = floors(false).into_iter().collect();
    contestants.pop();
    contestants.extend([
        contestant(
            "**`region!`, unordered, with call paths**",
            0,
            Some(1.65),
            guard,
        ),
        contestant(
            "**`Region`, unordered, with call paths, start and stop**",
            0,
            Some(1.65),
            explicit,
        ),
    ]);
    table(&contestants)
}

fn unordered() -> Vec<String> {
    configure(ClockChoice::Cheapest, false);
    let tsc = TscClock::detect().expect("these ratios are about the time stamp counter");
    let timer = RegionTimer::new(tsc.unordered(), scale(&tsc));
    let high = RefCell::new(
        hdrhistogram::Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).expect("sound"),
    );
    let bucket = Arc::new(metrics_util::storage::AtomicBucket::new());
    let handle = metrics::Histogram::from_arc(Arc::clone(&bucket));
    // Used by this thread only.
    let _subscriber = tracing::subscriber::set_default(CountAndTotal::default());

    let mut contestants: Vec<_> = floors(false).into_iter().collect();
    contestants.extend([
        contestant(
            "**`RegionTimer`, unordered, start and stop**",
            0,
            Some(1.45),
            || {
                let _ = black_box(&timer).start();
                let _ = black_box(&timer).stop();
            },
        ),
        contestant("**`region!`, unordered**", 0, Some(1.45), guard),
        contestant(
            "**`Region`, unordered, start and stop**",
            0,
            Some(1.45),
            explicit,
        ),
        contestant("`Instant` and HdrHistogram, 2 digits", 1, None, || {
            let start = Instant::now();
            high.borrow_mut()
                .saturating_record(start.elapsed().as_nanos() as u64);
        }),
        contestant(
            "`Instant` and `metrics` histogram, by handle",
            1,
            None,
            || {
                let start = Instant::now();
                handle.record(start.elapsed());
            },
        ),
        contestant("`tracing` span, count and total only", 1, None, || {
            let _span = tracing::info_span!("region").entered();
        }),
        // It keeps every value: clear it, so that it does not fill the memory.
        contestant("(emptying the `metrics` histogram)", 1, None, || {}),
    ]);
    let last = contestants.len() - 1;
    contestants[last].pairs = Box::new(|| bucket.clear());
    table(&contestants)
}

/// Measures and prints the time to merge the reports of many simulated ranks; returns seconds.
fn merging() -> f64 {
    let (ranks, regions) = if cfg!(debug_assertions) {
        (64, 10)
    } else {
        (16_384, 100)
    };
    let profile = |rank: u32| {
        let region = |i: u32| {
            let length = if rank.is_multiple_of(7) {
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
                (DecimalBin::containing(90_000), 1),
            ];
            bins.sort_unstable();
            RegionProfile {
                threads: 1,
                events: 1_000,
                total: 1_000 * length + u64::from(rank),
                longest: event(90_000, 1),
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
            (0..regions).map(region).collect(),
        )
    };
    let (network, clocks) = (Network::typical(), Clocks::perfect());
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 64,
        sockets_per_node: 2,
        nodes_per_rack: None,
        network,
        clocks,
        seed: 1,
    };
    let start = Instant::now();
    let results = cluster.simulate(async |comm| {
        gather(&profile(comm.rank()), comm)
            .await
            .expect("all are there")
    });
    let results = results.expect("a sound cluster");
    let seconds = start.elapsed().as_secs_f64();
    let (messages, report) = (
        results.messages,
        results.results.into_iter().next().flatten(),
    );
    let lines = report
        .expect("rank 0 gets it")
        .text(&TextOptions::default())
        .lines()
        .count();
    println!(
        "\n{ranks} simulated ranks with {regions} regions each: merged in {seconds:.2} s (at most {MOST_SECONDS} s), by \
         {messages} messages, into {lines} lines"
    );
    seconds
}

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == ORDERED) {
        return u8::from(!ordered().is_empty()).into();
    }
    if std::env::args().any(|argument| argument == NESTED) {
        return u8::from(!nested().is_empty()).into();
    }
    println!(
        "| an empty region, timed by | ns | x floor | floor | must not exceed |\n|---|---|---|---|---|"
    );
    let mut missed = unordered();
    for (argument, name) in [(NESTED, "with call paths"), (ORDERED, "the ordered ones")] {
        let child = std::env::current_exe()
            .and_then(|program| Command::new(program).arg(argument).status());
        if !child.expect("this program can be started").success() {
            missed.push(name.to_owned());
        }
    }
    println!(
        "\nNot run again, from the project's notes, on a machine like the first one it was measured on: two `rdtsc` 17.6 \
         ns, two `rdtscp` 29.0; GPTL by handle 41.4, by name 55.6; `Instant` and HdrHistogram 50.9; Caliper 241."
    );
    let seconds = merging();
    if seconds > MOST_SECONDS {
        missed.push("merging".to_owned());
    }
    let Overhead {
        within_picos,
        whole_picos,
        ..
    } = downbeat_regions::profile().overhead;
    println!(
        "What `regions` says of itself: {within_picos} ps within an event, {whole_picos} ps for the whole."
    );
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("missed: {}", missed.join("; "));
    u8::from(std::env::args().any(|argument| argument == "--gate")).into()
}
