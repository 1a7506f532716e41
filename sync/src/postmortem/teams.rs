//! Which enters and exits are of one collective operation: the first of each member, the second of each, and so on.

use rustc_hash::FxHashMap;

use super::trace::{Instance, LeftOut, Location, Mark, NONE, Role, Slot};
use super::{CollectiveKind, CommunicatorId, EventId, LocationId, Pattern, TraceError};

/// Which of the operations of a team: each is counted by itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Track {
    Collective,
    Fork,
    Join,
}

/// All of them, by their numbers.
const TRACKS: [Track; 3] = [Track::Collective, Track::Fork, Track::Join];

/// A communicator, or a team of threads.
#[derive(Debug)]
struct Team {
    members: Vec<u32>,
    /// The ranks of those whose events are kept: mostly of all.
    kept: Vec<u32>,
    tracks: [Counts; 3],
}

/// Operations of one track.
#[derive(Debug, Default)]
struct Counts {
    /// Their numbers in the trace, in order.
    instances: Vec<u32>,
    /// How many every member has entered, and left; nothing as long as there are none.
    members: Vec<(u32, u32)>,
}

/// What an exit says of the operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) kind: CollectiveKind,
    pub(super) root: u32,
    pub(super) sent: bool,
    pub(super) received: bool,
}

/// What is known of an operation before it is complete.
#[derive(Debug)]
struct Progress {
    /// Who said of which kind it is.
    said_by: Option<EventId>,
    /// Any event of it.
    seen: EventId,
    enters: u32,
    exits: u32,
}

/// All teams, and what they did.
#[derive(Debug, Default)]
pub(super) struct Teams {
    teams: Vec<Team>,
    /// Seats of locations in teams.
    seats: FxHashMap<(u32, u32), Seat>,
    instances: Vec<Instance>,
    /// Of each operation, the number of the event that was the first of it, where that is known.
    names: Vec<u64>,
    /// The number of the event that is being added, where events are counted.
    pub(super) now: Option<u64>,
    progress: Vec<Progress>,
    slots: Vec<Slot>,
}

/// A member of a team, by its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    team: u32,
    pub(super) rank: u32,
    /// Where it is among those whose events are kept, or [`NONE`].
    slot: u32,
}

/// What became of all teams.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) instances: Vec<Instance>,
    pub(super) slots: Vec<Slot>,
    pub(super) names: Vec<u64>,
    /// Of every team, its members, and the ranks of those whose events are kept.
    pub(super) teams: Vec<(Vec<u32>, Vec<u32>)>,
}

/// Which operation it is: that of a team, on a track, and the how manieth.
pub(super) type OperationKey = [u32; 3];

impl Teams {
    /// Adds a team, of which the events of some members are kept.
    pub(super) fn add(
        &mut self,
        members: &[LocationId],
        keeps: impl Fn(LocationId) -> bool,
    ) -> Result<CommunicatorId, TraceError> {
        let team = u32::try_from(self.teams.len()).map_err(|_| TraceError::TooManyCollectives)?;
        let mut kept = vec![];
        for (rank, member) in (0..).zip(members) {
            let mut slot = NONE;
            if keeps(*member) {
                slot = kept.len() as u32;
                kept.push(rank);
            }
            if self.seats.insert((team, member.0), Seat { team, rank, slot }).is_some() {
                return Err(TraceError::MemberTwice(*member));
            }
        }
        let members = members.iter().map(|member| member.0).collect();
        self.teams.push(Team { members, kept, tracks: Default::default() });
        Ok(CommunicatorId(team))
    }

    pub(super) fn has(&self, team: CommunicatorId) -> bool {
        (team.0 as usize) < self.teams.len()
    }

    /// The seat of a location, or else of the one that it speaks for.
    pub(super) fn seat(&self, team: CommunicatorId, location: u32, speaks_for: u32) -> Option<Seat> {
        self.seats.get(&(team.0, location)).or_else(|| self.seats.get(&(team.0, speaks_for))).copied()
    }

    /// Whether events of any member are kept.
    pub(super) fn concerns(&self, seat: Seat) -> bool {
        !self.teams[seat.team as usize].kept.is_empty()
    }

    /// A member enters its next operation: `mark` will be that of `event`. The number of the operation.
    pub(super) fn enter(&mut self, track: Track, seat: Seat, event: EventId, mark: u32) -> Result<u32, TraceError> {
        let (entered, _) = *self.counts(track, seat);
        let instance = self.instance(track, seat, entered, event)?;
        self.counts(track, seat).0 += 1;
        if let Some(slot) = self.slot(instance, seat) {
            (slot.location, slot.enter) = (event.location.0, mark);
        }
        self.progress[instance as usize].enters += 1;
        Ok(instance)
    }

