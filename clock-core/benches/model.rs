//! Run time of clock arithmetic and estimators: `cargo bench -p downbeat-clock-core`.

#![expect(clippy::expect_used, reason = "a benchmark may panic")]

use core::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use downbeat_clock_core::fit::OffsetFit;
use downbeat_clock_core::offset::{Exchange, OffsetSample, SkampiOffset, TraceCollectorOffset};
use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
use downbeat_clock_core::{
    ClockModel, Counter, Duration, Global, Local, PublishedModel, TickRate, Ticks, Timestamp,
};

fn local() -> ClockModel<Counter, Local> {
    let rate = TickRate::from_hz(2_600_000_000).expect("a rate");
    ClockModel::through(Ticks(1_000), Timestamp::ORIGIN, rate).expect("in range")
}

fn learned() -> ClockModel<Local, Global> {
    let rate = TickRate::NANOSECOND.with_drift(1.5e-6).expect("a rate");
    ClockModel::through(Timestamp::from_nanos(5), Timestamp::ORIGIN, rate).expect("in range")
}

fn models(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model");
    let global = local().then(&learned()).expect("in range");
    let cell = PublishedModel::new(global);
    let (ticks, time) = (
        Ticks(123_456_789_012),
        Timestamp::from_nanos(47_483_380_389),
    );
    group.bench_function("apply", |bench| {
        bench.iter(|| black_box(&global).apply(black_box(ticks)));
    });
    group.bench_function("load and apply", |bench| {
        bench.iter(|| black_box(&cell).apply(black_box(ticks)));
    });
    group.bench_function("invert", |bench| {
        bench.iter(|| black_box(&global).invert(black_box(time)));
    });
    group.bench_function("compose", |bench| {
        bench.iter(|| black_box(&local()).then(black_box(&learned())));
    });
    group.bench_function("encode and decode", |bench| {
        bench.iter(|| ClockModel::<Counter, Global>::decode(&black_box(&global).encode()));
    });
    let mut writer = cell.writer().expect("no other writer");
    group.bench_function("publish", |bench| {
        bench.iter(|| writer.publish(black_box(global)));
    });
    group.bench_function("ticks to a duration", |bench| {
        let rate = global.rate();
        bench.iter(|| black_box(rate).duration(black_box(2_600)));
    });
    group.finish();
}

fn exchange(i: i64) -> Exchange<Local, Global> {
    let sent = i * 1_000;
    Exchange {
        sent: Timestamp::from_nanos(sent),
        answered: Timestamp::from_nanos(sent + 400 + i % 7),
        received: Timestamp::from_nanos(sent + 900 + i % 13),
    }
}

fn estimates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("estimate");
    let exchanges: Vec<_> = (0..100).map(exchange).collect();
    group.bench_function("skampi, 100 exchanges", |bench| {
        bench.iter(|| {
            let mut estimator = SkampiOffset::new();
            black_box(&exchanges)
                .iter()
                .for_each(|exchange| estimator.push(*exchange).expect("in order"));
            estimator.estimate()
        });
    });
    let mut buffer = [Exchange::BLANK; 100];
    group.bench_function("trace collector, 100 exchanges", |bench| {
        bench.iter(|| {
            let mut estimator = TraceCollectorOffset::new(&mut buffer);
            black_box(&exchanges).iter().for_each(|exchange| {
                estimator
                    .push(*exchange)
                    .expect("the buffer is large enough");
            });
            estimator.estimate()
        });
    });
    group.bench_function("line through 1,000 offsets", |bench| {
        bench.iter(|| {
            let mut fit = OffsetFit::<Local>::new();
            for i in 0..1_000 {
                let at = Timestamp::from_nanos(black_box(i) * 60_000);
                fit.push(OffsetSample {
                    at,
                    offset: Duration::from_nanos(i * 60 + i % 5),
                    half_width: None,
                });
            }
            fit.line()
        });
    });
    let knots: Vec<_> = (0..100)
        .map(|i: i64| SplineKnot::<Local, Global> {
            at: Timestamp::from_nanos(i * 1_000_000_000),
            image: Timestamp::from_nanos(i * 1_000_001_000 + i % 7 * 50),
        })
        .collect();
    let spline = ConstrainedSpline::new(&knots).expect("ascending knots");
    group.bench_function("spline of 100 knots, one point", |bench| {
        bench.iter(|| spline.apply(black_box(Timestamp::from_nanos(47_123_456_789))));
    });
    group.finish();
}

criterion_group!(benches, models, estimates);
criterion_main!(benches);
