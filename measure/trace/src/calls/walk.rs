//! Walk over the items of a trace.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::finding::{Call, CallFinding, MessageEnd, OperationMember};
use super::folded::FoldedCalls;
use super::names::ProgramNames;
use super::operations::{OpenOperations, OperationExit};
use super::stack::OpenCalls;
use crate::Event;
use crate::formats::Item;
use crate::pending_ends::{MessageChannel, PendingEnds};

/// Maximum number of ends of messages, and of members of operations, that wait for others.
const MOST_WAITING: usize = 1 << 21;

/// Finds the calls, messages and collective operations of a trace, whose items pass once.
///
/// The items of each location are in order; several locations may alternate in any way, but should be roughly
/// in the order of time: what waits for items of others is in memory.
#[derive(Debug)]
pub struct CallWalk {
    names: ProgramNames,
    locations: Vec<OpenCalls>,
    messages: PendingEnds<MessageChannel, MessageEnd>,
    /// Sends that are not complete, by process and request.
    started: FxHashMap<(u32, u64), MessageEnd>,
    most: usize,
    operations: OpenOperations,
    events: u64,
    calls: u64,
}

/// Findings that are incomplete after the last item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOpen {
    /// Number of events that were taken.
    pub events: u64,
    /// Number of sends without a receive.
    pub sends: usize,
    /// Number of receives without a send.
    pub receives: usize,
    /// Number of collective operations that some members have not left.
    pub operations: usize,
    /// True if messages or operations were not assembled to the end: the items of the locations are too far from the
    /// order of time.
    pub gave_up: bool,
}

impl Default for CallWalk {
    fn default() -> Self {
        Self::with_memory(MOST_WAITING)
    }
}

/// Point of an event.
#[derive(Clone, Copy)]
struct At {
    location: u32,
    time: Timestamp<Global>,
}

impl CallWalk {
    /// Creates a walk that keeps at most about this number of ends of messages, and of members of operations, that wait
    /// for others.
    pub fn with_memory(most: usize) -> Self {
        Self {
            names: ProgramNames::default(),
            locations: vec![],
            messages: PendingEnds::new(most),
            started: FxHashMap::default(),
            most,
            operations: OpenOperations::new(most),
            events: 0,
            calls: 0,
        }
    }

    /// Returns the names of what was defined so far.
    pub const fn names(&self) -> &ProgramNames {
        &self.names
    }

