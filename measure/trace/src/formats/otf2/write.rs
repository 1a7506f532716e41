//! Copies of an archive with corrected times: by clock offsets, or else by rewritten events.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

use crate::{ClockOffsetError, Knots, LocationId, TimeWindow, Trace};
use downbeat_clock_core::{Global, Timestamp};

use super::event_file::EventFile;
use super::files::{self, folder, local};
use super::{Archive, Origin, Otf2Error, offsets};
use downbeat_files::create_beside;

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

/// Times of one location, in the order of its events in the trace.
#[derive(Clone, Copy)]
pub(super) struct LocationTimes<'a> {
    pub(super) trace: &'a Trace,
    pub(super) location: LocationId,
    pub(super) times: &'a [Timestamp<Global>],
    /// Clock offsets of the archive that were added when it was read.
    pub(super) offsets: Option<&'a Knots>,
}

/// Maximum number of offsets: the larger of this constant and one per `EVENTS_PER_KNOT` events.
const MANY: usize = 1_000;
const EVENTS_PER_KNOT: usize = 4;

impl Archive {
    /// Writes a copy of the archive into a new folder, in which every reader of OTF2 finds these
    /// times, given for every location of the trace in the order of its numbers. Only the clock
    /// offsets of the local definitions are replaced, which readers interpolate; all other data are
    /// kept. Events of kinds that are not in the trace move with their neighbours.
    ///
    /// There are few offsets, so that interpolated times may differ by a nanosecond; but no message
    /// becomes faster, and the order of events stays the same: see [`Trace::leeway`].
    ///
    /// Offsets cannot move events apart that were recorded at one time. If that is necessary, if
    /// more than one offset per four events is needed, or if [`WriteOptions::rewrite`] is set, the
    /// events of the location are rewritten, with exactly these times and no clock offsets;
    /// [`WrittenArchive::rewritten`] lists these locations. All other data of records of any kind
    /// are copied byte by byte.
    ///
    /// If ticks are longer than a nanosecond, readers find the nearest tick in either case: the
    /// order stays the same, but a message may be faster than its latency by less than a tick.
    ///
    /// The folder appears when it is complete, or not at all. The archive's start time and length
    /// are not changed, nor are times inside of records, which tell when a buffer was flushed, nor
    /// times of snapshots and markers: OTF2 corrects none of these.
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
        times: &[Vec<Timestamp<Global>>],
        folder: &Path,
        writing: WriteOptions,
    ) -> Result<WrittenArchive, Otf2Error> {
        let copy = self.begin_copy(folder)?;
        let written = self.write_locations(trace, origin, times, copy.part(), writing, |_| true)?;
        let (knots, rewritten) = written.into_iter().unzip();
        Ok(WrittenArchive {
            anchor: copy.finish()?,
            knots,
            rewritten,
        })
    }

    /// Begins a copy that will be at `folder`, with all files except those of locations.
    ///
    /// # Errors
    /// When the folder exists or cannot be written.
    pub fn begin_copy(&self, folder: &Path) -> Result<ArchiveCopy, Otf2Error> {
        let copy = ArchiveCopy {
            making: PartialCopy::begin(folder)?,
            folder: folder.to_owned(),
            name: self
                .anchor
                .file_name()
                .map(PathBuf::from)
                .unwrap_or_default(),
        };
        self.copy_others(copy.part())?;
        Ok(copy)
    }

    /// Writes the files of some locations to a copy that was begun in `part`, possibly by another
    /// process, as [`write_corrected`](Self::write_corrected) does; `trace` and `times` may lack
    /// the events of the others. Returns for each of them the number of clock offsets, and true if
    /// its events were rewritten, in the order of [`locations`](Self::locations).
    ///
    /// # Errors
    /// As for [`write_corrected`](Self::write_corrected).
    pub fn write_locations(
        &self,
        trace: &Trace,
        origin: &Origin,
        times: &[Vec<Timestamp<Global>>],
        part: &Path,
        writing: WriteOptions,
        selected: impl Fn(LocationId) -> bool,
    ) -> Result<Vec<(usize, bool)>, Otf2Error> {
        let anchor = part.join(self.anchor.file_name().unwrap_or_default());
        let is_selected = |index: &usize| {
            origin
                .locations
                .get(*index)
                .is_none_or(|location| selected(*location))
        };
        // The largest locations come first, so that all workers end at about the same time.
        let mut order: Vec<usize> = (0..self.locations().len()).filter(is_selected).collect();
        order.sort_by_key(|&index| Reverse(self.locations()[index].events));
        each(&order, writing.workers, |index| {
            let found = origin
                .locations
                .get(index)
                .and_then(|&location| Some((location, times.get(location.index())?)));
            let (location, times) = found.ok_or_else(|| self.wrong_times(index))?;
            let offsets = origin.offsets.then(|| &self.offsets[index]);
            self.write_location(
                index,
                LocationTimes {
                    trace,
                    location,
                    times,
                    offsets,
                },
                &anchor,
                writing.rewrite,
            )
        })
    }

    /// Returns the number of clock offsets, and true if the events were rewritten.
    fn write_location(
        &self,
        index: usize,
        times: LocationTimes<'_>,
        anchor: &Path,
        rewrite: bool,
    ) -> Result<(usize, bool), Otf2Error> {
        let id = self.locations()[index].id;
        let [from, to] = [&self.anchor, anchor].map(|anchor| local(anchor, id, "evt"));
        let knots = match () {
            // Nothing to correct: times of events outside of the trace are not touched.
            () if times.times.is_empty() => Some(times.offsets.cloned().unwrap_or_default()),
            () if rewrite => None,
            () => self.knots(index, times)?,
        };
        match knots {
            Some(_) if from.exists() => drop(fs::copy(&from, &to).map_err(Otf2Error::io(&from))?),
            Some(_) => {}
            None => self.rewrite(index, times, &to)?,
        }
        let offsets = knots.as_ref().map_or(&[][..], Knots::knots);
        let [from, to] = [&self.anchor, anchor].map(|anchor| local(anchor, id, "def"));
        let old = if from.exists() {
            Some(fs::read(&from).map_err(Otf2Error::io(&from))?)
        } else {
            None
        };
        let new = offsets::with_offsets(old.as_deref(), self.chunks.definitions, offsets);
        let new = new.map_err(|why| Otf2Error::content(&from, why))?;
        fs::write(&to, new).map_err(Otf2Error::io(&to))?;
        Ok((offsets.len(), knots.is_none()))
    }

    /// Computes the clock offsets that lead to these times; `None` if offsets do not suffice, or
    /// too many are needed.
    fn knots(&self, index: usize, times: LocationTimes<'_>) -> Result<Option<Knots>, Otf2Error> {
        let LocationTimes {
            trace,
            location,
            times,
            ..
        } = times;
        let path = local(&self.anchor, self.locations()[index].id, "evt");
        let mut leeway = trace.leeway(location, times);
        let mut file = EventFile::open(&path, self.chunks.events)?;
        let mut next = || {
            let (at, [earliest, latest]) = match (file.next_in_trace()?, leeway.next()) {
                (Some(at), Some(between)) => (at, between),
                (None, None) => return Ok(None),
                _ => return Err(self.wrong_times(index)),
            };
            let at = i64::try_from(at).map_err(|_| self.wrong_times(index))?;
            let [earliest, latest] = self.ticks_between(index, earliest, latest)?;
            Ok(Some(TimeWindow {
                at,
                earliest: earliest.max(0),
                latest,
            }))
        };
        let mut failure = None;
        let windows = core::iter::from_fn(|| {
            next().unwrap_or_else(|why| {
                failure = Some(why);
                None
            })
        });
        let knots = Knots::through(windows, MANY.max(times.len() / EVENTS_PER_KNOT));
        match (failure, knots) {
            (Some(why), _) => Err(why),
            (None, Ok(knots)) => Ok(Some(knots)),
            (
                None,
                Err(
                    ClockOffsetError::Inseparable { .. }
                    | ClockOffsetError::Unreachable(_)
                    | ClockOffsetError::TooMany(_),
                ),
            ) => Ok(None),
            (None, Err(why)) => Err(Otf2Error::Knots { path, why }),
        }
    }

    /// Converts a range of times to ticks.
    pub(super) fn ticks_between(
        &self,
        index: usize,
        earliest: Timestamp<Global>,
        latest: Timestamp<Global>,
    ) -> Result<[i64; 2], Otf2Error> {
        let why = match self.ticks.between(earliest.as_nanos(), latest.as_nanos()) {
            Some(ticks) if ticks[1] >= 0 => return Ok(ticks),
            Some(_) => "a corrected time is before the origin, which OTF2 cannot represent",
            None => "a corrected time is more than 146 years from the origin",
        };
        Err(Otf2Error::content(
            &local(&self.anchor, self.locations()[index].id, "evt"),
            why,
        ))
    }

    pub(super) fn wrong_times(&self, index: usize) -> Otf2Error {
        let path = local(&self.anchor, self.locations()[index].id, "evt");
        Otf2Error::content(&path, "the corrected times are not those of this archive")
    }

    /// Copies all files of the archive except those of its locations.
    fn copy_others(&self, to: &Path) -> Result<(), Otf2Error> {
        let own =
            |anchor: &Path, id: u64| ["evt", "def"].map(|extension| local(anchor, id, extension));
        let own = self
            .locations()
            .iter()
            .flat_map(|location| own(&self.anchor, location.id));
        let own: std::collections::HashSet<PathBuf> = own.collect();
        let folder_of_locations = to.join(self.anchor.file_stem().unwrap_or_default());
        fs::create_dir(&folder_of_locations).map_err(Otf2Error::io(&folder_of_locations))?;
        for name in files::all(&self.anchor)? {
            let from = folder(&self.anchor).join(&name);
            if !own.contains(&from) {
                fs::copy(&from, to.join(&name)).map_err(Otf2Error::io(&from))?;
            }
        }
        Ok(())
    }
}

