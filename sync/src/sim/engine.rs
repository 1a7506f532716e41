//! The simulator: ranks, the messages between them, and the ranks that are ready to run.
//!
//! Ranks receive from a rank that they name, so the order in which ready ranks run does not matter:
//! every one finds the same messages, with the same times. Each runs until it waits.
//!
//! An engine simulates one part of the cluster. What concerns other parts goes to its `mail`.

mod other_parts;

use core::hint::black_box;
use core::task::Poll;
use std::collections::HashMap;

use downbeat_clock_core::Ticks;

use super::cluster::SimCluster;
use super::messages::{MessageKind, MessagePool, MessageStage, NONE, SimMessage};
use super::network::{LinkEnds, Network};
use super::news::{Crossing, Departure};
use super::node_clock::{Clocks, NodeClock};
use super::part::SimPart;
use super::part_vec::PartVec;
use super::random::{Purpose, stream};
use super::rank_state::{RankState, RankWait};
use super::traffic::CardTraffic;
use crate::RankPlacement;
use crate::payload::Words;

#[derive(Debug)]
pub(super) struct Engine {
    seed: u64,
    layout: NodeLayout,
    network: Network,
    clocks: Clocks,
    part: SimPart,
    node_clocks: PartVec<NodeClock>,
    ranks: PartVec<RankState>,
    messages: MessagePool,
    /// Bytes of long messages, by the number that is their only word.
    parcels: HashMap<u64, Vec<u8>>,
    parcels_kept: u64,
    traffic: Option<CardTraffic>,
    /// Ranks that are ready to run, last in, first out: two that play ping-pong stay in the cache.
    ready: Vec<u32>,
    /// Number of ready ranks, at the bottom of the stack, whose state was not loaded ahead.
    not_loaded: usize,
    sent: u64,
    /// News for every part, if there are several.
    mail: Vec<Vec<Crossing>>,
    /// Ranks of other parts that have returned, and the times.
    returned: HashMap<u32, u64>,
    /// First of the ranks that wait for one of another part, by that.
    remote_waiters: HashMap<u32, u32>,
}

/// Ranks of a part that have not returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingRanks {
    pub(super) first: u32,
    /// Rank that the first one waits for.
    pub(super) waits_for: Option<u32>,
    pub(super) count: u32,
}

/// Assignment of ranks to nodes and sockets.
#[derive(Clone, Copy, Debug)]
struct NodeLayout {
    ranks_per_node: u32,
    ranks_per_socket: u32,
    nodes_per_rack: Option<u32>,
}

impl NodeLayout {
    fn node_and_socket(self, rank: u32) -> (u32, u32) {
        let socket = rank % self.ranks_per_node / self.ranks_per_socket;
        (rank / self.ranks_per_node, socket)
    }
}

/// Number of ranks whose state is loaded at once: as many cache misses as a processor has in flight.
const LOADED_AT_ONCE: usize = 16;

