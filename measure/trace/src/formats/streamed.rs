//! Trace in a file that is too large for memory, corrected by several passes over temporary files.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::resolution::StreamedTicks;
use crate::{
    Action, Census, ClockMaps, CommunicatorId, ControlledLogicalClock, Correction, CorrectionError,
    CorrectionSettings, Deviation, EventId, Interpolation, Latencies, Linked, LocationId, Matching,
    MessageHulls, Movement, MovementWalk, Pass, Place, Record, Resolution, StreamError,
    StreamedBackward, StreamedDeviation, StreamedForward, StreamedHulls, StreamedLatencies,
    StreamedMaps, StreamedVerdict, Survey, TimeSlices, TraceBuilder, TraceError, Verdict,
};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::blocks::{CopiedChunk, InOrder, Layout, copy_with, encode};
use super::chunk::Block;
use super::file::copy;
use super::index::LocationLoad;
use super::loading::Loading;
use super::numbers::FileNumbers;
use super::sessions::{Sessions, changed};
use super::spill::{EventLists, EventSequence, Stack, TimeCursor, TimeLists};
use super::target::{EventTarget, TraceTarget};
use super::{TraceFormat, TraceReader};
use downbeat_files::{Checksums, FileError};

/// Error of the correction of a trace that is not held in memory.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamedError {
    /// The trace cannot be read or written, or is not a valid one.
    Record(FileError),
    /// A temporary file cannot be written.
    Unwritten(FileError),
    /// The trace must be corrected in memory.
    InMemory(FileError),
    /// The correction left violations, which is a bug.
    Violated(CorrectionError),
}

impl fmt::Display for StreamedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(why) | Self::Unwritten(why) | Self::InMemory(why) => why.fmt(f),
            Self::Violated(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for StreamedError {}

impl From<FileError> for StreamedError {
    fn from(why: FileError) -> Self {
        Self::Record(why)
    }
}

/// Counterpart of [`TraceFile`](super::TraceFile) whose events are not in memory, but in temporary
/// files, which are always removed.
#[derive(Debug)]
pub struct StreamedTrace {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the file.
    pub format: TraceFormat,
    /// Contents of the trace.
    pub census: Census,
    /// Names of the locations, in their order.
    pub names: Vec<String>,
    /// Samples of the locations' clocks.
    pub sessions: Sessions,
    /// Location whose clock the others were compared with, by its number.
    pub master: u32,
    numbers: FileNumbers,
    /// All events, each after those that it waits for.
    events: EventSequence,
    /// Path next to which the temporary files are.
    beside: PathBuf,
}

/// Result of all passes over the events, before the corrected trace is written.
struct Replayed {
    passes: Vec<Pass>,
    /// Number of receives and exits that were too early even after the events before them had been
    /// moved.
    jumps: u64,
    /// Number of receives, and of exits that wait for other members.
    arrivals: u64,
    /// Times of the first and the last event after pre-synchronization; the origin if there are no
    /// events.
    span: [Timestamp<Global>; 2],
    as_measured: Verdict,
    pre_synchronized: Verdict,
    times: TimeLists,
}

/// Times of an event before the correction.
#[derive(Clone, Copy, Debug)]
struct TimesBefore {
    measured: Timestamp<Global>,
    pre_synchronized: Timestamp<Global>,
    /// Pre-synchronized time in the unit of the logical clock.
    ticks: Timestamp<Global>,
}

/// Pre-synchronization of the times of all events.
#[derive(Clone, Copy, Debug, Default)]
struct TimeMap<'a> {
    maps: Option<&'a ClockMaps>,
    /// Time that is added, so that no time is before the origin.
    shift: Duration,
    /// Resolution of the logical clock, if it is coarser than a nanosecond.
    resolution: Option<Resolution>,
}

/// State of one pass over all events.
struct TimePass<'a> {
    map: TimeMap<'a>,
    maps: Option<StreamedMaps<'a>>,
    ticks: Option<StreamedTicks>,
    /// First event whose pre-synchronized time is out of range.
    far: Option<(EventId, TraceError)>,
}

