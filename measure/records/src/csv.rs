//! Records as CSV.

use std::io::{self, Read, Write};

use super::content::{GroupRows, Keep, LaunchBuilder, LaunchContent, Tally};
use super::error::RecordFlaw;
use super::pieces::PieceReader;
use crate::{Factors, GroupKey, MeasuredGroup, ObservationState};
use downbeat_files::{ChecksumLine, Checksums, Lines, number, shown};

pub(super) const MAGIC: &str = "# downbeat launch ";
const VERSION: &str = "2";
/// Previous version, without checksums.
const UNSEALED: &str = "1";
pub(super) const CHECKSUM: ChecksumLine = ChecksumLine {
    before: "# crc32 ",
    after: "",
};
pub(super) const COLUMNS: &str = "operation,bytes,ranks,call,state,nanos";
pub(super) const COMPLETE: &str = "# complete";
const LONGEST_LINE: usize = 1 << 20;

/// Beginning of a record without checksums.
pub(super) fn unsealed_begin() -> String {
    format!("{MAGIC}{UNSEALED}")
}

/// Header of a file, up to the line of the columns.
pub(super) fn header(factors: &Factors, facts: &Factors, columns: &str) -> String {
    let mut header = format!("{MAGIC}{VERSION}\n");
    for (kind, all) in [("factor", factors), ("fact", facts)] {
        all.iter()
            .for_each(|(name, value)| header.push_str(&named(kind, name, value)));
    }
    header + columns + "\n"
}

/// Returns the lines of facts behind the header.
pub(super) fn facts_lines(facts: &Factors) -> String {
    let lines = facts.iter().map(|(name, value)| named("fact", name, value));
    lines.collect()
}

/// Line of a factor or fact.
pub(super) fn named(kind: &str, name: &str, value: &str) -> String {
    format!("# {kind} {name} = {value}\n")
}

/// Writes the lines of a group.
pub(super) fn write_group(
    to: &mut impl Write,
    group: &MeasuredGroup,
    rows: &GroupRows,
) -> io::Result<()> {
    let key = key(&group.key);
    for (call, state, nanos) in rows.iter() {
        writeln!(to, "{key},{call},{},{nanos}", state.name())?;
    }
    writeln!(to, "# end {key} {}", summary(&group.counts, &group.figures))
}

/// Columns that are the same in all rows of a group.
pub(super) fn key(
    GroupKey {
        operation,
        bytes,
        ranks,
    }: &GroupKey,
) -> String {
    format!("{operation},{bytes},{ranks}")
}

/// Counts and figures of a group, as in its last line.
pub(super) fn summary(counts: &[(ObservationState, u64)], figures: &[(String, f64)]) -> String {
    let counts = counts
        .iter()
        .map(|(state, count)| format!("{}={count}", state.name()));
    let figures = figures
        .iter()
        .map(|(name, nanos)| format!("{name}={nanos}"));
    counts.chain(figures).collect::<Vec<_>>().join(" ")
}

/// Reads a record.
pub(super) fn read(
    file: impl Read,
    keep: Keep,
    checksums: Checksums,
) -> Result<LaunchContent, RecordFlaw> {
    let mut lines = Lines::new(file, LONGEST_LINE);
    let mut builder = LaunchBuilder::new(checksums);
    let mut pieces = read_header(&mut lines, &mut builder, COLUMNS, checksums)?;
    if keep == Keep::Header {
        return Ok(builder.found(pieces.end(&lines)?));
    }
    let mut body = CsvBody {
        builder,
        keep,
        prefix: vec![],
        open: None,
    };
    while lines.advance()? {
        if pieces.take(&mut lines, &mut body.builder)? {
            continue;
        }
        match body.line(lines.line()).map_err(|why| lines.flaw(0, why))? {
            CsvLine::Row | CsvLine::Fact => {}
            CsvLine::End | CsvLine::Complete => pieces.piece(&mut lines, &mut body.builder)?,
        }
    }
    Ok(body.builder.found(pieces.end(&lines)?))
}

