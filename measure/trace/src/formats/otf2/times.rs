//! Corrected times of the events of an archive, in memory or in temporary files.

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;

use super::Origin;
use crate::{LocationId, Trace};

/// Corrected times of the events of some locations.
pub(crate) trait CorrectedTimes: Sync {
    /// Returns the clock of a location, given by its first location; `None` if the location is
    /// unknown.
    fn clock(&self, location: LocationId) -> Option<u32>;

    /// Returns the number of events of a location, if there are as many times.
    fn count(&self, location: LocationId) -> Option<u64>;

    /// Returns true if readers of the archive find the times of this location already.
    fn is_unmoved(&self, location: LocationId) -> bool;

    /// Returns the times of the first and the last event of a location.
    fn span(&self, location: LocationId) -> Option<[Timestamp<Global>; 2]>;

    /// Returns the times of a location.
    fn times(&self, location: LocationId) -> Times<'_, Timestamp<Global>>;

    /// Returns the events of a clock, as [`Trace::leeway`] does.
    fn leeway(&self, clock: LocationId) -> Times<'_, (LocationId, [Timestamp<Global>; 2])>;
}

/// Corrected times of an archive, by the indices of its locations.
#[derive(Clone, Copy)]
pub(crate) struct ArchiveTimes<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) times: &'a dyn CorrectedTimes,
}

impl<'a> ArchiveTimes<'a> {
    pub(super) fn location(&self, index: usize) -> LocationId {
        self.origin.locations[index]
    }

    pub(super) fn count(&self, index: usize) -> u64 {
        self.times.count(self.location(index)).unwrap_or(0)
    }

    pub(super) fn is_unmoved(&self, index: usize) -> bool {
        self.times.is_unmoved(self.location(index))
    }

    pub(super) fn of(&self, index: usize) -> Times<'a, Timestamp<Global>> {
        self.times.times(self.location(index))
    }

    /// Returns the times of the first and the last event of the selected locations whose events
    /// moved; `None` if none did.
    pub(super) fn moved_span(
        &self,
        selected: &dyn Fn(LocationId) -> bool,
    ) -> Option<[Timestamp<Global>; 2]> {
        let all = self.origin.locations.iter().copied();
        let moved = all.filter(|of| selected(*of) && !self.times.is_unmoved(*of));
        let spans = moved.filter_map(|of| self.times.span(of));
        spans.reduce(|one, other| [one[0].min(other[0]), one[1].max(other[1])])
    }
}

/// Iterator over times that may have to be read.
pub(crate) type Times<'a, T> = Box<dyn Iterator<Item = Result<T, FileError>> + 'a>;

/// Corrected times of a trace in memory that was read from an archive.
#[derive(Clone, Copy)]
pub(super) struct TimesInMemory<'a> {
    pub(super) trace: &'a Trace,
    pub(super) origin: &'a Origin,
    pub(super) times: &'a [Vec<Timestamp<Global>>],
}

impl TimesInMemory<'_> {
    fn of(&self, location: LocationId) -> &[Timestamp<Global>] {
        self.times.get(location.index()).map_or(&[], Vec::as_slice)
    }
}

impl CorrectedTimes for TimesInMemory<'_> {
    fn clock(&self, location: LocationId) -> Option<u32> {
        let of = self.trace.locations().get(location.index())?;
        Some(of.clock)
    }

    fn count(&self, location: LocationId) -> Option<u64> {
        let of = self.trace.locations().get(location.index())?;
        let count = of.times().len();
        (self.of(location).len() == count).then_some(count as u64)
    }

    fn is_unmoved(&self, location: LocationId) -> bool {
        let of = &self.trace.locations()[location.index()];
        self.origin.offsets && !of.is_mapped && of.times() == self.of(location)
    }

    fn span(&self, location: LocationId) -> Option<[Timestamp<Global>; 2]> {
        let times = self.of(location);
        Some([*times.first()?, *times.last()?])
    }

    fn times(&self, location: LocationId) -> Times<'_, Timestamp<Global>> {
        Box::new(self.of(location).iter().copied().map(Ok))
    }

    fn leeway(&self, clock: LocationId) -> Times<'_, (LocationId, [Timestamp<Global>; 2])> {
        let all = self.trace.leeway(clock, self.times);
        Box::new(all.map(|(event, between)| Ok((event.location, between))))
    }
}
