//! Parsers of the command line.

use std::env;
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt::Display;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::ops::RangeInclusive;

use clap::error::ErrorKind;
use clap::{Args, Parser};
use downbeat_clock_core::Duration;
use downbeat_files::Checksums;
use downbeat_files::checksum::DAMAGED;
use downbeat_records::Factors;
use downbeat_sync::{Algorithm, LabelError};

use crate::suggestion::{did_you_mean, suggestion};
use crate::text::width;
use crate::{Failure, help};

/// Options for conditions that only the user knows.
#[derive(Args, Clone, Debug, Default)]
pub struct FactorOptions {
    /// Condition on which results depend, and that is not known otherwise, such as library=MPICH; may be given several times
    #[arg(long = "factor", value_name = "NAME=VALUE", value_parser = named)]
    factors: Vec<(String, String)>,
}

fn named(text: &str) -> Result<(String, String), String> {
    let named = text
        .split_once('=')
        .map(|(name, value)| (name.trim(), value.trim()));
    let named = named.filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let (name, value) = named.ok_or("must be of the form NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl FactorOptions {
    /// Adds the factors to those that are known, `place` being where from.
    ///
    /// # Errors
    /// If one of them is known already.
    pub fn add_to(&self, mut known: Factors, place: &str) -> Result<Factors, Failure> {
        for (name, value) in &self.factors {
            if let Some(known) = known.get(name) {
                let why = format!("{name} is \"{known}\"{place}");
                return Err(Failure::option("--factor", why));
            }
            known = known.with(name, value);
        }
        Ok(known)
    }
}

/// Parses the command line of the program.
///
/// # Errors
/// When it is invalid, in one line; or with the help that was asked for.
pub fn parse<A: Parser>() -> Result<A, Failure> {
    A::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => Failure::Help(
            help::of(A::command(), width())
                .unwrap_or(error)
                .render()
                .ansi()
                .to_string(),
        ),
        ErrorKind::DisplayVersion => Failure::Help(error.to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let given = env::args_os().skip(1);
            let given: String = given.map(|word| format!(" {}", word.display())).collect();
            let command = A::command().get_name().to_owned() + &given;
            Failure::Input(format!(
                "`{command}` needs a command: see `{command} --help`"
            ))
        }
        ErrorKind::InvalidUtf8 => Failure::Input(name_invalid::<A>(env::args_os().collect())),
        _ => {
            let line = name_number(first_paragraph(&error.to_string()), &error);
            let meant = suggestion(&error, &line);
            Failure::Input(line + &did_you_mean(meant.as_deref()))
        }
    })
}

/// Names the argument that must be UTF-8 and is not: replacing it makes another error, or none. Paths
/// may be anything.
fn name_invalid<A: Parser>(mut arguments: Vec<OsString>) -> String {
    let mut message = "an argument is not UTF-8".to_owned();
    for index in 1..arguments.len() {
        if arguments[index].to_str().is_some() {
            continue;
        }
        let text = arguments[index].to_string_lossy().into_owned();
        let option = arguments[index - 1].to_str();
        message = match option.filter(|option| option.starts_with('-')) {
            Some(option) => format!("{option}: \"{text}\" is not UTF-8"),
            None => format!("\"{text}\" is not UTF-8"),
        };
        arguments[index] = text.into();
        let found = A::try_parse_from(&arguments).map_err(|why| why.kind());
        if !matches!(found, Err(ErrorKind::InvalidUtf8)) {
            break;
        }
    }
    message
}

/// Replaces what the standard library says about a text that is no number, at the end of
/// a message.
fn name_number(line: String, error: &clap::Error) -> String {
    let Some(why) = error.source() else {
        return line;
    };
    let expected = match why.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "the number is too large",
        Some(IntErrorKind::NegOverflow) => "the number is too small",
        Some(_) => "expected a whole number",
        None if why.is::<ParseFloatError>() => "expected a number",
        None => return line,
    };
    let begin = line.strip_suffix(&why.to_string()).map(str::to_owned);
    begin.map_or(line, |begin| begin + expected)
}

/// Returns the first paragraph of a message of clap as one line; the rest is usage.
fn first_paragraph(text: &str) -> String {
    let lines = text
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim);
    let line = lines.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// Option of the commands that read files with checksums.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct VerifyOptions {
    /// Do not verify checksums: accept files that were edited by hand
    #[arg(long)]
    no_verify: bool,
}

impl VerifyOptions {
    /// Returns the treatment of checksums that was asked for.
    pub fn checksums(self) -> Checksums {
        checksums(self.no_verify)
    }
}

/// Returns the treatment of checksums.
pub(crate) fn checksums(no_verify: bool) -> Checksums {
    if no_verify {
        Checksums::Ignore
    } else {
        Checksums::Verify
    }
}

/// Makes the message for a file that cannot be read; names the option that would accept it.
pub fn unreadable(why: impl Display) -> String {
    let mut why = why.to_string();
    if why.ends_with(DAMAGED) {
        why += " (--no-verify accepts it)";
    }
    why
}

/// Parses a duration longer than 0.
///
/// # Errors
/// When the text is invalid.
pub fn positive(text: &str) -> Result<Duration, String> {
    let duration = not_negative(text)?;
    if duration == Duration::ZERO {
        Err("must be longer than 0".to_owned())
    } else {
        Ok(duration)
    }
}

