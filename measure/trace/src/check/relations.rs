//! Counts of dependences between events, and single violations.

use core::fmt;
use core::ops::AddAssign;

use downbeat_clock_core::Duration;

use crate::{CollectiveKind, EventId};

/// How many events depend on others, and come too early for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relations {
    /// All.
    pub total: u64,
    /// Those that arrive before they are sent.
    pub reversed: u64,
    /// Those that arrive before they can have arrived: by the latency after they were sent, or later. Those that are
    /// reversed, too.
    pub violated: u64,
}

impl AddAssign for Relations {
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.reversed += other.reversed;
        self.violated += other.violated;
    }
}

/// Something that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The event is before the one before it.
    Decreasing(EventId),
    /// The event was after the one before it, and is not any more.
    Merged(EventId),
    /// An event does not leave a message enough time.
    Early {
        /// Where the message set out, or the enter that an exit waits for.
        send: EventId,
        /// Where it arrived.
        receive: EventId,
        /// How much later that should be at least.
        by: Duration,
        /// Of what collective operation; `None` for a message.
        kind: Option<CollectiveKind>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|event| event.to_string()))
    }
}

impl Fault {
    /// The same as [`Display`](fmt::Display), with other words for events: names of locations, say.
    pub fn describe(&self, words: impl Fn(EventId) -> String) -> String {
        match self {
            Self::Decreasing(event) => {
                format!("{} is earlier than the event before it", words(*event))
            }
            Self::Merged(event) => format!(
                "{} is no longer later than the event before it",
                words(*event)
            ),
            Self::Early {
                send,
                receive,
                by,
                kind,
            } => {
                let what = kind.map_or_else(|| "a message".to_owned(), |kind| format!("{kind:?}"));
                format!(
                    "{} is {by} too early for {}, {what}",
                    words(*receive),
                    words(*send)
                )
            }
        }
    }
}
