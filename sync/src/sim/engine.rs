//! The simulator: ranks, what they sent to each other, and which of them can go on.
//!
//! Ranks receive from a rank that they name, so it does not matter which of those that can go on does so first: every
//! one finds the same messages, with the same times. Each goes on until it waits.

use core::cell::{Cell, RefCell};
use core::task::Poll;

use downbeat_clock_core::Ticks;

use super::SimCluster;
use super::clock::{Clocks, NodeClock};
use super::messages::{Message, Messages, NONE, Stage};
use super::network::{Ends, Network};
use super::random::{Purpose, stream};
use super::rank::{Rank, Wait};
use super::traffic::Traffic;
use crate::{ClusterError, RankPlacement, Words};

/// What all ranks share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) engine: RefCell<Engine>,
    /// How many communicators were made.
    pub(super) groups: Cell<u32>,
}

#[derive(Debug)]
pub(super) struct Engine {
    seed: u64,
    network: Network,
    clocks: Clocks,
    node_clocks: Vec<NodeClock>,
    ranks: Vec<Rank>,
    messages: Messages,
    traffic: Option<Traffic>,
    /// Ranks that can go on. The last to come is the first to go: two that play ping-pong stay in the cache.
    ready: Vec<u32>,
    sent: u64,
}

/// From whom to whom a message goes, by their numbers in the whole cluster, and in which communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) group: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Engine {
    pub(super) fn new(cluster: &SimCluster) -> Self {
        let SimCluster {
            ranks,
            ranks_per_node,
            sockets_per_node,
            ref network,
            ref clocks,
            seed,
        } = *cluster;
        let ranks_per_socket = ranks_per_node.div_ceil(sockets_per_node);
        let nodes = ranks.div_ceil(ranks_per_node);
        let rank = |rank: u32| {
            let place = RankPlacement {
                node: rank / ranks_per_node,
                socket: rank % ranks_per_node / ranks_per_socket,
            };
            Rank::new(stream(seed, Purpose::Rank, rank.into()), place)
        };
        Self {
            seed,
            network: network.clone(),
            clocks: clocks.clone(),
            node_clocks: (0..nodes)
                .map(|node| NodeClock::new(clocks, seed, node))
                .collect(),
            ranks: (0..ranks).map(rank).collect(),
            messages: Messages::new(),
            traffic: network.card.map(|card| Traffic::new(card, nodes)),
            ready: (0..ranks).rev().collect(),
            sent: 0,
        }
    }

    /// A rank that can go on, after whatever must happen before one can.
    pub(super) fn next_ready(&mut self) -> Option<u32> {
        if self.ready.is_empty() {
            self.let_messages_arrive();
        }
        self.ready.pop()
    }

    /// Lets events happen until ranks can go on. The first of these cannot send anything before it has taken the time
    /// for that; so events that are earlier need not wait for it, and many ranks come together.
    fn let_messages_arrive(&mut self) {
        let Some(traffic) = &mut self.traffic else {
            return;
        };
        let bytes = |length: u8| self.network.bytes(length.into());
        let mut limit = u64::MAX;
        while let Some(id) = traffic.next_arrival(limit, &mut self.messages, bytes) {
            let Message { to, time, .. } = self.messages[id];
            let wait = &mut self.ranks[to as usize].wait;
            match *wait {
                Wait::Arrival { message } if message == id => {
                    *wait = Wait::No;
                    self.ready.push(to);
                    limit = limit
                        .min(time.saturating_add(self.network.send_overhead.as_nanos() as u64));
                }
                Wait::Gone => self.messages.discard(id),
                _ => {}
            }
        }
        // In the order in which they lie in memory.
        self.ready.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn wake(&mut self, rank: u32) {
        self.ranks[rank as usize].wait = Wait::No;
        self.ready.push(rank);
    }

    /// Sends a message. Without `synchronous` that is all; with it, the sender is then to wait.
    pub(super) fn send(&mut self, route: Route, words: &Words, length: usize, synchronous: bool) {
        let Route { group, from, to } = route;
        let overhead = self.network.send_overhead.as_nanos() as u64;
        let sender = &mut self.ranks[from as usize];
        sender.advance(overhead);
        sender.sent = sender.sent.wrapping_add(1);
        let (leaves, number) = (sender.now, sender.sent);
        self.sent += 1;
        if synchronous {
            self.ranks[from as usize].wait = Wait::Taken { group, to };
            self.attend(from, to);
        }
        let delay = self.delay(from, to, length, leaves);
        let (from_node, to_node) = (
            self.ranks[from as usize].place.node,
            self.ranks[to as usize].place.node,
        );
        let traffic = self.traffic.as_mut().filter(|_| from_node != to_node);
        let (time, stage) = match traffic {
            Some(_) => (delay, Stage::Leaving),
            None => (leaves.saturating_add(delay), Stage::Arrived),
        };
        let (words, length, next) = (*words, length as u8, NONE);
        let message = Message {
            words,
            time,
            from,
            to,
            from_node,
            to_node,
            group,
            next,
            length,
            stage,
            synchronous,
        };
        let id = self.messages.keep(message);
        if let Some(traffic) = traffic {
            traffic.push(leaves, from, number, id);
        }
        let receiver = &mut self.ranks[to as usize];
        match receiver.last {
            NONE => receiver.first = id,
            last => self.messages[last].next = id,
        }
        receiver.last = id;
        if receiver.wait == (Wait::Message { group, from }) {
            match stage {
                Stage::Arrived => self.wake(to),
                _ => receiver.wait = Wait::Arrival { message: id },
            }
        }
    }

    /// How long a message would be under way if it were alone.
    fn delay(&mut self, from: u32, to: u32, length: usize, leaves: u64) -> u64 {
        if from == to {
            return 0;
        }
        let (here, there) = (
            self.ranks[from as usize].place,
            self.ranks[to as usize].place,
        );
        let (from_end, to_end) = if here.node == there.node {
            (from, to)
        } else {
            (here.node, there.node)
        };
        let ends = Ends {
            seed: self.seed,
            from: from_end,
            to: to_end,
            node: here.node,
        };
        self.network.link(here, there).delay(
            ends,
            self.network.bytes(length),
            leaves,
            &mut self.ranks[from as usize].random,
        )
    }

    /// Receives the oldest message of a rank, or waits until it arrives; `None` if there is none.
    pub(super) fn receive(&mut self, route: Route) -> Option<Poll<(Words, usize)>> {
        let Route { group, from, to } = route;
        let (mut before, mut id) = (NONE, self.ranks[to as usize].first);
        while id != NONE {
            let message = &self.messages[id];
            if message.from == from && message.group == group {
                if message.stage == Stage::Arrived {
                    return Some(Poll::Ready(self.take(to, before, id)));
                }
                // Later ones may arrive earlier, and wait for this one.
                self.ranks[to as usize].wait = Wait::Arrival { message: id };
                return Some(Poll::Pending);
            }
            (before, id) = (id, message.next);
        }
        None
    }

    /// Waits until a message is sent.
    pub(super) fn await_message(&mut self, Route { group, from, to }: Route) {
        self.ranks[to as usize].wait = Wait::Message { group, from };
        self.attend(to, from);
    }

    /// Takes a message that has arrived out of the list of those for this rank.
    fn take(&mut self, rank: u32, before: u32, id: u32) -> (Words, usize) {
        let Message {
            words,
            time,
            from,
            next,
            length,
            synchronous,
            ..
        } = self.messages[id];
        let receiver = &mut self.ranks[rank as usize];
        receiver.advance_to(time);
        let taken = receiver.now;
        receiver.advance(self.network.receive_overhead.as_nanos() as u64);
        match before {
            NONE => receiver.first = next,
            before => self.messages[before].next = next,
        }
        if receiver.last == id {
            receiver.last = before;
        }
        self.messages.discard(id);
        if synchronous {
            // The acknowledgement has no words, needs no processor and waits for no card.
            let back = self.delay(rank, from, 0, taken);
            self.release(from, taken.saturating_add(back), Wait::WasTaken);
        }
        (words, length.into())
    }

    /// Ends the wait of a rank that needs to know how.
    fn release(&mut self, rank: u32, at: u64, how: Wait) {
        self.wake(rank);
        let rank = &mut self.ranks[rank as usize];
        rank.advance_to(at);
        rank.wait = how;
    }

    /// How the wait for a message to be taken ended, if it did.
    pub(super) fn was_taken(&mut self, rank: u32) -> Poll<bool> {
        let wait = &mut self.ranks[rank as usize].wait;
        let taken = match wait {
            Wait::WasTaken => true,
            Wait::WasRefused => false,
            _ => return Poll::Pending,
        };
        *wait = Wait::No;
        Poll::Ready(taken)
    }

    /// Puts a rank on the list of those who wait for `other`.
    fn attend(&mut self, rank: u32, other: u32) {
        let Rank {
            awaited,
            next_waiter: next,
            previous_waiter: previous,
            ..
        } = self.ranks[rank as usize];
        if awaited == other {
            return;
        }
        if awaited != NONE {
            match previous {
                NONE => self.ranks[awaited as usize].waiters = next,
                previous => self.ranks[previous as usize].next_waiter = next,
            }
            if next != NONE {
                self.ranks[next as usize].previous_waiter = previous;
            }
        }
        let first = core::mem::replace(&mut self.ranks[other as usize].waiters, rank);
        if first != NONE {
            self.ranks[first as usize].previous_waiter = rank;
        }
        let me = &mut self.ranks[rank as usize];
        (me.awaited, me.next_waiter, me.previous_waiter) = (other, first, NONE);
    }

    /// A rank has left a communicator: nobody waits for it there.
    pub(super) fn leave(&mut self, rank: u32, left: u32) {
        self.dismiss(rank, |group| group == left);
    }

    /// A rank has returned: nobody waits for it anywhere, and what was sent to it is lost.
    pub(super) fn retire(&mut self, rank: u32) {
        self.dismiss(rank, |_| true);
        let retired = &mut self.ranks[rank as usize];
        retired.wait = Wait::Gone;
        retired.last = NONE;
        let mut id = core::mem::replace(&mut retired.first, NONE);
        while id != NONE {
            let Message { next, stage, .. } = self.messages[id];
            // The others are discarded when they arrive.
            if stage == Stage::Arrived {
                self.messages.discard(id);
            }
            id = next;
        }
    }

    /// Wakes all who wait for a rank in certain communicators. They learn that it has left at the time when it did.
    fn dismiss(&mut self, rank: u32, concerned: impl Fn(u32) -> bool) {
        let (at, mut waiter) = (
            self.ranks[rank as usize].now,
            self.ranks[rank as usize].waiters,
        );
        while waiter != NONE {
            let Rank {
                wait, next_waiter, ..
            } = self.ranks[waiter as usize];
            match wait {
                Wait::Message { group, from } if from == rank && concerned(group) => {
                    self.release(waiter, at, Wait::No)
                }
                Wait::Taken { group, to } if to == rank && concerned(group) => {
                    self.release(waiter, at, Wait::WasRefused);
                }
                _ => {}
            }
            waiter = next_waiter;
        }
    }

    pub(super) fn is_gone(&self, rank: u32) -> bool {
        self.ranks[rank as usize].wait == Wait::Gone
    }

    /// A rank learns that another has returned: not before that did.
    pub(super) fn learn_of_end(&mut self, rank: u32, other: u32) {
        let ended = self.ranks[other as usize].now;
        if self.is_gone(other) {
            self.ranks[rank as usize].advance_to(ended);
        }
    }

    /// A rank waits for the other ranks of a communicator.
    pub(super) fn meet(&mut self, rank: u32) {
        self.ranks[rank as usize].wait = Wait::Meeting;
    }

    /// Ends such a wait, if that is what the rank does.
    pub(super) fn release_from_meeting(&mut self, rank: u32, at: u64) {
        if self.ranks[rank as usize].wait == Wait::Meeting {
            self.release(rank, at, Wait::No);
        }
    }

    /// How long so many ranks take to agree on something: up a tree and down again, on the slowest of the links
    /// between the first and the last.
    pub(super) fn agreement(&self, ranks: u32, first: u32, last: u32) -> u64 {
        let link = self
            .network
            .link(self.placement(first), self.placement(last));
        let rounds = 2 * u64::from(ranks.next_power_of_two().ilog2());
        rounds.saturating_mul(link.latency.as_nanos() as u64)
    }

    pub(super) fn now(&self, rank: u32) -> u64 {
        self.ranks[rank as usize].now
    }

    pub(super) fn placement(&self, rank: u32) -> RankPlacement {
        self.ranks[rank as usize].place
    }

    /// Lets a rank's time pass.
    pub(super) fn advance(&mut self, rank: u32, by: u64) {
        self.ranks[rank as usize].advance(by);
    }

    pub(super) fn read_clock(&mut self, rank: u32) -> Ticks {
        let cost = self.clocks.read_cost.as_nanos() as u64;
        let reader = &mut self.ranks[rank as usize];
        reader.advance(cost);
        let now = reader.now as i64;
        self.ticks_at(rank, now)
    }

    pub(super) fn ticks_at(&mut self, rank: u32, at: i64) -> Ticks {
        let node = self.ranks[rank as usize].place.node;
        self.node_clocks[node as usize].ticks_at(at, &self.clocks)
    }

    pub(super) fn messages_sent(&self) -> u64 {
        self.sent
    }

    /// What the ranks wait for that have not returned, if there are any.
    pub(super) fn check_all_gone(&self) -> Result<(), ClusterError> {
        let mut waiting = (0_u32..)
            .zip(&self.ranks)
            .filter(|(_, rank)| rank.wait != Wait::Gone);
        let Some((rank, first)) = waiting.next() else {
            return Ok(());
        };
        let waits_for = match first.wait {
            Wait::Message { from: other, .. } | Wait::Taken { to: other, .. } => Some(other),
            _ => None,
        };
        Err(ClusterError::Deadlock {
            waiting: 1 + waiting.count() as u32,
            rank,
            waits_for,
        })
    }
}
