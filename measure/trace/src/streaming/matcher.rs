//! Matching of the events of a stream, as a builder does it for a whole trace.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::super::definitions::{ChannelEnd, Definitions};
use super::super::teams::{Participation, Progress, Seat, Track, Turns, sends};
use super::super::trace::Instance;
use super::super::{Action, CollectiveKind, EventId, LocationId, TraceError};
use super::census::{Census, Counts, StreamError, StreamedOperation, Which};
use super::posted::Posted;

/// Channel of messages: the sending process, and its end.
pub(super) type Channel = (u32, ChannelEnd);

/// Event of a stream, with its link to other events.
#[derive(Clone, Copy, Debug)]
pub struct Linked {
    /// Id of the event.
    pub id: EventId,
    pub(crate) link: Link,
}

/// Link of an event to others. Messages and operations are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Nothing,
    Send {
        message: u64,
    },
    Receive {
        message: u64,
    },
    Enter {
        of: StreamedOperation,
    },
    Exit {
        of: StreamedOperation,
        kind: CollectiveKind,
        root: u32,
        sends: bool,
        receives: bool,
    },
}

/// Operation that is not complete.
#[derive(Debug)]
pub(super) struct Ongoing {
    number: u64,
    pub(super) instance: Instance,
    pub(super) progress: Progress,
    /// Enters of all members.
    pub(super) enters: Vec<Option<EventId>>,
    /// Members that contributed no data to an operation that passes it on.
    silent: Vec<u32>,
    /// True if an exit waits for other members.
    is_awaited: bool,
    /// Number of events still to come, if known.
    missing: u32,
}

/// Messages under way and unfinished operations.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Number of events of every location so far.
    pub(super) events: Vec<u32>,
    sent: FxHashMap<Channel, VecDeque<(u64, EventId)>>,
    /// Receives whose sends have not come, or never come.
    pub(super) early: FxHashMap<Channel, VecDeque<EventId>>,
    pub(super) messages: u64,
    /// Receives that are posted, as long as there is no census.
    pub(super) posted: Posted<Channel>,
    /// Ends of signals without the other one, by process and id: for signals, their messages.
    signals: FxHashMap<(u32, u64), (EventId, Option<u64>)>,
    pub(super) ongoing: FxHashMap<Which, Ongoing>,
    pub(super) operations: u64,
    /// Operation that was completed last.
    pub(super) over: Option<Ongoing>,
    /// For all teams, by track.
    pub(super) counts: Vec<[Counts; 3]>,
}

/// Links the events of a stream, in the order in which a [`Survey`](super::Survey) took them.
#[derive(Debug)]
pub struct Matcher<'a> {
    census: &'a Census,
    links: Links,
}

impl<'a> Matcher<'a> {
    /// Returns the state before the first event.
    pub fn new(census: &'a Census) -> Self {
        Self {
            census,
            links: Links::default(),
        }
    }

    /// Links the next event.
    ///
    /// # Errors
    /// If the event is not in the census.
    #[inline]
    pub fn link(&mut self, location: LocationId, action: Action) -> Result<Linked, StreamError> {
        let id = self.links.next(location)?;
        let link = self
            .links
            .link(&self.census.definitions, Some(self.census), id, action)?;
        Ok(Linked { id, link })
    }
}

impl Links {
    /// Returns the id of the next event of a location.
    #[inline]
    pub(super) fn next(&mut self, location: LocationId) -> Result<EventId, TraceError> {
        if self.events.len() <= location.index() {
            self.events.resize(location.index() + 1, 0);
        }
        let event = &mut self.events[location.index()];
        let id = EventId {
            location,
            event: *event,
        };
        *event = event
            .checked_add(1)
            .ok_or(TraceError::TooManyEvents(location))?;
        Ok(id)
    }

