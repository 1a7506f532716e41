//! Sessions of exchanges while a program runs (Intel Trace Collector, `VT_timesync`): the past is interpolated through them afterwards.

use core::num::NonZeroU32;

use downbeat_clock_core::offset::{Exchange, OffsetInterval, OffsetSample, TraceCollectorOffset};
use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, FitError, Global, Local, Timestamp,
};

use crate::quality::MAX_DRIFT;
use crate::session::{ROUNDING, resolution};
use crate::{Comm, CommError, LocalClock};

/// Limits of a session, which ends when it reaches either.
///
/// Rank 0 exchanges one message with each other rank in turn, and begins again with the first. So the samples of all ranks
/// are from the same span of time.
///
/// ```
/// use downbeat_clock_core::{Clock, ClockModel, Counter, Global, Local, Timestamp};
/// use downbeat_sync::timesync::SessionLimits;
/// use downbeat_sync::{Comm, LocalClock, ThreadCluster, block_on_ready};
/// use downbeat_timers::{SystemClock, SystemClockId};
///
/// let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
/// let local = ClockModel::<Counter, Local>::through(clock.ticks(), Timestamp::ORIGIN, SystemClock::RATE)?;
/// let global: ClockModel<Counter, Global> = local.renamed();
/// let sessions = ThreadCluster::new(2).run(|comm| {
///     let me = LocalClock::new(&clock, local);
///     block_on_ready(SessionLimits::default().run(&me, &global, comm))
/// })?;
/// let [first, second] = &sessions[..] else { return Ok(()) };
/// assert!(first.as_ref().is_ok_and(|first| first.exchanges().is_empty()));
/// let knot = second.as_ref().map_err(|why| *why)?.knot()?;
/// println!("{} by the clock of rank 1 is {} by that of rank 0", knot.at, knot.image);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Largest number of exchanges of each rank.
    pub exchanges: NonZeroU32,
    /// Duration after which no further round begins, by the clock of rank 0. The first round is always made.
    pub duration: Duration,
}

impl Default for SessionLimits {
    /// Returns 100 exchanges, and a minute: the defaults of the Trace Collector.
    fn default() -> Self {
        const EXCHANGES: NonZeroU32 = NonZeroU32::new(100).unwrap();
        Self {
            exchanges: EXCHANGES,
            duration: Duration::from_secs(60),
        }
    }
}

/// The exchanges of this rank with rank 0 in one session, in the order of time; none on rank 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSession {
    exchanges: Vec<Exchange<Local, Global>>,
    /// Largest error of the readings of both clocks together.
    reading_error: Duration,
}

/// Announcement of rank 0: an exchange follows, or the session ends.
const FOLLOWS: u64 = 1;
const ENDS: u64 = 0;

impl SessionLimits {
    /// Exchanges messages with the other ranks, which all call this; the limits are those of rank 0. `global` is the time of rank 0.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn run<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        global: &ClockModel<Counter, Global>,
        comm: &M,
    ) -> Result<ExchangeSession, CommError> {
        if comm.rank() > 0 {
            return answered_by_first(me, comm).await;
        }
        for rank in 1..comm.size() {
            comm.send(rank, resolution(me.clock(), global)).await?;
        }
        let began = me.now();
        for round in 0..self.exchanges.get() {
            if round > 0 && me.now() - began > self.duration {
                break;
            }
            for rank in 1..comm.size() {
                // Its first stamp is taken when this rank has time for it.
                comm.send(rank, FOLLOWS).await?;
                let () = comm.recv(rank).await?;
                comm.send(rank, global.apply(me.clock().ticks())).await?;
            }
        }
        for rank in 1..comm.size() {
            comm.send(rank, ENDS).await?;
        }
        Ok(ExchangeSession::default())
    }
}

/// Makes the exchanges that rank 0 announces.
async fn answered_by_first<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<ExchangeSession, CommError> {
    let (clock, base) = (me.clock(), me.base());
    let of_first: Duration = comm.recv(0).await?;
    let mut session = ExchangeSession {
        exchanges: Vec::new(),
        reading_error: resolution(clock, &base) + of_first + ROUNDING,
    };
    while comm.recv::<u64>(0).await? == FOLLOWS {
        let sent = clock.open();
        comm.send(0, ()).await?;
        let answered: Timestamp<Global> = comm.recv(0).await?;
        let received = clock.close();
        session.exchanges.push(Exchange {
            sent: base.apply(sent),
            answered,
            received: base.apply(received),
        });
    }
    Ok(session)
}

impl ExchangeSession {
    /// Returns all exchanges, each with its round trip.
    pub fn exchanges(&self) -> &[Exchange<Local, Global>] {
        &self.exchanges
    }

    /// Condenses the session into one pair of times: the mean of all exchanges except the slowest tenth.
    ///
    /// # Errors
    /// If there are no exchanges, or a clock stepped, so that they contradict each other.
    pub fn knot(&self) -> Result<SplineKnot<Local, Global>, FitError> {
        let mut buffer = vec![Exchange::BLANK; self.exchanges.len()];
        let mut estimator = TraceCollectorOffset::new(&mut buffer);
        let mut interval = OffsetInterval::new(MAX_DRIFT, self.reading_error);
        for exchange in &self.exchanges {
            interval.push(*exchange)?;
            estimator.push(*exchange)?;
        }
        let OffsetSample { at, offset, .. } = estimator.estimate()?;
        let image = at.as_nanos().saturating_sub(offset.as_nanos());
        Ok(SplineKnot {
            at,
            image: Timestamp::from_nanos(image),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(sent: i64, answered: i64, received: i64) -> Exchange<Local, Global> {
        Exchange {
            sent: Timestamp::from_nanos(sent),
            answered: Timestamp::from_nanos(answered),
            received: Timestamp::from_nanos(received),
        }
    }

    fn session(exchanges: impl IntoIterator<Item = Exchange<Local, Global>>) -> ExchangeSession {
        ExchangeSession {
            exchanges: exchanges.into_iter().collect(),
            reading_error: Duration::ZERO,
        }
    }

    #[test]
    fn a_session_is_condensed_into_the_mean_without_its_slowest_tenth() {
        // Rank 0 is 1 us behind; the answer of the slowest exchange was delayed.
        let quick = (0..9).map(|i| exchange(i * 100, i * 100 - 990, i * 100 + 20));
        let all = session(quick.chain([exchange(900, -90, 5_000)]));
        let knot = all.knot().unwrap();
        // The mean of the middles of the first nine, 0 to 800 ns, and 10 ns.
        assert_eq!(
            (knot.at.as_nanos(), knot.image.as_nanos()),
            (410, 410 - 1_000)
        );
    }

    #[test]
    fn a_session_without_exchanges_has_no_knot() {
        assert!(ExchangeSession::default().knot().is_err());
    }

    #[test]
    fn a_session_during_which_a_clock_stepped_has_no_knot() {
        for by in [-3_000, 3_000] {
            let steady = (0..50).map(|i| exchange(i * 10_000, i * 10_000 + 100, i * 10_000 + 200));
            let stepped = (50..100)
                .map(|i| exchange(i * 10_000 + by, i * 10_000 + 100, i * 10_000 + 200 + by));
            let why = session(steady.chain(stepped)).knot().unwrap_err();
            assert!(matches!(why, FitError::Stepped { .. }), "{why}");
        }
    }
}
