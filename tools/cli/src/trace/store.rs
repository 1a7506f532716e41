//! Place of the events of a trace: memory, or a temporary file.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::Failure;
use downbeat_common::trace::files;
use downbeat_files::{FileError, folder_of};
use downbeat_trace::{ArrayStore, NoRoom};

use crate::memory;

#[derive(Args, Debug)]
pub(super) struct StoreOption {
    /// Folder for a temporary file, which holds the events instead of memory; the result
    /// is the same [default: none if the events take less than half of the free memory,
    /// or else the folder of the output, or of the trace that is checked]
    #[arg(long, value_name = "FOLDER")]
    temporary: Option<PathBuf>,
}

impl StoreOption {
    /// Returns the place of the events of traces, which is `beside` if they take much
    /// memory.
    pub(super) fn store<'a>(
        &self,
        traces: impl IntoIterator<Item = &'a Path>,
        beside: &Path,
    ) -> Result<ArrayStore, Failure> {
        if let Some(folder) = &self.temporary {
            return in_folder(folder).map_err(|why| Failure::option("--temporary", why));
        }
        let bytes: u64 = traces.into_iter().map(most_bytes).sum();
        let much = memory::free_memory().is_some_and(|free| bytes > free / 2);
        let folder = folder_of(beside);
        if !much || is_memory(folder) {
            return Ok(ArrayStore::MEMORY);
        }
        // Where that fails, the memory may still be enough.
        Ok(in_folder(folder).unwrap_or_default())
    }
}

/// Puts arrays into a file in this folder, whose pages take half of the free memory.
fn in_folder(folder: &Path) -> Result<ArrayStore, FileError> {
    let store = ArrayStore::in_folder(folder)?;
    let half = memory::free_memory().and_then(|free| usize::try_from(free / 2).ok());
    Ok(match half {
        Some(memory) => store.with_memory(memory),
        None => store,
    })
}

/// Returns true if files in this folder are in memory.
#[cfg(target_os = "linux")]
fn is_memory(folder: &Path) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    let kind = rustix::fs::statfs(folder).map(|found| found.f_type as u32);
    matches!(kind, Ok(TMPFS | RAMFS))
}

#[cfg(not(target_os = "linux"))]
fn is_memory(_: &Path) -> bool {
    false
}

/// Returns the number of bytes that the events of a trace take, and their corrected
/// times: some 50 for each, of which its files have at least 12.
fn most_bytes(trace: &Path) -> u64 {
    let lengths = files::all_of(trace).into_iter();
    let lengths = lengths.filter_map(|file| Some(fs::metadata(file).ok()?.len()));
    4 * lengths.sum::<u64>()
}

/// Returns the failure of a command whose events found no room, or else the given one.
pub(super) fn failure(store: &ArrayStore, why: Failure) -> Failure {
    match (store.failure(), why) {
        (Some(why), _) => Failure::Run(format!("the temporary file for the events: {why}")),
        (None, Failure::Input(why)) if why.ends_with(NoRoom::IN_MEMORY) => Failure::Run(why),
        (None, why) => why,
    }
}
