//! HTML pages with headings, pictures and tables. All text is escaped here.

pub mod axis;
pub mod bins;
pub mod curves;
pub mod dot_rows;
pub mod frame;
pub mod interval;
mod options;
pub mod rectangles;
pub mod scatter;
pub mod sizes;
pub mod style;
pub mod svg;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use downbeat_files::create_folder;

use crate::table::{RowMark, Table, TableRow};
use crate::units::quantity;
use crate::{Failure, write_text};
pub use options::PageOptions;
use svg::{Canvas, Picture, escape};

/// Script of every page, which makes tables and grids interactive; others run after it and may use its functions.
const SCRIPT: &str = include_str!("page/script.js");

/// An HTML page that is being built.
#[derive(Debug, Default)]
pub struct Page {
    html: String,
    /// Name and content of the file of every picture.
    files: BTreeMap<String, String>,
    pictures: usize,
    /// Further script that the page may run.
    script: Option<&'static str>,
}

impl Page {
    /// Adds a heading that can be a link target.
    pub fn section(&mut self, id: &str, heading: &str) {
        let _ = writeln!(self.html, "<h2 id=\"{id}\">{}</h2>", escape(heading));
    }

    /// Adds a heading of the next level.
    pub fn subsection(&mut self, heading: &str) {
        let _ = writeln!(self.html, "<h3>{}</h3>", escape(heading));
    }

    /// Adds a paragraph of a class.
    pub fn paragraph(&mut self, class: &str, text: &str) {
        let _ = writeln!(self.html, "<p class=\"{class}\">{}</p>", escape(text));
    }

    /// Adds a paragraph of secondary information.
    pub fn note(&mut self, text: &str) {
        self.paragraph("note", text);
    }

    /// Adds paragraphs of secondary information.
    pub fn notes(&mut self, notes: impl IntoIterator<Item = impl AsRef<str>>) {
        for note in notes {
            self.note(note.as_ref());
        }
    }

    /// Adds pictures side by side, as many as fit; `None` is left out. The name of each gives that of its file.
    pub fn pictures<N>(&mut self, pictures: impl IntoIterator<Item = (N, Option<Picture>)>)
    where
        N: AsRef<str>,
    {
        let present: Vec<_> = pictures
            .into_iter()
            .filter_map(|(name, picture)| Some((name, picture?)))
            .collect();
        if present.is_empty() {
            return;
        }
        self.html += "<div class=\"pictures\">\n";
        for (name, picture) in present {
            self.pictures += 1;
            let caption = escape(&picture.title);
            let class = if picture.is_wide() {
                " class=\"wide\""
            } else {
                ""
            };
            let _ = writeln!(
                self.html,
                "<figure{class}><figcaption>{caption}</figcaption>{}</figure>",
                picture.inline(self.pictures)
            );
            let name = self.free_name(name.as_ref());
            self.files.insert(name, picture.file());
        }
        self.html += "</div>\n";
    }

    /// Returns a file name that no other picture has, and that is valid on all systems.
    fn free_name(&self, name: &str) -> String {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        };
        let name: String = name.chars().take(100).map(plain).collect();
        let numbered = (2..).map(|number| format!("{name}-{number}.svg"));
        let mut names = [format!("{name}.svg")].into_iter().chain(numbered);
        names
            .find(|name| !self.files.contains_key(name))
            .unwrap_or_default()
    }

    /// Adds a section that is folded at first.
    pub fn folded(&mut self, summary: &str, fill: impl FnOnce(&mut Self)) {
        let _ = writeln!(self.html, "<details><summary>{}</summary>", escape(summary));
        fill(self);
        self.html += "</details>\n";
    }

    /// Adds a table of numbers, unless it has no rows: all columns except the first are
    /// aligned to the right.
    pub fn table(&mut self, caption: &str, table: &Table) {
        self.add_table("n", caption, table);
    }

    /// Adds a table of texts, unless it has no rows.
    pub fn text_table(&mut self, caption: &str, table: &Table) {
        self.add_table("", caption, table);
    }

    fn add_table(&mut self, class: &str, caption: &str, table: &Table) {
        if table.is_empty() {
            return;
        }
        let caption = escape(caption);
        // Wide tables can be scrolled with the keyboard, too.
        let _ = write!(
            self.html,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table class=\"{class}\">\
             <caption>{caption}</caption><thead><tr>"
        );
        for heading in &table.headings {
            let _ = write!(self.html, "<th scope=\"col\">{}", escape(heading));
        }
        self.html += "<tbody>";
        for row in &table.rows {
            self.add_row(row);
        }
        self.html += "</table></div>\n";
    }

    /// Adds a row. HTML does not need the end tags of cells and rows; there may be many
    /// thousands.
    fn add_row(&mut self, row: &TableRow) {
        let mut cells = row.cells.iter();
        let first = match &row.mark {
            Some(RowMark::Highlight) => "<tr class=\"d\">".to_owned(),
            Some(RowMark::Link(id)) => {
                let name = escape(cells.next().map_or("", String::as_str));
                format!("<tr><td><a href=\"#{id}\">{name}</a>")
            }
            Some(RowMark::Sample(class)) => {
                let name = escape(cells.next().map_or("", String::as_str));
                format!("<tr><td>{}{name}", sample_of(class))
            }
            None => "<tr>".to_owned(),
        };
        self.html += &first;
        for text in cells {
            // A plain number is its own value.
            let value = quantity(text).filter(|_| text.parse::<f64>().is_err());
            let value = value.map(|value| format!(" data-value=\"{value}\""));
            let _ = write!(
                self.html,
                "<td{}>{}",
                value.unwrap_or_default(),
                escape(text)
            );
        }
        self.html.push('\n');
    }

    /// Adds data, in JSON, and the script that makes the page interactive by them.
    pub fn script(&mut self, script: &'static str, id: &str, json: &str) {
        // Text in the data cannot end them.
        let json = json.replace('<', "\\u003c");
        let _ = writeln!(
            self.html,
            "<script type=\"application/json\" id=\"{id}\">{json}</script>"
        );
        self.script = Some(script);
    }

    /// Adds links to the sections, given by their ids and names.
    pub fn links(&mut self, sections: &[(&str, &str)]) {
        self.html += "<nav aria-label=\"Sections\">";
        for (id, name) in sections {
            let _ = write!(self.html, "<a href=\"#{id}\">{}</a> ", escape(name));
        }
        self.html += "</nav>\n";
    }

    /// Writes the page to the file given with an option, or for `-` to standard output; also writes its pictures to an
    /// existing directory if one is given. The caller has added both to its [`Outputs`](crate::Outputs).
    ///
    /// # Errors
    /// When a file cannot be created, with the option that named it; or when it cannot be written.
    pub fn write(
        self,
        title: &str,
        option: &str,
        output: &Path,
        pictures: Option<&Path>,
    ) -> Result<(), Failure> {
        let (html, files) = self.finish(title);
        if let Some(directory) = pictures {
            create_folder(directory).map_err(|why| Failure::option("--svg", why))?;
            for (name, picture) in files {
                write_text("--svg", &directory.join(name), &picture)?;
            }
        }
        write_text(option, output, &html)
    }

    /// Returns the whole page, and the files of its pictures.
    fn finish(self, title: &str) -> (String, BTreeMap<String, String>) {
        let title = escape(title);
        let mut scripts = String::new();
        for script in [SCRIPT].into_iter().chain(self.script) {
            scripts += &format!("<script>{script}</script>");
        }
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\n<style>{}{}</style></head>\n\
             <body><header><h1>{title}</h1></header><main>\n{}</main>{scripts}</body></html>\n",
            style::PICTURE,
            style::PAGE,
            self.html
        );
        (html, self.files)
    }
}

