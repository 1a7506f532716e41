//! A trace that was read, from whatever it is kept in, and can be written with other times.

use std::path::{Path, PathBuf};

use downbeat_clock_core::{Global, Timestamp};
use downbeat_trace::formats::{self, Sessions, TraceFile, TraceFormat};
use downbeat_trace::{Matching, Trace};
use serde::Serialize;

use super::files;
use crate::{Failure, cores};

/// A trace that was read.
#[derive(Debug)]
pub struct Recording {
    /// Where it is.
    pub path: PathBuf,
    /// What happened.
    pub trace: Trace,
    /// What locations are called, in their order.
    pub names: Vec<String>,
    /// What their clocks showed when they were compared, as far as this is not in the times yet.
    pub sessions: Sessions,
    /// With whose; the number of a location.
    pub master: u32,
    /// How many sessions are in the times: the most clock offsets of a location of an archive.
    pub applied: usize,
    source: Source,
}

#[derive(Debug)]
enum Source {
    File(TraceFormat),
    #[cfg(feature = "otf2")]
    Archive(Box<(formats::otf2::Archive, formats::otf2::Origin)>),
}

/// Where a corrected trace is written, and how.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// A file, or a folder for an archive.
    pub path: &'a Path,
    /// Whether all events of an archive are rewritten.
    pub rewrite: bool,
    /// How many threads share the work.
    pub workers: usize,
}

/// How a corrected archive says its times.
#[derive(Debug, Serialize)]
pub struct ArchiveReport {
    /// How many clock offsets all locations have.
    pub clock_offsets: usize,
    /// Locations that have events with other times instead.
    pub rewritten: Vec<String>,
}

#[cfg(not(feature = "otf2"))]
pub(super) fn without_otf2(path: &Path) -> Failure {
    let why = "this program was built without OTF2; with it, `cargo build --release -p downbeat-cli --features otf2`";
    Failure::Input(format!("{}: {why}", path.display()))
}

impl Recording {
    /// Reads a trace; clock offsets of an archive are added to its times.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with_offsets(path: &Path, matching: Matching) -> Result<Self, Failure> {
        Self::read(path, matching, true, cores())
    }

    /// What of the sessions is not in the times yet, if they are applied or not, and how many are.
    pub fn left_of(sessions: Sessions, applied: bool) -> (Sessions, usize) {
        let most = sessions.iter().map(Vec::len).max().unwrap_or(0);
        if applied {
            (vec![vec![]; sessions.len()], most)
        } else {
            (sessions, 0)
        }
    }

    /// Reads a trace, or an archive; clock offsets of this are added to its times, or else they are its sessions. So many
    /// threads share the work.
    ///
    /// # Errors
    /// When it cannot be read, is none, or its events do not go together.
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

    /// Writes it with other times, and other local times of samples; all else is as it was.
    ///
    /// # Errors
    /// When it cannot be written, or read again as it was.
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

    /// The first thing in which another one differs from this, besides times.
    ///
    /// # Errors
    /// When one of them cannot be read again.
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
                "{}: {} is of another kind",
                other.path.display(),
                self.path.display()
            ))),
        }
    }
}

impl ArchiveReport {
    /// Of every location of the archive, how many clock offsets it has, and whether its events were rewritten.
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

    /// One line, or two.
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
