//! SKaMPI's estimator: the interval of offsets consistent with all exchanges.

use core::marker::PhantomData;

use super::{Exchange, OffsetSample, span};
use crate::{Domain, Duration, FitError, Timestamp};

/// The offset as the middle of the interval that is consistent with all exchanges.
///
/// The reference answered after `sent` and before `received`, so the offset lies between `sent - answered` and
/// `received - answered`. The intersection of these intervals is *certain* to contain the offset as long as the clocks do
/// not drift during the session, and readings are off by no more than declared. The estimate holds at the middle of the
/// session.
///
/// ```
/// use downbeat_clock_core::offset::{Exchange, SkampiOffset};
/// use downbeat_clock_core::{Duration, Global, Local, Timestamp};
///
/// let mut skampi = SkampiOffset::<Local, Global>::new();
/// // The client is 1 us ahead. First the answer is slow, then the message.
/// for (sent, answered, received) in [(5_000, 4_200, 6_500), (7_000, 7_100, 8_300)] {
///     skampi.push(Exchange {
///         sent: Timestamp::from_nanos(sent),
///         answered: Timestamp::from_nanos(answered),
///         received: Timestamp::from_nanos(received),
///     })?;
/// }
/// let sample = skampi.estimate()?;
/// assert_eq!(sample.offset, Duration::from_nanos(1_000));
/// assert_eq!(sample.half_width, Some(Duration::from_nanos(200)));
/// assert_eq!(sample.at, Timestamp::from_nanos(6_650));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Algorithm 7 of the paper assigns its estimate to the end of the session, which biases it by the drift over half a
/// session.
#[derive(Clone, Copy, Debug)]
pub struct SkampiOffset<C: Domain, R: Domain> {
    reading_error: Duration,
    session: Option<SkampiInterval<C>>,
    reference: PhantomData<R>,
}

#[derive(Clone, Copy, Debug)]
struct SkampiInterval<C: Domain> {
    /// Lower limit of the offset.
    low: i128,
    /// Upper limit of the offset.
    high: i128,
    began: Timestamp<C>,
    ended: Timestamp<C>,
}

impl<C: Domain, R: Domain> SkampiOffset<C, R> {
    /// Creates an estimator without exchanges, for readings that are exact.
    pub const fn new() -> Self {
        Self::with_reading_error(Duration::ZERO)
    }

    /// Creates an estimator without exchanges, for clocks whose readings are off by up to this together.
    pub const fn with_reading_error(reading_error: Duration) -> Self {
        Self {
            reading_error,
            session: None,
            reference: PhantomData,
        }
    }

    /// Adds an exchange of the session.
    ///
    /// # Errors
    /// If the client's clock stepped back during it.
    pub fn push(&mut self, exchange: Exchange<C, R>) -> Result<(), FitError> {
        let exchange = exchange.checked()?;
        let (sent, answered, received) = exchange.wide();
        let error = i128::from(self.reading_error.as_nanos());
        let (low, high) = (sent - answered - error, received - answered + error);
        self.session = Some(match self.session {
            None => SkampiInterval {
                low,
                high,
                began: exchange.sent,
                ended: exchange.received,
            },
            Some(session) => SkampiInterval {
                low: session.low.max(low),
                high: session.high.min(high),
                ended: exchange.received,
                ..session
            },
        });
        Ok(())
    }

    /// The middle of the interval and half its width, rounded up.
    ///
    /// # Errors
    /// If there were no exchanges, or they contradict each other.
    pub fn estimate(&self) -> Result<OffsetSample<C>, FitError> {
        let SkampiInterval {
            low,
            high,
            began,
            ended,
        } = self.session.ok_or(FitError::NoExchanges)?;
        if low > high {
            return Err(FitError::Drifted {
                by: span(low - high),
            });
        }
        // The middle is rounded down, so `high` is the farther end, and the half width is rounded up.
        let middle = (low + high).div_euclid(2);
        Ok(OffsetSample {
            at: began.midpoint(ended),
            offset: span(middle),
            half_width: Some(span(high - middle)),
        })
    }
}

impl<C: Domain, R: Domain> Default for SkampiOffset<C, R> {
    fn default() -> Self {
        Self::new()
    }
}
