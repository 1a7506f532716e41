//! Messages that were sent and not yet received.

use core::ops::{Index, IndexMut};

use crate::payload::Words;

/// Index of no message and of no rank.
pub(super) const NONE: u32 = u32::MAX;

/// Bits of a message's index: a billion messages would take 90 GB.
pub(super) const MESSAGE_BITS: u32 = 30;

/// Message in the simulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimMessage {
    pub(super) words: Words,
    /// Time of arrival; before the message has left its card, its latency.
    pub(super) time: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Nodes of the sender and the receiver.
    pub(super) from_node: u32,
    pub(super) to_node: u32,
    /// Communicator of the message.
    pub(super) group: u32,
    /// Index of the next message to the same receiver, or of the next free slot.
    pub(super) next: u32,
    /// Number of words; of a parcel, only the first is in `words`.
    pub(super) length: u32,
    pub(super) stage: MessageStage,
    pub(super) kind: MessageKind,
}

/// Progress of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageStage {
    /// Waits for the card of the sender's node.
    Leaving,
    /// On its way to the receiver's card.
    Travelling,
    /// Can be received, from its time on.
    Arrived,
    /// Not a message: the departure of a rank, in the queue behind its last messages.
    Departure,
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Plain,
    /// The sender waits until the message is received.
    Synchronous,
    /// The first word is the number of a parcel.
    Parcel,
}

/// All messages, each in a slot of its own until it is received.
#[derive(Debug)]
pub(super) struct MessagePool {
    slots: Vec<SimMessage>,
    free: u32,
}

impl MessagePool {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
        }
    }

    pub(super) fn keep(&mut self, message: SimMessage) -> u32 {
        let id = self.free;
        if let Some(slot) = self.slots.get_mut(id as usize) {
            self.free = slot.next;
            *slot = message;
            return id;
        }
        self.slots.push(message);
        (self.slots.len() - 1) as u32
    }

    pub(super) fn discard(&mut self, id: u32) {
        self.slots[id as usize].next = self.free;
        self.free = id;
    }
}

impl Index<u32> for MessagePool {
    type Output = SimMessage;
    fn index(&self, id: u32) -> &SimMessage {
        &self.slots[id as usize]
    }
}

impl IndexMut<u32> for MessagePool {
    fn index_mut(&mut self, id: u32) -> &mut SimMessage {
        &mut self.slots[id as usize]
    }
}
