//! Round-Time on a grid: calls begin at points of a grid of the global clock, which the
//! ranks agree on once per batch.
//!
//! Round-Time pays a broadcast and a reduction for each observation. Here each rank
//! begins its next call at a point of the grid without a message; after a batch the ranks
//! compare their points, and a call that they did not all begin at the same point is
//! late.
//!
//! An operation that waits for all ranks delays all of them by an interruption of one, and
//! they go on at the next point that they can reach, which is the same for all. In another
//! operation the rank that was interrupted would be some points behind from then on: there,
//! each call has its own point, and the rank makes its calls without a pause until it has
//! caught up.

use core::ops::Range;

use downbeat_clock_core::{Clock, Duration, Global, Timestamp};
use downbeat_sync::{Comm, collective};

use super::batch::{self, BatchSize};
use super::each_call::EachCall;
use crate::context::{CallSpan, MeasureContext, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use downbeat_records::{ObservationState, Observations};

/// Calls begin at points of a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundGrid {
    /// Distance of the points; if it is not given, determined from some calls, and
    /// adapted so that few calls are late.
    pub spacing: Option<Duration>,
}

/// State of the scheme, the same on all ranks.
pub(crate) struct PreparedGrid {
    pub(super) spacing: Duration,
    /// Limits of the spacing: equal if it is fixed.
    least: Duration,
    most: Duration,
    /// Spacing at which a rank catches up fast: calls that are late at a longer one were
    /// interrupted themselves, as a longer one is more often.
    enough_to_catch_up: Duration,
    /// Number of calls between two agreements.
    batch: BatchSize,
    /// True if each call has its own point.
    by_number: bool,
}

/// Number of calls that are tried to determine the spacing, and the share of them that
/// must fit into it.
const TRIES: u32 = 101;
const FITTING: f64 = 0.9;

/// Time from announcing a batch to its first point, within which all ranks receive the
/// announcement.
const NOTICE: Duration = Duration::from_micros(50);

/// Least time from the end of a call to the point at which the next one begins.
const MARGIN: Duration = Duration::from_nanos(200);

/// A rank that begins later than this after its point was interrupted.
const PUNCTUAL: Duration = Duration::from_nanos(400);

/// Share of late calls in a batch above which batches become shorter: one in this number.
const LATE: usize = 64;
/// Shares of calls that ranks began at neighbouring points, and of those that skipped a
/// point, above which the spacing grows. Ranks that are further apart were interrupted,
/// which no spacing prevents.
const BARELY: usize = 256;
const SKIPPED: usize = 8;
/// Ranks that begin this number of calls one after another at different points, each in
/// time, are not brought together by the operation; and share of such calls above which
/// the operation does not wait for all ranks.
const STAY_APART: usize = 4;
const APART: usize = 32;
/// Calls that ranks delay to see that, by this number of points.
const DELAYED_BY_FIRST: u32 = 3;
const DELAYED_BY_LAST: u32 = 9;
const DELAY: i64 = 2;
/// Share of late calls above which a rank does not catch up, however long the spacing is
/// already.
const FALLEN_BEHIND: usize = 4;

impl RoundGrid {
    /// Determines the spacing from calls behind a barrier, and whether the operation waits
    /// for all ranks from calls that two ranks delay.
    pub(super) async fn prepare<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<PreparedGrid, MeasureError> {
        let mut prepared = match self.spacing {
            Some(spacing) => PreparedGrid::new(spacing, [spacing; 2]),
            None => {
                let fitting = EachCall::default()
                    .quantile(context, operation, TRIES, FITTING)
                    .await?;
                let spacing = Duration::from_nanos(fitting.min(1 << 60) as i64) + MARGIN;
                PreparedGrid::new(spacing, [spacing / 4, spacing * 64])
            }
        };
        prepared.try_delays(context, operation).await?;
        Ok(prepared)
    }
}

impl PreparedGrid {
    fn new(spacing: Duration, [least, most]: [Duration; 2]) -> Self {
        Self {
            spacing,
            least,
            most,
            enough_to_catch_up: (spacing * 2).min(most),
            batch: BatchSize::FIRST,
            by_number: false,
        }
    }

