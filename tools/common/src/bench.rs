//! Measurements of operations: shared options, the loop over all groups, and the output.

mod disturbance;
mod global_clock;
mod method;
mod notes;
mod output;
mod raw;
mod summary;
#[cfg(test)]
mod test_measurement;
mod transfer;

use std::fmt::Display;
use std::ops::RangeInclusive;

use downbeat_measure::{MeasureError, Measurement, Method};
use downbeat_records::{Factors, GroupKey, LOAD, ROUND_TRIPS};
use downbeat_sync::{Comm, block_on_ready, collective};

use raw::RawFiles;

use disturbance::{KernelCounters, load_per_core, longest_round_trip, slowest_cycle};
pub use global_clock::GlobalClockOptions;
pub use method::MethodOptions;
pub use output::{BenchResults, LaunchHeader, OutputOptions};
pub use raw::RankTimes;
pub use transfer::{ALONE, COMPUTE, IN_FLIGHT, THREADS};

use crate::machine::random_seed;
use crate::output::count;
use crate::shuffle::shuffle;
use crate::{Failure, ProgressBar, agree_blocking};

/// Group to measure.
#[derive(Clone, Debug)]
pub struct BenchGroup<T> {
    /// Name of the group in records.
    pub key: GroupKey,
    /// Method with which it is measured.
    pub method: Method,
    /// What the program measures.
    pub subject: T,
}

/// Groups to measure, and the conditions that the program knows.
#[derive(Clone, Debug)]
pub struct BenchPlan<T> {
    /// All groups to measure.
    pub groups: Vec<BenchGroup<T>>,
    /// Seed of their random order; different each time if there is none.
    pub seed: Option<u64>,
    /// Factors on which the results depend.
    pub factors: Factors,
    /// Facts of this launch, besides its seed and its start.
    pub facts: Factors,
    /// Headline of the results.
    pub headline: String,
}

