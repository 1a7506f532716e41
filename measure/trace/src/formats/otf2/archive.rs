//! OTF2 archives, and the traces that are read from them.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::{EventId, Knots, LocationId, Matching, OffsetKnot, Trace, TraceBuilder, TraceError};
use downbeat_clock_core::{self as clock_core, Global, Local, Timestamp};

use super::Otf2Error;
use super::anchor::ArchiveAnchor;
use super::clock::Otf2Clock;
use super::definitions::Otf2Definitions;
use super::error::open;
use super::event_file::EventFile;
use super::events::{Mappings, Otf2Event, is_in_trace};
use super::files::{globals, local};
use super::local_definitions::LocalDefinitions;
use super::record::{END, EventRecord, TRUNCATED};
use super::sink::{EventSink, ReadError, Sink};
use super::stream::{HeldEvents, LocationStream};
use super::teams::Otf2Teams;
use crate::formats::Sessions;
use crate::workers::share;

/// Archive that is open for reading. It is never modified.
#[derive(Debug)]
pub struct Archive {
    /// Anchor file, `NAME.otf2`.
    pub(super) anchor: PathBuf,
    pub(super) chunks: ArchiveAnchor,
    pub(super) definitions: Otf2Definitions,
    pub(super) ticks: Otf2Clock,
    pub(super) locations: Vec<ArchiveLocation>,
    /// Clock offsets that the archive contains, by location.
    pub(super) offsets: Vec<Knots>,
    mappings: Vec<Mappings>,
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
    /// Strictness of the matching of events.
    pub matching: Matching,
    /// If true, the clock offsets of the archive are added to its times, as OTF2 does; otherwise
    /// times are as recorded.
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
    /// Strict, with all dependences, on one thread.
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
}

