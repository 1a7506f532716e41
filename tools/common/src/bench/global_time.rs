//! What the clocks of ranks show while operations are measured.

use clap::Args;
use downbeat_clock_core::{Clock, Duration, Local, Timestamp};
use downbeat_measure::{Method, Time};
use downbeat_records::Factors;
use downbeat_sync::{
    Algorithm, Comm, LocalClock, SyncError, Synchronized, block_on_ready, collective,
};

use crate::cli::not_negative;
use crate::{Failure, agree_blocking};

/// How the ranks get one clock, and how often.
#[derive(Args, Clone, Debug)]
pub struct GlobalClockOptions {
    /// How the ranks get one clock, where the scheme needs one: a LABEL of the command sync [default:
    /// h2hca(hca3/1000/skampi/100,prop)]
    #[arg(long, value_name = "LABEL")]
    sync: Option<Algorithm>,
    /// Get it anew when it is older than this
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = not_negative, allow_hyphen_values = true)]
    resync: Duration,
}

const DEFAULT: &str = "h2hca(hca3/1000/skampi/100,prop)";

impl GlobalClockOptions {
    /// How the ranks get one clock; nothing if they need none, and nobody asked for one.
    ///
    /// # Errors
    /// None in fact: the default is a label.
    pub fn algorithm(&self, method: &Method) -> Result<Option<Algorithm>, Failure> {
        match self.sync {
            None if method.needs_global_time() => DEFAULT.parse().map(Some).map_err(Failure::run),
            asked_for => Ok(asked_for),
        }
    }

    /// What the results depend on.
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

/// What the clock of this rank shows: time of all ranks, if that is needed, and then not too old.
#[derive(Debug)]
pub struct GlobalTime<'a, M, K> {
    comm: &'a M,
    me: LocalClock<'a, K>,
    algorithm: Option<Algorithm>,
    resync: Duration,
    /// And since when, by the rank's own clock.
    model: Option<(Synchronized, Timestamp<Local>)>,
}

impl<'a, M: Comm, K: Clock> GlobalTime<'a, M, K> {
    /// For measurements by this method. No rank has learned anything yet.
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

    /// Which time the rank goes by now. All ranks call this: they get it anew when it is older than wanted.
    ///
    /// # Errors
    /// When a rank cannot learn it, on all of them.
    pub fn time(&mut self) -> Result<Time, Failure> {
        let Some(algorithm) = self.algorithm else {
            return Ok(Time::Local(self.me.base()));
        };
        let old = self
            .model
            .as_ref()
            .is_none_or(|(_, since)| self.me.now() - *since > self.resync);
        // Only rank 0 knows when that is.
        let old = block_on_ready(collective::broadcast(self.comm, u64::from(old)))
            .map_err(Failure::run)?
            != 0;
        if let (Some((known, _)), false) = (&self.model, old) {
            return Ok(Time::Global(known.model));
        }
        let mine = match algorithm.synchronize_blocking(&self.me, self.comm) {
            Ok(synchronized) => Ok(Some(synchronized)),
            // The rank that failed itself has something to say.
            Err(SyncError::OtherRank(_)) => Ok(None),
            Err(why) => Err(Failure::Run(format!(
                "rank {}: {algorithm}: {why}",
                self.comm.rank()
            ))),
        };
        let mine = agree_blocking(self.comm, mine)?;
        let mine = mine.ok_or_else(|| Failure::run(format!("{algorithm} failed")))?;
        let model = mine.model;
        self.model = Some((mine, self.me.now()));
        Ok(Time::Global(model))
    }
}