    /// A member leaves the first operation that it has not left. The number of the operation, and whether the exit is a
    /// logical receive, so that `mark` will be that of `event`. A thread that begins does not know what it leaves.
    pub(super) fn exit(
        &mut self,
        track: Track,
        seat: Seat,
        left: Option<Left>,
        event: EventId,
        mark: u32,
        locations: &mut [Location],
    ) -> Result<(u32, bool), TraceError> {
        let (entered, exited) = *self.counts(track, seat);
        if matches!(track, Track::Collective) && exited >= entered {
            return Err(TraceError::NotEntered(event));
        }
        let instance = self.instance(track, seat, exited, event)?;
        if let Some(left) = left {
            self.agree(instance, left, event)?;
        }
        self.counts(track, seat).1 += 1;
        self.progress[instance as usize].exits += 1;
        let (sends, receives) = left.map_or((true, true), |left| role_of(left, seat.rank));
        let Some(slot) = self.slot(instance, seat) else { return Ok((instance, false)) };
        if matches!(track, Track::Collective) && slot.location != event.location.0 {
            // Another thread of the process entered.
            return Err(TraceError::NotEntered(event));
        }
        slot.location = event.location.0;
        if !sends && slot.enter != NONE {
            let mark = &mut locations[slot.location as usize].marks[slot.enter as usize];
            *mark = mark.alone();
            slot.enter = NONE;
        }
        if receives {
            slot.exit = mark;
        }
        Ok((instance, receives))
    }

    /// A member starts a team of threads, of which some may have been seen before.
    pub(super) fn fork(&mut self, seat: Seat, event: EventId, mark: u32) -> Result<u32, TraceError> {
        let instance = self.enter(Track::Fork, seat, event, mark)?;
        let left = Left { kind: CollectiveKind::Fork, root: seat.rank, sent: true, received: true };
        self.agree(instance, left, event)?;
        Ok(instance)
    }

    /// The kind and the root are those that the first one named.
    fn agree(&mut self, instance: u32, left: Left, event: EventId) -> Result<(), TraceError> {
        let found = &mut self.instances[instance as usize];
        let progress = &mut self.progress[instance as usize];
        if left.kind.has_root() && left.root as usize >= self.teams[found.team as usize].members.len() {
            return Err(TraceError::OtherRoot { event, other: event });
        }
        let Some(other) = progress.said_by else {
            (found.kind, found.root, progress.said_by) = (left.kind, left.root, Some(event));
            return Ok(());
        };
        if found.kind != left.kind {
            return Err(TraceError::OtherKind { event, other });
        }
        if left.kind.has_root() && found.root != left.root {
            return Err(TraceError::OtherRoot { event, other });
        }
        Ok(())
    }

    /// How many operations a member has entered and left.
    fn counts(&mut self, track: Track, seat: Seat) -> &mut (u32, u32) {
        let team = &mut self.teams[seat.team as usize];
        let counts = &mut team.tracks[track as usize].members;
        if counts.is_empty() {
            counts.resize(team.members.len(), (0, 0));
        }
        &mut counts[seat.rank as usize]
    }

    /// The `index`-th operation of a team, which is either known or the first that is not.
    fn instance(&mut self, track: Track, seat: Seat, index: u32, event: EventId) -> Result<u32, TraceError> {
        let team = &mut self.teams[seat.team as usize];
        let known = &mut team.tracks[track as usize].instances;
        if let Some(instance) = known.get(index as usize) {
            return Ok(*instance);
        }
        let instance = u32::try_from(self.instances.len()).map_err(|_| TraceError::TooManyCollectives)?;
        known.push(instance);
        let (first, members) = (self.slots.len(), team.kept.len() as u32);
        self.instances.push(Instance { kind: CollectiveKind::Barrier, root: 0, team: seat.team, first, members });
        self.names.extend(self.now);
        self.progress.push(Progress { said_by: None, seen: event, enters: 0, exits: 0 });
        let kept = team.kept.iter().map(|rank| team.members[*rank as usize]);
        self.slots.extend(kept.map(|location| Slot { location, enter: NONE, exit: NONE }));
        Ok(instance)
    }

    /// That of a member whose events are kept.
    fn slot(&mut self, instance: u32, seat: Seat) -> Option<&mut Slot> {
        let slot = (seat.slot != NONE).then_some(seat.slot as usize)?;
        Some(&mut self.slots[self.instances[instance as usize].first + slot])
    }

    /// All operations that are not complete, in order.
    fn incomplete(&self) -> Vec<(OperationKey, u32)> {
        let mut found = vec![];
        for (team, of) in (0..).zip(&self.teams) {
            for (track, counts) in (0..).zip(&of.tracks) {
                for (index, instance) in (0..).zip(&counts.instances) {
                    let at = *instance as usize;
                    if !is_complete(self.instances[at].kind, &self.progress[at], of.members.len() as u32) {
                        found.push(([team, track, index], *instance));
                    }
                }
            }
        }
        found
    }

