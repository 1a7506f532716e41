//! The estimator of Jones and Koenig: the median exchange, corrected by half the mean round trip.

use super::{Exchange, Exchanges, OffsetSample, nearest, span};
use crate::{Domain, Duration, FitError};

/// The mean round trip of a pair, computed exactly and rounded to the nearest nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanRoundTrip {
    sum: i128,
    count: u64,
}

impl MeanRoundTrip {
    /// Creates a mean without exchanges.
    pub const fn new() -> Self {
        Self { sum: 0, count: 0 }
    }

    /// Adds the round trip of one exchange.
    ///
    /// # Errors
    /// If the client's clock stepped back during it.
    pub fn push<C: Domain, R: Domain>(&mut self, exchange: Exchange<C, R>) -> Result<(), FitError> {
        let (sent, _, received) = exchange.checked()?.wide();
        // Overflows only after 2^62 exchanges.
        self.sum += received - sent;
        self.count += 1;
        Ok(())
    }

    /// The mean; saturates.
    ///
    /// # Errors
    /// If there were no exchanges.
    pub fn mean(&self) -> Result<Duration, FitError> {
        match self.count {
            0 => Err(FitError::NoExchanges),
            count => Ok(span(nearest(self.sum, count.into()))),
        }
    }
}

/// The offset of the median exchange, assuming that its answer took half a mean round trip.
///
/// Each exchange gives the sample `received - answered - round_trip / 2` at the time `received`. The median is one of the
/// samples with its own time, never a mean of two: for an even number it is the lower of the two middle ones.
///
/// ```
/// use downbeat_clock_core::offset::{Exchange, MeanRoundTrip, MeanRttOffset};
/// use downbeat_clock_core::{Duration, Global, Local, Timestamp};
///
/// // The client is 1 us ahead, and the second answer was slow.
/// let exchanges = [(5_000, 4_200, 5_400), (7_000, 6_200, 9_800), (9_000, 8_200, 9_410)].map(
///     |(sent, answered, received)| Exchange::<Local, Global> {
///         sent: Timestamp::from_nanos(sent),
///         answered: Timestamp::from_nanos(answered),
///         received: Timestamp::from_nanos(received),
///     },
/// );
///
/// // The mean round trip is measured once per pair, in advance.
/// let mut round_trip = MeanRoundTrip::new();
/// round_trip.push(exchanges[0])?;
///
/// let mut buffer = [Exchange::BLANK; 3];
/// let mut offset = MeanRttOffset::new(round_trip.mean()?, &mut buffer);
/// for exchange in exchanges {
///     offset.push(exchange)?;
/// }
/// let median = offset.estimate()?;
/// assert_eq!(median.offset, Duration::from_nanos(1_010));
/// assert_eq!(median.at, Timestamp::from_nanos(9_410));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MeanRttOffset<'a, C: Domain, R: Domain> {
    round_trip: Duration,
    exchanges: Exchanges<'a, C, R>,
}

impl<'a, C: Domain, R: Domain> MeanRttOffset<'a, C, R> {
    /// Creates an estimator for a pair with this mean round trip; the buffer limits the number of exchanges.
    pub fn new(round_trip: Duration, buffer: &'a mut [Exchange<C, R>]) -> Self {
        Self {
            round_trip,
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

    /// The median sample; half a nanosecond is rounded down.
    ///
    /// # Errors
    /// If there were no exchanges.
    pub fn estimate(&mut self) -> Result<OffsetSample<C>, FitError> {
        let exchanges = self.exchanges.pushed();
        let middle = exchanges
            .len()
            .checked_sub(1)
            .ok_or(FitError::NoExchanges)?
            / 2;
        // The mean round trip is the same for all, so it does not affect the order. Of equal samples take the earlier.
        let (_, median, _) = exchanges.select_nth_unstable_by_key(middle, |exchange| {
            let (_, answered, received) = exchange.wide();
            (received - answered, received)
        });
        let (_, answered, received) = median.wide();
        let doubled = 2 * (received - answered) - i128::from(self.round_trip.as_nanos());
        Ok(OffsetSample {
            at: median.received,
            offset: span(doubled.div_euclid(2)),
            half_width: None,
        })
    }
}
