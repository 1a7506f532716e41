//! Reading the clocks of this crate, beside that of the standard library.

use criterion::{Criterion, criterion_group, criterion_main};
use downbeat::{GlobalClock, Instant, ThreadCluster};

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("now");
    Instant::clock();
    group.bench_function("Instant", |bencher| bencher.iter(Instant::now));
    group.bench_function("std::time::Instant", |bencher| {
        bencher.iter(std::time::Instant::now);
    });
    let alone = ThreadCluster::new(1).run(|comm| GlobalClock::builder().over(comm, 0));
    for clock in alone.into_iter().flatten().flatten() {
        group.bench_function("GlobalClock", |bencher| bencher.iter(|| clock.now()));
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
