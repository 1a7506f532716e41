//! Events of one thread, made of its records.

use std::collections::{BTreeMap, VecDeque};
use std::{mem, slice};

use downbeat_files::FileError;
use downbeat_trace::AccessKind;
use downbeat_trace::CollectiveKind;
use downbeat_trace::Event;
use downbeat_trace::calls::FoldedCalls;

use super::rank::{Communicator, Rank};
use crate::packed::PackedRecords;
use crate::rank_file::BlockPlace;
use crate::record::{Envelope, Operation, Record, kind};

/// Events of a thread in the order of time.
#[derive(Debug)]
pub(super) struct ThreadEvents<'a> {
    rank: &'a Rank,
    thread: u32,
    /// Region of the time in which calls were not recorded.
    not_recorded: u32,
    /// Global time less local time, roughly: only the order of locations in the file
    /// depends on it.
    ahead: i64,
    blocks: slice::Iter<'a, BlockPlace>,
    records: PackedRecords,
    pub(super) events: VecDeque<ThreadEvent>,
    /// Calls that were entered and not left.
    open: Vec<OpenCall>,
    /// Events that precede the leave of the innermost call.
    pending: Vec<Event<'static>>,
    /// Accesses that are not complete, by window and target; and the number of all.
    accesses: BTreeMap<(u32, i32), Vec<PendingAccess>>,
    issued: u64,
    last: i64,
    /// Time since which calls are missing.
    pub(super) gap: i64,
    /// Number of records that were read.
    pub(super) read: u64,
    /// Number of calls that were entered, and of those that were not recorded.
    pub(super) calls: u64,
    pub(super) dropped: u64,
}

/// Event of a thread.
#[derive(Debug)]
pub(super) struct ThreadEvent {
    pub(super) time: i64,
    pub(super) event: Event<'static>,
    /// Text of a note, instead.
    pub(super) note: Option<String>,
}

/// Id of an access in the trace, and in its record, if it can be completed alone.
type PendingAccess = (u64, Option<u64>);

/// Number of events that wait for the end of a call, at most.
const MOST_EVENTS: usize = 1 << 18;

/// Call that is under way.
#[derive(Debug, Default)]
struct OpenCall {
    region: u32,
    /// Events of what it sends and starts, which wait for its success.
    sends: Vec<usize>,
    /// Error of its messages and accesses, unless it fails: the library may have refused
    /// them.
    wrong: Option<FileError>,
}

impl<'a> ThreadEvents<'a> {
    pub(super) fn new(rank: &'a Rank, thread: u32, not_recorded: u32) -> Self {
        let (missing, first) = (rank.file.missing.since, rank.samples.first());
        Self {
            rank,
            thread,
            not_recorded,
            ahead: first.map_or(0, |of| of.nanos.saturating_sub(rank.local.nanos(of.ticks))),
            blocks: rank.file.blocks.iter(),
            records: PackedRecords::default(),
            events: VecDeque::new(),
            open: vec![],
            pending: vec![],
            accesses: BTreeMap::new(),
            issued: 0,
            last: i64::MIN,
            gap: missing.map_or(i64::MAX, |since| rank.local.nanos(since)),
            read: 0,
            calls: 0,
            dropped: 0,
        }
    }

    /// Returns the time of the next event, roughly by the global clock; `None` at the
    /// end.
    pub(super) fn next_time(&mut self) -> Result<Option<i64>, FileError> {
        while self.events.is_empty() || self.open.iter().any(|open| !open.sends.is_empty()) {
            if self.events.len() > MOST_EVENTS {
                // The program left a call by longjmp.
                self.open.iter_mut().for_each(|open| open.sends.clear());
            }
            let Some(record) = self.next_record()? else {
                // Calls that were under way when the thread ended.
                self.pending.clear();
                while let Some(OpenCall { region, .. }) = self.open.pop() {
                    self.push(self.last, Event::Leave { region });
                }
                break;
            };
            self.read += 1;
            self.add_record(&record)?;
        }
        let first = self.events.front();
        Ok(first.map(|event| event.time.saturating_add(self.ahead)))
    }

    /// Makes a note of an event that was taken, because calls of its rank are missing
    /// before it.
    pub(super) fn leave_out(&mut self, event: &mut ThreadEvent) {
        if let Event::Access { request, .. } = event.event {
            self.withdraw_access(request);
        }
        event.note = Some("after calls that were not recorded".to_owned());
    }

    fn next_record(&mut self) -> Result<Option<Record>, FileError> {
        let (file, thread) = (&self.rank.file, self.thread);
        loop {
            let record = self.records.next_record();
            let record = record.map_err(|flaw| flaw.in_file(&file.path))?;
            if record.is_some() {
                return Ok(record);
            }
            let Some(block) = self.blocks.find(|block| block.thread == thread) else {
                return Ok(None);
            };
            self.records = file.read_block(*block)?;
        }
    }

