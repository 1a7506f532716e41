//! Traces read from a file or an OTF2 archive by one or more ranks, and written again with other
//! timestamps.

mod copies;

use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use super::archive_report::{ArchiveRead, ArchiveReport, behind_error};
use super::files;
use crate::cli::unreadable;
use crate::{Failure, agree, digest};
use downbeat_clock_core::Duration;
use downbeat_files::Checksums;
use downbeat_sync::{Comm, StableHasher, collective};
use downbeat_trace::formats::otf2::{
    self, Archive, Origin, Otf2Error, ReadOptions, UnexaminedRelations, WriteOptions,
};
use downbeat_trace::formats::{self, Sessions, TraceFile, UnreadableFile};
use downbeat_trace::presync::ClockSample;
use downbeat_trace::ranks::{LocationLoad, LocationShares, TracePart};
use downbeat_trace::{
    ArrayStore, CorrectedTrace, CorrectionError, Matching, Resolution, TraceBuilder,
};

/// Trace read from a file or an OTF2 archive.
#[derive(Debug)]
pub struct Recording {
    /// Events of the locations of this rank; there are none of other ranks' locations.
    pub trace: TracePart,
    /// Place from which the trace was read.
    pub source: RecordingSource,
}

/// File or archive from which a trace was read.
#[derive(Debug)]
pub struct RecordingSource {
    /// Path of the file, or of the anchor file of the archive.
    pub path: PathBuf,
    /// Names of the locations, in their order.
    pub names: Vec<String>,
    /// Sessions of clock comparisons that the timestamps do not include yet.
    pub sessions: Sessions,
    /// Index of the location whose clock is the reference of the sessions.
    pub master: u32,
    /// Number of sessions that the timestamps include, the maximum number of clock
    /// offsets of a location of an archive; and the longest time from the first to the
    /// last of these.
    pub applied: (usize, Duration),
    /// Treatment of the checksums of an archive.
    pub checksums: Checksums,
    kind: SourceKind,
}

#[derive(Debug)]
enum SourceKind {
    File(TraceFile),
    Archive(Box<(Archive, Origin)>),
}

/// Options for reading a trace.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Settings of matching.
    pub matching: Matching,
    /// True to add the clock offsets of an archive to its timestamps; otherwise they become its
    /// sessions.
    pub apply_offsets: bool,
    /// Treatment of the checksums of a file.
    pub checksums: Checksums,
    /// Number of threads of a single rank.
    pub workers: usize,
    /// Place of the events.
    pub store: ArrayStore,
}

impl Recording {
    /// Reads a trace file or an archive in a program with one rank.
    ///
    /// # Errors
    /// If the input cannot be read, is not a trace, or its events do not match.
    pub fn read(path: &Path, reading: &Reading) -> Result<Self, Failure> {
        files::refuse_folder(path)?;
        files::refuse_chrome(path)?;
        let (trace, source) = match files::is_archive(path) {
            true => {
                let bad = |why: Otf2Error| {
                    Failure::Input(why.to_string() + &behind_error(path, reading.checksums))
                };
                let archive = Archive::open(path).map_err(bad)?;
                let read = archive.read_with_builder(&reading.of_archive(), reading.builder());
                let read = read.map_err(bad)?;
                let source = RecordingSource::of_archive(archive, read.origin, reading);
                (read.trace, source)
            }
            false => {
                let (checksums, workers) = (reading.checksums, reading.workers);
                let builder = reading.builder();
                let read = TraceFile::read_with_builder(path, builder, checksums, workers);
                let (trace, file) = read.map_err(|why| Failure::Input(unreadable(why)))?;
                (trace, RecordingSource::of_file(file))
            }
        };
        let trace = trace.into();
        Ok(Self { trace, source })
    }

    /// Reads the locations of this rank. If any rank finds an error, all ranks fail, with the first
    /// error of the file.
    ///
    /// # Errors
    /// As [`read`](Self::read); and if the ranks do not read the same, or one is gone.
    pub async fn read_on_ranks<C: Comm>(
        path: &Path,
        reading: &Reading,
        comm: &C,
    ) -> Result<Self, Failure> {
        if comm.size() == 1 {
            return Self::read(path, reading);
        }
        let loads = loads_of(path);
        let shares = LocationShares::new(comm.size(), reading.matching.clock_of, &loads);
        let mut builder = reading.builder().for_rank(comm.rank(), shares);
        let read = load(path, &mut builder, reading);
        let after = read.as_ref().err().map_or(u64::MAX, |(after, _)| *after);
        let first = collective::all_reduce(comm, after, u64::min).await;
        let first = first.map_err(Failure::run)?;
        let read = match read {
            Ok(read) => Ok(Some(read)),
            Err((after, why)) if after == first => Err(Failure::Input(why)),
            // Another rank found an earlier error.
            Err(_) => Ok(None),
        };
        let Some(source) = agree(comm, read).await? else {
            return Err(Failure::Input(String::new()));
        };
        let digest = digest_of(path);
        let digest = digest.ok().filter(|_| source.loads() == loads);
        let digest = agree(comm, digest.ok_or_else(|| changed(path))).await?;
        let all_equal = collective::all_equal(comm, StableHasher::hash_of(&(loads, digest)));
        if !all_equal.await.map_err(Failure::run)? {
            return Err(changed(path));
        }
        let trace = builder.finish_on_ranks(comm).await;
        let trace = trace.map_err(|why| source.failure(why))?;
        Ok(Self { trace, source })
    }
}

