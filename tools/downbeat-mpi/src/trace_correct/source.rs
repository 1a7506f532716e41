//! What a trace is kept in that ranks share.

use std::path::Path;

use downbeat_common::Failure;
use downbeat_common::trace::files;
#[cfg(feature = "otf2")]
use downbeat_trace::formats::otf2::{Archive, Origin};
use downbeat_trace::formats::{TraceFile, Unread};
use downbeat_trace::{Matching, PartBuilder, PartError};

use super::part::failure;

/// What a trace is kept in.
pub(super) enum Source {
    File,
    /// Ranks write their own locations of a copy.
    #[cfg(feature = "otf2")]
    Archive(Box<(Archive, Origin)>),
}

/// What was read, how many sessions are in its times, and from where it is.
pub(super) type Loaded = (TraceFile<()>, usize, Source);

/// Of every location, the number of the one that stands for its process, and how many events it has; before it is read.
pub(super) fn loads_of(path: &Path) -> Vec<(u32, u64)> {
    #[cfg(feature = "otf2")]
    if files::is_archive(path) {
        return Archive::open(path)
            .map(|archive| archive.loads())
            .unwrap_or_default();
    }
    TraceFile::loads_of(path)
}

/// Reads all of a trace into a builder; clock offsets of an archive are added to its times, or else they are its sessions.
/// Why that cannot be done, and where: greater if it is later.
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
    // It is no file: there is no format to be kept.
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
            "{}: this program was built without OTF2; with it, {with}",
            path.display()
        ),
    ))
}

impl Source {
    /// Why events do not go together, in words that suit what they are from.
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
