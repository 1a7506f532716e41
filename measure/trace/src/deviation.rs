//! Effect of a correction on times and intervals: the report of Becker et al. (2009), tables 3 and
//! 4. The example `becker_2009` prints both, as the paper measured them.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::Trace;
use super::check::TimesMismatch;
use super::check::check_fit;
use super::encoding::{Merge, encoded, merge_all, merged};
use super::workers::{groups, share};

/// Distances by which a correction moves events, and changes of intervals.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Deviation {
    /// Displacement of all events.
    pub displacement: Displacement,
    /// Changes of the intervals from the first event of a location to each other one: positions of
    /// events in the trace.
    pub position: IntervalChanges,
    /// Changes of the intervals from each event of a location to the next one.
    pub distance: IntervalChanges,
}

/// Distances by which events are moved.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Displacement {
    /// Number of events.
    pub events: u64,
    /// Number of events that are moved.
    pub moved: u64,
    /// Largest distance in either direction.
    pub largest: Duration,
    /// Sum of all distances in nanoseconds.
    pub total: u128,
    /// Sum of the distances forward less those back, in nanoseconds.
    pub forward: i128,
}

/// Changes of intervals. An interval of length 0 that becomes longer exceeds every threshold.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct IntervalChanges {
    /// Number of intervals.
    pub intervals: u64,
    /// Sum of their original lengths in nanoseconds.
    pub length: u128,
    /// Sum of the changes of their lengths in nanoseconds, regardless of the sign.
    pub deviation: u128,
    /// Largest change.
    pub largest: Duration,
    /// Largest change as a share of the original length; infinite if that was 0.
    pub largest_share: f64,
    /// Intervals that changed by more than each of [`Self::THRESHOLDS`].
    pub above: [IntervalsAbove; 6],
}

/// Intervals that changed by more than a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IntervalsAbove {
    /// Number of intervals.
    pub intervals: u64,
    /// Sum of their original lengths in nanoseconds.
    pub length: u128,
}

impl Deviation {
    /// Computes the deviation of `times` from those of `trace`, for all events of all locations.
    ///
    /// # Errors
    /// When the number of times differs from the number of events.
    pub fn between<T: AsRef<[Timestamp<Global>]> + Sync>(
        trace: &Trace,
        times: &[T],
    ) -> Result<Self, TimesMismatch> {
        Self::between_on(trace, times, 1)
    }

    /// Does the same as [`between`](Self::between) on this number of threads.
    pub(super) fn between_on<T: AsRef<[Timestamp<Global>]> + Sync>(
        trace: &Trace,
        times: &[T],
        workers: usize,
    ) -> Result<Self, TimesMismatch> {
        check_fit(trace, times)?;
        let parts = share(groups(trace, workers), |_, locations| {
            let mut deviation = Self::default();
            for location in locations {
                let (before, after) = (trace.locations[location].times(), times[location].as_ref());
                let events = before.iter().zip(after);
                let mut events = events.map(|(before, after)| [*before, *after]);
                let Some(first) = events.next() else { continue };
                deviation.displacement.add(first);
                let mut last = first;
                for event in events {
                    deviation.displacement.add(event);
                    deviation.distance.add(last, event);
                    deviation.position.add(first, event);
                    last = event;
                }
            }
            deviation.position.sum_up();
            deviation.distance.sum_up();
            deviation
        });
        Ok(merge_all(parts).unwrap_or_default())
    }
}

impl Displacement {
    #[inline]
    fn add(&mut self, [before, after]: [Timestamp<Global>; 2]) {
        let by = after - before;
        let nanos = by.as_nanos().unsigned_abs();
        self.events += 1;
        self.moved += u64::from(nanos > 0);
        self.largest = self.largest.max(by.abs());
        self.total += u128::from(nanos);
        self.forward += i128::from(by.as_nanos());
    }

    /// Mean distance in nanoseconds by which an event is moved, in either direction.
    pub fn mean(&self) -> f64 {
        ratio(self.total as f64, self.events as f64)
    }

    /// Mean distance in nanoseconds by which an event is moved forward.
    pub fn bias(&self) -> f64 {
        ratio(self.forward as f64, self.events as f64)
    }
}

