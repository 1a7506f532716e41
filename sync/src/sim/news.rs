//! News of one part of a simulated cluster for the others.

use std::sync::Arc;

use super::messages::{MessageKind, MessageStage, NONE, SimMessage};
use crate::payload::Words;
use crate::split::SplitRequest;

/// News for another part.
#[derive(Clone, Debug)]
pub(super) enum Crossing {
    Message(Box<CrossingMessage>),
    /// A synchronous message of this rank was received.
    Delivered {
        rank: u32,
        at: u64,
    },
    Departure(Departure),
    /// All ranks of a part have arrived at a split.
    Split(Arc<SplitArrivals>),
}

/// Message on its way to another part; its time is that of the arrival at the card of the
/// receiver's node, or at the receiver if there are no cards.
#[derive(Clone, Debug)]
pub(super) struct CrossingMessage {
    pub(super) message: SimMessage,
    /// Number among the messages of its sender.
    pub(super) number: u32,
    /// Bytes of a long message.
    pub(super) parcel: Option<Vec<u8>>,
}

/// End of a rank's communication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// Rank in the whole cluster.
    pub(super) member: u32,
    /// Communicator that it has left, and its rank there; `None` if it has returned.
    pub(super) left: Option<(u32, u32)>,
    pub(super) at: u64,
}

impl Departure {
    /// Packs the departure into an entry of the queue of messages.
    pub(super) fn as_message(self, node: u32) -> SimMessage {
        let mut words = Words::default();
        if let Some((group, rank)) = self.left {
            words[..3].copy_from_slice(&[1, group.into(), rank.into()]);
        }
        SimMessage {
            words,
            time: self.at,
            from: self.member,
            to: self.member,
            from_node: node,
            to_node: node,
            group: 0,
            next: NONE,
            length: 0,
            stage: MessageStage::Departure,
            kind: MessageKind::Plain,
        }
    }

    pub(super) fn of_message(message: &SimMessage) -> Self {
        let [left, group, rank, ..] = message.words;
        Self {
            member: message.from,
            left: (left != 0).then_some((group as u32, rank as u32)),
            at: message.time,
        }
    }
}

/// Requests of the ranks of a part in a split of one communicator.
#[derive(Debug)]
pub(super) struct SplitArrivals {
    pub(super) group: u32,
    pub(super) requests: Vec<SplitRequest>,
    /// Numbers that the part offers for the new communicators, by their colors.
    pub(super) numbers: Vec<(u32, u32)>,
    /// Time at which the last of them arrived.
    pub(super) latest: u64,
}

impl Crossing {
    /// Returns the time before which this has no effect.
    pub(super) fn time(&self) -> u64 {
        match self {
            Self::Message(crossing) => crossing.message.time,
            Self::Delivered { at, .. } | Self::Departure(Departure { at, .. }) => *at,
            Self::Split(arrivals) => arrivals.latest,
        }
    }
}
