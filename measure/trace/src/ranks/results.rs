//! Results of all ranks: each examines its own events, and the messages and operations
//! that it has in full with ghosts.

use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use super::TracePart;
use super::exchange::{gather_values, merge_over_ranks};
use crate::check::{TimesMismatch, Verdict, check_fit, findings};
use crate::correction_error::CorrectionError;
use crate::deviation::{Deviation, TruthComparison};
use crate::presync::MessageHulls;
use crate::{Latencies, LocationId, Totals};

impl TracePart {
    /// Counts the contents of the whole trace.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn totals<C: Comm>(&self, comm: &C) -> Result<Totals, CommError> {
        let counts = |instance| self.is_examined_here(instance);
        merge_over_ranks(self.trace.totals_of(counts), comm).await
    }
}

/// Returns the times of the first and the last event of all ranks; `None` without events.
///
/// # Errors
/// If a rank is gone.
pub async fn common_span<C: Comm>(
    own: Option<[Timestamp<Global>; 2]>,
    comm: &C,
) -> Result<Option<[Timestamp<Global>; 2]>, CommError> {
    let ends = own.map_or([i64::MAX, i64::MIN], |ends| ends.map(Timestamp::as_nanos));
    let wider = |[a, b]: [u64; 2], [c, d]: [u64; 2]| {
        [
            (a as i64).min(c as i64) as u64,
            (b as i64).max(d as i64) as u64,
        ]
    };
    let ends = all_reduce(comm, ends.map(|end| end as u64), wider).await?;
    let span = ends.map(|end| Timestamp::from_nanos(end as i64));
    Ok((span[0] <= span[1]).then_some(span))
}

impl MessageHulls {
    /// Returns the hulls of all messages and operations of a trace that ranks share.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn of_part<C: Comm>(
        part: &TracePart,
        latencies: &Latencies,
        comm: &C,
    ) -> Result<Self, CommError> {
        let TracePart { trace, share } = part;
        let own = trace.times();
        let ghosts = share.exchange_ghost_times(trace, &own, comm).await?;
        let times = share.times_with_ghosts(&own, &ghosts);
        let mut own = Self::of_times(trace, &times, latencies);
        own.reduce();
        merge_over_ranks(own, comm).await
    }
}

impl Deviation {
    /// Compares times with those of the events, on all ranks.
    ///
    /// # Errors
    /// If the times are not those of the part, on all ranks; and if a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]> + Sync, C: Comm>(
        part: &TracePart,
        times: &[T],
        workers: usize,
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        agree_on_fit(part, times, comm).await?;
        let deviation = Self::between_on(&part.trace, times, workers);
        let deviation = deviation.map_err(CorrectionError::Misfit)?;
        Ok(merge_over_ranks(deviation, comm).await?)
    }
}

impl TruthComparison {
    /// Compares times with the true ones, on all ranks.
    ///
    /// # Errors
    /// If the times are not those of the part, on all ranks; and if a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]>, U: AsRef<[Timestamp<Global>]>, C: Comm>(
        part: &TracePart,
        times: &[T],
        truth: &[U],
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        agree_on_fit(part, times, comm).await?;
        agree_on_fit(part, truth, comm).await?;
        let events = || {
            let locations = (0..).map(LocationId).zip(times.iter().zip(truth));
            locations.flat_map(|(location, (times, truth))| {
                let events = times.as_ref().iter().zip(truth.as_ref());
                events.map(move |(time, truth)| (location, (*time, *truth)))
            })
        };
        // All errors are relative to that of the first event.
        let all = gather_values(comm, &Vec::from_iter(events().next())).await?;
        let first = all
            .into_iter()
            .flatten()
            .min_by_key(|(location, _)| *location);
        let mut found = Self::relative_to(first.map(|(_, ends)| ends));
        for (_, (time, truth)) in events() {
            found.add(time, truth);
        }
        Ok(merge_over_ranks(found, comm).await?)
    }
}

impl Verdict {
    /// Examines times of all ranks, each with those of its own events, on this number of
    /// threads per rank. All ranks get the verdict on the whole trace.
    ///
    /// # Errors
    /// If the times are not those of the part, on all ranks; and if a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]>, C: Comm>(
        part: &TracePart,
        times: &[T],
        latencies: &Latencies,
        workers: usize,
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        agree_on_fit(part, times, comm).await?;
        let TracePart { trace, share } = part;
        let ghosts = share.exchange_ghost_times(trace, times, comm).await?;
        let times = share.times_with_ghosts(times, &ghosts);
        let is_own = |instance| part.is_examined_here(instance);
        let found = findings(trace, &times, latencies, workers, is_own);
        Ok(merge_over_ranks(found, comm).await?.finish())
    }
}

/// Fails on all ranks if the times do not fit the part of any.
async fn agree_on_fit<T: AsRef<[Timestamp<Global>]>, C: Comm>(
    part: &TracePart,
    times: &[T],
    comm: &C,
) -> Result<(), CorrectionError> {
    let misfit = check_fit(&part.trace, times)
        .err()
        .map_or(u64::MAX, |of| of.location.0.into());
    match all_reduce(comm, misfit, u64::min).await? {
        u64::MAX => Ok(()),
        misfit => Err(CorrectionError::Misfit(TimesMismatch {
            location: LocationId(misfit as u32),
        })),
    }
}
