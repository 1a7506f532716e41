//! Items of a trace file, an OTF2 archive, or Chrome's JSON.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use downbeat_files::{Checksums, FileError, open};
use downbeat_trace::formats::chrome::ChromeTrace;
use downbeat_trace::formats::otf2::{Archive, Otf2Error, ReadOptions};
use downbeat_trace::formats::{Item, MergedItems, TraceReader};
use flate2::read::MultiGzDecoder;

use super::archive_report::{ArchiveRead, behind_error};
use super::files::{is_archive, is_chrome, is_no_archive, refuse_folder};
use crate::Failure;
use crate::cli::unreadable;
use crate::output;
use crate::progress::{ProgressBar, ProgressReader};

/// Trace whose items can be passed several times: those of a file in its order, those of an archive and of
/// Chrome's JSON in the order of time.
#[derive(Debug)]
pub struct ItemSource {
    path: PathBuf,
    checksums: Checksums,
    /// Items of an archive, or of Chrome's JSON.
    merged: Option<MergedItems>,
    /// Numbers of events that were left out because no trace file has their kind, by the
    /// kinds.
    pub left_out: BTreeMap<String, u64>,
    /// Counts of an archive besides its items.
    pub archive: ArchiveRead,
}

impl ItemSource {
    /// Opens a trace; the events of an archive or of Chrome's JSON are put into temporary
    /// files next to `beside`. The clock offsets of an archive are added to its
    /// timestamps, or else become its sessions.
    ///
    /// # Errors
    /// If the path is that of a folder, an archive cannot be read, or options for
    /// archives are given for a file.
    pub fn open(
        path: &Path,
        apply_offsets: bool,
        checksums: Checksums,
        beside: &Path,
    ) -> Result<Self, Failure> {
        refuse_folder(path)?;
        let mut source = Self {
            path: path.to_owned(),
            checksums,
            merged: None,
            left_out: LeftOut::new(),
            archive: ArchiveRead::default(),
        };
        if is_archive(path) {
            let read = of_archive(path, apply_offsets, checksums, beside);
            let read = read.map_err(|Ended(why)| match why {
                Failure::Input(why) => Failure::Input(why + &behind_error(path, checksums)),
                why => why,
            });
            let (merged, left_out, archive) = read?;
            (source.merged, source.left_out, source.archive) = (Some(merged), left_out, archive);
        } else if !apply_offsets {
            return Err(is_no_archive("--as-recorded", path));
        } else if is_chrome(path) {
            let (merged, left_out) = of_chrome(path, beside)?;
            (source.merged, source.left_out) = (Some(merged), left_out);
        }
        Ok(source)
    }

