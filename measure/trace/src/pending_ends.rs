//! Messages whose ends are matched while events pass: the first send of a channel belongs
//! to the receive that was posted first.
//!
//! Unlike the [channels](super::channels) of a [`Trace`](super::Trace), which has all
//! events, this has only the ends in memory that lack the other one.

use std::collections::VecDeque;
use std::hash::Hash;

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::Event;
use super::post_order::PostOrder;

/// Maximum number of complete receives of a process that wait for one which was posted
/// before them, if the memory is limited.
const LONGEST: usize = 4_096;

/// Messages between two processes that do not overtake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MessageChannel {
    from: u32,
    to: u32,
    communicator: u32,
    tag: i32,
}

impl MessageChannel {
    /// Returns the channel of a message that a process sends or receives.
    #[inline]
    pub(super) fn of(
        event: Event<'_>,
        process: u32,
        process_of: impl FnOnce(u32) -> u32,
    ) -> Option<Self> {
        let tag = event.tag()?;
        let (peer, communicator) = (process_of(event.peer()?), event.communicator()?);
        let [from, to] = match event {
            Event::Send { .. } => [process, peer],
            _ => [peer, process],
        };
        Some(Self {
            from,
            to,
            communicator,
            tag,
        })
    }
}

/// Ends of messages that lack the other end so far, by any names of channels.
#[derive(Debug)]
pub(super) struct PendingEnds<C, E> {
    /// Ends by channel; true if they are sends.
    waiting: FxHashMap<C, (bool, VecDeque<E>)>,
    /// Receives of each process that wait for others which were posted before.
    orders: FxHashMap<u32, PostOrder<(C, E)>>,
    /// Number of ends that wait in channels.
    count: usize,
    /// Maximum of this number, and that of complete receives that wait for another one.
    most: [usize; 2],
}

impl<C, E> Default for PendingEnds<C, E> {
    /// Returns the state before the first message, without limits.
    fn default() -> Self {
        Self {
            waiting: FxHashMap::default(),
            orders: FxHashMap::default(),
            count: 0,
            most: [usize::MAX; 2],
        }
    }
}

impl<C, E> PendingEnds<C, E> {
    /// Creates the state before the first message; if more ends than `most` wait, no
    /// messages are matched any more.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: [most, LONGEST],
            ..Self::default()
        }
    }

    /// Returns true if messages are not matched any more: their ends are too far apart in
    /// the trace.
    pub(super) fn has_given_up(&self) -> bool {
        self.count > self.most[0]
    }

    /// Returns the ends without the other end; true with those that are sends.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = (bool, &E)> {
        let all = self.waiting.values();
        all.flat_map(|(sends, ends)| ends.iter().map(|end| (*sends, end)))
    }
}

impl<C: Copy + Eq + Hash, E> PendingEnds<C, E> {
    /// Ends the matching: receives that were posted and never complete do not hold others
    /// any more.
    pub(super) fn finish(&mut self, matched: &mut impl FnMut(&E, &E)) {
        for (_, order) in std::mem::take(&mut self.orders) {
            self.add_receives(order.finish(), matched);
        }
    }

