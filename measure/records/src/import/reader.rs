//! Reading an output: its suite is recognized, and its lines are given to that.

use std::io::{BufRead, BufReader, Read};

use downbeat_files::{Flaw, Lines};

use super::collector::Collector;
use super::format::ImportFormat;
#[cfg(feature = "json")]
use super::hyperfine;
use super::imported::{ImportSettings, Imported};
use super::lines::SuiteLines;
use super::{imb, osu, reprompi};

/// Longest line of an output.
const LONGEST_LINE: usize = 1 << 20;

/// Reads the output of a benchmark suite.
///
/// # Errors
/// If it cannot be read, is of no known suite or of two, has a line in a table that is no row of it, or lacks what the settings
/// do not state either.
pub fn import(input: impl Read, settings: &ImportSettings) -> Result<Imported, Flaw> {
    let mut input = BufReader::new(input);
    let begin = input.fill_buf()?;
    if begin.starts_with(&[0xff, 0xfe]) || begin.starts_with(&[0xfe, 0xff]) {
        return Err(Flaw::Whole("it is UTF-16; convert it to UTF-8".to_owned()));
    }
    if begin.starts_with("\u{feff}".as_bytes()) {
        input.consume("\u{feff}".len());
    }
    #[cfg(feature = "json")]
    {
        let is_json = match settings.from {
            Some(format) => format == ImportFormat::Hyperfine,
            None => input.fill_buf()?.trim_ascii_start().first() == Some(&b'{'),
        };
        if is_json {
            return hyperfine::read(input, settings);
        }
    }
    read_lines(Lines::new(input, LONGEST_LINE), settings)
}

fn read_lines<R: Read>(mut lines: Lines<R>, settings: &ImportSettings) -> Result<Imported, Flaw> {
    let mut collector = Collector::new(settings);
    let mut suite = settings
        .from
        .and_then(|format| Some((format, lines_of(format)?)));
    while lines.advance()? {
        // What is not UTF-8 is outside of tables, or no number.
        let line = String::from_utf8_lossy(lines.line()).into_owned();
        match (format_of(&line), &mut suite) {
            (Some(found), None) => suite = lines_of(found).map(|reader| (found, reader)),
            (Some(found), Some((known, reader))) if found != *known => {
                // Only that of the suite that was asked for is read.
                if settings.from.is_none() {
                    let why = format!(
                        "here begins output of {found}, after that of {known}; name one, or split the file"
                    );
                    return Err(lines.flaw(0, why));
                }
                let ended = reader.end(&mut collector);
                ended.map_err(|why| lines.flaw(0, why))?;
            }
            (None, None) => refuse_summary(&line).map_err(|why| lines.flaw(0, why))?,
            _ => {}
        }
        if let Some((_, suite)) = &mut suite {
            let read = suite.line(&line, &mut collector);
            read.map_err(|why| lines.flaw(0, why))?;
        }
    }
    let Some((format, mut suite)) = suite else {
        let names = ImportFormat::names();
        return Err(Flaw::Whole(format!(
            "this is no output of a suite that is known: {names}"
        )));
    };
    if suite.is_row(&String::from_utf8_lossy(lines.unfinished())) {
        let why = "the table ends within a line: the file was cut off (or lacks its last line end)";
        return Err(lines.flaw(1, why));
    }
    let ended = suite.end(&mut collector);
    ended.map_err(|why| lines.flaw(0, why))?;
    let (launches, left_out) = collector.found();
    if launches.is_empty() {
        return Err(Flaw::Whole(format!(
            "there is no table of times of {format} in it"
        )));
    }
    Ok(Imported {
        format,
        launches,
        left_out,
    })
}

/// Recognizes a format by a line that no other one has.
fn format_of(line: &str) -> Option<ImportFormat> {
    if osu::begins(line) {
        Some(ImportFormat::Osu)
    } else if imb::begins(line) {
        Some(ImportFormat::Imb)
    } else if reprompi::begins(line) {
        Some(ImportFormat::Reprompi)
    } else {
        None
    }
}

/// Creates the reader of the lines of a format; `None` if it does not consist of lines.
fn lines_of(format: ImportFormat) -> Option<Box<dyn SuiteLines>> {
    match format {
        ImportFormat::Osu => Some(Box::<osu::OsuLines>::default()),
        ImportFormat::Imb => Some(Box::<imb::ImbLines>::default()),
        ImportFormat::Reprompi => Some(Box::<reprompi::ReprompiLines>::default()),
        #[cfg(feature = "json")]
        ImportFormat::Hyperfine => None,
    }
}

/// Refuses exports of hyperfine that have no times of single runs.
fn refuse_summary(line: &str) -> Result<(), String> {
    if line.starts_with("command,mean,stddev,") || line.starts_with("| Command | Mean [") {
        return Err(
            "this export of hyperfine lacks the times of the runs; export JSON (--export-json)"
                .to_owned(),
        );
    }
    Ok(())
}