/// Draws a sample of a class, as large as a letter.
fn sample_of(class: &str) -> String {
    let mut drawn = Canvas::default();
    rectangles::sample(&mut drawn, class, (0.0, 0.0), 12.0);
    format!(
        "<svg class=\"key\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">{}</svg>",
        drawn.shapes()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<script>alert(1)</script>\"'&";

    #[test]
    fn all_text_is_escaped() {
        let mut page = Page::default();
        page.section("a", HOSTILE);
        page.subsection(HOSTILE);
        page.note(HOSTILE);
        page.links(&[("a", HOSTILE)]);
        let picture = Picture::new(HOSTILE.into(), HOSTILE.into(), 10.0, Canvas::default());
        page.pictures([
            (HOSTILE.to_owned(), Some(picture)),
            ("none".to_owned(), None),
        ]);
        let mut table = Table::new([HOSTILE]);
        let hostile = || HOSTILE.to_owned();
        table.row([hostile()]);
        table.marked_row(RowMark::Highlight, [hostile()]);
        table.marked_row(RowMark::Link("a".to_owned()), [hostile(), hostile()]);
        table.marked_row(RowMark::Sample("m c0".to_owned()), [hostile(), hostile()]);
        page.folded(HOSTILE, |page| page.text_table(HOSTILE, &table));
        let (html, files) = page.finish(HOSTILE);
        assert!(
            html.matches("<script").count() == 1 && !html.contains("alert(1)<"),
            "{html}"
        );
        assert_eq!(html.matches("&lt;script&gt;").count(), 19);
        assert_eq!(
            files.keys().collect::<Vec<_>>(),
            ["-script-alert-1---script----.svg"]
        );
    }

    #[test]
    fn scripts_and_their_data_are_the_only_elements_of_their_kind() {
        let mut page = Page::default();
        page.note(HOSTILE);
        page.script("abc", "data", "[\"</script>\"]");
        let (html, _) = page.finish("t");
        assert!(html.contains("<script>abc</script>"), "{html}");
        assert!(
            html.contains("id=\"data\">[\"\\u003c/script>\"]</script>"),
            "{html}"
        );
        assert_eq!(html.matches("<script").count(), 3);
    }

    #[test]
    fn cells_are_sorted_by_their_values() {
        let mut table = Table::new(["a", "b", "c", "d"]);
        table.row(["1.5 us", "1,234", "7", "\u{2013}"].map(str::to_owned));
        let mut page = Page::default();
        page.table("t", &table);
        let row = "<td data-value=\"1500\">1.5 us<td data-value=\"1234\">1,234<td>7<td>\u{2013}\n";
        let html = page.finish("t").0;
        assert!(html.contains(row), "{html}");
    }

    #[test]
    fn files_have_distinct_names() {
        let mut page = Page::default();
        let picture = || {
            Some(Picture::new(
                "t".into(),
                "d".into(),
                10.0,
                Canvas::default(),
            ))
        };
        page.pictures([
            ("a/b".to_owned(), picture()),
            ("A.b".to_owned(), picture()),
            ("../b".to_owned(), picture()),
        ]);
        let (html, files) = page.finish("t");
        assert_eq!(
            files.keys().collect::<Vec<_>>(),
            ["---b.svg", "a-b-2.svg", "a-b.svg"]
        );
        assert!(html.contains("id=\"t3\"") && html.contains("aria-labelledby=\"t3 d3\""));
    }

    #[test]
    fn a_table_without_rows_is_left_out() {
        let mut page = Page::default();
        page.table("none", &Table::new(["a"]));
        assert!(!page.finish("t").0.contains("<table"));
    }
}
