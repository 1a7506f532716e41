//! Telling offsets that were hit by the scheduler from the others.

use downbeat_clock_core::{Domain, Duration, OffsetSample};

use crate::SyncError;

/// An offset is left out if it is less certain than the best quarter by more than this factor.
///
/// What a network does to the quickest of many exchanges is less. What a scheduler does, when it gives the core of a rank
/// to another one during all of them, is a hundred times that.
const FACTOR: i64 = 2;

/// Offsets that wait until all are there and it can be told which of them are much less certain than most.
#[derive(Debug)]
pub(crate) struct Filter<C: Domain> {
    waiting: Vec<OffsetSample<C>>,
}

impl<C: Domain> Filter<C> {
    /// # Errors
    /// When there is no memory for so many offsets.
    pub(crate) fn new(offsets: u32) -> Result<Self, SyncError> {
        let mut waiting = Vec::new();
        waiting.try_reserve_exact(offsets as usize).map_err(|_| SyncError::TooManyFitPoints(offsets))?;
        Ok(Self { waiting })
    }

    pub(crate) fn push(&mut self, sample: OffsetSample<C>) {
        self.waiting.push(sample);
    }

    /// All offsets, and the largest half width of those that count.
    pub(crate) fn judge(self) -> (Vec<OffsetSample<C>>, Duration) {
        let mut widths: Vec<Duration> = self.waiting.iter().filter_map(|sample| sample.half_width).collect();
        let quarter = widths.len() / 4;
        let best = match widths.get(quarter) {
            Some(_) => *widths.select_nth_unstable(quarter).1,
            None => Duration::MAX,
        };
        (self.waiting, Duration::from_nanos(best.as_nanos().saturating_mul(FACTOR)))
    }
}

/// Whether an offset is certain enough; one that does not say how certain it is, is.
pub(crate) fn counts<C: Domain>(sample: &OffsetSample<C>, limit: Duration) -> bool {
    sample.half_width.is_none_or(|width| width <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::{Local, Timestamp};

    fn kept(widths: &[Option<i64>]) -> Vec<Option<i64>> {
        let mut filter = Filter::<Local>::new(widths.len() as u32).unwrap();
        for width in widths {
            let half_width = width.map(Duration::from_nanos);
            filter.push(OffsetSample { at: Timestamp::ORIGIN, offset: Duration::ZERO, half_width });
        }
        let (samples, limit) = filter.judge();
        let kept = samples.into_iter().filter(|sample| counts(sample, limit));
        kept.map(|sample| sample.half_width.map(Duration::as_nanos)).collect()
    }

    #[test]
    fn what_is_much_less_certain_than_the_best_quarter_is_left_out() {
        let widths = [100, 90, 180, 5_000_000, 200, 201, 95, 400].map(Some);
        assert_eq!(kept(&widths), [100, 90, 180, 200, 95].map(Some));
    }

    #[test]
    fn without_anything_to_judge_by_all_are_kept() {
        for widths in [&[][..], &[None, None], &[Some(7)], &[Some(0), Some(0)], &[Some(i64::MAX); 3]] {
            assert_eq!(kept(widths), widths);
        }
    }
}
