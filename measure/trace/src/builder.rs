//! From the events of all locations to a trace whose messages and collective operations are matched.

use downbeat_clock_core::{Global, Timestamp};

use super::channels::{Channels, Key, MarkId, open};
use super::distributed::Keeping;
use super::teams::{Left, Matched, Part, Teams, Track};
use super::trace::{Location, Mark, Role};
use super::{
    Action, CollectiveKind, CommunicatorId, EventId, LeftOut, LocationId, Place, Trace, TraceError,
};

/// How strictly events are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Whether messages without another end, and collective operations without some members, are counted as
    /// [`LeftOut`] rather than an error.
    pub lenient: bool,
    /// Whether `MPI_Alltoallv` is taken as nothing that members wait for. A trace does not say who gave data to whom, so
    /// it may be corrected for messages that there never were.
    pub skip_alltoallv: bool,
}

/// Makes a [`Trace`] of events, which are added in the order of each location, and in any order of locations. After an
/// error it is of no use any more.
///
/// ```
/// use downbeat_clock_core::Timestamp;
/// use downbeat_trace::{Action, Matching, Place, TraceBuilder};
///
/// let mut builder = TraceBuilder::new(Matching::default());
/// let sender = builder.add_location(Place { node: 0, process: 0 })?;
/// let receiver = builder.add_location(Place { node: 1, process: 1 })?;
/// let world = builder.add_communicator(&[sender, receiver])?;
/// builder.push(sender, Timestamp::from_nanos(5_000), Action::Send { to: receiver, communicator: world, tag: 7 })?;
/// builder.push(receiver, Timestamp::from_nanos(3_000), Action::Receive { from: sender, communicator: world, tag: 7 })?;
///
/// let trace = builder.finish()?;
/// let message = trace.messages().next().expect("there is one");
/// assert!(trace.time(message.receive) < trace.time(message.send));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TraceBuilder {
    pub(super) matching: Matching,
    pub(super) locations: Vec<Location>,
    /// Whose messages a location sends and receives: mostly its own.
    speaks_for: Vec<u32>,
    pub(super) channels: Channels,
    pub(super) teams: Teams,
    /// Whose events are kept, if not all are.
    pub(super) keeping: Option<Keeping>,
}

/// Why matching fails, and in which order: messages by their events before collective operations.
pub(super) type FaultKey = [u32; 4];

impl TraceBuilder {
    /// Nothing yet.
    pub fn new(matching: Matching) -> Self {
        Self {
            matching,
            locations: vec![],
            speaks_for: vec![],
            channels: Channels::default(),
            teams: Teams::default(),
            keeping: None,
        }
    }

