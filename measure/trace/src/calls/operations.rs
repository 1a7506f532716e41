//! Collective operations whose members are assembled while items pass.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::finding::{Operation, OperationMember};
use crate::CollectiveKind;
use crate::teams::{Track, Turns};

/// Member of a communicator: the number of the communicator, and the location of the
/// member.
pub(super) type Seat = (u32, u32);

/// End of an operation at one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationExit {
    pub(super) kind: CollectiveKind,
    pub(super) root: u32,
    pub(super) request: Option<u64>,
    /// The member; when it entered the operation is not known here.
    pub(super) member: OperationMember,
}

/// Operations that some members have not left.
#[derive(Debug)]
pub(super) struct OpenOperations {
    turns: FxHashMap<Seat, Turns>,
    /// By communicator and index.
    open: FxHashMap<(u32, u32), OpenOperation>,
    /// Number of members of all of them.
    count: usize,
    most: usize,
}

#[derive(Debug)]
struct OpenOperation {
    kind: CollectiveKind,
    root: u32,
    members: Vec<OperationMember>,
    /// Number of members that have left it.
    left: usize,
}

impl OpenOperations {
    /// Creates the state before the first operation; if open ones have more members than `most`, no operations are
    /// assembled any more.
    pub(super) fn new(most: usize) -> Self {
        Self {
            turns: FxHashMap::default(),
            open: FxHashMap::default(),
            count: 0,
            most,
        }
    }

    /// Returns true if operations are not assembled any more: members are too far apart in the trace.
    pub(super) fn has_given_up(&self) -> bool {
        self.count > self.most
    }

    /// Returns the number of operations that some members have not left.
    pub(super) fn incomplete(&self) -> usize {
        self.open.len()
    }

    /// Enters the next operation of a member; `members` are those of the communicator.
    pub(super) fn enter(
        &mut self,
        seat: Seat,
        members: &[u32],
        request: Option<u64>,
        (location, time): (u32, Timestamp<Global>),
    ) {
        let Some(rank) = rank_of(members, seat.1) else {
            return;
        };
        if self.has_given_up() {
            return;
        }
        let turns = self.turns.entry(seat).or_default();
        let index = turns.enter(Track::Collective, location, request);
        let count = &mut self.count;
        let of = self.open.entry((seat.0, index)).or_insert_with(|| {
            *count += members.len();
            OpenOperation::new(members.len())
        });
        of.members[rank].enter = time;
        if self.has_given_up() {
            (self.turns, self.open) = Default::default();
        }
    }

    /// Leaves an operation of a member. Tells `complete` of the operation if all members have left it.
    pub(super) fn exit(
        &mut self,
        seat: Seat,
        members: &[u32],
        exit: &OperationExit,
        complete: impl FnOnce(&Operation<'_>),
    ) {
        let turns = self.turns.get_mut(&seat);
        let index = turns
            .and_then(|turns| turns.exit(Track::Collective, exit.member.location, exit.request));
        let rank = rank_of(members, seat.1);
        let (Some(index), Some(rank)) = (index, rank) else {
            return;
        };
        let Some(of) = self.open.get_mut(&(seat.0, index)) else {
            return;
        };
        of.leave(rank, exit);
        if of.left < of.members.len() {
            return;
        }
        complete(&Operation {
            kind: of.kind,
            root: of.root,
            members: &of.members,
        });
        self.count -= of.members.len();
        self.open.remove(&(seat.0, index));
    }
}

/// Returns the rank of a process; in the communicator of all, it is mostly its number.
fn rank_of(members: &[u32], process: u32) -> Option<usize> {
    if members.get(process as usize) == Some(&process) {
        return Some(process as usize);
    }
    members.iter().position(|member| *member == process)
}

impl OpenOperation {
    fn new(members: usize) -> Self {
        let nobody = OperationMember {
            location: u32::MAX,
            region: 0,
            enter: Timestamp::ORIGIN,
            waits_from: Timestamp::ORIGIN,
            exit: Timestamp::ORIGIN,
            sent: false,
            received: false,
        };
        Self {
            kind: CollectiveKind::Barrier,
            root: 0,
            members: vec![nobody; members],
            left: 0,
        }
    }

    fn leave(&mut self, rank: usize, exit: &OperationExit) {
        (self.kind, self.root) = (exit.kind, exit.root);
        let enter = self.members[rank].enter;
        let waits_from = exit.request.map_or(enter, |_| exit.member.waits_from);
        self.members[rank] = OperationMember {
            enter,
            waits_from,
            ..exit.member
        };
        self.left += 1;
    }
}
