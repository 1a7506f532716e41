//! OTF2 archives, and the traces that are read from them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_otf2::definition::Location;
use downbeat_otf2::{self as otf2, ClockOffset, EventReader, LocalDefinitions, LocationRef, files};

use super::Otf2Error;
use super::definitions::Otf2Definitions;
use super::exact::ExactTrace;
use super::samples::offsets_of;
use super::unexamined::UnexaminedRelations;
use crate::formats::Sessions;
use crate::presync::ClockSample;
use crate::{LocationId, Matching, Resolution, Trace};

/// Archive that is open for reading. It is never modified.
#[derive(Debug)]
pub struct Archive {
    pub(super) files: otf2::Archive,
    pub(super) definitions: Otf2Definitions,
    pub(super) ticks: Resolution,
    pub(super) locations: Vec<ArchiveLocation>,
    /// Sessions of clock samples by location, if the clock offsets are those of the
    /// samples.
    samples: Sessions,
    /// Local definitions, with clock offsets, by location.
    pub(super) locals: Vec<Arc<LocalDefinitions>>,
}

/// Location of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveLocation {
    /// Number in the archive, which names its files.
    pub id: u64,
    /// Name of the location.
    pub name: String,
    /// Number of events of all kinds.
    pub events: u64,
}

/// Options for reading an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Settings of the matching of events.
    pub matching: Matching,
    /// If true, the clock offsets of the archive are added to its times, as OTF2 does,
    /// unless they are those of clock samples; otherwise times are as recorded.
    pub offsets: bool,
    /// If true, forks, joins and OpenMP barriers are dependences between threads. Must be false if
    /// not all threads of a team take part in all of its operations.
    pub threads: bool,
    /// If true, `MPI_Init` and `MPI_Finalize` are barriers.
    pub init: bool,
    /// Number of threads that share the work; more than two do not help. The result is the same.
    pub workers: usize,
}

impl Default for ReadOptions {
    /// All dependences, on one thread.
    fn default() -> Self {
        Self {
            matching: Matching::default(),
            offsets: true,
            threads: true,
            init: true,
            workers: 1,
        }
    }
}

/// Trace that was read from an archive.
#[derive(Debug)]
pub struct ArchiveTrace {
    /// Events that may matter to other locations.
    pub trace: Trace,
    /// Information needed to write the corrected trace.
    pub origin: Origin,
}

/// Relation of a trace to the archive from which it was read.
#[derive(Debug)]
pub struct Origin {
    /// Location in the trace of each of [`Archive::locations`].
    pub locations: Vec<LocationId>,
    /// True if the clock offsets of the archive were added.
    pub(super) offsets: bool,
    /// Mistakes and relations that were only counted.
    pub read: PartRead,
}

/// Counts that locations of an archive have besides their trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartRead {
    /// Relations that are not examined.
    pub unexamined: UnexaminedRelations,
    /// Number of locations with another number of events than their definitions name.
    pub miscounted: u64,
}

impl PartRead {
    /// Adds what was read of other locations.
    pub fn merge(&mut self, other: Self) {
        self.unexamined = self.unexamined.plus(other.unexamined.counts());
        self.miscounted += other.miscounted;
    }
}

impl Archive {
    /// Opens an archive by its anchor file, `NAME.otf2`, and reads its definitions.
    /// # Errors
    /// When a file is missing, truncated, or not part of an OTF2 archive.
    pub fn open(anchor: &Path) -> Result<Self, Otf2Error> {
        let files = otf2::Archive::open(anchor)?;
        let mut definitions = Otf2Definitions::of(&files.definitions()?)?;
        let exact = ExactTrace::of(files.anchor(), definitions.locations.len());
        if let Some(exact) = exact.map_err(|why| Otf2Error::content(anchor, why))? {
            definitions.set_exact(exact);
        }
        let ticks = Resolution::new(definitions.resolution).ok_or_else(|| {
            Otf2Error::content(
                &definitions.path,
                "the archive does not define the resolution of its clock",
            )
        })?;
        let locations: Vec<_> = definitions
            .locations
            .iter()
            .map(|found| ArchiveLocation {
                id: found.reference.0,
                name: definitions.location_name(found),
                events: found.events,
            })
            .collect();
        let locals = local_definitions(&files, &locations)?;
        let samples = samples(&definitions, &locals)?;
        Ok(Self {
            files,
            definitions,
            ticks,
            locations,
            samples,
            locals,
        })
    }

