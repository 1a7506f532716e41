//! A copy of an archive with other clock offsets, which are how times are corrected.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::postmortem::{Knots, Window};

use super::{Archive, ArchiveTrace, Otf2Error, chunks};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The anchor file of the new archive.
    pub anchor: PathBuf,
    /// How many clock offsets each location has, in the order of [`Archive::locations`].
    pub knots: Vec<usize>,
}

impl Archive {
    /// Writes a copy of the archive into a new folder, in which every reader of OTF2 finds these times: those of every
    /// location of the trace, in the order of its numbers. No event is rewritten, and nothing is lost: only the clock
    /// offsets of the local definitions are replaced.
    ///
    /// A reader interpolates between few offsets, so that it finds a time that is at most a nanosecond off; but never one
    /// that makes a message faster, or changes the order of events: see [`Trace::leeway`]. Where ticks are longer than a
    /// nanosecond, it finds the nearest tick. Events of kinds that are not in the trace move with those around them.
    ///
    /// The folder appears when all is written, or not at all. What the archive says of its first time and its length is
    /// as it was, and OTF2 does not correct times of snapshots and markers.
    ///
    /// # Errors
    /// When the folder exists or cannot be written; when times are not those of the trace, or cannot be had by offsets,
    /// because events that were recorded at one time would have to be at several.
    ///
    /// [`Trace::leeway`]: downbeat_sync::postmortem::Trace::leeway
    pub fn write_corrected(
        &self,
        read: &ArchiveTrace,
        times: &[Vec<Timestamp<Global>>],
        folder: &Path,
    ) -> Result<Written, Otf2Error> {
        let chunk = usize::try_from(self.reader.chunk_size()?).unwrap_or(usize::MAX);
        let making = Making::begin(folder)?;
        let anchor = self.copy(&making.folder)?;
        let mut counts = vec![];
        for (index, location) in self.locations().iter().enumerate() {
            let knots = match self.knots(index, read, times)? {
                knots if !knots.knots().is_empty() => knots,
                // There is nothing to correct; what the times of its other events are is not touched.
                _ if read.offsets => self.offsets[index].clone(),
                none => none,
            };
            let path = self.reader.local(location.id, "def");
            let old = if path.exists() { Some(fs::read(&path).map_err(Otf2Error::io(&path))?) } else { None };
            let new = chunks::with_offsets(old.as_deref(), chunk, knots.knots());
            let new = new.map_err(|why| Otf2Error::content(&path, why))?;
            let to = anchor.with_extension("").join(format!("{}.def", location.id));
            fs::write(&to, new).map_err(Otf2Error::io(&to))?;
            counts.push(knots.knots().len());
        }
        let name = anchor.file_name().map(PathBuf::from).unwrap_or_default();
        making.end(folder)?;
        Ok(Written { anchor: folder.join(name), knots: counts })
    }

    /// The offsets that make these times of a location's.
    fn knots(&self, index: usize, read: &ArchiveTrace, times: &[Vec<Timestamp<Global>>]) -> Result<Knots, Otf2Error> {
        let path = self.reader.local(self.locations()[index].id, "evt");
        let other = || Otf2Error::content(&path, "the corrected times are not those of this archive");
        let location = *read.locations.get(index).ok_or_else(other)?;
        let times = times.get(location.index()).ok_or_else(other)?;
        let recorded = self.recorded(index)?;
        if recorded.len() != times.len() {
            return Err(other());
        }
        let far = || Otf2Error::content(&path, "a corrected time is more than 146 years from the origin");
        let mut windows = Vec::with_capacity(times.len());
        for (at, [earliest, latest]) in recorded.into_iter().zip(read.trace.leeway(location, times)) {
            let between = self.ticks.between(earliest.as_nanos(), latest.as_nanos());
            let [earliest, latest] = between.ok_or_else(far)?;
            if latest < 0 {
                return Err(Otf2Error::content(&path, "a corrected time is before the origin, which OTF2 cannot have"));
            }
            windows.push(Window { at, earliest: earliest.max(0), latest });
        }
        Knots::through(windows).map_err(|why| Otf2Error::Knots { path, why })
    }

    /// Copies all of the archive: the files that are named as its anchor file is, and the folder of its locations.
    fn copy(&self, to: &Path) -> Result<PathBuf, Otf2Error> {
        let anchor = self.reader.anchor();
        let stem = anchor.file_stem().unwrap_or_default();
        let from = anchor.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name_is = |name: &OsStr| {
            let rest = name.as_encoded_bytes().strip_prefix(stem.as_encoded_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"."))
        };
        for entry in fs::read_dir(from).map_err(Otf2Error::io(from))? {
            let path = entry.map_err(Otf2Error::io(from))?.path();
            let name = path.file_name().unwrap_or_default();
            if name == stem || name_is(name) && path.is_file() {
                copy(&path, &to.join(name))?;
            }
        }
        Ok(to.join(anchor.file_name().unwrap_or_default()))
    }
}

/// Copies a file, or a folder of files.
fn copy(from: &Path, to: &Path) -> Result<(), Otf2Error> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ()).map_err(Otf2Error::io(from));
    }
    fs::create_dir(to).map_err(Otf2Error::io(to))?;
    for entry in fs::read_dir(from).map_err(Otf2Error::io(from))? {
        let entry = entry.map_err(Otf2Error::io(from))?;
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).map_err(Otf2Error::io(&entry.path()))?;
        }
    }
    Ok(())
}

/// A folder that goes away again, unless it becomes what was wanted.
struct Making {
    folder: PathBuf,
}

impl Making {
    fn begin(wanted: &Path) -> Result<Self, Otf2Error> {
        let exists = || Otf2Error::content(wanted, "this is there already");
        if wanted.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let name = wanted.file_name().ok_or_else(exists)?.to_string_lossy().into_owned();
        let folder = wanted.with_file_name(format!(".{name}.{}.part", std::process::id()));
        fs::create_dir(&folder).map_err(Otf2Error::io(&folder))?;
        Ok(Self { folder })
    }

    /// Gives it its name. Only an empty folder that has come into being meanwhile is replaced.
    fn end(self, wanted: &Path) -> Result<(), Otf2Error> {
        fs::rename(&self.folder, wanted).map_err(Otf2Error::io(wanted))
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // If this fails, there is nothing better to do; if it was renamed, it is not there.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