/// Returns the maximum number of sessions of a location, and the longest time from the first to the
/// last of them.
fn extent(sessions: &Sessions) -> (usize, Duration) {
    let most = sessions.iter().map(Vec::len).max().unwrap_or(0);
    let ends = |of: &Vec<Vec<ClockSample>>| {
        let mut samples = of.iter().flatten();
        let first = samples.next()?.at;
        Some(samples.last().map_or(first, |last| last.at) - first)
    };
    let longest = sessions.iter().filter_map(ends).max();
    (most, longest.unwrap_or(Duration::ZERO))
}

impl RecordingSource {
    fn of_file(mut file: TraceFile) -> Self {
        Self {
            path: file.path.clone(),
            names: std::mem::take(&mut file.names),
            sessions: std::mem::take(&mut file.sessions),
            master: file.master,
            applied: (0, Duration::ZERO),
            checksums: Checksums::default(),
            kind: SourceKind::File(file),
        }
    }

    fn of_archive(archive: Archive, origin: Origin, reading: &Reading) -> Self {
        let mut sessions = archive.sessions(&origin);
        let mut applied = (0, Duration::ZERO);
        if reading.apply_offsets && !archive.has_samples() {
            applied = extent(&sessions);
            sessions.iter_mut().for_each(Vec::clear);
        }
        Self {
            path: archive.anchor().to_owned(),
            names: archive.names(&origin),
            sessions,
            master: archive.master().unwrap_or(0),
            applied,
            checksums: reading.checksums,
            kind: SourceKind::Archive(Box::new((archive, origin))),
        }
    }

    /// Returns, for every location, the index of the location that represents its process and its
    /// number of events.
    fn loads(&self) -> Vec<LocationLoad> {
        match &self.kind {
            SourceKind::File(file) => file.loads.clone(),
            SourceKind::Archive(source) => source.0.loads(),
        }
    }

    /// Returns the failure for events that do not match, with their place in the file or archive.
    fn failure(&self, why: CorrectionError) -> Failure {
        let CorrectionError::Trace(why) = why else {
            return Failure::run(why);
        };
        Failure::Input(match &self.kind {
            SourceKind::Archive(source) => source.0.trace_error(why).to_string(),
            SourceKind::File(_) => format!("{}: {why}", self.path.display()),
        })
    }
}

/// Returns the loads before the events are read; an empty list if the input cannot be opened.
fn loads_of(path: &Path) -> Vec<LocationLoad> {
    if !files::is_archive(path) {
        return TraceFile::loads_of(path);
    }
    let archive = Archive::open(path);
    archive.map_or_else(|_| vec![], |archive| archive.loads())
}

/// Reads the events of this rank into a builder.
///
/// # Errors
/// Returns the position of the error, which is greater for later ones, and the reason.
fn load(
    path: &Path,
    builder: &mut TraceBuilder,
    reading: &Reading,
) -> Result<RecordingSource, (u64, String)> {
    if !files::is_archive(path) {
        let file = TraceFile::load(path, builder, reading.checksums);
        let file = file.map_err(|UnreadableFile { after, why }| (after, unreadable(why)))?;
        return Ok(RecordingSource::of_file(file));
    }
    let bad = |why: &Otf2Error| why.to_string() + &behind_error(path, reading.checksums);
    let archive = Archive::open(path).map_err(|why| (0, bad(&why)))?;
    let origin = archive.load(&reading.of_archive(), builder);
    let origin = origin.map_err(|UnreadableFile { after, why }| (after, bad(&why)))?;
    Ok(RecordingSource::of_archive(archive, origin, reading))
}

impl Reading {
    /// Returns a builder for the events.
    fn builder(&self) -> TraceBuilder {
        TraceBuilder::new(self.matching).in_store(self.store.clone())
    }

    /// Returns the same options for an archive.
    pub fn of_archive(&self) -> ReadOptions {
        ReadOptions {
            matching: self.matching,
            offsets: self.apply_offsets,
            workers: self.workers,
            ..ReadOptions::default()
        }
    }
}

