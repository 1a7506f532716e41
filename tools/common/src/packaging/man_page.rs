//! Man pages, one per command, with the text of `--help`.

use std::io;

use clap::builder::{PossibleValue, Resettable};
use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// Section of the manual for programs.
pub(super) const SECTION: &str = "1";

/// Empty argument of a request; without quotes it would be dropped, and the next one would take its place.
const EMPTY: &str = "\"\"";
const FIRST_HEADING: &str = ".SH NAME\n";
/// Requests for lines without hyphens and stretched spaces, which readers would take for parts of options and labels.
const AS_WRITTEN: &str = ".nh\n.ad l\n";

pub(super) struct ManPage {
    /// Name of its file.
    pub(super) file: String,
    pub(super) text: String,
}

/// Returns the pages of a program and of all its commands that are not hidden.
pub(super) fn of_program(program: Command) -> io::Result<Vec<ManPage>> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut pages = vec![];
    add(&program, None, &mut pages)?;
    Ok(pages)
}

/// Adds the page of a command and those of its commands.
fn add(command: &Command, parent: Option<&str>, pages: &mut Vec<ManPage>) -> io::Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    pages.push(ManPage {
        file: format!("{name}.{SECTION}"),
        text: page(command, name, parent)?,
    });
    command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
        .try_for_each(|inner| add(inner, Some(name), pages))
}

fn page(command: &Command, name: &str, parent: Option<&str>) -> io::Result<String> {
    let mut command = command.clone();
    let about = command.get_long_about().or(command.get_about()).cloned();
    let after = command.get_after_help().map(ToString::to_string);
    let (notes, examples) = split_at_examples(after.as_deref().unwrap_or_default());
    let description = format!("{}.\n\n{notes}", about.unwrap_or_default());
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let command = command
        .version(Resettable::Reset)
        .after_help(Resettable::Reset)
        .long_about(description.trim_end().to_owned())
        .subcommand_help_heading("COMMANDS")
        .override_usage(usage)
        .mut_args(with_possible_values);

    let mut page = vec![];
    Man::new(command)
        .title(name.to_uppercase())
        .date(EMPTY)
        .source(concat!("Downbeat ", env!("CARGO_PKG_VERSION")))
        .manual(EMPTY)
        .render(&mut page)?;
    let page = String::from_utf8(page).map_err(io::Error::other)?;
    let mut page = page.replacen(FIRST_HEADING, &format!("{AS_WRITTEN}{FIRST_HEADING}"), 1);

    let mut rest = Roff::new();
    if !examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
        set_examples(examples, &mut rest);
    }
    if let Some(parent) = parent {
        rest.control("SH", ["SEE ALSO"]);
        rest.text([bold(parent), roman(format!("({SECTION})"))]);
    }
    page += &rest.to_roff().replace('\'', r"\(aq");
    Ok(as_typed(&page))
}

/// Adds the possible values to the help of an argument, as `--help` does. A list would take a line and a gap for each.
fn with_possible_values(argument: Arg) -> Arg {
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let shown: Vec<String> = shown.map(with_meaning).collect();
    if shown.is_empty() || argument.is_hide_possible_values_set() {
        return argument;
    }
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.cloned().unwrap_or_default();
    let shown = shown.join(", ");
    argument
        .long_help(format!("{help} [possible values: {shown}]"))
        .hide_possible_values(true)
}

fn with_meaning(value: &PossibleValue) -> String {
    let name = value.get_name();
    match value.get_help() {
        Some(help) => format!("{name} ({help})"),
        None => name.to_owned(),
    }
}

/// Splits the text at the end of the help into that before its examples, and these.
fn split_at_examples(after: &str) -> (&str, &str) {
    let heading = ["Examples:\n", "Example:\n"]
        .into_iter()
        .find_map(|heading| after.split_once(heading));
    heading.unwrap_or((after, ""))
}

/// Sets text; indented lines are code, each of which stays a line.
fn set_examples(text: &str, page: &mut Roff) {
    let mut in_code = false;
    for line in text.lines() {
        let is_code = line.starts_with(' ');
        if is_code != in_code {
            page.control(if is_code { "nf" } else { "fi" }, []);
            in_code = is_code;
        }
        if line.is_empty() {
            page.control("PP", []);
        } else {
            page.text([roman(line)]);
        }
    }
    if in_code {
        page.control("fi", []);
    }
}

/// Escapes the characters that typesetters replace by others, which no shell understands.
fn as_typed(page: &str) -> String {
    page.replace('`', r"\(ga")
        .replace('^', r"\(ha")
        .replace('~', r"\(ti")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<ManPage> {
        let inner = Command::new("count")
            .about("Count beats")
            .after_help(
                "Beats of `rock`.\n\nExample:\n  p count \\\n    '2^4'\n\nQuietly:\n  p count ~",
            )
            .arg(
                Arg::new("of")
                    .long("of")
                    .help("Rhythm")
                    .value_parser(["waltz", "rock"]),
            );
        let hidden = Command::new("hidden").hide(true);
        of_program(Command::new("p").version("7").subcommands([inner, hidden])).unwrap()
    }

    #[test]
    fn each_line_of_an_example_stays_a_line() {
        let expected = ".SH EXAMPLES\n.nf\n  p count \\\\\n    \\(aq2\\(ha4\\(aq\n.fi\n.PP\nQuietly:\n.nf\n  p count \\(ti\n.fi\n\
                        .SH \"SEE ALSO\"\n\\fBp\\fR(1)\n";
        let page = &pages()[1];
        assert!(page.text.ends_with(expected), "{}", page.text);
    }

    #[test]
    fn a_page_has_the_text_of_the_help() {
        let pages = pages();
        let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        assert_eq!(files, ["p.1", "p-count.1"]);
        assert!(
            pages[0]
                .text
                .contains(".SH COMMANDS\n.TP\np\\-count(1)\nCount beats\n")
        );
        for part in [
            ".SH NAME\np\\-count \\- Count beats\n",
            ".SH SYNOPSIS\n\\fBp count\\fR [OPTIONS]\n",
            "Count beats.\n.PP\nBeats of \\(garock\\(ga.\n.SH OPTIONS\n",
            "\nRhythm [possible values: waltz, rock]\n",
        ] {
            assert!(pages[1].text.contains(part), "{part} in {}", pages[1].text);
        }
    }
}