    /// Returns true if the clock offsets of the archive are those of its clock samples.
    /// They are for other readers: here, times are as recorded, and
    /// [`sessions`](Self::sessions) has the samples.
    pub fn has_samples(&self) -> bool {
        !self.samples.is_empty()
    }

    /// Returns true if clock offsets are added to the times.
    pub(super) fn adds_offsets(&self, reading: &ReadOptions) -> bool {
        reading.offsets && !self.has_samples()
    }

    /// Returns the location with the clock that all others were compared with; `None` if
    /// the archive names none.
    pub fn master(&self) -> Option<u32> {
        self.definitions.exact?.master
    }

    /// Returns the nanoseconds that were added to all times of the archive.
    fn shift(&self) -> i64 {
        self.definitions.exact.map_or(0, |exact| exact.shift)
    }

    /// Converts ticks to the time in the trace; `None` on overflow.
    #[inline]
    pub(super) fn nanos(&self, ticks: i64) -> Option<i64> {
        self.ticks.nanos(ticks)?.checked_sub(self.shift())
    }

    /// Returns the first and the last tick within these times, as [`Resolution`] does, in
    /// a copy that adds `shift` to all times.
    pub(super) fn between(
        &self,
        [earliest, latest]: [Timestamp<Global>; 2],
        shift: Duration,
    ) -> Option<[i64; 2]> {
        let shift = self.shift().checked_add(shift.as_nanos())?;
        let shifted = |time: Timestamp<Global>| time.as_nanos().checked_add(shift);
        self.ticks.between(shifted(earliest)?, shifted(latest)?)
    }

    /// Returns the time that a copy must add to all times, besides what the archive adds
    /// to them, so that a corrected time is not before the origin. Archives of other
    /// programs cannot state it.
    pub fn shift_for(&self, earliest: Option<Timestamp<Global>>) -> Duration {
        let earliest = earliest.filter(|_| self.has_shift());
        let earliest = earliest.map_or(0, |time| time.as_nanos().saturating_add(self.shift()));
        Duration::from_nanos(earliest.min(0).saturating_neg())
    }

    /// Returns true if copies of the archive can state how much they add to all times.
    pub fn has_shift(&self) -> bool {
        self.definitions.exact.is_some()
    }

    /// Returns the path of the anchor file.
    pub fn anchor(&self) -> &Path {
        self.files.path()
    }

    /// Returns the path of a file of a location, given by its index, in an archive.
    pub(super) fn path_in(&self, anchor: &Path, index: usize, extension: &str) -> PathBuf {
        files::local(anchor, LocationRef(self.locations[index].id), extension)
    }

    /// Returns the path of a file of a location, given by its index.
    pub(super) fn path_of(&self, index: usize, extension: &str) -> PathBuf {
        self.path_in(self.anchor(), index, extension)
    }

    /// Opens the events of a location, given by its index.
    pub(super) fn events(&self, index: usize) -> Result<EventReader, Otf2Error> {
        let local = Arc::clone(&self.locals[index]);
        let id = LocationRef(self.locations[index].id);
        Ok(self.files.events_with(id, local)?)
    }

    /// Returns all locations, in the order of the archive.
    pub fn locations(&self) -> &[ArchiveLocation] {
        &self.locations
    }

    /// Number of clock ticks per second; times of the archive are in ticks.
    pub fn ticks_per_second(&self) -> u64 {
        self.definitions.resolution
    }

    /// Returns the resolution of the clock.
    pub fn resolution(&self) -> Resolution {
        self.ticks
    }

