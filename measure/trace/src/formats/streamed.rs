//! Trace in a file that is too large for memory, corrected by reading it several times.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{
    Action, Census, ClockMaps, CommunicatorId, ControlledLogicalClock, Correction, CorrectionError,
    CorrectionSettings, Deviation, EventId, Interpolation, Latencies, Linked, LocationId, Matcher,
    Matching, MessageHulls, MovementWalk, Pass, Place, Record, StreamError, StreamedBackward,
    StreamedDeviation, StreamedForward, StreamedHulls, StreamedLatencies, StreamedMaps,
    StreamedVerdict, Survey, TimeSlices, TraceBuilder, TraceError, Verdict,
};
use downbeat_clock_core::{Global, Timestamp};

use super::file::copy;
use super::item::{Item, What};
use super::loading::Loading;
use super::numbers::FileNumbers;
use super::sessions::{Sessions, changed};
use super::spill::{List, Listed, Stack};
use super::target::{EventTarget, TraceTarget};
use super::{TraceFormat, TraceReader};
use downbeat_files::{Checksums, FileError};

/// Error of the correction of a trace that is read several times.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamedError {
    /// The file cannot be read or written, or is not a valid trace.
    Record(FileError),
    /// An event waits for another one that comes later in the file: this trace must be corrected in
    /// memory.
    Disorder(FileError),
    /// The correction left violations, which is a bug.
    Violated(CorrectionError),
}

impl fmt::Display for StreamedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(why) | Self::Disorder(why) => why.fmt(f),
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

/// Counterpart of [`TraceFile`](super::TraceFile) whose events are not in memory, but read whenever
/// they are needed, in the order of the file.
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
}

/// Result of all passes over the events, before the corrected file is written.
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
    /// Final times, in the order of the file.
    times: Listed,
}

/// Event with its measured and its pre-synchronized time.
type Seen = (Linked, [Timestamp<Global>; 2]);

/// State of one more pass over the events of a file.
struct StreamPass<'a> {
    trace: &'a StreamedTrace,
    matcher: Matcher<'a>,
    maps: Option<StreamedMaps<'a>>,
    /// First event whose pre-synchronized time is out of range.
    far: Option<(EventId, TraceError)>,
    events: u64,
}

impl StreamedTrace {
    /// Reads all of a file once.
    ///
    /// # Errors
    /// As [`TraceFile::read`](super::TraceFile::read), and if a message is received before it is
    /// sent, in the order of the file.
    pub fn read(
        path: &Path,
        matching: Matching,
        checksums: Checksums,
    ) -> Result<Self, StreamedError> {
        let mut reader = TraceReader::open(path)?.with_checksums(checksums);
        let mut surveyed = Surveyed {
            builder: TraceBuilder::new(matching),
            survey: Survey::default(),
            is_disorder: false,
        };
        let mut loading = Loading::new(&mut surveyed);
        while let Some(item) = reader.next_item()? {
            if let Err(why) = loading.take(&item) {
                let why = reader.error(why);
                return Err(if loading.target.is_disorder {
                    StreamedError::Disorder(why)
                } else {
                    why.into()
                });
            }
        }
        let Loading {
            numbers,
            names,
            sessions,
            master,
            ..
        } = loading;
        let census = surveyed.survey.finish(surveyed.builder);
        let census = census.map_err(|why| FileError::content(path, why.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            format: reader.format(),
            census,
            names,
            sessions,
            master,
            numbers,
        })
    }

