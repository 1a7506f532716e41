//! Ranks of one simulated communicator, its splits, and the state that all ranks of a part share.

use core::cell::{Cell, RefCell};
use core::task::Poll;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use super::engine::Engine;
use super::news::{Crossing, Departure, SplitArrivals};
use crate::CommError;
use crate::split::{SplitRequest, groups};

/// State that all ranks of a part share.
#[derive(Debug)]
pub(super) struct SimWorld {
    pub(super) engine: RefCell<Engine>,
    /// Communicators with ranks in several parts.
    shared_groups: RefCell<HashMap<u32, Weak<SimGroup>>>,
    /// Number of communicators that this part has numbered.
    groups: Cell<u32>,
}

impl SimWorld {
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            engine: RefCell::new(engine),
            shared_groups: RefCell::default(),
            groups: Cell::new(0),
        }
    }

    /// Returns the number of a new communicator, which no part has used.
    pub(super) fn new_group(&self) -> u32 {
        self.groups.set(self.groups.get() + 1);
        self.engine.borrow().number_of_part(self.groups.get())
    }

    /// Remembers a communicator with ranks in several parts.
    pub(super) fn share(&self, group: &Rc<SimGroup>) {
        let mut groups = self.shared_groups.borrow_mut();
        groups.insert(group.id, Rc::downgrade(group));
    }

    fn shared_group(&self, id: u32) -> Option<Rc<SimGroup>> {
        self.shared_groups.borrow().get(&id).and_then(Weak::upgrade)
    }

    /// Takes news from other parts.
    pub(super) fn take(&self, news: Crossing) {
        match news {
            Crossing::Message(message) => self.engine.borrow_mut().take_crossing(*message),
            Crossing::Delivered { rank, at } => self.engine.borrow_mut().deliver(rank, at),
            Crossing::Departure(Departure { member, left, at }) => {
                let Some((group, rank)) = left else {
                    self.engine.borrow_mut().retire_other(member, at);
                    return;
                };
                if let Some(group) = self.shared_group(group) {
                    group.record_leaving(rank, at, &mut self.engine.borrow_mut());
                }
            }
            Crossing::Split(arrivals) => {
                if let Some(group) = self.shared_group(arrivals.group) {
                    group.take_arrivals(&arrivals, self);
                }
            }
        }
    }
}

/// State that the ranks of a communicator share.
#[derive(Debug)]
pub(super) struct SimGroup {
    pub(super) id: u32,
    members: GroupMembers,
    /// Number of members in this part of the cluster. Every part with members has the group.
    here: u32,
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
    /// Requests of the ranks of this part that have arrived, until all ranks have.
    requests: Vec<SplitRequest>,
    /// Requests of the parts whose ranks have all arrived.
    complete: Vec<SplitRequest>,
    /// Numbers that the parts offer for the new groups, by colors. The lowest is taken.
    numbers: Vec<(u32, u32)>,
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
    /// Returns the group of all ranks.
    pub(super) fn all_ranks(ranks: u32, world: &SimWorld) -> Rc<Self> {
        let members = GroupMembers::Spaced {
            first: 0,
            step: 1,
            count: ranks,
        };
        Self::new(0, members, world)
    }

    fn new(id: u32, members: GroupMembers, world: &SimWorld) -> Rc<Self> {
        let mut group = Self {
            id,
            members,
            here: 0,
            meeting: RefCell::default(),
        };
        let engine = world.engine.borrow();
        group.here = group.members().filter(|rank| engine.is_here(*rank)).count() as u32;
        let group = Rc::new(group);
        if group.is_shared() && group.here > 0 {
            world.share(&group);
        }
        group
    }

