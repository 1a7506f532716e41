//! Trace in a file that is too large for memory, corrected by several passes over temporary files.

mod corrected;
mod error;
mod leeways;
mod surveyed;
mod time_map;

use std::path::{Path, PathBuf};

use crate::check::{StreamedVerdict, Verdict};
use crate::deviation::{Deviation, StreamedDeviation};
use crate::distributed::CorrectionError;
use crate::movement::{Movement, MovementWalk, TimeSlices};
use crate::presync::{Interpolation, MessageHulls};
use crate::streaming::{
    Census, Linked, Record, StreamError, StreamedBackward, StreamedForward, StreamedHulls,
    StreamedLatencies,
};
use crate::{ControlledLogicalClock, Correction, CorrectionSettings, Latencies, Matching, Pass};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::loading::Loading;
use super::numbers::FileNumbers;
use super::otf2::{Archive, Origin, ReadOptions};
use super::sessions::Sessions;
use super::spill::{EventSequence, NumberCursor, NumberLists, Queue, Stack};
use super::{TraceFormat, TraceReader};
use downbeat_files::{Checksums, FileError};
use leeways::{LeewayPass, StreamedLeeways};
use surveyed::Surveyed;
use time_map::{TimeMap, TimesBefore};

pub use corrected::CorrectedStream;
pub use error::StreamedError;

/// Counterpart of [`TraceFile`](super::TraceFile) and [`Archive`] whose events are not in memory, but
/// in temporary files, which are always removed.
#[derive(Debug)]
pub struct StreamedTrace {
    /// Path of the file, or of the anchor file of the archive.
    pub path: PathBuf,
    /// Contents of the trace.
    pub census: Census,
    /// Names of the locations, in their order.
    pub names: Vec<String>,
    /// Samples of the locations' clocks.
    pub sessions: Sessions,
    /// Location whose clock the others were compared with, by its number.
    pub master: u32,
    /// Times of the first and the last event; `None` if there are no events.
    pub span: Option<[Timestamp<Global>; 2]>,
    source: StreamedSource,
    /// All events, each after those that it waits for.
    events: EventSequence,
    /// Path next to which the temporary files are.
    beside: PathBuf,
}

/// File or archive that the events are from.
#[derive(Debug)]
enum StreamedSource {
    File(TraceFormat, FileNumbers),
    Archive(Box<(Archive, Origin)>),
}

/// Result of all passes over the events, before the corrected trace is written.
struct Replayed {
    passes: Vec<Pass>,
    /// Number of receives and exits that were too early even after the events before them had been
    /// moved.
    jumps: u64,
    /// Number of receives, and of exits that wait for other members.
    arrivals: u64,
    times: NumberLists,
    /// For an archive, for each enter 1 if others wait for it.
    enters: Option<NumberLists>,
}

/// Checks of the times before the correction.
struct ChecksBefore {
    as_measured: Verdict,
    pre_synchronized: Verdict,
    /// Times of the first and the last event after pre-synchronization.
    span: Option<[Timestamp<Global>; 2]>,
}