    /// Returns the number of definitions with the reference of an earlier one, which they replace.
    pub fn redefined(&self) -> usize {
        self.definitions.redefined
    }

    /// Returns the names of the trace's locations, in their order.
    pub fn names(&self, origin: &Origin) -> Vec<String> {
        let indices = self.in_trace(&origin.locations).into_iter();
        indices
            .map(|index| self.locations[index].name.clone())
            .collect()
    }

    /// Returns the index here of each location of the trace, in the order of its numbers,
    /// which are given in the order of the archive.
    pub(super) fn in_trace(&self, locations: &[LocationId]) -> Vec<usize> {
        let mut indices = vec![0; locations.len()];
        for (index, location) in locations.iter().enumerate() {
            indices[location.index()] = index;
        }
        indices
    }

    /// Returns the clock samples of every location of the trace. In an archive without
    /// samples, each clock offset is one, in a session of its own.
    pub fn sessions(&self, origin: &Origin) -> Sessions {
        let indices = self.in_trace(&origin.locations).into_iter();
        indices.map(|index| self.sessions_of(index)).collect()
    }

    /// Returns the sessions of one location.
    pub(super) fn sessions_of(&self, index: usize) -> Vec<Vec<ClockSample>> {
        if let Some(sessions) = self.samples.get(index) {
            return sessions.clone();
        }
        let nanos = |ticks: i64| self.nanos(ticks).unwrap_or(i64::MAX);
        let sample = |found: &ClockOffset| {
            // The time was checked.
            let at = found.time as i64;
            vec![ClockSample {
                at: Timestamp::from_nanos(nanos(at)),
                image: Timestamp::from_nanos(nanos(at.saturating_add(found.offset))),
            }]
        };
        self.locals[index].offsets.iter().map(sample).collect()
    }
}

/// Reads the local definitions of all locations. Some archives have none at all; if only some are
/// missing, references would be wrong.
fn local_definitions(
    archive: &otf2::Archive,
    locations: &[ArchiveLocation],
) -> Result<Vec<Arc<LocalDefinitions>>, Otf2Error> {
    let path = |id| files::local(archive.path(), id, "def");
    let ids = || locations.iter().map(|location| LocationRef(location.id));
    let some = ids().any(|id| path(id).exists());
    let read = |id| {
        if some {
            fs::metadata(path(id)).map_err(Otf2Error::io(&path(id)))?;
        }
        let local = archive.local_definitions(id)?;
        let why = if local.offsets.iter().any(|of| of.time > i64::MAX as u64) {
            "the time of a clock offset is too large"
        } else if !local.offsets.is_sorted_by(|one, next| one.time < next.time) {
            "the times of clock offsets do not increase"
        } else {
            return Ok(Arc::new(local));
        };
        Err(Otf2Error::content(&path(id), why))
    };
    ids().map(read).collect()
}

/// Returns the clock samples of every location; none if the clock offsets are not made of
/// them, as after a correction.
fn samples(
    definitions: &Otf2Definitions,
    locals: &[Arc<LocalDefinitions>],
) -> Result<Sessions, Otf2Error> {
    let Some(exact) = definitions.exact else {
        return Ok(vec![]);
    };
    let mut samples = definitions.samples()?;
    let sampled = |location: &Location| samples.remove(&location.reference.0).unwrap_or_default();
    let sessions: Sessions = definitions.locations.iter().map(sampled).collect();
    let are_of_samples = sessions.iter().zip(locals).all(|(sessions, local)| {
        let offsets = offsets_of(sessions, exact.shift).unwrap_or_default();
        let parts = |of: &ClockOffset| (of.time, of.offset);
        offsets
            .iter()
            .map(parts)
            .eq(local.offsets.iter().map(parts))
    });
    let has_any = sessions.iter().any(|sessions| !sessions.is_empty());
    Ok(if are_of_samples && has_any {
        sessions
    } else {
        vec![]
    })
}
