//! The estimator of the Trace Collector: the mean of all but the slowest exchanges.

use super::{Exchange, Exchanges, OffsetSample, nanos, nearest, span};
use crate::{Domain, FitError, Timestamp};

/// One of this number of exchanges is dropped.
const DROP_ONE_OF: usize = 10;

/// The mean offset of all exchanges but the slowest tenth.
///
/// Each exchange gives the sample `(sent + received) / 2 - answered`, as if both directions took the same time. The
/// tenth of them (rounded down) with the longest round trips is dropped. The offsets and times of the others are averaged
/// exactly and then rounded to the nearest nanosecond. Of equal round trips the later is dropped first.
///
/// ```
/// use downbeat_clock_core::offset::{Exchange, TraceCollectorOffset};
/// use downbeat_clock_core::{Duration, Global, Local, Timestamp};
///
/// let mut buffer = [Exchange::BLANK; 10];
/// let mut offset = TraceCollectorOffset::<Local, Global>::new(&mut buffer);
/// // The client is 1 us ahead; the answer of the fourth exchange was delayed.
/// for i in 0..10 {
///     let delay = if i == 3 { 50_000 } else { 200 };
///     let sent = 100_000 * i;
///     offset.push(Exchange {
///         sent: Timestamp::from_nanos(sent),
///         answered: Timestamp::from_nanos(sent + 200 - 1_000),
///         received: Timestamp::from_nanos(sent + 200 + delay),
///     })?;
/// }
/// assert_eq!(offset.estimate()?.offset, Duration::from_nanos(1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TraceCollectorOffset<'a, C: Domain, R: Domain> {
    exchanges: Exchanges<'a, C, R>,
}

impl<'a, C: Domain, R: Domain> TraceCollectorOffset<'a, C, R> {
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

    /// The mean of the samples that are not dropped.
    ///
    /// # Errors
    /// If there were no exchanges.
    pub fn estimate(&mut self) -> Result<OffsetSample<C>, FitError> {
        let exchanges = self.exchanges.pushed();
        let kept = exchanges.len() - exchanges.len() / DROP_ONE_OF;
        let slowest_kept = kept.checked_sub(1).ok_or(FitError::NoExchanges)?;
        exchanges.select_nth_unstable_by_key(slowest_kept, |exchange| {
            let (sent, answered, received) = exchange.wide();
            (received - sent, sent, answered)
        });
        // Sums of doubled samples, so that halves are exact.
        let (at, offset) = exchanges[..kept]
            .iter()
            .fold((0, 0), |(at, offset), exchange| {
                let (sent, answered, received) = exchange.wide();
                (
                    at + sent + received,
                    offset + sent + received - 2 * answered,
                )
            });
        let halves = 2 * kept as i128;
        Ok(OffsetSample {
            at: Timestamp::from_nanos(nanos(nearest(at, halves))),
            offset: span(nearest(offset, halves)),
            half_width: None,
        })
    }
}