    /// Corrects the trace, and writes it to another file, as [`correct()`](crate::correct()) does for one
    /// in memory. Data that do not fit in memory are in temporary files in the folder of the output,
    /// which are always removed.
    ///
    /// # Errors
    /// If an event comes before one that it waits for, the sessions are ones that no clock can have
    /// produced, the file has changed or cannot be read again, a pre-synchronized time is out of
    /// range, or files cannot be written.
    pub fn correct(
        &self,
        settings: &CorrectionSettings,
        to: (&Path, TraceFormat),
    ) -> Result<Correction, StreamedError> {
        let (clocks, mut sessions) = (self.census.clocks(), self.sessions.clone());
        let method = settings.pre_synchronization;
        let maps = match method {
            None => Ok(None),
            Some(method) if method.interpolation == Interpolation::Hull => {
                let least = settings.latencies.unwrap_or(Latencies::ZERO);
                method
                    .maps_of_messages(clocks, self.hulls(&least)?)
                    .map(Some)
            }
            Some(method) => method.maps(clocks, &sessions).map(Some),
        };
        let maps = maps.map_err(|why| FileError::content(&self.path, why.to_string()))?;
        if let Some(maps) = &maps {
            maps.correct_samples(&mut sessions);
        }
        let latencies = match settings.latencies {
            Some(latencies) => latencies,
            None => self.latencies(maps.as_ref())?,
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
        } = self.replay(maps.as_ref(), &clock, settings.backward, to.0)?;
        let slices = TimeSlices::between(span[0], span[1]);
        let mut movement = MovementWalk::new(slices, clocks.len());
        let see = |location: LocationId, before, after| {
            movement.take(location.index(), before, after);
        };
        let (corrected, deviation) =
            self.write_corrected(to, maps.as_ref(), (times, &latencies), &sessions, see)?;
        let violations = corrected.violations_since(&pre_synchronized);
        if violations > 0 {
            let why = CorrectionError::Violated(violations);
            return Err(StreamedError::Violated(why));
        }
        let clocks_mapped = maps.as_ref().is_some_and(ClockMaps::are_needed);
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
            movement: movement.finish(),
            truth: None,
        })
    }

    /// Returns the hulls of messages by the measured times.
    fn hulls(&self, least: &Latencies) -> Result<MessageHulls, StreamedError> {
        let mut hulls = StreamedHulls::new(&self.census, *least);
        self.each(None, |event, [time, _]| {
            hulls.take(event, time);
            Ok(())
        })?;
        Ok(hulls.finish())
    }

    /// Returns [`Latencies::measured`] of the pre-synchronized times.
    fn latencies(&self, maps: Option<&ClockMaps>) -> Result<Latencies, StreamedError> {
        let mut latencies = StreamedLatencies::new(&self.census);
        loop {
            self.each(maps, |event, [_, time]| {
                latencies.take(event, time);
                Ok(())
            })?;
            if !latencies.has_another_pass() {
                return Ok(latencies.finish());
            }
        }
    }

    /// Pre-synchronizes all times with `maps`, and corrects them as
    /// [`ControlledLogicalClock::correct`] does, on request without backward amortization.
    fn replay(
        &self,
        maps: Option<&ClockMaps>,
        clock: &ControlledLogicalClock,
        backward: bool,
        beside: &Path,
    ) -> Result<Replayed, StreamedError> {
        let mut stack = Stack::new(beside)?;
        let mut verdicts =
            Some([(); 2].map(|()| StreamedVerdict::new(&self.census, clock.latencies)));
        let (mut judged, mut jumps, mut arrivals, mut span) = (None, 0, 0, None);
        let passes = clock.streamed_passes(|rule| {
            stack.clear();
            let mut pass = StreamedForward::new(&self.census, rule, clock.latencies);
            let mut failed = Ok(());
            self.each(maps, |event, [measured, time]| {
                if let Some([as_measured, pre_synchronized]) = &mut verdicts {
                    as_measured.take(event, time, measured);
                    pre_synchronized.take(event, time, time);
                }
                let [first, last] = span.unwrap_or([time; 2]);
                span = Some([time.min(first), time.max(last)]);
                let record = pass.take(event, time)?;
                record.push_to(|word| {
                    if failed.is_ok() {
                        failed = stack.push(word);
                    }
                });
                Ok(())
            })?;
            failed?;
            judged = judged.take().or(verdicts
                .take()
                .map(|both| both.map(StreamedVerdict::finish)));
            (jumps, arrivals) = (pass.jumps, pass.arrivals);
            Ok::<_, StreamedError>(pass.finish())
        })?;
        let mut times = List::new(beside, self.census.events)?;
        let mut put = |event, time: Timestamp<Global>| times.put(event, time.as_nanos() as u64);
        let gradient = backward.then_some(clock.gradient);
        let mut backward = StreamedBackward::new(&self.census, clock.latencies, gradient);
        while let Some(record) = Record::pop_from(|| stack.pop())? {
            backward.take(&record, &mut put)?;
        }
        backward.finish(&mut put)?;
        let [as_measured, pre_synchronized] = judged.unwrap_or_default();
        Ok(Replayed {
            passes,
            jumps,
            arrivals,
            span: span.unwrap_or([Timestamp::ORIGIN; 2]),
            as_measured,
            pre_synchronized,
            times: times.finish()?,
        })
    }

    /// Writes the same trace to another file, and checks it: returns the verdict on its times, and
    /// their deviation from the pre-synchronized ones. The file is only kept if there are no
    /// violations. `see` receives the pre-synchronized and the final time of every event.
    fn write_corrected(
        &self,
        (path, format): (&Path, TraceFormat),
        maps: Option<&ClockMaps>,
        (mut times, latencies): (Listed, &Latencies),
        sessions: &Sessions,
        mut see: impl FnMut(LocationId, Timestamp<Global>, Timestamp<Global>),
    ) -> Result<(Verdict, Deviation), StreamedError> {
        let (mut reading, mut deviation) =
            (StreamPass::new(self, maps), StreamedDeviation::default());
        let mut verdict = StreamedVerdict::new(&self.census, *latencies);
        let (writer, windows_end) = copy(
            [&self.path, path],
            format,
            sessions,
            |location, time, what| {
                let seen = reading
                    .take(location, time, what)
                    .map_err(|_| changed(&self.path))?;
                let (event, [_, before]) = seen.ok_or_else(|| changed(&self.path))?;
                let time = Timestamp::from_nanos(times.next()? as i64);
                verdict.take(event, before, time);
                deviation.take(event.id.location, before, time);
                see(event.id.location, before, time);
                Ok(time)
            },
        )?;
        reading.finish()?;
        let verdict = verdict.finish();
        if verdict.holds() {
            writer.finish_line(windows_end)?;
        }
        Ok((verdict, deviation.finish()))
    }

    /// Reads all events again: `see` receives each with its link, its measured time, and its
    /// pre-synchronized time.
    fn each(
        &self,
        maps: Option<&ClockMaps>,
        mut see: impl FnMut(Linked, [Timestamp<Global>; 2]) -> Result<(), StreamError>,
    ) -> Result<(), StreamedError> {
        let reader = TraceReader::open(&self.path)?;
        let mut reader = reader.with_checksums(Checksums::Ignore);
        let mut reading = StreamPass::new(self, maps);
        while let Some(item) = reader.next_item()? {
            let Item::Event {
                location,
                time,
                what,
            } = item
            else {
                continue;
            };
            let seen = reading.take(location, time, what)?;
            let Some((event, times)) = seen else { continue };
            if let Err(why) = see(event, times) {
                let content = reader.error(why.to_string());
                return Err(match why {
                    StreamError::Trace(_) => content.into(),
                    _ => StreamedError::Disorder(content),
                });
            }
        }
        reading.finish()
    }
}

