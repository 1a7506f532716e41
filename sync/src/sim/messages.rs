//! MessagePool that were sent and not yet received.

use core::ops::{Index, IndexMut};

use crate::Words;

/// No message, and no rank.
pub(super) const NONE: u32 = u32::MAX;

/// Bits of a message's number: a billion messages would take 90 GB.
pub(super) const MESSAGE_BITS: u32 = 30;

/// A message.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimMessage {
    pub(super) words: Words,
    /// When it arrives; until it has left, how long it will be under way.
    pub(super) time: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    /// The nodes of these.
    pub(super) from_node: u32,
    pub(super) to_node: u32,
    /// The communicator it was sent in.
    pub(super) group: u32,
    /// The next one to the same receiver, or the next free place.
    pub(super) next: u32,
    pub(super) length: u8,
    pub(super) stage: MessageStage,
    /// The sender waits until it is received.
    pub(super) synchronous: bool,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageStage {
    /// It waits for the card of its node.
    Leaving,
    /// It is on its way to the receiver's card.
    Travelling,
    /// It can be received, from its time on.
    Arrived,
}

/// All messages, each in a place of its own until it is received.
#[derive(Debug)]
pub(super) struct MessagePool {
    places: Vec<SimMessage>,
    free: u32,
}

impl MessagePool {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            free: NONE,
        }
    }

    pub(super) fn keep(&mut self, message: SimMessage) -> u32 {
        let id = self.free;
        if let Some(place) = self.places.get_mut(id as usize) {
            self.free = place.next;
            *place = message;
            return id;
        }
        self.places.push(message);
        (self.places.len() - 1) as u32
    }

    pub(super) fn discard(&mut self, id: u32) {
        self.places[id as usize].next = self.free;
        self.free = id;
    }
}

impl Index<u32> for MessagePool {
    type Output = SimMessage;
    fn index(&self, id: u32) -> &SimMessage {
        &self.places[id as usize]
    }
}

impl IndexMut<u32> for MessagePool {
    fn index_mut(&mut self, id: u32) -> &mut SimMessage {
        &mut self.places[id as usize]
    }
}
