//! Records as CSV.

use core::fmt::Write as _;
use std::io::Read;

use super::content::{
    GroupRows, Keep, LaunchBuilder, LaunchContent, RecordEnd, Tally, check_figures, check_operation,
};
use super::error::RecordFlaw;
use crate::{Factors, GroupKey, MeasuredGroup, Observation, ObservationState, Observations};
use downbeat_files::checksum::DAMAGED;
use downbeat_files::{AFTER_END, ChecksumLine, Checksums, Flaw, Lines, number, shown};

pub(super) const MAGIC: &str = "# downbeat launch ";
const VERSION: &str = "1";
/// Line at the end of what is written at once.
pub(super) const CHECKSUM: ChecksumLine = ChecksumLine {
    before: "# crc32 ",
    after: "",
};
pub(super) const COLUMNS: &str = "operation,bytes,ranks,call,state,nanos";
pub(super) const COMPLETE: &str = "# complete";
const LONGEST_LINE: usize = 1 << 20;

/// Header of a file, up to the line of the columns.
pub(super) fn header(factors: &Factors, facts: &Factors, columns: &str) -> String {
    let factors = named_lines("factor", factors);
    format!(
        "{MAGIC}{VERSION}\n{factors}{}{columns}\n",
        facts_lines(facts)
    )
}

/// Lines of facts, in the header or behind it.
pub(super) fn facts_lines(facts: &Factors) -> String {
    named_lines("fact", facts)
}

fn named_lines(kind: &str, all: &Factors) -> String {
    let lines = all
        .iter()
        .map(|(name, value)| format!("# {kind} {name} = {value}\n"));
    lines.collect()
}

/// Appends the lines of a group: its valid observations, or all. Missing counts are those of the
/// observations.
///
/// # Errors
/// If the group could not be read again.
pub(super) fn write_group(
    to: &mut String,
    group: &MeasuredGroup,
    observations: &Observations,
    all: bool,
) -> Result<(), String> {
    check_operation(&group.key.operation)?;
    check_figures(&group.figures)?;
    let key = key(&group.key);
    let mut tally = Tally::default();
    for (call, Observation { state, nanos, .. }) in observations.iter().enumerate() {
        if !all && *state != ObservationState::Valid {
            continue;
        }
        if !nanos.is_finite() {
            return Err(format!("call {call} took {nanos} ns"));
        }
        tally.add(call as u64, *state)?;
        // Writing to memory cannot fail.
        let _ = writeln!(to, "{key},{call},{},{nanos}", state.name());
    }
    let counts = ObservationState::ALL.map(|state| {
        let given = group.counts.iter().find(|(known, _)| *known == state);
        let counted = observations.count(state) as u64;
        (state, given.map_or(counted, |(_, count)| *count))
    });
    tally.check(&counts)?;
    let _ = writeln!(to, "# end {key} {}", summary(&counts, &group.figures));
    Ok(())
}

/// Columns that are the same in all rows of a group.
pub(super) fn key(key: &GroupKey) -> String {
    format!("{},{},{}", key.operation, key.bytes, key.ranks)
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
    let mut builder = LaunchBuilder::default();
    read_header(&mut lines, &mut builder, COLUMNS, checksums)?;
    if keep == Keep::Header {
        return Ok(builder.found());
    }
    let mut body = CsvBody {
        builder,
        keep,
        prefix: vec![],
        open: None,
    };
    while lines.advance()? {
        if CHECKSUM.check(&mut lines, checksums)? {
            continue;
        }
        let is_last = body.line(lines.line()).map_err(|why| lines.flaw(0, why))?;
        let is_whole = is_last && end_piece(&mut lines, &mut body.builder, checksums)?;
        if is_whole && body.builder.is_complete() {
            check_end(&mut lines, checksums)?;
        }
    }
    if checksums == Checksums::Verify {
        CHECKSUM.check_unfinished(&lines)?;
    }
    Ok(body.builder.found())
}

/// Reads the checksum of what was written at once, and keeps that; returns false if the file ends
/// before the checksum.
pub(super) fn end_piece<R: Read>(
    lines: &mut Lines<R>,
    builder: &mut LaunchBuilder,
    checksums: Checksums,
) -> Result<bool, Flaw> {
    if checksums == Checksums::Verify {
        if !lines.advance()? {
            CHECKSUM.check_unfinished(lines)?;
            return Ok(false);
        }
        if !CHECKSUM.check(lines, checksums)? {
            let why = format!("the checksum of the lines before is missing: {DAMAGED}");
            return Err(lines.flaw(0, why));
        }
    }
    builder.commit(RecordEnd {
        bytes: lines.offset(),
        checksum: lines.checksum_through_line(),
    });
    Ok(true)
}

/// Checks that nothing comes after the end of a record, except the checksum of an edited one.
fn check_end<R: Read>(lines: &mut Lines<R>, checksums: Checksums) -> Result<(), Flaw> {
    if checksums == Checksums::Ignore && lines.advance()? && !CHECKSUM.check(lines, checksums)? {
        return Err(lines.flaw(0, AFTER_END));
    }
    lines.expect_end()
}

