//! Measurement of the offset between the clocks of two ranks.
//!
//! The reference first sends a message that it is ready, so that no timestamp of the client is from
//! a time when the reference was still busy with other clients: such a session would seem to have
//! begun long ago, with a long first round trip. That message holds the largest error of its readings.
//!
//! Then the client leads: each of its messages has the number of exchanges that follow, and the
//! mode in which to send the answer; the reference answers until none remain. So the reference
//! needs to know neither the algorithm nor the number of exchanges, and the two cannot disagree
//! about them.

use core::num::NonZeroU32;
use core::ops::Range;

use downbeat_clock_core::offset::{
    Exchange, MeanRoundTrip, MeanRttOffset, OffsetInterval, OffsetSample, SkampiOffset,
    TraceCollectorOffset,
};
use downbeat_clock_core::{Clock, ClockModel, Counter, Domain, Duration, FitError, Timestamp};

use crate::quality::MAX_DRIFT;
use crate::session::{OffsetRequest, OffsetSession, ROUNDING, SendMode, resolution};
use crate::{Comm, CommError, OffsetAlgorithm, SyncError, block_on_ready};

/// Rank that measures the offset of its clock to that of a reference, any number of times.
///
/// It keeps the state of the pair: the buffer of exchanges, which is allocated once, the mean round
/// trip once it was measured, and the quickest round trip. The other rank calls [`answer`] once per
/// measurement.
///
/// `C` is the domain of this rank's time, `R` that of the reference's.
#[derive(Clone, Debug)]
pub struct OffsetClient<C: Domain, R: Domain> {
    reference: u32,
    algorithm: OffsetAlgorithm,
    buffer: Vec<Exchange<C, R>>,
    /// Mean and minimum round trip so far, where the algorithm needs them.
    round_trip: Option<Duration>,
    quickest: Duration,
    /// Start of the last measurement, when the reference was ready.
    started: Timestamp<C>,
    /// Largest difference between the rates of both times.
    max_drift: f64,
}

/// Minimum number of exchanges before an early exit.
const MIN_EXCHANGES_BEFORE_EXIT: u64 = 10;

impl<C: Domain, R: Domain> OffsetClient<C, R> {
    /// Creates a client that measures its offset to the rank `reference`.
    ///
    /// # Errors
    /// If the buffer of exchanges cannot be allocated.
    pub fn new(algorithm: OffsetAlgorithm, reference: u32) -> Result<Self, SyncError> {
        let exchanges = algorithm.exchanges().get();
        let mut buffer = Vec::new();
        // SKaMPI's algorithm keeps no exchanges.
        if !matches!(algorithm, OffsetAlgorithm::Skampi { .. }) {
            buffer
                .try_reserve_exact(exchanges as usize)
                .map_err(|_| SyncError::TooManyExchanges(exchanges))?;
            buffer.resize(exchanges as usize, Exchange::BLANK);
        }
        Ok(Self::with_buffer(algorithm, reference, buffer))
    }

    /// Same as [`new`](Self::new), but if the allocation fails, returns a client that makes a
    /// single exchange, and the failure.
    ///
    /// So an algorithm for all ranks exchanges its messages in any case, and no rank waits for
    /// ever.
    pub(crate) fn new_or_single(
        algorithm: OffsetAlgorithm,
        reference: u32,
    ) -> (Self, Option<SyncError>) {
        match Self::new(algorithm, reference) {
            Ok(client) => (client, None),
            Err(why) => (
                Self::with_buffer(
                    OffsetAlgorithm::skampi(NonZeroU32::MIN),
                    reference,
                    Vec::new(),
                ),
                Some(why),
            ),
        }
    }

    fn with_buffer(
        algorithm: OffsetAlgorithm,
        reference: u32,
        buffer: Vec<Exchange<C, R>>,
    ) -> Self {
        Self {
            reference,
            algorithm,
            buffer,
            round_trip: None,
            quickest: Duration::MAX,
            started: Timestamp::ORIGIN,
            max_drift: MAX_DRIFT,
        }
    }

    /// Declares how much more the time of the reference can drift than a clock: as much as the line is
    /// wrong by which its rank learned it.
    pub(crate) fn allow_drift(&mut self, drift: f64) {
        self.max_drift = MAX_DRIFT + drift;
    }

    /// Returns the algorithm in use.
    pub fn algorithm(&self) -> OffsetAlgorithm {
        self.algorithm
    }

    /// Returns the start of the last measurement, when the reference was ready.
    pub(crate) fn started(&self) -> Timestamp<C> {
        self.started
    }

    /// Measures the offset of the time `base` of this rank's `clock` to the reference's time.
    ///
    /// # Errors
    /// If the reference is gone, if a clock stepped, or if the exchanges contradict each other.
    pub async fn measure<K: Clock, M: Comm>(
        &mut self,
        clock: &K,
        base: &ClockModel<Counter, C>,
        comm: &M,
    ) -> Result<OffsetSample<C>, SyncError> {
        let of_reference: Duration = comm.recv(self.reference).await?;
        self.started = base.apply(clock.ticks());
        let session = OffsetSession {
            clock,
            base,
            comm,
            reference: self.reference,
        };
        let reading_error = resolution(clock, base) + of_reference + ROUNDING;
        // In a box: ranks that wait for their turn need none of its memory.
        Box::pin(self.measure_by(&session, reading_error)).await
    }