/// Returns a headline with the subject and the method.
pub fn headline(subject: &str, method: &Method) -> String {
    format!(
        "{subject}, scheme {}, processing {}",
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

/// Checks that the number of ranks is one that an operation allows.
///
/// # Errors
/// If there are fewer, or more.
pub fn check_ranks(
    operation: &impl Display,
    allowed: RangeInclusive<u32>,
    ranks: u32,
) -> Result<(), Failure> {
    let why = if ranks < *allowed.start() {
        format!("needs at least {} ranks", allowed.start())
    } else if ranks > *allowed.end() {
        format!("takes at most {}", count(*allowed.end() as usize, "rank"))
    } else {
        return Ok(());
    };
    Err(Failure::option(
        "--operation",
        format!("{operation} {why}, not {ranks}"),
    ))
}

/// Measures one group after the other, and records each as soon as it is known. All ranks call this with equal groups, and with the
/// communicator of their node; only rank 0 uses the rest of the plan and returns results.
///
/// `measure` returns an outcome on rank 0 alone, and gives the times of its rank to the second argument. Groups that the record of this
/// launch already contains are left out. One of which no observation is valid, or whose operation failed, is shown and stated in the
/// record, and costs no other its results.
///
/// # Errors
/// When a group cannot be measured or recorded.
pub fn measure_all<M: Comm, T>(
    comm: &M,
    node: &M,
    output: &OutputOptions,
    mut plan: BenchPlan<T>,
    mut measure: impl FnMut(&BenchGroup<T>, &mut RankTimes) -> Result<Option<GroupOutcome>, Failure>,
) -> Result<BenchResults, Failure> {
    let seed = plan.seed.unwrap_or_else(random_seed);
    let seed = block_on_ready(collective::broadcast(comm, seed)).map_err(Failure::run)?;
    let mut groups = std::mem::take(&mut plan.groups);
    shuffle(&mut groups, seed);
    let mut results = begin_results(comm, output, plan, seed)?;
    let keys: Vec<&GroupKey> = groups.iter().map(|group| &group.key).collect();
    agree_blocking(comm, results.check_missing(&keys))?;
    let mut raw = RawFiles::open(comm, node, output.directory(), results.journal())?;
    let progress = ProgressBar::new(groups.len() as u64);
    for (number, group) in groups.iter().enumerate() {
        let key = &group.key;
        let recorded = comm.rank() == 0 && results.has(key);
        if block_on_ready(collective::broadcast(comm, recorded)).map_err(Failure::run)? {
            continue;
        }
        if comm.rank() == 0 {
            progress.reach(number as u64);
            progress.say(&key.to_string());
        }
        let added = measure_group(comm, key, &mut raw, &mut results, |times| {
            measure(group, times)
        });
        if added.is_err() {
            progress.clear();
            output.show_before_failure(&results);
        }
        added?;
    }
    agree_blocking(comm, results.check_valid())?;
    raw.complete()?;
    if let Some(nanos) = longest_round_trip(comm)? {
        let [_, at_end] = ROUND_TRIPS;
        results.add_final_fact(at_end, &nanos.to_string());
    }
    agree_blocking(comm, results.complete())?;
    Ok(results)
}

/// Opens the record on rank 0, with the state of the machine before the first group.
fn begin_results<M: Comm, T>(
    comm: &M,
    output: &OutputOptions,
    mut plan: BenchPlan<T>,
    seed: u64,
) -> Result<BenchResults, Failure> {
    let round_trip = longest_round_trip(comm)?;
    let results = if comm.rank() == 0 {
        if let Some(load) = load_per_core() {
            plan.facts = plan.facts.with(LOAD, &load);
        }
        if let Some(nanos) = round_trip {
            let [at_start, _] = ROUND_TRIPS;
            plan.facts = plan.facts.with(at_start, &nanos);
        }
        output.begin(plan, seed)
    } else {
        Ok(BenchResults::default())
    };
    agree_blocking(comm, results)
}

/// Measures a group, and records its outcome with what disturbed the machine meanwhile.
fn measure_group<M: Comm>(
    comm: &M,
    key: &GroupKey,
    raw: &mut RawFiles<'_, M>,
    results: &mut BenchResults,
    measure: impl FnOnce(&mut RankTimes) -> Result<Option<GroupOutcome>, Failure>,
) -> Result<(), Failure> {
    let counters = (comm.rank() == 0).then(KernelCounters::read).flatten();
    let mut times = raw.times();
    let outcome = measure(&mut times)?;
    let measured = matches!(outcome, Some(GroupOutcome::Measured(_)));
    raw.write(key, &times, measured, results.journal_mut())?;
    let disturbance = counters
        .and_then(|before| Some(before.figures_until(&KernelCounters::read()?)))
        .unwrap_or_default();
    let machine = disturbance.into_iter().chain(slowest_cycle(comm)?);
    let machine = machine.collect();
    let added = outcome.map_or(Ok(()), |outcome| results.add(key, outcome, machine));
    agree_blocking(comm, added)
}

/// Outcome of measuring a group, on rank 0.
#[derive(Debug)]
pub enum GroupOutcome {
    /// It was measured.
    Measured(Box<Measurement>),
    /// None of its observations is valid: the numbers of those in each [invalid state](downbeat_records::ObservationState::INVALID).
    NothingValid([usize; 3]),
    /// The operation cannot be called, or has wrong results, for this reason.
    Failed(String),
}

/// Returns the outcome of a measurement on all ranks, or the same failure. A rank must not call this if it failed alone.
///
/// # Errors
/// The failure of the lowest rank that failed by itself.
pub fn agree_on_measured<M: Comm>(
    comm: &M,
    key: &GroupKey,
    measured: Result<Option<Measurement>, MeasureError>,
) -> Result<Option<GroupOutcome>, Failure> {
    let measured = match measured {
        // A result, too, which only rank 0 knows.
        Err(MeasureError::NothingValid {
            late,
            long,
            drifted,
        }) => Ok(Some(GroupOutcome::NothingValid([late, long, drifted]))),
        // The rank that failed by itself reports the failure.
        Err(MeasureError::OtherRank(_)) => Ok(None),
        // This has nothing to do with the group.
        Err(why @ MeasureError::Synchronization(..)) => {
            Err(Failure::Run(format!("rank {}: {why}", comm.rank())))
        }
        Err(why) => Err(Failure::Run(format!("rank {}: {key}: {why}", comm.rank()))),
        Ok(measured) => Ok(measured.map(Box::new).map(GroupOutcome::Measured)),
    };
    agree_blocking(comm, measured)
}