impl Archive {
    /// Opens an archive by its anchor file, `NAME.otf2`, and reads its definitions.
    /// # Errors
    /// When a file is missing, truncated, or not part of an OTF2 archive.
    pub fn open(anchor: &Path) -> Result<Self, Otf2Error> {
        let chunks = ArchiveAnchor::open(anchor)?;
        let global = globals(anchor);
        let definitions = Otf2Definitions::parse(&read(&global)?, chunks.definitions)
            .map_err(|why| Otf2Error::content(&global, why))?;
        let ticks = Otf2Clock::new(definitions.resolution).ok_or_else(|| {
            Otf2Error::content(
                &globals(anchor),
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
        check_events(anchor, &locations)?;
        let (mut offsets, mut mappings) = (vec![], vec![]);
        for locals in local_definitions(anchor, chunks, &locations)? {
            offsets.push(locals.0);
            mappings.push(locals.1);
        }
        let anchor = anchor.to_owned();
        Ok(Self {
            anchor,
            chunks,
            definitions,
            ticks,
            locations,
            offsets,
            mappings,
        })
    }

    /// Returns the path of the anchor file.
    pub fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// Returns all locations, in the order of the archive.
    pub fn locations(&self) -> &[ArchiveLocation] {
        &self.locations
    }

    /// Number of clock ticks per second; times of the archive are in ticks.
    pub fn ticks_per_second(&self) -> u64 {
        self.definitions.resolution
    }

    /// Returns the names of the trace's locations, in their order.
    pub fn names(&self, origin: &Origin) -> Vec<String> {
        let mut names = vec![String::new(); origin.locations.len()];
        for (location, found) in origin.locations.iter().zip(&self.locations) {
            names[location.index()].clone_from(&found.name);
        }
        names
    }

    /// Returns the clock offsets as clock samples, each in a session of its own, for every location
    /// of the trace.
    pub fn sessions(&self, origin: &Origin) -> Sessions {
        let mut sessions = vec![vec![]; origin.locations.len()];
        for (index, location) in origin.locations.iter().enumerate() {
            sessions[location.index()] = self.sessions_of(index);
        }
        sessions
    }

    /// Returns the sessions of one location.
    pub(super) fn sessions_of(&self, index: usize) -> Vec<Vec<clock_core::Knot<Local, Global>>> {
        let nanos = |ticks: i64| self.ticks.nanos(ticks).unwrap_or(i64::MAX);
        let sample = |knot: &OffsetKnot| clock_core::Knot {
            at: Timestamp::from_nanos(nanos(knot.at)),
            image: Timestamp::from_nanos(nanos(knot.at.saturating_add(knot.offset))),
        };
        self.offsets[index]
            .knots()
            .iter()
            .map(|knot| vec![sample(knot)])
            .collect()
    }

    /// Reads all events that may matter to other locations, and enters and leaves of regions.
    ///
    /// # Errors
    /// When a file is damaged, or its events do not form a trace.
    pub fn read(&self, reading: &ReadOptions) -> Result<ArchiveTrace, Otf2Error> {
        let mut builder = TraceBuilder::new(reading.matching);
        let bad = |why: ReadError<TraceError>| why.into_error(|why| self.trace_error(why));
        let teams = Otf2Teams::new(&self.definitions, &globals(&self.anchor), &mut builder);
        let teams = teams.map_err(bad)?;
        let mut loads = vec![0; teams.locations.len()];
        for (location, found) in teams.locations.iter().zip(&self.locations) {
            let most = self.most_events(found);
            loads[location.index()] = most as u64;
            builder.reserve(*location, most, most);
        }
        // Every thread reads the files of its own processes, and stops at the first error there.
        let parts = builder.split(reading.workers, &loads);
        let failures = share(parts, |_, mut part| {
            let mut teams = teams.clone();
            let here = |index: &usize| part.has(teams.locations[*index]);
            let indices: Vec<usize> = (0..self.locations.len()).filter(here).collect();
            indices.into_iter().find_map(|index| {
                let read = self.read_location(index, reading, &mut teams, &mut part);
                read.err().map(|why| (index, why))
            })
        });
        if let Some((_, why)) = failures
            .into_iter()
            .flatten()
            .min_by_key(|(index, _)| *index)
        {
            return Err(bad(why));
        }
        let locations = teams.locations;
        let trace = builder
            .finish_on(reading.workers)
            .map_err(|why| self.trace_error(why))?;
        Ok(ArchiveTrace {
            trace,
            origin: Origin {
                locations,
                offsets: reading.offsets,
            },
        })
    }

    /// Passes all events of the trace to `sink`. Returns the locations in the order of the archive,
    /// and the number of events of other kinds.
    pub(super) fn read_into<S: Sink>(
        &self,
        reading: &ReadOptions,
        sink: &mut S,
    ) -> Result<(Vec<LocationId>, u64), ReadError<S::Error>> {
        let mut teams = Otf2Teams::new(&self.definitions, &globals(&self.anchor), sink)?;
        sink.begin_events().map_err(ReadError::Sink)?;
        let mut left_out = 0;
        for index in 0..self.locations.len() {
            left_out += self.read_location(index, reading, &mut teams, sink)?;
        }
        Ok((teams.locations, left_out))
    }

    /// An upper limit of the number of events of a location.
    pub(super) fn most_events(&self, location: &ArchiveLocation) -> usize {
        // An event has a byte at least, whatever the definitions say.
        let path = local(&self.anchor, location.id, "evt");
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        usize::try_from(location.events.min(bytes)).unwrap_or(0)
    }

    pub(super) fn read_location<S: EventSink>(
        &self,
        index: usize,
        reading: &ReadOptions,
        teams: &mut Otf2Teams,
        sink: &mut S,
    ) -> Result<u64, ReadError<S::Error>> {
        let ArchiveLocation { id, events, .. } = self.locations[index];
        let path = local(&self.anchor, id, "evt");
        let offsets = if reading.offsets {
            self.offsets[index].clone()
        } else {
            Knots::default()
        };
        let mut stream = LocationStream {
            location: teams.locations[index],
            path: &path,
            event: 0,
            definitions: &self.definitions,
            teams,
            sink,
            threads: reading.threads,
            init: reading.init,
            // As if all events of one location came before those of the next.
            position: (index as u64) << 32,
            held: HeldEvents::default(),
        };
        let (mut read, mut left_out) = (0, 0);
        if events > 0 {
            let mut file = EventFile::open(&path, self.chunks.events)?;
            let order = file.order();
            while let Some(record) = file.next()? {
                stream.event = read;
                read += 1;
                if !is_in_trace(record.kind) {
                    left_out += 1;
                    continue;
                }
                let time = self.time(&record, &offsets).ok_or_else(|| {
                    stream.error("its time is more than 146 years from the origin")
                })?;
                let event = Otf2Event::from_record(&record, order, &self.mappings[index])
                    .ok_or_else(|| stream.error("its data cannot be decoded"))?;
                stream.take(time, event)?;
            }
        }
        let open = stream.end().map_err(ReadError::Sink)?;
        if read != events {
            let why = format!(
                "the file has {read} events, but the definitions name {events} of this location"
            );
            return Err(Otf2Error::content(&path, why).into());
        }
        if open > 0 && !reading.matching.lenient {
            return Err(Otf2Error::content(
                &path,
                format!("collective operations that never end: {open}"),
            )
            .into());
        }
        Ok(left_out)
    }

    #[inline]
    fn time(&self, record: &EventRecord<'_>, offsets: &Knots) -> Option<Timestamp<Global>> {
        let nanos = self
            .ticks
            .nanos(offsets.apply(i64::try_from(record.time).ok()?))?;
        Some(Timestamp::from_nanos(nanos))
    }

    /// Adds the communicators and locations of the archive to an empty trace, as every reader does;
    /// `None` if the definitions are inconsistent.
    pub(super) fn teams(&self) -> Option<Otf2Teams> {
        Otf2Teams::new(
            &self.definitions,
            &globals(&self.anchor),
            &mut TraceBuilder::new(Matching::default()),
        )
        .ok()
    }

    /// Converts an error of a trace that was read from this archive, and adds the names of the
    /// locations that it mentions.
    pub fn trace_error(&self, why: TraceError) -> Otf2Error {
        let locations = self.teams().map_or(vec![], |teams| teams.locations);
        let location = |event: EventId| event.location;
        let numbers = match why {
            TraceError::Decreasing(event)
            | TraceError::TooFar(event)
            | TraceError::UnmatchedSend(event)
            | TraceError::UnmatchedReceive(event)
            | TraceError::NotEntered(event)
            | TraceError::NotLeft(event)
            | TraceError::UnknownPeer(event)
            | TraceError::NotAMember { event, .. } => vec![location(event)],
            TraceError::OtherKind { event, other } | TraceError::OtherRoot { event, other } => {
                vec![location(event), location(other)]
            }
            TraceError::Absent { event, absent } => vec![location(event), absent],
            TraceError::MemberTwice(location) | TraceError::TooManyEvents(location) => {
                vec![location]
            }
            _ => vec![],
        };
        let name = |number: LocationId| {
            let index = locations.iter().position(|&location| location == number)?;
            let ArchiveLocation { id, name, .. } = &self.locations[index];
            Some(format!(
                "{} is location {id} of the archive, {name:?}",
                number.index()
            ))
        };
        let mut named: Vec<String> = numbers.into_iter().filter_map(name).collect();
        named.dedup();
        Otf2Error::Trace {
            path: self.anchor.clone(),
            why,
            named,
        }
    }
}

/// Reads a whole file.
fn read(path: &Path) -> Result<Vec<u8>, Otf2Error> {
    let mut file = vec![];
    open(path)?
        .read_to_end(&mut file)
        .map_err(Otf2Error::io(path))?;
    Ok(file)
}

/// Reads the local definitions of all locations. Some archives have none at all; if only some are
/// missing, references would be wrong.
fn local_definitions(
    anchor: &Path,
    chunks: ArchiveAnchor,
    locations: &[ArchiveLocation],
) -> Result<Vec<(Knots, Mappings)>, Otf2Error> {
    let path = |location: &ArchiveLocation| local(anchor, location.id, "def");
    let some = locations.iter().any(|location| path(location).exists());
    let parse = |location: &ArchiveLocation| {
        if !some {
            return Ok(Default::default());
        }
        let path = path(location);
        let wrong = |why| Otf2Error::content(&path, why);
        let LocalDefinitions { offsets, mappings } =
            LocalDefinitions::parse(&read(&path)?, chunks.definitions).map_err(wrong)?;
        let knots = Knots::new(offsets);
        let knots = knots
            .map_err(|_| Otf2Error::content(&path, "the times of clock offsets do not increase"))?;
        Ok((knots, mappings))
    };
    locations.iter().map(parse).collect()
}

/// Checks that the event files of all locations exist and end properly.
fn check_events(anchor: &Path, locations: &[ArchiveLocation]) -> Result<(), Otf2Error> {
    let mut with_events = locations.iter().filter(|location| location.events > 0);
    with_events.try_for_each(|location| check_end(&local(anchor, location.id, "evt")))
}

/// Checks that a file ends with the markers for the ends of the file and of the buffer.
fn check_end(path: &Path) -> Result<(), Otf2Error> {
    let mut end = [0; 2];
    let mut file = open(path)?;
    let read = file
        .seek(SeekFrom::End(-2))
        .and_then(|_| file.read_exact(&mut end));
    match read {
        Ok(()) if end == END => Ok(()),
        _ => Err(Otf2Error::content(path, TRUNCATED)),
    }
}