    async fn measure_by<K: Clock, M: Comm>(
        &mut self,
        session: &OffsetSession<'_, K, C, M>,
        reading_error: Duration,
    ) -> Result<OffsetSample<C>, SyncError> {
        let exchanges = u64::from(self.algorithm.exchanges().get());
        // The bound of the estimators that have none.
        let mut interval = OffsetInterval::new(self.max_drift, reading_error);
        match self.algorithm {
            OffsetAlgorithm::Skampi { early_exit, .. } => {
                let mut estimator = SkampiOffset::<C, R>::with_reading_error(reading_error);
                let (quickest, mut exchange_count) = (&mut self.quickest, 0);
                let take = |exchange: Exchange<C, R>| {
                    estimator.push(exchange)?;
                    exchange_count += 1;
                    *quickest = exchange.round_trip().min(*quickest);
                    Ok(early_exit
                        && exchange_count >= MIN_EXCHANGES_BEFORE_EXIT
                        && is_near_quickest(exchange.round_trip(), *quickest))
                };
                session
                    .run_exchanges(SendMode::Standard, 0..exchanges, take)
                    .await?;
                Ok(estimator.estimate()?)
            }
            OffsetAlgorithm::MeanRtt { .. } => {
                let round_trip = match self.round_trip {
                    Some(known) => known,
                    None => {
                        let remaining = exchanges..2 * exchanges;
                        let mean =
                            measure_mean_round_trip(session, remaining, &mut interval).await?;
                        *self.round_trip.insert(mean)
                    }
                };
                let mut estimator = MeanRttOffset::new(round_trip, &mut self.buffer);
                session
                    .run_exchanges(SendMode::Synchronous, 0..exchanges, |exchange| {
                        interval.push(exchange)?;
                        continue_after(estimator.push(exchange))
                    })
                    .await?;
                Ok(interval.certify(estimator.estimate()?)?)
            }
            OffsetAlgorithm::TraceCollector { .. } => {
                let mut estimator = TraceCollectorOffset::new(&mut self.buffer);
                session
                    .run_exchanges(SendMode::Standard, 0..exchanges, |exchange| {
                        interval.push(exchange)?;
                        continue_after(estimator.push(exchange))
                    })
                    .await?;
                Ok(interval.certify(estimator.estimate()?)?)
            }
        }
    }

    /// Same as [`measure`](Self::measure), for algorithms that continue with their messages after a
    /// clock failed: only a message that was not delivered is an outer error.
    pub(crate) async fn attempt<K: Clock, M: Comm>(
        &mut self,
        clock: &K,
        base: &ClockModel<Counter, C>,
        comm: &M,
    ) -> Result<Result<OffsetSample<C>, SyncError>, CommError> {
        match self.measure(clock, base, comm).await {
            Err(SyncError::Comm(why)) => Err(why),
            measured => Ok(measured),
        }
    }

    /// Same as [`measure`](Self::measure), for a communicator that does not suspend.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_blocking<K: Clock, M: Comm>(
        &mut self,
        clock: &K,
        base: &ClockModel<Counter, C>,
        comm: &M,
    ) -> Result<OffsetSample<C>, SyncError> {
        block_on_ready(self.measure(clock, base, comm))
    }
}

/// Measures the mean round trip to the reference, and narrows the interval of offsets meanwhile.
async fn measure_mean_round_trip<K: Clock, C: Domain, R: Domain, M: Comm>(
    session: &OffsetSession<'_, K, C, M>,
    remaining: Range<u64>,
    interval: &mut OffsetInterval<C, R>,
) -> Result<Duration, SyncError> {
    let mut mean = MeanRoundTrip::new();
    session
        .run_exchanges(SendMode::Synchronous, remaining, |exchange| {
            interval.push(exchange)?;
            continue_after(mean.push(exchange))
        })
        .await?;
    Ok(mean.mean()?)
}

/// Returns true if the round trip is at most a tenth longer than the quickest.
fn is_near_quickest(round_trip: Duration, quickest: Duration) -> bool {
    round_trip.as_nanos() <= quickest.as_nanos().saturating_add(quickest.as_nanos() / 10)
}

/// Continues with further exchanges unless the last one failed.
fn continue_after(result: Result<(), FitError>) -> Result<bool, FitError> {
    result.map(|()| false)
}

/// Answers a client that measures its offset to the time `base` of this rank's `clock`: all
/// exchanges of one [`OffsetClient::measure`].
///
/// # Errors
/// If the client is gone, or sends a message that is not one of a client.
pub async fn answer<K: Clock, D: Domain, M: Comm>(
    clock: &K,
    base: &ClockModel<Counter, D>,
    comm: &M,
    client: u32,
) -> Result<(), CommError> {
    comm.send(client, resolution(clock, base)).await?;
    loop {
        let request: OffsetRequest = comm.recv(client).await?;
        let now = base.apply(clock.ticks());
        match request.answer_mode {
            SendMode::Standard => comm.send(client, now).await?,
            SendMode::Synchronous => comm.send_sync(client, now).await?,
        }
        if request.remaining == 0 {
            return Ok(());
        }
    }
}

/// Same as [`answer`], for a communicator that does not suspend.
///
/// # Errors
/// As [`answer`].
pub fn answer_blocking<K: Clock, D: Domain, M: Comm>(
    clock: &K,
    base: &ClockModel<Counter, D>,
    comm: &M,
    client: u32,
) -> Result<(), CommError> {
    block_on_ready(answer(clock, base, comm, client))
}
