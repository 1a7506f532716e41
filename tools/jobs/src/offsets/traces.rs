//! Traces of ranks: their names, and copies with shifted times.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::str::FromStr;

use downbeat_clock_core::Duration;
use downbeat_common::Failure;
use downbeat_files::{FileError, NewFile};
use downbeat_trace::formats::chrome::{ShiftError, ShiftedTrace, shift_times};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// Name of the trace of each rank, with `{rank}` or `{host}` in it.
#[derive(Clone, Debug)]
pub(super) struct TraceName(String);

impl FromStr for TraceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.replace("{rank}", "").replace("{host}", "");
        if text.is_empty() {
            return Err("a name is needed".to_owned());
        }
        if rest.contains(['{', '}']) {
            return Err("only {rank} and {host} are replaced".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl TraceName {
    /// Returns true if the name of a host is part of it.
    pub(super) fn has_host(&self) -> bool {
        self.0.contains("{host}")
    }

    /// Returns the names for all ranks on these hosts.
    pub(super) fn of_all(&self, hosts: &[String]) -> Vec<String> {
        let of = |(rank, host): (usize, &String)| {
            let name = self.0.replace("{rank}", &rank.to_string());
            name.replace("{host}", host)
        };
        hosts.iter().enumerate().map(of).collect()
    }
}

/// Returns the first two ranks that have one name, of which `may` does not allow that.
pub(super) fn with_one_name(
    names: &[String],
    may: impl Fn(usize, usize) -> bool,
) -> Option<[usize; 2]> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|rank| &names[*rank]);
    let mut pairs = order.windows(2).filter_map(|pair| pair.try_into().ok());
    pairs.find(|[a, b]: &[usize; 2]| names[*a] == names[*b] && !may(*a, *b))
}

/// Copy of a trace that is not in place yet.
pub(super) struct ShiftedFile {
    file: NewFile,
    /// Time of the epoch from which the trace counts, if it says so.
    pub(super) base: Option<i64>,
}

impl ShiftedFile {
    /// Copies a trace and adds a time to all its times.
    pub(super) fn of(from: &Path, to: &Path, by: Duration) -> Result<Self, Failure> {
        let unreadable = |why: FileError| Failure::option("--kineto", why);
        let meta = fs::metadata(from).map_err(FileError::io(from));
        if !meta.map_err(unreadable)?.is_file() {
            return Err(unreadable(FileError::content(from, "it is not a file")));
        }
        let source = File::open(from).map_err(FileError::io(from));
        let mut source = BufReader::new(source.map_err(unreadable)?);
        let begin = source.fill_buf().map_err(FileError::io(from));
        let is_compressed = begin.map_err(unreadable)?.starts_with(&GZIP);
        let file = NewFile::create(to).map_err(|why| Failure::option("--shifted", why))?;
        let compresses = to.extension().is_some_and(|extension| extension == "gz");
        let shifted = match is_compressed {
            true => shifted(MultiGzDecoder::new(source), Sink(file), compresses, by),
            false => shifted(source, Sink(file), compresses, by),
        };
        match shifted {
            Ok((sink, found)) => Ok(Self {
                file: sink.0,
                base: found.base,
            }),
            Err(ShiftError::Write(why)) => Err(Failure::run(why)),
            Err(why) => Err(unreadable(FileError::content(from, why.to_string()))),
        }
    }

    /// Puts the copy in its place.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.file.finish().map_err(Failure::run)
    }
}

/// First bytes of a file that gzip has compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Copies a trace to a file, compressed by gzip if `compresses`.
fn shifted(
    source: impl Read,
    mut sink: Sink,
    compresses: bool,
    by: Duration,
) -> Result<(Sink, ShiftedTrace), ShiftError> {
    if !compresses {
        let found = shift_times(source, &mut sink, by)?;
        return Ok((sink, found));
    }
    let mut compressor = GzEncoder::new(sink, Compression::default());
    let found = shift_times(source, &mut compressor, by)?;
    let sink = compressor.finish().map_err(ShiftError::Write)?;
    Ok((sink, found))
}

/// Errors of a new file as those of a writer.
struct Sink(NewFile);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(&mut bytes.to_vec());
        written.map(|()| bytes.len()).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
