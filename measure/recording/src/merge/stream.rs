//! Events of one thread, made of its records.

use std::collections::VecDeque;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_trace::calls::FoldedCalls;
use downbeat_trace::formats::{Item, What};

use super::accesses::Accesses;
use super::definitions::{Communicator, Definitions, Rank};
use super::operations;
use crate::rank_file::BlockPlace;
use crate::record::{self, Access, Operation, Record};

/// Events of a thread in the order of time.
#[derive(Debug)]
pub(super) struct ThreadStream<'a> {
    rank: &'a Rank,
    location: u32,
    /// Region of the time in which calls were not recorded.
    not_recorded: u32,
    /// Global time less local time, roughly: only the order of locations in the file depends on it.
    ahead: i64,
    blocks: std::vec::IntoIter<BlockPlace>,
    words: Vec<u64>,
    at: usize,
    events: VecDeque<Event>,
    /// Calls that were entered and not left.
    open: Vec<Open>,
    /// Events that precede the leave of the innermost call.
    pending: Vec<What<'static>>,
    last: i64,
    /// Number of records that were read.
    pub(super) read: u64,
    pub(super) calls: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) accesses: Accesses,
    pub(super) dropped: u64,
}

#[derive(Debug)]
struct Event {
    time: i64,
    what: What<'static>,
    /// Text of a note, instead.
    note: Option<String>,
    /// True if calls are missing from here on.
    is_gap: bool,
}

/// Number of events that wait for the end of a call, at most.
const MOST_EVENTS: usize = 1 << 18;

/// A call that is under way.
#[derive(Debug)]
struct Open {
    region: u32,
    /// Events of what it sends and starts, which wait for its success.
    sends: Vec<usize>,
    /// Error of what it sends, unless it fails.
    wrong: Option<FileError>,
}

impl<'a> ThreadStream<'a> {
    pub(super) fn new(of: &'a Definitions, rank: &'a Rank, thread: u32, location: u32) -> Self {
        let blocks = rank.file.blocks.iter().copied();
        let blocks: Vec<_> = blocks.filter(|block| block.thread == thread).collect();
        let first = rank.samples.first();
        Self {
            rank,
            location,
            not_recorded: of.regions.len() as u32,
            ahead: first.map_or(0, |sample| {
                sample.nanos.saturating_sub(rank.local.nanos(sample.ticks))
            }),
            blocks: blocks.into_iter(),
            words: vec![],
            at: 0,
            events: VecDeque::new(),
            open: vec![],
            pending: vec![],
            last: i64::MIN,
            read: 0,
            calls: 0,
            sent: 0,
            received: 0,
            accesses: Accesses::default(),
            dropped: 0,
        }
    }

    /// Returns the time of the next event, roughly by the global clock; `None` at the end.
    pub(super) fn head(&mut self) -> Result<Option<i64>, FileError> {
        while self.events.is_empty() || self.open.iter().any(|open| !open.sends.is_empty()) {
            if self.events.len() > MOST_EVENTS {
                // The program left a call by longjmp.
                self.open.iter_mut().for_each(|open| open.sends.clear());
            }
            if self.record()?.is_none() {
                self.close();
                break;
            }
        }
        let first = self.events.front();
        Ok(first.map(|event| event.time.saturating_add(self.ahead)))
    }

    /// Returns the rank.
    pub(super) fn rank(&self) -> u32 {
        self.rank.rank
    }

    /// Returns the time since which calls of the rank are missing, if its file states it.
    pub(super) fn gap_of_rank(&self) -> Option<i64> {
        self.rank.file.missing.since.map(|since| self.time(since))
    }

    /// Returns the time of the next event, if calls are missing from there on.
    pub(super) fn gap(&self) -> Option<i64> {
        let next = self.events.front()?;
        next.is_gap.then_some(next.time)
    }

    /// Makes a note of the next event, and returns true, if it needs a partner and calls of
    /// this rank are missing since this time: partners are found by counting.
    pub(super) fn cut_off(&mut self, gap: Option<i64>) -> bool {
        let Some(event) = self.events.front_mut() else {
            return false;
        };
        let is_after = gap.is_some_and(|gap| event.time >= gap);
        if !is_after || event.note.is_some() {
            return false;
        }
        match event.what {
            What::Enter { .. } | What::Leave { .. } | What::Note(_) => return false,
            What::Send { .. } => self.sent -= 1,
            What::Receive { .. } | What::CompleteReceive { .. } => self.received -= 1,
            What::Access { kind, request, .. } => self.accesses.withdraw(kind, request),
            _ => {}
        }
        event.note = Some("after calls that were not recorded".to_owned());
        true
    }

