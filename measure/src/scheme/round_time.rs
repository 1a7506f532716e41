//! Round-Time (algorithm 5 of Hunold 2018): each round has a common start, which is announced shortly before.

use downbeat_clock_core::{Clock, Duration, Global, Timestamp};
use downbeat_sync::{Comm, CommError, collective};

use crate::barrier::Barrier;
use crate::context::{CallSpan, MeasureContext, reserve_spans};
use crate::error::MeasureError;
use crate::operation::{Coordinator, MessageCoordinator, Operation};
use downbeat_records::stats::Sample;

/// Each round has a common start; after the call, the ranks agree whether all of them were in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTime {
    /// Time from the arrival of the broadcast that announces a round to the start of the round, as a multiple of the
    /// duration of a broadcast; limited to 0.1 s.
    pub slack: f64,
    /// True if the slack adapts to the rate of late starts; otherwise it grows only as long as no round began in time.
    pub adaptive: bool,
    /// Barrier before the announcement of each round.
    pub barrier: Option<Barrier>,
    /// True to announce and to agree by messages instead of the library's collectives.
    pub by_messages: bool,
}

impl RoundTime {
    /// Default slack, which suffices for most rounds if message latencies are stable.
    pub const USUAL_SLACK: f64 = 0.75;
}

impl Default for RoundTime {
    fn default() -> Self {
        Self {
            slack: Self::USUAL_SLACK,
            adaptive: true,
            barrier: None,
            by_messages: false,
        }
    }
}

/// State of the scheme: the time between announcement and start, as rank 0 decides.
pub(crate) struct PreparedRounds {
    /// Duration of a broadcast until the last rank has received it.
    pub(super) broadcast: Duration,
    slack: f64,
    scheme: RoundTime,
    /// True if no rank was late in some round.
    any_valid: bool,
    late_in_a_row: u32,
}

/// Upper limit of the slack: a rank that has not received the start by then is waiting for a core, not for the message.
const MOST_SLACK: Duration = Duration::from_millis(100);

// Flags that the ranks combine after a round.
const LATE: u64 = 1;
const OUT_OF_TIME: u64 = 2;
/// Late by so little that more slack would have prevented it.
const BARELY: u64 = 4;

impl RoundTime {
    /// Measures the duration of a broadcast until all ranks have received it.
    pub(super) async fn prepare<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
    ) -> Result<PreparedRounds, MeasureError> {
        const TRIES: usize = 51;
        let model = context.global()?;
        let mut latencies = Vec::with_capacity(TRIES);
        for _ in 0..TRIES {
            context.coordinator.barrier().await?;
            let sent = model.apply(context.clock.ticks());
            let sent = self.broadcast(context, sent).await?;
            latencies.push((model.apply(context.clock.ticks()) - sent).as_nanos() as f64);
        }
        let median = Sample::new(&mut latencies).map_or(0.0, |sample| sample.median());
        // If a clock is behind, the broadcast can seem to arrive before it was sent; the cast saturates.
        let slowest = collective::all_reduce(context.comm, median as u64, u64::max).await?;
        let broadcast = Duration::from_nanos((slowest as i64).max(1));
        Ok(PreparedRounds {
            broadcast,
            slack: self.slack,
            scheme: *self,
            any_valid: false,
            late_in_a_row: 0,
        })
    }
}

impl RoundTime {
    /// Returns the time of rank 0.
    #[inline]
    async fn broadcast<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        time: Timestamp<Global>,
    ) -> Result<Timestamp<Global>, CommError> {
        let word = time.as_nanos() as u64;
        let word = match self.by_messages {
            true => MessageCoordinator(context.comm).broadcast(word).await?,
            false => context.coordinator.broadcast(word).await?,
        };
        Ok(Timestamp::from_nanos(word as i64))
    }

    /// Returns the flags of all ranks.
    #[inline]
    async fn union<M: Comm, T: Coordinator, K: Clock>(
        &self,
        context: &MeasureContext<'_, M, T, K>,
        flags: u64,
    ) -> Result<u64, CommError> {
        match self.by_messages {
            true => MessageCoordinator(context.comm).bitwise_or(flags).await,
            false => context.coordinator.bitwise_or(flags).await,
        }
    }
}

