//! Reading a global clock: inline in C, by a call into the library, and in Rust, as ratios to Rust and to `rdtscp` within one run:
//! `cargo bench -p downbeat-capi --bench read [-- --gate]`.
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
use std::process::ExitCode;
use std::ptr;

use downbeat::{Clock, ClockName, MachineClock};
use downbeat_c::{
    ClockHandle, DOWNBEAT_ABI, DOWNBEAT_OK, Model, downbeat_clock_close, downbeat_clock_model,
    downbeat_clock_now, downbeat_clock_now_with_bounds, downbeat_clock_now_with_error,
    downbeat_clock_open_abi, downbeat_model_read,
};
use inline::InlineFunctions;

const BLOCKS: usize = 2_000;
const READS: u64 = 1_000;

/// `compiled_reads`.
type Reads = unsafe extern "C" fn(*const Model, u64) -> i64;
/// `compiled_value_calls`.
type ValueCalls =
    unsafe extern "C" fn(unsafe extern "C" fn(*const Model) -> i64, *const Model, u64) -> i64;
/// `compiled_calls`.
type Calls = unsafe extern "C" fn(
    unsafe extern "C" fn(*const ClockHandle, *mut i64) -> c_int,
    *const ClockHandle,
    u64,
) -> i64;

/// `compiled_calls_for_two`.
type CallsForTwo = unsafe extern "C" fn(
    unsafe extern "C" fn(*const ClockHandle, *mut i64, *mut i64) -> c_int,
    *const ClockHandle,
    u64,
) -> i64;

/// A name, reads, and the maximum ratio to one of the first two contestants.
type ReadContestant<'a> = (&'static str, &'a dyn Fn() -> i64, Option<(usize, f64)>);

/// The first contestants.
const FLOORS: [&str; 2] = ["`rdtscp`", "Rust `now`"];

fn main() -> ExitCode {
    let Ok(tsc) = MachineClock::detect(ClockName::Tsc) else {
        println!("not run: this machine has no time stamp counter");
        return ExitCode::SUCCESS;
    };
    let library = InlineFunctions::compile("read");
    // SAFETY: the types of the functions.
    let reads: Reads = unsafe { transmute(library.address(c"compiled_reads")) };
    // SAFETY: as above.
    let value_calls: ValueCalls = unsafe { transmute(library.address(c"compiled_value_calls")) };
    // SAFETY: as above.
    let calls: Calls = unsafe { transmute(library.address(c"compiled_calls")) };
    // SAFETY: as above.
    let calls_for_two: CallsForTwo =
        unsafe { transmute(library.address(c"compiled_calls_for_two")) };
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

    let bare = || (0..READS).map(|_| tsc.ticks().0 as i64).sum();
    let in_rust = || (0..READS).map(|_| black_box(&rust).now().as_nanos()).sum();
    // SAFETY: the model of an open clock.
    let inline = || unsafe { reads(model, READS) };
    // SAFETY: as above.
    let value_called = || unsafe { value_calls(downbeat_model_read, model, READS) };
    // SAFETY: an open clock.
    let called = || unsafe { calls(downbeat_clock_now, handle, READS) };
    // SAFETY: as above.
    let with_error = || unsafe { calls_for_two(downbeat_clock_now_with_error, handle, READS) };
    // SAFETY: as above.
    let with_bounds = || unsafe { calls_for_two(downbeat_clock_now_with_bounds, handle, READS) };
    let measured: [ReadContestant<'_>; 7] = [
        (FLOORS[0], &bare, None),
        (FLOORS[1], &in_rust, None),
        (
            "inline in C: `downbeat_model_now`",
            &inline,
            Some((1, 1.02)),
        ),
        (
            "call from C: `downbeat_model_read`",
            &value_called,
            Some((1, 1.10)),
        ),
        (
            "the same, with the result in memory: `downbeat_clock_now`",
            &called,
            None,
        ),
        (
            "`downbeat_clock_now_with_error`",
            &with_error,
            Some((0, 1.45)),
        ),
        (
            "`downbeat_clock_now_with_bounds`",
            &with_bounds,
            Some((0, 1.45)),
        ),
    ];
    let mut ticks = measured.map(|_| Vec::with_capacity(BLOCKS));
    for _ in 0..BLOCKS {
        for ((_, read, _), ticks) in measured.iter().zip(&mut ticks) {
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
        "| reading a global clock | ticks | x rdtscp | x Rust | must not exceed |\n|---|---|---|---|---|"
    );
    let mut is_missed = false;
    for ((name, _, limit), median) in measured.iter().zip(medians) {
        let [floor, rust] = [0, 1].map(|other: usize| median / medians[other]);
        let shown = limit.map_or("-".to_owned(), |(other, limit)| {
            format!("{limit} x {}", FLOORS[other])
        });
        println!("| {name} | {median:.1} | {floor:.3} | {rust:.3} | {shown} |");
        is_missed |= limit.is_some_and(|(other, limit)| median / medians[other] > limit);
    }
    // SAFETY: an open clock.
    unsafe { downbeat_clock_close(handle) };
    u8::from(is_missed && std::env::args().any(|argument| argument == "--gate")).into()
}
