//! Network cards, and the order in which messages pass them.
//!
//! Messages must occupy a card in the order of time, but ranks are simulated one after the other,
//! each until it waits. So a message that passes a card becomes an event, and the earliest event is
//! processed only when all ranks wait. No rank can then send an earlier message: it waits, directly
//! or through other ranks, for one of the events, and continues after it. That holds for a message,
//! for the end of a synchronous send, for the last rank of a split and for a rank that left: each
//! of them depends on a rank that continues, and has the time of that rank or a later one. So
//! events are processed in the order of time.

use super::messages::{MESSAGE_BITS, MessagePool, MessageStage};
use super::network::Card;
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
    card: Card,
    queue: EventQueue,
    cards: Vec<CardOccupancy>,
}

/// Times until which a card is occupied, in each direction.
#[derive(Clone, Copy, Debug, Default)]
struct CardOccupancy {
    leaving: u64,
    arriving: u64,
}

impl CardTraffic {
    pub(super) fn new(card: Card, nodes: u32) -> Self {
        Self {
            card,
            queue: EventQueue::default(),
            cards: vec![CardOccupancy::default(); nodes as usize],
        }
    }

    /// Adds a message that leaves at this time, as the `number`th of its sender.
    pub(super) fn push(&mut self, at: u64, from: u32, number: u32, id: u32) {
        let tie = u64::from(from) << (64 - RANK_BITS) | u64::from(number % NUMBERS) << MESSAGE_BITS;
        self.queue.push(event(at, tie | u64::from(id)));
    }

    /// Processes events that are earlier than `limit` until a message has arrived, and returns
    /// that.
    ///
    /// `bytes` returns the number of bytes of a message of this many words.
    pub(super) fn next_arrival(
        &mut self,
        limit: u64,
        messages: &mut MessagePool,
        bytes: impl Fn(u32) -> u32,
    ) -> Option<u32> {
        loop {
            let event = self.queue.first()?;
            let (at, sender_and_id) = ((event >> 64) as u64, event as u64);
            let id = sender_and_id as u32 & ((1 << MESSAGE_BITS) - 1);
            if at >= limit {
                return None;
            }
            let message = &mut messages[id];
            let occupied = self.card.occupied(bytes(message.length));
            if message.stage == MessageStage::Leaving {
                let left = occupy(
                    &mut self.cards[message.from_node as usize].leaving,
                    at,
                    occupied,
                );
                // The field was the latency.
                let arrives = left.saturating_add(message.time);
                message.stage = MessageStage::Travelling;
                self.queue
                    .replace_first(self::event(arrives, sender_and_id));
            } else {
                self.queue.pop();
                message.time = occupy(
                    &mut self.cards[message.to_node as usize].arriving,
                    at,
                    occupied,
                );
                message.stage = MessageStage::Arrived;
                return Some(id);
            }
        }
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