    /// Adds a location: a process with one thread, or a thread that messages are addressed to.
    ///
    /// # Errors
    /// When there are too many.
    pub fn add_location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        let id = self.locations.len() as u32;
        if id == Mark::MOST_LOCATIONS {
            return Err(TraceError::TooManyLocations);
        }
        self.locations.push(Location {
            place,
            times: vec![],
            marks: vec![],
        });
        self.speaks_for.push(id);
        Ok(LocationId(id))
    }

    /// Adds another thread of the process whose location is `rank`: what it sends, receives and does with others counts
    /// as done by that one, wherever it is no member itself.
    ///
    /// # Errors
    /// When there are too many, or no such rank.
    pub fn add_thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        let place = self
            .locations
            .get(rank.index())
            .ok_or(TraceError::UnknownLocation(rank))?
            .place;
        let speaks_for = self.speaks_for[rank.index()];
        let id = self.add_location(place)?;
        self.speaks_for[id.index()] = speaks_for;
        Ok(id)
    }

    /// Adds a communicator, or a team of threads, of these members in the order of their ranks.
    ///
    /// # Errors
    /// When there are too many, a member is unknown, or is there twice.
    pub fn add_communicator(
        &mut self,
        members: &[LocationId],
    ) -> Result<CommunicatorId, TraceError> {
        match members
            .iter()
            .find(|member| member.index() >= self.locations.len())
        {
            Some(unknown) => Err(TraceError::UnknownLocation(*unknown)),
            None => {
                let kept = self.keeping.as_ref().map(|keeping| {
                    let ranks = (0..).zip(members);
                    let kept =
                        ranks.filter(|(_, member)| keeping.keeps(self.speaks_for[member.index()]));
                    kept.map(|(rank, _)| rank).collect()
                });
                self.teams.add(members, kept)
            }
        }
    }

    /// Says that a location will have so many more events, and that so many of them will not be internal: this saves
    /// memory.
    pub fn reserve(&mut self, location: LocationId, events: usize, marks: usize) {
        let keeps = |process: &&u32| {
            self.keeping
                .as_ref()
                .is_none_or(|keeping| keeping.keeps(**process))
        };
        let is_kept = self
            .speaks_for
            .get(location.index())
            .filter(keeps)
            .is_some();
        if let Some(found) = self.locations.get_mut(location.index()).filter(|_| is_kept) {
            found.times.reserve_exact(events);
            found.marks.reserve_exact(marks);
        }
    }

    /// Adds an event to a location.
    ///
    /// # Errors
    /// When it cannot follow what was added before.
    #[inline]
    pub fn push(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), TraceError> {
        let Some(found) = self.locations.get_mut(location.index()) else {
            return Err(TraceError::UnknownLocation(location));
        };
        let event = match &mut self.keeping {
            None => found.add(location, time)?,
            Some(keeping) => {
                keeping.add(found, self.speaks_for[location.index()], location, time)?
            }
        };
        match action {
            Action::Internal => Ok(()),
            Action::Send {
                to,
                communicator,
                tag,
            } => self.message(event, Role::Send, to, communicator, tag),
            Action::Receive {
                from,
                communicator,
                tag,
            } => self.message(event, Role::Receive, from, communicator, tag),
            _ => self.collective(event, action),
        }
    }

    #[inline]
    fn message(
        &mut self,
        event: EventId,
        role: Role,
        peer: LocationId,
        communicator: CommunicatorId,
        tag: i32,
    ) -> Result<(), TraceError> {
        let key = self.key(event, role, peer, communicator, tag)?;
        if !self.keeps(key.from) && !self.keeps(key.to) {
            return Ok(());
        }
        let marks = &mut self.locations[event.location.index()].marks;
        let id = MarkId {
            location: event.location.0,
            mark: marks.len() as u32,
        };
        marks.push(open(event.event, role));
        self.channels.add(key, role, id, &mut self.locations);
        Ok(())
    }

    /// The channel of a message, of which this event is one end.
    #[inline]
    pub(super) fn key(
        &self,
        event: EventId,
        role: Role,
        peer: LocationId,
        communicator: CommunicatorId,
        tag: i32,
    ) -> Result<Key, TraceError> {
        let peer = *self
            .speaks_for
            .get(peer.index())
            .ok_or(TraceError::UnknownPeer(event))?;
        if !self.teams.has(communicator) {
            return Err(TraceError::NotAMember {
                event,
                communicator,
            });
        }
        let this = self.speaks_for[event.location.index()];
        let (from, to) = if role == Role::Send {
            (this, peer)
        } else {
            (peer, this)
        };
        Ok(Key {
            from,
            to,
            communicator: communicator.0,
            tag,
        })
    }

    fn collective(&mut self, event: EventId, action: Action) -> Result<(), TraceError> {
        let Some(part) = self.part(event, action)? else {
            return Ok(());
        };
        if !self.teams.concerns(part.seat) {
            return Ok(());
        }
        self.teams.now = self.keeping.as_ref().map(Keeping::added);
        let at = event.location.index();
        let mark = self.locations[at].marks.len() as u32;
        let (role, (instance, counts)) = if part.enters {
            (Role::Enter, (self.teams.enter(part, event, mark)?, true))
        } else {
            (
                Role::Exit,
                self.teams.exit(part, event, mark, &mut self.locations)?,
            )
        };
        if counts && part.is_kept {
            self.locations[at]
                .marks
                .push(part.seat.mark(event.event, role, instance));
        }
        Ok(())
    }

    /// What an event is in the operations of a team; `None` if it has to do with none.
    // To hand it over in memory takes longer than to find it.
    #[inline(always)]
    pub(super) fn part(&self, event: EventId, action: Action) -> Result<Option<Part>, TraceError> {
        let (team, track, enters) = match action {
            Action::Internal | Action::Send { .. } | Action::Receive { .. } => return Ok(None),
            Action::Enter { communicator } => (communicator, Track::Collective, true),
            Action::Exit { communicator, .. } => (communicator, Track::Collective, false),
            Action::Fork { team } => (team, Track::Fork, true),
            Action::Begin { team } => (team, Track::Fork, false),
            Action::End { team } => (team, Track::Join, true),
            Action::Join { team } => (team, Track::Join, false),
        };
        let speaks_for = self.speaks_for[event.location.index()];
        let seat = self.teams.seat(team, event.location.0, speaks_for);
        let seat = seat.ok_or(TraceError::NotAMember {
            event,
            communicator: team,
        })?;
        let of_root = |kind| {
            Some(Left {
                kind,
                root: seat.rank,
                sent: true,
                received: true,
            })
        };
        let says = match action {
            Action::Exit {
                kind,
                root,
                sent,
                received,
                ..
            } => {
                let counts = !(self.matching.skip_alltoallv && kind == CollectiveKind::Alltoallv);
                Some(Left {
                    kind,
                    root,
                    sent: sent && counts,
                    received: received && counts,
                })
            }
            Action::Fork { .. } => of_root(CollectiveKind::Fork),
            Action::Join { .. } => of_root(CollectiveKind::Join),
            _ => None,
        };
        Ok(Some(Part {
            track,
            seat,
            is_kept: self.keeps(speaks_for),
            enters,
            says,
        }))
    }

    /// The trace, now that all events are there.
    ///
    /// # Errors
    /// When something has no partner: of several messages, the first of the first location; or else a collective operation.
    pub fn finish(self) -> Result<Trace, TraceError> {
        let left = self.channels.left(&self.locations);
        if let Some((_, Some(why))) = self.first_fault(&left) {
            return Err(why);
        }
        Ok(self.close(left).0)
    }

    /// Whether the events of a process are kept.
    fn keeps(&self, process: u32) -> bool {
        self.keeping
            .as_ref()
            .is_none_or(|keeping| keeping.keeps(process))
    }

    /// What is to be refused first, and why, unless only who keeps an event of it can say so; nothing, if all is to be let
    /// pass.
    pub(super) fn first_fault(
        &self,
        left: &[(Role, MarkId)],
    ) -> Option<(FaultKey, Option<TraceError>)> {
        if self.matching.lenient {
            return None;
        }
        let event = |id: &MarkId| EventId {
            location: LocationId(id.location),
            event: self.locations[id.location as usize].marks[id.mark as usize].event,
        };
        let kept = left
            .iter()
            .filter(|(_, id)| self.keeps(self.speaks_for[id.location as usize]));
        let first = kept
            .map(|(role, id)| (event(id), *role))
            .min_by_key(|(event, _)| *event);
        if let Some((event, role)) = first {
            let why = if role == Role::Send {
                TraceError::UnmatchedSend
            } else {
                TraceError::UnmatchedReceive
            };
            return Some(([0, event.location.0, event.event, 0], Some(why(event))));
        }
        let ([team, track, index], why) = self.teams.first_incomplete(&self.locations)?;
        Some(([1, team, track, index], why))
    }

    /// The trace, without what has no partner, and what else is known of its collective operations.
    pub(super) fn close(
        mut self,
        left: Vec<(Role, MarkId)>,
    ) -> (Trace, Matched, Vec<u32>, Option<Keeping>) {
        let mut left_out = LeftOut::default();
        for (role, id) in left {
            let mark = &mut self.locations[id.location as usize].marks[id.mark as usize];
            *mark = mark.alone();
            let is_kept = self
                .keeping
                .as_ref()
                .is_none_or(|of| of.keeps(self.speaks_for[id.location as usize]));
            *if role == Role::Send {
                &mut left_out.sends
            } else {
                &mut left_out.receives
            } += u64::from(is_kept);
        }
        let mut matched = self.teams.finish(&mut self.locations, &mut left_out);
        for location in &mut self.locations {
            location.times.shrink_to_fit();
            location.marks.shrink_to_fit();
        }
        let (instances, slots) = (
            std::mem::take(&mut matched.instances),
            std::mem::take(&mut matched.slots),
        );
        let trace = Trace {
            locations: self.locations,
            instances,
            slots,
            left_out,
        };
        (trace, matched, self.speaks_for, self.keeping)
    }
}

#[cfg(test)]
mod tests;