impl PreparedRounds {
    /// Relative growth of the slack when a round is late.
    const MORE: f64 = 0.1;
    /// Number of rounds per late round to aim at: at most one of 1,000 may be late, and slack cannot prevent about half of
    /// these.
    const ROUNDS_PER_LOSS: f64 = 2_500.0;
    /// Number of late rounds in a row after which the slack grows, however late they were.
    const TOO_MANY_IN_A_ROW: u32 = 3;

    /// Runs a number of rounds, or fewer if the time is over.
    pub(super) async fn run<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        rounds: u32,
        time: Option<Duration>,
    ) -> Result<Vec<CallSpan>, MeasureError> {
        let model = context.global()?;
        let until = time.map(|time| model.invert(model.apply(context.clock.ticks()) + time));
        let mut spans = reserve_spans(rounds);
        for number in first..first + rounds {
            operation.prepare();
            if let Some(barrier) = self.scheme.barrier {
                context.wait_for_all(barrier).await?;
            }
            let start = model.apply(context.clock.ticks()) + self.notice();
            let start = self.scheme.broadcast(context, start).await?;
            let late = context.wait_until(&model, start)?;
            let span = context.timed(operation, number).await?;
            let mut flags = late.map_or(0, |delay| self.lateness(delay));
            if until.is_some_and(|until| span.end >= until) {
                flags |= OUT_OF_TIME;
            }
            let flags = self.scheme.union(context, flags).await?;
            spans.push(span.late_unless(flags & LATE == 0));
            self.adapt(flags);
            if flags & OUT_OF_TIME != 0 {
                break;
            }
        }
        Ok(spans)
    }

    /// Returns the time from the announcement of a round to its start.
    fn notice(&self) -> Duration {
        self.broadcast + self.slack()
    }

    /// Returns the part of the notice that is reserved for ranks that receive the announcement late.
    pub(super) fn slack(&self) -> Duration {
        let slack = Duration::from_nanos((self.broadcast.as_nanos() as f64 * self.slack) as i64);
        slack.min(MOST_SLACK)
    }

    /// Returns the flags of a rank that is late by this duration. Slack cannot prevent delays by the scheduler, which are
    /// longer than a broadcast.
    fn lateness(&self, delay: Duration) -> u64 {
        if delay <= self.broadcast {
            LATE | BARELY
        } else {
            LATE
        }
    }

    /// Increases the slack after each round that was barely late, and decreases it slightly after each other round: it
    /// converges to one late round per [`ROUNDS_PER_LOSS`](Self::ROUNDS_PER_LOSS). Several late rounds in a row increase it,
    /// too, as the delays may exceed a broadcast. As long as there is no valid round, also a slack that does not adapt doubles then: after
    /// large messages, a broadcast can take many times as long as those that were tried.
    fn adapt(&mut self, flags: u64) {
        const LEAST: f64 = 0.25;
        const MOST: f64 = 64.0;
        if flags & LATE == 0 {
            (self.any_valid, self.late_in_a_row) = (true, 0);
        } else {
            self.late_in_a_row += 1;
        }
        let too_many = self.late_in_a_row >= Self::TOO_MANY_IN_A_ROW;
        let change = if too_many && !self.any_valid {
            2.0
        } else if !self.scheme.adaptive {
            return;
        } else if flags & BARELY != 0 || too_many {
            1.0 + Self::MORE
        } else {
            1.0 - Self::MORE / Self::ROUNDS_PER_LOSS
        };
        self.slack = (self.slack * change).clamp(LEAST, MOST);
    }
}
