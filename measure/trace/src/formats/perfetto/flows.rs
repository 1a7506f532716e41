//! Flows: each is one message, from its send to its receive, or one signal with its wait.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::formats::Item;
use crate::pending_ends::{MessageChannel, PendingEnds};
use crate::{Event, EventId, LocationId};

/// Messages between two processes, or signals with one id inside a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FlowChannel {
    Messages(MessageChannel),
    /// Process and id.
    Signals(u32, u64),
}

/// End of a flow.
#[derive(Clone, Copy, Debug)]
struct FlowEnd {
    channel: FlowChannel,
    sends: bool,
    /// Number of ends of this kind in the channel before it.
    index: u32,
    event: EventId,
}

/// Finds ends of flows while items pass.
#[derive(Debug, Default)]
struct FlowEnds {
    /// Location whose messages a location sends and receives: usually itself.
    speaks_for: Vec<u32>,
    /// Number of events of each location.
    events: Vec<u32>,
    /// Numbers of receives and of sends of each channel.
    counts: FxHashMap<FlowChannel, [u32; 2]>,
}

/// First pass over a trace. Only ends without the other one are in memory.
#[derive(Debug, Default)]
pub(super) struct FlowSurvey {
    ends: FlowEnds,
    pending: PendingEnds<FlowChannel, FlowEnd>,
    overtaking: Overtaking,
}

/// For receives that did not complete in the order of their posts, the indices of their
/// messages in their channels.
type Overtaking = FxHashMap<EventId, u32>;

/// Numbers flows in the order of their first ends, in a second pass.
#[derive(Debug)]
pub(super) struct Flows {
    ends: FlowEnds,
    overtaking: Overtaking,
    unmatched: FxHashSet<EventId>,
    /// Numbers of flows by channel and index, between their ends.
    open: FxHashMap<(FlowChannel, u32), u64>,
    next: u64,
}

impl FlowEnds {
    /// Returns the end of a flow that the next item is.
    #[inline]
    fn next_end(&mut self, item: &Item<'_>) -> Option<FlowEnd> {
        let (location, event) = match *item {
            Item::Location { .. } => {
                self.speaks_for.push(self.speaks_for.len() as u32);
                return None;
            }
            Item::Thread { rank, .. } => {
                self.speaks_for.push(self.process_of(rank));
                return None;
            }
            Item::Event {
                event: Event::Metric { .. },
                ..
            } => return None,
            Item::Event {
                location, event, ..
            } => (location, event),
            _ => return None,
        };
        if self.events.len() <= location as usize {
            self.events.resize(location as usize + 1, 0);
        }
        let count = &mut self.events[location as usize];
        let id = EventId {
            location: LocationId(location),
            event: *count,
        };
        *count = count.wrapping_add(1);
        let process = self.process_of(location);
        let channel = match event {
            Event::Signal { id } | Event::Wait { id } => FlowChannel::Signals(process, id),
            _ => {
                let process_of = |peer| self.process_of(peer);
                FlowChannel::Messages(MessageChannel::of(event, process, process_of)?)
            }
        };
        let sends = matches!(event, Event::Send { .. } | Event::Signal { .. });
        let index = self.count(channel, sends);
        Some(FlowEnd {
            channel,
            sends,
            index,
            event: id,
        })
    }

    fn process_of(&self, location: u32) -> u32 {
        let process = self.speaks_for.get(location as usize);
        process.copied().unwrap_or(location)
    }

    /// Counts an end of a channel. Returns the number of those before it.
    fn count(&mut self, channel: FlowChannel, sends: bool) -> u32 {
        let counts = self.counts.entry(channel).or_default();
        let index = counts[usize::from(sends)];
        counts[usize::from(sends)] += 1;
        if let FlowChannel::Signals(..) = channel
            && counts[0] == counts[1]
        {
            // Ids of signals may be many.
            self.counts.remove(&channel);
        }
        index
    }
}

impl FlowSurvey {
    /// Takes the next item.
    #[inline]
    pub(super) fn take(&mut self, item: &Item<'_>) {
        let end = self.ends.next_end(item);
        let Item::Event {
            location, event, ..
        } = *item
        else {
            return;
        };
        let process = self.ends.process_of(location);
        let end = end.map(|end| (end.channel, end));
        let mut matched = noting_order(&mut self.overtaking);
        self.pending.take((process, event), None, end, &mut matched);
    }

    /// Returns the state before the first item of the second pass.
    pub(super) fn finish(mut self) -> Flows {
        self.pending.finish(&mut noting_order(&mut self.overtaking));
        let unmatched = self.pending.unmatched().map(|(_, end)| end.event);
        Flows {
            ends: FlowEnds::default(),
            unmatched: unmatched.collect(),
            overtaking: self.overtaking,
            open: FxHashMap::default(),
            next: 0,
        }
    }
}

/// Returns what notes messages whose receives have another index than their sends.
fn noting_order(overtaking: &mut Overtaking) -> impl FnMut(&FlowEnd, &FlowEnd) {
    |send, receive| {
        if send.index != receive.index {
            overtaking.insert(receive.event, send.index);
        }
    }
}

impl Flows {
    /// Returns the number of ends that lack the other one.
    pub(super) fn unmatched(&self) -> u64 {
        self.unmatched.len() as u64
    }

    /// Returns the number of the flow, if the next item is an end of one that has both.
    #[inline]
    pub(super) fn next_flow(&mut self, item: &Item<'_>) -> Option<u64> {
        let end = self.ends.next_end(item)?;
        if self.unmatched.contains(&end.event) {
            self.next += 1;
            return None;
        }
        let index = match end.sends {
            true => None,
            false => self.overtaking.get(&end.event).copied(),
        };
        match self.open.entry((end.channel, index.unwrap_or(end.index))) {
            Entry::Occupied(open) => Some(open.remove()),
            Entry::Vacant(place) => {
                let flow = *place.insert(self.next);
                self.next += 1;
                Some(flow)
            }
        }
    }
}
