//! Reading a global clock: inline in C, by a call into the library, and in Rust, as ratios to Rust within one run.
//!
//! Blocks of reads alternate; a ratio is that of the medians of all blocks.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints its table"
)]

#[path = "../tests/inline/mod.rs"]
mod inline;

use core::ffi::c_int;
use std::hint::black_box;
use std::mem::transmute;
use std::ptr;

use downbeat::{Clock, ClockName, MachineClock};
use downbeat_c::{
    ClockHandle, DOWNBEAT_ABI, DOWNBEAT_OK, Model, downbeat_clock_close, downbeat_clock_model,
    downbeat_clock_now, downbeat_clock_open_abi,
};
use inline::InlineFunctions;

const BLOCKS: usize = 2_000;
const READS: u64 = 1_000;

/// `compiled_reads`.
type Reads = unsafe extern "C" fn(*const Model, u64) -> i64;
/// `compiled_calls`.
type Calls = unsafe extern "C" fn(
    unsafe extern "C" fn(*const ClockHandle, *mut i64) -> c_int,
    *const ClockHandle,
    u64,
) -> i64;

fn main() {
    let Ok(tsc) = MachineClock::detect(ClockName::Tsc) else {
        println!("not run: this machine has no time stamp counter");
        return;
    };
    let library = InlineFunctions::compile("read");
    // SAFETY: the types of the functions.
    let reads: Reads = unsafe { transmute(library.address(c"compiled_reads")) };
    // SAFETY: as above.
    let calls: Calls = unsafe { transmute(library.address(c"compiled_calls")) };
    let mut handle: *mut ClockHandle = ptr::null_mut();
    // SAFETY: a name, and a place for a pointer.
    let status = unsafe { downbeat_clock_open_abi(c"tsc".as_ptr(), &raw mut handle, DOWNBEAT_ABI) };
    assert!(status == DOWNBEAT_OK, "the clock cannot be opened");
    let mut model: *const Model = ptr::null();
    // SAFETY: an open clock, and a place for a pointer.
    let status = unsafe { downbeat_clock_model(handle, &raw mut model) };
    assert!(status == DOWNBEAT_OK, "the clock has no model");
    let local = downbeat::LocalTime::of_process(tsc, downbeat::Duration::from_millis(10));
    let rust = downbeat::GlobalClock::alone(local.expect("the counter can be calibrated"));

    let in_rust = || (0..READS).map(|_| black_box(&rust).now().as_nanos()).sum();
    // SAFETY: the model of an open clock.
    let inline = || unsafe { reads(model, READS) };
    // SAFETY: an open clock.
    let called = || unsafe { calls(downbeat_clock_now, handle, READS) };
    let measured: [(&str, &dyn Fn() -> i64); 3] = [
        ("Rust `now`", &in_rust),
        ("inline in C", &inline),
        ("call from C", &called),
    ];
    let mut ticks = measured.map(|_| Vec::with_capacity(BLOCKS));
    for _ in 0..BLOCKS {
        for ((_, read), ticks) in measured.iter().zip(&mut ticks) {
            let start = tsc.open();
            black_box(read());
            ticks.push(tsc.close().signed_since(start));
        }
    }
    let medians = ticks.map(|mut ticks| {
        ticks.sort_unstable();
        ticks[BLOCKS / 2] as f64 / READS as f64
    });
    println!(
        "| reading a global clock | ticks | relative to Rust | must not exceed |\n|---|---|---|---|"
    );
    for (((name, _), median), limit) in measured.iter().zip(medians).zip([1.0, 1.02, 1.10]) {
        println!(
            "| {name} | {median:.1} | {:.3} | {limit} |",
            median / medians[0]
        );
    }
    // SAFETY: an open clock.
    unsafe { downbeat_clock_close(handle) };
}
