//! Speed of statistics: `cargo bench -p downbeat-records`.

#![expect(clippy::expect_used, reason = "a benchmark aborts on errors")]

use core::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use downbeat_records::analysis::{Analysis, AnalysisSettings};
use downbeat_records::stats::{
    Confidence, HodgesLehmann, MannWhitney, Sample, SampleSizeCheck, ShapiroWilk, WelchTest,
};
use downbeat_records::{GroupKey, Launch, MeasuredGroup};

/// Run-times of a realistic distribution: a narrow peak with a long tail.
fn run_times(count: u64) -> Vec<f64> {
    (0..count)
        .map(|i| 400.0 + (i * 2_654_435_761 % 97) as f64 + if i % 53 == 0 { 5e4 } else { 0.0 })
        .collect()
}

fn statistics(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sample");
    for count in [1_000, 100_000] {
        group.throughput(Throughput::Elements(count));
        group.bench_function(
            format!("sort, filter, median and mean of {count}"),
            |bench| {
                let summarize = |mut values: Vec<f64>| {
                    let kept = Sample::new(&mut values)
                        .expect("finite")
                        .without_outliers(0.0);
                    (kept.median(), kept.mean())
                };
                bench.iter_batched(|| run_times(count), summarize, BatchSize::LargeInput);
            },
        );
    }
    group.finish();
}

/// Analyses ten launches with ten groups each.
fn analyses(criterion: &mut Criterion) {
    const COUNT: u64 = 10_000;
    let group = |bytes| MeasuredGroup {
        key: GroupKey {
            operation: "allreduce".to_owned(),
            bytes,
            ranks: 2,
        },
        nanos: run_times(COUNT),
        counts: vec![],
        figures: vec![],
    };
    let launch = || Launch {
        groups: (0..10).map(group).collect(),
        ..Launch::default()
    };
    let launches: Vec<(String, Launch)> =
        (0..10).map(|name| (format!("{name}"), launch())).collect();
    let mut group = criterion.benchmark_group("experiment");
    group
        .throughput(Throughput::Elements(100 * COUNT))
        .sample_size(10);
    group.bench_function("analysis of a million observations", |bench| {
        bench.iter(|| {
            Analysis::new(black_box(&launches), &AnalysisSettings::default())
                .expect("they are times")
        });
    });
    group.finish();
}

/// Medians of launches, all different, shifted by a constant.
fn medians(count: u32, shift: f64) -> Vec<f64> {
    (0..count)
        .map(|i| 400.0 + shift + f64::from(i.wrapping_mul(2_654_435_761) >> 8) / 1e6)
        .collect()
}

fn comparisons(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("two samples");
    // 49 is the largest size of the exact test; 30 is a usual number of launches.
    for count in [30, 49, 1_000] {
        let (mut first, mut second) = (medians(count, 0.0), medians(count, 0.5));
        let first = Sample::new(&mut first).expect("finite");
        let second = Sample::new(&mut second).expect("finite");
        let both = || (black_box(&first), black_box(&second));
        group.bench_function(format!("Mann and Whitney, {count} each"), |bench| {
            bench.iter(|| MannWhitney::new(both().0, both().1));
        });
        group.bench_function(format!("Hodges and Lehmann, {count} each"), |bench| {
            bench.iter(|| HodgesLehmann::new(both().0, both().1, Confidence::USUAL));
        });
        group.bench_function(format!("Welch, {count} each"), |bench| {
            bench.iter(|| WelchTest::new(both().0, both().1));
        });
        group.bench_function(format!("Shapiro and Wilk, {count}"), |bench| {
            bench.iter(|| ShapiroWilk::new(both().0));
        });
        group.bench_function(format!("interval of the mean, {count}"), |bench| {
            bench.iter(|| both().0.mean_interval(Confidence::USUAL));
        });
    }
    group.finish();

    let mut values = run_times(10_000);
    let sample = Sample::new(&mut values).expect("finite");
    let check = SampleSizeCheck {
        sizes: vec![500],
        ..SampleSizeCheck::as_published(1)
    };
    criterion.bench_function("500 means of 500 of 10,000", |bench| {
        bench.iter(|| check.run(black_box(&sample)));
    });
}

criterion_group!(benches, statistics, analyses, comparisons);
criterion_main!(benches);