    /// Makes calls, one of which the first rank delays, and one the last rank: one of them
    /// at least is not the root of a collective operation.
    async fn try_delays<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<(), MeasureError> {
        let (rank, last) = (context.comm.rank(), context.comm.size() - 1);
        let delay = |number: u32| match number {
            DELAYED_BY_FIRST if rank == 0 => DELAY,
            DELAYED_BY_LAST if rank == last => DELAY,
            _ => 0,
        };
        let mut spans = reserve_spans(batch::LEAST);
        let numbers = 0..batch::LEAST;
        let points = self
            .batch(context, operation, numbers, delay, &mut spans)
            .await?;
        let agreed = AgreedBatch::of(context.comm, &points, false).await?;
        self.by_number = agreed.apart > 0;
        Ok(())
    }

    /// Runs a number of calls, or fewer if the time is over.
    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        calls: u32,
        time: Option<Duration>,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        let model = context.global()?;
        let until = time.map(|time| model.invert(model.apply(context.clock.ticks()) + time));
        let mut spans = reserve_spans(calls);
        while spans.len() < calls as usize {
            let made = spans.len();
            let size = self.batch.calls(self.spacing).min(calls - made as u32);
            let number = first + made as u32;
            let points = self
                .batch(context, operation, number..number + size, |_| 0, &mut spans)
                .await?;
            let is_over = until.is_some_and(|until| context.clock.ticks() >= until);
            let agreed = AgreedBatch::of(context.comm, &points, is_over).await?;
            for (span, late) in spans[made..].iter_mut().zip(&agreed.late) {
                if *late {
                    span.state = ObservationState::Late;
                }
            }
            self.adapt(&agreed);
            if agreed.is_over {
                break;
            }
        }
        Ok(spans)
    }

    /// Makes the calls of a batch, each `delay` points later than it can be made. Returns
    /// the points at which this rank began them.
    async fn batch<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        numbers: Range<u32>,
        delay: impl Fn(u32) -> i64,
        spans: &mut Vec<CallSpan>,
    ) -> Result<Vec<i64>, MeasureError> {
        let model = context.global()?;
        let mut points = Vec::with_capacity(numbers.len());
        let begin = model.apply(context.clock.ticks()) + NOTICE;
        let begin = collective::broadcast(context.comm, begin).await?;
        for number in numbers.clone() {
            operation.prepare();
            let point = match self.by_number {
                true => i64::from(number - numbers.start),
                false => self.next_point(begin, model.apply(context.clock.ticks())),
            };
            let point = point + delay(number);
            let start = begin + self.spacing * point;
            context.wait_until(&model, start)?;
            let span = context.timed(operation, number).await?;
            let is_punctual = model.apply(span.start) - start <= PUNCTUAL;
            points.push(if is_punctual { point } else { -1 });
            spans.push(span);
        }
        Ok(points)
    }

    /// Returns the number of the first point that this rank can reach.
    fn next_point(&self, begin: Timestamp<Global>, now: Timestamp<Global>) -> i64 {
        let since = (now + MARGIN - begin).as_nanos();
        (since.div_euclid(self.spacing.as_nanos()) + 1).max(0)
    }

    /// Increases the spacing after a batch of which too many calls were late for a reason
    /// that more time prevents, and decreases it slightly after each other one: some
    /// calls take longer than the spacing, and most fit into it. Batches become shorter
    /// and longer.
    fn adapt(&mut self, agreed: &AgreedBatch) {
        let AgreedBatch {
            late,
            barely,
            skipped,
            apart,
            ..
        } = agreed;
        let late_calls = late.iter().filter(|late| **late).count();
        let exceeds = |number: usize, one_in: usize| number * one_in > late.len();
        self.batch.adapt(exceeds(late_calls, LATE));
        let (is_short, longer) = match self.by_number {
            // A rank catches up by what the spacing exceeds a call.
            true => (
                exceeds(late_calls, LATE) && self.spacing < self.enough_to_catch_up
                    || exceeds(late_calls, FALLEN_BEHIND),
                self.spacing / 4,
            ),
            false => (
                exceeds((*barely).into(), BARELY) || exceeds((*skipped).into(), SKIPPED),
                self.spacing / 16,
            ),
        };
        self.by_number |= exceeds((*apart).into(), APART);
        let next = if is_short {
            self.spacing + longer
        } else {
            self.spacing - self.spacing / 256
        };
        self.spacing = next.max(self.least).min(self.most);
    }
}