impl TimePass<'_> {
    /// Returns the times of the next event; `None` if that of any event so far is out of range.
    #[inline]
    fn take(
        &mut self,
        clocks: &[u32],
        event: EventId,
        measured: Timestamp<Global>,
    ) -> Option<TimesBefore> {
        let mut time = measured;
        if let Some(maps) = &mut self.maps {
            match maps.apply(event, time) {
                Ok(mapped) if self.far.is_none() => time = mapped + self.map.shift,
                Ok(_) => return None,
                Err(why) => {
                    if self.far.is_none_or(|(first, _)| event < first) {
                        self.far = Some((event, why));
                    }
                    return None;
                }
            }
        }
        let mut ticks = time;
        if let Some(resolution) = &mut self.ticks {
            (ticks, time) = resolution.of(clocks[event.location.index()], time);
        }
        Some(TimesBefore {
            measured,
            pre_synchronized: time,
            ticks,
        })
    }
}

impl StreamedTrace {
    /// Reads a file into temporary files next to `beside`.
    ///
    /// # Errors
    /// As [`TraceFile::read`](super::TraceFile::read); and if events wait for each other in a cycle,
    /// or temporary files cannot be written.
    pub fn read(
        path: &Path,
        matching: Matching,
        checksums: Checksums,
        beside: &Path,
    ) -> Result<Self, StreamedError> {
        let mut reader = TraceReader::open(path)?.with_checksums(checksums);
        let surveyed = Surveyed::new(matching, beside);
        let mut surveyed = surveyed.map_err(StreamedError::Unwritten)?;
        let mut loading = Loading::new(&mut surveyed);
        while let Some(item) = reader.next_item()? {
            if let Err(why) = loading.take(&item) {
                return Err(reader.error(why).into());
            }
            if let Some(why) = loading.target.failed.take() {
                return Err(StreamedError::Unwritten(why));
            }
        }
        let Loading {
            numbers,
            names,
            sessions,
            master,
            ..
        } = loading;
        let (census, events) = surveyed.finish(path, beside)?;
        Ok(Self {
            path: path.to_owned(),
            format: reader.format(),
            census,
            names,
            sessions,
            master,
            numbers,
            events,
            beside: beside.to_owned(),
        })
    }

    /// Corrects the trace, and writes it to another file, as [`correct()`](crate::correct()) does for one
    /// in memory.
    ///
    /// # Errors
    /// If the sessions are ones that no clock can have produced, the file has changed or cannot be
    /// read again, a pre-synchronized time is out of range, or files cannot be written.
    pub fn correct(
        &self,
        settings: &CorrectionSettings,
        to: (&Path, TraceFormat),
    ) -> Result<Correction, StreamedError> {
        let mut sessions = self.sessions.clone();
        let method = settings.pre_synchronization;
        let maps = match method {
            None => Ok(None),
            Some(method) if method.interpolation == Interpolation::Hull => {
                let least = settings.latencies.unwrap_or(Latencies::ZERO);
                let hulls = self.hulls(&least)?;
                method
                    .maps_of_messages(self.census.clocks(), hulls)
                    .map(Some)
            }
            Some(method) => method.maps(self.census.clocks(), &sessions).map(Some),
        };
        let maps = maps.map_err(|why| FileError::content(&self.path, why.to_string()))?;
        let needed = maps.as_ref().filter(|maps| maps.are_needed());
        let mut map = TimeMap {
            maps: needed,
            ..TimeMap::default()
        };
        if let Some(maps) = needed {
            maps.correct_samples(&mut sessions);
            if settings.resolution.is_some() {
                map.shift = self.shift(map)?;
            }
        }
        map.resolution = settings
            .resolution
            .filter(|resolution| resolution.is_coarse());
        let latencies = match settings.latencies {
            Some(latencies) => latencies,
            None => self.latencies(map)?,
        };
        let mut clock = settings.clock;
        clock.latencies = latencies;
        let Replayed {
            passes,
            jumps,
            arrivals,
            span,
            as_measured,
            pre_synchronized,
            times,
        } = self.replay(map, &clock, settings.backward)?;
        let (corrected, deviation, movement) = self.judge(map, (&times, span), latencies)?;
        let violations = corrected.violations_since(&pre_synchronized);
        if violations > 0 {
            let why = CorrectionError::Violated(violations);
            return Err(StreamedError::Violated(why));
        }
        self.write(to, &times, &sessions)?;
        let clocks_mapped = needed.is_some();
        let (unknown_clocks, sessions_left_out, clock_error) = maps.map_or((0, 0, None), |maps| {
            (maps.unknown, maps.left_out, maps.bound)
        });
        Ok(Correction {
            totals: self.census.totals(arrivals),
            clocks_mapped,
            unknown_clocks,
            sessions_left_out,
            clock_error,
            latencies,
            levels: self.census.levels(),
            passes,
            jumps,
            as_measured,
            pre_synchronized,
            corrected,
            deviation,
            movement,
            truth: None,
        })
    }