impl IntervalChanges {
    /// Thresholds as shares of an interval: 0, 0.01, 0.1, 1, 10 and 100 %.
    pub const THRESHOLDS: [f64; 6] = [0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

    /// Inverses of these shares, except 0.
    const PARTS: [u64; 5] = [10_000, 1_000, 100, 10, 1];

    /// Adds an interval between two events, each before and after.
    #[inline]
    fn add(&mut self, from: [Timestamp<Global>; 2], to: [Timestamp<Global>; 2]) {
        let (was, is) = (to[0] - from[0], to[1] - from[1]);
        let length = was.as_nanos().unsigned_abs();
        let changed = (is - was).as_nanos().unsigned_abs();
        self.intervals += 1;
        self.length += u128::from(length);
        if changed == 0 {
            return;
        }
        self.deviation += u128::from(changed);
        self.largest = self.largest.max((is - was).abs());
        // Avoids the division, which is slow and rarely needed.
        if changed as f64 >= self.largest_share * length as f64 {
            self.largest_share = self.largest_share.max(changed as f64 / length as f64);
        }
        // An interval above a threshold is above all smaller ones; `sum_up` adds it there.
        let above = &mut self.above[Self::PARTS
            .iter()
            .take_while(|&&parts| changed > length / parts)
            .count()];
        above.intervals += 1;
        above.length += u128::from(length);
    }

    fn sum_up(&mut self) {
        let mut all = IntervalsAbove::default();
        for above in self.above.iter_mut().rev() {
            all.intervals += above.intervals;
            all.length += above.length;
            *above = all;
        }
    }

    /// Relative change of intervals, weighted by length: the sum of all changes over the sum of all
    /// lengths.
    pub fn mean_share(&self) -> f64 {
        ratio(self.deviation as f64, self.length as f64)
    }

    /// Mean change of an interval in nanoseconds.
    pub fn mean(&self) -> f64 {
        ratio(self.deviation as f64, self.intervals as f64)
    }

    /// For each threshold: the share of intervals above it, and the share of time that these take.
    pub fn shares(&self) -> [(f64, f64); 6] {
        self.above.map(|above| {
            let intervals = ratio(above.intervals as f64, self.intervals as f64);
            (intervals, ratio(above.length as f64, self.length as f64))
        })
    }
}

fn error_of(shown: Timestamp<Global>, truth: Timestamp<Global>) -> i128 {
    i128::from(shown.as_nanos()) - i128::from(truth.as_nanos())
}

/// Returns the ratio, or 0 if the whole is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// Statistics of the errors of times against the true ones, where these are known.
///
/// A logical clock only moves events forward, so all times are ahead of the truth on average. This
/// bias does no harm within the trace; the remaining error does.
///
/// ```
/// use downbeat_clock_core::Timestamp;
/// use downbeat_trace::deviation::TruthComparison;
///
/// let mut error = TruthComparison::default();
/// for (shown, truth) in [(1_110, 1_000), (2_090, 2_000)] {
///     error.add(Timestamp::from_nanos(shown), Timestamp::from_nanos(truth));
/// }
/// assert_eq!((error.bias(), error.centred(), error.largest_centred()), (100.0, 10.0, 10.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TruthComparison {
    events: u64,
    /// First error, which is subtracted from the others, so that their squares stay small.
    first: Option<i128>,
    sum: i128,
    squares: u128,
    least: i128,
    greatest: i128,
}

impl TruthComparison {
    /// Returns no errors, to be counted from that of an event; its time and the true one.
    pub(super) fn relative_to(first: Option<(Timestamp<Global>, Timestamp<Global>)>) -> Self {
        Self {
            first: first.map(|(shown, truth)| error_of(shown, truth)),
            ..Self::default()
        }
    }

    /// Adds an event.
    pub fn add(&mut self, shown: Timestamp<Global>, truth: Timestamp<Global>) {
        let error = error_of(shown, truth);
        let beyond = error - *self.first.get_or_insert(error);
        self.events += 1;
        self.sum += beyond;
        self.squares = self
            .squares
            .saturating_add(beyond.unsigned_abs().saturating_mul(beyond.unsigned_abs()));
        self.least = self.least.min(beyond);
        self.greatest = self.greatest.max(beyond);
    }

    /// Number of events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Mean error in nanoseconds: the time by which events are ahead of the truth.
    pub fn bias(&self) -> f64 {
        self.first.unwrap_or(0) as f64 + self.mean()
    }

    /// Error without the bias in nanoseconds: root mean square.
    pub fn centred(&self) -> f64 {
        (ratio(self.squares as f64, self.events as f64) - self.mean() * self.mean())
            .max(0.0)
            .sqrt()
    }

    /// Largest error without the bias in nanoseconds.
    pub fn largest_centred(&self) -> f64 {
        (self.greatest as f64 - self.mean()).max(self.mean() - self.least as f64)
    }

    /// Mean difference from the first error.
    fn mean(&self) -> f64 {
        ratio(self.sum as f64, self.events as f64)
    }
}

merged! {
    Deviation { displacement, position, distance }
    Displacement { events, moved, largest, total, forward }
    IntervalChanges { intervals, length, deviation, largest, largest_share, above }
    IntervalsAbove { intervals, length }
}

encoded! { TruthComparison { events, first, sum, squares, least, greatest } }

/// Of errors that are counted from the same first one.
impl Merge for TruthComparison {
    fn merge(&mut self, other: Self) {
        self.events += other.events;
        self.sum += other.sum;
        self.squares.merge(other.squares);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }
}

#[cfg(test)]
mod tests;
