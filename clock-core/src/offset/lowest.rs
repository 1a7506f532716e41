//! The estimator of sessions in the run: the mean of the messages of each direction that
//! nothing delayed.

use super::{Exchange, Exchanges, OffsetSample, nanos, nearest, span};
use crate::fit::LeastSquares;
use crate::{Domain, FitError, Timestamp};

/// One of this number of messages of a direction is averaged.
const AVERAGE_ONE_OF: usize = 20;

/// The mean offset by the lowest twentieth of the differences of each direction.
///
/// An exchange gives two differences: `answered - sent`, and `received - answered`. Both
/// contain the time of one message, and the offset with opposite signs. The twentieth of
/// each (rounded to nearest, at least one) that is lowest is averaged: of messages that
/// nothing delayed. The offset is half the difference of both means, at the mean of their
/// times. It is computed exactly and then rounded to the nearest nanosecond.
///
/// Differences are compared as if the clocks did not drift: their drift is the slope of a
/// line through the middles of the quicker half of the exchanges, or 0 if the lowest
/// differences are larger then. A wrong drift makes some differences lower than any
/// message makes them. The drift selects differences, and does not change them.
///
/// ```
/// use downbeat_clock_core::offset::{Exchange, LowestOffset};
/// use downbeat_clock_core::{Duration, Global, Local, Timestamp};
///
/// let mut buffer = [Exchange::BLANK; 10];
/// let mut offset = LowestOffset::<Local, Global>::new(&mut buffer);
/// // The client is 1 us ahead; only one message of each direction was not delayed.
/// for i in 0..10 {
///     let up = if i == 3 { 200 } else { 900 };
///     let down = if i == 7 { 200 } else { 50_000 };
///     let sent = 100_000 * i;
///     offset.push(Exchange {
///         sent: Timestamp::from_nanos(sent),
///         answered: Timestamp::from_nanos(sent + up - 1_000),
///         received: Timestamp::from_nanos(sent + up + down),
///     })?;
/// }
/// assert_eq!(offset.estimate()?.offset, Duration::from_nanos(1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LowestOffset<'a, C: Domain, R: Domain> {
    exchanges: Exchanges<'a, C, R>,
}

/// Direction of a message.
#[derive(Clone, Copy, Debug)]
enum Direction {
    ToReference,
    ToClient,
}

impl Direction {
    /// Returns the client's time at its end of a message, and the difference of the times
    /// at both ends.
    fn stamps<C: Domain, R: Domain>(self, exchange: &Exchange<C, R>) -> [i128; 2] {
        let (sent, answered, received) = exchange.wide();
        match self {
            Self::ToReference => [sent, answered - sent],
            Self::ToClient => [received, received - answered],
        }
    }

    /// Returns what a drift adds to a difference after this time.
    fn predict_drift(self, drift: f64, time: i128) -> f64 {
        match self {
            Self::ToReference => -drift * time as f64,
            Self::ToClient => drift * time as f64,
        }
    }
}

impl<'a, C: Domain, R: Domain> LowestOffset<'a, C, R> {
    /// Creates an estimator; the buffer limits the number of exchanges.
    pub fn new(buffer: &'a mut [Exchange<C, R>]) -> Self {
        Self {
            exchanges: Exchanges { buffer, filled: 0 },
        }
    }

    /// Adds an exchange.
    ///
    /// # Errors
    /// If the client's clock stepped back during it, or the buffer is full.
    pub fn push(&mut self, exchange: Exchange<C, R>) -> Result<(), FitError> {
        self.exchanges.push(exchange)
    }

    /// The offset by the lowest differences of both directions.
    ///
    /// # Errors
    /// If there were no exchanges.
    pub fn estimate(&mut self) -> Result<OffsetSample<C>, FitError> {
        let exchanges = self.exchanges.pushed();
        let averaged = ((exchanges.len() + AVERAGE_ONE_OF / 2) / AVERAGE_ONE_OF).max(1);
        let drift = fit_drift(exchanges)?;
        let [steady, drifting] = [0.0, drift].map(|drift| {
            let [sent, up] = sum_lowest(exchanges, averaged, drift, Direction::ToReference);
            let [received, down] = sum_lowest(exchanges, averaged, drift, Direction::ToClient);
            // The sum of all without their drift.
            let level = (up + down) as f64 - drift * (received - sent) as f64;
            (level, [sent + received, down - up])
        });
        let (_, [at, offset]) = if drifting.0 > steady.0 {
            drifting
        } else {
            steady
        };
        let halves = 2 * averaged as i128;
        Ok(OffsetSample {
            at: Timestamp::from_nanos(nanos(nearest(at, halves))),
            offset: span(nearest(offset, halves)),
            half_width: None,
        })
    }
}

/// Sorts the exchanges by their round trips, so that no result depends on their order,
/// and returns the slope of the line through the middles of the quicker half; 0 if there
/// is none.
fn fit_drift<C: Domain, R: Domain>(exchanges: &mut [Exchange<C, R>]) -> Result<f64, FitError> {
    exchanges.sort_unstable_by_key(|exchange| {
        let (sent, answered, received) = exchange.wide();
        (received - sent, sent, answered)
    });
    let quicker = exchanges.len().div_ceil(2);
    // Twice the time and twice the offset, relative to one of the exchanges.
    let doubled = |exchange: &Exchange<C, R>| {
        let (sent, answered, received) = exchange.wide();
        [sent + received, sent + received - 2 * answered]
    };
    let origin = doubled(exchanges.first().ok_or(FitError::NoExchanges)?);
    let mut line = LeastSquares::new();
    for exchange in &exchanges[..quicker] {
        let [time, offset] = doubled(exchange);
        line.push((time - origin[0]) as f64, (offset - origin[1]) as f64)?;
    }
    Ok(line.line().map_or(0.0, |line| line.slope()))
}

/// Returns the sums of the times and of the differences of the messages with the lowest
/// differences.
fn sum_lowest<C: Domain, R: Domain>(
    exchanges: &mut [Exchange<C, R>],
    averaged: usize,
    drift: f64,
    direction: Direction,
) -> [i128; 2] {
    // Differences from one of them: as floats, those of distant clocks would be alike.
    let origin = direction.stamps(&exchanges[0]);
    let key = |exchange: &Exchange<C, R>| {
        let [time, difference] = direction.stamps(exchange);
        let since = time - origin[0];
        let steady = (difference - origin[1]) as f64 - direction.predict_drift(drift, since);
        (steady, since)
    };
    exchanges.select_nth_unstable_by(averaged - 1, |one, other| {
        let ((one, since), (other, later)) = (key(one), key(other));
        one.total_cmp(&other).then(since.cmp(&later))
    });
    let stamps = exchanges[..averaged]
        .iter()
        .map(|one| direction.stamps(one));
    stamps.fold([0; 2], |sums, stamps| {
        [sums[0] + stamps[0], sums[1] + stamps[1]]
    })
}
