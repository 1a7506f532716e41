//! Reading the clocks of this crate, beside that of the standard library.

use std::sync::Mutex;

use criterion::{Criterion, criterion_group, criterion_main};
use downbeat::{GlobalClock, GlobalClockError, Instant};

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("now");
    Instant::clock();
    group.bench_function("Instant", |bencher| bencher.iter(Instant::now));
    group.bench_function("std::time::Instant", |bencher| {
        bencher.iter(std::time::Instant::now);
    });
    // The clock is lent to a thread.
    let group = Mutex::new(group);
    let measured: Result<_, GlobalClockError> = GlobalClock::over_threads(1, |clock, _| {
        if let Ok(mut group) = group.lock() {
            group.bench_function("GlobalClock", |bencher| bencher.iter(|| clock.now()));
        }
    });
    assert!(measured.is_ok(), "{measured:?}");
}

criterion_group!(benches, read);
criterion_main!(benches);