/// Builder of locations and communicators, and survey of events.
#[derive(Debug)]
struct Surveyed {
    builder: TraceBuilder,
    survey: Survey,
    /// True if the last event came before the one that it waits for.
    is_disorder: bool,
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
    type Error = StreamError;

    fn has(&self, _: LocationId) -> bool {
        true
    }

    fn take(
        &mut self,
        _: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), StreamError> {
        let pushed = self.survey.push(&self.builder, location, time, action);
        self.is_disorder = !matches!(pushed, Ok(()) | Err(StreamError::Trace(_)));
        pushed
    }
}

impl<'a> StreamPass<'a> {
    fn new(trace: &'a StreamedTrace, maps: Option<&'a ClockMaps>) -> Self {
        let maps = maps.map(|maps| maps.streamed(&trace.census));
        Self {
            trace,
            matcher: Matcher::new(&trace.census),
            maps,
            far: None,
            events: 0,
        }
    }

    /// Returns the next event; `None` if the pre-synchronized time of any event is out of range.
    #[inline]
    fn take(
        &mut self,
        location: u32,
        time: Timestamp<Global>,
        what: What<'_>,
    ) -> Result<Option<Seen>, StreamedError> {
        let changed = || changed(&self.trace.path);
        let (location, action) = self.trace.numbers.of(location, what).ok_or_else(changed)?;
        self.events += 1;
        let event = self
            .matcher
            .link(location, action)
            .map_err(|why| match why {
                StreamError::Disorder(_) => {
                    StreamedError::Disorder(FileError::content(&self.trace.path, why.to_string()))
                }
                _ => changed().into(),
            })?;
        let mapped = self
            .maps
            .as_mut()
            .map_or(Ok(time), |maps| maps.apply(event.id, time));
        match mapped {
            Ok(mapped) if self.far.is_none() => return Ok(Some((event, [time, mapped]))),
            Ok(_) => {}
            Err(why) if self.far.is_none_or(|(first, _)| event.id < first) => {
                self.far = Some((event.id, why));
            }
            Err(_) => {}
        }
        Ok(None)
    }

    /// Checks that the file has not changed, and that all pre-synchronized times were in range.
    fn finish(self) -> Result<(), StreamedError> {
        if let Some((_, why)) = self.far {
            return Err(FileError::content(&self.trace.path, why.to_string()).into());
        }
        if self.events == self.trace.census.events {
            Ok(())
        } else {
            Err(changed(&self.trace.path).into())
        }
    }
}
