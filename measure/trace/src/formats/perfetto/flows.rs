//! Matching of sends and receives, which belong to one message, and of signals and waits.

use rustc_hash::{FxHashMap, FxHashSet};

use super::posted::{Overtaking, Posted};
use crate::formats::Item;
use crate::{Event, EventId, LocationId};

/// Messages between two processes, or signals with one id inside a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FlowChannel {
    Messages {
        from: u32,
        to: u32,
        communicator: u32,
        tag: i32,
    },
    Signals {
        process: u32,
        id: u64,
    },
}

/// Numbers of sends and of receives of a channel so far.
#[derive(Clone, Copy, Debug, Default)]
struct FlowEnds {
    sent: u32,
    received: u32,
}

/// Numbers messages in the order of their first ends in the trace. Only unmatched ends are held in
/// memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    /// Location whose messages a location sends and receives: usually itself.
    speaks_for: Vec<u32>,
    /// Number of events of each location.
    events: Vec<u32>,
    channels: FxHashMap<FlowChannel, FlowEnds>,
    /// Messages without their other ends, with their only ends.
    waiting: FxHashMap<(FlowChannel, u32), (u64, EventId)>,
    next: u64,
    posted: Posted<FlowChannel>,
    known: Option<KnownFlows>,
}

/// Properties of messages that are known after the last event only.
#[derive(Clone, Debug, Default)]
struct KnownFlows {
    unmatched: FxHashSet<EventId>,
    overtaking: Overtaking,
}

impl Flows {
    /// Returns the state before the first event, for a second pass over the trace; `self` has seen
    /// it.
    pub(super) fn again(&self) -> Self {
        let (overtaking, _) = self.posted.clone().finish();
        Self {
            known: Some(KnownFlows {
                unmatched: self.waiting.values().map(|(_, event)| *event).collect(),
                overtaking,
            }),
            ..Self::default()
        }
    }

    /// Returns the number of messages that lack an end, as far as known.
    pub(super) fn unmatched(&self) -> u64 {
        let known = self.known.as_ref();
        known.map_or(0, |known| known.unmatched.len() as u64)
    }

    /// Returns the number of the message, if the item is an end of one that is not known to lack the
    /// other end.
    #[inline]
    pub(super) fn take(&mut self, item: &Item<'_>) -> Option<u64> {
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
        let signals = |id| FlowChannel::Signals { process, id };
        let (channel, sends, request) = match event {
            Event::Send {
                to,
                communicator,
                tag,
                ..
            } => (self.messages(process, to, communicator, tag), true, None),
            Event::Receive {
                from,
                communicator,
                tag,
                request,
                ..
            } => {
                let channel = self.messages(from, process, communicator, tag);
                (channel, false, request)
            }
            Event::Signal { id: of } => (signals(of), true, None),
            Event::Wait { id: of } => (signals(of), false, None),
            Event::PostReceive { request } => {
                if self.known.is_none() {
                    self.posted.post(process, request, id.location);
                }
                return None;
            }
            Event::CancelReceive { request } => {
                self.posted.cancel(process, request);
                return None;
            }
            _ => return None,
        };
        let flow = self.end(channel, sends, id, request);
        let known = self.known.as_ref();
        (!known.is_some_and(|known| known.unmatched.contains(&id))).then_some(flow)
    }

    fn messages(&self, from: u32, to: u32, communicator: u32, tag: i32) -> FlowChannel {
        FlowChannel::Messages {
            from: self.process_of(from),
            to: self.process_of(to),
            communicator,
            tag,
        }
    }

    fn process_of(&self, location: u32) -> u32 {
        self.speaks_for
            .get(location as usize)
            .copied()
            .unwrap_or(location)
    }

    fn end(
        &mut self,
        channel: FlowChannel,
        sends: bool,
        event: EventId,
        request: Option<u64>,
    ) -> u64 {
        let ends = self.channels.entry(channel).or_default();
        let count = if sends {
            &mut ends.sent
        } else {
            &mut ends.received
        };
        let mut index = *count;
        *count += 1;
        match (channel, &self.known) {
            (FlowChannel::Signals { .. }, _) => {
                if ends.sent == ends.received {
                    self.channels.remove(&channel);
                }
            }
            (FlowChannel::Messages { .. }, _) if sends => {}
            (FlowChannel::Messages { to, .. }, None) => {
                self.posted.receive(to, (channel, index), event, request);
            }
            (FlowChannel::Messages { .. }, Some(known)) => {
                index = known.overtaking.get(&event).copied().unwrap_or(index);
            }
        }
        match self.waiting.remove(&(channel, index)) {
            Some((flow, _)) => flow,
            None => {
                self.waiting.insert((channel, index), (self.next, event));
                self.next += 1;
                self.next - 1
            }
        }
    }
}
