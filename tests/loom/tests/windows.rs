//! `PartExchange`, by which the parts of a simulated cluster pass from window to window, under the C11 memory model.
//!
//! `RUSTFLAGS="--cfg downbeat_loom" cargo test --release --manifest-path tests/loom/Cargo.toml --test windows -- --nocapture`

use downbeat_loom::explore;
use downbeat_sync::internal::{NextWindow, PartExchange, WindowReport};
use loom::sync::Arc;
use loom::thread;

/// Passes through all windows as a part. In each, it sends every part its number and that of the window, and must receive those of all
/// parts, of this window and no other.
fn pass(exchange: &PartExchange<(usize, usize)>, part: usize, parts: usize, windows: usize) {
    for window in 0..windows {
        let report = WindowReport {
            mail: vec![vec![(part, window)]; parts],
            earliest: Some((10 * window + part) as u64),
            failed: false,
        };
        let next = exchange.meet(window, part, report);
        let NextWindow { news, end } = next.expect("no part has failed");
        let all: Vec<_> = (0..parts).map(|other| (other, window)).collect();
        assert_eq!(news, all);
        assert_eq!(end, 10 * window as u64 + 5);
    }
}

/// Passes through the windows on several threads; each ends when all have nothing left, or one has failed.
fn all_pass(parts: usize, windows: usize, failing: Option<usize>) {
    let exchange = Arc::new(PartExchange::new(parts, 5));
    let run = move |exchange: &PartExchange<_>, part: usize| {
        pass(exchange, part, parts, windows);
        let last = WindowReport {
            mail: vec![],
            earliest: failing.map(|_| 99),
            failed: failing == Some(part),
        };
        assert!(exchange.meet(windows, part, last).is_none());
    };
    // All in threads of their own: loom does not let one be woken that waits for another's end.
    let threads: Vec<_> = (0..parts)
        .map(|part| {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || run(&exchange, part))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a part panicked");
    }
}

#[test]
fn two_parts_in_three_windows() {
    explore("two parts in three windows", Some(3), || {
        all_pass(2, 3, None);
    });
}

#[test]
fn three_parts_in_one_window() {
    explore("three parts in one window", Some(1), || {
        all_pass(3, 1, None);
    });
}

#[test]
fn a_part_that_failed_ends_all() {
    explore("a part that failed", Some(3), || all_pass(2, 1, Some(1)));
}
