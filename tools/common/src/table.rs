//! Tables of text: in columns that fit a width, and as Markdown, LaTeX or CSV.

mod columns;

use std::fmt;
use std::iter;
use std::mem;

use anstyle::Style;

use crate::units::ungrouped;
pub use columns::TableColumns;

/// Blanks between two columns.
const GAP: usize = 2;

/// Form of printed tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TableForm {
    /// Columns for a terminal, within its width
    #[default]
    Text,
    /// Tables of Markdown
    Markdown,
    /// The environment `tabular`, with other text as comments
    Latex,
    /// Comma-separated values, with other text as lines that begin with #
    Csv,
}

/// Table of text, laid out in columns.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<TableRow>,
    keys: usize,
}

/// Row of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableRow {
    pub(crate) cells: Vec<String>,
    pub(crate) mark: Option<RowMark>,
}

/// How a page shows a row; text shows all rows alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowMark {
    /// The row is highlighted.
    Highlight,
    /// The first cell links to the section with this id.
    Link(String),
    /// A sample of this drawn class stands before the first cell.
    Sample(String),
}

impl Table {
    /// Creates a table with these headings, whose first column names its rows.
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            headings: headings.into_iter().map(str::to_owned).collect(),
            rows: vec![],
            keys: 1,
        }
    }

    /// Creates a table with a row for each item; its columns are to be added.
    pub fn of<R>(items: impl IntoIterator<Item = R>) -> TableColumns<R> {
        TableColumns::new(items)
    }

    /// Sets the number of columns at the beginning that together name a row. They are repeated where the others do not fit
    /// beside each other.
    pub fn named_by(mut self, columns: usize) -> Self {
        self.keys = columns;
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(TableRow {
            cells: cells.into(),
            mark: None,
        });
    }

    /// Adds a row that pages mark.
    pub fn marked_row(&mut self, mark: RowMark, cells: impl Into<Vec<String>>) {
        self.rows.push(TableRow {
            cells: cells.into(),
            mark: Some(mark),
        });
    }

    /// Returns true if the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table in this form; as text in at most `width` characters a line, if only single words are not longer,
    /// with headings in this style.
    pub(crate) fn render(&self, form: TableForm, width: Option<usize>, headings: Style) -> String {
        match form {
            TableForm::Text => self.text(width.unwrap_or(usize::MAX), headings),
            TableForm::Markdown => self.markdown(),
            TableForm::Latex => self.latex(),
            TableForm::Csv => self.csv(),
        }
    }

    /// Returns the columns that hold anything.
    fn columns(&self) -> Vec<Column<'_>> {
        let count = self.lines().map(Vec::len).max().unwrap_or(0);
        let column = |index| Column::new(self.lines().map(|row| cell(row, index)).collect());
        let columns = (0..count).map(column);
        columns.filter(|column| column.widest > 0).collect()
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        iter::once(&self.headings).chain(self.rows.iter().map(|row| &row.cells))
    }

    fn text(&self, width: usize, headings: Style) -> String {
        let columns = self.columns();
        let all: Vec<&Column<'_>> = columns.iter().collect();
        let widths: Vec<usize> = all.iter().map(|column| column.widest).collect();
        if total(&widths) <= width {
            return laid_out(&all, &widths, headings);
        }
        let (keys, others) = all.split_at(self.keys.min(all.len()));
        let narrowest = |columns: &[&Column<'_>]| -> Vec<usize> {
            columns.iter().map(|column| column.narrowest).collect()
        };
        let room = width.saturating_sub(total(&narrowest(keys)) + GAP);
        if others.is_empty() || others.iter().any(|column| column.narrowest > room) {
            return stacked(&columns, width, headings);
        }
        let mut parts: Vec<Vec<&Column<'_>>> = vec![];
        for column in others {
            let fits =
                |part: &Vec<&Column<'_>>| total(&narrowest(part)) + GAP + column.narrowest <= width;
            match parts.last_mut().filter(|part| fits(part)) {
                Some(part) => part.push(column),
                None => parts.push(keys.iter().chain([column]).copied().collect()),
            }
        }
        let parts = parts
            .iter()
            .map(|part| laid_out(part, &fitted(part, width), headings));
        parts.collect::<Vec<_>>().join("\n")
    }

    fn markdown(&self) -> String {
        let columns = self.columns();
        let rule = columns.iter().map(|column| match column.is_number {
            true => "---:".to_owned(),
            false => "---".to_owned(),
        });
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let escaped = |index: usize| {
            let cells = columns
                .iter()
                .map(|column| column.cells[index].replace('|', "\\|"));
            line(cells.collect())
        };
        let rows = (1..=self.rows.len()).map(escaped);
        escaped(0) + &line(rule.collect()) + &rows.collect::<String>()
    }

    fn latex(&self) -> String {
        let columns = self.columns();
        let side = |column: &Column<'_>| if column.is_number { 'r' } else { 'l' };
        let sides: String = columns.iter().map(side).collect();
        let line = |index: usize| {
            let cells = columns
                .iter()
                .map(|column| latex_escaped(column.cells[index]));
            format!("{} \\\\\n", cells.collect::<Vec<_>>().join(" & "))
        };
        let rows: String = (1..=self.rows.len()).map(line).collect();
        format!(
            "\\begin{{tabular}}{{{sides}}}\n\\hline\n{}\\hline\n{rows}\\hline\n\\end{{tabular}}\n",
            line(0)
        )
    }

    fn csv(&self) -> String {
        let columns = self.columns();
        let line = |index: usize| {
            let cells = columns
                .iter()
                .map(|column| csv_quoted(&ungrouped(column.cells[index])));
            cells.collect::<Vec<_>>().join(",") + "\n"
        };
        (0..=self.rows.len()).map(line).collect()
    }
}

