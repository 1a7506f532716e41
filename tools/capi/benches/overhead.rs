//! Calls of the C interface that stand in inner loops, beside a reading of their counter:
//! `cargo bench -p downbeat-capi --bench overhead`. For ratios in one run, and what is
//! inline in C, see `read.rs` and `timers.rs`.

#![expect(clippy::expect_used, reason = "a benchmark aborts on errors")]

use std::ptr;

use criterion::{Criterion, criterion_group, criterion_main};
use downbeat::{Clock as _, ClockName, MachineClock};
use downbeat_c::{
    ClockHandle, DOWNBEAT_ABI, DOWNBEAT_OK, TimerHandle, downbeat_clock_close, downbeat_clock_now,
    downbeat_clock_now_with_bounds, downbeat_clock_now_with_error, downbeat_clock_open_abi,
    downbeat_get_timer_abi, downbeat_start_timer, downbeat_stop_timer,
};

fn overhead(criterion: &mut Criterion) {
    let counter = MachineClock::detect(ClockName::Recommended).expect("a machine has a clock");
    criterion.bench_function("counter", |bencher| bencher.iter(|| counter.ticks()));

    let mut clock: *mut ClockHandle = ptr::null_mut();
    // SAFETY: the default clock, and a place for a pointer.
    let status = unsafe { downbeat_clock_open_abi(ptr::null(), &raw mut clock, DOWNBEAT_ABI) };
    assert_eq!(status, DOWNBEAT_OK, "the clock cannot be opened");
    let [mut first, mut second] = [0_i64; 2];
    criterion.bench_function("downbeat_clock_now", |bencher| {
        // SAFETY: an open clock, and a place.
        bencher.iter(|| unsafe { downbeat_clock_now(clock, &raw mut first) });
    });
    criterion.bench_function("downbeat_clock_now_with_error", |bencher| {
        bencher.iter(|| {
            // SAFETY: an open clock, and two places.
            unsafe { downbeat_clock_now_with_error(clock, &raw mut first, &raw mut second) }
        });
    });
    criterion.bench_function("downbeat_clock_now_with_bounds", |bencher| {
        bencher.iter(|| {
            // SAFETY: an open clock, and two places.
            unsafe { downbeat_clock_now_with_bounds(clock, &raw mut first, &raw mut second) }
        });
    });
    // SAFETY: an open clock.
    let status = unsafe { downbeat_clock_close(clock) };
    assert_eq!(status, DOWNBEAT_OK, "the clock cannot be closed");

    let mut timer: *mut TimerHandle = ptr::null_mut();
    // SAFETY: a name, and a place for a pointer.
    let status = unsafe { downbeat_get_timer_abi(c"empty".as_ptr(), &raw mut timer, DOWNBEAT_ABI) };
    assert_eq!(status, DOWNBEAT_OK, "there is no timer");
    criterion.bench_function("downbeat_start_timer, downbeat_stop_timer", |bencher| {
        bencher.iter(|| {
            // SAFETY: a timer.
            let started = unsafe { downbeat_start_timer(timer) };
            // SAFETY: as above.
            (started, unsafe { downbeat_stop_timer(timer) })
        });
    });
}

criterion_group!(benches, overhead);
criterion_main!(benches);
