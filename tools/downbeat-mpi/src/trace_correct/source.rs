//! Input of the correction: a trace file or an OTF2 archive.

use std::path::Path;

use downbeat_common::Failure;
use downbeat_common::trace::files;
#[cfg(feature = "otf2")]
use downbeat_trace::formats::otf2::{Archive, Origin};
use downbeat_trace::formats::{TraceFile, Unread};
use downbeat_trace::{Matching, PartBuilder, PartError};

use super::part::failure;

/// Kind of the input.
pub(super) enum Source {
    /// Trace file in text or binary format.
    File,
    /// OTF2 archive; every rank writes its own locations of the corrected copy.
    #[cfg(feature = "otf2")]
    Archive(Box<(Archive, Origin)>),
}

/// File that was read, number of sessions that its timestamps include, and kind of the input.
pub(super) type Loaded = (TraceFile<()>, usize, Source);

/// Returns, for every location, the index of the location that represents its process and its number
/// of events, before the events are read; an empty list if the input cannot be opened.
pub(super) fn loads_of(path: &Path) -> Vec<(u32, u64)> {
    #[cfg(feature = "otf2")]
    if files::is_archive(path) {
        return Archive::open(path)
            .map(|archive| archive.loads())
            .unwrap_or_default();
    }
    TraceFile::loads_of(path)
}

/// Reads the events of this rank into a builder. The clock offsets of an archive are added to its
/// timestamps, or else become its sessions.
///
/// # Errors
/// Returns the position of the error, which is greater for later ones, and the reason.
pub(super) fn load(
    path: &Path,
    builder: &mut PartBuilder,
    matching: Matching,
    apply_offsets: bool,
) -> Result<Loaded, (u64, String)> {
    if files::is_archive(path) {
        return load_archive(path, builder, matching, apply_offsets);
    }
    let file = TraceFile::load(path, builder);
    file.map(|file| (file, 0, Source::File))
        .map_err(|Unread { after, why }| (after, why.to_string()))
}

#[cfg(feature = "otf2")]
fn load_archive(
    path: &Path,
    builder: &mut PartBuilder,
    matching: Matching,
    offsets: bool,
) -> Result<Loaded, (u64, String)> {
    use downbeat_common::trace::Recording;
    use downbeat_trace::formats::TraceFormat;
    use downbeat_trace::formats::otf2::ReadOptions;

    let archive = Archive::open(path).map_err(|why| (0, why.to_string()))?;
    let reading = ReadOptions {
        matching,
        offsets,
        ..ReadOptions::default()
    };
    let origin = archive
        .load(&reading, builder)
        .map_err(|Unread { after, why }| (after, why.to_string()))?;
    let (sessions, applied) = Recording::left_of(archive.sessions(&origin), offsets);
    let (path, names, loads) = (path.to_owned(), archive.names(&origin), archive.loads());
    // Archives ignore the format.
    let file = TraceFile {
        path,
        format: TraceFormat::Binary,
        trace: (),
        names,
        sessions,
        master: 0,
        loads,
    };
    Ok((file, applied, Source::Archive(Box::new((archive, origin)))))
}

#[cfg(not(feature = "otf2"))]
fn load_archive(
    path: &Path,
    _: &mut PartBuilder,
    _: Matching,
    _: bool,
) -> Result<Loaded, (u64, String)> {
    let with = "`cargo build --release -p downbeat-mpi --features mpi,otf2`";
    Err((
        0,
        format!(
            "{}: this program was built without OTF2; build with {with}",
            path.display()
        ),
    ))
}

impl Source {
    /// Returns the failure for events that do not match, with their place in the file or archive.
    pub(super) fn failure(&self, path: &Path, why: PartError) -> Failure {
        match (self, why) {
            #[cfg(feature = "otf2")]
            (Self::Archive(source), PartError::Trace(why)) => {
                Failure::Input(source.0.trace_error(why).to_string())
            }
            (_, why) => failure(path, why),
        }
    }
}
