//! Wait states of a whole trace.

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::collective::collective;
use super::late_receiver::late_receiver;
use super::late_sender::late_sender;
use super::pattern::WaitPattern;
use super::sums::WaitSums;
use crate::calls::{Call, CallFinding, MessageEnd, ProgramNames};

/// Maximum number of sends that wait for their completion; further ones do not count.
const MOST_STARTED: usize = 1 << 21;

/// Finds the wait states of a trace, told by a [`CallWalk`](crate::calls::CallWalk).
///
/// ```
/// use downbeat_trace::calls::CallWalk;
/// use downbeat_trace::formats::TraceReader;
/// use downbeat_trace::waits::{WaitPattern, WaitStates};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
///             region 0 MPI_Send\nregion 1 MPI_Recv\n\
///             1 10 enter 1\n0 50 enter 0\n0 51 send 1 0 7\n0 60 leave 0\n1 65 receive 0 0 7\n1 70 leave 1\nend 6\n";
/// let mut reader = TraceReader::new("example.dbt".as_ref(), text.as_bytes())?;
/// let (mut walk, mut states) = (CallWalk::default(), WaitStates::default());
/// while let Some(item) = reader.next_item()? {
///     walk.add_item(&item, &mut |found| states.add_finding(found));
/// }
/// let lost = states.finish().by_pattern()[&WaitPattern::LateSender].lost;
/// assert_eq!(lost.as_nanos(), 40);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct WaitStates {
    sums: WaitSums,
    /// Calls with messages that are not matched or that were not left, by their numbers.
    open: FxHashMap<u64, OpenWait>,
    /// Sends that are not complete or not matched, by their locations and events.
    started: FxHashMap<(u32, u64), StartedSend>,
}

/// Call that completes messages.
#[derive(Debug)]
struct OpenWait {
    call: Call,
    leave: Option<Timestamp<Global>>,
    waits_for_senders: bool,
    waits_for_receivers: bool,
    /// Number of messages without the other end.
    unmatched: usize,
    /// Last enter of a call that sent a received message.
    send_enter: Option<Timestamp<Global>>,
    /// Last enter of a call that began the receive of a sent message.
    receive_enter: Option<Timestamp<Global>>,
}

/// Send that another call completes than the one that starts it.
#[derive(Clone, Copy, Debug)]
enum StartedSend {
    Open,
    /// Matched, but not complete: the enter of the call that began its receive.
    Matched(Option<Timestamp<Global>>),
    /// Complete, but not matched: the number of the call.
    Complete(u64),
}

impl WaitStates {
    /// Returns the sums of all waits. Messages without a counterpart do not count.
    pub fn finish(mut self) -> WaitSums {
        for (_, wait) in self.open.drain() {
            wait.add_to(&mut self.sums);
        }
        self.sums
    }

    /// Takes what a walk has found.
    pub fn add_finding(&mut self, found: &CallFinding<'_>) {
        match *found {
            CallFinding::Event { location, time, .. } => self.sums.extend(location, time),
            CallFinding::Left { call, leave, names } => self.leave(call, leave, names),
            CallFinding::MessageEnd { end, sends } => self.add_end(end, sends),
            CallFinding::SendCompleted { send, call } => self.complete_send(send, call),
            CallFinding::Message { send, receive } => self.match_ends(send, receive),
            CallFinding::Operation(operation) => {
                collective(operation, |pattern, member, lost| {
                    self.sums.add(pattern, member.location, member.region, lost);
                });
            }
            CallFinding::Segment(_) => {}
        }
    }

    fn leave(&mut self, call: &Call, leave: Timestamp<Global>, names: &ProgramNames) {
        if self.open.is_empty() {
            return;
        }
        self.change(call.number, |wait| {
            wait.leave = Some(leave);
            wait.waits_for_senders = names.waits_for_senders(call.region);
            wait.waits_for_receivers = names.waits_for_receivers(call.region);
        });
    }

    fn add_end(&mut self, end: &MessageEnd, sends: bool) {
        if sends && end.is_started {
            if self.started.len() < MOST_STARTED {
                let key = (end.location, end.event);
                self.started.insert(key, StartedSend::Open);
            }
        } else if let Some(call) = end.call {
            self.add_unmatched(call);
        }
    }

    fn complete_send(&mut self, send: &MessageEnd, call: &Call) {
        let key = (send.location, send.event);
        match self.started.remove(&key) {
            Some(StartedSend::Open) => {
                self.add_unmatched(*call);
                self.started.insert(key, StartedSend::Complete(call.number));
            }
            Some(StartedSend::Matched(receive_enter)) => {
                self.add_unmatched(*call);
                self.match_send(call.number, receive_enter);
            }
            Some(StartedSend::Complete(_)) | None => {}
        }
    }

    fn match_ends(&mut self, send: &MessageEnd, receive: &MessageEnd) {
        let key = (send.location, send.event);
        match send.is_started.then(|| self.started.remove(&key)).flatten() {
            Some(StartedSend::Complete(number)) => self.match_send(number, receive.began),
            Some(_) => {
                let matched = StartedSend::Matched(receive.began);
                self.started.insert(key, matched);
            }
            None => {
                if let Some(call) = send.call {
                    self.match_send(call.number, receive.began);
                }
            }
        }
        if let Some(call) = receive.call {
            self.change(call.number, |wait| {
                wait.unmatched = wait.unmatched.saturating_sub(1);
                wait.send_enter = wait.send_enter.max(send.began);
            });
        }
    }

    /// Takes the enter of the call that began the receive of a message, whose send the
    /// call with this number completes.
    fn match_send(&mut self, number: u64, receive_enter: Option<Timestamp<Global>>) {
        self.change(number, |wait| {
            wait.unmatched = wait.unmatched.saturating_sub(1);
            wait.receive_enter = wait.receive_enter.max(receive_enter);
        });
    }

    /// Adds a message without the other end to a call that completes it.
    fn add_unmatched(&mut self, call: Call) {
        let wait = self.open.entry(call.number).or_insert(OpenWait {
            call,
            leave: None,
            waits_for_senders: false,
            waits_for_receivers: false,
            unmatched: 0,
            send_enter: None,
            receive_enter: None,
        });
        wait.unmatched += 1;
    }

    /// Changes what is known of an open call, and adds it to the sums if it is complete.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut OpenWait)) {
        let Some(wait) = self.open.get_mut(&number) else {
            return;
        };
        change(wait);
        if wait.unmatched == 0
            && wait.leave.is_some()
            && let Some(wait) = self.open.remove(&number)
        {
            wait.add_to(&mut self.sums);
        }
    }
}

impl OpenWait {
    fn add_to(&self, sums: &mut WaitSums) {
        let Some(leave) = self.leave else { return };
        let times = [self.call.enter, leave];
        let mut add = |pattern, lost: Duration| {
            sums.add(pattern, self.call.location, self.call.region, lost);
        };
        let send_enter = self.send_enter.filter(|_| self.waits_for_senders);
        let lost = send_enter.map_or(Duration::ZERO, |enter| late_sender(times, enter));
        add(WaitPattern::LateSender, lost);
        // A call that waited for a sender may have waited for that alone.
        let receive_enter = self.receive_enter.filter(|_| self.waits_for_receivers);
        if let Some(enter) = receive_enter.filter(|_| lost == Duration::ZERO) {
            add(WaitPattern::LateReceiver, late_receiver(times, enter));
        }
    }
}