    /// Calls `take` with every item.
    ///
    /// # Errors
    /// If a file cannot be read or is not a trace, or `take` fails.
    pub fn each(
        &self,
        mut take: impl FnMut(&Item<'_>) -> Result<(), FileError>,
    ) -> Result<(), Failure> {
        let take = |item: &Item<'_>| take(item).map_err(|why| unwritable(&self.path, why));
        match &self.merged {
            Some(merged) => self.pass_merged(merged, take),
            None => self.pass_file(take),
        }
    }

    /// Returns the items in temporary files next to `beside`, in the order of time.
    ///
    /// # Errors
    /// If a file cannot be read or is not a trace, or temporary files cannot be written.
    pub fn merged(self, beside: &Path) -> Result<MergedItems, Failure> {
        if let Some(merged) = self.merged {
            return Ok(merged);
        }
        let mut merged = MergedItems::new(beside).map_err(Failure::run)?;
        self.pass_file(|item| merged.add_item(item).map_err(Failure::run))?;
        merged.finish().map_err(Failure::run)?;
        Ok(merged)
    }

    fn pass_file(
        &self,
        mut take: impl FnMut(&Item<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let bad = |why: FileError| Failure::Input(unreadable(why));
        let file = open(&self.path).map_err(bad)?;
        // A pipe has no length.
        let length = file.metadata().map_or(0, |found| found.len());
        let progress = ProgressBar::reading(&self.path, length);
        let reader = TraceReader::new(&self.path, ProgressReader::new(file, &progress));
        let mut reader = reader.map_err(bad)?.with_checksums(self.checksums);
        while let Some(item) = reader.next_item().map_err(bad)? {
            take(&item)?;
        }
        Ok(())
    }

    fn pass_merged(
        &self,
        merged: &MergedItems,
        mut take: impl FnMut(&Item<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let progress = ProgressBar::reading(&self.path, merged.count());
        let mut taken = 0;
        let all = merged.for_each_item(|item| {
            taken += 1;
            show(taken, &progress);
            take(item).map_err(Ended)
        });
        all.map_err(|Ended(why)| why)
    }
}

/// Shows the number of items from time to time.
fn show(items: u64, progress: &ProgressBar) {
    const INTERVAL: u64 = 1 << 14;
    if items.is_multiple_of(INTERVAL) {
        progress.reach(items);
    }
}

/// Converts an error of the output to a failure; one that the content of the input causes names the
/// input.
pub fn unwritable(input: &Path, why: FileError) -> Failure {
    match why {
        FileError::Unwritable(why) => Failure::Input(format!("{}: {why}", input.display())),
        why => Failure::run(why),
    }
}

/// Reason for which the iteration over an archive ended early.
struct Ended(Failure);

impl From<Otf2Error> for Ended {
    fn from(why: Otf2Error) -> Self {
        Self(Failure::Input(why.to_string()))
    }
}

/// Errors of temporary files.
impl From<FileError> for Ended {
    fn from(why: FileError) -> Self {
        Self(Failure::run(why))
    }
}

/// Numbers of events that were left out, by their kinds.
type LeftOut = BTreeMap<String, u64>;

/// Reads the items of an archive. Returns what was left out, and what was only counted,
/// too.
fn of_archive(
    path: &Path,
    offsets: bool,
    checksums: Checksums,
    beside: &Path,
) -> Result<(MergedItems, LeftOut, ArchiveRead), Ended> {
    let archive = Archive::open(path)?;
    let options = ReadOptions {
        offsets,
        ..ReadOptions::default()
    };
    // Archives do not tell how many events they have.
    let progress = ProgressBar::reading(path, 0);
    let mut items = MergedItems::new(beside)?;
    let (left_out, part) = archive.for_each_item(&options, |item| {
        items.add_item(item)?;
        show(items.count(), &progress);
        Ok::<_, Ended>(())
    })?;
    items.finish()?;
    let read = ArchiveRead::of(&archive, part, checksums)?;
    Ok((items, left_out, read))
}

/// Reads the items of Chrome's JSON.
fn of_chrome(path: &Path, beside: &Path) -> Result<(MergedItems, LeftOut), Failure> {
    let progress = ProgressBar::reading(path, 0);
    let trace = match path.extension().is_some_and(|end| end == "gz") {
        true => {
            let file = open(path).map_err(|why| Failure::Input(why.to_string()))?;
            let read = ChromeTrace::read(BufReader::new(MultiGzDecoder::new(file)));
            read.map_err(|why| Failure::Input(format!("{}: {why}", path.display())))?
        }
        false => ChromeTrace::open(path).map_err(|why| Failure::Input(why.to_string()))?,
    };
    if trace.is_cut_off() {
        let path = path.display();
        output::warn(&format!(
            "{path}: the array of events has no end: the last event may be missing"
        ));
    }
    let mut items = MergedItems::new(beside).map_err(Failure::run)?;
    let taken = trace.for_each_item(|item| {
        items.add_item(item)?;
        show(items.count(), &progress);
        Ok(())
    });
    taken.and_then(|()| items.finish()).map_err(Failure::run)?;
    let left_out = [("other or incomplete events".to_owned(), trace.left_out())];
    let left_out = left_out.into_iter().filter(|(_, count)| *count > 0);
    Ok((items, left_out.collect()))
}
