//! Copies of an archive with corrected times: by clock offsets, or else by rewritten events.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_files::create_beside;
use downbeat_otf2::{EventReader, files};
use rustc_hash::FxHashMap;

use super::integrity::write_checksums;
use super::times::ArchiveTimes;
use super::{Archive, Origin, Otf2Error, clock_properties, offsets};
use crate::knots::{Knots, TimeWindow};
use crate::presync::ClockOffsetError;
use crate::workers::share;
use crate::{Array, LocationId, Trace};

/// Options for writing a corrected archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// If true, the events of all locations are rewritten; otherwise only where clock offsets do
    /// not suffice.
    pub rewrite: bool,
    /// Number of threads that share the work; the result is the same.
    pub workers: usize,
}

impl Default for WriteOptions {
    /// Clock offsets where they suffice, on one thread.
    fn default() -> Self {
        Self {
            rewrite: false,
            workers: 1,
        }
    }
}

/// Archive that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenArchive {
    /// Anchor file of the new archive.
    pub anchor: PathBuf,
    /// Number of clock offsets of each location, in the order of [`Archive::locations`].
    pub knots: Vec<usize>,
    /// True for each location whose events were rewritten, in the same order.
    pub rewritten: Vec<bool>,
}

/// Files of an experiment of Score-P that belong to its archive.
const COMPANIONS: [&str; 3] = ["scorep.cfg", "scorep.filter", "MANIFEST.md"];

/// Number of clock offsets of a location, and true if its events were rewritten.
type WrittenLocation = (usize, bool);

/// One offset per this number of events is not too many.
const EVENTS_PER_KNOT: usize = 4;

/// Returns the maximum number of offsets for this number of events. Readers hold all of them, so that
/// new times of the events take less.
fn most_knots(events: usize) -> usize {
    (events / EVENTS_PER_KNOT).clamp(1_000, 100_000)
}

impl Archive {
    /// Writes a copy of the archive into a new folder, in which every reader of OTF2 finds these
    /// times, given for every location of the trace in the order of its numbers. Only the clock
    /// offsets of the local definitions are replaced, which readers interpolate; all other data are
    /// kept.
    ///
    /// All locations that share a clock get the same offsets, if they can. There are few, so that
    /// interpolated times may differ by a nanosecond; but no message becomes faster, and the order of
    /// the events of each clock stays the same: see [`Trace::leeway`]. The files of locations whose
    /// times are as before are copied as they are.
    ///
    /// Offsets cannot move events apart that were recorded at one time. If that is necessary, if
    /// more than one offset per four events or 100,000 are needed, or if [`WriteOptions::rewrite`] is set, the
    /// events of the location are rewritten, with exactly these times and no clock offsets;
    /// [`WrittenArchive::rewritten`] lists these locations. All other data of records of any kind
    /// are copied byte by byte.
    ///
    /// If ticks are longer than a nanosecond, readers find the nearest tick in either case: the
    /// order stays the same, but a message may be faster than its latency by less than a tick.
    ///
    /// The folder appears when it is complete, or not at all. If events moved, the start time and
    /// length of the archive are extended to cover them. Ends of flushes move with the events around
    /// them, as in OTF2, and so do markers, snapshots and samples of thumbnails. The configuration of
    /// Score-P next to the archive is copied.
    ///
    /// # Errors
    /// When the folder exists or cannot be written; when times do not belong to the trace,
    /// decrease, or cannot be represented in OTF2.
    ///
    /// [`Trace::leeway`]: crate::Trace::leeway
    pub fn write_corrected(
        &self,
        trace: &Trace,
        origin: &Origin,
        times: &[Array<Timestamp<Global>>],
        folder: &Path,
        writing: WriteOptions,
    ) -> Result<WrittenArchive, Otf2Error> {
        let mut times = ArchiveTimes {
            trace,
            origin,
            times,
            selected: &|_| true,
            shift: Duration::ZERO,
        };
        let mut span = times.moved_span();
        times.shift = self.shift_for(span.map(|[first, _]| first));
        if times.shift != Duration::ZERO {
            // All locations move.
            span = times.moved_span();
        }
        let copy = self.begin_copy(folder)?;
        let written = self.write_locations(times, copy.part(), writing)?;
        if let Some(span) = span {
            self.cover(copy.part(), span, times.shift)?;
        }
        self.write_instants(copy.part(), self.moved_instants(times)?)?;
        let (knots, rewritten) = written.into_iter().unzip();
        Ok(WrittenArchive {
            anchor: copy.finish(self.file_name())?,
            knots,
            rewritten,
        })
    }

