//! Global time of the ranks while operations are measured.

use clap::Args;
use downbeat_clock_core::{Clock, Duration, Local, Timestamp};
use downbeat_measure::{ClockBasis, Method};
use downbeat_records::Factors;
use downbeat_sync::{
    Algorithm, Comm, LocalClock, SyncError, Synchronized, block_on_ready, collective,
};

use crate::cli::not_negative;
use crate::{Failure, agree_blocking};

/// Options for the global clock.
#[derive(Args, Clone, Debug)]
pub struct GlobalClockOptions {
    /// Synchronization algorithm, used if the scheme needs a global clock: a LABEL of the command sync [default:
    /// h2hca(hca3/1000/skampi/100,prop)]
    #[arg(long, value_name = "LABEL")]
    sync: Option<Algorithm>,
    /// Synchronize again when the global clock is older than this
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = not_negative, allow_hyphen_values = true)]
    resync: Duration,
}

const DEFAULT: &str = "h2hca(hca3/1000/skampi/100,prop)";

impl GlobalClockOptions {
    /// Returns the synchronization algorithm; `None` if no global clock is needed or wanted.
    ///
    /// # Errors
    /// Never: the default is a valid label.
    pub fn algorithm(&self, method: &Method) -> Result<Option<Algorithm>, Failure> {
        match self.sync {
            None if method.needs_global_time() => DEFAULT.parse().map(Some).map_err(Failure::run),
            given => Ok(given),
        }
    }

    /// Adds the factors on which the results depend.
    ///
    /// # Errors
    /// As [`algorithm`](Self::algorithm).
    pub fn factors(&self, factors: Factors, method: &Method) -> Result<Factors, Failure> {
        Ok(match self.algorithm(method)? {
            Some(algorithm) => factors
                .with("sync", &algorithm)
                .with("resync", &self.resync),
            None => factors,
        })
    }
}

/// Time of a rank during measurements: global time that is not too old if it is needed, otherwise local time.
#[derive(Debug)]
pub struct GlobalTime<'a, M, K> {
    comm: &'a M,
    me: LocalClock<'a, K>,
    algorithm: Option<Algorithm>,
    resync: Duration,
    /// The last synchronization, and its local time.
    model: Option<(Synchronized, Timestamp<Local>)>,
}

impl<'a, M: Comm, K: Clock> GlobalTime<'a, M, K> {
    /// Prepares measurements by this method, before any synchronization.
    ///
    /// # Errors
    /// As [`GlobalClockOptions::algorithm`].
    pub fn new(
        comm: &'a M,
        me: LocalClock<'a, K>,
        options: &GlobalClockOptions,
        method: &Method,
    ) -> Result<Self, Failure> {
        Ok(Self {
            comm,
            me,
            algorithm: options.algorithm(method)?,
            resync: options.resync,
            model: None,
        })
    }

    /// Returns the time to use now; synchronizes again if it is too old. All ranks call this.
    ///
    /// # Errors
    /// When the synchronization fails, on all ranks.
    pub fn time(&mut self) -> Result<ClockBasis, Failure> {
        let Some(algorithm) = self.algorithm else {
            return Ok(ClockBasis::Local(self.me.base()));
        };
        let old = self
            .model
            .as_ref()
            .is_none_or(|(_, since)| self.me.now() - *since > self.resync);
        // Rank 0 decides for all.
        let old = block_on_ready(collective::broadcast(self.comm, u64::from(old)))
            .map_err(Failure::run)?
            != 0;
        if let (Some((synchronized, _)), false) = (&self.model, old) {
            return Ok(ClockBasis::Global(synchronized.model));
        }
        let result = match algorithm.synchronize_blocking(&self.me, self.comm) {
            Ok(synchronized) => Ok(Some(synchronized)),
            // The rank that failed by itself reports the failure.
            Err(SyncError::OtherRank(_)) => Ok(None),
            Err(why) => Err(Failure::Run(format!(
                "rank {}: {algorithm}: {why}",
                self.comm.rank()
            ))),
        };
        let synchronized = agree_blocking(self.comm, result)?
            .ok_or_else(|| Failure::run(format!("{algorithm} failed")))?;
        let model = synchronized.model;
        self.model = Some((synchronized, self.me.now()));
        Ok(ClockBasis::Global(model))
    }
}