    /// Returns the time by which mapped times must be shifted, so that none is before the origin; one
    /// clock is as good as another that differs by a constant.
    fn shift(&self, map: TimeMap<'_>) -> Result<Duration, StreamedError> {
        let mut first: Option<[Timestamp<Global>; 2]> = None;
        self.each(map, |_, times| {
            let [measured, mapped] = first.unwrap_or([times.measured, times.pre_synchronized]);
            first = Some([
                measured.min(times.measured),
                mapped.min(times.pre_synchronized),
            ]);
            Ok(())
        })?;
        Ok(match first {
            Some([measured, mapped])
                if mapped < Timestamp::ORIGIN && measured >= Timestamp::ORIGIN =>
            {
                measured - mapped
            }
            _ => Duration::ZERO,
        })
    }

    /// Returns the hulls of messages by the measured times.
    fn hulls(&self, least: &Latencies) -> Result<MessageHulls, StreamedError> {
        let mut hulls = StreamedHulls::new(&self.census, *least);
        self.each(TimeMap::default(), |event, times| {
            hulls.take(event, times.measured);
            Ok(())
        })?;
        Ok(hulls.finish())
    }

    /// Returns [`Latencies::measured`] of the pre-synchronized times.
    fn latencies(&self, map: TimeMap<'_>) -> Result<Latencies, StreamedError> {
        let mut latencies = StreamedLatencies::new(&self.census);
        loop {
            self.each(map, |event, times| {
                latencies.take(event, times.pre_synchronized);
                Ok(())
            })?;
            if !latencies.has_another_pass() {
                return Ok(latencies.finish());
            }
        }
    }

    /// Corrects the pre-synchronized times as [`ControlledLogicalClock::correct`] does, on request
    /// without backward amortization.
    fn replay(
        &self,
        map: TimeMap<'_>,
        clock: &ControlledLogicalClock,
        backward: bool,
    ) -> Result<Replayed, StreamedError> {
        let latencies = clock.latencies;
        let resolution = map.resolution;
        let clock = resolution.map_or(*clock, |resolution| resolution.clock(clock));
        let mut stack = Stack::new(&self.beside)?;
        let mut verdicts = Some([(); 2].map(|()| StreamedVerdict::new(&self.census, latencies)));
        let (mut judged, mut jumps, mut arrivals, mut span) = (None, 0, 0, None);
        let mut passes = clock.streamed_passes(|rule| {
            stack.clear();
            let mut pass = StreamedForward::new(&self.census, rule, clock.latencies);
            self.each(map, |event, times| {
                if let Some([as_measured, pre_synchronized]) = &mut verdicts {
                    let before = times.pre_synchronized;
                    let [first, last] = span.unwrap_or([before; 2]);
                    span = Some([before.min(first), before.max(last)]);
                    as_measured.take(event, before, times.measured);
                    pre_synchronized.take(event, before, before);
                }
                let record = pass.take(event, times.ticks);
                let record = record.map_err(|why| self.unfit(why))?;
                record.push_to(|number| stack.push(number))?;
                Ok(())
            })?;
            judged = judged.take().or(verdicts
                .take()
                .map(|both| both.map(StreamedVerdict::finish)));
            (jumps, arrivals) = (pass.jumps, pass.arrivals);
            Ok::<_, StreamedError>(pass.finish())
        })?;
        let mut times = TimeLists::new(&self.beside, self.census.ids().len())?;
        let mut put = |location, time: Timestamp<Global>| {
            let time = resolution.map_or(time, |resolution| resolution.time(time));
            times.put(location, time)
        };
        let gradient = backward.then_some(clock.gradient);
        let mut backward = StreamedBackward::new(&self.census, clock.latencies, gradient);
        self.events.each_reversed(|event| {
            match Record::pop_from(event, || stack.pop())? {
                Some(record) => backward.take(&record, &mut put),
                // Every event was pushed.
                None => Ok(()),
            }
        })?;
        backward.finish(&mut put)?;
        times.finish()?;
        if let Some(resolution) = resolution {
            passes
                .iter_mut()
                .for_each(|pass| *pass = resolution.pass(*pass));
        }
        let [as_measured, pre_synchronized] = judged.unwrap_or_default();
        Ok(Replayed {
            passes,
            jumps,
            arrivals,
            span: span.unwrap_or([Timestamp::ORIGIN; 2]),
            as_measured,
            pre_synchronized,
            times,
        })
    }

