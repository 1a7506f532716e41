//! Parts of arrays in a file that are read before they are needed, where all locations
//! of a trace are read in turns.

use downbeat_clock_core::{Global, Timestamp};

use super::trace::{Instance, Mark};
use super::{ArrayStore, Trace};

/// Parts of the arrays of a location that are being read from a file.
#[derive(Debug)]
pub(super) struct LocationAhead {
    store: ArrayStore,
    /// Event, and mark, from which on more is to be read; the largest number if all are
    /// in memory.
    pub(super) events: usize,
    pub(super) marks: usize,
}

/// Marks and times of the members of operations that are being read from a file.
#[derive(Debug)]
pub(super) struct OperationAhead<'a> {
    trace: &'a Trace,
    /// For each location, the mark and the event from which on more is to be read; none
    /// if all are in memory.
    next: Vec<[usize; 2]>,
}

impl LocationAhead {
    pub(super) fn new(store: &ArrayStore) -> Self {
        let next = if store.is_file() { 0 } else { usize::MAX };
        Self {
            store: store.clone(),
            events: next,
            marks: next,
        }
    }

    /// Has the kernel read further times, so that half of them are there when the next
    /// ones are needed.
    #[cold]
    pub(super) fn read_times(&mut self, times: &[Timestamp<Global>]) {
        let window = self.store.window::<Timestamp<Global>>();
        self.store.read_soon(part_of(times, self.events, window));
        self.events += window / 2;
    }

    /// Has the kernel read further marks and words, from the mark `next` on.
    #[cold]
    pub(super) fn read_marks(&mut self, next: usize, marks: &[Mark], words: &[i64]) {
        let window = self.store.window::<Mark>();
        self.store.read_soon(part_of(marks, next, window));
        self.store.read_soon(part_of(words, next, window));
        self.marks = next + window / 2;
    }
}

impl<'a> OperationAhead<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let locations = if trace.store.is_file() {
            trace.locations.len()
        } else {
            0
        };
        Self {
            trace,
            next: vec![[0; 2]; locations],
        }
    }

    /// Has the kernel read what the members of an operation need next.
    pub(super) fn read<T: AsRef<[Timestamp<Global>]>>(&mut self, instance: &Instance, times: &[T]) {
        let Self { trace, next } = self;
        if next.is_empty() {
            return;
        }
        for slot in trace.slots_of(instance) {
            let mark = slot.exit.min(slot.enter) as usize;
            let marks = &trace.locations[slot.location as usize].marks;
            let [next_mark, next_event] = &mut next[slot.location as usize];
            if mark < marks.len() && mark >= *next_mark {
                let window = trace.store.window::<Mark>();
                trace.store.read_soon(part_of(marks, mark, window));
                *next_mark = mark + window / 2;
            }
            let Some(event) = marks.get(mark).map(|mark| mark.event as usize) else {
                continue;
            };
            if event >= *next_event {
                let window = trace.store.window::<Timestamp<Global>>();
                let times = times[slot.location as usize].as_ref();
                trace.store.read_soon(part_of(times, event, window));
                *next_event = event + window / 2;
            }
        }
    }
}

/// Returns these values of an array, as far as it has them.
fn part_of<T>(values: &[T], start: usize, length: usize) -> &[T] {
    let end = values.len().min(start + length);
    values.get(start..end).unwrap_or_default()
}
