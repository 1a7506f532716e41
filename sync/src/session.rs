//! Exchanges of one measurement, as the client leads them.

use core::ops::Range;

use downbeat_clock_core::offset::Exchange;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Domain, Duration, FitError, Ticks, Timestamp,
};

use crate::payload::{Payload, Words};
use crate::{Comm, CommError, SyncError};

/// Error of the difference of two timestamps that were rounded to nanoseconds, before and after it is taken.
pub(crate) const ROUNDING: Duration = Duration::from_nanos(2);

/// Returns the largest error of a reading: the step of the counter.
pub(crate) fn resolution<C: Domain>(clock: &impl Clock, base: &ClockModel<Counter, C>) -> Duration {
    base.rate().duration(clock.grain())
}

/// Client's side of a measurement.
pub(crate) struct OffsetSession<'a, K, C: Domain, M> {
    pub(crate) clock: &'a K,
    pub(crate) base: &'a ClockModel<Counter, C>,
    pub(crate) comm: &'a M,
    pub(crate) reference: u32,
}

impl<K: Clock, C: Domain, M: Comm> OffsetSession<'_, K, C, M> {
    /// Makes a number of exchanges; `remaining` counts down the number of exchanges that follow
    /// each of them.
    ///
    /// Each exchange is evaluated while the message of the next one is on its way. `take` returns
    /// true if no more exchanges are needed, or fails; either ends the whole measurement soon.
    pub(crate) async fn run_exchanges<R: Domain>(
        &self,
        send_mode: SendMode,
        remaining: Range<u64>,
        mut take: impl FnMut(Exchange<C, R>) -> Result<bool, FitError>,
    ) -> Result<(), SyncError> {
        let last = remaining.start;
        let mut pending_exchange: Option<RawExchange<R>> = None;
        for remaining in remaining.rev() {
            let mut done = Ok(false);
            let while_waiting =
                || done = pending_exchange.map_or(Ok(false), |raw| take(self.to_exchange(raw)));
            let raw = self.exchange(send_mode, remaining, while_waiting).await?;
            if done != Ok(false) {
                // In a box, as it is rare: it would make every suspended rank larger.
                return Box::pin(self.finish_early(send_mode, remaining, done.map(|_| raw), take))
                    .await;
            }
            pending_exchange = Some(raw);
        }
        match pending_exchange.map_or(Ok(false), |raw| take(self.to_exchange(raw))) {
            Ok(_) => Ok(()),
            Err(why) => Box::pin(self.finish_early(send_mode, last, Err(why), take)).await,
        }
    }

    /// Makes the last exchange, if the reference expects more: that exchange tells it to stop
    /// waiting for others. Evaluates it and the pending one, unless something failed.
    #[cold]
    async fn finish_early<R: Domain>(
        &self,
        send_mode: SendMode,
        remaining: u64,
        pending: Result<RawExchange<R>, FitError>,
        mut take: impl FnMut(Exchange<C, R>) -> Result<bool, FitError>,
    ) -> Result<(), SyncError> {
        let last = if remaining > 0 {
            Some(self.exchange(send_mode, 0, || {}).await?)
        } else {
            None
        };
        for raw in [Some(pending?), last].into_iter().flatten() {
            take(self.to_exchange(raw))?;
        }
        Ok(())
    }

    async fn exchange<R: Domain>(
        &self,
        send_mode: SendMode,
        remaining: u64,
        while_waiting: impl FnOnce(),
    ) -> Result<RawExchange<R>, CommError> {
        let request = OffsetRequest {
            remaining,
            answer_mode: send_mode,
        };
        let sent = self.clock.open();
        // Not a function: that would add a future, which the compiler moves between the timestamps.
        match send_mode {
            SendMode::Standard => self.comm.send(self.reference, request).await?,
            SendMode::Synchronous => self.comm.send_sync(self.reference, request).await?,
        }
        while_waiting();
        let answered = self.comm.recv(self.reference).await?;
        let received = self.clock.close();
        Ok(RawExchange {
            sent,
            answered,
            received,
        })
    }

    fn to_exchange<R: Domain>(&self, raw: RawExchange<R>) -> Exchange<C, R> {
        let RawExchange {
            sent,
            answered,
            received,
        } = raw;
        Exchange {
            sent: self.base.apply(sent),
            answered,
            received: self.base.apply(received),
        }
    }
}

/// Exchange in ticks of the client's clock.
#[derive(Clone, Copy)]
struct RawExchange<R: Domain> {
    sent: Ticks,
    answered: Timestamp<R>,
    received: Ticks,
}

/// Mode in which a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    Standard,
    Synchronous,
}

/// Message of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetRequest {
    /// Number of exchanges that follow this one.
    pub(crate) remaining: u64,
    pub(crate) answer_mode: SendMode,
}

/// The lowest bit is the mode of the answer.
impl Payload for OffsetRequest {
    const WORDS: usize = 1;

    fn put(self, words: &mut Words) {
        words[0] = self.remaining << 1 | u64::from(self.answer_mode == SendMode::Synchronous);
    }

    fn get(words: &Words) -> Option<Self> {
        let answer_mode = if words[0] & 1 == 0 {
            SendMode::Standard
        } else {
            SendMode::Synchronous
        };
        Some(Self {
            remaining: words[0] >> 1,
            answer_mode,
        })
    }
}
