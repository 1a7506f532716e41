//! Ranks of one simulated communicator, and its splits.

use core::cell::RefCell;
use core::task::Poll;
use std::rc::Rc;

use super::engine::SimWorld;
use crate::CommError;
use crate::split::{SplitRequest, groups};

/// State that the ranks of a communicator share.
#[derive(Debug)]
pub(super) struct SimGroup {
    pub(super) id: u32,
    members: GroupMembers,
    meeting: RefCell<GroupMeeting>,
}

/// Ranks of the members in the whole cluster.
#[derive(Debug)]
enum GroupMembers {
    /// Evenly spaced, as they nearly always are: at a million ranks, lists would dominate the
    /// memory.
    Spaced {
        first: u32,
        step: u32,
        count: u32,
    },
    Listed(Box<[u32]>),
}

/// State of a split, and the ranks that have left.
#[derive(Debug, Default)]
struct GroupMeeting {
    requests: Vec<SplitRequest>,
    /// Time at which the last rank arrived.
    latest: u64,
    /// Result of each rank, from the arrival of the last rank until the rank takes it.
    results: Vec<GroupRank>,
    taken: u32,
    /// Bit of every rank that has left; empty while there are none.
    left: Vec<u64>,
    first_to_leave: Option<u32>,
}

/// New group and the rank in it; `None` for a rank without a color.
pub(super) type GroupRank = Option<(Rc<SimGroup>, u32)>;

impl GroupMembers {
    fn new(members: Vec<u32>) -> Self {
        let count = members.len() as u32;
        match *members {
            [first] => Self::Spaced {
                first,
                step: 0,
                count,
            },
            [first, second, ..]
                if second > first
                    && members.is_sorted_by(|a, b| b.wrapping_sub(*a) == second - first) =>
            {
                Self::Spaced {
                    first,
                    step: second - first,
                    count,
                }
            }
            _ => Self::Listed(members.into()),
        }
    }
}

impl SimGroup {
    pub(super) fn all_ranks(ranks: u32) -> Self {
        let members = GroupMembers::Spaced {
            first: 0,
            step: 1,
            count: ranks,
        };
        Self {
            id: 0,
            members,
            meeting: RefCell::default(),
        }
    }

    pub(super) fn size(&self) -> u32 {
        match &self.members {
            GroupMembers::Spaced { count, .. } => *count,
            GroupMembers::Listed(list) => list.len() as u32,
        }
    }

    /// Returns the rank in the whole cluster.
    #[inline]
    pub(super) fn member(&self, rank: u32) -> Option<u32> {
        match &self.members {
            GroupMembers::Spaced { first, step, count } => {
                (rank < *count).then(|| first + step * rank)
            }
            GroupMembers::Listed(list) => list.get(rank as usize).copied(),
        }
    }

    fn members(&self) -> impl Iterator<Item = u32> {
        (0..self.size()).filter_map(|rank| self.member(rank))
    }

    pub(super) fn has_left(&self, rank: u32) -> bool {
        let meeting = self.meeting.borrow();
        meeting
            .left
            .get(rank as usize / 64)
            .is_some_and(|bits| bits >> (rank % 64) & 1 != 0)
    }

    /// Records that a rank has left, and ends the wait of the others.
    pub(super) fn leave(&self, rank: u32, world: &SimWorld) {
        let mut meeting = self.meeting.borrow_mut();
        if meeting.left.is_empty() {
            meeting.left = vec![0; self.size().div_ceil(64) as usize];
        }
        if let Some(bits) = meeting.left.get_mut(rank as usize / 64) {
            *bits |= 1 << (rank % 64);
        }
        meeting.first_to_leave.get_or_insert(rank);
        let Some(member) = self.member(rank) else {
            return;
        };
        let mut engine = world.engine.borrow_mut();
        engine.leave(member, self.id);
        let at = engine.now(member);
        for request in meeting.requests.drain(..) {
            self.member(request.rank)
                .into_iter()
                .for_each(|waiting| engine.release_from_split(waiting, at));
        }
    }

    /// Adds a rank to the split. The last to arrive forms the groups.
    pub(super) fn arrive(
        &self,
        rank: u32,
        color: Option<u32>,
        key: u32,
        world: &SimWorld,
    ) -> Poll<Result<GroupRank, CommError>> {
        let Some(member) = self.member(rank) else {
            return Poll::Pending;
        };
        let mut meeting = self.meeting.borrow_mut();
        if let Some(rank) = meeting.first_to_leave {
            return Poll::Ready(Err(CommError::Left { rank }));
        }
        let mut engine = world.engine.borrow_mut();
        meeting.latest = meeting.latest.max(engine.now(member));
        meeting.requests.push(SplitRequest { color, key, rank });
        engine.await_split(member);
        if meeting.requests.len() == self.size() as usize {
            let (first, last) = (self.members().min(), self.members().max());
            let agreement = first.zip(last).map_or(0, |(first, last)| {
                engine.agreement_time(self.size(), first, last)
            });
            let released = core::mem::take(&mut meeting.latest).saturating_add(agreement);
            meeting.form_groups(self, world);
            // Released in reverse order, so that the first rank runs first.
            let order: Vec<u32> = self.members().collect();
            order
                .into_iter()
                .rev()
                .for_each(|member| engine.release_from_split(member, released));
        }
        Poll::Pending
    }

    /// Takes the result, if all ranks have arrived.
    pub(super) fn take_result(&self, rank: u32) -> Poll<Result<GroupRank, CommError>> {
        let mut meeting = self.meeting.borrow_mut();
        if meeting.results.is_empty() {
            return meeting.first_to_leave.map_or(Poll::Pending, |rank| {
                Poll::Ready(Err(CommError::Left { rank }))
            });
        }
        let result = meeting
            .results
            .get_mut(rank as usize)
            .and_then(Option::take);
        meeting.taken += 1;
        if meeting.taken == self.size() {
            (meeting.results, meeting.taken) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(result))
    }
}

impl GroupMeeting {
    /// Gives every rank its result, when all requests are there. All results of the previous split
    /// were taken: every rank took its own before it arrived again.
    fn form_groups(&mut self, group: &SimGroup, world: &SimWorld) {
        let mut requests = core::mem::take(&mut self.requests);
        self.results = (0..requests.len()).map(|_| None).collect();
        for requests in groups(&mut requests) {
            if requests[0].color.is_none() {
                continue;
            }
            let id = world.groups.get() + 1;
            world.groups.set(id);
            let members = requests
                .iter()
                .filter_map(|request| group.member(request.rank))
                .collect();
            let new_group = Rc::new(SimGroup {
                id,
                members: GroupMembers::new(members),
                meeting: RefCell::default(),
            });
            for (rank, request) in (0..).zip(requests) {
                self.results[request.rank as usize] = Some((Rc::clone(&new_group), rank));
            }
        }
    }
}
