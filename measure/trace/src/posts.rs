//! Receives of a process that are posted before they complete. A post takes the place of its
//! completion in the order of messages.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

/// Place of an event in the order of the messages of a process: its time, and its index
/// at its location.
pub(super) type Turn = (Timestamp<Global>, u32);

/// Posted receives of a process.
#[derive(Debug, Default)]
pub(super) struct Posts {
    /// Turns of those that are not complete, and the indices of their locations.
    open: FxHashMap<u64, (Turn, u32)>,
    /// Completions without a post so far, which another location may have: their requests, and the
    /// messages, each given by the index of its location and its own there.
    early: Vec<(u64, [u32; 2])>,
}

impl Posts {
    pub(super) fn post(&mut self, request: u64, turn: Turn, location: u32) {
        self.open.insert(request, (turn, location));
    }

    pub(super) fn cancel(&mut self, request: u64) {
        self.open.remove(&request);
    }

    /// Returns the turn of the message that is complete now, if its post is known.
    pub(super) fn complete(&mut self, request: u64, message: [u32; 2]) -> Option<Turn> {
        let post = self.open.remove(&request);
        if post.is_none() {
            self.early.push((request, message));
        }
        post.map(|(turn, _)| turn)
    }

    /// Returns the turns of messages whose posts came after their completions: posted by other
    /// locations, whose events were added later.
    pub(super) fn late(mut self) -> impl Iterator<Item = ([u32; 2], Turn)> {
        let early = self.early.into_iter();
        early.filter_map(move |(request, message)| {
            let (turn, location) = *self.open.get(&request)?;
            (location != message[0]).then(|| {
                self.open.remove(&request);
                (message, turn)
            })
        })
    }
}