/// As text of any width.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(TableForm::Text, None, Style::new()))
    }
}

fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

/// Column with its heading, and the widths that it can have.
struct Column<'a> {
    cells: Vec<&'a str>,
    /// Holds a number in the first row of data that is not blank: is aligned to the right, and its cells stay whole.
    is_number: bool,
    narrowest: usize,
    widest: usize,
}

impl<'a> Column<'a> {
    /// A column of text does not become narrower than this, if it has more.
    const READABLE: usize = 16;

    fn new(cells: Vec<&'a str>) -> Self {
        let first = cells.iter().skip(1).find(|cell| !cell.is_empty());
        let is_number = first.is_some_and(|cell| {
            cell.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'))
        });
        let longest = |part: fn(&str) -> usize| cells.iter().map(|cell| part(cell)).max();
        let widest = longest(length).unwrap_or(0);
        let word = longest(longest_word).unwrap_or(0);
        let narrowest = if is_number {
            let heading = cells.first().map_or(0, |heading| longest_word(heading));
            cells
                .iter()
                .skip(1)
                .map(|cell| length(cell))
                .fold(heading, usize::max)
        } else {
            word.max(widest.min(Self::READABLE))
        };
        Self {
            cells,
            is_number,
            narrowest,
            widest,
        }
    }
}

pub(crate) fn length(text: &str) -> usize {
    text.chars().count()
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(length).max().unwrap_or(0)
}