    #[inline]
    pub(super) fn link(
        &mut self,
        definitions: &Definitions,
        census: Option<&Census>,
        event: EventId,
        action: Action,
    ) -> Result<Link, StreamError> {
        match action {
            Action::Internal => Ok(Link::Nothing),
            Action::Send {
                to,
                communicator,
                tag,
            } => {
                let end = definitions.channel(event, true, to, communicator, tag)?;
                self.send((definitions.process(event), end), event)
            }
            Action::Receive {
                from,
                communicator,
                tag,
            } => {
                let end = definitions.channel(event, false, from, communicator, tag)?;
                Ok(self.receive(definitions, census, end, event, None))
            }
            Action::CompleteReceive {
                from,
                communicator,
                tag,
                request,
            } => {
                let end = definitions.channel(event, false, from, communicator, tag)?;
                Ok(self.receive(definitions, census, end, event, Some(request)))
            }
            Action::PostReceive { request } => {
                if census.is_none() {
                    let process = definitions.process(event);
                    self.posted.post(process, request, event.location);
                }
                Ok(Link::Nothing)
            }
            Action::CancelReceive { request } => {
                if census.is_none() {
                    self.posted.cancel(definitions.process(event), request);
                }
                Ok(Link::Nothing)
            }
            Action::Signal { id } => self.signal((definitions.process(event), id), event),
            Action::Wait { id } => Ok(self.wait((definitions.process(event), id), event)),
            _ => match definitions.participation(event, action)? {
                Some(part) => self.collective(definitions, census, part, event),
                None => Ok(Link::Nothing),
            },
        }
    }

    fn send(&mut self, key: Channel, event: EventId) -> Result<Link, StreamError> {
        if let Some(early) = self.early.get(&key).and_then(VecDeque::front) {
            return Err(StreamError::Disorder(*early));
        }
        let message = self.messages;
        self.messages += 1;
        self.sent
            .entry(key)
            .or_default()
            .push_back((message, event));
        Ok(Link::Send { message })
    }

    fn receive(
        &mut self,
        definitions: &Definitions,
        census: Option<&Census>,
        end: ChannelEnd,
        event: EventId,
        request: Option<u64>,
    ) -> Link {
        let process = definitions.process(event);
        let channel = (end.peer, end.mirrored(process));
        let sent = self.sent.get_mut(&channel);
        let waiting = sent.as_ref().map_or(0, |sent| sent.len());
        let overtakes = match census {
            Some(census) => census.overtaking.get(&event).copied().unwrap_or(0),
            // The number of messages is the same, whichever it takes.
            None => {
                self.posted
                    .receive(process, (channel, waiting), event, request);
                0
            }
        };
        let message = sent.and_then(|sent| sent.remove(overtakes as usize));
        if waiting == 1 && message.is_some() {
            self.sent.remove(&channel);
        }
        match message {
            Some((message, _)) => Link::Receive { message },
            None => {
                self.early.entry(channel).or_default().push_back(event);
                Link::Nothing
            }
        }
    }

    fn signal(&mut self, key: (u32, u64), event: EventId) -> Result<Link, StreamError> {
        let message = self.messages;
        self.messages += 1;
        match self.signals.insert(key, (event, Some(message))) {
            Some((wait, None)) if wait.location != event.location => {
                Err(StreamError::Disorder(wait))
            }
            _ => Ok(Link::Send { message }),
        }
    }

    fn wait(&mut self, key: (u32, u64), event: EventId) -> Link {
        if let Some((_, Some(message))) = self.signals.get(&key).copied() {
            self.signals.remove(&key);
            return Link::Receive { message };
        }
        self.signals.insert(key, (event, None));
        Link::Nothing
    }

    /// Decides on posted receives after the last event. Returns an event that waits for a later one.
    pub(super) fn finish(&mut self) -> Option<EventId> {
        let late = self.posted.finish();
        // Messages that waited for other receives came after these.
        let early = self.posted.early.iter();
        let mut early = early.filter(|(channel, _)| !self.early.contains_key(channel));
        late.or_else(|| early.next().map(|(_, event)| *event))
    }