    /// Returns true if there are members in other parts.
    fn is_shared(&self) -> bool {
        self.here != self.size()
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

    /// Lets a rank leave, and ends the wait of the others.
    pub(super) fn leave(&self, rank: u32, world: &SimWorld) {
        let Some(member) = self.member(rank) else {
            return;
        };
        let mut engine = world.engine.borrow_mut();
        let at = engine.now(member);
        self.record_leaving(rank, at, &mut engine);
        if self.is_shared() {
            engine.tell_departure(Departure {
                member,
                left: Some((self.id, rank)),
                at,
            });
        }
    }

    /// Records that a rank of any part has left, and ends the wait of those of this part.
    pub(super) fn record_leaving(&self, rank: u32, at: u64, engine: &mut Engine) {
        let mut meeting = self.meeting.borrow_mut();
        if meeting.left.is_empty() {
            meeting.left = vec![0; self.size().div_ceil(64) as usize];
        }
        if let Some(bits) = meeting.left.get_mut(rank as usize / 64) {
            *bits |= 1 << (rank % 64);
        }
        meeting.first_to_leave.get_or_insert(rank);
        if let Some(member) = self.member(rank) {
            engine.leave(member, self.id, at);
        }
        for request in meeting.requests.drain(..) {
            self.member(request.rank)
                .into_iter()
                .for_each(|waiting| engine.release_from_split(waiting, at));
        }
    }

    /// Adds a rank to the split. The last to arrive forms the groups, or tells all parts that the
    /// ranks of this one have arrived.
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
        if meeting.requests.len() < self.here as usize {
            return Poll::Pending;
        }
        drop(engine);
        let mut requests = match self.is_shared() {
            true => meeting.requests.clone(),
            false => core::mem::take(&mut meeting.requests),
        };
        let colors = groups(&mut requests).filter_map(|group| group[0].color);
        let arrivals = SplitArrivals {
            group: self.id,
            numbers: colors.map(|color| (color, world.new_group())).collect(),
            latest: meeting.latest,
            requests,
        };
        drop(meeting);
        if self.is_shared() {
            world.engine.borrow_mut().tell_arrivals(arrivals);
        } else {
            self.take_arrivals(&arrivals, world);
        }
        Poll::Pending
    }

    /// Adds the ranks of a part to the split. The last part to arrive forms the groups.
    pub(super) fn take_arrivals(&self, arrivals: &SplitArrivals, world: &SimWorld) {
        let mut meeting = self.meeting.borrow_mut();
        meeting.latest = meeting.latest.max(arrivals.latest);
        meeting.complete.extend(&arrivals.requests);
        meeting.numbers.extend(&arrivals.numbers);
        if meeting.complete.len() == self.size() as usize {
            meeting.requests = Vec::new();
            self.complete_split(&mut meeting, world);
        }
    }

    /// Forms the groups when all ranks have arrived, and releases those of this part.
    fn complete_split(&self, meeting: &mut GroupMeeting, world: &SimWorld) {
        let (first, last) = (self.members().min(), self.members().max());
        let agreement = first.zip(last).map_or(0, |(first, last)| {
            let engine = world.engine.borrow();
            engine.agreement_time(self.size(), first, last)
        });
        let released = core::mem::take(&mut meeting.latest).saturating_add(agreement);
        meeting.form_groups(self, world);
        // Released in reverse order, so that the first rank runs first.
        let order: Vec<u32> = self.members().collect();
        let mut engine = world.engine.borrow_mut();
        order
            .into_iter()
            .rev()
            .for_each(|member| engine.release_from_split(member, released));
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
        if meeting.taken == self.here {
            (meeting.results, meeting.taken) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(result))
    }
}

impl GroupMeeting {
    /// Gives every rank its result, when all requests are there. All results of the previous split
    /// were taken: every rank took its own before it arrived again.
    fn form_groups(&mut self, group: &SimGroup, world: &SimWorld) {
        let mut requests = core::mem::take(&mut self.complete);
        self.results = (0..requests.len()).map(|_| None).collect();
        let mut numbers = core::mem::take(&mut self.numbers);
        numbers.sort_unstable();
        for requests in groups(&mut requests) {
            let Some(color) = requests[0].color else {
                continue;
            };
            let lowest = numbers.partition_point(|(other, _)| *other < color);
            let Some((_, id)) = numbers.get(lowest).copied() else {
                continue;
            };
            let members: Vec<u32> = requests
                .iter()
                .filter_map(|request| group.member(request.rank))
                .collect();
            let new_group = SimGroup::new(id, GroupMembers::new(members), world);
            if new_group.here == 0 {
                continue;
            }
            for (rank, request) in (0..).zip(requests) {
                self.results[request.rank as usize] = Some((Rc::clone(&new_group), rank));
            }
        }
    }
}
