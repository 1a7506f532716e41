//! Offsets between two clocks, from messages that went to and fro.
//!
//! A client learns by how much its clock differs from that of a reference: the client stamps a message and sends it,
//! the reference answers with its own stamp, the client stamps the answer. No such [`Exchange`] tells how the time
//! under way was shared between the two directions, so an estimator looks at many and each has its own idea of which
//! to trust. One file per estimator; all of them take exchanges one at a time, count in whole nanoseconds and
//! allocate nothing: where all exchanges must be kept, they are kept in a buffer of the caller's.
//!
//! An *offset* is what the client shows minus what the reference shows.

use crate::{Domain, Duration, FitError, Timestamp};

mod mean_rtt;
mod skampi;
mod trace_collector;

pub use mean_rtt::{MeanRoundTrip, MeanRttOffset};
pub use skampi::SkampiOffset;
pub use trace_collector::TraceCollectorOffset;

/// One ping-pong between a client, whose clock is `C`, and a reference, whose clock is `R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange<C: Domain, R: Domain> {
    /// What the client showed when it sent its message.
    pub sent: Timestamp<C>,
    /// What the reference showed when it answered.
    pub answered: Timestamp<R>,
    /// What the client showed when the answer came.
    pub received: Timestamp<C>,
}

impl<C: Domain, R: Domain> Exchange<C, R> {
    /// All stamps at the origin: fills a buffer before an estimator uses it.
    pub const BLANK: Self = Self {
        sent: Timestamp::ORIGIN,
        answered: Timestamp::ORIGIN,
        received: Timestamp::ORIGIN,
    };

    /// How long the client waited for the answer; saturates.
    pub fn round_trip(&self) -> Duration {
        self.received - self.sent
    }

    /// The exchange, unless the client's clock ran backwards in it.
    fn checked(self) -> Result<Self, FitError> {
        if self.received < self.sent {
            return Err(FitError::SteppedBack {
                by: self.sent - self.received,
            });
        }
        Ok(self)
    }

    /// The stamps as numbers whose sums and differences cannot overflow.
    fn wide(&self) -> (i128, i128, i128) {
        (
            self.sent.as_nanos().into(),
            self.answered.as_nanos().into(),
            self.received.as_nanos().into(),
        )
    }
}

/// By how much a client's clock was ahead of its reference, at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetSample<C: Domain> {
    /// When the offset held, on the client's clock.
    pub at: Timestamp<C>,
    /// What the client showed minus what the reference showed.
    pub offset: Duration,
    /// How far the true offset can be from `offset` at most, where the estimator can tell; never a guess.
    pub half_width: Option<Duration>,
}

/// Exchanges in a buffer of the caller's.
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

    /// Those pushed; an estimate may change their order.
    fn pushed(&mut self) -> &mut [Exchange<C, R>] {
        &mut self.buffer[..self.filled]
    }
}

/// `sum / count` for a positive count, rounded to nearest, halves upwards.
fn nearest(sum: i128, count: i128) -> i128 {
    (2 * sum + count).div_euclid(2 * count)
}

/// Saturates.
fn nanos(wide: i128) -> i64 {
    wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Saturates.
fn span(wide: i128) -> Duration {
    Duration::from_nanos(nanos(wide))
}
