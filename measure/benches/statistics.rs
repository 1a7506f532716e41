//! How fast observations become a summary: `cargo bench -p downbeat-measure`.

#![expect(clippy::expect_used, reason = "a benchmark has nobody to report to")]

use core::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use downbeat_clock_core::{Global, Timestamp};
use downbeat_measure::{Observation, Sample, run_time};

/// Run-times as they come from a machine: a narrow peak and a long tail.
fn run_times(count: u64) -> Vec<f64> {
    (0..count).map(|i| 400.0 + (i * 2_654_435_761 % 97) as f64 + if i % 53 == 0 { 5e4 } else { 0.0 }).collect()
}

fn statistics(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sample");
    for count in [1_000, 100_000] {
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("sort, filter, median and mean of {count}"), |bench| {
            let summarize = |mut values: Vec<f64>| {
                let kept = Sample::new(&mut values).expect("finite").without_outliers();
                (kept.median(), kept.mean())
            };
            bench.iter_batched(|| run_times(count), summarize, BatchSize::LargeInput);
        });
    }
    group.finish();

    let ranks: Vec<Observation<Global>> = (0..64)
        .map(|rank| Observation { start: Timestamp::from_nanos(rank), end: Timestamp::from_nanos(1_000 - rank) })
        .collect();
    criterion.bench_function("run-time of 64 ranks", |bench| bench.iter(|| run_time(black_box(&ranks))));
}

criterion_group!(benches, statistics);
criterion_main!(benches);
