//! Frequency at which a core runs at the moment.
#![cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(
        unsafe_code,
        reason = "the compiler would shorten a chain of instructions that is written in Rust"
    )
)]

use std::time::Instant;

/// Number of instructions in a chain, each of which takes one cycle and needs the result of the one before.
const CYCLES: u32 = ROUNDS * UNROLLED;
const ROUNDS: u32 = 2_048;
const UNROLLED: u32 = 32;

/// Number of chains, the fastest of which counts: interrupts delay the others.
const CHAINS: u32 = 5;

/// Measures the time that a cycle of the core takes on which this thread runs, in nanoseconds of the system's clock; `None` on
/// processors other than x86-64 and aarch64.
///
/// The frequency of a core depends on what it and its neighbours have executed, so that this holds for the moment. It takes some 100 us.
///
/// ```
/// if let Some(cycle) = downbeat_timers::core_cycle() {
///     println!("{:.2} GHz", 1.0 / cycle);
/// }
/// ```
pub fn core_cycle() -> Option<f64> {
    let chain = || {
        let began = Instant::now();
        run_chain().then(|| began.elapsed().as_nanos() as f64 / f64::from(CYCLES))
    };
    (0..CHAINS).map_while(|_| chain()).reduce(f64::min)
}

/// Runs instructions that take one cycle each, between those that count the rounds.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! run {
    ($cycle:literal, $count:literal, $repeat:literal) => {
        // SAFETY: only the named registers change.
        unsafe {
            core::arch::asm!(
                "2:",
                ".rept {unrolled}",
                $cycle,
                ".endr",
                $count,
                $repeat,
                unrolled = const UNROLLED,
                value = inout(reg) 0_u64 => _,
                other = in(reg) 1_u64,
                rounds = inout(reg) ROUNDS => _,
                options(nomem, nostack),
            );
        }
    };
}

/// Runs the chain; returns false where its instructions are unknown.
fn run_chain() -> bool {
    // Exclusive or takes one cycle everywhere; additions of constants take none on some processors.
    #[cfg(target_arch = "x86_64")]
    run!("xor {value}, {other}", "sub {rounds:e}, 1", "jnz 2b");
    #[cfg(target_arch = "aarch64")]
    run!(
        "eor {value}, {value}, {other}",
        "subs {rounds:w}, {rounds:w}, #1",
        "b.ne 2b"
    );
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no assembly")]
    fn cycles_are_counted_where_the_instructions_are_known() {
        let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        let cycle = core_cycle();
        assert_eq!(cycle.is_some(), known);
        assert!(cycle.is_none_or(|nanos| nanos > 0.0));
    }
}