    fn add_record(&mut self, record: &Record) -> Result<(), FileError> {
        let [request, second, third] = record.rest;
        match record.kind() {
            kind::ENTER => self.enter_call(record)?,
            kind::LEAVE => self.leave_call(record)?,
            kind::SEND => self.send_message(record.message()),
            kind::RECEIVE => self.receive_message(record.message(), None),
            kind::POST => self.pending.push(Event::PostReceive { request }),
            kind::COMPLETE => self.receive_message(record.message(), Some(third)),
            kind::CANCEL => self.pending.push(Event::CancelReceive { request }),
            kind::START => self.start_operation(record.communicator(), Some(request)),
            kind::COLLECTIVE => self.end_operation(record, None)?,
            kind::FINISH => self.end_operation(record, Some(second))?,
            kind::ACCESS => match AccessKind::ALL.get(record.flags() as usize) {
                Some(kind) => self.issue_access(*kind, record),
                None => self.complete_accesses(record),
            },
            kind::FOLDED => {
                let region = self.find_region(record.call())?;
                self.calls += record.calls();
                self.push_stretch(region, record);
            }
            kind::DROPPED => {
                self.dropped += record.calls();
                if let Some(ticks) = record.gap() {
                    self.gap = self.gap.min(self.rank.local.nanos(ticks));
                }
                self.push_stretch(self.not_recorded, record);
            }
            _ => {}
        }
        Ok(())
    }

    fn enter_call(&mut self, record: &Record) -> Result<(), FileError> {
        let region = self.find_region(record.call())?;
        self.calls += 1;
        let time = self.rank.local.nanos(record.rest[0]);
        self.push(time, Event::Enter { region });
        let call = OpenCall::default();
        self.open.push(OpenCall { region, ..call });
        if let Some(communicator) = record.communicator().checked_sub(1) {
            self.start_operation(communicator, None);
        }
        Ok(())
    }

    fn leave_call(&mut self, record: &Record) -> Result<(), FileError> {
        let region = self.find_region(record.call())?;
        let (time, failed) = (self.rank.local.nanos(record.rest[0]), record.flags() == 1);
        let entered = self.open.iter().rposition(|open| open.region == region);
        let entered = entered.unwrap_or(self.open.len());
        let mut left = self.open.split_off(entered).into_iter();
        let Some(open) = left.next() else {
            // It was entered while nothing was recorded.
            self.pending.clear();
            return Ok(());
        };
        // Regions of a program may overlap: those inside end here, as do calls that the
        // program left by longjmp.
        for OpenCall { region, sends, .. } in left.rev() {
            self.withdraw_sends(&sends, false);
            self.push(time, Event::Leave { region });
        }
        if let Some(why) = open.wrong.filter(|_| !failed) {
            return Err(why);
        }
        if failed {
            // A rank whose arguments were wrong took no part in the operation.
            let is_end = |event: &Event<'_>| matches!(event, Event::CollectiveEnd { .. });
            let took_part = self.pending.iter().any(is_end);
            self.withdraw_sends(&open.sends, took_part);
        }
        for event in mem::take(&mut self.pending) {
            self.push(time, event);
        }
        self.push(time, Event::Leave { region });
        Ok(())
    }

    /// Makes notes of what a call that failed would have sent or accessed, and of its
    /// operation unless it took part.
    fn withdraw_sends(&mut self, sends: &[usize], took_part: bool) {
        for index in sends {
            let Some(event) = self.events.get_mut(*index) else {
                continue;
            };
            let is_operation = !matches!(event.event, Event::Send { .. } | Event::Access { .. });
            if !(is_operation && took_part) {
                event.note = Some("failed".to_owned());
            }
            if let Event::Access { request, .. } = event.event {
                self.withdraw_access(request);
            }
        }
    }

    fn withdraw_access(&mut self, id: u64) {
        for pending in self.accesses.values_mut() {
            pending.retain(|access| access.0 != id);
        }
    }

    fn send_message(&mut self, message: Envelope) {
        if let Some((to, communicator)) = self.find_peer(message.communicator, message.peer) {
            self.push_start(Event::Send {
                to,
                communicator,
                tag: message.tag,
                request: None,
                bytes: message.bytes,
            });
        }
    }

    /// Adds a message that was received at the leave of the innermost call, which may
    /// have completed the posted receive with this id.
    fn receive_message(&mut self, message: Envelope, request: Option<u64>) {
        let Some((from, communicator)) = self.find_peer(message.communicator, message.peer) else {
            return;
        };
        let (tag, bytes) = (message.tag, message.bytes);
        self.pending.push(Event::Receive {
            from,
            communicator,
            tag,
            request,
            bytes,
        });
    }

    fn issue_access(&mut self, kind: AccessKind, record: &Record) {
        let (window, [rank, bytes, request]) = (record.communicator(), record.rest);
        if let Some((target, communicator)) = self.find_peer(window, rank as i32) {
            let id = self.issued;
            self.issued += 1;
            let pending = self.accesses.entry((window, rank as i32)).or_default();
            pending.push((id, request.checked_sub(1)));
            self.push_start(Event::Access {
                kind,
                target,
                communicator,
                request: id,
                bytes: Some(bytes),
            });
        }
    }