    /// Takes the next item, and passes on what it completes.
    pub fn add_item(&mut self, item: &Item<'_>, find: &mut impl FnMut(&CallFinding<'_>)) {
        let Item::Event {
            location,
            time,
            event,
        } = *item
        else {
            self.names.take(item);
            return;
        };
        if let Event::Metric { .. } = event {
            return;
        }
        self.events += 1;
        let place = location as usize;
        if self.locations.len() <= place {
            self.locations.resize_with(place + 1, OpenCalls::default);
        }
        let of = &mut self.locations[place];
        let index = of.events;
        find(&CallFinding::Event {
            location,
            time,
            index,
        });
        (of.events, of.last) = (of.events + 1, time);
        let at = At { location, time };
        match event {
            Event::Enter { region } => self.enter(at, region, find),
            Event::Leave { region } => self.leave(at, region, find),
            Event::Note(note) => {
                if let Some(FoldedCalls(calls)) = FoldedCalls::parse(note) {
                    of.fold_innermost(calls);
                }
            }
            Event::CollectiveBegin {
                communicator,
                request,
            } => {
                self.enter_operation(at, communicator, request);
                if request.is_none() && self.call_of_mpi(location).is_none() {
                    self.enter(at, ProgramNames::UNKNOWN, find);
                }
            }
            Event::CollectiveEnd { .. } => self.exit_operation(at, event, find),
            _ => self.message(at, event, find),
        }
    }

    /// Ends the walk: calls that were not left end at the last event of their location.
    pub fn finish(mut self, find: &mut impl FnMut(&CallFinding<'_>)) -> (ProgramNames, LeftOpen) {
        self.messages
            .finish(&mut |send, receive| find(&CallFinding::Message { send, receive }));
        for segment in self.locations.iter().filter_map(OpenCalls::unfinished) {
            find(&CallFinding::Segment(&segment));
        }
        let mut left = LeftOpen {
            events: self.events,
            operations: self.operations.incomplete(),
            gave_up: self.messages.has_given_up() || self.operations.has_given_up(),
            ..LeftOpen::default()
        };
        for (is_send, _) in self.messages.unmatched() {
            left.sends += usize::from(is_send);
            left.receives += usize::from(!is_send);
        }
        (self.names, left)
    }

    fn enter(&mut self, at: At, region: u32, find: &mut impl FnMut(&CallFinding<'_>)) {
        let call = Call {
            location: at.location,
            region,
            number: self.calls,
            enter: at.time,
            calls: 1,
        };
        self.calls += 1;
        if let Some(segment) = self.locations[at.location as usize].enter(call) {
            find(&CallFinding::Segment(&segment));
        }
    }

    fn leave(&mut self, at: At, region: u32, find: &mut impl FnMut(&CallFinding<'_>)) {
        let left = self.locations[at.location as usize].leave(region, at.time);
        let Some((call, ended)) = left else { return };
        if let Some(segment) = ended {
            find(&CallFinding::Segment(&segment));
        }
        find(&CallFinding::Left {
            call: &call,
            leave: at.time,
            names: &self.names,
        });
    }

    /// Returns the innermost call, if it is one of MPI.
    fn call_of_mpi(&self, location: u32) -> Option<Call> {
        let call = self.locations[location as usize].innermost().copied();
        call.filter(|call| self.names.kind(call.region).is_mpi())
    }

    fn enter_operation(&mut self, at: At, communicator: u32, request: Option<u64>) {
        let seat = (communicator, self.names.member(communicator, at.location));
        let members = self.names.members(communicator);
        self.operations
            .enter(seat, members, request, (at.location, at.time));
    }

    fn exit_operation(
        &mut self,
        at: At,
        event: Event<'_>,
        find: &mut impl FnMut(&CallFinding<'_>),
    ) {
        let Event::CollectiveEnd {
            communicator,
            kind,
            root,
            sent,
            received,
            request,
            ..
        } = event
        else {
            return;
        };
        let of = &mut self.locations[at.location as usize];
        let call = of.innermost().copied();
        let is_own = call.is_some_and(|call| call.region == ProgramNames::UNKNOWN);
        let own = ProgramNames::of_operation(kind);
        if is_own && request.is_none() {
            of.name_innermost(own);
        }
        let member = OperationMember {
            location: at.location,
            region: call.filter(|_| !is_own).map_or(own, |call| call.region),
            enter: at.time,
            waits_from: call.map_or(at.time, |call| call.enter),
            exit: at.time,
            sent,
            received,
        };
        let exit = OperationExit {
            kind,
            root,
            request,
            member,
        };
        let seat = (communicator, self.names.member(communicator, at.location));
        let members = self.names.members(communicator);
        self.operations.exit(seat, members, &exit, |operation| {
            find(&CallFinding::Operation(operation));
        });
        if is_own && request.is_none() {
            self.leave(at, own, find);
        }
    }

    fn message(&mut self, at: At, event: Event<'_>, find: &mut impl FnMut(&CallFinding<'_>)) {
        if self.messages.has_given_up() {
            self.started = FxHashMap::default();
            return;
        }
        let process = self.names.process(at.location);
        let channel = MessageChannel::of(event, process, |peer| self.names.process(peer));
        let mut end = self.message_end(at);
        match event {
            Event::Send { request, .. } => {
                end.is_started = request.is_some();
                if let Some(request) = request
                    && self.started.len() < self.most
                {
                    self.started.insert((process, request), end);
                }
            }
            Event::Receive {
                request: Some(request),
                ..
            } => end.began = self.messages.enter_of_post(process, request),
            Event::CompleteSend { request } => {
                let send = self.started.remove(&(process, request));
                if let Some((send, call)) = send.as_ref().zip(end.call.as_ref()) {
                    find(&CallFinding::SendCompleted { send, call });
                }
            }
            Event::CancelReceive { request } => drop(self.started.remove(&(process, request))),
            _ => {}
        }
        if channel.is_some() {
            let sends = matches!(event, Event::Send { .. });
            find(&CallFinding::MessageEnd { end: &end, sends });
        }
        let enter = end.began;
        let end = channel.map(|channel| (channel, end));
        let mut matched = |send: &_, receive: &_| find(&CallFinding::Message { send, receive });
        self.messages
            .take((process, event), enter, end, &mut matched);
    }

    /// Returns the current event of a location as an end of a message.
    fn message_end(&self, at: At) -> MessageEnd {
        let events = self.locations[at.location as usize].events;
        let call = self.call_of_mpi(at.location);
        MessageEnd {
            location: at.location,
            event: events.saturating_sub(1),
            time: at.time,
            call,
            began: call.map(|call| call.enter),
            is_started: false,
        }
    }
}