/// Reads the header, with its checksum.
pub(super) fn read_header<R: Read>(
    lines: &mut Lines<R>,
    builder: &mut LaunchBuilder,
    columns: &str,
    checksums: Checksums,
) -> Result<PieceReader, RecordFlaw> {
    let not_a_record = || format!("a record of a launch begins with \"{MAGIC}{VERSION}\"");
    let first = lines.next_line()?.map(|line| text(line).map(str::to_owned));
    let is_sealed = match first {
        None if !MAGIC
            .as_bytes()
            .starts_with(&lines.unfinished()[..lines.unfinished().len().min(MAGIC.len())]) =>
        {
            return Err(lines.flaw(1, not_a_record()).into());
        }
        None => return Err(RecordFlaw::NoHeader(1)),
        Some(first) => match first
            .ok()
            .as_deref()
            .and_then(|line| line.strip_prefix(MAGIC))
        {
            Some(UNSEALED) => false,
            Some(VERSION) => true,
            Some(other) => {
                return Err(lines
                    .flaw(
                        0,
                        format!("version \"{}\" is not supported", other.escape_debug()),
                    )
                    .into());
            }
            None => return Err(lines.flaw(0, not_a_record()).into()),
        },
    };
    loop {
        let done = match lines.next_line()? {
            Some(line) => header_line(line, builder, columns),
            None => return Err(RecordFlaw::NoHeader(lines.number() + 1)),
        };
        if done.map_err(|why| lines.flaw(0, why))? {
            let mut pieces = PieceReader::new(CHECKSUM, is_sealed, checksums);
            return match pieces.whole_piece(lines, builder)? {
                true => Ok(pieces),
                false => Err(RecordFlaw::NoHeader(lines.number() + 1)),
            };
        }
    }
}

/// Reads one line of the header; returns true if it was the last one.
fn header_line(line: &[u8], builder: &mut LaunchBuilder, columns: &str) -> Result<bool, String> {
    let line = text(line)?;
    if let Some(rest) = line.strip_prefix("# factor ") {
        named_value(rest)
            .and_then(|(name, value)| builder.factor(name, value))
            .map(|()| false)
    } else if let Some(rest) = line.strip_prefix("# fact ") {
        named_value(rest)
            .and_then(|(name, value)| builder.fact(name, value))
            .map(|()| false)
    } else if line == columns {
        Ok(true)
    } else {
        Err(format!(
            "this is neither a factor, nor a fact, nor the line of the columns, \"{columns}\""
        ))
    }
}

/// Kinds of lines after the header.
enum CsvLine {
    Row,
    Fact,
    End,
    Complete,
}

/// State of a reader after the header.
struct CsvBody {
    builder: LaunchBuilder,
    keep: Keep,
    /// Columns that are the same in all rows of the current group.
    prefix: Vec<u8>,
    open: Option<OpenGroup>,
}

/// A group whose end is not read yet.
struct OpenGroup {
    key: GroupKey,
    tally: Tally,
    nanos: Vec<f64>,
    rows: GroupRows,
}

impl OpenGroup {
    fn new(key: GroupKey) -> Self {
        Self {
            key,
            tally: Tally::default(),
            nanos: vec![],
            rows: GroupRows::default(),
        }
    }

    /// Adds the columns of a row that differ between rows; `None` if they are invalid.
    #[inline]
    fn row(&mut self, columns: &[u8], keep: Keep) -> Option<Result<(), String>> {
        let (call, rest) = number::whole(columns)?;
        let (state, rest) = state(rest.strip_prefix(b",")?)?;
        let nanos = number::finite(rest.strip_prefix(b",")?)?;
        let added = self.tally.add(call, state);
        #[cfg(feature = "parquet")]
        if keep == Keep::Rows {
            self.rows.calls.push(call);
            self.rows.states.push(state);
            self.rows.nanos.push(nanos);
        }
        if keep == Keep::Valid && state == ObservationState::Valid {
            self.nanos.push(nanos);
        }
        Some(added)
    }
}

impl CsvBody {
    #[inline]
    fn line(&mut self, line: &[u8]) -> Result<CsvLine, String> {
        if let Some(open) = &mut self.open
            && let Some(columns) = line.strip_prefix(self.prefix.as_slice())
        {
            return match open.row(columns, self.keep) {
                Some(added) => added.map(|()| CsvLine::Row),
                None => Err(explain_row(line)),
            };
        }
        self.other_line(line)
    }

    /// Reads any line but the second and later rows of a group.
    fn other_line(&mut self, line: &[u8]) -> Result<CsvLine, String> {
        let Some(comment) = line.strip_prefix(b"# ") else {
            return self.first_row(line);
        };
        let comment = text(comment)?;
        if let Some(end) = comment.strip_prefix("end ") {
            return self.end(end).map(|()| CsvLine::End);
        }
        if let Some(OpenGroup { key, .. }) = &self.open {
            return Err(format!("the group of {key} has not ended"));
        }
        if let Some(fact) = comment.strip_prefix("fact ") {
            let (name, value) = named_value(fact)?;
            return self.builder.later_fact(name, value).map(|()| CsvLine::Fact);
        }
        if line == COMPLETE.as_bytes() {
            self.builder.complete();
            return Ok(CsvLine::Complete);
        }
        Err("this is neither the end of a group, nor a fact, nor the end of the record".to_owned())
    }

    fn first_row(&mut self, line: &[u8]) -> Result<CsvLine, String> {
        let (key, length) = row_key(line).ok_or_else(|| explain_row(line))?;
        if let Some(OpenGroup { key: open, .. }) = &self.open {
            return Err(format!("a row of {key} is inside the group of {open}"));
        }
        self.builder.check_key(&key)?;
        self.prefix = line[..length].to_vec();
        self.open = Some(OpenGroup::new(key));
        self.line(line)
    }

