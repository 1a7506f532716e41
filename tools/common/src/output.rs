//! Output to standard output, and numbers as text.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::Failure;
use crate::units::{self, TimeUnit};

/// Colour of the name before a failure, for a terminal, unless NO_COLOR is set.
const FAILURE: Style = AnsiColor::Red.on_default().bold();
/// The signal that ends programs of C in this case.
const SIGPIPE: u8 = 13;

/// Writes a text to standard output.
///
/// # Errors
/// If it cannot be written, as the disk is full; or silently, if its reader has gone, as `head` does.
pub fn print(text: &str) -> Result<(), Failure> {
    write(io::stdout().lock(), text)
}

/// Writes a text with styles to standard output, without them where they are not wanted.
pub(crate) fn print_styled(text: &str) -> Result<(), Failure> {
    write(anstream::stdout().lock(), text)
}

fn write(mut out: impl io::Write, text: &str) -> Result<(), Failure> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|why| match why.kind() {
        io::ErrorKind::BrokenPipe => Failure::Signal(SIGPIPE, String::new()),
        _ => Failure::Run(format!("cannot write to standard output: {why}")),
    })
}

/// Leaves out styles, unless CLICOLOR_FORCE wants them: some launchers give ranks a terminal, and write what it shows to a file.
pub fn without_styles() {
    if std::env::var_os("CLICOLOR_FORCE").is_none_or(|value| value == "0") {
        ColorChoice::Never.write_global();
    }
}

/// Reports the failure with which the program ends, in one line that begins with its name; returns the exit code.
pub fn report_failure(failure: Failure, program: &str) -> ExitCode {
    match failure {
        Failure::Help(text) => match write(anstream::stdout().lock(), &text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => report_failure(failure, program),
        },
        Failure::Input(ref line) | Failure::Run(ref line) | Failure::Signal(_, ref line) => {
            if !line.is_empty() {
                let style = match AutoStream::choice(&io::stderr()) {
                    ColorChoice::Never => Style::new(),
                    _ => FAILURE,
                };
                let line = format!("{style}{program}:{style:#} {}\n", in_one_line(line));
                // At once, as other ranks may fail, too. There may be no place to write to: the exit code remains.
                let _ = io::stderr().write_all(line.as_bytes());
            }
            failure.exit_code()
        }
    }
}

/// Escapes control characters, which names of files and other foreign text may contain.
fn in_one_line(text: &str) -> String {
    replace_chars(text, |c| {
        c.is_control().then(|| c.escape_default().to_string())
    })
}

/// Replaces the characters for which a function returns a text, and keeps all others.
fn replace_chars(text: &str, replacement: impl Fn(char) -> Option<String>) -> String {
    let mut replaced = String::with_capacity(text.len());
    for c in text.chars() {
        match replacement(c) {
            Some(escape) => replaced.push_str(&escape),
            None => replaced.push(c),
        }
    }
    replaced
}

/// Warns in one line on standard error.
pub fn warn(text: &str) {
    // The exit code remains if there is no place to write to.
    let _ = writeln!(io::stderr(), "{}", in_one_line(text));
}

/// Writes a document as indented JSON.
///
/// # Errors
/// As [`print()`].
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    // JSON may contain control characters above U+007E, which a terminal obeys.
    let escaped = replace_chars(&text, |c| {
        (c.is_control() && c != '\n').then(|| format!("\\u{:04x}", u32::from(c)))
    });
    print(&(escaped + "\n"))
}

/// Formats a name as the beginning of a line.
pub fn capitalized(name: &impl std::fmt::Display) -> String {
    let name = name.to_string();
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Writes a number of things: `1 rank`, `2 ranks`, `1,024 ranks`.
pub fn count(number: usize, noun: &str) -> String {
    units::counted(number, noun, &format!("{noun}s"))
}

/// Writes a time in the best readable unit; nanoseconds with a fraction, which averages have: `381.2 ns`, `4.200 us`.
pub fn time(nanos: f64) -> String {
    let unit = PrintUnit::for_nanos(nanos);
    format!("{} {}", unit.number(nanos), unit.unit.name)
}

/// Writes a time and the ends of its interval in one unit: `381.2 [379.9, 383.0] ns`.
pub fn time_within(nanos: f64, [low, high]: [f64; 2]) -> String {
    let unit = PrintUnit::for_nanos(nanos);
    format!(
        "{} [{}, {}] {}",
        unit.number(nanos),
        unit.number(low),
        unit.number(high),
        unit.unit.name
    )
}

/// Unit of a printed time, with the same number of digits after the point for all times, so that columns align.
struct PrintUnit {
    unit: TimeUnit,
    digits: usize,
}

impl PrintUnit {
    fn for_nanos(nanos: f64) -> Self {
        // A value that would be rounded up to 1000.0 is a microsecond.
        let rounded = nanos.abs()
            + if nanos.abs() < 1e3 {
                0.05
            } else {
                nanos.abs() * 5e-7
            };
        let unit = TimeUnit::for_nanos(rounded);
        Self {
            unit,
            digits: if unit.nanos > 1.0 { 3 } else { 1 },
        }
    }

    fn number(&self, nanos: f64) -> String {
        let number = units::without_negative_zero(nanos / self.unit.nanos, self.digits);
        units::grouped(&format!("{number:.*}", self.digits))
    }
}

/// Writes a share as a percentage, small ones with more digits: `3.2 %`. A positive one
/// does not look like 0: `1.3e-7 %`.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = match percent.abs() {
        tiny if tiny > 0.0 && tiny < 5e-3 => return format!("{percent:.1e} %"),
        large if large >= 99.95 => 0,
        large if large >= 0.995 => 1,
        0.0 => 0,
        _ => 2,
    };
    format!("{percent:.digits$} %")
}

/// Writes a probability: `0.0412`, or `2.1e-9` instead of zeros.
pub fn probability(p: f64) -> String {
    if p == 0.0 || p >= 0.000_95 {
        format!("{p:.4}")
    } else {
        format!("{p:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_share_is_not_shown_as_none() {
        let shown = [0.0, 1.26e-9, 4.9e-5, 5e-5, 0.5].map(percent);
        assert_eq!(shown, ["0 %", "1.3e-7 %", "4.9e-3 %", "0.01 %", "50.0 %"]);
    }

    #[test]
    fn times_have_the_best_readable_unit() {
        let shown = [
            0.0, -0.01, 381.25, -12.0, 999.94, 999.96, 4_200.0, 999_999.6, -1.5e6, 2.5e9, 1e15,
        ]
        .map(time);
        let expected = [
            "0.0 ns", "0.0 ns", "381.2 ns", "-12.0 ns", "999.9 ns", "1.000 us", "4.200 us",
            "1.000 ms",
        ];
        assert_eq!(shown[..8], expected);
        assert_eq!(shown[8..], ["-1.500 ms", "2.500 s", "1,000,000.000 s"]);
        assert_eq!(
            time_within(1_250.0, [990.0, 12_000.0]),
            "1.250 [0.990, 12.000] us"
        );
    }

    #[test]
    fn shares_and_probabilities_keep_the_digits_that_matter() {
        let shown = [0.0, 0.000_4, 0.012_34, -0.5, 1.0, 3.0].map(percent);
        assert_eq!(
            shown,
            ["0 %", "0.04 %", "1.2 %", "-50.0 %", "100 %", "300 %"]
        );
        assert_eq!(
            [1.0, 0.05, 0.001, 2.13e-9, 0.0].map(probability),
            ["1.0000", "0.0500", "0.0010", "2.1e-9", "0.0000"]
        );
    }
}
