//! Corrected times of the events of an archive.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::Origin;
use crate::{Array, LocationId, Trace};

/// Corrected times of a trace that was read from an archive, by the indices of its
/// locations there.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "functions have none")]
pub struct ArchiveTimes<'a> {
    /// Trace, which may lack the events of locations that are not selected.
    pub trace: &'a Trace,
    /// Relation of the trace to the archive.
    pub origin: &'a Origin,
    /// Times of every location of the trace, in the order of its numbers.
    pub times: &'a [Array<Timestamp<Global>>],
    /// Returns true for the locations that are written; other processes may write others.
    pub selected: &'a (dyn Fn(LocationId) -> bool + Sync),
    /// Time that the copy adds to all times, besides what the archive adds to them: see
    /// [`Archive::shift_for`](super::Archive::shift_for).
    pub shift: Duration,
}

impl<'a> ArchiveTimes<'a> {
    pub(super) fn location(&self, index: usize) -> LocationId {
        self.origin.locations[index]
    }

    /// Returns the clock of a location, given by its first location; `None` if the
    /// location is unknown, or has another number of events than of times.
    pub(super) fn clock(&self, index: usize) -> Option<u32> {
        let location = self.origin.locations.get(index)?;
        let of = self.trace.locations().get(location.index())?;
        (self.of(index).len() == of.times().len()).then_some(of.clock)
    }

    /// Returns true if readers of the archive find the times of this location already,
    /// apart from the shift.
    pub(super) fn is_corrected(&self, index: usize) -> bool {
        let of = &self.trace.locations()[self.location(index).index()];
        self.origin.offsets && !of.is_mapped && of.times() == self.of(index)
    }

    /// Returns true if the files of this location need no change.
    pub(super) fn is_unmoved(&self, index: usize) -> bool {
        self.shift == Duration::ZERO && self.is_corrected(index)
    }

    /// Returns the times of a location.
    pub(super) fn of(&self, index: usize) -> &'a [Timestamp<Global>] {
        let times = self.times.get(self.location(index).index());
        times.map_or(&[], |times| times)
    }

    /// Returns the times of the first and the last event of the selected locations whose events
    /// moved; `None` if none did. The times must be those of the archive.
    pub fn moved_span(&self) -> Option<[Timestamp<Global>; 2]> {
        let all = 0..self.origin.locations.len();
        let moved = all.filter(|of| (self.selected)(self.location(*of)) && !self.is_unmoved(*of));
        let spans = moved.filter_map(|of| Some([*self.of(of).first()?, *self.of(of).last()?]));
        spans.reduce(|one, other| [one[0].min(other[0]), one[1].max(other[1])])
    }
}
