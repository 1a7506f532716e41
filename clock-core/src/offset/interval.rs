//! The interval of offsets that no exchange contradicts, between clocks that drift.

use core::marker::PhantomData;

use super::{Exchange, OffsetSample, span};
use crate::bound::drifted;
use crate::{Domain, Duration, FitError, OffsetLimits, Timestamp};

/// The interval that is certain to contain the offset, for clocks whose rates differ by at most a declared drift.
///
/// Each exchange limits the offset at the time of its answer. What earlier exchanges said is widened by the drift since, so
/// the interval holds at the end of the session, however long that is. If nothing is left, a clock stepped: either clock, at
/// any time from the first exchange on.
///
/// ```
/// use downbeat_clock_core::offset::{Exchange, OffsetInterval};
/// use downbeat_clock_core::{Duration, FitError, Global, Local, Timestamp};
///
/// let exchange = |sent, answered, received| Exchange::<Local, Global> {
///     sent: Timestamp::from_nanos(sent),
///     answered: Timestamp::from_nanos(answered),
///     received: Timestamp::from_nanos(received),
/// };
/// // At most 1 ppm apart in rate; readings are exact.
/// let mut interval = OffsetInterval::new(1e-6, Duration::ZERO);
/// interval.push(exchange(5_000, 4_200, 5_400))?;
/// interval.push(exchange(1_005_000, 1_004_100, 1_006_400))?;
/// // The first answer took up to 400 ns, and the clocks drifted by up to 2 ns since.
/// let [low, high] = interval.limits_at(Timestamp::from_nanos(1_006_400))?;
/// assert_eq!((low.as_nanos(), high.as_nanos()), (899, 1_203));
///
/// // The client stepped ahead by 10 us.
/// let stepped = interval.push(exchange(2_015_000, 2_004_200, 2_015_400));
/// let Err(why @ FitError::Stepped { by, .. }) = stepped else { panic!("10 us are more than the messages took") };
/// assert_eq!(by, Duration::from_nanos(9_596));
/// // Both exchanges are named.
/// assert!(why.to_string().ends_with("at 5.400 us it was 800 ns to 1.200 us ahead, but at 2.015 ms it was 10.800 us to 11.200 us ahead"), "{why}");
/// # Ok::<(), FitError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OffsetInterval<C: Domain, R: Domain> {
    max_drift: f64,
    reading_error: Duration,
    certain: Option<Certain<C>>,
    reference: PhantomData<R>,
}

/// Limits of the offset at some time from `sent` to `received`.
#[derive(Clone, Copy, Debug)]
struct Certain<C: Domain> {
    low: i128,
    high: i128,
    sent: Timestamp<C>,
    received: Timestamp<C>,
    /// Limits by the exchanges that set the lower and the upper one.
    set_by: [OffsetLimits; 2],
}

impl<C: Domain> Certain<C> {
    /// Limits at another time.
    fn widened(self, max_drift: f64, time: Timestamp<C>) -> Self {
        let apart = self.received.max(time) - self.sent.min(time);
        let by = i128::from(drifted(max_drift, apart).as_nanos());
        Self {
            low: self.low - by,
            high: self.high + by,
            ..self
        }
    }
}

impl<C: Domain, R: Domain> OffsetInterval<C, R> {
    /// Creates an interval without exchanges, between clocks whose rates differ by at most `max_drift` and whose readings
    /// are off by `reading_error` together.
    pub const fn new(max_drift: f64, reading_error: Duration) -> Self {
        Self {
            max_drift,
            reading_error,
            certain: None,
            reference: PhantomData,
        }
    }

    /// Adds an exchange, which must not be earlier than those before.
    ///
    /// # Errors
    /// If a clock stepped since the first exchange. The exchange is then not added.
    pub fn push(&mut self, exchange: Exchange<C, R>) -> Result<(), FitError> {
        let exchange = exchange.checked()?;
        let (sent, answered, received) = exchange.wide();
        let error = i128::from(self.reading_error.as_nanos());
        let [low, high] = [sent - answered - error, received - answered + error];
        let own = OffsetLimits {
            at: exchange.received - Timestamp::ORIGIN,
            low: span(low),
            high: span(high),
        };
        let mut next = Certain {
            low,
            high,
            sent: exchange.sent,
            received: exchange.received,
            set_by: [own; 2],
        };
        let Some(before) = self.certain else {
            self.certain = Some(next);
            return Ok(());
        };
        let before = before.widened(self.max_drift, exchange.received);
        let apart = (low - before.high).max(before.low - high);
        if apart > 0 {
            let earlier = before.set_by[usize::from(low > before.high)];
            return Err(FitError::Stepped {
                by: span(apart),
                between: Some([earlier, own]),
            });
        }
        if before.low > low {
            (next.low, next.set_by[0]) = (before.low, before.set_by[0]);
        }
        if before.high < high {
            (next.high, next.set_by[1]) = (before.high, before.set_by[1]);
        }
        self.certain = Some(next);
        Ok(())
    }

    /// Lower and upper limit of the offset at a time of the client; they saturate.
    ///
    /// # Errors
    /// If there were no exchanges.
    pub fn limits_at(&self, time: Timestamp<C>) -> Result<[Duration; 2], FitError> {
        let certain = self.certain.ok_or(FitError::NoExchanges)?;
        let Certain { low, high, .. } = certain.widened(self.max_drift, time);
        Ok([span(low), span(high)])
    }

    /// Returns an offset that was estimated from the same exchanges, with the largest error that they leave to it.
    ///
    /// # Errors
    /// If there were no exchanges.
    pub fn certify(&self, sample: OffsetSample<C>) -> Result<OffsetSample<C>, FitError> {
        let [low, high] = self.limits_at(sample.at)?;
        let half_width = (sample.offset - low).max(high - sample.offset);
        Ok(OffsetSample {
            half_width: Some(half_width),
            ..sample
        })
    }
}
