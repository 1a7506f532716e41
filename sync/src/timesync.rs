//! Sessions of exchanges while a program runs (Intel Trace Collector, `VT_timesync`): the past is interpolated through them afterwards.

use core::num::NonZeroU32;
use std::rc::Rc;

use downbeat_clock_core::offset::{
    Exchange, LowestOffset, OffsetInterval, OffsetSample, TraceCollectorOffset,
};
use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, FitError, Global, Local, Timestamp,
};

use crate::collective::{all_true, broadcast};
use crate::session::{ROUNDING, resolution};
use crate::{Comm, CommError, LocalClock, NodeComms, Synchronized};

mod past;
mod rule;

pub use past::PastCurve;
pub use rule::{SessionRule, SessionRuleError};

/// Limits of a session, which ends when it reaches either, and the rule that condenses
/// it.
///
/// Rank 0 exchanges one message with each other rank in turn, and begins again with the first. So the samples of all ranks
/// are from the same span of time.
///
/// ```
/// use downbeat_clock_core::{Clock, ClockModel, Counter, Global, Local, Timestamp};
/// use downbeat_sync::timesync::{SessionLimits, SessionRanks, SessionRule};
/// use downbeat_sync::{Comm, LocalClock, ThreadCluster, block_on_ready};
/// use downbeat_timers::{SystemClock, SystemClockId};
///
/// let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
/// let local = ClockModel::<Counter, Local>::through(clock.ticks(), Timestamp::ORIGIN, SystemClock::RATE)?;
/// let global: ClockModel<Counter, Global> = local.renamed();
/// let sessions = ThreadCluster::new(2).run(|comm| {
///     let me = LocalClock::new(&clock, local);
///     let limits = SessionLimits::default();
///     block_on_ready(limits.run(&me, &global, comm, SessionRanks::All))
/// })?;
/// let [first, second] = &sessions[..] else { return Ok(()) };
/// assert!(first.as_ref().is_ok_and(|first| first.exchanges().is_empty()));
/// let knot = second.as_ref().map_err(|why| *why)?.knot(SessionRule::default())?;
/// println!("{} by the clock of rank 1 is {} by that of rank 0", knot.at, knot.image);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Largest number of exchanges of each rank.
    pub exchanges: NonZeroU32,
    /// Duration after which no further round begins, by the clock of rank 0. The first round is always made.
    pub duration: Duration,
    /// Rule by which this rank condenses its exchanges into one pair of times.
    pub rule: SessionRule,
}

impl Default for SessionLimits {
    /// Returns 100 exchanges and a minute, the defaults of the Trace Collector, and the
    /// mean of the lowest differences.
    fn default() -> Self {
        const EXCHANGES: NonZeroU32 = NonZeroU32::new(100).unwrap();
        Self {
            exchanges: EXCHANGES,
            duration: Duration::from_secs(60),
            rule: SessionRule::default(),
        }
    }
}

/// Ranks that exchange messages with rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionRanks {
    /// Every other rank.
    #[default]
    All,
    /// The first rank of each node. The other ranks of the node read its counter, and
    /// take its session.
    FirstOfNodes,
}

impl SessionRanks {
    /// Returns the first rank of each node if the last synchronization proved that the
    /// ranks of each node read one counter.
    pub fn from_synchronization(last: Option<&Synchronized>) -> Self {
        let report = last.and_then(|last| last.auto);
        match report.is_some_and(|report| report.nodes_share_counters) {
            true => Self::FirstOfNodes,
            false => Self::All,
        }
    }
}

/// The exchanges of this rank with rank 0 in one session, in the order of time; none on rank 0.
///
/// A rank that reads the counter of another one has the exchanges of that rank, in its
/// own local time. One that reads the counter of rank 0 has a single exchange, without a
/// round trip: a reading of that counter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExchangeSession {
    exchanges: Vec<Exchange<Local, Global>>,
    /// Largest error of the readings of both clocks together.
    reading_error: Duration,
    /// Largest drift of both clocks from each other.
    max_drift: f64,
}

