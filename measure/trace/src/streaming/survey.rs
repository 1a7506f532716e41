//! First pass over a stream.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::definitions::{ChannelEnd, Definitions};
use super::super::teams::{Participation, Turns, sends};
use super::super::trace::{NONE, check_time};
use super::super::{
    Action, CollectiveKind, EventId, LeftOut, LocationId, TraceBuilder, TraceError,
};
use super::census::{Census, StreamError, StreamedOperation, TeamTurns, Withheld};
use super::messages::{ChannelCounts, Messages, SIGNAL};
use super::posted::Posted;
use super::{CausalOrder, Link, SurveyedEvent};

/// Checks all events of a stream once, as a [`TraceBuilder`] does, but without keeping them.
///
/// Locations and communicators are added to a builder, which is passed to the methods. The events of
/// each location are added in their order; locations may alternate in any order. The caller keeps
/// the returned events of each location for the [`CausalOrder`].
#[derive(Debug, Default)]
pub struct Survey {
    locations: Vec<SurveyedLocation>,
    /// Number of events.
    events: u64,
    channels: FxHashMap<Channel, u32>,
    messages: Messages,
    posted: Posted<u32>,
    /// Ends of signals without the other one, by process and id, each with the number of the signal
    /// and true for the signal itself.
    signals: FxHashMap<(u32, u64), (EventId, u64, bool)>,
    turns: Vec<TeamTurns>,
    withheld: Withheld,
}

#[derive(Clone, Copy, Debug, Default)]
struct SurveyedLocation {
    events: u32,
    last: Option<Timestamp<Global>>,
}

/// Channel of messages: the sending process, and its end.
type Channel = (u32, ChannelEnd);

