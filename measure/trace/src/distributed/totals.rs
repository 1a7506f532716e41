//! Sums of results over all ranks.

use downbeat_clock_core::{Global, Timestamp};

use super::super::check::Misfit;
use super::super::check::check_fit;
use super::super::deviation::{Deviation, TruthComparison};
use super::super::merge::Numbers;
use super::super::{LocationId, Totals};
use super::exchange::gather_everywhere;
use super::{CorrectionError, TracePart};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

impl TracePart {
    /// Counts the contents of all parts; collective.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn totals<C: Comm>(&self, comm: &C) -> Result<Totals, CommError> {
        // An operation of several ranks is counted on the rank of its first member.
        let mine = |instance: u32| {
            !self.is_shared(instance) || self.team(instance).kept.first() == Some(&0)
        };
        let mut totals = self.trace.totals_of(mine);
        total(&mut totals, comm).await?;
        Ok(totals)
    }
}

/// Returns the span that covers those of all ranks, on every rank; `None` if no rank has one.
/// Collective.
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

impl Deviation {
    /// Does the same as [`between`](Self::between) for a trace that ranks share; collective, with
    /// the same result on all ranks. `times` are those of this rank's locations, and empty for
    /// others.
    ///
    /// # Errors
    /// If the number of times is not that of events on any rank, or a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]> + Sync, C: Comm>(
        part: &TracePart,
        times: &[T],
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        Self::of_part_on(part, times, 1, comm).await
    }

    /// Does the same as [`of_part`](Self::of_part) on this number of threads per rank.
    pub(crate) async fn of_part_on<T: AsRef<[Timestamp<Global>]> + Sync, C: Comm>(
        part: &TracePart,
        times: &[T],
        workers: usize,
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        agree_on_fit(part, times, comm).await?;
        let mut deviation =
            Self::between_on(&part.trace, times, workers).map_err(CorrectionError::Misfit)?;
        total(&mut deviation, comm).await?;
        Ok(deviation)
    }
}

impl TruthComparison {
    /// Compares times of a shared trace with the truth. Collective, with the same result on all
    /// ranks. Locations of other ranks have no times in either list.
    ///
    /// # Errors
    /// If the number of times is not that of events on any rank, or a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]>, U: AsRef<[Timestamp<Global>]>, C: Comm>(
        part: &TracePart,
        times: &[T],
        truth: &[U],
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        agree_on_fit(part, times, comm).await?;
        agree_on_fit(part, truth, comm).await?;
        let events = || {
            let locations = (0_u64..).zip(times.iter().zip(truth));
            locations.flat_map(|(location, (times, truth))| {
                let events = times.as_ref().iter().zip(truth.as_ref());
                events.map(move |(time, truth)| (location, *time, *truth))
            })
        };
        // All errors are relative to that of the first event.
        let mut first = [u64::MAX; 3];
        if let Some((location, time, truth)) = events().next() {
            first = [location, time.as_nanos() as u64, truth.as_nanos() as u64];
        }
        for others in gather_everywhere(comm, first.to_vec()).await? {
            for other in others.as_chunks().0 {
                first = first.min(*other);
            }
        }
        let [location, time, truth] = first;
        let error = i128::from(time as i64) - i128::from(truth as i64);
        let mut found = Self::default();
        found.first = (location != u64::MAX).then_some(error);
        for (_, time, truth) in events() {
            found.add(time, truth);
        }
        total(&mut found, comm).await?;
        Ok(found)
    }
}

/// Checks on all ranks that the number of times is that of events.
pub(super) async fn agree_on_fit<T: AsRef<[Timestamp<Global>]>, C: Comm>(
    part: &TracePart,
    times: &[T],
    comm: &C,
) -> Result<(), CorrectionError> {
    let misfit = check_fit(&part.trace, times)
        .err()
        .map_or(u64::MAX, |of| of.location.0.into());
    match all_reduce(comm, misfit, u64::min).await? {
        u64::MAX => Ok(()),
        misfit => Err(CorrectionError::Misfit(Misfit {
            location: LocationId(misfit as u32),
        })),
    }
}

/// Merges the reports of all ranks.
pub(super) async fn total<C: Comm>(mine: &mut impl Numbers, comm: &C) -> Result<(), CommError> {
    let all = gather_everywhere(comm, mine.words().concat()).await?;
    let others = (0..).zip(&all).filter(|(rank, _)| *rank != comm.rank());
    others.for_each(|(_, words)| mine.absorb(words.as_chunks().0));
    Ok(())
}
