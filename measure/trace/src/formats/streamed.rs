//! A trace in a file that is too large for memory: corrected by reading it again and again.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{
    Action, Census, ClockMaps, CommunicatorId, ControlledLogicalClock, Deviation, EventId,
    Latencies, Linked, LocationId, Matcher, Matching, Pass, Place, Record, StreamError,
    StreamedBackward, StreamedDeviation, StreamedForward, StreamedLatencies, StreamedMaps,
    StreamedVerdict, Survey, TraceBuilder, TraceError, Verdict,
};
use downbeat_clock_core::{Global, Timestamp};

use super::file::{LoadTarget, Loading, copy};
use super::item::{Item, What};
use super::numbers::Numbers;
use super::sessions::{Sessions, changed};
use super::spill::{List, Listed, Stack};
use super::{TraceFormat, TraceReader};
use downbeat_files::FileError;

/// Why a trace cannot be corrected by reading it again and again.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamedError {
    /// It cannot be read or written, or it is no trace.
    Record(FileError),
    /// An event waits for another one that comes after it in the file: this trace is to be corrected in memory.
    Disorder(FileError),
}

impl fmt::Display for StreamedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(why) | Self::Disorder(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for StreamedError {}

impl From<FileError> for StreamedError {
    fn from(why: FileError) -> Self {
        Self::Record(why)
    }
}

/// A [`TraceFile`](super::TraceFile) whose events are not in memory, but read whenever they are needed, in the order in
/// which they are in the file.
#[derive(Debug)]
pub struct StreamedTrace {
    /// Where it is.
    pub path: PathBuf,
    /// In which format.
    pub format: TraceFormat,
    /// What there is in it.
    pub census: Census,
    /// What locations are called, in their order.
    pub names: Vec<String>,
    /// What the clocks of its locations showed when they were compared.
    pub sessions: Sessions,
    /// With whose; the number of a location.
    pub master: u32,
    numbers: Numbers,
}

/// What a correction makes of a trace.
#[derive(Debug)]
pub struct StreamedCorrection {
    /// The passes that there were, of which the last one counts.
    pub passes: Vec<Pass>,
    /// How many receives and exits had to be moved beyond what events before them were.
    pub jumps: u64,
    /// How many receives and exits wait for anybody.
    pub arrivals: u64,
    /// When the first and the last of all events were on one clock; the origin, if there are none.
    pub span: [Timestamp<Global>; 2],
    /// What there is to say against times in the file.
    pub as_measured: Verdict,
    /// What there is to say against them on one clock.
    pub pre_synchronized: Verdict,
    latencies: Latencies,
    /// Final times, in the order of the file.
    times: Listed,
}

/// An event, when it was measured, and when it was on one clock.
type Seen = (Linked, [Timestamp<Global>; 2]);

/// What reads the events of a file once more.
struct Reading<'a> {
    trace: &'a StreamedTrace,
    matcher: Matcher<'a>,
    maps: Option<StreamedMaps<'a>>,
    /// The first event whose time cannot be had on one clock.
    far: Option<(EventId, TraceError)>,
    events: u64,
}

impl StreamedTrace {
    /// Looks at all of a file once.
    ///
    /// # Errors
    /// As of [`TraceFile::read`](super::TraceFile::read), and when a message is received before it is sent, in the order
    /// of the file.
    pub fn read(path: &Path, matching: Matching) -> Result<Self, StreamedError> {
        let mut reader = TraceReader::open(path)?;
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

    /// [`Latencies::measured`], of times on one clock.
    ///
    /// # Errors
    /// When the file cannot be read again as it was, or a time is too far from the origin on one clock.
    pub fn latencies(&self, maps: Option<&ClockMaps>) -> Result<Latencies, StreamedError> {
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

    /// Corrects all times, after `maps` have made one clock of all, as
    /// [`ControlledLogicalClock::correct`] does; without what is done backward, if so asked. What does not fit into memory
    /// is in the folder of `beside`, in files that are gone afterwards, whatever happens.
    ///
    /// # Errors
    /// As of [`latencies`](Self::latencies), and when an exit from a collective operation comes before an enter that it
    /// waits for, or files cannot be written.
    pub fn correct(
        &self,
        maps: Option<&ClockMaps>,
        clock: &ControlledLogicalClock,
        backward: bool,
        beside: &Path,
    ) -> Result<StreamedCorrection, StreamedError> {
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
        let (latencies, times) = (clock.latencies, times.finish()?);
        let span = span.unwrap_or([Timestamp::ORIGIN; 2]);
        Ok(StreamedCorrection {
            passes,
            jumps,
            arrivals,
            span,
            as_measured,
            pre_synchronized,
            latencies,
            times,
        })
    }

    /// Writes the same trace to another file, as [`TraceFile::write_corrected`](super::TraceFile::write_corrected) does,
    /// and looks at it: what there is to say against its times, and what became of those on one clock. The file is there
    /// only if there is nothing to say. `see` is told of every event when it was on one clock, and when it is now.
    ///
    /// # Errors
    /// When the file cannot be written, or this one cannot be read again as it was.
    pub fn write_corrected(
        &self,
        (path, format): (&Path, TraceFormat),
        maps: Option<&ClockMaps>,
        correction: StreamedCorrection,
        sessions: &Sessions,
        mut see: impl FnMut(LocationId, Timestamp<Global>, Timestamp<Global>),
    ) -> Result<(Verdict, Deviation), StreamedError> {
        let StreamedCorrection {
            latencies,
            mut times,
            ..
        } = correction;
        let (mut reading, mut deviation) = (Reading::new(self, maps), StreamedDeviation::default());
        let mut verdict = StreamedVerdict::new(&self.census, latencies);
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

    /// Reads all events again: `see` is told what others have to do with each, and when it was measured, and when it was
    /// on one clock.
    fn each(
        &self,
        maps: Option<&ClockMaps>,
        mut see: impl FnMut(Linked, [Timestamp<Global>; 2]) -> Result<(), StreamError>,
    ) -> Result<(), StreamedError> {
        let (mut reader, mut reading) = (TraceReader::open(&self.path)?, Reading::new(self, maps));
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
                    StreamError::Disorder(_) => StreamedError::Disorder(content),
                    _ => content.into(),
                });
            }
        }
        reading.finish()
    }
}

/// A builder of locations and communicators, and a survey of events.
#[derive(Debug)]
struct Surveyed {
    builder: TraceBuilder,
    survey: Survey,
    /// True if the last event came before the one that it waits for.
    is_disorder: bool,
}

impl LoadTarget for Surveyed {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.builder.add_location(place)
    }

    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.builder.add_thread(rank)
    }

    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.builder.add_communicator(members)
    }

    fn event(
        &mut self,
        _: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), String> {
        self.survey
            .push(&self.builder, location, time, action)
            .map_err(|why| {
                self.is_disorder = matches!(why, StreamError::Disorder(_));
                why.to_string()
            })
    }
}

impl<'a> Reading<'a> {
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

    /// The next event; `None`, if not all can be had on one clock.
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

    /// Whether the file was as it had been, and all could be had on one clock.
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