    /// Returns sends whose receives have not come.
    pub(super) fn sent(&self) -> impl Iterator<Item = EventId> + '_ {
        self.sent.values().flatten().map(|(_, event)| *event)
    }

    fn collective(
        &mut self,
        definitions: &Definitions,
        census: Option<&Census>,
        part: Participation,
        event: EventId,
    ) -> Result<Link, StreamError> {
        let Participation {
            track,
            seat,
            enters,
            statement: says,
            request,
        } = part;
        let members = definitions.members(seat.team).len() as u32;
        let (begun, turns) = self.turns(seat, track, members);
        if enters && turns.left > turns.entered {
            // A thread ends after the join, on its own.
            return Err(StreamError::Disorder(event));
        }
        let index = if enters {
            turns.enter(request)
        } else {
            let index = turns.exit(track, request);
            index.ok_or(TraceError::NotEntered(event))?
        };
        let which = (seat.team, track, index);
        let is_first = index >= begun;
        if is_first {
            self.begin(which, members, event, census);
        }
        let Some(ongoing) = self.ongoing.get_mut(&which) else {
            // The operation was taken for complete. Threads may begin or end in addition to those
            // that were waited for, but they make no new statement.
            return if says.is_none() {
                Ok(Link::Nothing)
            } else {
                Err(StreamError::Disorder(event))
            };
        };
        let roles = ongoing.take(part, event)?;
        ongoing.missing = ongoing.missing.saturating_sub(1);
        let is_last = census.is_some() && ongoing.missing == 0;
        let of = StreamedOperation {
            number: ongoing.number,
            members,
            rank: seat.rank,
            which: Some(which),
            is_first,
            is_last,
        };
        let (kind, root) = (ongoing.instance.kind, ongoing.instance.root);
        let is_said = ongoing.progress.said_by.is_some();
        let link = match roles {
            None => Link::Enter { of },
            Some((sends, receives)) if is_said => Link::Exit {
                of,
                kind,
                root,
                sends,
                receives,
            },
            // A thread begins without a fork, or before it.
            Some(_) if census.is_some_and(|census| census.is_forked(which)) => {
                return Err(StreamError::Disorder(event));
            }
            Some(_) => Link::Nothing,
        };
        if is_last || (census.is_none() && self.is_over(which)) {
            self.over = self.ongoing.remove(&which);
        }
        Ok(link)
    }

    /// Returns the number of operations of a track, and those of a member.
    fn turns(&mut self, seat: Seat, track: Track, members: u32) -> (u32, &mut Turns) {
        let team = seat.team as usize;
        if self.counts.len() <= team {
            self.counts.resize_with(team + 1, Default::default);
        }
        let counts = &mut self.counts[team][track as usize];
        if counts.members.is_empty() {
            counts.members.resize(members as usize, Turns::default());
        }
        (counts.begun, &mut counts.members[seat.rank as usize])
    }

    fn begin(&mut self, which: Which, members: u32, seen: EventId, census: Option<&Census>) {
        let instance = Instance {
            kind: CollectiveKind::Barrier,
            root: 0,
            team: which.0,
            first: 0,
            members,
        };
        let ongoing = Ongoing {
            number: self.operations,
            instance,
            progress: Progress::new(seen),
            enters: vec![None; members as usize],
            silent: vec![],
            is_awaited: false,
            missing: census.map_or(0, |census| census.events_of(which)),
        };
        self.operations += 1;
        self.counts[which.0 as usize][which.1 as usize].begun += 1;
        self.ongoing.insert(which, ongoing);
    }

    /// Returns true if all members have taken part, as far as can be known.
    fn is_over(&self, which: Which) -> bool {
        let Some(Ongoing {
            instance, progress, ..
        }) = self.ongoing.get(&which)
        else {
            return false;
        };
        let (_, track, index) = which;
        match track {
            Track::Collective => progress.is_complete(instance),
            Track::Fork | Track::Join => {
                let counts = || &self.counts[which.0 as usize][track as usize].members;
                progress.said_by.is_some()
                    && progress.enters + progress.exits >= instance.members
                    && counts()
                        .iter()
                        .all(|of| of.entered > index || of.left > index)
            }
        }
    }
}

impl Ongoing {
    /// Takes one more event. Returns, for an exit, two flags for its member: logical sender, and
    /// logical receiver.
    fn take(
        &mut self,
        part: Participation,
        event: EventId,
    ) -> Result<Option<(bool, bool)>, TraceError> {
        let Participation {
            track,
            seat: Seat { rank, .. },
            enters,
            statement: says,
            ..
        } = part;
        if let Some(left) = says {
            self.progress.agree(&mut self.instance, left, event)?;
        }
        let own = &mut self.enters[rank as usize];
        if enters {
            *own = Some(event);
            self.progress.enters += 1;
            return Ok(None);
        }
        if track == Track::Collective && own.is_none_or(|enter| enter.location != event.location) {
            // Another thread of the process has entered.
            return Err(TraceError::NotEntered(event));
        }
        self.progress.exits += 1;
        let roles = says.map_or((true, true), |left| left.role_of(rank));
        if !roles.0 && says.is_some_and(|left| sends(left.kind, left.root, rank)) {
            self.silent.push(rank);
        }
        self.is_awaited |= roles.1;
        Ok(Some(roles))
    }

    /// Returns the members that contributed no data although others waited for it.
    pub(super) fn withheld(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let silent = self.silent.iter().filter(|_| self.is_awaited);
        silent.map(|rank| (self.number, *rank))
    }
}