/// Returns the width of columns beside each other.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Gives the room that the narrowest columns leave to those that lack most.
fn fitted(columns: &[&Column<'_>], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.narrowest).collect();
    let mut room = width.saturating_sub(total(&widths));
    while room > 0 {
        let lacking = |index: &usize| columns[*index].widest - widths[*index];
        let Some(most) = (0..columns.len())
            .rev()
            .max_by_key(lacking)
            .filter(|index| lacking(index) > 0)
        else {
            break;
        };
        widths[most] += 1;
        room -= 1;
    }
    widths
}

/// Writes columns of these widths beside each other; longer cells continue in the lines below.
fn laid_out(columns: &[&Column<'_>], widths: &[usize], headings: Style) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut text = String::new();
    for row in 0..rows {
        let cells: Vec<Vec<String>> = columns
            .iter()
            .zip(widths)
            .map(|(column, width)| wrapped(column.cells[row], *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for part in 0..height {
            let mut line = String::new();
            for ((column, width), cell) in columns.iter().zip(widths).zip(&cells) {
                // Headings stand on the line above the data.
                let part = if row == 0 {
                    (part + cell.len()).checked_sub(height)
                } else {
                    Some(part)
                };
                let shown = part
                    .and_then(|part| cell.get(part))
                    .map_or("", String::as_str);
                line += &match column.is_number {
                    true => format!("{shown:>width$}"),
                    false => format!("{shown:<width$}"),
                };
                line += "  ";
            }
            let style = if row == 0 { headings } else { Style::new() };
            text += &format!("{style}{}{style:#}\n", line.trim_end());
        }
    }
    text
}

/// Writes each row as lines of a heading and its value.
fn stacked(columns: &[Column<'_>], width: usize, style: Style) -> String {
    let headings = || columns.iter().map(|column| column.cells[0]);
    let widest = headings().map(length).max().unwrap_or(0);
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut text = String::new();
    for row in 1..rows {
        if row > 1 {
            text.push('\n');
        }
        for column in columns
            .iter()
            .filter(|column| !column.cells[row].is_empty())
        {
            let (heading, value) = (column.cells[0], column.cells[row]);
            let fits = widest + GAP + longest_word(value) <= width;
            // A long value stands below its heading.
            let (indent, first) = match fits {
                true => (
                    widest + GAP,
                    format!("{style}{heading:<widest$}{style:#}  "),
                ),
                false => (GAP, format!("{style}{heading}{style:#}\n  ")),
            };
            let lines = wrapped(value, width.saturating_sub(indent));
            let joined = lines.join(&format!("\n{:indent$}", ""));
            text += (first + &joined).trim_end();
            text.push('\n');
        }
    }
    text
}

/// Breaks a text at blanks into lines of at most this width, except for longer words.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    broken(text, width, width)
}

/// Breaks a text at blanks into lines of at most these widths, except for longer words: that of the first and that of the others.
pub(crate) fn broken(text: &str, first: usize, others: usize) -> Vec<String> {
    if length(text) <= first {
        return vec![text.to_owned()];
    }
    let mut lines = vec![];
    let mut last = String::new();
    for word in text.split(' ') {
        let width = if lines.is_empty() { first } else { others };
        if last.is_empty() {
            word.clone_into(&mut last);
        } else if length(&last) + 1 + length(word) <= width {
            last += " ";
            last += word;
        } else {
            lines.push(mem::replace(&mut last, word.to_owned()));
        }
    }
    lines.push(last);
    lines
}

fn latex_escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '<' => escaped += "\\textless{}",
            '>' => escaped += "\\textgreater{}",
            _ => escaped.push(c),
        }
    }
    escaped
}

fn csv_quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Style = Style::new();

    fn example() -> Table {
        let mut table = Table::new(["name", "ns", "note"]);
        table.row(["a".into(), "9.5".into(), String::new()]);
        table.row(["long one".into(), "120.0".into(), "x|y, 5 %".into()]);
        table
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_lines_are_trimmed() {
        assert_eq!(
            example().render(TableForm::Text, None, PLAIN),
            "name         ns  note\na           9.5\nlong one  120.0  x|y, 5 %\n"
        );
    }

    #[test]
    fn columns_that_do_not_fit_follow_below_beside_the_name() {
        let mut table =
            Table::new(["operation", "bytes", "median", "mean of all", "remark"]).named_by(2);
        table.row(
            [
                "bcast",
                "8",
                "190.0 ns",
                "198.2 ns",
                "a longer remark in words",
            ]
            .map(str::to_owned),
        );
        assert_eq!(
            table.render(TableForm::Text, Some(40), PLAIN),
            "operation  bytes    median  mean of all\n\
             bcast          8  190.0 ns     198.2 ns\n\
             \n\
             operation  bytes  remark\n\
             bcast          8  a longer remark in\n                  words\n"
        );
        assert_eq!(
            table.render(TableForm::Text, Some(24), PLAIN),
            "operation    bcast\nbytes        8\nmedian       190.0 ns\nmean of all  198.2 ns\n\
             remark       a longer\n             remark in\n             words\n"
        );
    }

    #[test]
    fn other_forms_escape_what_means_something_there() {
        assert_eq!(
            example().render(TableForm::Markdown, None, PLAIN),
            "| name | ns | note |\n| --- | ---: | --- |\n| a | 9.5 |  |\n| long one | 120.0 | x\\|y, 5 % |\n"
        );
        assert_eq!(
            example().render(TableForm::Latex, None, PLAIN),
            "\\begin{tabular}{lrl}\n\\hline\nname & ns & note \\\\\n\\hline\na & 9.5 &  \\\\\n\
             long one & 120.0 & x|y, 5 \\% \\\\\n\\hline\n\\end{tabular}\n"
        );
        assert_eq!(
            example().render(TableForm::Csv, None, PLAIN),
            "name,ns,note\na,9.5,\nlong one,120.0,\"x|y, 5 %\"\n"
        );
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_every_word_stays_whole(
            rows in prop::collection::vec(prop::collection::vec("[a-z0-9]{1,9}( [a-z0-9]{1,9}){0,4}", 5), 1..5),
            width in 24_usize..120,
            keys in 1_usize..4,
        ) {
            let mut table = Table::new(["name", "some bytes", "median", "q1", "a long heading"]).named_by(keys);
            for row in &rows {
                table.row(row.clone());
            }
            let text = table.render(TableForm::Text, Some(width), PLAIN);
            for line in text.lines() {
                prop_assert!(length(line) <= width, "{line:?} in\n{text}");
            }
            let shown: Vec<&str> = text.split_whitespace().collect();
            for word in rows.iter().flatten().flat_map(|cell| cell.split(' ')) {
                prop_assert!(shown.contains(&word), "{word} in\n{text}");
            }
        }
    }
}