/// Returns true if these last bytes of a record are its end and a checksum.
pub(super) fn ends_complete(last: &[u8]) -> bool {
    let text = String::from_utf8_lossy(last).replace("\r\n", "\n");
    let end = text.rsplit_once(&format!("\n{COMPLETE}\n"));
    end.is_some_and(|(_, line)| {
        let is_checksum = line.starts_with(CHECKSUM.before) && line.ends_with('\n');
        is_checksum && line.len() == CHECKSUM.line_of(0).len() + 1
    })
}

/// Reads the header, with its checksum.
pub(super) fn read_header<R: Read>(
    lines: &mut Lines<R>,
    builder: &mut LaunchBuilder,
    columns: &str,
    checksums: Checksums,
) -> Result<(), RecordFlaw> {
    check_first_line(lines)?;
    while let Some(line) = lines.next_line()? {
        let is_last = header_line(line, builder, columns);
        if is_last.map_err(|why| lines.flaw(0, why))? {
            match end_piece(lines, builder, checksums)? {
                true => return Ok(()),
                false => break,
            }
        }
    }
    Err(RecordFlaw::NoHeader(lines.number() + 1))
}

/// Checks format and version.
fn check_first_line<R: Read>(lines: &mut Lines<R>) -> Result<(), RecordFlaw> {
    let not_a_record = || format!("a record of a launch begins with \"{MAGIC}{VERSION}\"");
    let Some(first) = lines.next_line()? else {
        let begun = lines.unfinished();
        let common = begun.len().min(MAGIC.len());
        return Err(if MAGIC.as_bytes().starts_with(&begun[..common]) {
            RecordFlaw::NoHeader(1)
        } else {
            lines.flaw(1, not_a_record()).into()
        });
    };
    let why = match first.strip_prefix(MAGIC.as_bytes()) {
        Some(version) if version == VERSION.as_bytes() => return Ok(()),
        Some(version) => format!("version \"{}\" is not supported", shown(version)),
        None => not_a_record(),
    };
    Err(lines.flaw(0, why).into())
}

/// Reads one line of the header; returns true if it was the last one.
fn header_line(line: &[u8], builder: &mut LaunchBuilder, columns: &str) -> Result<bool, String> {
    let line = text(line)?;
    if let Some(factor) = line.strip_prefix("# factor ") {
        let (name, value) = named_value(factor)?;
        builder.factor(name, value)?;
    } else if let Some(fact) = line.strip_prefix("# fact ") {
        let (name, value) = named_value(fact)?;
        builder.fact(name, value)?;
    } else if line != columns {
        return Err(format!(
            "this is neither a factor, nor a fact, nor the line of the columns, \"{columns}\""
        ));
    }
    Ok(line == columns)
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
    /// Reads a line; returns true if it is the last one of what is written at once.
    #[inline]
    fn line(&mut self, line: &[u8]) -> Result<bool, String> {
        if let Some(open) = &mut self.open
            && let Some(columns) = line.strip_prefix(self.prefix.as_slice())
        {
            return match open.row(columns, self.keep) {
                Some(added) => added.map(|()| false),
                None => Err(explain_row(line)),
            };
        }
        self.other_line(line)
    }

    /// Reads any line but the second and later rows of a group.
    fn other_line(&mut self, line: &[u8]) -> Result<bool, String> {
        let Some(comment) = line.strip_prefix(b"# ") else {
            return self.first_row(line);
        };
        let comment = text(comment)?;
        if let Some(end) = comment.strip_prefix("end ") {
            return self.end(end).map(|()| true);
        }
        if let Some(OpenGroup { key, .. }) = &self.open {
            return Err(format!("the group of {key} has not ended"));
        }
        if let Some(fact) = comment.strip_prefix("fact ") {
            let (name, value) = named_value(fact)?;
            return self.builder.later_fact(name, value).map(|()| false);
        }
        if line == COMPLETE.as_bytes() {
            self.builder.complete();
            return Ok(true);
        }
        Err("this is neither the end of a group, nor a fact, nor the end of the record".to_owned())
    }

    fn first_row(&mut self, line: &[u8]) -> Result<bool, String> {
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

/// Parses counts of all states, in their order, and figures.
pub(super) fn read_summary(text: &str) -> Result<CsvSummary, String> {
    let mut parts = text.split(' ');
    let mut counts = vec![];
    for state in ObservationState::ALL {
        let name = state.name();
        let count = parts
            .next()
            .and_then(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        let count = count.ok_or_else(|| format!("the count of state {name} is missing"))?;
        counts.push((state, count));
    }
    let figure = |part: &str| {
        let (name, nanos) = part.split_once('=')?;
        Some((name.to_owned(), number::finite(nanos.as_bytes())?))
    };
    let figures = parts.map(|part| {
        figure(part).ok_or_else(|| format!("\"{}\" is not a figure", shown(part.as_bytes())))
    });
    Ok((counts, figures.collect::<Result<_, _>>()?))
}