    /// Completes the accesses in a window to one target or all, or only the one with a
    /// request.
    fn complete_accesses(&mut self, record: &Record) {
        let window = record.communicator();
        let [target, wanted, _] = record.rest.map(|word| word.checked_sub(1));
        let [first, last] = target.map_or([i32::MIN, i32::MAX], |target| [target as i32; 2]);
        let Some(of) = self.find_communicator(window) else {
            return;
        };
        let communicator = of.index;
        for (_, pending) in self.accesses.range_mut((window, first)..=(window, last)) {
            let complete = pending.extract_if(.., |of| wanted.is_none() || of.1 == wanted);
            self.pending
                .extend(complete.map(|access| Event::AccessComplete {
                    communicator,
                    request: access.0,
                }));
        }
    }

    /// Adds the start of a blocking operation, or of the one with this request.
    fn start_operation(&mut self, communicator: u32, request: Option<u64>) {
        let Some(of) = self.find_communicator(communicator) else {
            return;
        };
        let communicator = of.index;
        for request in requests_in_trace(of, request) {
            self.push_start(Event::CollectiveBegin {
                communicator,
                request,
            });
        }
    }

    /// Adds the end of a collective operation at the leave of the innermost call, which
    /// may have found the request complete.
    fn end_operation(&mut self, record: &Record, request: Option<u64>) -> Result<(), FileError> {
        let why = "a collective operation has an unknown kind".to_owned();
        let operation = record.operation().ok_or_else(|| self.rank.refuse(why))?;
        let Some(of) = self.find_communicator(operation.communicator) else {
            return Ok(());
        };
        let communicator = of.index;
        for (sender, request) in requests_in_trace(of, request).into_iter().enumerate() {
            let mut part = operation;
            if let Some(side) = of.side {
                part.keep_direction(side == sender);
            }
            self.pending.push(Event::CollectiveEnd {
                communicator,
                kind: part.kind,
                root: part.root,
                sent: part.sent,
                received: part.received,
                request,
                bytes: part.bytes,
            });
        }
        Ok(())
    }

    /// Adds an event at the enter of the innermost call.
    fn push_start(&mut self, event: Event<'static>) {
        if let Some(open) = self.open.last_mut() {
            open.sends.push(self.events.len());
        }
        self.push(self.last, event);
    }

    /// Adds a region that stands for the calls of a record.
    fn push_stretch(&mut self, region: u32, record: &Record) {
        let [first, last, count] = record.rest;
        let [first, last] = [first, last].map(|ticks| self.rank.local.nanos(ticks));
        self.push(first, Event::Enter { region });
        self.push(first, Event::Leave { region });
        if let Some(event) = self.events.back_mut() {
            event.note = Some(FoldedCalls(count).to_string());
        }
        self.push(last, Event::Leave { region });
    }

    fn push(&mut self, time: i64, event: Event<'static>) {
        // Times of a thread never decrease, unless its clock did.
        self.last = self.last.max(time);
        self.events.push_back(ThreadEvent {
            time: self.last,
            event,
            note: None,
        });
    }

    fn find_region(&self, call: u16) -> Result<u32, FileError> {
        let known = self.rank.regions.get(&call).copied();
        known.ok_or_else(|| self.rank.refuse(format!("call {call} has no name")))
    }

    /// Returns a communicator by its number in records; `None` if it is unknown.
    fn find_communicator(&self, number: u32) -> Option<&'a Communicator> {
        self.rank.communicators.get(&number)
    }

    /// Returns the location of the other end of a message or access, by its rank, and its
    /// communicator; `None` if one of them is unknown.
    fn find_peer(&mut self, communicator: u32, rank: i32) -> Option<(u32, u32)> {
        let known = self.find_communicator(communicator)?;
        let peer = known.peers.get(rank as usize);
        if let (None, Some(open)) = (peer, self.open.last_mut()) {
            let size = known.peers.len();
            let why = format!("a message has rank {rank} of {size} at its other end");
            open.wrong = Some(self.rank.refuse(why));
        }
        Some((*peer?, known.index))
    }
}

/// Returns the requests in the trace of an operation with this request, or of a blocking
/// one.
///
/// An operation between two groups is two operations of all members: what the first group
/// sends the other one, and the reverse. No member waits for others of its own group. A
/// member takes part in both at the same time, so they have requests.
fn requests_in_trace(of: &Communicator, request: Option<u64>) -> Vec<Option<u64>> {
    /// Ids of requests begin with the number of a thread, which leaves the first bits.
    const BLOCKING: u64 = 1 << 61;
    let marked = [1 << 63, 1 << 62].map(|mark| Some(request.unwrap_or(BLOCKING) | mark));
    of.side.map_or(vec![request], |_| marked.to_vec())
}

impl Operation {
    /// Keeps the part of an operation in which one group sends, for one of its members or
    /// a member of the other group.
    fn keep_direction(&mut self, sends: bool) {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Alltoallv, ReduceScatter};
        // The data of each member decide, in kinds without a root.
        if !matches!(self.kind, Allgather | Alltoall | Alltoallv | ReduceScatter) {
            self.kind = Allreduce;
        }
        self.root = 0;
        self.sent &= sends;
        self.received &= !sends;
        self.bytes = self.bytes.map(|bytes| if sends { bytes } else { 0 });
    }
}
