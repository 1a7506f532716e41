//! Limits of the rates of clocks, as a user declares them.

use clap::Args;
use downbeat_clock_core::{Clock, parse_share};
use downbeat_sync::LocalClock;

use crate::records::Factors;

/// Options that declare how clocks can drift, on which certain bounds depend.
#[derive(Args, Clone, Copy, Debug)]
pub struct DeclaredRates {
    /// Declare the largest drift of clocks from that of rank 0, by which the bounds of their errors grow [default: 0.001]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, allow_hyphen_values = true)]
    max_drift: Option<f64>,
    /// Declare the largest deviation of a clock's rate from its mean over 32 sessions, by which bounds of kept clocks grow between sessions instead
    #[arg(long, value_name = "SHARE", value_parser = parse_share, allow_hyphen_values = true)]
    max_wander: Option<f64>,
}

impl DeclaredRates {
    /// Returns the clock with the declared limits.
    #[must_use]
    pub fn of<'a, K: Clock>(&self, clock: LocalClock<'a, K>) -> LocalClock<'a, K> {
        let clock = clock.max_wander(self.max_wander);
        match self.max_drift {
            Some(drift) => clock.max_drift(drift),
            None => clock,
        }
    }

    /// Adds what is declared to the factors of a measurement.
    pub fn add_to(&self, mut factors: Factors) -> Factors {
        for (name, declared) in [
            ("max_drift", self.max_drift),
            ("max_wander", self.max_wander),
        ] {
            if let Some(declared) = declared {
                factors = factors.with(name, &declared);
            }
        }
        factors
    }
}