/// Sender and receiver of a message, by their ranks in the whole cluster, and their communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageRoute {
    pub(super) group: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Engine {
    /// Creates the engine of one of `parts` parts.
    pub(super) fn new(cluster: &SimCluster, part: SimPart, parts: usize) -> Self {
        let SimCluster {
            ranks: _,
            ranks_per_node,
            sockets_per_node,
            nodes_per_rack,
            ref network,
            ref clocks,
            seed,
        } = *cluster;
        let layout = NodeLayout {
            ranks_per_node,
            ranks_per_socket: ranks_per_node.div_ceil(sockets_per_node),
            nodes_per_rack,
        };
        let state = |rank: u32| {
            let random = stream(seed, Purpose::Rank, rank.into());
            let (node, socket) = layout.node_and_socket(rank);
            RankState::new(random, node, socket)
        };
        let nodes = || part.nodes.clone();
        Self {
            seed,
            layout,
            network: network.clone(),
            clocks: clocks.clone(),
            node_clocks: PartVec::new(nodes(), |node| NodeClock::new(clocks, seed, node)),
            ranks: PartVec::new(part.ranks.clone(), state),
            messages: MessagePool::new(),
            parcels: HashMap::new(),
            parcels_kept: 0,
            traffic: network.card.map(|card| CardTraffic::new(card, nodes())),
            ready: part.ranks.clone().rev().collect(),
            not_loaded: usize::MAX,
            sent: 0,
            mail: (0..parts).map(|_| vec![]).collect(),
            returned: HashMap::new(),
            remote_waiters: HashMap::new(),
            part,
        }
    }

    /// Returns a rank that is ready to run, after processing events before `end` if there is none.
    pub(super) fn next_ready(&mut self, end: u64) -> Option<u32> {
        if self.ready.is_empty() {
            self.process_events(end);
            self.not_loaded = usize::MAX;
        }
        self.ready.pop()
    }

    /// Loads the state of the next ready ranks into the cache, all at once: one after the other,
    /// each would wait for its own. Returns these ranks; none if they are loaded.
    pub(super) fn load_ahead(&mut self) -> &[u32] {
        if self.ready.len() >= self.not_loaded {
            return &[];
        }
        self.not_loaded = self.ready.len().saturating_sub(LOADED_AT_ONCE);
        let next = &self.ready[self.not_loaded..];
        for rank in next {
            let state = &self.ranks[*rank];
            if state.first != NONE {
                black_box(self.messages[state.first].time);
            }
            if self.ranks.contains(state.awaited) {
                black_box(self.ranks[state.awaited].now);
            }
            black_box(self.node_clocks[state.node].drift);
        }
        next
    }

    /// Processes events before `end` until ranks are ready. The first of them cannot send anything
    /// before its send overhead has passed; so earlier events need not wait for it, and many ranks
    /// become ready at once.
    fn process_events(&mut self, end: u64) {
        let Some(traffic) = &mut self.traffic else {
            return;
        };
        let (mut limit, mut crossed, mut departed) = (end, vec![], vec![]);
        while let Some(event) = traffic.first(limit) {
            let id = event.id();
            let message = &mut self.messages[id];
            let bytes = self.network.bytes(message.length as usize);
            if message.stage == MessageStage::Leaving {
                // The field was the latency.
                message.time = traffic.leave(event, message, bytes);
                if self.ranks.contains(message.to) {
                    message.stage = MessageStage::Travelling;
                    traffic.postpone_first(event, message.time);
                } else {
                    traffic.remove_first();
                    crossed.push((*message, event.number()));
                    self.messages.discard(id);
                }
                continue;
            }
            traffic.remove_first();
            if message.stage == MessageStage::Departure {
                departed.push(Departure::of_message(message));
                self.messages.discard(id);
                continue;
            }
            message.time = traffic.arrive(event, message, bytes);
            message.stage = MessageStage::Arrived;
            let SimMessage { to, time, .. } = *message;
            let wait = &mut self.ranks[to].wait;
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
        for (message, number) in crossed {
            self.send_crossing(message, number);
        }
        for departure in departed {
            self.tell_others(departure);
        }
        // In the order of their addresses in memory.
        self.ready.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn wake(&mut self, rank: u32) {
        self.ranks[rank].wait = RankWait::No;
        self.ready.push(rank);
    }

    /// Sends a message. The sender of a synchronous one must then wait.
    pub(super) fn send(
        &mut self,
        route: MessageRoute,
        words: &Words,
        length: usize,
        kind: MessageKind,
    ) {
        let MessageRoute { group, from, to } = route;
        let overhead = self.network.send_overhead.as_nanos() as u64;
        let sender = &mut self.ranks[from];
        sender.advance(overhead);
        sender.sent = sender.sent.wrapping_add(1);
        let (leaves, number) = (sender.now, sender.sent);
        self.sent += 1;
        if kind == MessageKind::Synchronous {
            self.ranks[from].wait = RankWait::Delivery { group, to };
            self.add_waiter(from, to);
        }
        let delay = self.delay(from, to, length, leaves);
        let (from_node, to_node) = (self.ranks[from].node, self.node_and_socket(to).0);
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
            kind,
        };
        let here = self.ranks.contains(to);
        if !here && traffic.is_none() {
            self.send_crossing(message, number);
            return;
        }
        let id = self.messages.keep(message);
        if let Some(traffic) = traffic {
            traffic.push(leaves, from, number, id);
        }
        if here {
            self.append(id);
        }
    }

    /// Appends a message to those of its receiver, who may wait for it.
    fn append(&mut self, id: u32) {
        let SimMessage {
            from,
            to,
            group,
            stage,
            ..
        } = self.messages[id];
        let receiver = &mut self.ranks[to];
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
        let mut words = Words::default();
        words[0] = self.keep_parcel(bytes.to_vec());
        let length = bytes.len().div_ceil(size_of::<u64>());
        self.send(route, &words, length, MessageKind::Parcel);
    }

    /// Keeps bytes until they are received, and returns their number.
    fn keep_parcel(&mut self, bytes: Vec<u8>) -> u64 {
        self.parcels_kept += 1;
        self.parcels.insert(self.parcels_kept, bytes);
        self.parcels_kept
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
            &mut self.ranks[from].random,
        )
    }

    /// Receives the oldest message of a rank, or waits until it arrives; `None` if there is none.
    pub(super) fn receive(&mut self, route: MessageRoute) -> Option<Poll<(Words, usize)>> {
        let MessageRoute { group, from, to } = route;
        let (mut previous, mut id) = (NONE, self.ranks[to].first);
        while id != NONE {
            let message = &self.messages[id];
            if message.from == from && message.group == group {
                if message.stage == MessageStage::Arrived {
                    return Some(Poll::Ready(self.remove_message(to, previous, id)));
                }
                // Later ones may arrive earlier, but are received after this one.
                self.ranks[to].wait = RankWait::Arrival { message: id };
                return Some(Poll::Pending);
            }
            (previous, id) = (id, message.next);
        }
        None
    }

    /// Waits until a message is sent.
    pub(super) fn await_message(&mut self, MessageRoute { group, from, to }: MessageRoute) {
        self.ranks[to].wait = RankWait::Message { group, from };
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
            kind,
            ..
        } = self.messages[id];
        let receiver = &mut self.ranks[rank];
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
        if kind == MessageKind::Synchronous {
            // The acknowledgement has no words, and takes neither processor time nor a network
            // card.
            let back = self.delay(rank, from, 0, taken);
            self.deliver(from, taken.saturating_add(back));
        }
        (words, length as usize)
    }

    /// Ends the wait of a rank, and stores the result of the wait.
    fn release(&mut self, rank: u32, at: u64, how: RankWait) {
        self.wake(rank);
        let rank = &mut self.ranks[rank];
        rank.advance_to(at);
        rank.wait = how;
    }

    /// Returns true if the synchronous message was received, false if it never will be.
    pub(super) fn delivery(&mut self, rank: u32) -> Poll<bool> {
        let wait = &mut self.ranks[rank].wait;
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
        } = self.ranks[rank];
        if awaited == other {
            return;
        }
        if awaited != NONE {
            match previous {
                NONE => *self.waiters(awaited) = next,
                previous => self.ranks[previous].next_waiter = next,
            }
            if next != NONE {
                self.ranks[next].previous_waiter = previous;
            }
        }
        let first = core::mem::replace(self.waiters(other), rank);
        if first != NONE {
            self.ranks[first].previous_waiter = rank;
        }
        let me = &mut self.ranks[rank];
        (me.awaited, me.next_waiter, me.previous_waiter) = (other, first, NONE);
    }

    /// Returns the first rank of the list of those that wait for this one.
    fn waiters(&mut self, rank: u32) -> &mut u32 {
        if self.ranks.contains(rank) {
            &mut self.ranks[rank].waiters
        } else {
            self.remote_waiters.entry(rank).or_insert(NONE)
        }
    }

    /// Ends the waits for a rank that has left a communicator.
    pub(super) fn leave(&mut self, rank: u32, left_group: u32, at: u64) {
        self.wake_waiters(rank, at, |group| group == left_group);
    }

    /// Ends the waits for a rank that has returned, and discards the messages to it.
    pub(super) fn retire(&mut self, rank: u32) {
        let at = self.now(rank);
        self.wake_waiters(rank, at, |_| true);
        self.tell_departure(Departure {
            member: rank,
            left: None,
            at,
        });
        let retired = &mut self.ranks[rank];
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
    fn wake_waiters(&mut self, rank: u32, at: u64, concerned: impl Fn(u32) -> bool) {
        let mut waiter = if self.ranks.contains(rank) {
            self.ranks[rank].waiters
        } else {
            self.remote_waiters.get(&rank).copied().unwrap_or(NONE)
        };
        while waiter != NONE {
            let RankState {
                wait, next_waiter, ..
            } = self.ranks[waiter];
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

    #[inline]
    pub(super) fn is_gone(&self, rank: u32) -> bool {
        if self.ranks.contains(rank) {
            self.ranks[rank].wait == RankWait::Gone
        } else {
            self.returned.contains_key(&rank)
        }
    }

    /// Advances a rank to the time at which another returned.
    pub(super) fn advance_to_end_of(&mut self, rank: u32, other: u32) {
        if self.is_gone(other) {
            let returned = self.returned.get(&other).copied();
            let ended = returned.unwrap_or_else(|| self.now(other));
            self.ranks[rank].advance_to(ended);
        }
    }

    /// Returns true if a rank is simulated by this engine.
    pub(super) fn is_here(&self, rank: u32) -> bool {
        self.ranks.contains(rank)
    }

    /// Waits for the other ranks of a communicator.
    pub(super) fn await_split(&mut self, rank: u32) {
        self.ranks[rank].wait = RankWait::Split;
    }

    /// Ends the wait of a rank of this part in a split, if it is in one.
    pub(super) fn release_from_split(&mut self, rank: u32, at: u64) {
        if self.is_here(rank) && self.ranks[rank].wait == RankWait::Split {
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
        self.ranks[rank].now
    }

    fn node_and_socket(&self, rank: u32) -> (u32, u32) {
        if self.ranks.contains(rank) {
            let RankState { node, socket, .. } = self.ranks[rank];
            (node, socket)
        } else {
            self.layout.node_and_socket(rank)
        }
    }

    pub(super) fn placement(&self, rank: u32) -> RankPlacement {
        let (node, socket) = self.node_and_socket(rank);
        RankPlacement {
            rack: self.layout.nodes_per_rack.map_or(0, |nodes| node / nodes),
            ..RankPlacement::new(node, socket)
        }
    }

    /// Advances the time of a rank.
    pub(super) fn advance(&mut self, rank: u32, by: u64) {
        self.ranks[rank].advance(by);
    }

    pub(super) fn read_clock(&mut self, rank: u32) -> Ticks {
        let cost = self.clocks.read_cost.as_nanos() as u64;
        let reader = &mut self.ranks[rank];
        reader.advance(cost);
        let now = reader.now as i64;
        self.ticks_at(rank, now)
    }

    /// Returns the step of all clocks in ticks.
    pub(super) fn clock_step(&self) -> u64 {
        self.clocks.granularity
    }

    pub(super) fn ticks_at(&mut self, rank: u32, at: i64) -> Ticks {
        let node = self.ranks[rank].node;
        self.node_clocks[node].ticks_at(at, &self.clocks)
    }

    pub(super) fn drift_at(&mut self, rank: u32, at: i64) -> f64 {
        let node = self.ranks[rank].node;
        self.node_clocks[node].drift_at(at, &self.clocks)
    }

    pub(super) fn messages_sent(&self) -> u64 {
        self.sent
    }

    /// Returns the latest time that a rank has reached.
    pub(super) fn ended(&self) -> u64 {
        let times = self.ranks.iter().map(|(_, rank)| rank.now);
        times.max().unwrap_or_default()
    }

    /// Returns the ranks that have not returned.
    pub(super) fn waiting(&self) -> Option<WaitingRanks> {
        let mut waiting = self
            .ranks
            .iter()
            .filter(|(_, rank)| rank.wait != RankWait::Gone);
        let (first, state) = waiting.next()?;
        let waits_for = match state.wait {
            RankWait::Message { from: other, .. } | RankWait::Delivery { to: other, .. } => {
                Some(other)
            }
            _ => None,
        };
        let count = 1 + waiting.count() as u32;
        Some(WaitingRanks {
            first,
            waits_for,
            count,
        })
    }
}
