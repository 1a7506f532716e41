//! Offsets between two clocks, estimated from round trips.
//!
//! A client measures the difference of its clock from that of a reference: the client stamps a message and sends it, the
//! reference answers with its own timestamp, the client stamps the answer. An [`Exchange`] does not tell the share of each
//! direction in the round trip, so an estimator combines many of them, each by its own rule. There is one file per
//! estimator. All of them take exchanges one at a time, count in whole nanoseconds and allocate nothing: estimators that
//! keep all exchanges use a buffer of the caller.
//!
//! An *offset* is the client's clock minus the reference's clock.

use crate::{Domain, Duration, FitError, Timestamp};

mod interval;
mod lowest;
mod mean_rtt;
mod skampi;
mod trace_collector;

pub use interval::OffsetInterval;
pub use lowest::LowestOffset;
pub use mean_rtt::{MeanRoundTrip, MeanRttOffset};
pub use skampi::SkampiOffset;
pub use trace_collector::TraceCollectorOffset;

/// One ping-pong between a client, whose clock is `C`, and a reference, whose clock is `R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange<C: Domain, R: Domain> {
    /// The client's clock when it sent its message.
    pub sent: Timestamp<C>,
    /// The reference's clock when it answered.
    pub answered: Timestamp<R>,
    /// The client's clock when it received the answer.
    pub received: Timestamp<C>,
}

impl<C: Domain, R: Domain> Exchange<C, R> {
    /// An exchange with all timestamps at the origin, to initialize the buffer of an estimator.
    pub const BLANK: Self = Self {
        sent: Timestamp::ORIGIN,
        answered: Timestamp::ORIGIN,
        received: Timestamp::ORIGIN,
    };

    /// The round-trip time; saturates.
    pub fn round_trip(&self) -> Duration {
        self.received - self.sent
    }

    /// Returns the exchange unless the client's clock ran backwards during it.
    fn checked(self) -> Result<Self, FitError> {
        if self.received < self.sent {
            return Err(FitError::SteppedBack {
                by: self.sent - self.received,
            });
        }
        Ok(self)
    }

    /// The timestamps as integers whose sums and differences cannot overflow.
    fn wide(&self) -> (i128, i128, i128) {
        (
            self.sent.as_nanos().into(),
            self.answered.as_nanos().into(),
            self.received.as_nanos().into(),
        )
    }
}

/// The offset of a client's clock from its reference at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetSample<C: Domain> {
    /// Time of the offset on the client's clock.
    pub at: Timestamp<C>,
    /// The client's clock minus the reference's clock.
    pub offset: Duration,
    /// Upper limit of the error of `offset`; `None` if the estimator has no guaranteed limit.
    pub half_width: Option<Duration>,
}

impl<C: Domain> OffsetSample<C> {
    /// One over the square of the half width in nanoseconds: the weight of the sample. A sample without a half width is
    /// treated as if it were one second, so it has almost no influence next to samples that have one.
    pub fn certainty(&self) -> f64 {
        let width = self.half_width.unwrap_or(Duration::from_secs(1));
        // The resolution of an offset is a nanosecond.
        let width = (width.as_nanos() as f64).max(1.0);
        1.0 / (width * width)
    }
}

/// Exchanges in a buffer of the caller.
#[derive(Debug)]
struct Exchanges<'a, C: Domain, R: Domain> {
    buffer: &'a mut [Exchange<C, R>],
    filled: usize,
}

impl<C: Domain, R: Domain> Exchanges<'_, C, R> {
    fn push(&mut self, exchange: Exchange<C, R>) -> Result<(), FitError> {
        let exchange = exchange.checked()?;
        *self
            .buffer
            .get_mut(self.filled)
            .ok_or(FitError::BufferFull)? = exchange;
        self.filled += 1;
        Ok(())
    }

    /// The exchanges pushed so far; an estimate may change their order.
    fn pushed(&mut self) -> &mut [Exchange<C, R>] {
        &mut self.buffer[..self.filled]
    }
}

/// `sum / count` for a positive count, rounded to nearest, halves upwards.
fn nearest(sum: i128, count: i128) -> i128 {
    (2 * sum + count).div_euclid(2 * count)
}

/// Converts to `i64`; saturates.
fn nanos(wide: i128) -> i64 {
    wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Converts nanoseconds to a duration; saturates.
fn span(wide: i128) -> Duration {
    Duration::from_nanos(nanos(wide))
}
