//! Results of all ranks: each examines its own events, and the messages and operations
//! that it has in full with ghosts.

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use super::TracePart;
use super::exchange::{event_of, gather_words, word_of};
use crate::check::{Fault, Findings, Misfit, Verdict, check_fit, findings};
use crate::correction_error::CorrectionError;
use crate::deviation::{Deviation, TruthComparison};
use crate::merge::Numbers;
use crate::presync::MessageHulls;
use crate::{CollectiveKind, Latencies, LocationId, Totals};

impl TracePart {
    /// Counts the contents of the whole trace.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn totals<C: Comm>(&self, comm: &C) -> Result<Totals, CommError> {
        let mut totals = self
            .trace
            .totals_of(|instance| self.is_examined_here(instance));
        merge_over_ranks(&mut totals, comm).await?;
        Ok(totals)
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
        let own = part.times();
        let ghosts = part.exchange_ghost_times(&own, comm).await?;
        let times = part.times_with_ghosts(&own, &ghosts);
        let mut hulls = Self::of_times(&part.trace, &times, latencies);
        if comm.size() == 1 {
            return Ok(hulls);
        }
        let all = gather_words(comm, hulls.words()).await?;
        let mut merged = Self::default();
        all.iter().for_each(|words| merged.merge(words));
        Ok(merged)
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
        let mut deviation = deviation.map_err(CorrectionError::Misfit)?;
        merge_over_ranks(&mut deviation, comm).await?;
        Ok(deviation)
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
            let locations = (0_u64..).zip(times.iter().zip(truth));
            locations.flat_map(|(location, (times, truth))| {
                let events = times.as_ref().iter().zip(truth.as_ref());
                events.map(move |(time, truth)| (location, *time, *truth))
            })
        };
        // All errors are relative to that of the first event.
        let mine = events().next().map(|(location, time, truth)| {
            vec![location, time.as_nanos() as u64, truth.as_nanos() as u64]
        });
        let all = gather_words(comm, mine.unwrap_or_default()).await?;
        let firsts = all.iter().flat_map(|words| words.as_chunks::<3>().0);
        let mut found = Self::default();
        found.first = firsts
            .min()
            .map(|[_, time, truth]| i128::from(*time as i64) - i128::from(*truth as i64));
        for (_, time, truth) in events() {
            found.add(time, truth);
        }
        merge_over_ranks(&mut found, comm).await?;
        Ok(found)
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
        let ghosts = part.exchange_ghost_times(times, comm).await?;
        let times = part.times_with_ghosts(times, &ghosts);
        let is_own = |instance| part.is_examined_here(instance);
        let mut found = findings(&part.trace, &times, latencies, workers, is_own);
        merge_over_ranks(&mut found.counts, comm).await?;
        let mine = found.faults().flat_map(words_of_fault).collect();
        let all = gather_words(comm, mine).await?;
        let mut merged = Findings::default();
        merged.counts = found.counts;
        for words in all.iter().flat_map(|words| words.as_chunks().0) {
            merged.add(fault_of(words));
        }
        Ok(merged.finish())
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
        misfit => Err(CorrectionError::Misfit(Misfit {
            location: LocationId(misfit as u32),
        })),
    }
}

/// Merges a report of this rank with those of all others.
async fn merge_over_ranks<C: Comm>(mine: &mut impl Numbers, comm: &C) -> Result<(), CommError> {
    let all = gather_words(comm, mine.words().concat()).await?;
    let others = (0..).zip(&all).filter(|(rank, _)| *rank != comm.rank());
    others.for_each(|(_, words)| mine.absorb(words.as_chunks().0));
    Ok(())
}

// Kinds of faults as words; that of an operation is added to the last one.
const DECREASING: u64 = 0;
const MERGED: u64 = 1;
const REORDERED: u64 = 2;
const MESSAGE: u64 = 3;
const OPERATION: u64 = 4;

fn words_of_fault(fault: Fault) -> [u64; 4] {
    match fault {
        Fault::Decreasing(event) => [DECREASING, word_of(event), 0, 0],
        Fault::Merged(event) => [MERGED, word_of(event), 0, 0],
        Fault::Reordered(event) => [REORDERED, word_of(event), 0, 0],
        Fault::Early {
            send,
            receive,
            by,
            kind,
        } => [
            kind.map_or(MESSAGE, |kind| OPERATION + kind as u64),
            word_of(receive),
            word_of(send),
            by.as_nanos() as u64,
        ],
    }
}

fn fault_of([what, event, send, by]: &[u64; 4]) -> Fault {
    let event = event_of(*event);
    match *what {
        DECREASING => Fault::Decreasing(event),
        MERGED => Fault::Merged(event),
        REORDERED => Fault::Reordered(event),
        early => Fault::Early {
            send: event_of(*send),
            receive: event,
            by: Duration::from_nanos(*by as i64),
            kind: early
                .checked_sub(OPERATION)
                .and_then(CollectiveKind::from_number),
        },
    }
}
