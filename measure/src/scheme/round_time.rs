//! Round-Time (algorithm 5 of the 2018 paper): each round has a common start, which is told shortly before.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::{Comm, collective};

use crate::stage::{Span, Stage, from_word, room_for, to_word};
use crate::{MeasureError, Operation, Together};
use downbeat_records::ObservationState;
use downbeat_records::stats::Sample;

/// Each round has a common start, and after it the ranks agree on whether all were there in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTime {
    /// How much later than a broadcast arrives a round begins, as a multiple of what a broadcast takes; but a tenth of a
    /// second at most.
    pub slack: f64,
    /// Whether the slack follows the rate of late starts.
    pub adaptive: bool,
}

impl RoundTime {
    /// Where messages take what they usually do, most rounds need no more.
    pub const USUAL_SLACK: f64 = 0.75;
}

impl Default for RoundTime {
    fn default() -> Self {
        Self {
            slack: Self::USUAL_SLACK,
            adaptive: true,
        }
    }
}

/// How long before its start a round is announced, as rank 0 decides.
pub(crate) struct Running {
    /// Until the last rank has heard of the start.
    pub(super) broadcast: Duration,
    slack: f64,
    adaptive: bool,
    late_in_a_row: u32,
}

/// Who has not heard of a start by then is not waiting for its message, but for a core.
const MOST_SLACK: Duration = Duration::from_millis(100);

/// What the ranks tell each other after a round.
const LATE: u64 = 1;
const OUT_OF_TIME: u64 = 2;
/// Late by so little that more slack would have helped.
const BARELY: u64 = 4;

impl RoundTime {
    /// Finds out how long it takes until all ranks have heard of a start.
    pub(super) async fn prepare<M: Comm, T: Together, K: Clock>(
        &self,
        stage: &Stage<'_, M, T, K>,
    ) -> Result<Running, MeasureError> {
        const TRIES: usize = 51;
        let model = stage.global()?;
        let mut took = Vec::with_capacity(TRIES);
        for _ in 0..TRIES {
            stage.together.barrier().await?;
            let sent = from_word(
                stage
                    .together
                    .broadcast(to_word(model.apply(stage.clock.ticks())))
                    .await?,
            );
            took.push((model.apply(stage.clock.ticks()) - sent).as_nanos() as f64);
        }
        let median = Sample::new(&mut took).map_or(0.0, |sample| sample.median());
        // A clock that is behind could have it arrive before it was sent; a cast saturates.
        let slowest = collective::all_reduce(stage.comm, median as u64, u64::max).await?;
        let broadcast = Duration::from_nanos((slowest as i64).max(1));
        Ok(Running {
            broadcast,
            slack: self.slack,
            adaptive: self.adaptive,
            late_in_a_row: 0,
        })
    }
}

impl Running {
    /// By what part the slack grows when a round is lost.
    const MORE: f64 = 0.1;
    /// One round of a thousand may be lost at most, and half of that goes to what no slack would mend.
    const ROUNDS_A_LOSS: f64 = 2_500.0;
    /// Then this is no accident.
    const TOO_MANY_IN_A_ROW: u32 = 3;

    /// Rounds until there are enough, or time is up.
    pub(super) async fn run<M: Comm, T: Together, K: Clock>(
        &mut self,
        stage: &Stage<'_, M, T, K>,
        operation: &mut impl Operation,
        first: u32,
        rounds: u32,
        time: Option<Duration>,
    ) -> Result<Vec<Span>, MeasureError> {
        let model = stage.global()?;
        let until = time.map(|time| model.invert(model.apply(stage.clock.ticks()) + time));
        let mut spans = room_for(rounds);
        for number in first..first + rounds {
            operation.prepare();
            let start = model.apply(stage.clock.ticks()) + self.notice();
            let start = from_word(stage.together.broadcast(to_word(start)).await?);
            let late = stage.wait_until(&model, start)?;
            let span = stage.timed(operation, number).await?;
            let mut word = late.map_or(0, |by| self.lateness(by));
            if until.is_some_and(|until| span.end >= until) {
                word |= OUT_OF_TIME;
            }
            let word = stage.together.union(word).await?;
            let state = if word & LATE == 0 {
                ObservationState::Valid
            } else {
                ObservationState::Late
            };
            spans.push(Span { state, ..span });
            self.adapt(word);
            if word & OUT_OF_TIME != 0 {
                break;
            }
        }
        Ok(spans)
    }

    /// What a round begins later than its start is told.
    fn notice(&self) -> Duration {
        self.broadcast + self.slack()
    }

    /// The part of it that is there for ranks that hear of it late.
    pub(super) fn slack(&self) -> Duration {
        let slack = Duration::from_nanos((self.broadcast.as_nanos() as f64 * self.slack) as i64);
        slack.min(MOST_SLACK)
    }

    /// What a rank tells the others that came too late by so much. What the scheduler spoils, no slack would mend.
    fn lateness(&self, by: Duration) -> u64 {
        if by <= self.broadcast {
            LATE | BARELY
        } else {
            LATE
        }
    }

    /// More slack whenever a round is lost for the want of it, and ever so little less with each that is not: this comes
    /// to rest where one of [`ROUNDS_A_LOSS`](Self::ROUNDS_A_LOSS) is lost. Where all are, all ranks are late by much.
    fn adapt(&mut self, word: u64) {
        const LEAST: f64 = 0.25;
        const MOST: f64 = 64.0;
        self.late_in_a_row = if word & LATE == 0 {
            0
        } else {
            self.late_in_a_row + 1
        };
        let change = if word & BARELY != 0 || self.late_in_a_row >= Self::TOO_MANY_IN_A_ROW {
            1.0 + Self::MORE
        } else {
            1.0 - Self::MORE / Self::ROUNDS_A_LOSS
        };
        if self.adaptive {
            self.slack = (self.slack * change).clamp(LEAST, MOST);
        }
    }
}
