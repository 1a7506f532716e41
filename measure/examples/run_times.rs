//! Measures the run-times of a barrier of two threads by the system clock.

#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use downbeat_records::stats::Sample;

const CALLS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let (origin, barrier) = (Instant::now(), Barrier::new(2));
    let now = || origin.elapsed();
    let rank = || {
        let observe = |_| {
            let start = now();
            barrier.wait();
            (start, now())
        };
        (0..CALLS).map(observe).collect::<Vec<_>>()
    };
    let [here, there] = thread::scope(|scope| {
        let other = scope.spawn(rank);
        [rank(), other.join().unwrap_or_default()]
    });
    let calls = here
        .iter()
        .zip(&there)
        // From the first start to the last end.
        .map(|(a, b)| a.1.max(b.1) - a.0.min(b.0));
    let mut nanos: Vec<f64> = calls.map(|span| span.as_nanos() as f64).collect();
    let sample = Sample::new(&mut nanos)?;
    let kept = sample.without_outliers(0.0);
    println!(
        "{} calls of a barrier, {} outliers set aside",
        sample.len(),
        sample.len() - kept.len()
    );
    println!("median {:.0} ns, mean {:.0} ns", kept.median(), kept.mean());
    Ok(())
}
