//! Pictures as scalable vector graphics: a few shapes, and escaped text.

use std::fmt::Write as _;

use super::style;

/// Width of every picture in its own units; on a phone one unit is about three quarters of a pixel.
pub const WIDTH: f64 = 480.0;

/// Height of a line of text.
pub const LINE: f64 = 18.0;

/// Escapes a text for HTML and XML.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(visible(c)),
        }
    }
    safe
}

/// Replaces a character that no text may have: XML cannot contain control characters, which a
/// terminal obeys; marks of direction would reverse the text behind them.
pub fn visible(c: char) -> char {
    match c {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}'..='\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// Estimates the width of a text; the font of the reader is unknown.
pub fn text_width(text: &str) -> f64 {
    text.chars().map(letter_width).sum()
}

/// Estimates the width of a letter. Capitals and letters of East Asia are wider than
/// others in every font, so that a text of them alone would not fit.
const fn letter_width(letter: char) -> f64 {
    match letter {
        'M' | 'W' | '@' => 12.5,
        'A'..='Z' => 9.4,
        // Hangul, CJK, full-width forms and pictographs.
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{3fffd}' => 14.0,
        _ => 7.2,
    }
}

/// Returns the text, cut to the width if it is too long.
pub fn fitting(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut left = width - letter_width('…');
    let fits = |letter: &char| {
        left -= letter_width(*letter);
        left >= 0.0
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Breaks the text into lines that fit, at spaces; within words only if these do not fit.
pub fn wrapped(text: &str, width: f64) -> Vec<String> {
    let max = ((width / text_width("x")) as usize).max(1);
    let letters: Vec<char> = text.chars().collect();
    let (mut rest, mut lines) = (&letters[..], vec![]);
    while rest.len() > max {
        let blank = rest[..=max]
            .iter()
            .rposition(|c| *c == ' ')
            .filter(|blank| *blank > 0);
        let (line, others) = rest.split_at(blank.unwrap_or(max));
        lines.push(line.iter().collect());
        rest = others.strip_prefix(&[' ']).unwrap_or(others);
    }
    lines.push(rest.iter().collect());
    lines
}

/// Writes a length or a coordinate, rounded to a tenth of a unit.
pub fn number(value: f64) -> String {
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Alignment of a text to its position.
#[derive(Clone, Copy, Debug)]
pub enum TextAnchor {
    /// The text begins there.
    Start,
    /// The middle of the text is there.
    Middle,
    /// The text ends there.
    End,
}

/// Shapes drawn so far.
#[derive(Debug, Default)]
pub struct Canvas(String);

impl Canvas {
    /// Draws a straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(class, &[from, to]);
    }

    /// Draws straight lines from one position to the next.
    pub fn path(&mut self, class: &str, places: &[(f64, f64)]) {
        self.raw_path(class, &path(places));
    }

    /// Draws a path in the syntax of SVG.
    pub fn raw_path(&mut self, class: &str, path: &str) {
        let _ = write!(self.0, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// Draws a rectangle, given by its upper left corner and its size.
    pub fn rectangle(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let [x, y, width, height] = [x, y, width, height].map(number);
        let _ = write!(
            self.0,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// Draws a disc around a position.
    pub fn disc(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let [x, y, radius] = [x, y, radius].map(number);
        let _ = write!(
            self.0,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"
        );
    }

    /// Draws shapes in a group of this class.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<g class=\"{class}\">");
        draw(self);
        self.0.push_str("</g>");
    }

    /// Draws shapes that a text describes where a reader points at them.
    pub fn titled(&mut self, text: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<g><title>{}</title>", escape(text));
        draw(self);
        self.0.push_str("</g>");
    }

    /// Draws the cells of a grid, which the script of the page can tell from each other.
    pub(crate) fn grid(&mut self, data: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<g data-grid=\"{}\">", escape(data));
        draw(self);
        self.0.push_str("</g>");
    }

    /// Returns the shapes drawn so far.
    pub(crate) fn shapes(&self) -> &str {
        &self.0
    }

    /// Draws a text with its baseline at this height.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: TextAnchor, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "",
            TextAnchor::Middle => " text-anchor=\"middle\"",
            TextAnchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (number(x), number(y), escape(text));
        let _ = write!(
            self.0,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"
        );
    }

    /// Draws the mark of a point of a series; series differ in shape, not only in colour.
    pub fn marker(&mut self, series: usize, (x, y): (f64, f64)) {
        let corners: &[(f64, f64)] = match series % style::MARKERS {
            0 => return self.disc(&format!("m {}", style::colour(series)), (x, y), 4.0),
            1 => &[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
            2 => &[(0.0, -5.0), (4.6, 3.4), (-4.6, 3.4)],
            3 => &[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)],
            _ => &[(0.0, 5.0), (4.6, -3.4), (-4.6, -3.4)],
        };
        let places: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        self.raw_path(
            &format!("m {}", style::colour(series)),
            &(path(&places) + "Z"),
        );
    }
}

/// Returns the path through positions in the syntax of SVG.
pub fn path(places: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (i, (x, y)) in places.iter().enumerate() {
        let _ = write!(
            text,
            "{}{} {}",
            if i == 0 { "M" } else { "L" },
            number(*x),
            number(*y)
        );
    }
    text
}

/// A finished picture.
#[derive(Debug)]
pub struct Picture {
    /// Title in one line.
    pub title: String,
    /// Description for readers who cannot see the picture.
    pub description: String,
    size: (f64, f64),
    body: String,
}

impl Picture {
    /// Creates a picture from a title, a description and the drawn shapes.
    pub fn new(title: String, description: String, height: f64, canvas: Canvas) -> Self {
        Self::of_size(title, description, (WIDTH, height), canvas)
    }

    /// Creates a picture of any width, which takes the whole width of a page.
    pub fn of_size(title: String, description: String, size: (f64, f64), canvas: Canvas) -> Self {
        Self {
            title,
            description,
            size,
            body: canvas.0,
        }
    }

    /// Returns the texts that are not whole within the picture, by the estimate of [`text_width`].
    #[cfg(test)]
    pub(crate) fn clipped(&self) -> Vec<String> {
        let texts = self.body.split("<text ").skip(1);
        let extent = |text: &str| -> Option<(f64, f64, String)> {
            let (attributes, rest) = text.split_once('>')?;
            let (content, _) = rest.split_once('<')?;
            let number = |name: &str| -> Option<f64> {
                let (_, value) = attributes.split_once(&format!(" {name}=\""))?;
                value.split('"').next()?.parse().ok()
            };
            let (x, width) = (number("x")?, text_width(content));
            let before = match attributes {
                middle if middle.contains("\"middle\"") => 0.5 * width,
                end if end.contains("\"end\"") => width,
                _ => 0.0,
            };
            Some((x - before, x - before + width, content.to_owned()))
        };
        let is_outside =
            |(left, right, _): &(f64, f64, String)| *left < 0.0 || *right > self.size.0;
        let all = texts.map(|text| extent(text).expect("a text has a place"));
        all.filter(is_outside).map(|(.., text)| text).collect()
    }

    /// Returns true if it is wider than others.
    pub fn is_wide(&self) -> bool {
        self.size.0 > WIDTH
    }

    /// Returns the picture as part of a page; its number must be unique there.
    pub fn inline(&self, id: usize) -> String {
        let (title, description) = (escape(&self.title), escape(&self.description));
        let (width, height, body) = (number(self.size.0), number(self.size.1), &self.body);
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"t{id} d{id}\"><title id=\"t{id}\">{title}\
             </title><desc id=\"d{id}\">{description}</desc>{body}</svg>"
        )
    }

    /// Returns the picture as a file, with its title above it.
    pub fn file(&self) -> String {
        let (title, description) = (escape(&self.title), escape(&self.description));
        // The letters of the title are larger.
        let lines = wrapped(&self.title, self.size.0 * 0.85);
        let above = 10.0 + LINE * lines.len() as f64;
        let mut shown = Canvas::default();
        for (number, line) in (1..).zip(&lines) {
            shown.text(
                "title",
                (4.0, LINE * f64::from(number) - above),
                TextAnchor::Start,
                line,
            );
        }
        let (width, height) = (number(self.size.0), number(self.size.1 + above));
        let body = &self.body;
        let above = number(-above);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {above} {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\"><title>{title}</title><desc>{description}</desc><style>{}</style>\
             <rect class=\"paper\" y=\"{above}\" width=\"{width}\" height=\"{height}\"/>{}{body}</svg>\n",
            style::PICTURE,
            shown.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            escape("<script>alert('\"&')"),
            "&lt;script&gt;alert(&#39;&quot;&amp;&#39;)"
        );
        assert_eq!(
            escape("a\u{0}b\u{1b}c\u{202e}d"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d"
        );
        let mut canvas = Canvas::default();
        canvas.text("t", (0.0, 0.0), TextAnchor::Middle, "</text><script>");
        let picture = Picture::new("</title>".into(), "</desc><b>".into(), 100.0, canvas);
        for text in [picture.inline(1), picture.file()] {
            assert!(
                !text.contains("<script>") && !text.contains("<b>"),
                "{text}"
            );
            assert_eq!(
                text.matches("</title>").count() + text.matches("</desc>").count(),
                2,
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [1.0, 0.25, -0.04, 1234.56].map(number),
            ["1", "0.2", "0", "1234.6"]
        );
        assert_eq!([f64::NAN, f64::INFINITY].map(number), ["0", "0"]);
        assert_eq!(path(&[(0.0, 1.0), (2.5, -3.0)]), "M0 1L2.5 -3");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(fitting("short", 100.0), "short");
        assert_eq!(fitting("äöüß and so on", 36.0), "äöüß…");
        // A text is cut by what its own letters take.
        assert_eq!(fitting("WORKER THREAD", 72.0), "WORKER…");
        assert_eq!(fitting("トレース", 36.0), "トレ…");
    }

    #[test]
    fn long_titles_are_wrapped() {
        assert_eq!(wrapped("one two three", 36.0), ["one", "two", "three"]);
        assert_eq!(wrapped("one two", 7.0 * 7.2), ["one two"]);
        assert_eq!(wrapped("a äöüßäöüß b", 36.0), ["a", "äöüßä", "öüß b"]);
        assert_eq!(wrapped("", 36.0), [""]);
        let title = "region, group 1: 2 ranks with most events of 100 to 200 ns and another line";
        let file = Picture::new(title.into(), "d".into(), 100.0, Canvas::default()).file();
        assert!(
            file.contains("viewBox=\"0 -46 480 146\"") && !file.contains('…'),
            "{file}"
        );
        assert!(
            file.contains("y=\"-28\">region, ") && file.contains("y=\"-10\">"),
            "{file}"
        );
    }
}
