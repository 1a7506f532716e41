//! Trying out a synchronization: how long it takes, and how far apart the clocks are afterwards.

use clap::Args;
use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{
    AccuracyCheck, Algorithm, Comm, LocalClock, OffsetAlgorithm, Quality, RankOffset, RankSample,
    SyncError, Synchronized, collective,
};

use crate::cli::not_negative;

/// How synchronizations are tried out.
#[derive(Args, Clone, Debug)]
pub struct TrialOptions {
    /// When to look at the clocks: times after the synchronization
    #[arg(long, value_name = "TIMES", default_value = "0,10s", value_delimiter = ',', value_parser = not_negative, allow_hyphen_values = true)]
    pub check: Vec<Duration>,
    /// How to look at them: OFFSET ALGORITHM/EXCHANGES
    #[arg(long, value_name = "LABEL", default_value = "skampi/100")]
    pub check_by: OffsetAlgorithm,
    /// Look at a random share of the ranks only
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share, allow_hyphen_values = true)]
    pub sample: f64,
    /// How often to try each algorithm
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_hyphen_values = true)]
    pub repeat: u32,
    /// For everything random
    #[arg(long, default_value_t = 1, allow_hyphen_values = true)]
    pub seed: u64,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|_| "a share is a number".to_owned())?;
    RankSample::new(share, 0)
        .map(|_| share)
        .map_err(|why| why.to_string())
}

/// One algorithm, to be tried once.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Which.
    pub algorithm: Algorithm,
    /// How the clocks are looked at,
    pub check: AccuracyCheck,
    /// and when, after the synchronization.
    pub waits: Vec<Duration>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// This rank's global clock.
    pub synchronized: Synchronized,
    /// How long the synchronization took, by the clock of this rank.
    pub took: Duration,
    /// The worst that any rank knows of its own clock.
    pub worst: Quality,
    /// What was seen, once for each wait; on rank 0 alone.
    pub seen: Vec<Vec<RankOffset>>,
}

impl TrialOptions {
    /// The trial of one algorithm.
    ///
    /// # Errors
    /// None in fact: the share was looked at when it was read.
    pub fn trial(&self, algorithm: Algorithm) -> Result<Trial, String> {
        let ranks = RankSample::new(self.sample, self.seed).map_err(|why| why.to_string())?;
        let check = AccuracyCheck {
            offset: self.check_by,
            ranks,
        };
        Ok(Trial {
            algorithm,
            check,
            waits: self.check.clone(),
        })
    }
}

impl Trial {
    /// Synchronizes, and looks at the clocks after each wait. All ranks call this.
    ///
    /// `pause` lets time pass; `look` is called after each check, for whoever knows more.
    ///
    /// # Errors
    /// When the synchronization or a check fails, on all ranks.
    pub async fn run<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
        mut pause: impl FnMut(Duration),
        mut look: impl AsyncFnMut(&Synchronized) -> Result<(), SyncError>,
    ) -> Result<TrialResult, SyncError> {
        collective::barrier(comm).await?;
        let began = me.now();
        // Ends with an agreement of all ranks: nobody is done before all are.
        let synchronized = self.algorithm.synchronize(me, comm).await?;
        let took = me.now() - began;
        // In a box, which there is not before: a million simulated ranks need the room for synchronizing.
        let (worst, seen) =
            Box::pin(self.look_on(me, comm, &synchronized, &mut pause, &mut look)).await?;
        Ok(TrialResult {
            synchronized,
            took,
            worst,
            seen,
        })
    }

    /// What is known, and what is seen after each wait.
    async fn look_on<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
        synchronized: &Synchronized,
        pause: &mut impl FnMut(Duration),
        look: &mut impl AsyncFnMut(&Synchronized) -> Result<(), SyncError>,
    ) -> Result<(Quality, Vec<Vec<RankOffset>>), SyncError> {
        let ended = me.now();
        let worst = collective::all_reduce(comm, synchronized.quality, worse).await?;
        let mut seen = Vec::new();
        for wait in &self.waits {
            pause((*wait - (me.now() - ended)).max(Duration::ZERO));
            // Ranks that woke up late are not taken for slow clocks.
            collective::barrier(comm).await?;
            let checked = self
                .check
                .measure(me.clock(), synchronized.model, comm)
                .await?;
            // A million ranks that saw nothing need not keep that.
            if comm.rank() == 0 {
                seen.push(checked);
            }
            look(synchronized).await?;
        }
        Ok((worst, seen))
    }
}

/// The worse of each figure; what was left out is counted together.
fn worse(a: Quality, b: Quality) -> Quality {
    Quality {
        residual_deviation: a
            .residual_deviation
            .into_iter()
            .chain(b.residual_deviation)
            .reduce(f64::max),
        half_width: a.half_width.zip(b.half_width).map(|(a, b)| a.max(b)),
        left_out: a.left_out.saturating_add(b.left_out),
    }
}
