//! Network cards, and the order in which messages pass them.
//!
//! Messages must occupy a card in the order of time, but ranks are simulated one after the other,
//! each until it waits. So a message that passes a card becomes an event, and the earliest event is
//! processed only when all ranks wait. No rank can then send an earlier message: it waits, directly
//! or through other ranks, for one of the events, and continues after it. That holds for a message,
//! for the end of a synchronous send, for the last rank of a split and for a rank that left: each
//! of them depends on a rank that continues, and has the time of that rank or a later one. So
//! events are processed in the order of time. Where other threads simulate other nodes, events are
//! processed up to the end of a window, before which none of their messages can arrive.

use core::ops::Range;

use super::messages::{MESSAGE_BITS, SimMessage};
use super::network::NetworkCard;
use super::part_vec::PartVec;
use super::queue::{EventQueue, SimEvent};

/// Bits of a rank.
pub(super) const RANK_BITS: u32 = 26;

/// Number of messages of a sender that are distinguished. Of several events at the same time, that
/// of the lowest sender is first, and of those the one that was sent first, as far as the remaining
/// bits allow. The slot of a message does not matter.
const NUMBERS: u32 = 1 << (64 - RANK_BITS - MESSAGE_BITS);

/// All cards, and the pending events.
#[derive(Debug)]
pub(super) struct CardTraffic {
    card: NetworkCard,
    queue: EventQueue,
    cards: PartVec<CardOccupancy>,
}

/// Times until which a card is occupied, in each direction.
#[derive(Clone, Copy, Debug, Default)]
struct CardOccupancy {
    leaving: u64,
    arriving: u64,
}

impl CardTraffic {
    pub(super) fn new(card: NetworkCard, nodes: Range<u32>) -> Self {
        Self {
            card,
            queue: EventQueue::default(),
            cards: PartVec::new(nodes, |_| CardOccupancy::default()),
        }
    }

    /// Adds a message that leaves at this time, as the `number`th of its sender.
    pub(super) fn push(&mut self, at: u64, from: u32, number: u32, id: u32) {
        let tie = u64::from(from) << (64 - RANK_BITS) | u64::from(number % NUMBERS) << MESSAGE_BITS;
        self.queue.push(event(at, tie | u64::from(id)));
    }

    /// Returns the earliest event, if it is before `limit`.
    pub(super) fn first(&self, limit: u64) -> Option<CardEvent> {
        self.queue
            .first()
            .map(CardEvent)
            .filter(|event| event.at() < limit)
    }

    /// Lets a message, whose `time` is its latency, leave the card of its sender. Returns the time
    /// of its arrival.
    pub(super) fn leave(&mut self, event: CardEvent, message: &SimMessage, bytes: u32) -> u64 {
        let free = &mut self.cards[message.from_node].leaving;
        let left = occupy(free, event.at(), self.card.occupied(bytes));
        left.saturating_add(message.time)
    }

    /// Lets a message pass the card of its receiver. Returns the time.
    pub(super) fn arrive(&mut self, event: CardEvent, message: &SimMessage, bytes: u32) -> u64 {
        let free = &mut self.cards[message.to_node].arriving;
        occupy(free, event.at(), self.card.occupied(bytes))
    }

    /// Removes the earliest event.
    pub(super) fn remove_first(&mut self) {
        self.queue.pop();
    }

    /// Postpones the earliest event.
    pub(super) fn postpone_first(&mut self, first: CardEvent, at: u64) {
        self.queue.replace_first(event(at, first.0 as u64));
    }
}

/// Message that reaches a card.
#[derive(Clone, Copy, Debug)]
pub(super) struct CardEvent(SimEvent);

impl CardEvent {
    pub(super) fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the index of the message.
    pub(super) fn id(self) -> u32 {
        self.0 as u32 & ((1 << MESSAGE_BITS) - 1)
    }

    /// Returns the number among the messages of the sender, as far as it is distinguished.
    pub(super) fn number(self) -> u32 {
        (self.0 >> MESSAGE_BITS) as u32 & (NUMBERS - 1)
    }
}

fn event(at: u64, sender_and_id: u64) -> SimEvent {
    u128::from(at) << 64 | u128::from(sender_and_id)
}

/// Returns the time at which a message that is ready at `at` passes the card.
fn occupy(free: &mut u64, at: u64, occupied: u64) -> u64 {
    let passes = at.max(*free);
    *free = passes.saturating_add(occupied);
    passes
}
