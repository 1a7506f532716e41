//! Data that forward amortization passes to backward amortization: one record for each event.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::{Link, Linked};

/// State of an event after forward amortization.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub(super) event: Linked,
    pub(super) time: i64,
    pub(super) jump: i64,
}

impl Record {
    /// Returns the time of the event after forward amortization.
    pub fn time(&self) -> Timestamp<Global> {
        Timestamp::from_nanos(self.time)
    }

    /// Returns the distance by which the event was too early even after those before it had been
    /// moved.
    pub fn jump(&self) -> Duration {
        Duration::from_nanos(self.jump)
    }

    /// Pushes the times of the record to a stack of integers: one, or two if it can have a jump.
    pub fn push_to<E>(&self, mut push: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        if can_jump(self.event.link) {
            push(self.jump as u64)?;
        }
        push(self.time as u64)
    }

    /// Returns the record of an event, whose times are on top of a stack; `pop` takes one integer.
    /// `None` if the stack is empty.
    pub fn pop_from<E>(
        event: Linked,
        mut pop: impl FnMut() -> Result<Option<u64>, E>,
    ) -> Result<Option<Self>, E> {
        let Some(time) = pop()? else { return Ok(None) };
        let jump = if can_jump(event.link) { pop()? } else { None };
        Ok(Some(Self {
            event,
            time: time as i64,
            jump: jump.unwrap_or(0) as i64,
        }))
    }
}

/// Returns true if an event can be too early.
const fn can_jump(link: Link) -> bool {
    matches!(
        link,
        Link::Receive { .. } | Link::Exit { receives: true, .. }
    )
}
