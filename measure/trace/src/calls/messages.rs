//! Messages whose ends are matched while items pass: the first send of a channel belongs to the receive that
//! was posted first.

use std::collections::VecDeque;

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::observer::MessageEnd;
use super::post_order::PostOrder;

/// Processes, communicator and tag of messages that do not overtake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Channel {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) communicator: u32,
    pub(super) tag: i32,
}

/// Ends of messages that lack the other end so far.
#[derive(Debug)]
pub(super) struct MessageEnds {
    /// Ends by channel; true if they are sends.
    waiting: FxHashMap<Channel, (bool, VecDeque<MessageEnd>)>,
    orders: FxHashMap<u32, PostOrder<(Channel, MessageEnd)>>,
    /// Sends that are not complete, by process and request.
    started: FxHashMap<(u32, u64), MessageEnd>,
    /// Number of ends that wait.
    count: usize,
    most: usize,
}

impl MessageEnds {
    /// Creates the state before the first message; if more ends than `most` wait, no messages are matched any more.
    pub(super) fn new(most: usize) -> Self {
        Self {
            waiting: FxHashMap::default(),
            orders: FxHashMap::default(),
            started: FxHashMap::default(),
            count: 0,
            most,
        }
    }

    /// Returns true if messages are not matched any more: their ends are too far apart in the trace.
    pub(super) fn has_given_up(&self) -> bool {
        self.count > self.most
    }

    /// Ends the matching: receives that were posted and never complete do not hold others
    /// any more. Returns the numbers of sends and of receives without the other end.
    pub(super) fn finish(
        &mut self,
        matched: &mut impl FnMut(&MessageEnd, &MessageEnd),
    ) -> [usize; 2] {
        for (_, order) in std::mem::take(&mut self.orders) {
            self.add_all(order.finish(), matched);
        }
        let mut left = [0, 0];
        for (sends, ends) in self.waiting.values() {
            left[usize::from(!sends)] += ends.len();
        }
        left
    }

    /// Posts a receive in a call with this enter.
    pub(super) fn post(&mut self, process: u32, request: u64, enter: Option<Timestamp<Global>>) {
        if !self.has_given_up() {
            self.orders.entry(process).or_default().post(request, enter);
        }
    }

    /// Returns the enter of the call that posted a receive.
    pub(super) fn enter_of_post(&self, process: u32, request: u64) -> Option<Timestamp<Global>> {
        self.orders.get(&process)?.enter_of(request)
    }

    /// Keeps a send until its request is complete.
    pub(super) fn start_send(&mut self, process: u32, request: u64, send: MessageEnd) {
        if self.started.len() < self.most {
            self.started.insert((process, request), send);
        }
    }

    /// Returns the send whose request is complete.
    pub(super) fn complete_send(&mut self, process: u32, request: u64) -> Option<MessageEnd> {
        self.started.remove(&(process, request))
    }

    pub(super) fn cancel(
        &mut self,
        process: u32,
        request: u64,
        matched: &mut impl FnMut(&MessageEnd, &MessageEnd),
    ) {
        self.started.remove(&(process, request));
        if let Some(order) = self.orders.get_mut(&process) {
            let next = order.cancel(request);
            self.add_all(next, matched);
        }
    }

    pub(super) fn send(
        &mut self,
        channel: Channel,
        end: MessageEnd,
        matched: &mut impl FnMut(&MessageEnd, &MessageEnd),
    ) {
        self.add(channel, end, true, matched);
    }

    pub(super) fn receive(
        &mut self,
        channel: Channel,
        request: Option<u64>,
        end: MessageEnd,
        matched: &mut impl FnMut(&MessageEnd, &MessageEnd),
    ) {
        let order = match request {
            Some(_) => Some(self.orders.entry(channel.to).or_default()),
            None => self.orders.get_mut(&channel.to),
        };
        match order.filter(|order| request.is_some() || !order.is_empty()) {
            Some(order) => {
                let next = order.complete(request, (channel, end));
                self.add_all(next, matched);
            }
            None => self.add(channel, end, false, matched),
        }
    }

    fn add_all(
        &mut self,
        receives: Vec<(Channel, MessageEnd)>,
        matched: &mut impl FnMut(&MessageEnd, &MessageEnd),
    ) {
        for (channel, end) in receives {
            self.add(channel, end, false, matched);
        }
    }

    fn add(
        &mut self,
        channel: Channel,
        end: MessageEnd,
        sends: bool,
        matched: &mut impl FnMut(&MessageEnd, &MessageEnd),
    ) {
        if self.has_given_up() {
            return;
        }
        let (of, ends) = self.waiting.entry(channel).or_default();
        if ends.is_empty() {
            *of = sends;
        }
        if *of == sends {
            ends.push_back(end);
            self.count += 1;
            if self.has_given_up() {
                (self.waiting, self.orders, self.started) = Default::default();
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

    const CHANNEL: Channel = Channel {
        from: 0,
        to: 1,
        communicator: 0,
        tag: 5,
    };

    fn end(event: u64) -> MessageEnd {
        MessageEnd {
            location: 0,
            event,
            time: Timestamp::from_nanos(0),
            call: None,
            began: None,
            is_started: false,
        }
    }

    #[test]
    fn messages_of_a_channel_are_matched_in_order() {
        let (mut ends, mut found) = (MessageEnds::new(10), vec![]);
        let mut matched =
            |send: &MessageEnd, receive: &MessageEnd| found.push((send.event, receive.event));
        ends.receive(CHANNEL, None, end(10), &mut matched);
        ends.send(CHANNEL, end(0), &mut matched);
        ends.send(CHANNEL, end(1), &mut matched);
        ends.send(CHANNEL, end(2), &mut matched);
        ends.send(Channel { tag: 6, ..CHANNEL }, end(3), &mut matched);
        ends.post(1, 70, None);
        ends.post(1, 71, None);
        ends.receive(CHANNEL, Some(71), end(12), &mut matched);
        ends.receive(CHANNEL, Some(70), end(11), &mut matched);
        assert_eq!(ends.finish(&mut |_, _| {}), [1, 0]);
        assert_eq!(found, [(0, 10), (1, 11), (2, 12)]);
    }

    #[test]
    fn too_many_waiting_ends_are_given_up() {
        let mut ends = MessageEnds::new(3);
        for event in 0..9 {
            ends.send(CHANNEL, end(event), &mut |_, _| {});
        }
        assert!(ends.has_given_up());
        ends.receive(CHANNEL, None, end(0), &mut |_, _| {
            panic!("not matched any more")
        });
    }
}
