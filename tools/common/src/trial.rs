//! Trials of synchronizations: their duration, and the offsets of the clocks afterwards.

use clap::Args;
use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::check::{AccuracyCheck, RankOffset, RankSample};
use downbeat_sync::{
    Algorithm, Comm, LocalClock, OffsetAlgorithm, Quality, SyncError, Synchronized, collective,
};

use crate::Failure;
use crate::cli::not_negative;
use crate::output::count;

/// Options for trials of synchronizations.
#[derive(Args, Clone, Debug)]
pub struct TrialOptions {
    /// Times after the synchronization at which to check the clocks, separated by commas
    #[arg(long, value_name = "TIMES", default_value = "0,10s", value_delimiter = ',', value_parser = not_negative, allow_hyphen_values = true)]
    pub check: Vec<Duration>,
    /// Number of runs of each algorithm
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_hyphen_values = true)]
    pub repeat: u32,
}

/// Options for checks that measure offsets with messages.
#[derive(Args, Clone, Copy, Debug)]
pub struct OffsetCheckOptions {
    /// Offset algorithm of the checks and number of its exchanges: ALGORITHM/EXCHANGES
    #[arg(long, value_name = "LABEL", default_value = "skampi/100")]
    pub check_by: OffsetAlgorithm,
    /// Measure only the offsets of a random share of the ranks
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share, allow_hyphen_values = true)]
    pub sample: f64,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|_| "must be a number".to_owned())?;
    RankSample::new(share, 0)
        .map(|_| share)
        .map_err(|why| why.to_string())
}

/// Trial of one algorithm.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Algorithm to run.
    pub algorithm: Algorithm,
    /// Check of the clocks; without one, the trial waits for no check.
    pub check: Option<AccuracyCheck>,
    /// Times of the checks after the synchronization.
    pub waits: Vec<Duration>,
}

/// Result of a trial.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// Global clock of this rank.
    pub synchronized: Synchronized,
    /// Duration of the synchronization by the clock of this rank.
    pub took: Duration,
    /// Worst quality of the clock of any rank.
    pub worst: Quality,
    /// Largest bound of the error of any rank's clock at the end of the synchronization.
    pub bound: Duration,
    /// Measured offsets, a list for each wait; only on rank 0.
    pub offsets: Vec<Vec<RankOffset>>,
}

impl TrialOptions {
    /// Returns the trial of one algorithm.
    pub fn trial(&self, algorithm: Algorithm, check: Option<AccuracyCheck>) -> Trial {
        Trial {
            algorithm,
            check,
            waits: self.check.clone(),
        }
    }
}

impl OffsetCheckOptions {
    /// Returns the check of this number of ranks. The seed selects those that are
    /// measured.
    ///
    /// # Errors
    /// If it selects none of several ranks.
    pub fn check(&self, seed: u64, ranks: u32) -> Result<AccuracyCheck, Failure> {
        let sample = RankSample::new(self.sample, seed);
        let sample = sample.map_err(|why| Failure::option("--sample", why))?;
        // The offset of rank 0 is to itself.
        let mut others = 1..ranks;
        let others_count = others.len();
        if others_count > 0 && !others.any(|rank| sample.contains(rank)) {
            let why = format!(
                "{} with --seed {seed} selects no rank, of {} besides rank 0: set a larger share or another seed",
                self.sample,
                count(others_count, "rank")
            );
            return Err(Failure::option("--sample", why));
        }
        Ok(AccuracyCheck {
            offset: self.check_by,
            ranks: sample,
        })
    }
}

impl Trial {
    /// Synchronizes, and checks the clocks after each wait. All ranks call this.
    ///
    /// `pause` lets time pass; `inspect` is called after each check.
    ///
    /// # Errors
    /// When the synchronization or a check fails, on all ranks.
    pub async fn run<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
        mut pause: impl FnMut(Duration),
        mut inspect: impl AsyncFnMut(&Synchronized) -> Result<(), SyncError>,
    ) -> Result<TrialResult, SyncError> {
        collective::barrier(comm).await?;
        let began = me.now();
        // Ends on all ranks together.
        let synchronized = self.algorithm.synchronize(me, comm).await?;
        let took = me.now() - began;
        // Boxed, so that the future of a synchronization is small: there may be a million simulated ranks.
        let bound = Box::pin(collective::all_reduce(
            comm,
            synchronized.bound.half_width(),
            Duration::max,
        ))
        .await?;
        let (worst, offsets) =
            Box::pin(self.check_clocks(me, comm, &synchronized, &mut pause, &mut inspect)).await?;
        Ok(TrialResult {
            synchronized,
            took,
            worst,
            bound,
            offsets,
        })
    }

    /// Returns the worst quality, and the offsets after each wait.
    async fn check_clocks<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
        synchronized: &Synchronized,
        pause: &mut impl FnMut(Duration),
        inspect: &mut impl AsyncFnMut(&Synchronized) -> Result<(), SyncError>,
    ) -> Result<(Quality, Vec<Vec<RankOffset>>), SyncError> {
        let ended = me.now();
        let worst = collective::all_reduce(comm, synchronized.quality, Quality::worse).await?;
        let mut offsets = Vec::new();
        let Some(check) = self.check else {
            return Ok((worst, offsets));
        };
        for wait in &self.waits {
            pause((*wait - (me.now() - ended)).max(Duration::ZERO));
            // A rank that woke up late must not look like a slow clock.
            collective::barrier(comm).await?;
            let checked = check.measure(me.clock(), synchronized.model, comm).await?;
            // There may be a million other ranks, which have no offsets.
            if comm.rank() == 0 {
                offsets.push(checked);
            }
            inspect(synchronized).await?;
        }
        Ok((worst, offsets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_without_ranks_is_refused() {
        let options = OffsetCheckOptions {
            check_by: OffsetAlgorithm::default(),
            sample: 0.5,
        };
        let selects = |seed| options.check(seed, 2).is_ok();
        let selecting = (0..100).filter(|seed| selects(*seed)).count();
        assert!((20..80).contains(&selecting), "{selecting}");
        let seed = (0..100).find(|seed| !selects(*seed)).unwrap();
        let Err(Failure::Input(why)) = options.check(seed, 2) else {
            unreachable!("the sample is empty")
        };
        assert!(
            why.starts_with("--sample: 0.5 with --seed ") && why.contains("1 rank besides rank 0"),
            "{why}"
        );
        // A single rank has no offset to measure.
        assert!(options.check(seed, 1).is_ok());
        let all = OffsetCheckOptions {
            sample: 1.0,
            ..options
        };
        assert!((0..100).all(|seed| all.check(seed, 2).is_ok()));
    }
}