    /// Returns the name of the anchor file.
    pub fn file_name(&self) -> &OsStr {
        self.anchor().file_name().unwrap_or_default()
    }

    /// Begins a copy that will be at `folder`, with all files except those of locations.
    ///
    /// # Errors
    /// When the folder exists or cannot be written.
    pub fn begin_copy(&self, folder: &Path) -> Result<ArchiveCopy, Otf2Error> {
        let copy = ArchiveCopy::begin(folder)?;
        self.copy_others(copy.part())?;
        Ok(copy)
    }

    /// Writes the files of the selected locations to a copy that was begun in `part`,
    /// possibly by another process, as [`write_corrected`](Self::write_corrected) does.
    /// Returns for each of them the number of clock offsets, and true if its events were
    /// rewritten, in the order of [`locations`](Self::locations).
    ///
    /// # Errors
    /// As for [`write_corrected`](Self::write_corrected).
    pub fn write_locations(
        &self,
        times: ArchiveTimes<'_>,
        part: &Path,
        writing: WriteOptions,
    ) -> Result<Vec<WrittenLocation>, Otf2Error> {
        let anchor = part.join(self.file_name());
        let mut clocks = FxHashMap::<u32, Vec<usize>>::default();
        for index in 0..self.locations().len() {
            let location = times.origin.locations.get(index).copied();
            if location.is_none_or(times.selected) {
                let clock = times.clock(index).ok_or_else(|| self.wrong_times(index))?;
                clocks.entry(clock).or_default().push(index);
            }
        }
        let mut clocks: Vec<_> = clocks.into_iter().collect();
        // The largest clocks come first, so that all workers end at about the same time.
        let events = |index: &usize| self.locations()[*index].events;
        clocks.sort_unstable_by_key(|(clock, indices)| {
            (Reverse(indices.iter().map(events).sum::<u64>()), *clock)
        });
        let next = AtomicUsize::new(0);
        let workers = vec![(); writing.workers.min(clocks.len()).max(1)];
        let all = share(workers, |_, ()| {
            let mut done = vec![];
            while let Some((clock, indices)) = clocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let clock_of = (LocationId(*clock), &indices[..]);
                match self.write_clock(times, clock_of, &anchor, writing.rewrite) {
                    Ok(written) => done.extend(written),
                    Err(why) => {
                        next.store(clocks.len(), Ordering::Relaxed);
                        return Err((*clock, why));
                    }
                }
            }
            Ok(done)
        });
        let (mut written, mut failures) = (vec![], vec![]);
        for of_worker in all {
            match of_worker {
                Ok(done) => written.extend(done),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some((_, why)) = failures.into_iter().min_by_key(|(clock, _)| *clock) {
            return Err(why);
        }
        written.sort_unstable_by_key(|(index, _)| *index);
        Ok(written.into_iter().map(|(_, found)| found).collect())
    }

    /// Extends the time span that the copy in `part` names, to cover these times, and
    /// states what it adds to all of them.
    ///
    /// # Errors
    /// If the definitions cannot be read again or written.
    pub fn cover(
        &self,
        part: &Path,
        [first, last]: [Timestamp<Global>; 2],
        shift: Duration,
    ) -> Result<(), Otf2Error> {
        if shift != Duration::ZERO {
            let exact = self.definitions.exact.unwrap_or_default();
            let anchor = part.join(self.file_name());
            exact.later(shift).replace(&anchor)?;
        }
        let path = files::global_definitions(self.anchor());
        let ticks = |time: Timestamp<Global>, end: usize| {
            let between = self.between([time; 2], shift);
            between.map_or(0, |ticks| ticks[end].max(0) as u64)
        };
        let file = fs::read(&path).map_err(Otf2Error::io(&path))?;
        let span = [ticks(first, 0), ticks(last, 1)];
        let new = clock_properties::covering(&file, self.files.anchor().definition_chunk, span);
        let new = new.map_err(|why| Otf2Error::content(&path, why))?;
        let Some(new) = new else { return Ok(()) };
        let to = part.join(path.file_name().unwrap_or_default());
        fs::write(&to, new).map_err(Otf2Error::io(&to))
    }

    /// Writes the locations of a clock, given by its first location in the trace and their indices
    /// here. Returns for each of them its index, the number of clock offsets, and true if its events
    /// were rewritten.
    fn write_clock(
        &self,
        times: ArchiveTimes<'_>,
        (clock, indices): (LocationId, &[usize]),
        anchor: &Path,
        rewrite: bool,
    ) -> Result<Vec<(usize, WrittenLocation)>, Otf2Error> {
        let is_moved = indices.iter().any(|index| !times.is_unmoved(*index));
        let mut shared = None;
        if is_moved && !rewrite {
            shared = self.knots_of_clock(times, clock, indices)?;
        }
        let write = |index: &usize| {
            let exact;
            let knots = match &shared {
                _ if times.of(*index).is_empty() || (times.is_unmoved(*index) && !rewrite) => {
                    self.copy_location(*index, anchor)?;
                    return Ok((*index, (self.locals[*index].offsets.len(), false)));
                }
                _ if rewrite => None,
                Some(shared) => Some(shared),
                None => {
                    exact = self.exact_knots(*index, times)?;
                    exact.as_ref()
                }
            };
            Ok((*index, self.write_location(*index, times, knots, anchor)?))
        };
        indices.iter().map(write).collect()
    }

    /// Copies the files of a location.
    fn copy_location(&self, index: usize, anchor: &Path) -> Result<(), Otf2Error> {
        for extension in ["evt", "def"] {
            let [from, to] =
                [self.anchor(), anchor].map(|anchor| self.path_in(anchor, index, extension));
            if from.exists() {
                copy_file(&from, &to)?;
            }
        }
        Ok(())
    }

    /// Writes a location with these clock offsets, or with other times of its events. Returns the
    /// number of clock offsets, and true if the events were rewritten.
    fn write_location(
        &self,
        index: usize,
        times: ArchiveTimes<'_>,
        knots: Option<&Knots>,
        anchor: &Path,
    ) -> Result<WrittenLocation, Otf2Error> {
        let paths = |extension: &str| {
            [self.anchor(), anchor].map(|anchor| self.path_in(anchor, index, extension))
        };
        let [from, to] = paths("evt");
        match knots {
            Some(_) => copy_file(&from, &to)?,
            None => self.rewrite(index, times, &to)?,
        }
        let offsets = knots.map_or(&[][..], Knots::knots);
        let [from, to] = paths("def");
        let old = from.exists().then(|| fs::read(&from)).transpose();
        let old = old.map_err(Otf2Error::io(&from))?;
        let chunk = self.files.anchor().definition_chunk;
        let new = offsets::with_offsets(old.as_deref(), chunk, offsets);
        let new = new.map_err(|why| Otf2Error::content(&from, why))?;
        fs::write(&to, new).map_err(Otf2Error::io(&to))?;
        self.write_snapshots(index, times, anchor)?;
        Ok((offsets.len(), knots.is_none()))
    }

    /// Computes the clock offsets that lead to the times of all locations of a clock, so that its
    /// events keep their order although times may differ by a nanosecond; `None` if there are no
    /// such offsets, or too many are needed.
    fn knots_of_clock(
        &self,
        times: ArchiveTimes<'_>,
        clock: LocationId,
        indices: &[usize],
    ) -> Result<Option<Knots>, Otf2Error> {
        let open = |index: &usize| {
            let file = self.events(*index)?;
            // Times that must not move.
            let fixed = times.is_corrected(*index).then(|| times.of(*index).iter());
            Ok((times.location(*index), (*index, file, fixed)))
        };
        let has_events = |index: &&usize| !times.of(**index).is_empty();
        let files: Result<FxHashMap<_, _>, Otf2Error> =
            indices.iter().filter(has_events).map(open).collect();
        let (mut files, mut events) = (files?, 0);
        let windows = times
            .trace
            .leeway(clock, times.times)
            .map(|(event, mut between)| {
                events += 1;
                let Some((index, file, fixed)) = files.get_mut(&event.location) else {
                    return Err(self.wrong_times(indices[0]));
                };
                if let Some(fixed) = fixed {
                    let time = fixed.next().ok_or_else(|| self.wrong_times(*index))?;
                    between = [*time; 2];
                }
                self.window(*index, file, between, times.shift)
            });
        let all = indices.iter().map(|index| times.of(*index).len());
        let most = most_knots(all.sum());
        let knots = self.knots_through(windows, indices[0], most, true);
        Ok(knots?.filter(|_| events > 0))
    }

    /// Computes the clock offsets that lead to exactly these times; `None` as above.
    fn exact_knots(
        &self,
        index: usize,
        times: ArchiveTimes<'_>,
    ) -> Result<Option<Knots>, Otf2Error> {
        let mut file = self.events(index)?;
        let windows = times.of(index).iter();
        let windows = windows.map(|time| self.window(index, &mut file, [*time; 2], times.shift));
        let most = most_knots(times.of(index).len());
        self.knots_through(windows, index, most, false)
    }

    /// Returns the window of the next event of a location.
    fn window(
        &self,
        index: usize,
        file: &mut EventReader,
        times: [Timestamp<Global>; 2],
        shift: Duration,
    ) -> Result<TimeWindow, Otf2Error> {
        let record = file.next()?;
        let at = record.and_then(|record| i64::try_from(record.time).ok());
        let at = at.ok_or_else(|| self.wrong_times(index))?;
        let [earliest, latest] = self.ticks_between(index, times, shift)?;
        Ok(TimeWindow {
            at,
            earliest: earliest.max(0),
            latest,
        })
    }

    /// Finds the clock offsets through these windows; `None` if there are none, or more than `most`
    /// are needed. If the windows are those of several locations, their recorded times may decrease,
    /// because earlier offsets were different.
    fn knots_through(
        &self,
        windows: impl Iterator<Item = Result<TimeWindow, Otf2Error>>,
        index: usize,
        most: usize,
        of_several: bool,
    ) -> Result<Option<Knots>, Otf2Error> {
        let mut failure = None;
        let windows = windows.map_while(|window| window.map_err(|why| failure = Some(why)).ok());
        let knots = Knots::through(windows, most);
        match (failure, knots) {
            (Some(why), _) => Err(why),
            (None, Ok(knots)) => Ok(Some(knots)),
            (None, Err(why @ ClockOffsetError::Decreasing(_))) if !of_several => {
                let path = self.path_of(index, "evt");
                Err(Otf2Error::content(&path, why.to_string()))
            }
            (None, Err(_)) => Ok(None),
        }
    }

    /// Converts a range of times to ticks.
    pub(super) fn ticks_between(
        &self,
        index: usize,
        times: [Timestamp<Global>; 2],
        shift: Duration,
    ) -> Result<[i64; 2], Otf2Error> {
        let why = match self.between(times, shift) {
            Some(ticks) if ticks[1] >= 0 => return Ok(ticks),
            Some(_) => "a corrected time is before the origin, which OTF2 cannot represent",
            None => "a corrected time is more than 146 years from the origin",
        };
        Err(Otf2Error::content(&self.path_of(index, "evt"), why))
    }

    pub(super) fn wrong_times(&self, index: usize) -> Otf2Error {
        let path = self.path_of(index, "evt");
        Otf2Error::content(&path, "the corrected times are not those of this archive")
    }

    /// Copies all files of the archive except those of its locations, and its companions.
    fn copy_others(&self, to: &Path) -> Result<(), Otf2Error> {
        let own = (0..self.locations().len())
            .flat_map(|index| ["evt", "def"].map(|extension| self.path_of(index, extension)));
        let own: HashSet<PathBuf> = own.collect();
        let folder_of_locations = to.join(self.anchor().file_stem().unwrap_or_default());
        fs::create_dir(&folder_of_locations).map_err(Otf2Error::io(&folder_of_locations))?;
        let companions = COMPANIONS.map(PathBuf::from).into_iter();
        let companions =
            companions.filter(|name| files::folder(self.anchor()).join(name).is_file());
        for name in files::all(self.anchor())?.into_iter().chain(companions) {
            let from = files::folder(self.anchor()).join(&name);
            if !own.contains(&from) {
                copy_file(&from, &to.join(&name))?;
            }
        }
        Ok(())
    }
}

/// Copies a file.
///
/// # Errors
/// With the name of the file that cannot be read, or else of the one that cannot be
/// written.
fn copy_file(from: &Path, to: &Path) -> Result<(), Otf2Error> {
    fs::copy(from, to).map(drop).map_err(|why| {
        // The error of a copy is that of either file, so that the original is read again.
        let read = File::open(from).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
        let path = if read.is_ok() { to } else { from };
        Otf2Error::io(path)(why)
    })
}

/// Checks that an archive can be written to this folder.
///
/// # Errors
/// When the folder exists, or cannot be created.
pub fn check_destination(folder: &Path) -> Result<(), Otf2Error> {
    ArchiveCopy::begin(folder).map(drop)
}

/// Incomplete archive in a temporary folder, which is deleted unless it is finished.
#[derive(Debug)]
pub struct ArchiveCopy {
    part: PathBuf,
    folder: PathBuf,
}

impl ArchiveCopy {
    pub(super) fn begin(folder: &Path) -> Result<Self, Otf2Error> {
        if folder.symlink_metadata().is_ok() {
            return Err(Otf2Error::content(folder, "this already exists"));
        }
        let (part, ()) =
            create_beside(folder, |part| fs::create_dir(part)).map_err(Otf2Error::io(folder))?;
        Ok(Self {
            part,
            folder: folder.to_owned(),
        })
    }

