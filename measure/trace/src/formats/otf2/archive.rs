//! OTF2 archives, and the traces that are read from them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_otf2::{
    self as otf2, ClockOffset, EventReader, EventRecord, LocalDefinitions, LocationRef,
    MetricValue, files,
};

use super::Otf2Error;
use super::definitions::{Otf2Definitions, Otf2Location};
use super::exact::ExactTrace;
use super::samples::offsets_of;
use super::stream::{EventSink, LocationStream, LongOperations};
use super::teams::Otf2Teams;
use super::unexamined::Unexamined;
use crate::builder::BuilderPart;
use crate::formats::{Sessions, Unread};
use crate::presync::ClockSample;
use crate::ranks::Load;
use crate::workers::share;
use crate::{Event, LocationId, Matching, Resolution, Trace, TraceBuilder, TraceError};

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
    pub unexamined: Unexamined,
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
                id: found.id,
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
    fn nanos(&self, ticks: i64) -> Option<i64> {
        self.ticks.nanos(ticks)?.checked_sub(self.shift())
    }

    /// Returns the first and the last tick within these times, as [`Resolution`] does.
    pub(super) fn between(&self, [earliest, latest]: [Timestamp<Global>; 2]) -> Option<[i64; 2]> {
        let shifted = |time: Timestamp<Global>| time.as_nanos().checked_add(self.shift());
        self.ticks.between(shifted(earliest)?, shifted(latest)?)
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

    /// Reads all events that may matter to other locations, and enters and leaves of regions.
    /// Mistakes that other readers accept are counted: see
    /// [`redefined`](Self::redefined) and [`PartRead`].
    ///
    /// # Errors
    /// When a file is damaged, or its events do not form a trace.
    pub fn read(&self, reading: &ReadOptions) -> Result<ArchiveTrace, Otf2Error> {
        self.read_with_builder(reading, TraceBuilder::new(reading.matching))
    }

    /// Does the same as [`read`](Self::read), with an empty builder.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with_builder(
        &self,
        reading: &ReadOptions,
        mut builder: TraceBuilder,
    ) -> Result<ArchiveTrace, Otf2Error> {
        let origin = self
            .load(reading, &mut builder)
            .map_err(|unread| *unread.why)?;
        let trace = builder.finish_on(reading.workers);
        Ok(ArchiveTrace {
            trace: trace.map_err(|why| self.trace_error(why))?,
            origin,
        })
    }

    /// Reads the events of the locations that `builder` owns, as [`read`](Self::read)
    /// does. The caller then finishes the builder; of several ranks, all do.
    ///
    /// # Errors
    /// As there. Of ranks that find other mistakes, the one that found the first one is right.
    pub fn load(
        &self,
        reading: &ReadOptions,
        builder: &mut TraceBuilder,
    ) -> Result<Origin, Unread<Otf2Error>> {
        let unread = |after: usize, why| Unread {
            after: after as u64,
            why: Box::new(why),
        };
        let teams = Otf2Teams::new(self, builder).map_err(|why| unread(0, why))?;
        let (mut loads, mut owned) = (vec![0; teams.locations.len()], vec![]);
        for (index, location) in teams.locations.iter().enumerate() {
            if builder.owns(*location) {
                owned.push(index);
                // Unused memory is not taken from the system, and freed at the end.
                let most = self.most_events(index);
                loads[location.index()] = most as u64;
                let reserved = builder.reserve(*location, most, most);
                reserved.map_err(|why| unread(index, self.trace_error(why)))?;
            }
        }
        // Every thread reads the files of its own processes, and stops at the first error there.
        let parts = builder.split(reading.workers, &loads);
        let all = share(parts, |_, part| -> Result<_, Unread<_>> {
            let has = |index: &&usize| part.has(teams.locations[**index]);
            let indices: Vec<usize> = owned.iter().filter(has).copied().collect();
            let mut sink = PartSink {
                archive: self,
                part,
                position: 0,
            };
            let mut read = PartRead::default();
            for index in indices {
                // As if all events of one location came before those of the next.
                sink.position = (index as u64) << 32;
                let found = self.read_location(index, reading, &teams, &mut sink);
                read.merge(found.map_err(|why| unread(index + 1, why))?);
            }
            Ok(read)
        });
        let (mut read, mut first) = (PartRead::default(), None::<Unread<_>>);
        for found in all {
            match found {
                Ok(found) => read.merge(found),
                Err(why) if first.as_ref().is_some_and(|first| first.after < why.after) => {}
                Err(why) => first = Some(why),
            }
        }
        match first {
            Some(why) => Err(why),
            None => Ok(Origin {
                locations: teams.locations,
                offsets: self.adds_offsets(reading),
                read,
            }),
        }
    }

    /// Returns the loads of all locations of the trace, with events of all kinds; none if the
    /// definitions make no sense.
    pub fn loads(&self) -> Vec<Load> {
        let mut builder = TraceBuilder::new(Matching::default());
        let Ok(teams) = Otf2Teams::new(self, &mut builder) else {
            return vec![];
        };
        let known = &builder.definitions;
        let load = |(number, index): (usize, usize)| Load {
            process: known.processes[number],
            place: known.places[number],
            events: self.most_events(index) as u64,
        };
        let indices = self.in_trace(&teams.locations);
        indices.into_iter().enumerate().map(load).collect()
    }

    /// An upper limit of the number of events of a location.
    fn most_events(&self, index: usize) -> usize {
        // An event has a byte at least, whatever the definitions say.
        let bytes = fs::metadata(self.path_of(index, "evt")).map_or(0, |file| file.len());
        usize::try_from(self.locations[index].events.min(bytes)).unwrap_or(0)
    }

    /// Passes the events of a location to `sink`.
    pub(super) fn read_location<S: EventSink>(
        &self,
        index: usize,
        reading: &ReadOptions,
        teams: &Otf2Teams,
        sink: &mut S,
    ) -> Result<PartRead, S::Error> {
        let events = self.locations[index].events;
        let mut stream = LocationStream::new((self, index), reading, teams, Some(sink));
        let (adds_offsets, mut read) = (self.adds_offsets(reading), 0);
        // The definitions may name none of the events that the file has.
        let file = fs::metadata(self.path_of(index, "evt"));
        if events > 0 || file.is_ok_and(|file| file.len() > 0) {
            let mut file = self.events(index)?;
            while let Some(record) = file.next().map_err(Otf2Error::from)? {
                stream.event = read;
                read += 1;
                let time = self.time(&record, adds_offsets).ok_or_else(|| {
                    stream.error("its time is more than 146 years from the origin")
                })?;
                stream.take(time, &record)?;
                if stream.is_full() {
                    stream.learn(self.find_long_operations(index, reading, teams)?)?;
                }
            }
        }
        stream.end()?;
        Ok(PartRead {
            unexamined: stream.unexamined,
            miscounted: (read != events).into(),
        })
    }

    /// Reads the events of a location for operations that last so long that the events
    /// from their begins to their ends would not fit in memory. Errors end the search:
    /// who reads the events finds them, too.
    fn find_long_operations(
        &self,
        index: usize,
        reading: &ReadOptions,
        teams: &Otf2Teams,
    ) -> Result<LongOperations, Otf2Error> {
        let mut stream = LocationStream::<PartSink<'_>>::new((self, index), reading, teams, None);
        let mut file = self.events(index)?;
        while let Ok(Some(record)) = file.next() {
            if stream.take(Timestamp::ORIGIN, &record).is_err() {
                break;
            }
            stream.event += 1;
        }
        Ok(stream.into_long_operations())
    }

    #[inline]
    fn time(&self, record: &EventRecord<'_>, adds_offsets: bool) -> Option<Timestamp<Global>> {
        let recorded = i64::try_from(record.time).ok()?;
        let ticks = match adds_offsets {
            true => record.corrected_time() as i64,
            false => recorded,
        };
        self.nanos(ticks).map(Timestamp::from_nanos)
    }

    /// Converts an error of a trace that was read from this archive, and adds the names of the
    /// locations that it mentions.
    pub fn trace_error(&self, why: TraceError) -> Otf2Error {
        let numbers = match why {
            TraceError::Decreasing(event)
            | TraceError::TooFar(event)
            | TraceError::NotEntered(event)
            | TraceError::UnknownPeer(event)
            | TraceError::NotAMember { event, .. } => vec![event.location],
            TraceError::OtherKind { event, other } | TraceError::OtherRoot { event, other } => {
                vec![event.location, other.location]
            }
            TraceError::MemberTwice(location) | TraceError::TooManyEvents(location) => {
                vec![location]
            }
            _ => vec![],
        };
        let teams = Otf2Teams::new(self, &mut TraceBuilder::new(Matching::default()));
        let indices = teams.map_or(vec![], |teams| self.in_trace(&teams.locations));
        let name = |number: LocationId| {
            let number = number.index();
            let ArchiveLocation { id, name, .. } = &self.locations[*indices.get(number)?];
            Some(format!(
                "{number} is location {id} of the archive, {name:?}"
            ))
        };
        let mut named: Vec<String> = numbers.into_iter().filter_map(name).collect();
        named.dedup();
        Otf2Error::Trace {
            path: self.anchor().to_owned(),
            why,
            named,
        }
    }
}

/// Events of the archive on their way to a part of a builder.
struct PartSink<'a> {
    archive: &'a Archive,
    part: BuilderPart<'a>,
    /// Position of the next event in the archive.
    position: u64,
}

impl EventSink for PartSink<'_> {
    type Error = Otf2Error;

    #[inline]
    fn event(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        _event: Event<'_>,
        meaning: Option<Event<'_>>,
    ) -> Result<(), Otf2Error> {
        let position = self.position;
        self.position += 1;
        let event = meaning.unwrap_or(Event::Opaque(""));
        let pushed = self.part.push(position, location, time, event);
        pushed.map_err(|why| self.archive.trace_error(why))
    }

    fn values(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        _metric: u32,
        _values: &mut dyn Iterator<Item = MetricValue>,
    ) -> Result<(), Otf2Error> {
        self.event(location, time, Event::Opaque(""), None)
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
    let sampled = |location: &Otf2Location| samples.remove(&location.id).unwrap_or_default();
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