    /// Checks final times: returns the verdict on them, and their differences from the
    /// pre-synchronized ones.
    fn judge(
        &self,
        map: TimeMap<'_>,
        (times, [first, last]): (&TimeLists, [Timestamp<Global>; 2]),
        latencies: Latencies,
    ) -> Result<(Verdict, Deviation, Movement), StreamedError> {
        let slices = TimeSlices::between(first, last);
        let mut movement = MovementWalk::new(slices, self.census.clocks().len());
        let mut deviation = StreamedDeviation::default();
        let mut verdict = StreamedVerdict::new(&self.census, latencies);
        let mut cursors = TimeCursor::all(self.census.ids());
        self.each(map, |event, before| {
            let (location, before) = (event.id.location, before.pre_synchronized);
            // There is one for each event.
            let time = cursors[location.index()].next(times)?.unwrap_or(before);
            verdict.take(event, before, time);
            deviation.take(location, before, time);
            movement.take(location.index(), before, time);
            Ok(())
        })?;
        Ok((verdict.finish(), deviation.finish(), movement.finish()))
    }

    /// Writes the same trace with other times to another file.
    fn write(
        &self,
        (path, format): (&Path, TraceFormat),
        times: &TimeLists,
        sessions: &Sessions,
    ) -> Result<(), FileError> {
        let paths = [&*self.path, path];
        if format == TraceFormat::Binary
            && let Ok(written) = self.write_chunks(paths, times, sessions)
        {
            return written;
        }
        let mut next = self.next_time(times);
        let mut written = 0;
        let (writer, windows_end) = copy(paths, format, sessions, |location, _, _| {
            written += 1;
            next(location)
        })?;
        match written == self.census.events {
            true => writer.finish_line(windows_end),
            false => Err(changed(&self.path)),
        }
    }

    /// Does the same for a file whose events are in chunks, without decoding the rest.
    fn write_chunks(
        &self,
        paths: [&Path; 2],
        times: &TimeLists,
        sessions: &Sessions,
    ) -> Result<Result<(), FileError>, InOrder> {
        let layout = Layout::read(paths[0], Checksums::Ignore, |_| Ok(()))?;
        let locations = (0..).zip(&layout.loads);
        let fits = |(number, load): (u32, &LocationLoad)| {
            let location = self.numbers.location(number);
            location.is_some_and(|location| times.count(location) == load.events)
        };
        if layout.loads.len() != self.names.len() || !locations.into_iter().all(fits) {
            return Ok(Err(changed(paths[0])));
        }
        let mut next = self.next_time(times);
        let mut encode_block = |block: &Block| {
            let times = (0..block.events).map(|_| next(block.location));
            let times = times.collect::<Result<Vec<_>, _>>()?;
            let mut encoded = vec![];
            encode(&mut encoded, &times, block.events);
            Ok(encoded)
        };
        let mut encode_chunk = |chunk: &CopiedChunk| {
            let blocks = chunk.head.blocks.iter().map(&mut encode_block);
            Ok(chunk.with(&blocks.collect::<Result<Vec<_>, FileError>>()?))
        };
        copy_with(paths, &layout, sessions, 1, |chunks| {
            chunks.iter().map(&mut encode_chunk).collect()
        })
    }