/// Computes a digest of a trace, by which ranks notice that they read different ones: of
/// names and sizes of all files, and of the contents of definitions and of text. Each
/// rank reads the rest only in part.
///
/// # Errors
/// If a file cannot be read.
fn digest_of(path: &Path) -> io::Result<u64> {
    let mut hasher = StableHasher::default();
    let mut all = files::all_of(path);
    all.sort();
    for path in all {
        path.file_name().hash(&mut hasher);
        let found = fs::metadata(&path)?;
        found.len().hash(&mut hasher);
        if found.is_file() && path.extension().is_none_or(|extension| extension != "evt") {
            digest::of_file(&path)?.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

fn changed(path: &Path) -> Failure {
    Failure::Run(format!(
        "{}: the ranks read different content, or the trace was modified while they read it",
        path.display()
    ))
}

impl RecordingSource {
    /// Returns the resolution of the times of an archive. Text and archives of ours have
    /// nanoseconds, and times before the origin.
    pub fn resolution(&self) -> Option<Resolution> {
        match &self.kind {
            SourceKind::Archive(source) if !source.0.has_shift() => Some(source.0.resolution()),
            _ => None,
        }
    }

    /// Returns what was read of an archive by this rank, and verifies its checksums if
    /// they count.
    ///
    /// # Errors
    /// If a file of the archive cannot be read again.
    pub fn read(&self, checksums: Checksums) -> Result<ArchiveRead, Failure> {
        let SourceKind::Archive(source) = &self.kind else {
            return Ok(ArchiveRead::default());
        };
        let read = ArchiveRead::of(&source.0, source.1.read, checksums);
        read.map_err(|why| Failure::Input(why.to_string()))
    }

    /// Returns what was read of an archive by all ranks. Rank 0 verifies the checksums.
    ///
    /// # Errors
    /// If a rank is gone, or a file of the archive cannot be read again.
    pub async fn read_on_ranks<C: Comm>(&self, comm: &C) -> Result<ArchiveRead, Failure> {
        let checksums = match comm.rank() {
            0 => self.checksums,
            _ => Checksums::Ignore,
        };
        let mut read = agree(comm, self.read(checksums)).await?;
        let sum_up = async |mine: u64| {
            let sum = collective::all_reduce(comm, mine, |a, b| a + b);
            sum.await.map_err(Failure::run)
        };
        for kind in UnexaminedRelations::KINDS {
            let mine = read.not_examined.remove(kind).unwrap_or(0);
            let sum = sum_up(mine).await?;
            read.not_examined.extend((sum > 0).then_some((kind, sum)));
        }
        read.miscounted = sum_up(read.miscounted).await?;
        Ok(read)
    }

    /// Writes the trace with other timestamps of events, and other local timestamps of samples;
    /// everything else is unchanged. Collective, with the timestamps of each rank's own locations.
    ///
    /// # Errors
    /// If the output cannot be written, the input cannot be read again or has changed, or a rank is
    /// gone; on all ranks.
    pub async fn write_corrected<C: Comm>(
        &self,
        (path, writing): (&Path, WriteOptions),
        corrected: &CorrectedTrace,
        comm: &C,
    ) -> Result<Option<ArchiveReport>, Failure> {
        match &self.kind {
            SourceKind::File(_) if writing.rewrite => {
                Err(files::is_no_archive("--rewrite", &self.path))
            }
            SourceKind::File(file) => {
                let (trace, times) = (&corrected.trace, &corrected.times);
                let written = file.write_part(trace, path, times, &corrected.sessions, comm);
                let written = written.await.map_err(Failure::run)?;
                agree(comm, written.map_err(Failure::run)).await?;
                Ok(None)
            }
            SourceKind::Archive(source) => {
                let written = copies::write(source, corrected, (path, writing), comm).await;
                written.map(Some)
            }
        }
    }

    /// Describes the first difference of another trace from this one, besides timestamps.
    ///
    /// # Errors
    /// If one of them cannot be read again, or only one of them is an archive.
    pub fn first_difference(&self, other: &Self) -> Result<Option<String>, Failure> {
        let different = match (&self.kind, &other.kind) {
            (SourceKind::File(_), SourceKind::File(_)) => {
                formats::first_difference(&self.path, &other.path).map_err(|why| why.to_string())
            }
            (SourceKind::Archive(_), SourceKind::Archive(_)) => {
                otf2::first_difference(&self.path, &other.path).map_err(|why| why.to_string())
            }
            _ => Err(format!(
                "{}: {} has another format; an archive can only be compared with an archive",
                other.path.display(),
                self.path.display()
            )),
        };
        different.map_err(Failure::Input)
    }
}