    /// Returns the temporary folder of the copy.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// States the checksums of all files in the anchor file with this name, and moves the
    /// archive to its final place; an empty folder that was created there in the meantime
    /// is replaced. Returns the anchor file.
    ///
    /// # Errors
    /// When the folder exists by now.
    pub fn finish(self, name: &OsStr) -> Result<PathBuf, Otf2Error> {
        write_checksums(&self.part.join(name))?;
        fs::rename(&self.part, &self.folder).map_err(Otf2Error::io(&self.folder))?;
        Ok(self.folder.join(name))
    }
}

impl Drop for ArchiveCopy {
    fn drop(&mut self) {
        // Errors cannot be handled here; after a rename the folder does not exist.
        let _ = fs::remove_dir_all(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use downbeat_files::testing::TemporaryFolder;

    use super::*;

    #[test]
    fn a_copy_names_the_file_that_fails() {
        let (folder, _) = TemporaryFolder::with_file("in", b"events");
        let [from, to] = ["in", "out"].map(|name| folder.file(name));
        copy_file(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"events");
        let [missing, gone] = ["missing", "gone/out"].map(|name| folder.file(name));
        for ([from, to], failed) in [([&from, &gone], &gone), ([&missing, &to], &missing)] {
            let why = copy_file(from, to).unwrap_err();
            assert!(
                matches!(&why, Otf2Error::Io { path, .. } if path == failed),
                "{why}"
            );
        }
    }
}
