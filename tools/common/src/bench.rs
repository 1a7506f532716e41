//! Measuring operations: the options that programs share, the way through all groups, and what is shown in the end.

mod global_time;
mod method;
mod nearness;
mod output;

use std::fmt::Display;

use downbeat_measure::{MeasureError, Measured, Method, shuffle};
use downbeat_records::{Factors, GroupKey, MeasuredGroup, ObservationState};
use downbeat_sync::{Comm, block_on_ready, collective};

pub use global_time::{GlobalClockOptions, GlobalTime};
pub use method::MethodOptions;
pub use nearness::NearnessOptions;
pub use output::{BenchResults, LaunchHeader, OutputOptions};

use crate::machine::random_seed;
use crate::{Failure, ProgressBar, agree_blocking};

/// What is to be measured, and what the program knows of the conditions.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Everything that is to be measured.
    pub groups: Vec<GroupKey>,
    /// Draws its order by lot; where there is none, it is another each time.
    pub seed: Option<u64>,
    /// What the results depend on.
    pub factors: Factors,
    /// What is of this launch only, besides its seed and when it began.
    pub facts: Factors,
    /// What is said above the results.
    pub headline: String,
}

/// Who measured, and how.
pub fn headline(who: &str, method: &Method) -> String {
    format!(
        "{who}, scheme {}, processing {}",
        method.scheme, method.processing
    )
}

/// Returns the given numbers of ranks, or the default if there are none: ascending, without duplicates.
pub fn rank_counts(given: &[u32], default: u32) -> Vec<u32> {
    let mut counts = if given.is_empty() {
        vec![default]
    } else {
        given.to_vec()
    };
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Checks that there are enough ranks for an operation.
///
/// # Errors
/// When there are fewer than the minimum.
pub fn check_ranks(operation: &impl Display, min: u32, ranks: u32) -> Result<(), Failure> {
    if ranks >= min {
        return Ok(());
    }
    let why = format!("{operation} needs at least {min} ranks, not {ranks}");
    Err(Failure::option("--operation", why))
}

/// Measures one group after the other, and keeps each as soon as it is known. All ranks call this, with equal groups; what
/// was found, and what rank 0 planned, is on rank 0.
///
/// `measure` returns nothing on other ranks than rank 0. Groups that the record of this launch has already are left out.
///
/// # Errors
/// When a group cannot be measured or kept.
pub fn measure_all<M: Comm>(
    comm: &M,
    output: &OutputOptions,
    mut plan: BenchPlan,
    mut measure: impl FnMut(&GroupKey) -> Result<Option<Measured>, Failure>,
) -> Result<BenchResults, Failure> {
    let seed = plan.seed.unwrap_or_else(random_seed);
    let seed = block_on_ready(collective::broadcast(comm, seed)).map_err(Failure::run)?;
    let mut groups = std::mem::take(&mut plan.groups);
    shuffle(&mut groups, seed);
    let results = if comm.rank() == 0 {
        output.begin(plan, seed)
    } else {
        Ok(BenchResults::default())
    };
    let mut results = agree_blocking(comm, results)?;
    agree_blocking(comm, results.can_have(&groups))?;
    let progress = ProgressBar::new(0.0);
    for (number, key) in groups.iter().enumerate() {
        let known = comm.rank() == 0 && results.has(key);
        if block_on_ready(collective::broadcast(comm, u64::from(known))).map_err(Failure::run)? != 0
        {
            continue;
        }
        if comm.rank() == 0 {
            progress.say(&format!("{} of {}: {key}", number + 1, groups.len()));
        }
        let kept = measure(key).and_then(|measured| {
            let kept = measured.map_or(Ok(()), |measured| results.add(key, &measured));
            agree_blocking(comm, kept)
        });
        if kept.is_err() {
            progress.clear();
            output.show_before_failure(&results);
        }
        kept?;
    }
    let ended = results.end();
    agree_blocking(comm, ended)?;
    Ok(results)
}

/// All ranks go on with what they measured, or fail alike. A rank that is alone with its failure must not come here.
///
/// # Errors
/// What the lowest rank that failed itself has to say.
pub fn agree_on_measured<M: Comm>(
    comm: &M,
    key: &GroupKey,
    mine: Result<Option<Measured>, MeasureError>,
) -> Result<Option<Measured>, Failure> {
    let mine = match mine {
        // The rank that failed itself has something to say.
        Err(MeasureError::OtherRank(_)) => Ok(None),
        Err(why) => Err(Failure::Run(format!("rank {}: {key}: {why}", comm.rank()))),
        Ok(measured) => Ok(measured),
    };
    agree_blocking(comm, mine)
}

/// What is kept of a measurement.
fn group_of(key: &GroupKey, measured: &Measured) -> MeasuredGroup {
    let figures = measured
        .figures
        .iter()
        .map(|figure| (figure.name.to_owned(), figure.nanos));
    let found = measured
        .found
        .iter()
        .map(|(name, time)| ((*name).to_owned(), time.as_nanos() as f64));
    MeasuredGroup {
        key: key.clone(),
        // The journal takes them from the observations.
        nanos: Vec::new(),
        counts: ObservationState::ALL
            .map(|state| (state, measured.observations.count(state) as u64))
            .to_vec(),
        figures: figures.chain(found).collect(),
    }
}
