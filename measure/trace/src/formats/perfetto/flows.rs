//! Matching of sends and receives, which belong to one message.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::formats::{Item, What};

/// Sender, receiver, communicator and tag.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FlowChannel {
    from: u32,
    to: u32,
    communicator: u32,
    tag: i32,
}

/// Ends of messages of a channel that wait for their other ends, in order: only sends, or only
/// receives.
#[derive(Debug)]
struct WaitingFlows {
    is_send: bool,
    first: u64,
    others: VecDeque<u64>,
}

/// Numbers messages in the order of their first ends in the trace. Only unmatched ends are held in
/// memory.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Location whose messages a location sends and receives: usually itself.
    speaks_for: Vec<u32>,
    waiting: FxHashMap<FlowChannel, WaitingFlows>,
    next: u64,
}

impl Flows {
    /// Returns the number of the message, if the item is an end of one.
    #[inline]
    pub(super) fn take(&mut self, item: &Item<'_>) -> Option<u64> {
        match *item {
            Item::Location { .. } => self.speaks_for.push(self.speaks_for.len() as u32),
            Item::Thread { rank, .. } => self.speaks_for.push(self.process_of(rank)),
            Item::Event {
                location,
                what:
                    What::Send {
                        to,
                        communicator,
                        tag,
                    },
                ..
            } => {
                let channel = FlowChannel {
                    from: self.process_of(location),
                    to: self.process_of(to),
                    communicator,
                    tag,
                };
                return Some(self.end(channel, true));
            }
            Item::Event {
                location,
                what:
                    What::Receive {
                        from,
                        communicator,
                        tag,
                    },
                ..
            } => {
                let channel = FlowChannel {
                    from: self.process_of(from),
                    to: self.process_of(location),
                    communicator,
                    tag,
                };
                return Some(self.end(channel, false));
            }
            _ => {}
        }
        None
    }

    fn process_of(&self, location: u32) -> u32 {
        self.speaks_for
            .get(location as usize)
            .copied()
            .unwrap_or(location)
    }

    fn end(&mut self, channel: FlowChannel, is_send: bool) -> u64 {
        use std::collections::hash_map::Entry;
        match self.waiting.entry(channel) {
            Entry::Occupied(mut waiting) if waiting.get().is_send != is_send => {
                let found = waiting.get().first;
                match waiting.get_mut().others.pop_front() {
                    Some(next) => waiting.get_mut().first = next,
                    None => drop(waiting.remove()),
                }
                return found;
            }
            Entry::Occupied(mut waiting) => waiting.get_mut().others.push_back(self.next),
            Entry::Vacant(none) => {
                none.insert(WaitingFlows {
                    is_send,
                    first: self.next,
                    others: VecDeque::new(),
                });
            }
        }
        self.next += 1;
        self.next - 1
    }

    /// Returns the messages that still lack an end.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = u64> {
        self.waiting
            .values()
            .flat_map(|waiting| waiting.others.iter().copied().chain([waiting.first]))
    }
}
