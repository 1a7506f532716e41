//! Text that a command prints: prose and tables, in the form and the width that its reader has.

use std::env;
use std::fmt;
use std::io::{self, IsTerminal as _};
use std::ops::AddAssign;

use anstyle::Style;
use clap::Args;
use serde::Serialize;

use crate::Failure;
use crate::output::{print_json, print_styled};
use crate::table::{Table, TableForm, broken};

/// Style of the headings of tables on a terminal, by the rules of NO_COLOR and CLICOLOR_FORCE.
const HEADINGS: Style = Style::new().bold();

/// Form in which a command prints its results.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Form of the printed tables
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        default_value_t,
        conflicts_with = "json"
    )]
    format: TableForm,
}

impl PrintOptions {
    /// Prints the results as one JSON document or as text.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn print<D: Serialize>(
        self,
        document: impl FnOnce() -> D,
        text: impl FnOnce() -> Text,
    ) -> Result<(), Failure> {
        if self.json {
            return print_json(&document());
        }
        text().print_as(self.format)
    }
}

/// Prose and tables in their order.
#[derive(Clone, Debug, Default)]
pub struct Text {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Prose(String),
    Table(Table),
}

impl Text {
    /// Prints the text, with tables as columns that fit the width of the terminal.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn print(&self) -> Result<(), Failure> {
        self.print_as(TableForm::Text)
    }

    fn print_as(&self, form: TableForm) -> Result<(), Failure> {
        print_styled(&self.styled(form, width(), HEADINGS))
    }

    /// Returns the text with its tables in this form, in lines of at most this width.
    pub fn render(&self, form: TableForm, width: Option<usize>) -> String {
        self.styled(form, width, Style::new())
    }

    fn styled(&self, form: TableForm, width: Option<usize>, headings: Style) -> String {
        let part = |part: &Part| match part {
            Part::Table(table) => table.render(form, width, headings),
            Part::Prose(text) => prose(text, form, width),
        };
        self.parts.iter().map(part).collect()
    }
}

fn prose(text: &str, form: TableForm, width: Option<usize>) -> String {
    let comment = match form {
        TableForm::Text => return filled(text, width.unwrap_or(usize::MAX)),
        TableForm::Markdown => return text.to_owned(),
        TableForm::Latex => "% ",
        TableForm::Csv => "# ",
    };
    let commented = |line: &str| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("{comment}{line}\n"),
    };
    text.lines().map(commented).collect()
}

/// Breaks lines that are too long at blanks. What continues a line begins two columns further to the right.
fn filled(text: &str, width: usize) -> String {
    let line = |line: &str| {
        let words = line.trim_start_matches(' ');
        let indent = line.len() - words.len();
        let room = width.saturating_sub(indent);
        let lines = broken(words, room, room.saturating_sub(2));
        format!(
            "{:indent$}{}",
            "",
            lines.join(&format!("\n{:1$}", "", indent + 2))
        )
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the number of characters that a line may have: those of the terminal, or else of the variable `COLUMNS`, which
/// shells set and do not pass on unless it is exported; none if the output goes elsewhere.
pub fn width() -> Option<usize> {
    if io::stdout().is_terminal()
        && let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size()
    {
        return Some(columns.into());
    }
    let columns = env::var("COLUMNS").ok()?.parse().ok();
    columns.filter(|columns| *columns > 0)
}

impl AddAssign<&str> for Text {
    fn add_assign(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Prose(prose)) => prose.push_str(text),
            _ => self.parts.push(Part::Prose(text.to_owned())),
        }
    }
}

impl AddAssign<String> for Text {
    fn add_assign(&mut self, text: String) {
        *self += &*text;
    }
}

impl AddAssign<Table> for Text {
    fn add_assign(&mut self, table: Table) {
        self.parts.push(Part::Table(table));
    }
}

impl AddAssign<Text> for Text {
    fn add_assign(&mut self, text: Text) {
        for part in text.parts {
            match part {
                Part::Prose(prose) => *self += &*prose,
                Part::Table(table) => *self += table,
            }
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self {
            parts: vec![Part::Prose(text)],
        }
    }
}

impl From<Table> for Text {
    fn from(table: Table) -> Self {
        Self {
            parts: vec![Part::Table(table)],
        }
    }
}

/// As it is where there is no terminal.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(TableForm::Text, None))
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        *self += text;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Text {
        let mut table = Table::new(["a", "b"]);
        table.row(["x".to_owned(), "1".to_owned()]);
        let mut text = Text::from("Two results, with a remark:\n\n".to_owned());
        text += table;
        text += "\n  Note: an indented line that is long\n";
        text
    }

    #[test]
    fn long_lines_are_broken_at_blanks() {
        assert_eq!(
            example().render(TableForm::Text, Some(20)),
            "Two results, with a\n  remark:\n\na  b\nx  1\n\n  Note: an indented\n    line that is\n    long\n"
        );
        let wide =
            "Two results, with a remark:\n\na  b\nx  1\n\n  Note: an indented line that is long\n";
        assert_eq!(example().to_string(), wide);
        assert_eq!(example().render(TableForm::Text, Some(40)), wide);
    }

    #[test]
    fn headings_are_bold_and_as_wide() {
        let styled = |width| example().styled(TableForm::Text, Some(width), HEADINGS);
        assert!(styled(40).contains("\n\u{1b}[1ma  b\u{1b}[0m\nx  1\n"));
        // Too narrow for columns beside each other.
        assert!(
            styled(3).contains("\n\u{1b}[1ma\u{1b}[0m\n  x\n"),
            "{}",
            styled(3)
        );
        for width in [3, 10, 40] {
            let plain = styled(width)
                .replace("\u{1b}[1m", "")
                .replace("\u{1b}[0m", "");
            assert_eq!(plain, example().render(TableForm::Text, Some(width)));
        }
        let csv = example().styled(TableForm::Csv, None, HEADINGS);
        assert!(!csv.contains('\u{1b}'), "{csv}");
    }

    #[test]
    fn prose_is_a_comment_where_only_tables_can_be() {
        assert_eq!(
            example().render(TableForm::Csv, Some(20)),
            "# Two results, with a remark:\n\na,b\nx,1\n\n#   Note: an indented line that is long\n"
        );
        assert!(
            example()
                .render(TableForm::Latex, None)
                .starts_with("% Two results")
        );
        assert!(
            example()
                .render(TableForm::Markdown, None)
                .contains("remark:\n\n| a | b |\n")
        );
    }
}
