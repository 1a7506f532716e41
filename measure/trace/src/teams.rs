//! Which enters and exits are of one collective operation: the first of each member, the second of each, and so on.

mod finish;

use rustc_hash::FxHashMap;

use super::trace::{Instance, LeftOut, Location, Mark, NONE, Role, Slot};
use super::{CollectiveKind, CommunicatorId, EventId, LocationId, Pattern, TraceError};

/// Which of the operations of a team: each is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The ranks of those whose events are kept, if not all are.
    kept: Option<Vec<u32>>,
    tracks: [Operations; 3],
}

/// Operations of one track.
#[derive(Debug, Default)]
struct Operations {
    /// Their numbers in the trace, in order.
    instances: Vec<u32>,
    /// What every member did; nothing as long as there are none.
    columns: Vec<Column>,
}

/// What a member did in all operations of a track: so whoever takes part alone, in whatever a team, takes no more memory
/// than that.
#[derive(Clone, Debug, Default)]
struct Column {
    slots: Vec<Slot>,
    entered: u32,
    left: u32,
}

/// What an exit says of the operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) kind: CollectiveKind,
    pub(super) root: u32,
    pub(super) sent: bool,
    pub(super) received: bool,
}

/// What an event is in the operations of a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) track: Track,
    pub(super) seat: Seat,
    /// Whether the events of its member are kept.
    pub(super) is_kept: bool,
    /// Whether it is an enter.
    pub(super) enters: bool,
    /// What it says of the operation, if anything.
    pub(super) says: Option<Left>,
}

/// What is known of an operation before it is complete.
#[derive(Debug)]
pub(super) struct Progress {
    /// Who said of which kind it is.
    pub(super) said_by: Option<EventId>,
    /// Any event of it.
    pub(super) seen: EventId,
    pub(super) enters: u32,
    pub(super) exits: u32,
}

impl Progress {
    /// Of an operation of which this is the first event.
    pub(super) const fn new(seen: EventId) -> Self {
        Self {
            said_by: None,
            seen,
            enters: 0,
            exits: 0,
        }
    }

    /// The kind and the root are those that the first one named.
    pub(super) fn agree(
        &mut self,
        found: &mut Instance,
        left: Left,
        event: EventId,
    ) -> Result<(), TraceError> {
        if left.kind.has_root() && left.root >= found.members {
            return Err(TraceError::OtherRoot {
                event,
                other: event,
            });
        }
        let Some(other) = self.said_by else {
            (found.kind, found.root, self.said_by) = (left.kind, left.root, Some(event));
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

    pub(super) fn is_complete(&self, instance: &Instance) -> bool {
        match instance.kind {
            // How many threads there were is their business.
            _ if self.said_by.is_none() => false,
            CollectiveKind::Fork | CollectiveKind::Join => true,
            _ => self.enters == instance.members && self.exits == instance.members,
        }
    }

    /// What an incomplete operation, the `index`-th of its track, is refused for; `enters` are those of all members. `None`
    /// if one of them is not known that matters.
    pub(super) fn refusal(
        &self,
        track: Track,
        index: u32,
        members: &[u32],
        counts: &[(u32, u32)],
        enters: impl Fn(usize) -> Option<EventId>,
    ) -> Option<TraceError> {
        match track {
            Track::Collective => {}
            Track::Fork => return Some(TraceError::NotEntered(self.seen)),
            Track::Join => return Some(TraceError::NotLeft(self.seen)),
        }
        let never_entered = counts.iter().position(|(entered, _)| *entered <= index);
        if let (Some(absent), Some(event)) = (never_entered, self.said_by) {
            return Some(TraceError::Absent {
                event,
                absent: LocationId(members[absent]),
            });
        }
        let not_left = counts
            .iter()
            .position(|(entered, left)| *left <= index && *entered > index);
        Some(TraceError::NotLeft(
            not_left.map_or(Some(self.seen), enters)?,
        ))
    }
}

/// All teams, and what they did.
#[derive(Debug, Default)]
pub(super) struct Teams {
    teams: Vec<Team>,
    /// Ranks of locations in teams.
    ranks: FxHashMap<(u32, u32), u32>,
    instances: Vec<Instance>,
    /// Of each operation, the number of the event that was the first of it, where that is known.
    names: Vec<u64>,
    /// The number of the event that is being added, where events are counted.
    pub(super) now: Option<u64>,
    progress: Vec<Progress>,
}

/// What became of all teams.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) instances: Vec<Instance>,
    pub(super) slots: Vec<Slot>,
    pub(super) names: Vec<u64>,
    /// Of every team, its members, and the ranks of those whose events are kept, if not all are.
    pub(super) teams: Vec<(Vec<u32>, Option<Vec<u32>>)>,
}

/// Which operation it is: that of a team, on a track, and the how manieth.
pub(super) type OperationKey = [u32; 3];

/// A member of a team, by its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) team: u32,
    pub(super) rank: u32,
}