/// Parses a duration of 0 or more.
///
/// # Errors
/// When the text is invalid.
pub fn not_negative(text: &str) -> Result<Duration, String> {
    let time: Duration = text
        .parse()
        .map_err(|why: downbeat_clock_core::ParseDurationError| why.to_string())?;
    if time < Duration::ZERO {
        Err("must not be negative".to_owned())
    } else {
        Ok(time)
    }
}

/// Returns a parser of whole numbers in a range, whose message names it.
pub fn whole_number<N: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| N::try_from(number).ok());
        number.ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            format!("expected a whole number from {low} to {high}")
        })
    }
}

/// Labels of algorithms, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels(pub Vec<Algorithm>);

impl Labels {
    /// Help text of the option.
    pub const HELP: &str = "Synchronization algorithms, separated by commas: auto/TIME, none, skampi/OFFSET, nbcbench/OFFSET, \
                            hca3-offset/OFFSET, jk/LINE, hca/LINE, hca2/LINE, hca3/LINE, cube/TURNS/EXCHANGES, cube/TIME, prop, \
                            h2hca(NODES,RANKS), h3hca(NODES,SOCKETS,RANKS), or by level as hlhca(rack=cube,node=cube,rank=prop) with levels \
                            among island, rack, node, socket, numa; OFFSET is skampi, mean-rtt or trace-collector and the number of \
                            exchanges, as skampi/100; LINE is the number of fit points and an OFFSET, as 1000/skampi/100. \
                            What is left out is as in these examples: hca3 is hca3/1000/skampi/100, cube is cube/1000/100; auto is auto/300ms, and auto/100ms in a simulation";

    /// Parses labels of clocks that are synchronized once: see
    /// [`Algorithm::parse_single`].
    ///
    /// # Errors
    /// If a label is wrong.
    pub fn parse_single(text: &str) -> Result<Self, String> {
        Self::parse_by(text, Algorithm::parse_single)
    }

    fn parse_by(
        text: &str,
        parse: fn(&str) -> Result<Algorithm, LabelError>,
    ) -> Result<Self, String> {
        let mut labels: Vec<Algorithm> = Vec::new();
        for label in split_outside_parentheses(text) {
            let algorithm = parse(label).map_err(|why| match label {
                "" => why.to_string(),
                _ => format!("{label}: {why}"),
            })?;
            if labels.contains(&algorithm) {
                // Its runs could not be told apart.
                return Err(format!(
                    "{algorithm} is given twice; --repeat runs it several times"
                ));
            }
            labels.push(algorithm);
        }
        Ok(Self(labels))
    }
}

impl std::str::FromStr for Labels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse_by(text, str::parse)
    }
}

/// Splits at commas, except those in parentheses: these belong to the label of a hierarchy.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let outside = |c: char| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    };
    text.split(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_paragraph_is_kept() {
        assert_eq!(
            first_paragraph("error: bad\n  <FILE>\n\nUsage: x\n"),
            "bad <FILE>"
        );
    }

    #[test]
    fn durations_that_are_not_positive_are_refused() {
        assert!(positive("10ms").is_ok());
        for text in ["0", "0ms", "-5ms", "8abc", "NaN", ""] {
            assert!(positive(text).is_err(), "{text}");
        }
        assert_eq!(not_negative("0"), Ok(Duration::ZERO));
        assert!(not_negative("-1ns").is_err());
    }

    #[test]
    fn whole_numbers_are_within_their_range() {
        let parse = whole_number::<u32>(1..=1_000);
        assert_eq!((parse("1"), parse("1000")), (Ok(1), Ok(1_000)));
        for wrong in ["", "-5", "0", "1001", "2.5", "8abc", "99999999999999999999"] {
            let why = parse(wrong).unwrap_err();
            assert_eq!(why, "expected a whole number from 1 to 1000", "{wrong}");
        }
    }

    #[test]
    fn a_list_of_labels_may_hold_hierarchies() {
        let text = "hca3/10/skampi/5,h2hca(jk/3/skampi/2,prop),none";
        let labels: Labels = text.parse().unwrap();
        let printed: Vec<String> = labels.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            printed,
            ["hca3/10/skampi/5", "h2hca(jk/3/skampi/2,prop)", "none"]
        );
        for wrong in [
            "",
            "none,",
            ",none",
            "none,,prop",
            "h2hca(prop,prop",
            "prop),none",
            "hca3/8abc/skampi/3",
        ] {
            let refused = wrong.parse::<Labels>();
            assert!(refused.is_err(), "{wrong}");
        }
        assert!(
            "none,hca9/1"
                .parse::<Labels>()
                .unwrap_err()
                .starts_with("hca9/1: ")
        );
        let refused = |text: &str| text.parse::<Labels>().unwrap_err();
        assert!(refused("").starts_with("there is no algorithm \"\"; the algorithms are "));
        // What is left out of a label is its default.
        let twice = "hca3/1000/skampi/100 is given twice; --repeat runs it several times";
        assert_eq!(refused("hca3,none,hca3/1000/skampi/100"), twice);
    }
}