    /// Gives the next event to `sink`.
    pub(super) fn pop(
        &mut self,
        sink: impl FnOnce(&Item<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let Some(event) = self.events.pop_front() else {
            return Ok(());
        };
        let what = event.note.as_deref().map_or(event.what, What::Note);
        sink(&Item::Event {
            location: self.location,
            time: Timestamp::<Global>::from_nanos(event.time),
            what,
        })
    }

    /// Takes the next record; `None` at the end.
    fn record(&mut self) -> Result<Option<()>, FileError> {
        let mut text = String::new();
        loop {
            if let Some((record, rest)) = record::read(&self.words[self.at..], &mut text) {
                self.at = self.words.len() - rest.len();
                self.read += 1;
                return self.take(&record).map(Some);
            }
            let Some(block) = self.blocks.next() else {
                return Ok(None);
            };
            self.rank.file.records(block, &mut self.words)?;
            self.at = 0;
        }
    }

    fn take(&mut self, record: &Record<'_>) -> Result<(), FileError> {
        match *record {
            Record::Enter {
                call,
                collective,
                ticks,
            } => {
                let region = self.region(call)?;
                let time = self.time(ticks);
                self.calls += 1;
                self.push(time, What::Enter { region });
                self.open.push(Open {
                    region,
                    sends: vec![],
                    wrong: None,
                });
                for start in collective
                    .and_then(|number| self.communicator(number))
                    .into_iter()
                    .flat_map(|of| operations::starts(of, None))
                {
                    self.starts(start);
                }
            }
            Record::Leave {
                call,
                failed,
                ticks,
            } => {
                let region = self.region(call)?;
                self.leave(region, ticks, failed)?;
            }
            Record::Send(message) => {
                if let Some((to, communicator)) = self.receiver(message.communicator, message.peer)
                {
                    self.starts(What::Send {
                        to,
                        communicator,
                        tag: message.tag,
                        request: None,
                        bytes: message.bytes,
                    });
                    self.sent += 1;
                }
            }
            Record::Start {
                communicator,
                request,
            } => {
                for start in self
                    .communicator(communicator)
                    .into_iter()
                    .flat_map(|of| operations::starts(of, Some(request)))
                {
                    self.starts(start);
                }
            }
            Record::Receive(message) => {
                if let Some((from, communicator)) = self.peer(message.communicator, message.peer)? {
                    self.received += 1;
                    self.pending.push(What::Receive {
                        from,
                        communicator,
                        tag: message.tag,
                        bytes: message.bytes,
                    });
                }
            }
            Record::Post { request } => self.pending.push(What::PostReceive { request }),
            Record::Complete { message, request } => {
                if let Some((from, communicator)) = self.peer(message.communicator, message.peer)? {
                    self.received += 1;
                    self.pending.push(What::CompleteReceive {
                        from,
                        communicator,
                        tag: message.tag,
                        bytes: message.bytes,
                        request,
                    });
                }
            }
            Record::Cancel { request } => self.pending.push(What::CancelReceive { request }),
            Record::Collective(operation) => self.ends(operation, None),
            Record::Finish { operation, request } => self.ends(operation, Some(request)),
            Record::Access(access) => self.access(access),
            Record::AccessesComplete {
                window,
                target,
                request,
            } => {
                if let Some(of) = self.communicator(window) {
                    let communicator = of.index;
                    let complete = self.accesses.complete(window, target, request);
                    self.pending
                        .extend(complete.into_iter().map(|request| What::AccessComplete {
                            communicator,
                            request,
                        }));
                }
            }
            Record::Folded {
                call,
                first,
                last,
                count,
            } => {
                let region = self.region(call)?;
                self.calls += count;
                self.stretch(region, [first, last], FoldedCalls(count));
            }
            Record::Dropped { first, last, count } => {
                self.dropped += count;
                let (region, place) = (self.not_recorded, self.events.len());
                self.stretch(region, [first, last], FoldedCalls(count));
                if let Some(event) = self.events.get_mut(place).filter(|_| count > 0) {
                    event.is_gap = true;
                }
            }
            Record::Text(_) => {}
        }
        Ok(())
    }

    fn access(&mut self, access: Access) {
        if let Some((target, communicator)) = self.receiver(access.window, access.target) {
            let request = self.accesses.issue(access);
            self.starts(What::Access {
                kind: access.kind,
                target,
                communicator,
                request,
                bytes: Some(access.bytes),
            });
        }
    }

    fn leave(&mut self, region: u32, ticks: u64, failed: bool) -> Result<(), FileError> {
        let time = self.time(ticks);
        let entered = self.open.iter().rposition(|open| open.region == region);
        // It was entered while nothing was recorded.
        let Some(entered) = entered else {
            self.pending.clear();
            return Ok(());
        };
        // Regions of a program may overlap: those inside end here, as do calls that the program left by longjmp.
        let inner = self.open.split_off(entered + 1);
        inner
            .iter()
            .for_each(|open| self.withdraw(&open.sends, false));
        self.leave_all(time, inner);
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        if let Some(why) = open.wrong.filter(|_| !failed) {
            return Err(why);
        }
        if failed {
            // A rank whose arguments were wrong took no part in the operation.
            let is_end = |what: &What<'_>| {
                matches!(
                    what,
                    What::CollectiveEnd { .. } | What::CollectiveComplete { .. }
                )
            };
            let took_part = self.pending.iter().any(is_end);
            self.withdraw(&open.sends, took_part);
        }
        for what in std::mem::take(&mut self.pending) {
            self.push(time, what);
        }
        self.push(time, What::Leave { region });
        Ok(())
    }