/// Result of a batch, on which all ranks agree.
struct AgreedBatch {
    /// For each call, true if not all ranks began it at one point.
    late: Vec<bool>,
    /// Number of calls that ranks began at two neighbouring points, at most 255.
    barely: u8,
    /// Number of calls that did not begin at the point after that of the call before, at
    /// most 255.
    skipped: u8,
    /// Number of calls that ranks began at different points, each in time, and those before
    /// as well, at most 255.
    apart: u8,
    /// True if the time is over on a rank.
    is_over: bool,
}

impl AgreedBatch {
    /// Compares the points at which the ranks began their calls.
    async fn of<M: Comm>(comm: &M, points: &[i64], is_over: bool) -> Result<Self, MeasureError> {
        // The greatest points, and the greatest negated ones.
        let negated = points.iter().map(|point| -point);
        let mut values: Vec<i64> = points.iter().copied().chain(negated).collect();
        values.push(is_over.into());
        collective::greatest_to_first(comm, &mut values).await?;
        let (highest, rest) = values.split_at(points.len());
        let (lowest, over) = rest.split_at(points.len());
        let is_late = |(highest, lowest): (&i64, &i64)| *highest != -lowest || *lowest > 0;
        let is_barely = |(highest, lowest): &(&i64, &i64)| **highest == 1 - **lowest;
        let barely = highest.iter().zip(lowest).filter(is_barely).count();
        let barely = barely.min(u8::MAX.into()) as u8;
        let skipped = highest.windows(2).filter(|pair| pair[1] > pair[0] + 1);
        let skipped = skipped.count().min(u8::MAX.into()) as u8;
        let apart = calls_still_apart(highest, lowest).min(u8::MAX.into()) as u8;
        let late = highest.iter().zip(lowest).map(is_late).map(u8::from);
        let summary = late.chain([barely, skipped, apart, u8::from(over != [0])]);
        let summary = collective::broadcast_bytes(comm, summary.collect()).await?;
        let [late @ .., barely, skipped, apart, is_over] = summary.as_slice() else {
            // Unreachable: these are in every summary.
            return Err(MeasureError::nothing(&Observations::default()));
        };
        Ok(Self {
            late: late.iter().map(|late| *late > 0).collect(),
            barely: *barely,
            skipped: *skipped,
            apart: *apart,
            is_over: *is_over > 0,
        })
    }
}

/// Returns the number of calls that ranks began apart, each in time, and those before as
/// well, by the highest points of all ranks, and the lowest ones negated. An operation
/// that waits for all ranks brings them to one point again within a call or two.
fn calls_still_apart(highest: &[i64], lowest: &[i64]) -> usize {
    let is_apart = |(highest, lowest): (&i64, &i64)| *lowest < 1 && *highest != -lowest;
    let is_apart: Vec<bool> = highest.iter().zip(lowest).map(is_apart).collect();
    let are_all_apart = |calls: &&[bool]| calls.iter().all(|is_apart| *is_apart);
    is_apart.windows(STAY_APART).filter(are_all_apart).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_operation_that_does_not_wait_leaves_ranks_apart() {
        let numbers: Vec<i64> = (0..256).collect();
        let still_apart = |slower: Vec<i64>| {
            let pairs = numbers.iter().zip(&slower);
            let highest: Vec<i64> = pairs.map(|(one, other)| *one.max(other)).collect();
            let pairs = numbers.iter().zip(&slower);
            let lowest: Vec<i64> = pairs.map(|(one, other)| -one.min(other)).collect();
            calls_still_apart(&highest, &lowest)
        };
        // A quarter of the calls is barely late, and the next one is not.
        let barely = numbers.iter().map(|number| match number % 8 {
            0 | 1 => number + 1,
            _ => *number,
        });
        assert_eq!(still_apart(barely.collect()), 0);
        // Interruptions make calls late, whose points are -1.
        let interrupted = numbers.iter().map(|number| match number % 64 {
            0..8 => -1,
            _ => *number,
        });
        assert_eq!(still_apart(interrupted.collect()), 0);
        // A rank stays one point behind.
        let slipped = numbers
            .iter()
            .map(|number| number + i64::from(*number > 99));
        assert_eq!(still_apart(slipped.collect()), 156 - (STAY_APART - 1));
    }
}