    /// Returns a function for the next time of each location of the file.
    fn next_time<'a>(
        &'a self,
        times: &'a TimeLists,
    ) -> impl FnMut(u32) -> Result<Timestamp<Global>, FileError> + 'a {
        let mut cursors = TimeCursor::all(self.census.ids());
        move |number| {
            let location = self.numbers.location(number);
            let cursor = location.and_then(|location| cursors.get_mut(location.index()));
            let time = cursor.map_or(Ok(None), |cursor| cursor.next(times))?;
            time.ok_or_else(|| changed(&self.path))
        }
    }

    /// Passes all events to `see`, with their times.
    fn each(
        &self,
        map: TimeMap<'_>,
        mut see: impl FnMut(Linked, TimesBefore) -> Result<(), StreamedError>,
    ) -> Result<(), StreamedError> {
        let clocks = self.census.clocks();
        let mut pass = TimePass {
            map,
            maps: map.maps.map(|maps| maps.streamed(&self.census)),
            ticks: map
                .resolution
                .map(|resolution| StreamedTicks::new(resolution, clocks.len())),
            far: None,
        };
        self.events.each(|(event, time)| {
            pass.take(clocks, event.id, time)
                .map_or(Ok(()), |times| see(event, times))
        })?;
        match pass.far {
            Some((_, why)) => Err(FileError::content(&self.path, why.to_string()).into()),
            None => Ok(()),
        }
    }

    fn unfit(&self, why: StreamError) -> StreamedError {
        unfit(&self.path, why)
    }
}

fn unfit(path: &Path, why: StreamError) -> StreamedError {
    let content = FileError::content(path, why.to_string());
    match why {
        StreamError::Trace(_) => StreamedError::Record(content),
        StreamError::Cycle(_) | StreamError::LatePost(_) => StreamedError::InMemory(content),
    }
}

/// Builder of locations and communicators, and survey of events.
#[derive(Debug)]
struct Surveyed {
    builder: TraceBuilder,
    survey: Survey,
    lists: EventLists,
    /// Error of a temporary file.
    failed: Option<FileError>,
}

impl Surveyed {
    fn new(matching: Matching, beside: &Path) -> Result<Self, FileError> {
        Ok(Self {
            builder: TraceBuilder::new(matching),
            survey: Survey::default(),
            lists: EventLists::new(beside)?,
            failed: None,
        })
    }

    /// Puts the events in order after the last one.
    fn finish(self, path: &Path, beside: &Path) -> Result<(Census, EventSequence), StreamedError> {
        let Self {
            builder,
            survey,
            mut lists,
            ..
        } = self;
        let order = survey.finish(builder).map_err(|why| unfit(path, why))?;
        let events = lists.finish().and_then(|()| EventSequence::new(beside));
        let mut events = events.map_err(StreamedError::Unwritten)?;
        let ordered = order.run(
            |location| lists.next(location).map_err(Ordering::File),
            |event, time| events.put((event, time)).map_err(Ordering::File),
        );
        let census = match ordered {
            Ok(census) => census,
            Err(Ordering::Stream(why)) => return Err(unfit(path, why)),
            Err(Ordering::File(why)) => return Err(StreamedError::Unwritten(why)),
        };
        events.finish().map_err(StreamedError::Unwritten)?;
        Ok((census, events))
    }
}

/// Error of the pass that puts events in order.
enum Ordering {
    Stream(StreamError),
    File(FileError),
}

impl From<StreamError> for Ordering {
    fn from(why: StreamError) -> Self {
        Self::Stream(why)
    }
}

impl TraceTarget for Surveyed {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.builder.add_location(place)
    }

    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.builder.add_thread(rank)
    }

    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.builder.add_communicator(members)
    }
}

impl EventTarget for Surveyed {
    type Error = TraceError;

    fn has(&self, _: LocationId) -> bool {
        true
    }

    #[inline]
    fn take(
        &mut self,
        _: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), TraceError> {
        let event = self.survey.push(&self.builder, location, time, action)?;
        if let Err(why) = self.lists.put(location, &event) {
            self.failed.get_or_insert(why);
        }
        Ok(())
    }
}
