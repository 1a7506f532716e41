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

use downbeat_clock_core::{Clock, Duration, Global, Timestamp};
use downbeat_sync::{Comm, collective};

use super::batch::{self, BatchSize};
use super::each_call::EachCall;
use crate::context::{CallSpan, MeasureContext, decode_time, encode_time, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, Operation};
use downbeat_records::ObservationState;

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
    /// Number of calls between two agreements: a rank that an operation does not wait for
    /// begins all calls after a late one later than the others, until they agree again.
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
/// Share of calls that ranks began at different points, each in time, above which the
/// operation does not wait for all ranks; and share of late calls above which a point for
/// each call does not help.
const APART: usize = 32;
const UNHELPFUL: usize = 4;

impl RoundGrid {
    /// Determines the spacing from calls behind a barrier.
    pub(super) async fn prepare<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<PreparedGrid, MeasureError> {
        if let Some(spacing) = self.spacing {
            return Ok(PreparedGrid {
                spacing,
                least: spacing,
                most: spacing,
                batch: BatchSize::FIRST,
                by_number: false,
            });
        }
        let fitting = EachCall::default()
            .quantile(context, operation, TRIES, FITTING)
            .await?;
        let spacing = Duration::from_nanos(fitting.min(1 << 60) as i64) + MARGIN;
        Ok(PreparedGrid {
            spacing,
            least: spacing / 4,
            most: spacing * 64,
            batch: BatchSize::FIRST,
            by_number: false,
        })
    }
}

impl PreparedGrid {
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
        let mut points = Vec::with_capacity(batch::MOST as usize);
        while spans.len() < calls as usize {
            let begin = model.apply(context.clock.ticks()) + NOTICE;
            let begin = collective::broadcast(context.comm, encode_time(begin)).await?;
            let made = spans.len();
            let size = self.batch.calls(self.spacing).min(calls - made as u32);
            points.clear();
            for number in 0..size {
                operation.prepare();
                let point = match self.by_number {
                    true => i64::from(number),
                    false => {
                        self.next_point(decode_time(begin), model.apply(context.clock.ticks()))
                    }
                };
                let start = decode_time(begin) + self.spacing * point;
                context.wait_until(&model, start)?;
                let span = context
                    .timed(operation, first + made as u32 + number)
                    .await?;
                let is_punctual = model.apply(span.start) - start <= PUNCTUAL;
                points.push(if is_punctual { point } else { -1 });
                spans.push(span);
            }
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
            true => (exceeds(late_calls, LATE), self.spacing / 4),
            false => (
                exceeds((*barely).into(), BARELY) || exceeds((*skipped).into(), SKIPPED),
                self.spacing / 16,
            ),
        };
        self.by_number = match self.by_number {
            true => !exceeds(late_calls, UNHELPFUL),
            false => exceeds((*apart).into(), APART),
        };
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
    /// Number of calls that ranks began at different points, each in time, at most 255.
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
        let is_apart = |(highest, lowest): &(&i64, &i64)| **lowest < 1 && **highest != -**lowest;
        let apart = highest.iter().zip(lowest).filter(is_apart).count();
        let apart = apart.min(u8::MAX.into()) as u8;
        let late = highest.iter().zip(lowest).map(is_late).map(u8::from);
        let summary = late.chain([barely, skipped, apart, u8::from(over != [0])]);
        let summary = collective::broadcast_bytes(comm, summary.collect()).await?;
        let [late @ .., barely, skipped, apart, is_over] = summary.as_slice() else {
            // Unreachable: these are in every summary.
            return Err(MeasureError::nothing(&[]));
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
