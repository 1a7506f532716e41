//! Overhead of each scheme between two threads: the run-time that it finds for an operation that does nothing, and the time that an
//! observation takes: `cargo bench -p downbeat-measure --bench overhead`.

#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use downbeat_clock_core::Counter;
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{EachCall, RoundGrid, RoundTime, Scheme, Series, Windows};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{
    BuiltinKind, BuiltinOperation, Clock, ClockBasis, ClockModel, Collect, Global, MeasureContext,
    MessageCoordinator, Method, ThreadCluster, Timestamp,
};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::cores::pin_rank;
use downbeat_timers::{ClockName, MachineClock, SystemClock, SystemClockId};

/// Number of observations: schemes prepare before the first one.
const OBSERVATIONS: u32 = if cfg!(debug_assertions) { 10 } else { 2_000 };

/// What a scheme takes.
struct Overhead {
    /// Mean run-time of a call of nothing.
    run_time: Duration,
    /// Time of an observation.
    observation: Duration,
}

fn overhead(criterion: &mut Criterion) {
    let clock = MachineClock::detect(ClockName::Recommended).expect("a machine has a clock");
    let reference = SystemClock::detect(SystemClockId::Monotonic).expect("a system has a clock");
    let rate = calibrate_during(
        &clock,
        &reference,
        downbeat_measure::Duration::from_millis(20),
    )
    .expect("both clocks run")
    .rate();
    let model = ClockModel::<Counter, Global>::through(clock.ticks(), Timestamp::ORIGIN, rate)
        .expect("in range");
    let schemes = [
        Scheme::EachCall(EachCall::default()),
        Scheme::Series(Series::new(100)),
        Scheme::Windows(Windows { window: None }),
        Scheme::RoundTime(RoundTime::default()),
        Scheme::RoundGrid(RoundGrid::default()),
    ];
    for scheme in schemes {
        let taken = |of: fn(Overhead) -> Duration, calls: u64| {
            let taken = of(measure(scheme, &clock, model));
            taken.mul_f64(calls as f64)
        };
        let mut group = criterion.benchmark_group(scheme.to_string());
        group.sample_size(10);
        group.warm_up_time(Duration::from_millis(100));
        group.measurement_time(Duration::from_millis(500));
        group.bench_function("run-time of nothing", |bencher| {
            bencher.iter_custom(|calls| taken(|taken| taken.run_time, calls));
        });
        group.bench_function("observation", |bencher| {
            bencher.iter_custom(|calls| taken(|taken| taken.observation, calls));
        });
        group.finish();
    }
}

fn measure(scheme: Scheme, clock: &MachineClock, model: ClockModel<Counter, Global>) -> Overhead {
    let method = Method {
        warm_up: 10,
        scheme,
        stopping: Stopping::Count { most: OBSERVATIONS },
        processing: Processing::Median,
        root: 0,
        collect: Collect::RunTimes,
        probes: false,
    };
    let found = ThreadCluster::new(2).pin(pin_rank).run(|comm| {
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock,
            clock_basis: ClockBasis::Global(model),
        };
        let kind = BuiltinKind::Empty;
        let began = Instant::now();
        let measured = method.measure_blocking(&context, &mut BuiltinOperation { kind, comm });
        (measured, began.elapsed())
    });
    let (measured, lasted) = found
        .expect("threads can be pinned")
        .into_iter()
        .next()
        .expect("rank 0 has the result");
    let measured = measured.expect("nothing fails").expect("rank 0 has it");
    let run_times = measured.observations.run_times();
    let mean = run_times.iter().sum::<f64>() / run_times.len() as f64;
    Overhead {
        // Rounded times of different threads can seem to end before they begin.
        run_time: Duration::from_secs_f64(mean.max(0.1) * 1e-9),
        observation: lasted / run_times.len() as u32,
    }
}

criterion_group!(benches, overhead);
criterion_main!(benches);
