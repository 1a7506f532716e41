//! Traces read from a file or an OTF2 archive, and written again with other timestamps.

use std::path::{Path, PathBuf};

use downbeat_clock_core::{Global, Timestamp};
use downbeat_trace::formats::{self, Sessions, TraceFile, TraceFormat};
use downbeat_trace::{Matching, Trace};
use serde::Serialize;

use super::files;
use crate::{Failure, cores};

/// Trace read from a file or an OTF2 archive.
#[derive(Debug)]
pub struct Recording {
    /// Path of the file, or of the anchor file of the archive.
    pub path: PathBuf,
    /// Locations and their events.
    pub trace: Trace,
    /// Names of the locations, in their order.
    pub names: Vec<String>,
    /// Sessions of clock comparisons that the timestamps do not include yet.
    pub sessions: Sessions,
    /// Index of the location whose clock is the reference of the sessions.
    pub master: u32,
    /// Number of sessions that the timestamps include: the maximum number of clock offsets of a
    /// location of an archive.
    pub applied: usize,
    source: Source,
}

#[derive(Debug)]
enum Source {
    File(TraceFormat),
    #[cfg(feature = "otf2")]
    Archive(Box<(formats::otf2::Archive, formats::otf2::Origin)>),
}

/// Destination of a corrected trace, and options for writing it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Path of the file, or of the folder for an archive.
    pub path: &'a Path,
    /// True if all events of an archive are rewritten.
    pub rewrite: bool,
    /// Number of threads.
    pub workers: usize,
}

/// Clock offsets and rewritten locations of a corrected archive.
#[derive(Debug, Serialize)]
pub struct ArchiveReport {
    /// Total number of clock offsets of all locations.
    pub clock_offsets: usize,
    /// Names of the locations whose events were rewritten with other timestamps.
    pub rewritten: Vec<String>,
}

#[cfg(not(feature = "otf2"))]
pub(super) fn without_otf2(path: &Path) -> Failure {
    let why = "this program was built without OTF2; build with `cargo build --release -p downbeat-cli --features otf2`";
    Failure::Input(format!("{}: {why}", path.display()))
}

