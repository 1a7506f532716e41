//! Events of all threads, merged in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_trace::Event;
use downbeat_trace::formats::Item;

use super::thread_events::{ThreadEvent, ThreadEvents};
use super::{RecordedThread, Recording};

/// Events of a recording, in the order of time.
#[derive(Debug)]
pub struct MergedEvents<'a> {
    recording: &'a Recording,
    threads: Vec<ThreadEvents<'a>>,
    /// Time of the next event of each thread, and the index of the thread.
    next: BinaryHeap<Reverse<(i64, usize)>>,
    /// Time since which calls of each rank are missing; most ranks lack none.
    gaps: Vec<i64>,
    /// Event that was returned last.
    current: Option<ThreadEvent>,
    summary: MergeSummary,
}

/// Numbers of a merged trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeSummary {
    /// Number of events.
    pub events: u64,
    /// Number of calls that were entered, also of those that are folded.
    pub calls: u64,
    /// Number of messages that were sent.
    pub sent: u64,
    /// Number of messages that were received.
    pub received: u64,
    /// Number of one-sided accesses of each kind, in the order of
    /// [`AccessKind::ALL`](downbeat_trace::AccessKind::ALL).
    pub accesses: [u64; 3],
    /// Number of calls that were not recorded, because memory or the disk was short.
    pub dropped: u64,
    /// Number of messages and operations that are left out because calls of their rank
    /// are missing before them: their partners are not known.
    pub cut_off: u64,
}

impl Recording {
    /// Returns the events of the trace, in the order of time. Times are those of the
    /// local clocks.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn events(&self) -> Result<MergedEvents<'_>, FileError> {
        let not_recorded = self.regions.len() as u32 - 1;
        let events =
            |of: &RecordedThread| ThreadEvents::new(&self.ranks[of.rank], of.thread, not_recorded);
        let mut merged = MergedEvents {
            recording: self,
            threads: self.threads.iter().map(events).collect(),
            next: BinaryHeap::new(),
            gaps: vec![i64::MAX; self.ranks.len()],
            current: None,
            summary: MergeSummary::default(),
        };
        for index in 0..self.threads.len() {
            merged.await_next(index)?;
        }
        Ok(merged)
    }
}

impl MergedEvents<'_> {
    /// Adds the next event of a thread to those that come next.
    fn await_next(&mut self, index: usize) -> Result<(), FileError> {
        let time = self.threads[index].next_time()?;
        self.next.extend(time.map(|time| Reverse((time, index))));
        Ok(())
    }

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn next_event(&mut self) -> Result<Option<Item<'_>>, FileError> {
        let next = self.next.pop().map(|Reverse((_, index))| index);
        let event = next.map(|index| (index, self.threads[index].events.pop_front()));
        let Some((index, Some(mut event))) = event else {
            return Ok(None);
        };
        let thread = &self.recording.threads[index];
        let gap = &mut self.gaps[thread.rank];
        *gap = self.threads[index].gap.min(*gap);
        // Other events need a partner, which is found by counting.
        let is_alone = matches!(event.event, Event::Enter { .. } | Event::Leave { .. });
        if event.time >= *gap && !is_alone && event.note.is_none() {
            self.threads[index].leave_out(&mut event);
            self.summary.cut_off += 1;
        }
        self.await_next(index)?;
        let event = self.current.insert(event);
        let shown = event.note.as_deref().map_or(event.event, Event::Note);
        self.summary.events += 1;
        match shown {
            Event::Send { .. } => self.summary.sent += 1,
            Event::Receive { .. } => self.summary.received += 1,
            Event::Access { kind, .. } => self.summary.accesses[kind as usize] += 1,
            _ => {}
        }
        Ok(Some(Item::Event {
            location: thread.location,
            time: Timestamp::<Global>::from_nanos(event.time),
            event: shown,
        }))
    }

    /// Number of records that were read so far.
    pub fn records(&self) -> u64 {
        self.threads.iter().map(|thread| thread.read).sum()
    }

    /// Returns the numbers of the trace, after its last event.
    pub fn summary(&self) -> MergeSummary {
        let threads = || self.threads.iter();
        let lost = self.recording.endings().map(|ending| ending.lost);
        let dropped = threads().map(|thread| thread.dropped).chain(lost);
        MergeSummary {
            calls: threads().map(|thread| thread.calls).sum(),
            dropped: dropped.fold(0, u64::saturating_add),
            ..self.summary
        }
    }
}
