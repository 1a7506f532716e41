//! Data that forward amortization passes to backward amortization: one record for each event,
//! encoded as a few integers.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::CollectiveKind;
use super::{Link, StreamedOperation};

/// State of an event after forward amortization.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub(super) location: u32,
    pub(super) time: i64,
    pub(super) jump: i64,
    pub(super) link: Link,
}

/// Bits of the last integer besides the location.
mod role {
    pub(super) const NOTHING: u64 = 0;
    pub(super) const SEND: u64 = 1;
    pub(super) const RECEIVE: u64 = 2;
    pub(super) const ENTER: u64 = 3;
    pub(super) const EXIT: u64 = 4;
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

    /// Pushes the record to a stack of integers: two, or up to six if the event has a link.
    pub fn push_to(&self, mut push: impl FnMut(u64)) {
        push(self.time as u64);
        let last = match self.link {
            Link::Nothing => role::NOTHING,
            Link::Send { message } => {
                push(message);
                role::SEND
            }
            Link::Receive { message } => {
                push(message);
                push(self.jump as u64);
                role::RECEIVE
            }
            Link::Enter { of } => {
                push_operation(of, &mut push);
                role::ENTER | u64::from(of.is_first) << 3
            }
            Link::Exit {
                of,
                kind,
                root,
                sends,
                receives,
            } => {
                push_operation(of, &mut push);
                push(self.jump as u64);
                push(root.into());
                let flags =
                    u64::from(of.is_first) | u64::from(sends) << 1 | u64::from(receives) << 2;
                role::EXIT | flags << 3 | (kind as u64) << 6
            }
        };
        push(last | u64::from(self.location) << 32);
    }

    /// Pops a record from a stack; `pop` takes one integer. `None` if the stack is empty or has no
    /// valid record on top.
    pub fn pop_from<E>(mut pop: impl FnMut() -> Result<Option<u64>, E>) -> Result<Option<Self>, E> {
        let Some(last) = pop()? else { return Ok(None) };
        let mut next = || Ok(pop()?.unwrap_or_default());
        let has = |bit: u32| last >> bit & 1 == 1;
        let mut jump = 0;
        let link = match last & 7 {
            role::NOTHING => Link::Nothing,
            role::SEND => Link::Send { message: next()? },
            role::RECEIVE => {
                jump = next()? as i64;
                Link::Receive { message: next()? }
            }
            role::ENTER => Link::Enter {
                of: pop_operation(has(3), &mut next)?,
            },
            _ => {
                let root = next()? as u32;
                jump = next()? as i64;
                let of = pop_operation(has(3), &mut next)?;
                let Some(kind) = CollectiveKind::from_number(last >> 6 & 15) else {
                    return Ok(None);
                };
                Link::Exit {
                    of,
                    kind,
                    root,
                    sends: has(4),
                    receives: has(5),
                }
            }
        };
        Ok(Some(Self {
            location: (last >> 32) as u32,
            time: next()? as i64,
            jump,
            link,
        }))
    }
}

fn push_operation(of: StreamedOperation, push: &mut impl FnMut(u64)) {
    push(of.number);
    push(u64::from(of.members) << 32 | u64::from(of.rank));
}

fn pop_operation<E>(
    is_first: bool,
    next: &mut impl FnMut() -> Result<u64, E>,
) -> Result<StreamedOperation, E> {
    let both = next()?;
    let (members, rank) = ((both >> 32) as u32, both as u32);
    Ok(StreamedOperation {
        number: next()?,
        members,
        rank,
        which: None,
        is_first,
        is_last: false,
    })
}