impl Teams {
    /// The members of a team, in the order of their ranks.
    pub(super) fn members(&self, team: u32) -> &[u32] {
        &self.teams[team as usize].members
    }

    /// Adds a team, of which the events of members of these ranks are kept, or else of all.
    pub(super) fn add(
        &mut self,
        members: &[LocationId],
        kept: Option<Vec<u32>>,
    ) -> Result<CommunicatorId, TraceError> {
        let team = u32::try_from(self.teams.len()).map_err(|_| TraceError::TooManyCollectives)?;
        for (rank, member) in members.iter().enumerate() {
            if self.ranks.insert((team, member.0), rank as u32).is_some() {
                return Err(TraceError::MemberTwice(*member));
            }
        }
        let members = members.iter().map(|member| member.0).collect();
        self.teams.push(Team {
            members,
            kept,
            tracks: Default::default(),
        });
        Ok(CommunicatorId(team))
    }

    pub(super) fn has(&self, team: CommunicatorId) -> bool {
        (team.0 as usize) < self.teams.len()
    }

    /// The seat of a location, or else of the one that it speaks for.
    pub(super) fn seat(
        &self,
        team: CommunicatorId,
        location: u32,
        speaks_for: u32,
    ) -> Option<Seat> {
        let rank = self
            .ranks
            .get(&(team.0, location))
            .or_else(|| self.ranks.get(&(team.0, speaks_for)))?;
        Some(Seat {
            team: team.0,
            rank: *rank,
        })
    }

    /// Whether events of any member are kept.
    pub(super) fn concerns(&self, seat: Seat) -> bool {
        self.teams[seat.team as usize]
            .kept
            .as_ref()
            .is_none_or(|kept| !kept.is_empty())
    }

    /// A member enters its next operation: `mark` will be that of `event`. The number of the operation. Only a fork says
    /// what it is.
    pub(super) fn enter(
        &mut self,
        part: Part,
        event: EventId,
        mark: u32,
    ) -> Result<u32, TraceError> {
        let Part {
            track,
            seat,
            is_kept,
            says,
            ..
        } = part;
        let entered = self.column(track, seat).entered;
        let instance = self.instance(track, seat, entered, event)?;
        if let Some(left) = says {
            self.agree(instance, left, event)?;
        }
        let column = self.column(track, seat);
        column.entered += 1;
        if is_kept {
            let slot = column.slot(entered, event);
            (slot.location, slot.enter) = (event.location.0, mark);
        }
        self.progress[instance as usize].enters += 1;
        Ok(instance)
    }