/// Runs `work` for these indices in this order on several threads. Returns the results sorted by
/// index, or the error of the smallest index. This thread does what the system starts no thread for.
fn each<T: Send>(
    order: &[usize],
    workers: usize,
    work: impl Fn(usize) -> Result<T, Otf2Error> + Sync,
) -> Result<Vec<T>, Otf2Error> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = vec![];
        loop {
            let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return done;
            };
            let result = work(index);
            if result.is_err() {
                next.store(order.len(), Ordering::Relaxed);
            }
            done.push((index, result));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..workers.min(order.len()))
            .filter_map(|_| Builder::new().spawn_scoped(scope, some).ok())
            .collect();
        let mut all = some();
        for other in others {
            all.extend(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Checks that an archive can be written to this folder.
///
/// # Errors
/// When the folder exists, or cannot be created.
pub fn check_destination(folder: &Path) -> Result<(), Otf2Error> {
    PartialCopy::begin(folder).map(drop)
}

/// Incomplete copy of an archive, which is deleted unless it is finished.
#[derive(Debug)]
pub struct ArchiveCopy {
    making: PartialCopy,
    folder: PathBuf,
    /// Name of the anchor file.
    name: PathBuf,
}

impl ArchiveCopy {
    /// Returns the temporary folder of the copy.
    pub fn part(&self) -> &Path {
        &self.making.folder
    }

    /// Moves the copy to its final place. Returns its anchor file.
    ///
    /// # Errors
    /// When the folder exists by now.
    pub fn finish(self) -> Result<PathBuf, Otf2Error> {
        self.making.end(&self.folder)?;
        Ok(self.folder.join(self.name))
    }
}

/// Temporary folder, which is deleted unless it is renamed.
#[derive(Debug)]
struct PartialCopy {
    folder: PathBuf,
}

impl PartialCopy {
    fn begin(wanted: &Path) -> Result<Self, Otf2Error> {
        if wanted.symlink_metadata().is_ok() {
            return Err(Otf2Error::content(wanted, "this already exists"));
        }
        let (folder, ()) = create_beside(wanted, |folder| fs::create_dir(folder))
            .map_err(Otf2Error::io(wanted))?;
        Ok(Self { folder })
    }

    /// Renames the folder. An empty folder that was created in the meantime is replaced.
    fn end(self, wanted: &Path) -> Result<(), Otf2Error> {
        fs::rename(&self.folder, wanted).map_err(Otf2Error::io(wanted))
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        // Errors cannot be handled here; after a rename the folder does not exist.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
