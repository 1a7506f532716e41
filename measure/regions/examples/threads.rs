//! Regions inside others, in several threads: `cargo run -p downbeat-regions --example threads`.
//!
//! Two threads share the work; the first has twice as much. The total of `work` adds up both, so that it takes longer than all; the table
//! of threads shows which one the other waits for. With the feature `json` and a path, it saves its report.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::hint::black_box;
use std::thread;

use downbeat_regions::region;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    thread::scope(|scope| {
        let _all = region!("all");
        scope.spawn(|| (0..10).for_each(|_| work(1)));
        for _ in 0..10 {
            let _step = region!("step");
            prepare();
            work(2);
        }
    });
    let report = downbeat_regions::report();
    print!("{report}");
    #[cfg(feature = "json")]
    if let Some(path) = std::env::args_os().nth(1) {
        report.save(path.as_ref())?;
    }
    Ok(())
}

fn prepare() {
    let _prepare = region!("prepare");
    busy(50_000);
}

fn work(parts: u64) {
    let _work = region!("work");
    for _ in 0..parts {
        let _part = region!("part");
        busy(200_000);
    }
}

fn busy(steps: u64) {
    black_box((0..steps).fold(0_u64, |sum, i| sum ^ black_box(i)));
}
