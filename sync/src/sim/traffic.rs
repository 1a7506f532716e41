//! The network cards, and the order in which messages get to them.
//!
//! Messages must claim a card in the order of time, but ranks are simulated one after the other, each until it waits.
//! So a message that is to pass a card becomes an event, and the earliest event happens only when all ranks wait. No
//! rank can then come up with an earlier message: what it waits for, directly or through others, is one of the events,
//! and it goes on when that has happened, not before. So events happen in the order of time.

use super::messages::{Message, Messages, Stage};
use super::network::Card;
use super::queue::{Event, Queue};

/// All cards, and the events that are to come.
#[derive(Debug)]
pub(super) struct Traffic {
    card: Card,
    queue: Queue,
    cards: Vec<Directions>,
}

/// Until when a card is occupied, in each direction.
#[derive(Clone, Copy, Debug, Default)]
struct Directions {
    leaving: u64,
    arriving: u64,
}

impl Traffic {
    pub(super) fn new(card: Card, nodes: u32) -> Self {
        Self { card, queue: Queue::default(), cards: vec![Directions::default(); nodes as usize] }
    }

    /// A message that leaves at a time.
    pub(super) fn push(&mut self, at: u64, id: u32, message: &Message) {
        self.queue.push(event(at, id, message));
    }

    /// Lets events happen until a message has arrived, and returns that; `None` when no event is left.
    ///
    /// `bytes` tells how long a message of so many words is.
    pub(super) fn next_arrival(&mut self, messages: &mut Messages, bytes: impl Fn(u8) -> u32) -> Option<u32> {
        loop {
            let event = self.queue.first()?;
            let (at, id) = ((event >> 64) as u64, event as u32);
            let message = &mut messages[id];
            let occupied = self.card.occupied(bytes(message.length));
            if message.stage == Stage::Leaving {
                let left = claim(&mut self.cards[message.from_node as usize].leaving, at, occupied);
                // It had the time that it would be under way.
                let arrives = left.saturating_add(message.time);
                message.stage = Stage::Travelling;
                self.queue.replace_first(self::event(arrives, id, message));
            } else {
                self.queue.pop();
                message.time = claim(&mut self.cards[message.to_node as usize].arriving, at, occupied);
                message.stage = Stage::Arrived;
                return Some(id);
            }
        }
    }
}

/// Of several at the same time, the sender with the lowest number is first.
fn event(at: u64, id: u32, message: &Message) -> Event {
    u128::from(at) << 64 | u128::from(message.from) << 32 | u128::from(id)
}

/// When a message that wants to pass at `at` does so.
fn claim(free: &mut u64, at: u64, occupied: u64) -> u64 {
    let passes = at.max(*free);
    *free = passes.saturating_add(occupied);
    passes
}
