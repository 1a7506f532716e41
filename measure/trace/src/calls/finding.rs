//! Findings about the calls of a program.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::names::ProgramNames;
use crate::CollectiveKind;

/// A call of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Location of the call.
    pub location: u32,
    /// Number of the region, as [`ProgramNames`] has it.
    pub region: u32,
    /// Number of the call in the whole trace.
    pub number: u64,
    /// Time at which the region was entered.
    pub enter: Timestamp<Global>,
    /// Number of calls that the region stands for: see
    /// [`FoldedCalls`](super::FoldedCalls).
    pub calls: u64,
}

/// Part of a call in which no region inside it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSegment {
    /// Location of the call.
    pub location: u32,
    /// Number of the region.
    pub region: u32,
    /// Begin and end.
    pub times: [Timestamp<Global>; 2],
    /// Index of the event that ends it, on its location.
    pub last: u64,
}

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEnd {
    /// Location of the event.
    pub location: u32,
    /// Index of the event on its location.
    pub event: u64,
    /// Time of the event.
    pub time: Timestamp<Global>,
    /// Innermost call at that time, if it is one of MPI.
    pub call: Option<Call>,
    /// Enter of the call of MPI that began it: the same one, or the one that posted the
    /// receive.
    pub began: Option<Timestamp<Global>>,
    /// True for a send that another event completes.
    pub is_started: bool,
}

/// Collective operation that all members have left.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Kind of the operation.
    pub kind: CollectiveKind,
    /// Index of the root among the members; meaningless if the kind has none.
    pub root: u32,
    /// All members, in the order of their ranks.
    pub members: &'a [OperationMember],
}

/// Member of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationMember {
    /// Location that left the operation.
    pub location: u32,
    /// Region that took part.
    pub region: u32,
    /// Time at which the member entered or started the operation: others can wait for it.
    pub enter: Timestamp<Global>,
    /// Time from which the member can wait: its enter, or that of the call that completes the operation.
    pub waits_from: Timestamp<Global>,
    /// Time at which the member left the operation.
    pub exit: Timestamp<Global>,
    /// True if the member contributed data.
    pub sent: bool,
    /// True if the member received data.
    pub received: bool,
}

impl OperationMember {
    /// Returns the time from the member's enter to `until`, at most to its exit.
    pub fn waited_until(&self, until: Timestamp<Global>) -> Duration {
        let waited = until.min(self.exit) - self.waits_from;
        waited.max(Duration::ZERO)
    }
}

/// Finding of a [`CallWalk`](super::CallWalk).
#[derive(Clone, Copy, Debug)]
pub enum CallFinding<'a> {
    /// An event of a location, before all that it ends or begins.
    Event {
        /// Location of the event.
        location: u32,
        /// Time of the event.
        time: Timestamp<Global>,
        /// Index of the event on its location.
        index: u64,
    },
    /// A part of a call, at its end.
    Segment(&'a CallSegment),
    /// A call that was left at this time.
    Left {
        /// The call.
        call: &'a Call,
        /// Time at which it was left.
        leave: Timestamp<Global>,
        /// Names of the program.
        names: &'a ProgramNames,
    },
    /// A send, or else a receive, before it is matched.
    MessageEnd {
        /// The end.
        end: &'a MessageEnd,
        /// True for a send.
        sends: bool,
    },
    /// The completion of a send that [only started](MessageEnd::is_started) before, in
    /// this call of MPI.
    SendCompleted {
        /// The send.
        send: &'a MessageEnd,
        /// Call that completes it.
        call: &'a Call,
    },
    /// A message with both ends.
    Message {
        /// Its send.
        send: &'a MessageEnd,
        /// Its receive.
        receive: &'a MessageEnd,
    },
    /// A complete collective operation.
    Operation(&'a Operation<'a>),
}
