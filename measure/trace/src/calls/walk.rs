//! Walk over the items of a trace.

use downbeat_clock_core::{Global, Timestamp};

use super::folded::FoldedCalls;
use super::messages::{Channel, MessageEnds};
use super::names::ProgramNames;
use super::observer::{Call, CallObserver, MessageEnd};
use super::operations::{OpenOperations, OperationExit};
use super::stack::OpenCalls;
use crate::Event;
use crate::formats::Item;

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
    messages: MessageEnds,
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
            messages: MessageEnds::new(most),
            operations: OpenOperations::new(most),
            events: 0,
            calls: 0,
        }
    }

    /// Returns the names of what was defined so far.
    pub const fn names(&self) -> &ProgramNames {
        &self.names
    }

    /// Takes the next item, and tells the observer of what it completes.
    pub fn take(&mut self, item: &Item<'_>, observer: &mut impl CallObserver) {
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
        observer.event(location, time, of.events);
        (of.events, of.last) = (of.events + 1, time);
        let at = At { location, time };
        match event {
            Event::Enter { region } => self.enter(at, region, observer),
            Event::Leave { region } => self.leave(at, region, observer),
            Event::Note(note) => {
                if let Some(FoldedCalls(calls)) = FoldedCalls::parse(note) {
                    of.fold_innermost(calls);
                }
            }
            _ => self.communicate(at, event, observer),
        }
    }

    /// Ends the walk: calls that were not left end at the last event of their location.
    pub fn finish(mut self, observer: &mut impl CallObserver) -> (ProgramNames, LeftOpen) {
        let mut matched = |send: &MessageEnd, receive: &MessageEnd| observer.message(send, receive);
        let [sends, receives] = self.messages.finish(&mut matched);
        for segment in self.locations.iter().filter_map(OpenCalls::unfinished) {
            observer.segment(&segment);
        }
        let left = LeftOpen {
            events: self.events,
            sends,
            receives,
            operations: self.operations.incomplete(),
            gave_up: self.messages.has_given_up() || self.operations.has_given_up(),
        };
        (self.names, left)
    }

    fn enter(&mut self, at: At, region: u32, observer: &mut impl CallObserver) {
        let call = Call {
            location: at.location,
            region,
            number: self.calls,
            enter: at.time,
            calls: 1,
        };
        self.calls += 1;
        let ended = self.locations[at.location as usize].enter(call);
        ended.iter().for_each(|segment| observer.segment(segment));
    }

    fn leave(&mut self, at: At, region: u32, observer: &mut impl CallObserver) {
        let left = self.locations[at.location as usize].leave(region, at.time);
        if let Some((call, ended)) = left {
            ended.iter().for_each(|segment| observer.segment(segment));
            observer.left(&self.names, &call, at.time);
        }
    }

    fn communicate(&mut self, at: At, event: Event<'_>, observer: &mut impl CallObserver) {
        match event {
            Event::CollectiveBegin {
                communicator,
                request,
            } => {
                self.enter_operation(at, communicator, request);
                if request.is_none() && self.call_of_mpi(at.location).is_none() {
                    self.enter(at, ProgramNames::UNKNOWN, observer);
                }
            }
            Event::CollectiveEnd { .. } => self.exit_operation(at, event, observer),
            _ => self.message(at, event, observer),
        }
    }

    /// Returns the innermost call, if it is one of MPI.
    fn call_of_mpi(&self, location: u32) -> Option<Call> {
        let call = self.locations[location as usize].innermost().copied();
        call.filter(|call| self.names.kind(call.region).is_mpi())
    }

    fn enter_operation(&mut self, at: At, communicator: u32, request: Option<u64>) {
        let seat = (communicator, self.names.member(communicator, at.location));
        let members = self.names.members(communicator);
        self.operations.enter(seat, members, request, at.time);
    }

    fn exit_operation(&mut self, at: At, event: Event<'_>, observer: &mut impl CallObserver) {
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
        let region = match call {
            Some(call) if !is_own => call.region,
            _ => own,
        };
        let completes = call.map_or(at.time, |call| call.enter);
        let exit = OperationExit {
            kind,
            root,
            sent,
            received,
            request,
            location: at.location,
            region,
            time: at.time,
            waits_from: request.map(|_| completes),
        };
        let seat = (communicator, self.names.member(communicator, at.location));
        let members = self.names.members(communicator);
        self.operations.exit(seat, members, &exit, |operation| {
            observer.operation(operation);
        });
        if is_own && request.is_none() {
            self.leave(at, own, observer);
        }
    }

    fn message(&mut self, at: At, event: Event<'_>, observer: &mut impl CallObserver) {
        if self.messages.has_given_up() {
            return;
        }
        let process = self.names.process(at.location);
        let end = self.message_end(at);
        match event {
            Event::Send {
                to,
                communicator,
                tag,
                request,
                ..
            } => {
                let channel = Channel {
                    from: process,
                    to: self.names.process(to),
                    communicator,
                    tag,
                };
                self.send(channel, request, end, observer);
            }
            Event::Receive {
                from,
                communicator,
                tag,
                request,
                ..
            } => {
                let channel = Channel {
                    from: self.names.process(from),
                    to: process,
                    communicator,
                    tag,
                };
                self.receive(channel, request, end, observer);
            }
            Event::PostReceive { request } => self.messages.post(process, request, end.began),
            Event::CompleteSend { request } => {
                let send = self.messages.complete_send(process, request);
                if let Some((send, call)) = send.zip(end.call) {
                    observer.send_completed(&send, &call);
                }
            }
            Event::CancelReceive { request } => {
                let mut matched =
                    |send: &MessageEnd, receive: &MessageEnd| observer.message(send, receive);
                self.messages.cancel(process, request, &mut matched);
            }
            _ => {}
        }
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

    fn send(
        &mut self,
        channel: Channel,
        request: Option<u64>,
        mut end: MessageEnd,
        observer: &mut impl CallObserver,
    ) {
        end.is_started = request.is_some();
        if let Some(request) = request {
            self.messages.start_send(channel.from, request, end);
        }
        observer.message_end(&end, true);
        let mut matched = |send: &MessageEnd, receive: &MessageEnd| observer.message(send, receive);
        self.messages.send(channel, end, &mut matched);
    }

    fn receive(
        &mut self,
        channel: Channel,
        request: Option<u64>,
        mut end: MessageEnd,
        observer: &mut impl CallObserver,
    ) {
        if let Some(request) = request {
            end.began = self.messages.enter_of_post(channel.to, request);
        }
        observer.message_end(&end, false);
        let mut matched = |send: &MessageEnd, receive: &MessageEnd| observer.message(send, receive);
        self.messages.receive(channel, request, end, &mut matched);
    }
}