impl Survey {
    /// Takes the next event of a location; `builder` has the locations and communicators that it
    /// refers to.
    ///
    /// # Errors
    /// As [`TraceBuilder::push`].
    #[inline]
    pub fn push(
        &mut self,
        builder: &TraceBuilder,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<SurveyedEvent, TraceError> {
        let definitions = &builder.definitions;
        if self.locations.len() <= location.index() {
            if location.index() >= definitions.places.len() {
                return Err(TraceError::UnknownLocation(location));
            }
            self.locations
                .resize(location.index() + 1, SurveyedLocation::default());
        }
        let of = &mut self.locations[location.index()];
        let event = EventId {
            location,
            event: of.events,
        };
        let next = of.events.checked_add(1);
        of.events = next.ok_or(TraceError::TooManyEvents(location))?;
        check_time(of.last, time, event)?;
        of.last = Some(time);
        let position = self.events;
        self.events += 1;
        let link = match action {
            Action::Internal => Link::Nothing,
            _ => self.link(definitions, event, action)?,
        };
        Ok(SurveyedEvent {
            id: event,
            time,
            position,
            link,
        })
    }

    fn link(
        &mut self,
        definitions: &Definitions,
        event: EventId,
        action: Action,
    ) -> Result<Link, TraceError> {
        let process = definitions.process(event);
        let (from, communicator, tag, request) = match action {
            Action::Send {
                to,
                communicator,
                tag,
            } => {
                let end = definitions.channel(event, true, to, communicator, tag)?;
                let (_, message) = self.message((process, end), event, true)?;
                return Ok(Link::Send { message });
            }
            Action::Receive {
                from,
                communicator,
                tag,
            } => (from, communicator, tag, None),
            Action::CompleteReceive {
                from,
                communicator,
                tag,
                request,
            } => (from, communicator, tag, Some(request)),
            Action::PostReceive { request } => {
                self.posted.post(process, request, event.location);
                return Ok(Link::Nothing);
            }
            Action::CancelReceive { request } => {
                self.posted.cancel(process, request);
                return Ok(Link::Nothing);
            }
            Action::Signal { id } => {
                let message = self.signal((process, id), event, true);
                return Ok(Link::Send { message });
            }
            Action::Wait { id } => {
                let message = self.signal((process, id), event, false);
                return Ok(Link::Receive { message });
            }
            _ => {
                let part = definitions.participation(event, action)?;
                return part.map_or(Ok(Link::Nothing), |part| {
                    self.collective(definitions, part, event)
                });
            }
        };
        let end = definitions.channel(event, false, from, communicator, tag)?;
        let channel = (end.peer, end.mirrored(process));
        let (channel, message) = self.message(channel, event, false)?;
        let found = (channel, message as u32);
        self.posted.receive(process, found, event, request);
        Ok(Link::Receive { message })
    }

    /// Returns the number of the channel, and that of its next message.
    fn message(
        &mut self,
        channel: Channel,
        event: EventId,
        sends: bool,
    ) -> Result<(u32, u64), TraceError> {
        let next = self.channels.len() as u32;
        let number = *self.channels.entry(channel).or_insert(next);
        if number == next {
            self.messages.channels.push(ChannelCounts {
                sender: channel.0,
                sends: 0,
                receives: 0,
            });
        }
        let index = self.messages.next(number, sends);
        let index = index.ok_or(TraceError::TooManyEvents(event.location))?;
        Ok((number, u64::from(number) << 32 | u64::from(index)))
    }

    /// Returns the number of a signal, given one of its ends.
    fn signal(&mut self, key: (u32, u64), event: EventId, signals: bool) -> u64 {
        match self.signals.remove(&key) {
            Some((_, number, true)) if !signals => return number,
            Some((wait, number, false)) if signals && wait.location != event.location => {
                return number;
            }
            replaced => {
                let replaced = replaced.map(|(_, number, _)| number);
                self.messages.incomplete.extend(replaced);
            }
        }
        let number = SIGNAL | self.messages.signals;
        self.messages.signals += 1;
        self.signals.insert(key, (event, number, signals));
        number
    }

    fn collective(
        &mut self,
        definitions: &Definitions,
        part: Participation,
        event: EventId,
    ) -> Result<Link, TraceError> {
        let Participation {
            track,
            seat,
            enters,
            statement,
            request,
        } = part;
        let team = seat.team as usize;
        let members = definitions.members(seat.team).len();
        if self.turns.len() <= team {
            self.turns.resize_with(team + 1, Default::default);
        }
        let turns = &mut self.turns[team][track as usize];
        if turns.is_empty() {
            turns.resize(members, Turns::default());
        }
        let turns = &mut turns[seat.rank as usize];
        let index = if enters {
            turns.enter(request)
        } else {
            let index = turns.exit(track, request);
            index.ok_or(TraceError::NotEntered(event))?
        };
        let of = StreamedOperation {
            which: (seat.team, track, index),
            members: members as u32,
            rank: seat.rank,
            is_first: false,
            is_last: false,
        };
        if enters {
            return Ok(Link::Enter { of });
        }
        // A thread that begins states nothing: it waits for the fork.
        let (kind, root, (is_sender, receives)) = statement
            .map_or((CollectiveKind::Fork, NONE, (true, true)), |says| {
                (says.kind, says.root, says.role_of(seat.rank))
            });
        if !is_sender && sends(kind, root, seat.rank) {
            self.withheld.add(of.which, of.rank);
        }
        Ok(Link::Exit {
            of,
            kind,
            root,
            sends: is_sender,
            receives,
        })
    }

    /// Returns the second pass over the same events; `builder` has the locations and communicators
    /// that they referred to.
    ///
    /// # Errors
    /// If a receive completed before it was posted.
    pub fn finish(self, builder: TraceBuilder) -> Result<CausalOrder, StreamError> {
        let Self {
            events,
            mut messages,
            posted,
            signals,
            turns,
            withheld,
            ..
        } = self;
        let (overtaking, late) = posted.finish();
        if let Some(event) = late {
            return Err(StreamError::LatePost(event));
        }
        messages.overtaking = overtaking;
        let lonely = signals.values().map(|(_, number, _)| *number);
        messages.incomplete.extend(lonely);
        let definitions = builder.definitions;
        let of_track = |turns: &Vec<Turns>| {
            let last = turns.iter().map(|of| of.entered.max(of.left)).max();
            u64::from(last.unwrap_or(0))
        };
        let collectives = turns.iter().flatten().map(of_track).sum();
        let [sends, receives] = messages.unmatched();
        let census = Census {
            received: vec![0; definitions.places.len()],
            under_way: 0,
            definitions,
            turns,
            withheld,
            events,
            messages: 0,
            collectives,
            left_out: LeftOut {
                sends,
                receives,
                collectives: 0,
            },
        };
        Ok(CausalOrder::new(census, messages))
    }
}
