//! Events of an archive on their way to a builder, on several threads, or to any sink.

use std::fs;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_otf2::{EventRecord, MetricValue};

use super::archive::{Archive, ArchiveLocation, ArchiveTrace, Origin, PartRead, ReadOptions};
use super::error::Otf2Error;
use super::stream::{EventSink, LocationStream, LongOperations};
use super::teams::Otf2Teams;
use crate::builder::BuilderPart;
use crate::formats::UnreadableFile;
use crate::ranks::LocationLoad;
use crate::workers::share;
use crate::{Event, LocationId, Matching, TraceBuilder, TraceError};

impl Archive {
    /// Reads all events that may matter to other locations, and enters and leaves of
    /// regions. Mistakes that other readers accept are counted: see
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
    /// As there. Of ranks that find other mistakes, the one that found the first one is
    /// right.
    pub fn load(
        &self,
        reading: &ReadOptions,
        builder: &mut TraceBuilder,
    ) -> Result<Origin, UnreadableFile<Otf2Error>> {
        let unread = |after: usize, why| UnreadableFile {
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
        // Every thread reads the files of its own processes, and stops at the first error
        // there.
        let parts = builder.split(reading.workers, &loads);
        let all = share(parts, |_, part| -> Result<_, UnreadableFile<_>> {
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
        let (mut read, mut first) = (PartRead::default(), None::<UnreadableFile<_>>);
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

    /// Returns the loads of all locations of the trace, with events of all kinds; none if
    /// the definitions make no sense.
    pub fn loads(&self) -> Vec<LocationLoad> {
        let mut builder = TraceBuilder::new(Matching::default());
        let Ok(teams) = Otf2Teams::new(self, &mut builder) else {
            return vec![];
        };
        let known = &builder.definitions;
        let load = |(number, index): (usize, usize)| LocationLoad {
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

    /// Converts an error of a trace that was read from this archive, and adds the names
    /// of the locations that it mentions.
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