impl Recording {
    /// Reads a trace, with one thread per core; the clock offsets of an archive are added to its
    /// timestamps.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with_offsets(path: &Path, matching: Matching) -> Result<Self, Failure> {
        Self::read(path, matching, true, cores())
    }

    /// Returns the sessions that the timestamps do not include yet, and the number of those that they
    /// include: with `applied`, no sessions and their maximum number per location.
    pub fn left_of(sessions: Sessions, applied: bool) -> (Sessions, usize) {
        let most = sessions.iter().map(Vec::len).max().unwrap_or(0);
        if applied {
            (vec![vec![]; sessions.len()], most)
        } else {
            (sessions, 0)
        }
    }

    /// Reads a trace file or an archive, on `workers` threads. The clock offsets of an archive are
    /// added to its timestamps, or else become its sessions.
    ///
    /// # Errors
    /// If the input cannot be read, is not a trace, or its events do not match.
    pub fn read(
        path: &Path,
        matching: Matching,
        apply_offsets: bool,
        workers: usize,
    ) -> Result<Self, Failure> {
        if files::is_archive(path) {
            return Self::read_archive(path, matching, apply_offsets, workers);
        }
        let file = TraceFile::read_on(path, matching, workers)
            .map_err(|why| Failure::Input(why.to_string()))?;
        let TraceFile {
            path,
            format,
            trace,
            names,
            sessions,
            master,
            ..
        } = file;
        Ok(Self {
            path,
            trace,
            names,
            sessions,
            master,
            applied: 0,
            source: Source::File(format),
        })
    }

    #[cfg(feature = "otf2")]
    fn read_archive(
        path: &Path,
        matching: Matching,
        offsets: bool,
        workers: usize,
    ) -> Result<Self, Failure> {
        use formats::otf2::{Archive, ArchiveTrace, ReadOptions};

        let bad = |why: formats::otf2::Otf2Error| Failure::Input(why.to_string());
        let archive = Archive::open(path).map_err(bad)?;
        let reading = ReadOptions {
            matching,
            offsets,
            workers,
            ..ReadOptions::default()
        };
        let ArchiveTrace { trace, origin } = archive.read(&reading).map_err(bad)?;
        let names = archive.names(&origin);
        let (sessions, applied) = Self::left_of(archive.sessions(&origin), offsets);
        let source = Source::Archive(Box::new((archive, origin)));
        Ok(Self {
            path: path.to_owned(),
            trace,
            names,
            sessions,
            master: 0,
            applied,
            source,
        })
    }

    #[cfg(not(feature = "otf2"))]
    fn read_archive(path: &Path, _: Matching, _: bool, _: usize) -> Result<Self, Failure> {
        Err(without_otf2(path))
    }

    /// Writes the trace with other timestamps of events, and other local timestamps of samples;
    /// everything else is unchanged.
    ///
    /// # Errors
    /// If the output cannot be written, or the input cannot be read again or has changed.
    pub fn write_corrected(
        &self,
        to: &Place<'_>,
        times: &[Vec<Timestamp<Global>>],
        sessions: &Sessions,
    ) -> Result<Option<ArchiveReport>, Failure> {
        match &self.source {
            Source::File(_) if to.rewrite => Err(files::is_no_archive("--rewrite", &self.path)),
            Source::File(format) => {
                let format = files::format(to.path, *format);
                formats::write_corrected(
                    [&self.path, to.path],
                    format,
                    times,
                    sessions,
                    to.workers,
                )
                .map_err(Failure::run)?;
                Ok(None)
            }
            #[cfg(feature = "otf2")]
            Source::Archive(source) => {
                let (archive, origin) = &**source;
                let writing = formats::otf2::WriteOptions {
                    rewrite: to.rewrite,
                    workers: to.workers,
                };
                let written = archive.write_corrected(&self.trace, origin, times, to.path, writing);
                let written = written.map_err(Failure::run)?;
                Ok(Some(ArchiveReport::of(
                    archive,
                    written.knots.into_iter().zip(written.rewritten),
                )))
            }
        }
    }

    /// Describes the first difference of another trace from this one, besides timestamps.
    ///
    /// # Errors
    /// If one of them cannot be read again, or only one of them is an archive.
    pub fn first_difference(&self, other: &Self) -> Result<Option<String>, Failure> {
        let bad = |why: &dyn std::fmt::Display| Failure::Input(why.to_string());
        match (&self.source, &other.source) {
            (Source::File(_), Source::File(_)) => {
                formats::first_difference(&self.path, &other.path).map_err(|why| bad(&why))
            }
            #[cfg(feature = "otf2")]
            (Source::Archive(_), Source::Archive(_)) => {
                formats::otf2::first_difference(&self.path, &other.path).map_err(|why| bad(&why))
            }
            #[cfg(feature = "otf2")]
            _ => Err(bad(&format_args!(
                "{}: {} has another format; an archive can only be compared with an archive",
                other.path.display(),
                self.path.display()
            ))),
        }
    }
}

impl ArchiveReport {
    /// Creates the report from one pair for every location of the archive: its number of clock
    /// offsets, and true if its events were rewritten.
    #[cfg(feature = "otf2")]
    pub fn of(
        archive: &formats::otf2::Archive,
        written: impl IntoIterator<Item = (usize, bool)>,
    ) -> Self {
        let mut report = Self {
            clock_offsets: 0,
            rewritten: vec![],
        };
        for (location, (knots, is_rewritten)) in archive.locations().iter().zip(written) {
            report.clock_offsets += knots;
            report
                .rewritten
                .extend(is_rewritten.then(|| location.name.clone()));
        }
        report
    }

    /// Formats the report in one line, or two if locations were rewritten.
    pub fn text(&self) -> String {
        let Self {
            clock_offsets,
            rewritten,
        } = self;
        let mut text = format!("Clock offsets in the archive: {clock_offsets}\n");
        if let [first, others @ ..] = &rewritten[..] {
            let others = if others.is_empty() {
                String::new()
            } else {
                format!(" and {} more", others.len())
            };
            text += &format!("Locations with rewritten events: {first}{others}\n");
        }
        text
    }
}
