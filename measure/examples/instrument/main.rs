//! Calibration of the measuring instrument: what is reported about operations of known run-time, by clocks that drift, wander and
//! count in steps, under noise that is independent or not, by all schemes and presets.
//!
//! Without arguments a short form, which CI runs. All tables, in some minutes: `cargo run --release -p downbeat-measure --example
//! instrument -- full`. A figure beyond its limit ends the program with a failure.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

mod coverage;
mod experiments;
mod noise;
mod simulated;
mod threads;

use std::error::Error;

/// Limits that were exceeded.
#[derive(Default)]
pub(crate) struct Checks {
    exceeded: Vec<String>,
}

impl Checks {
    /// Checks a limit.
    pub(crate) fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.exceeded.push(otherwise());
        }
    }

    /// Checks that a share of trials is not certainly above its limit.
    pub(crate) fn rate(
        &mut self,
        what: &str,
        case: impl FnOnce() -> String,
        found: u32,
        trials: u32,
        limit: f64,
    ) {
        let most = limit + 3.0 * (limit / f64::from(trials)).sqrt();
        self.require(f64::from(found) <= most * f64::from(trials), || {
            format!("{}: {} {what}", case(), share(found, trials))
        });
    }
}

/// Formats a share.
pub(crate) fn share(part: u32, whole: u32) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * f64::from(part) / f64::from(whole)),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let is_full = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("full") => true,
        Some(other) => {
            return Err(format!("unknown argument \"{other}\"; there is only \"full\"").into());
        }
    };
    let mut checks = Checks::default();
    simulated::table(is_full, &mut checks)?;
    threads::table(is_full)?;
    coverage::table(if is_full { 10_000 } else { 10 }, &mut checks);
    experiments::table(is_full, &mut checks)?;
    if checks.exceeded.is_empty() {
        Ok(())
    } else {
        Err(checks.exceeded.join("; ").into())
    }
}
