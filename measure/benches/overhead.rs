//! Overhead of each scheme between two threads: the run-time that it finds for an
//! operation that does nothing, and the time that an observation takes:
//! `cargo bench -p downbeat-measure --bench overhead`.

#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]
#![expect(clippy::print_stdout, reason = "benchmarks print figures")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use downbeat_clock_core::Counter;
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{EachCall, RoundGrid, RoundTime, Scheme, Series, Windows};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{
    BuiltinKind, BuiltinOperation, Clock, ClockBasis, ClockModel, Global, MeasureContext,
    MessageCoordinator, Method, ThreadCluster, Timestamp,
};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::cores::pin_rank;
use downbeat_timers::{ClockName, MachineClock, SystemClock, SystemClockId};

/// Number of observations: schemes prepare before the first one.
const OBSERVATIONS: u32 = if cfg!(debug_assertions) { 10 } else { 2_000 };

/// Number of measurements of the run-time of nothing.
const MEASUREMENTS: usize = 10;

/// Overhead that one measurement finds.
struct Overhead {
    /// Mean run-time of a call of nothing in nanoseconds; `None` without a valid
    /// observation.
    run_time: Option<f64>,
    /// Time of an observation, valid or not.
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
        // Criterion takes no negative times.
        let run_times = (0..MEASUREMENTS).map(|_| measure(scheme, &clock, model).run_time);
        let described = describe_run_times(run_times.flatten().collect());
        println!("{scheme}/run-time of nothing: {described}");
        let mut group = criterion.benchmark_group(scheme.to_string());
        group.sample_size(10);
        group.warm_up_time(Duration::from_millis(100));
        group.measurement_time(Duration::from_millis(500));
        group.bench_function("observation", |bencher| {
            bencher.iter_custom(|observations| {
                let overhead = measure(scheme, &clock, model);
                overhead.observation.mul_f64(observations as f64)
            });
        });
        group.finish();
    }
}

/// Describes mean run-times in nanoseconds. They can be negative, as rounded times of
/// different threads can seem to end before they begin.
fn describe_run_times(mut run_times: Vec<f64>) -> String {
    run_times.sort_by(f64::total_cmp);
    let [first, .., last] = run_times[..] else {
        return "too few valid observations".to_owned();
    };
    let median = run_times[run_times.len() / 2];
    if median <= 0.0 {
        return "below resolution".to_owned();
    }
    let measurements = run_times.len();
    format!("{median:.1} ns ({first:.1} to {last:.1} in {measurements} measurements)")
}

fn measure(scheme: Scheme, clock: &MachineClock, model: ClockModel<Counter, Global>) -> Overhead {
    let method = Method {
        warm_up: 10,
        scheme,
        stopping: Stopping::Count { most: OBSERVATIONS },
        processing: Processing::Median,
        root: 0,
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
    let observations = measured.observations;
    let run_times = observations.run_times();
    let mean = run_times.iter().sum::<f64>() / run_times.len() as f64;
    Overhead {
        run_time: Some(mean).filter(|_| !run_times.is_empty()),
        observation: lasted / observations.len().max(1) as u32,
    }
}

criterion_group!(benches, overhead);
criterion_main!(benches);
