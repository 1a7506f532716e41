//! Error for events that wait for each other in a cycle.

use core::fmt;

use super::ids::EventId;

/// Cycle of events that wait for each other, which cannot have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Receives and their sends; each send is later than the next receive, on the same clock.
    pub waits: Vec<[EventId; 2]>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Number of waits that fit in one line of the message.
        const SHOWN: usize = 3;
        f.write_str("events wait for each other in a circle: ")?;
        for (i, [receive, send]) in self.waits.iter().take(SHOWN).enumerate() {
            let then = if i == 0 { "" } else { ", which is after " };
            write!(f, "{then}{receive} for {send}")?;
        }
        match self.waits.len().saturating_sub(SHOWN) {
            0 => f.write_str(", which is after the first"),
            more => write!(f, ", and {more} more"),
        }
    }
}

impl core::error::Error for Cycle {}