    /// Makes notes of what a call that failed would have sent or accessed, and of its
    /// operation unless it took part.
    fn withdraw(&mut self, sends: &[usize], took_part: bool) {
        for index in sends {
            let Some(event) = self.events.get_mut(*index) else {
                continue;
            };
            match event.what {
                What::Send { .. } => self.sent -= 1,
                What::Access { kind, request, .. } => self.accesses.withdraw(kind, request),
                _ if took_part => continue,
                _ => {}
            }
            event.note = Some("failed".to_owned());
        }
    }

    /// Leaves calls, the innermost first.
    fn leave_all(&mut self, time: i64, open: Vec<Open>) {
        for Open { region, .. } in open.into_iter().rev() {
            self.push(time, What::Leave { region });
        }
    }

    /// Leaves the calls that were under way when the thread ended.
    fn close(&mut self) {
        self.pending.clear();
        let open = std::mem::take(&mut self.open);
        self.leave_all(self.last, open);
    }

    /// Adds an event at the enter of the innermost call.
    fn starts(&mut self, what: What<'static>) {
        if let Some(open) = self.open.last_mut() {
            open.sends.push(self.events.len());
        }
        self.push(self.last, what);
    }

    /// Adds the end of a collective operation at the leave of the innermost call, which may have found the request complete.
    fn ends(&mut self, operation: Operation, request: Option<u64>) {
        let of = self.communicator(operation.communicator);
        let ends = of.map(|of| operations::ends(of, operation, request));
        self.pending.extend(ends.into_iter().flatten());
    }

    /// Adds a region that stands for these calls.
    fn stretch(&mut self, region: u32, ticks: [u64; 2], calls: FoldedCalls) {
        let [first, last] = ticks.map(|ticks| self.time(ticks));
        self.push(first, What::Enter { region });
        self.push(first, What::Leave { region });
        if let Some(event) = self.events.back_mut() {
            event.note = Some(calls.to_string());
        }
        self.push(last, What::Leave { region });
    }

    fn push(&mut self, time: i64, what: What<'static>) {
        // Times of a thread never decrease, unless its clock did.
        self.last = self.last.max(time);
        self.events.push_back(Event {
            time: self.last,
            what,
            note: None,
            is_gap: false,
        });
    }

    fn time(&self, ticks: u64) -> i64 {
        self.rank.local.nanos(ticks)
    }

    fn region(&self, call: u16) -> Result<u32, FileError> {
        let known = self.rank.regions.get(&call).copied();
        known.ok_or_else(|| self.content(format!("call {call} has no name")))
    }

    /// Returns a communicator by its number in records; `None` if it is unknown.
    fn communicator(&self, number: u32) -> Option<&'a Communicator> {
        self.rank.communicators.get(&number)
    }

    /// Returns the same as [`Self::peer`] for what a call sends or accesses: the library may have refused it for a rank that does not exist.
    fn receiver(&mut self, communicator: u32, rank: i32) -> Option<(u32, u32)> {
        self.peer(communicator, rank).unwrap_or_else(|why| {
            if let Some(open) = self.open.last_mut() {
                open.wrong = Some(why);
            }
            None
        })
    }

    /// Returns the location of the other end of a message, by its rank, and its communicator; `None` if the communicator is unknown.
    fn peer(&self, communicator: u32, rank: i32) -> Result<Option<(u32, u32)>, FileError> {
        let Some(known) = self.communicator(communicator) else {
            return Ok(None);
        };
        let peer = known.peers.get(rank as usize).copied();
        let peer = peer.ok_or_else(|| {
            let size = known.peers.len();
            self.content(format!(
                "a message has rank {rank} of {size} at its other end"
            ))
        })?;
        Ok(Some((peer, known.index)))
    }

    fn content(&self, why: String) -> FileError {
        FileError::content(&self.rank.file.path, why)
    }
}