/// Result of the pass over the final times.
struct Judged {
    verdict: Verdict,
    deviation: Deviation,
    movement: Movement,
    leeways: Option<StreamedLeeways>,
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
        let mut surveyed = Surveyed::new(matching, beside)?;
        let mut loading = Loading::new(&mut surveyed);
        while let Some(item) = reader.next_item()? {
            if let Err(why) = loading.take(&item) {
                return Err(reader.error(why).into());
            }
            loading.target.check()?;
        }
        let Loading {
            numbers,
            names,
            sessions,
            master,
            ..
        } = loading;
        let unfit = |why: StreamError| match why {
            StreamError::Trace(why) => FileError::content(path, why.to_string()).into(),
            why => StreamedError::InMemory(FileError::content(path, why.to_string())),
        };
        let (census, events, span) = surveyed.finish(beside, unfit)?;
        Ok(Self {
            path: path.to_owned(),
            census,
            names,
            sessions,
            master,
            span,
            source: StreamedSource::File(reader.format(), numbers),
            events,
            beside: beside.to_owned(),
        })
    }

    /// Reads an archive into temporary files next to `beside`.
    ///
    /// # Errors
    /// As [`Archive::read`]; and if events wait for each other in a cycle, or temporary files cannot
    /// be written.
    pub fn read_archive(
        archive: Archive,
        reading: &ReadOptions,
        beside: &Path,
    ) -> Result<Self, StreamedError> {
        let mut surveyed = Surveyed::new(reading.matching, beside)?;
        let origin = archive.survey(reading, &mut surveyed)?;
        surveyed.check()?;
        let path = archive.anchor().to_owned();
        let unfit = |why: StreamError| match why {
            StreamError::Trace(why) => archive.trace_error(why).into(),
            why => StreamedError::InMemory(FileError::content(&path, why.to_string())),
        };
        let (census, events, span) = surveyed.finish(beside, unfit)?;
        let mut sessions = archive.sessions(&origin);
        if reading.offsets {
            sessions.iter_mut().for_each(Vec::clear);
        }
        Ok(Self {
            path,
            census,
            names: archive.names(&origin),
            sessions,
            master: 0,
            span,
            source: StreamedSource::Archive(Box::new((archive, origin))),
            events,
            beside: beside.to_owned(),
        })
    }

    /// Returns the archive from which the trace was read.
    pub fn archive(&self) -> Option<(&Archive, &Origin)> {
        match &self.source {
            StreamedSource::File(..) => None,
            StreamedSource::Archive(both) => Some((&both.0, &both.1)),
        }
    }

    /// Returns the format of the file from which the trace was read.
    pub fn format(&self) -> Option<TraceFormat> {
        match self.source {
            StreamedSource::File(format, _) => Some(format),
            StreamedSource::Archive(_) => None,
        }
    }

    /// Corrects the trace as [`correct()`](crate::correct()) does for one in memory.
    ///
    /// # Errors
    /// If the sessions are ones that no clock can have produced, a pre-synchronized time
    /// is out of range, or temporary files cannot be written; and if only
    /// pre-synchronization is wanted.
    pub fn correct(
        &self,
        settings: &CorrectionSettings,
    ) -> Result<CorrectedStream<'_>, StreamedError> {
        if settings.only_pre_synchronized {
            let why = "only pre-synchronized traces are read into memory";
            return Err(StreamedError::InMemory(FileError::content(&self.path, why)));
        }
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
        let ChecksBefore {
            as_measured,
            pre_synchronized,
            span,
        } = self.check_before(map, latencies)?;
        let mut clock = settings.clock;
        clock.latencies = latencies;
        clock.rule.control = settings.control(&pre_synchronized, &sessions, span);
        let Replayed {
            passes,
            jumps,
            arrivals,
            times,
            enters,
        } = self.replay(map, &clock, settings.backward)?;
        let span = span.unwrap_or([Timestamp::ORIGIN; 2]);
        let mut judged = self.judge(map, (&times, span), latencies, enters)?;
        let corrected = judged.verdict;
        let violations = corrected.violations_since(&pre_synchronized);
        if violations > 0 {
            let why = CorrectionError::Violated(violations);
            return Err(StreamedError::Violated(why));
        }
        if let Some(leeways) = &mut judged.leeways {
            let shifted = map.shift != Duration::ZERO;
            let is_moved = |location| shifted || needed.is_some_and(|maps| maps.changes(location));
            leeways.move_all(is_moved);
        }
        let clocks_mapped = needed.is_some();
        let (unknown_clocks, sessions_left_out, clock_error) = maps.map_or((0, 0, None), |maps| {
            (maps.unknown, maps.left_out, maps.bound)
        });
        let report = Correction {
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
            deviation: judged.deviation,
            movement: judged.movement,
            truth: None,
        };
        Ok(CorrectedStream {
            trace: self,
            report,
            sessions,
            times,
            leeways: judged.leeways,
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
        let mut messages = Queue::new(&self.beside)?;
        self.each(map, |event, times| {
            let taken = latencies.take(event, times.pre_synchronized, |number| {
                messages.push(number)
            });
            Ok(taken?)
        })?;
        if latencies.end_pass(&mut messages, Queue::push, Queue::next)? {
            self.each(map, |event, times| {
                latencies.take_operation(event, times.pre_synchronized);
                Ok(())
            })?;
        }
        Ok(latencies.finish())
    }

    /// Checks the measured and the pre-synchronized times.
    fn check_before(
        &self,
        map: TimeMap<'_>,
        latencies: Latencies,
    ) -> Result<ChecksBefore, StreamedError> {
        let mut verdicts = [(); 2].map(|()| StreamedVerdict::new(&self.census, latencies));
        let mut span = None;
        self.each(map, |event, times| {
            let before = times.pre_synchronized;
            let [first, last] = span.unwrap_or([before; 2]);
            span = Some([before.min(first), before.max(last)]);
            let [as_measured, pre_synchronized] = &mut verdicts;
            as_measured.take(event, before, times.measured);
            pre_synchronized.take(event, before, before);
            Ok(())
        })?;
        let [as_measured, pre_synchronized] = verdicts.map(StreamedVerdict::finish);
        Ok(ChecksBefore {
            as_measured,
            pre_synchronized,
            span,
        })
    }

    /// Corrects the pre-synchronized times as [`ControlledLogicalClock::correct`] does, on request
    /// without backward amortization.
    fn replay(
        &self,
        map: TimeMap<'_>,
        clock: &ControlledLogicalClock,
        backward: bool,
    ) -> Result<Replayed, StreamedError> {
        let resolution = map.resolution;
        let clock = resolution.map_or(*clock, |resolution| resolution.clock(clock));
        let mut stack = Stack::new(&self.beside)?;
        let (mut jumps, mut arrivals) = (0, 0);
        let mut passes = clock.streamed_passes(|rule| {
            stack.clear();
            let mut pass = StreamedForward::new(&self.census, rule, clock.latencies);
            self.each(map, |event, times| {
                let record = pass.take(event, times.ticks);
                let record =
                    record.map_err(|why| FileError::content(&self.path, why.to_string()))?;
                record.push_to(|number| stack.push(number))?;
                Ok(())
            })?;
            (jumps, arrivals) = (pass.jumps, pass.arrivals);
            Ok::<_, StreamedError>(pass.finish())
        })?;
        let locations = self.census.ids().len();
        let mut times = NumberLists::new(&self.beside, locations)?;
        let enters = self
            .archive()
            .map(|_| NumberLists::new(&self.beside, locations));
        let mut enters = enters.transpose()?;
        let mut put = |location, time: Timestamp<Global>| {
            let time = resolution.map_or(time, |resolution| resolution.time(time));
            times.put(location, time.as_nanos())
        };
        let gradient = backward.then_some(clock.gradient);
        let mut backward = StreamedBackward::new(&self.census, clock.latencies, gradient);
        self.events.each_reversed(|event| {
            let Some(record) = Record::pop_from(event, || stack.pop())? else {
                // Every event was pushed.
                return Ok(());
            };
            let is_awaited = backward.take(&record, &mut put)?;
            match &mut enters {
                Some(enters) if event.is_enter() => {
                    enters.put(event.id.location, is_awaited.into())
                }
                _ => Ok(()),
            }
        })?;
        backward.finish(&mut put)?;
        times.finish()?;
        enters.as_mut().map_or(Ok(()), NumberLists::finish)?;
        if let Some(resolution) = resolution {
            passes
                .iter_mut()
                .for_each(|pass| *pass = resolution.pass(*pass));
        }
        Ok(Replayed {
            passes,
            jumps,
            arrivals,
            times,
            enters,
        })
    }

    /// Checks the final times, and compares them with the pre-synchronized ones.
    fn judge(
        &self,
        map: TimeMap<'_>,
        (times, [first, last]): (&NumberLists, [Timestamp<Global>; 2]),
        latencies: Latencies,
        enters: Option<NumberLists>,
    ) -> Result<Judged, StreamedError> {
        let slices = TimeSlices::between(first, last);
        let mut movement = MovementWalk::new(slices, self.census.clocks().len());
        let mut deviation = StreamedDeviation::default();
        let mut verdict = StreamedVerdict::new(&self.census, latencies);
        let mut cursors = NumberCursor::all(self.census.ids());
        let leeways = enters.map(|enters| LeewayPass::new(&self.census, enters, &self.beside));
        let mut leeways = leeways.transpose()?;
        self.each(map, |event, before| {
            let (location, measured) = (event.id.location, before.measured);
            let before = before.pre_synchronized;
            // There is one for each event.
            let time = cursors[location.index()].next(times)?;
            let time = time.map_or(before, Timestamp::from_nanos);
            verdict.take(event, before, time);
            deviation.take(location, before, time);
            movement.take(location.index(), before, time);
            if let Some(leeways) = &mut leeways {
                leeways.take(event, measured, time)?;
            }
            Ok(())
        })?;
        Ok(Judged {
            verdict: verdict.finish(),
            deviation: deviation.finish(),
            movement: movement.finish(),
            leeways: leeways.map(LeewayPass::finish).transpose()?,
        })
    }

    /// Passes all events to `see`, with their times.
    fn each(
        &self,
        map: TimeMap<'_>,
        mut see: impl FnMut(Linked, TimesBefore) -> Result<(), StreamedError>,
    ) -> Result<(), StreamedError> {
        let (clocks, mut pass) = (self.census.clocks(), map.begin(&self.census));
        self.events.each(|(event, time)| {
            pass.take(clocks, event.id, time)
                .map_or(Ok(()), |times| see(event, times))
        })?;
        match pass.far {
            Some((_, why)) => Err(FileError::content(&self.path, why.to_string()).into()),
            None => Ok(()),
        }
    }
}
