//! The simulator: ranks, the messages between them, and the ranks that are ready to run.
//!
//! Ranks receive from a rank that they name, so the order in which ready ranks run does not matter:
//! every one finds the same messages, with the same times. Each runs until it waits.

use core::cell::{Cell, RefCell};
use core::task::Poll;
use std::collections::HashMap;

use downbeat_clock_core::Ticks;

use super::cluster::SimCluster;
use super::messages::{MessagePool, MessageStage, NONE, SimMessage};
use super::network::{LinkEnds, Network};
use super::node_clock::{Clocks, NodeClock};
use super::random::{Purpose, stream};
use super::rank_state::{RankState, RankWait};
use super::traffic::CardTraffic;
use crate::ClusterError;
use crate::RankPlacement;
use crate::payload::Words;

/// State that all ranks share.
#[derive(Debug)]
pub(super) struct SimWorld {
    pub(super) engine: RefCell<Engine>,
    /// Number of communicators that were created.
    pub(super) groups: Cell<u32>,
}

#[derive(Debug)]
pub(super) struct Engine {
    seed: u64,
    nodes_per_rack: Option<u32>,
    network: Network,
    clocks: Clocks,
    node_clocks: Vec<NodeClock>,
    ranks: Vec<RankState>,
    messages: MessagePool,
    /// Bytes of long messages, by the number that is their only word.
    parcels: HashMap<u64, Vec<u8>>,
    traffic: Option<CardTraffic>,
    /// Ranks that are ready to run, last in, first out: two that play ping-pong stay in the cache.
    ready: Vec<u32>,
    sent: u64,
}

