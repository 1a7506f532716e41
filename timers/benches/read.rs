//! Read cost of each clock: `cargo bench -p downbeat-timers --bench read`.
//!
//! For ratios between clocks see `ratios.rs`: criterion times one clock after the other, and the speed of the machine can
//! change in between.

use core::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use downbeat_clock_core::{ClockModel, Global, ModelClock, TickRate, Timestamp};
use downbeat_timers::calibration::Bracket;
use downbeat_timers::cores::current_core;
use downbeat_timers::skew::{Skew, SkewedClock, Truth};
use downbeat_timers::{Clock, CntvctClock, SystemClock, SystemClockId, TscClock};

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    if let Ok(tsc) = TscClock::detect() {
        group.bench_function("tsc/unordered", |bench| {
            bench.iter(|| tsc.unordered().ticks());
        });
        group.bench_function("tsc/ordered", |bench| bench.iter(|| tsc.ticks()));
        group.bench_function("tsc/ordered, with core", |bench| {
            bench.iter(|| tsc.ticks_and_core());
        });
        group.bench_function("tsc/open", |bench| bench.iter(|| tsc.open()));
        group.bench_function("tsc/close", |bench| bench.iter(|| tsc.close()));
        if let Ok(model) = ClockModel::through(
            tsc.ticks(),
            Timestamp::<Global>::ORIGIN,
            TickRate::NANOSECOND,
        ) {
            let clock = ModelClock::new(tsc, model);
            group.bench_function("tsc/global clock", |bench| bench.iter(|| clock.now()));
        }
    }
    if let Ok(cntvct) = CntvctClock::detect() {
        group.bench_function("cntvct", |bench| bench.iter(|| cntvct.ticks()));
    }
    for clock in SystemClockId::ALL.into_iter().flat_map(SystemClock::detect) {
        group.bench_function(clock.id().name(), |bench| bench.iter(|| clock.ticks()));
        let Ok(truth) = ClockModel::through(
            clock.ticks(),
            Timestamp::<Truth>::ORIGIN,
            TickRate::NANOSECOND,
        ) else {
            continue;
        };
        if clock.id() == SystemClockId::MonotonicRaw {
            let skew = Skew {
                drift: 1e-6,
                ..Skew::default()
            };
            if let Ok(skewed) = SkewedClock::new(clock, truth, skew) {
                group.bench_function("skewed CLOCK_MONOTONIC_RAW", |bench| {
                    bench.iter(|| skewed.ticks());
                });
            }
        }
    }
    group.bench_function("std Instant", |bench| bench.iter(std::time::Instant::now));
    group.bench_function("quanta Instant", |bench| bench.iter(quanta::Instant::now));
    group.bench_function("minstant Instant", |bench| {
        bench.iter(minstant::Instant::now);
    });
    group.finish();
    criterion.bench_function("current core", |bench| bench.iter(current_core));

    let pair = (
        TscClock::detect(),
        SystemClock::detect(SystemClockId::MonotonicRaw),
    );
    if let (Ok(tsc), Ok(raw)) = pair {
        criterion.bench_function("one end of a calibration", |bench| {
            bench.iter(|| Bracket::measure(&tsc, black_box(&raw)));
        });
    }
}

criterion_group!(benches, read);
criterion_main!(benches);
