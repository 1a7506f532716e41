//! Wait states of a whole trace.

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::collective::collective;
use super::late_receiver::late_receiver;
use super::late_sender::late_sender;
use super::pattern::WaitPattern;
use super::sums::WaitSums;
use crate::calls::{Call, CallObserver, MessageEnd, Operation, ProgramNames};

/// Finds the wait states of a trace, told by a [`CallWalk`](crate::calls::CallWalk).
///
/// ```
/// use downbeat_trace::calls::CallWalk;
/// use downbeat_trace::formats::TraceReader;
/// use downbeat_trace::waits::{WaitPattern, WaitStates};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let text = "# downbeat trace 1\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
///             region 0 MPI_Send\nregion 1 MPI_Recv\n\
///             1 10 enter 1\n0 50 enter 0\n0 51 send 1 0 7\n0 60 leave 0\n1 65 receive 0 0 7\n1 70 leave 1\nend 6\n";
/// let mut reader = TraceReader::new("example.dbt".as_ref(), text.as_bytes())?;
/// let (mut walk, mut states) = (CallWalk::default(), WaitStates::default());
/// while let Some(item) = reader.next_item()? {
///     walk.take(&item, &mut states);
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
}

/// Call with messages.
#[derive(Debug)]
struct OpenWait {
    call: Call,
    leave: Option<Timestamp<Global>>,
    sends: bool,
    receives: bool,
    /// Number of messages without the other end.
    unmatched: usize,
    /// Last enter of a call at the other end of a received message, and of a sent one.
    send_enter: Option<Timestamp<Global>>,
    receive_enter: Option<Timestamp<Global>>,
}

impl WaitStates {
    /// Returns the sums of all waits. Messages without a counterpart do not count.
    pub fn finish(mut self) -> WaitSums {
        for (_, wait) in self.open.drain() {
            wait.add_to(&mut self.sums);
        }
        self.sums
    }

    /// Takes the enter of the call at the other end of a message of a call.
    fn matched(&mut self, end: &MessageEnd, other: &MessageEnd, sends: bool) {
        let Some(number) = end.call.map(|call| call.number) else {
            return;
        };
        let Some(wait) = self.open.get_mut(&number) else {
            return;
        };
        wait.unmatched = wait.unmatched.saturating_sub(1);
        let last = match sends {
            true => &mut wait.receive_enter,
            false => &mut wait.send_enter,
        };
        *last = (*last).max(other.call.map(|call| call.enter));
        self.close(number);
    }

    /// Adds a call to the sums, if it is complete.
    fn close(&mut self, number: u64) {
        let is_complete = |wait: &OpenWait| wait.unmatched == 0 && wait.leave.is_some();
        if self.open.get(&number).is_some_and(is_complete)
            && let Some(wait) = self.open.remove(&number)
        {
            wait.add_to(&mut self.sums);
        }
    }
}

impl CallObserver for WaitStates {
    fn event(&mut self, location: u32, time: Timestamp<Global>, _: u64) {
        self.sums.extend(location, time);
    }

    fn left(&mut self, names: &ProgramNames, call: &Call, leave: Timestamp<Global>) {
        if self.open.is_empty() {
            return;
        }
        if let Some(wait) = self.open.get_mut(&call.number) {
            wait.leave = Some(leave);
            wait.sends &= !names.only_starts_sending(call.region);
            self.close(call.number);
        }
    }

    fn message_end(&mut self, end: &MessageEnd, sends: bool) {
        let Some(call) = end.call else { return };
        let wait = self.open.entry(call.number).or_insert(OpenWait {
            call,
            leave: None,
            sends: false,
            receives: false,
            unmatched: 0,
            send_enter: None,
            receive_enter: None,
        });
        wait.unmatched += 1;
        wait.sends |= sends;
        wait.receives |= !sends;
    }

    fn message(&mut self, send: &MessageEnd, receive: &MessageEnd) {
        self.matched(send, receive, true);
        self.matched(receive, send, false);
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        collective(operation, |pattern, member, lost| {
            self.sums.add(pattern, member.location, member.region, lost);
        });
    }
}

impl OpenWait {
    fn add_to(&self, sums: &mut WaitSums) {
        let Some(leave) = self.leave else { return };
        let times = [self.call.enter, leave];
        let mut add = |pattern, lost: Duration| {
            sums.add(pattern, self.call.location, self.call.region, lost);
        };
        if let Some(enter) = self.send_enter {
            add(WaitPattern::LateSender, late_sender(times, enter));
        }
        // A call that also receives may wait for that instead.
        if let Some(enter) = self.receive_enter.filter(|_| self.sends && !self.receives) {
            add(WaitPattern::LateReceiver, late_receiver(times, enter));
        }
    }
}