/// Announcement of rank 0: an exchange follows, or the session ends.
const FOLLOWS: u64 = 1;
const ENDS: u64 = 0;

impl SessionLimits {
    /// Exchanges messages with the other ranks, which all call this; the limits are those of rank 0. `global` is the time of rank 0.
    ///
    /// Only the [first ranks of nodes](SessionRanks::FirstOfNodes) exchange messages if
    /// all ranks say so, and the ranks of each node have the same
    /// [source](LocalClock::source); [placements](LocalClock::placement) tell the nodes.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn run<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        global: &ClockModel<Counter, Global>,
        comm: &M,
        ranks: SessionRanks,
    ) -> Result<ExchangeSession, CommError> {
        let Some(nodes) = Box::pin(shared_nodes(me, comm, ranks)).await? else {
            return self.exchange(me, global, comm).await;
        };
        let NodeComms { node, firsts } = &*nodes;
        let own = match firsts {
            Some(firsts) => self.exchange(me, global, firsts).await?,
            None => ExchangeSession::default(),
        };
        // Equal on all ranks of the node: the first of them all has the lowest rank.
        let has_reference = broadcast(node, u64::from(comm.rank() == 0)).await? > 0;
        match has_reference {
            true => own.read_reference(me, global, node).await,
            false => Box::pin(own.take_first_session(me, node)).await,
        }
    }

    /// Exchanges messages with all ranks of a communicator.
    async fn exchange<K: Clock, M: Comm>(
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

/// Returns the communicators of nodes if only their first ranks exchange messages.
async fn shared_nodes<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    comm: &M,
    ranks: SessionRanks,
) -> Result<Option<Rc<NodeComms<M>>>, CommError> {
    if !all_true(comm, ranks == SessionRanks::FirstOfNodes).await? {
        return Ok(None);
    }
    let nodes = comm.by_node(me.placement.node).await?;
    let source = broadcast(&nodes.node, me.time_source()).await?;
    let have_one_source = all_true(comm, source == me.time_source()).await?;
    Ok(have_one_source.then_some(nodes))
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
        max_drift: me.max_drift,
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

/// Returns the exchange of the first rank of a node on all its ranks.
async fn broadcast_exchange<M: Comm>(
    node: &M,
    own: Exchange<Local, Global>,
) -> Result<Exchange<Local, Global>, CommError> {
    let Exchange {
        sent,
        answered,
        received,
    } = own;
    let own = [sent.as_nanos(), answered.as_nanos(), received.as_nanos()];
    let [sent, answered, received] = broadcast(node, own).await?;
    Ok(Exchange {
        sent: Timestamp::from_nanos(sent),
        answered: Timestamp::from_nanos(answered),
        received: Timestamp::from_nanos(received),
    })
}

impl ExchangeSession {
    /// Reads the counter of rank 0, which is the first of the node, in place of an
    /// exchange; not on rank 0.
    async fn read_reference<K: Clock, M: Comm>(
        self,
        me: &LocalClock<'_, K>,
        global: &ClockModel<Counter, Global>,
        node: &M,
    ) -> Result<Self, CommError> {
        let global = broadcast(node, *global).await?;
        if node.rank() == 0 {
            return Ok(self);
        }
        let (clock, base) = (me.clock(), me.base());
        let ticks = clock.ticks();
        let own = base.apply(ticks);
        Ok(Self {
            exchanges: vec![Exchange {
                sent: own,
                answered: global.apply(ticks),
                received: own,
            }],
            reading_error: resolution(clock, &base) + resolution(clock, &global) + ROUNDING,
            max_drift: me.max_drift,
        })
    }

    /// Takes the session of the first rank of the node, in the local time of this rank.
    async fn take_first_session<K: Clock, M: Comm>(
        self,
        me: &LocalClock<'_, K>,
        node: &M,
    ) -> Result<Self, CommError> {
        let base = broadcast(node, me.base()).await?;
        let reading_error = broadcast(node, self.reading_error).await?;
        let count = broadcast(node, self.exchanges.len() as u64).await?;
        let mut exchanges = self.exchanges;
        exchanges.resize(count as usize, Exchange::BLANK);
        for exchange in &mut exchanges {
            *exchange = broadcast_exchange(node, *exchange).await?;
        }
        let (own, mut rounding) = (me.base(), Duration::ZERO);
        if own != base {
            for exchange in &mut exchanges {
                exchange.sent = own.apply(base.invert(exchange.sent));
                exchange.received = own.apply(base.invert(exchange.received));
            }
            // A time is inverted to the next tick, and rounded again.
            rounding = resolution(me.clock(), &own) + ROUNDING;
        }
        Ok(Self {
            exchanges,
            reading_error: reading_error + rounding,
            max_drift: me.max_drift,
        })
    }

    /// Returns all exchanges, each with its round trip.
    pub fn exchanges(&self) -> &[Exchange<Local, Global>] {
        &self.exchanges
    }

    /// Condenses the session into one pair of times.
    ///
    /// # Errors
    /// If there are no exchanges, or a clock stepped, so that they contradict each other.
    pub fn knot(&self, rule: SessionRule) -> Result<SplineKnot<Local, Global>, FitError> {
        self.certain_offset()?;
        let mut buffer = vec![Exchange::BLANK; self.exchanges.len()];
        let OffsetSample { at, offset, .. } = match rule {
            SessionRule::Lowest => {
                let mut estimator = LowestOffset::new(&mut buffer);
                self.exchanges
                    .iter()
                    .try_for_each(|one| estimator.push(*one))?;
                estimator.estimate()?
            }
            SessionRule::TraceCollector => {
                let mut estimator = TraceCollectorOffset::new(&mut buffer);
                self.exchanges
                    .iter()
                    .try_for_each(|one| estimator.push(*one))?;
                estimator.estimate()?
            }
        };
        let image = at.as_nanos().saturating_sub(offset.as_nanos());
        Ok(SplineKnot {
            at,
            image: Timestamp::from_nanos(image),
        })
    }

    /// Returns the offsets that no exchange contradicts, for clocks that drift no more
    /// than declared.
    fn certain_offset(&self) -> Result<OffsetInterval<Local, Global>, FitError> {
        let mut interval = OffsetInterval::new(self.max_drift, self.reading_error);
        for exchange in &self.exchanges {
            interval.push(*exchange)?;
        }
        Ok(interval)
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
            max_drift: 1e-3,
        }
    }

    #[test]
    fn a_session_is_condensed_into_the_mean_without_its_slowest_tenth() {
        // Rank 0 is 1 us behind; the answer of the slowest exchange was delayed.
        let quick = (0..9).map(|i| exchange(i * 100, i * 100 - 990, i * 100 + 20));
        let all = session(quick.chain([exchange(900, -90, 5_000)]));
        let knot = all.knot(SessionRule::TraceCollector).unwrap();
        // The mean of the middles of the first nine, 0 to 800 ns, and 10 ns.
        assert_eq!(
            (knot.at.as_nanos(), knot.image.as_nanos()),
            (410, 410 - 1_000)
        );
    }

    #[test]
    fn a_session_without_exchanges_has_no_knot() {
        assert!(
            ExchangeSession::default()
                .knot(SessionRule::Lowest)
                .is_err()
        );
    }

    #[test]
    fn a_session_during_which_a_clock_stepped_has_no_knot() {
        for by in [-3_000, 3_000] {
            let steady = (0..50).map(|i| exchange(i * 10_000, i * 10_000 + 100, i * 10_000 + 200));
            let stepped = (50..100)
                .map(|i| exchange(i * 10_000 + by, i * 10_000 + 100, i * 10_000 + 200 + by));
            let stepped = session(steady.chain(stepped));
            let why = stepped.knot(SessionRule::Lowest).unwrap_err();
            assert!(matches!(why, FitError::Stepped { .. }), "{why}");
        }
    }
}
