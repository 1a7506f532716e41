//! Cost of a region by default and in the cheapest setting, beside the readings of its
//! clock: `cargo bench -p downbeat-regions --bench overhead`. For ratios in one run see
//! `regions.rs`.
//!
//! A program has one setting of regions, so the cheapest one is that of a child process.

#![expect(clippy::expect_used, reason = "a benchmark aborts on errors")]

use std::env;
use std::process::{Command, ExitCode};

use criterion::Criterion;
use downbeat_clock_core::Clock as _;
use downbeat_regions::region;
use downbeat_timers::{ClockName, MachineClock};

/// Variables of the cheapest setting.
const CHEAPEST: [(&str, &str); 2] = [
    ("DOWNBEAT_REGIONS_CLOCK", "cheapest"),
    ("DOWNBEAT_REGIONS_NESTED", "no"),
];

fn main() -> ExitCode {
    let is_cheapest = CHEAPEST
        .iter()
        .all(|(name, value)| env::var(name).is_ok_and(|set| set == *value));
    let mut criterion = Criterion::default().configure_from_args();
    if is_cheapest {
        criterion.bench_function("region/cheapest setting", |bencher| {
            bencher.iter(|| drop(region!("cheapest")));
        });
        return ExitCode::SUCCESS;
    }
    let clock = MachineClock::detect(ClockName::Recommended).expect("a machine has a clock");
    criterion.bench_function("two readings", |bencher| {
        bencher.iter(|| (clock.ticks(), clock.ticks()));
    });
    criterion.bench_function("region/default setting", |bencher| {
        bencher.iter(|| drop(region!("default")));
    });
    let mut child = Command::new(env::current_exe().expect("this program has a path"));
    let ended = child.args(env::args_os().skip(1)).envs(CHEAPEST).status();
    let has_ended = ended.expect("this program can be started").success();
    criterion.final_summary();
    u8::from(!has_ended).into()
}