    fn end(&mut self, line: &str) -> Result<(), String> {
        let (columns, summary) = line.split_once(' ').unwrap_or((line, ""));
        let key = read_key(columns)
            .ok_or_else(|| format!("\"{}\" is not a group", columns.escape_debug()))?;
        let open = self
            .open
            .take()
            .unwrap_or_else(|| OpenGroup::new(key.clone()));
        if open.key != key {
            return Err(format!("the group of {} ends as one of {key}", open.key));
        }
        let (counts, figures) = read_summary(summary)?;
        let rows = (self.keep != Keep::Valid).then_some(open.rows);
        self.builder.group(
            MeasuredGroup {
                key,
                nanos: open.nanos,
                counts,
                figures,
            },
            &open.tally,
            rows,
        )
    }
}

#[inline]
fn state(text: &[u8]) -> Option<(ObservationState, &[u8])> {
    ObservationState::ALL
        .into_iter()
        .find_map(|state| Some((state, text.strip_prefix(state.name().as_bytes())?)))
}

/// Parses a key, as written by [`key`].
pub(super) fn read_key(text: &str) -> Option<GroupKey> {
    let key =
        row_key(format!("{text},").as_bytes()).filter(|(_, length)| *length == text.len() + 1);
    key.map(|(key, _)| key)
}

/// Parses the key at the beginning of a row; returns it and its length in bytes.
fn row_key(line: &[u8]) -> Option<(GroupKey, usize)> {
    let length = line.iter().position(|byte| *byte == b',')?;
    let operation = core::str::from_utf8(&line[..length]).ok()?.to_owned();
    let (bytes, rest) = number::whole(&line[length + 1..])?;
    let (ranks, rest) = number::whole(rest.strip_prefix(b",")?)?;
    let rest = rest.strip_prefix(b",")?;
    Some((
        GroupKey {
            operation,
            bytes,
            ranks: ranks.try_into().ok()?,
        },
        line.len() - rest.len(),
    ))
}

/// Explains why a row is invalid.
#[cold]
fn explain_row(line: &[u8]) -> String {
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b',').take(7).collect();
    let expected = COLUMNS.split(',').count();
    if columns.len() != expected {
        let found = line.iter().filter(|byte| **byte == b',').count() + 1;
        return format!("it has {found} columns instead of {expected}");
    }
    let whole = |text: &[u8]| {
        number::whole(text)
            .filter(|(_, rest)| rest.is_empty())
            .map(|(number, _)| number)
    };
    let wrong = [
        (core::str::from_utf8(columns[0]).is_ok(), "operation name"),
        (whole(columns[1]).is_some(), "number of bytes"),
        (
            whole(columns[2]).is_some_and(|ranks| u32::try_from(ranks).is_ok()),
            "number of ranks",
        ),
        (whole(columns[3]).is_some(), "number of a call"),
        (
            state(columns[4]).is_some_and(|(_, rest)| rest.is_empty()),
            "state",
        ),
        (false, "run-time"),
    ];
    let wrong = wrong.iter().zip(&columns).find(|((fine, _), _)| !fine);
    wrong.map_or_else(String::new, |((_, what), column)| {
        format!("\"{}\" is not a valid {what}", shown(column))
    })
}

fn text(line: &[u8]) -> Result<&str, String> {
    core::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())
}

fn named_value(text: &str) -> Result<(&str, &str), String> {
    // Some editors remove spaces at the ends of lines.
    let named = text
        .split_once(" = ")
        .or_else(|| Some((text.strip_suffix(" =")?, "")));
    named.ok_or_else(|| "it is not of the form NAME = VALUE".to_owned())
}

/// Counts by state, and figures.
pub(super) type CsvSummary = (Vec<(ObservationState, u64)>, Vec<(String, f64)>);

/// Parses counts of all states, in their order, and figures. Older records do not count all states.
pub(super) fn read_summary(text: &str) -> Result<CsvSummary, String> {
    let mut parts = text.split(' ').peekable();
    let counts = ObservationState::counts(|name| {
        let count = |part: &str| Some(part.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        let found = count(parts.peek()?)?;
        parts.next();
        Some(found)
    });
    let counts = counts.map_err(|name| format!("the count of state {name} is missing"))?;
    let figure = |part: &str| {
        let (name, nanos) = part.split_once('=')?;
        Some((name.to_owned(), number::finite(nanos.as_bytes())?))
    };
    let figures = parts.map(|part| {
        figure(part).ok_or_else(|| format!("\"{}\" is not a figure", shown(part.as_bytes())))
    });
    Ok((counts, figures.collect::<Result<_, _>>()?))
}