    /// Takes an event of a process in a call with this enter, and the end that it is of a
    /// channel, if it is one.
    #[inline]
    pub(super) fn take(
        &mut self,
        (process, event): (u32, Event<'_>),
        enter: Option<Timestamp<Global>>,
        end: Option<(C, E)>,
        matched: &mut impl FnMut(&E, &E),
    ) {
        match (event, end) {
            (Event::PostReceive { request }, _) if !self.has_given_up() => {
                self.order(process).post(request, enter);
            }
            (Event::CancelReceive { request }, _) => {
                if let Some(order) = self.orders.get_mut(&process) {
                    let next = order.cancel(request);
                    self.add_receives(next, matched);
                }
            }
            (Event::Receive { request, .. }, Some(end)) => {
                self.receive(process, request, end, matched);
            }
            (event, Some((channel, end))) => {
                let sends = matches!(event, Event::Send { .. } | Event::Signal { .. });
                self.add(channel, end, sends, matched);
            }
            _ => {}
        }
    }

    /// Returns the enter of the call that posted a receive.
    pub(super) fn enter_of_post(&self, process: u32, request: u64) -> Option<Timestamp<Global>> {
        self.orders.get(&process)?.enter_of(request)
    }

    /// Adds a receive of a process, with its request if it was posted.
    fn receive(
        &mut self,
        process: u32,
        request: Option<u64>,
        (channel, end): (C, E),
        matched: &mut impl FnMut(&E, &E),
    ) {
        let order = match request {
            Some(_) => Some(self.order(process)),
            None => self.orders.get_mut(&process),
        };
        match order.filter(|order| request.is_some() || !order.is_empty()) {
            Some(order) => {
                let next = order.complete(request, (channel, end));
                self.add_receives(next, matched);
            }
            None => self.add(channel, end, false, matched),
        }
    }

    fn order(&mut self, process: u32) -> &mut PostOrder<(C, E)> {
        let order = self.orders.entry(process);
        order.or_insert_with(|| PostOrder::new(self.most[1]))
    }

    fn add_receives(&mut self, receives: Vec<(C, E)>, matched: &mut impl FnMut(&E, &E)) {
        for (channel, end) in receives {
            self.add(channel, end, false, matched);
        }
    }

    fn add(&mut self, channel: C, end: E, sends: bool, matched: &mut impl FnMut(&E, &E)) {
        if self.has_given_up() {
            return;
        }
        if self.waiting.len() == self.waiting.capacity() && !self.waiting.contains_key(&channel) {
            // The table would grow: channels that are used only once may be many.
            self.waiting.retain(|_, (_, ends)| !ends.is_empty());
            self.waiting.reserve(1 + self.waiting.len());
        }
        let (of, ends) = self.waiting.entry(channel).or_default();
        if ends.is_empty() {
            *of = sends;
        }
        if *of == sends {
            ends.push_back(end);
            self.count += 1;
            if self.has_given_up() {
                (self.waiting, self.orders) = Default::default();
            }
        } else if let Some(other) = ends.pop_front() {
            self.count -= 1;
            match sends {
                true => matched(&end, &other),
                false => matched(&other, &end),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Channel, by its tag.
    const CHANNEL: i32 = 5;

    #[test]
    fn messages_of_a_channel_are_matched_in_order() {
        let (mut ends, mut found) = (PendingEnds::new(10), vec![]);
        let mut matched = |send: &i32, receive: &i32| found.push((*send, *receive));
        ends.receive(1, None, (CHANNEL, 10), &mut matched);
        ends.add(CHANNEL, 0, true, &mut matched);
        ends.add(CHANNEL, 1, true, &mut matched);
        ends.add(CHANNEL, 2, true, &mut matched);
        ends.add(6, 3, true, &mut matched);
        for request in [70, 71] {
            let post = (1, Event::PostReceive { request });
            ends.take(post, None, None, &mut matched);
        }
        ends.receive(1, Some(71), (CHANNEL, 12), &mut matched);
        ends.receive(1, Some(70), (CHANNEL, 11), &mut matched);
        ends.finish(&mut |_, _| {});
        assert_eq!(ends.unmatched().collect::<Vec<_>>(), [(true, &3)]);
        assert_eq!(found, [(0, 10), (1, 11), (2, 12)]);
    }

    #[test]
    fn too_many_waiting_ends_are_given_up() {
        let mut ends = PendingEnds::new(3);
        for event in 0..9 {
            ends.add(CHANNEL, event, true, &mut |_, _| {});
        }
        assert!(ends.has_given_up());
        ends.receive(1, None, (CHANNEL, 0), &mut |_, _| {
            panic!("not matched any more")
        });
    }
}
