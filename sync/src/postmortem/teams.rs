//! Which enters and exits are of one collective operation: the first of each member, the second of each, and so on.

mod finish;

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

/// A communicator, or a team of threads.
#[derive(Debug)]
struct Team {
    members: Vec<u32>,
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
    /// Ranks of locations in teams.
    ranks: FxHashMap<(u32, u32), u32>,
    instances: Vec<Instance>,
    progress: Vec<Progress>,
}

/// A member of a team, by its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    team: u32,
    pub(super) rank: u32,
}

impl Teams {
    pub(super) fn add(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        let team = u32::try_from(self.teams.len()).map_err(|_| TraceError::TooManyCollectives)?;
        for (rank, member) in members.iter().enumerate() {
            if self.ranks.insert((team, member.0), rank as u32).is_some() {
                return Err(TraceError::MemberTwice(*member));
            }
        }
        self.teams.push(Team { members: members.iter().map(|member| member.0).collect(), tracks: Default::default() });
        Ok(CommunicatorId(team))
    }

    pub(super) fn has(&self, team: CommunicatorId) -> bool {
        (team.0 as usize) < self.teams.len()
    }

    /// The seat of a location, or else of the one that it speaks for.
    pub(super) fn seat(&self, team: CommunicatorId, location: u32, speaks_for: u32) -> Option<Seat> {
        let rank = self.ranks.get(&(team.0, location)).or_else(|| self.ranks.get(&(team.0, speaks_for)))?;
        Some(Seat { team: team.0, rank: *rank })
    }

    /// A member enters its next operation: `mark` will be that of `event`. The number of the operation.
    pub(super) fn enter(&mut self, track: Track, seat: Seat, event: EventId, mark: u32) -> Result<u32, TraceError> {
        let entered = self.column(track, seat).entered;
        let instance = self.instance(track, seat, entered, event)?;
        let column = self.column(track, seat);
        column.entered += 1;
        let slot = column.slot(entered, event);
        (slot.location, slot.enter) = (event.location.0, mark);
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
        let Column { entered, left: number, .. } = *self.column(track, seat);
        if matches!(track, Track::Collective) && number >= entered {
            return Err(TraceError::NotEntered(event));
        }
        let instance = self.instance(track, seat, number, event)?;
        if let Some(left) = left {
            self.agree(instance, left, event)?;
        }
        let (sends, receives) = left.map_or((true, true), |left| role_of(left, seat.rank));
        let column = self.column(track, seat);
        column.left += 1;
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
        if left.kind.has_root() && left.root >= found.members {
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
    fn instance(&mut self, track: Track, seat: Seat, index: u32, event: EventId) -> Result<u32, TraceError> {
        let team = &mut self.teams[seat.team as usize];
        let known = &mut team.tracks[track as usize].instances;
        if let Some(instance) = known.get(index as usize) {
            return Ok(*instance);
        }
        let instance = u32::try_from(self.instances.len()).map_err(|_| TraceError::TooManyCollectives)?;
        known.push(instance);
        let members = team.members.len() as u32;
        self.instances.push(Instance { kind: CollectiveKind::Barrier, root: 0, first: 0, members });
        self.progress.push(Progress { said_by: None, seen: event, enters: 0, exits: 0 });
        Ok(instance)
    }
}

impl Column {
    /// Its slot in an operation, which it has entered or left, or does so now.
    fn slot(&mut self, operation: u32, event: EventId) -> &mut Slot {
        let operation = operation as usize;
        if operation == self.slots.len() {
            self.slots.push(Slot { location: event.location.0, enter: NONE, exit: NONE });
        }
        &mut self.slots[operation]
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

impl Seat {
    /// The mark of an enter or an exit.
    pub(super) const fn mark(self, event: u32, role: Role, instance: u32) -> Mark {
        Mark::new(event, role, self.rank, instance)
    }
}

#[cfg(test)]
mod tests;
