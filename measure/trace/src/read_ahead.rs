//! Parts of arrays in a file that are read before they are needed, where all locations
//! of a trace are read in turns.

use std::ops::Range;

use downbeat_clock_core::{Global, Timestamp};

use super::trace::Instance;
use super::{ArrayStore, Trace};

/// Position in an array that is being read from a file.
#[derive(Clone, Debug)]
pub(super) struct ReadAhead {
    store: ArrayStore,
    /// Value from which on more is to be read; the largest number if all are in memory.
    pub(super) next: usize,
}

/// Marks and times of the members of operations that are being read from a file.
#[derive(Debug)]
pub(super) struct OperationAhead<'a> {
    trace: &'a Trace,
    /// For each location, the positions in its marks and its times; none if all are in
    /// memory.
    locations: Vec<[ReadAhead; 2]>,
}

impl ReadAhead {
    pub(super) fn new(store: &ArrayStore) -> Self {
        Self {
            store: store.clone(),
            next: if store.is_file() { 0 } else { usize::MAX },
        }
    }

    /// Has the kernel read further values from this one on, so that half of them are
    /// there when the next ones are needed. Returns their range.
    #[cold]
    pub(super) fn read<T>(&mut self, values: &[T], from: usize) -> Range<usize> {
        let window = self.store.window::<T>();
        let part = from..values.len().min(from + window);
        self.store
            .read_soon(values.get(part.clone()).unwrap_or_default());
        self.next = from + window / 2;
        part
    }
}

impl<'a> OperationAhead<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let of_location = [ReadAhead::new(&trace.store), ReadAhead::new(&trace.store)];
        let is_file = trace.store.is_file();
        let locations = if is_file { trace.locations.len() } else { 0 };
        Self {
            trace,
            locations: vec![of_location; locations],
        }
    }

    /// Has the kernel read what the members of an operation need next.
    pub(super) fn read(&mut self, instance: &Instance, times: &[&[Timestamp<Global>]]) {
        if self.locations.is_empty() {
            return;
        }
        for slot in self.trace.slots_of(instance) {
            let location = slot.location as usize;
            let mark = slot.exit.min(slot.enter) as usize;
            let marks = &self.trace.locations[location].marks;
            let [of_marks, of_times] = &mut self.locations[location];
            if mark < marks.len() && mark >= of_marks.next {
                of_marks.read(marks, mark);
            }
            if let Some(event) = marks.get(mark).map(|mark| mark.event as usize)
                && event >= of_times.next
            {
                of_times.read(times[location], event);
            }
        }
    }
}
