//! Global clock of the ranks while operations are measured.

use clap::Args;
use downbeat_clock_core::{Clock, Duration};
use downbeat_measure::{Method, RenewableClock};
use downbeat_records::Factors;
use downbeat_sync::{Algorithm, Comm, LocalClock};

use crate::cli::not_negative;

/// Options for the global clock.
#[derive(Args, Clone, Debug)]
pub struct GlobalClockOptions {
    /// Synchronization algorithm, used if the scheme needs a global clock: a LABEL of the
    /// command sync [default: auto/100ms]
    #[arg(long, value_name = "LABEL")]
    sync: Option<Algorithm>,
    /// Synchronize again when the global clock is older than this; also if it drifts by 2 % of a run-time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = not_negative, allow_hyphen_values = true)]
    resync: Duration,
}

impl GlobalClockOptions {
    /// Returns the synchronization algorithm that the user selected.
    pub fn selected(&self) -> Option<Algorithm> {
        self.sync
    }

    /// Returns the synchronization algorithm; `None` if no global clock is needed or wanted.
    pub fn algorithm(&self, method: &Method) -> Option<Algorithm> {
        self.sync
            .or_else(|| method.needs_global_time().then(Algorithm::default))
    }

    /// Returns the clock of the ranks of a communicator, before any synchronization; `None` if no global clock is needed or
    /// wanted.
    pub fn clock<'a, M: Comm, K: Clock>(
        &self,
        comm: &'a M,
        me: LocalClock<'a, K>,
        method: &Method,
    ) -> Option<RenewableClock<'a, M, K>> {
        let clock = |algorithm| RenewableClock::new(comm, me, algorithm, self.resync);
        self.algorithm(method).map(clock)
    }

    /// Adds the factors on which the results depend.
    pub fn factors(&self, factors: Factors, method: &Method) -> Factors {
        match self.algorithm(method) {
            Some(algorithm) => factors
                .with("sync", &algorithm)
                .with("resync", &self.resync),
            None => factors,
        }
    }
}