    /// A member leaves the first operation that it has not left. The number of the operation, and whether the exit is a
    /// logical receive, so that `mark` will be that of `event`. A thread that begins does not know what it leaves.
    pub(super) fn exit(
        &mut self,
        part: Part,
        event: EventId,
        mark: u32,
        locations: &mut [Location],
    ) -> Result<(u32, bool), TraceError> {
        let Part {
            track,
            seat,
            is_kept,
            says,
            ..
        } = part;
        let Column {
            entered,
            left: number,
            ..
        } = *self.column(track, seat);
        if matches!(track, Track::Collective) && number >= entered {
            return Err(TraceError::NotEntered(event));
        }
        let instance = self.instance(track, seat, number, event)?;
        if let Some(left) = says {
            self.agree(instance, left, event)?;
        }
        let (sends, receives) = says.map_or((true, true), |left| left.role_of(seat.rank));
        let column = self.column(track, seat);
        column.left += 1;
        if !is_kept {
            self.progress[instance as usize].exits += 1;
            return Ok((instance, false));
        }
        let slot = column.slot(number, event);
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
        self.progress[instance as usize].exits += 1;
        Ok((instance, receives))
    }

    /// The kind and the root are those that the first one named.
    fn agree(&mut self, instance: u32, left: Left, event: EventId) -> Result<(), TraceError> {
        self.progress[instance as usize].agree(&mut self.instances[instance as usize], left, event)
    }

    /// What a member did so far.
    fn column(&mut self, track: Track, seat: Seat) -> &mut Column {
        let team = &mut self.teams[seat.team as usize];
        let columns = &mut team.tracks[track as usize].columns;
        if columns.is_empty() {
            columns.resize(team.members.len(), Column::default());
        }
        &mut columns[seat.rank as usize]
    }

    /// The `index`-th operation of a team, which is either known or the first that is not.
    fn instance(
        &mut self,
        track: Track,
        seat: Seat,
        index: u32,
        event: EventId,
    ) -> Result<u32, TraceError> {
        let team = &mut self.teams[seat.team as usize];
        let known = &mut team.tracks[track as usize].instances;
        if let Some(instance) = known.get(index as usize) {
            return Ok(*instance);
        }
        let instance =
            u32::try_from(self.instances.len()).map_err(|_| TraceError::TooManyCollectives)?;
        known.push(instance);
        let members = team.members.len() as u32;
        self.instances.push(Instance {
            kind: CollectiveKind::Barrier,
            root: 0,
            team: seat.team,
            first: 0,
            members,
        });
        self.names.extend(self.now);
        self.progress.push(Progress::new(event));
        Ok(instance)
    }
}

impl Column {
    /// Its slot in an operation, which it has entered or left, or does so now.
    fn slot(&mut self, operation: u32, event: EventId) -> &mut Slot {
        let operation = operation as usize;
        if operation == self.slots.len() {
            self.slots.push(Slot {
                location: event.location.0,
                enter: NONE,
                exit: NONE,
            });
        }
        &mut self.slots[operation]
    }
}

/// Whether a member of this rank is a logical sender, if it gave data.
pub(super) fn sends(kind: CollectiveKind, root: u32, rank: u32) -> bool {
    Left {
        kind,
        root,
        sent: true,
        received: true,
    }
    .role_of(rank)
    .0
}

impl Left {
    /// Whether a member of this rank is a logical sender, and a logical receiver.
    pub(super) fn role_of(self, rank: u32) -> (bool, bool) {
        if self.kind == CollectiveKind::Barrier {
            return (true, true);
        }
        let is_root = rank == self.root;
        let (sends, receives) = match self.kind.pattern() {
            Pattern::FromRoot => (is_root, !is_root),
            Pattern::ToRoot => (!is_root, is_root),
            Pattern::AllToAll | Pattern::ToLater => (true, true),
        };
        (sends && self.sent, receives && self.received)
    }
}

impl Seat {
    /// The mark of an enter or an exit.
    pub(super) const fn mark(self, event: u32, role: Role, instance: u32) -> Mark {
        Mark::new(event, role, self.rank, instance)
    }
}

#[cfg(test)]
mod tests;