/// Sender and receiver of a message, by their ranks in the whole cluster, and their communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageRoute {
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
            nodes_per_rack,
            ref network,
            ref clocks,
            seed,
        } = *cluster;
        let ranks_per_socket = ranks_per_node.div_ceil(sockets_per_node);
        let nodes = ranks.div_ceil(ranks_per_node);
        let rank = |rank: u32| {
            let socket = rank % ranks_per_node / ranks_per_socket;
            let random = stream(seed, Purpose::Rank, rank.into());
            RankState::new(random, rank / ranks_per_node, socket)
        };
        Self {
            seed,
            nodes_per_rack,
            network: network.clone(),
            clocks: clocks.clone(),
            node_clocks: (0..nodes)
                .map(|node| NodeClock::new(clocks, seed, node))
                .collect(),
            ranks: (0..ranks).map(rank).collect(),
            messages: MessagePool::new(),
            parcels: HashMap::new(),
            traffic: network.card.map(|card| CardTraffic::new(card, nodes)),
            ready: (0..ranks).rev().collect(),
            sent: 0,
        }
    }

    /// Returns a rank that is ready to run, after processing events if there is none.
    pub(super) fn next_ready(&mut self) -> Option<u32> {
        if self.ready.is_empty() {
            self.process_events();
        }
        self.ready.pop()
    }

    /// Processes events until ranks are ready. The first of them cannot send anything before its send
    /// overhead has passed; so earlier events need not wait for it, and many ranks become ready at
    /// once.
    fn process_events(&mut self) {
        let Some(traffic) = &mut self.traffic else {
            return;
        };
        let bytes = |length: u32| self.network.bytes(length as usize);
        let mut limit = u64::MAX;
        while let Some(id) = traffic.next_arrival(limit, &mut self.messages, bytes) {
            let SimMessage { to, time, .. } = self.messages[id];
            let wait = &mut self.ranks[to as usize].wait;
            match *wait {
                RankWait::Arrival { message } if message == id => {
                    *wait = RankWait::No;
                    self.ready.push(to);
                    limit = limit
                        .min(time.saturating_add(self.network.send_overhead.as_nanos() as u64));
                }
                RankWait::Gone => self.messages.discard(id),
                _ => {}
            }
        }
        // In the order of their addresses in memory.
        self.ready.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn wake(&mut self, rank: u32) {
        self.ranks[rank as usize].wait = RankWait::No;
        self.ready.push(rank);
    }

    /// Sends a message. With `synchronous`, the sender must then wait.
    pub(super) fn send(
        &mut self,
        route: MessageRoute,
        words: &Words,
        length: usize,
        synchronous: bool,
    ) {
        let MessageRoute { group, from, to } = route;
        let overhead = self.network.send_overhead.as_nanos() as u64;
        let sender = &mut self.ranks[from as usize];
        sender.advance(overhead);
        sender.sent = sender.sent.wrapping_add(1);
        let (leaves, number) = (sender.now, sender.sent);
        self.sent += 1;
        if synchronous {
            self.ranks[from as usize].wait = RankWait::Delivery { group, to };
            self.add_waiter(from, to);
        }
        let delay = self.delay(from, to, length, leaves);
        let (from_node, to_node) = (self.ranks[from as usize].node, self.ranks[to as usize].node);
        let traffic = self.traffic.as_mut().filter(|_| from_node != to_node);
        let (time, stage) = match traffic {
            Some(_) => (delay, MessageStage::Leaving),
            None => (leaves.saturating_add(delay), MessageStage::Arrived),
        };
        let (words, length, next) = (*words, length as u32, NONE);
        let message = SimMessage {
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
        if receiver.wait == (RankWait::Message { group, from }) {
            match stage {
                MessageStage::Arrived => self.wake(to),
                _ => receiver.wait = RankWait::Arrival { message: id },
            }
        }
    }

    /// Sends bytes as one message.
    pub(super) fn send_parcel(&mut self, route: MessageRoute, bytes: &[u8]) {
        let number = self.sent;
        self.parcels.insert(number, bytes.to_vec());
        let mut words = Words::default();
        words[0] = number;
        self.send(route, &words, bytes.len().div_ceil(size_of::<u64>()), false);
    }

    /// Returns the bytes of a received message.
    pub(super) fn take_parcel(&mut self, words: &Words) -> Option<Vec<u8>> {
        self.parcels.remove(&words[0])
    }

    /// Returns the latency of a message without contention.
    fn delay(&mut self, from: u32, to: u32, length: usize, leaves: u64) -> u64 {
        if from == to {
            return 0;
        }
        let (from_placement, to_placement) = (self.placement(from), self.placement(to));
        let (from_end, to_end) = if from_placement.node == to_placement.node {
            (from, to)
        } else {
            (from_placement.node, to_placement.node)
        };
        let ends = LinkEnds {
            seed: self.seed,
            from: from_end,
            to: to_end,
            node: from_placement.node,
        };
        self.network.link(from_placement, to_placement).delay(
            ends,
            self.network.bytes(length),
            leaves,
            &mut self.ranks[from as usize].random,
        )
    }

    /// Receives the oldest message of a rank, or waits until it arrives; `None` if there is none.
    pub(super) fn receive(&mut self, route: MessageRoute) -> Option<Poll<(Words, usize)>> {
        let MessageRoute { group, from, to } = route;
        let (mut previous, mut id) = (NONE, self.ranks[to as usize].first);
        while id != NONE {
            let message = &self.messages[id];
            if message.from == from && message.group == group {
                if message.stage == MessageStage::Arrived {
                    return Some(Poll::Ready(self.remove_message(to, previous, id)));
                }
                // Later ones may arrive earlier, but are received after this one.
                self.ranks[to as usize].wait = RankWait::Arrival { message: id };
                return Some(Poll::Pending);
            }
            (previous, id) = (id, message.next);
        }
        None
    }

    /// Waits until a message is sent.
    pub(super) fn await_message(&mut self, MessageRoute { group, from, to }: MessageRoute) {
        self.ranks[to as usize].wait = RankWait::Message { group, from };
        self.add_waiter(to, from);
    }

    /// Removes a message that has arrived from the list of this rank.
    fn remove_message(&mut self, rank: u32, previous: u32, id: u32) -> (Words, usize) {
        let SimMessage {
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
        match previous {
            NONE => receiver.first = next,
            previous => self.messages[previous].next = next,
        }
        if receiver.last == id {
            receiver.last = previous;
        }
        self.messages.discard(id);
        if synchronous {
            // The acknowledgement has no words, and takes neither processor time nor a network
            // card.
            let back = self.delay(rank, from, 0, taken);
            self.release(from, taken.saturating_add(back), RankWait::Delivered);
        }
        (words, length as usize)
    }

    /// Ends the wait of a rank, and stores the result of the wait.
    fn release(&mut self, rank: u32, at: u64, how: RankWait) {
        self.wake(rank);
        let rank = &mut self.ranks[rank as usize];
        rank.advance_to(at);
        rank.wait = how;
    }

    /// Returns true if the synchronous message was received, false if it never will be.
    pub(super) fn delivery(&mut self, rank: u32) -> Poll<bool> {
        let wait = &mut self.ranks[rank as usize].wait;
        let delivered = match wait {
            RankWait::Delivered => true,
            RankWait::Refused => false,
            _ => return Poll::Pending,
        };
        *wait = RankWait::No;
        Poll::Ready(delivered)
    }

    /// Adds a rank to the list of those that wait for `other`.
    fn add_waiter(&mut self, rank: u32, other: u32) {
        let RankState {
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

    /// Ends the waits for a rank that has left a communicator.
    pub(super) fn leave(&mut self, rank: u32, left_group: u32) {
        self.wake_waiters(rank, |group| group == left_group);
    }

    /// Ends the waits for a rank that has returned, and discards the messages to it.
    pub(super) fn retire(&mut self, rank: u32) {
        self.wake_waiters(rank, |_| true);
        let retired = &mut self.ranks[rank as usize];
        retired.wait = RankWait::Gone;
        retired.last = NONE;
        let mut id = core::mem::replace(&mut retired.first, NONE);
        while id != NONE {
            let SimMessage { next, stage, .. } = self.messages[id];
            // The others are discarded when they arrive.
            if stage == MessageStage::Arrived {
                self.messages.discard(id);
            }
            id = next;
        }
    }

    /// Wakes all ranks that wait for a rank in certain communicators, at the time when it left.
    fn wake_waiters(&mut self, rank: u32, concerned: impl Fn(u32) -> bool) {
        let (at, mut waiter) = (
            self.ranks[rank as usize].now,
            self.ranks[rank as usize].waiters,
        );
        while waiter != NONE {
            let RankState {
                wait, next_waiter, ..
            } = self.ranks[waiter as usize];
            match wait {
                RankWait::Message { group, from } if from == rank && concerned(group) => {
                    self.release(waiter, at, RankWait::No);
                }
                RankWait::Delivery { group, to } if to == rank && concerned(group) => {
                    self.release(waiter, at, RankWait::Refused);
                }
                _ => {}
            }
            waiter = next_waiter;
        }
    }

    pub(super) fn is_gone(&self, rank: u32) -> bool {
        self.ranks[rank as usize].wait == RankWait::Gone
    }

    /// Advances a rank to the time at which another returned.
    pub(super) fn advance_to_end_of(&mut self, rank: u32, other: u32) {
        let ended = self.ranks[other as usize].now;
        if self.is_gone(other) {
            self.ranks[rank as usize].advance_to(ended);
        }
    }

    /// Waits for the other ranks of a communicator.
    pub(super) fn await_split(&mut self, rank: u32) {
        self.ranks[rank as usize].wait = RankWait::Split;
    }

    /// Ends the wait of a rank in a split, if it is in one.
    pub(super) fn release_from_split(&mut self, rank: u32, at: u64) {
        if self.ranks[rank as usize].wait == RankWait::Split {
            self.release(rank, at, RankWait::No);
        }
    }

    /// Returns the time in which this number of ranks agree: up a tree and down again, on the
    /// slowest of the links between the first and the last.
    pub(super) fn agreement_time(&self, ranks: u32, first: u32, last: u32) -> u64 {
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
        let RankState { node, socket, .. } = self.ranks[rank as usize];
        RankPlacement {
            rack: self.nodes_per_rack.map_or(0, |nodes| node / nodes),
            ..RankPlacement::new(node, socket)
        }
    }

    /// Advances the time of a rank.
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

    /// Returns the step of all clocks in ticks.
    pub(super) fn clock_step(&self) -> u64 {
        self.clocks.granularity
    }

    pub(super) fn ticks_at(&mut self, rank: u32, at: i64) -> Ticks {
        let node = self.ranks[rank as usize].node;
        self.node_clocks[node as usize].ticks_at(at, &self.clocks)
    }

    pub(super) fn drift_at(&mut self, rank: u32, at: i64) -> f64 {
        let node = self.ranks[rank as usize].node;
        self.node_clocks[node as usize].drift_at(at, &self.clocks)
    }

    pub(super) fn messages_sent(&self) -> u64 {
        self.sent
    }

    /// Returns an error if there are ranks that have not returned.
    pub(super) fn check_all_gone(&self) -> Result<(), ClusterError> {
        let mut waiting = (0_u32..)
            .zip(&self.ranks)
            .filter(|(_, rank)| rank.wait != RankWait::Gone);
        let Some((rank, first)) = waiting.next() else {
            return Ok(());
        };
        let waits_for = match first.wait {
            RankWait::Message { from: other, .. } | RankWait::Delivery { to: other, .. } => {
                Some(other)
            }
            _ => None,
        };
        Err(ClusterError::Deadlock {
            waiting: 1 + waiting.count() as u32,
            rank,
            waits_for,
        })
    }
}