    /// The first operation that is incomplete, and what it is refused for, unless only who keeps an event of it can say so.
    pub(super) fn first_incomplete(&self, locations: &[Location]) -> Option<(OperationKey, Option<TraceError>)> {
        let (key, instance) = *self.incomplete().first()?;
        let [team, track, index] = key;
        let (team, progress) = (&self.teams[team as usize], &self.progress[instance as usize]);
        let why = match TRACKS[track as usize] {
            Track::Collective => self.missing(team, index, instance, locations),
            Track::Fork => Some(TraceError::NotEntered(progress.seen)),
            Track::Join => Some(TraceError::NotLeft(progress.seen)),
        };
        Some((key, why))
    }

    /// What an incomplete operation, the `index`-th of a team, is refused for.
    fn missing(&self, team: &Team, index: u32, instance: u32, locations: &[Location]) -> Option<TraceError> {
        let (found, progress) = (&self.instances[instance as usize], &self.progress[instance as usize]);
        let counts = &team.tracks[Track::Collective as usize].members;
        let never_entered = counts.iter().position(|(entered, _)| *entered <= index);
        if let (Some(absent), Some(event)) = (never_entered, progress.said_by) {
            return Some(TraceError::Absent { event, absent: LocationId(team.members[absent]) });
        }
        let Some(rank) = counts.iter().position(|(entered, left)| *left <= index && *entered > index) else {
            return Some(TraceError::NotLeft(progress.seen));
        };
        let slot = self.slots[found.first + team.kept.binary_search(&(rank as u32)).ok()?];
        let event = locations[slot.location as usize].marks.get(slot.enter as usize)?.event;
        Some(TraceError::NotLeft(EventId { location: LocationId(slot.location), event }))
    }

    /// The operations and their members, and the best that can be made of those that are incomplete. These are counted where
    /// the first member of their team is kept.
    pub(super) fn finish(mut self, locations: &mut [Location], left_out: &mut LeftOut) -> Matched {
        for ([team, ..], instance) in self.incomplete() {
            let (found, kept) = (self.instances[instance as usize], &self.teams[team as usize].kept);
            let slots = &mut self.slots[found.first..found.first + found.members as usize];
            left_out.collectives += u64::from(kept.first() == Some(&0));
            forget(&found, &self.progress[instance as usize], kept, slots, locations);
        }
        self.slots.shrink_to_fit();
        self.instances.shrink_to_fit();
        let teams = self.teams.into_iter().map(|team| (team.members, team.kept)).collect();
        Matched { instances: self.instances, slots: self.slots, names: self.names, teams }
    }
}

/// Whether a member of this rank is a logical sender, and a logical receiver.
fn role_of(left: Left, rank: u32) -> (bool, bool) {
    if left.kind == CollectiveKind::Barrier {
        return (true, true);
    }
    let is_root = rank == left.root;
    let (sends, receives) = match left.kind.pattern() {
        Pattern::FromRoot => (is_root, !is_root),
        Pattern::ToRoot => (!is_root, is_root),
        Pattern::AllToAll | Pattern::ToLater => (true, true),
    };
    (sends && left.sent, receives && left.received)
}

fn is_complete(kind: CollectiveKind, progress: &Progress, members: u32) -> bool {
    match kind {
        // How many threads there were is their business.
        _ if progress.said_by.is_none() => false,
        CollectiveKind::Fork | CollectiveKind::Join => true,
        _ => progress.enters == members && progress.exits == members,
    }
}

/// Makes the best of an incomplete operation: nothing, if nobody left it; or else those who did not leave it gave data.
fn forget(instance: &Instance, progress: &Progress, kept: &[u32], slots: &mut [Slot], locations: &mut [Location]) {
    let alone = |location: u32, mark: &mut u32, locations: &mut [Location]| {
        if let Some(found) = locations[location as usize].marks.get_mut(*mark as usize) {
            *found = Mark::alone(*found);
        }
        *mark = NONE;
    };
    for (rank, slot) in kept.iter().zip(slots) {
        let is_root = *rank == instance.root;
        let sends = match instance.kind.pattern() {
            Pattern::FromRoot => is_root,
            Pattern::ToRoot => !is_root,
            Pattern::AllToAll | Pattern::ToLater => true,
        };
        let known = progress.said_by.is_some();
        if !known || !sends {
            alone(slot.location, &mut slot.enter, locations);
        }
        if !known {
            alone(slot.location, &mut slot.exit, locations);
        }
    }
}

impl Seat {
    /// The mark of an enter or an exit.
    pub(super) const fn mark(self, event: u32, role: Role, instance: u32) -> Mark {
        Mark::new(event, role, self.rank, instance)
    }
}
