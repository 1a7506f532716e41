//! Shifts of the other experiments relative to the first, by message size, with intervals and asterisks.

use downbeat_records::stats::Interval;

use downbeat_common::page::axis::{Axis, range};
use downbeat_common::page::frame::Frame;
use downbeat_common::page::style;
use downbeat_common::page::svg::{Picture, TextAnchor, WIDTH, fitting};
use downbeat_common::units::{self, joined};

/// Shift of one message size in one of the other experiments.
#[derive(Clone, Debug)]
pub(crate) struct RelativeShift {
    pub(crate) bytes: u64,
    /// Index of the experiment; 0 is the first, with which the others are compared.
    pub(crate) series: usize,
    /// Shift divided by the median of the first experiment.
    pub(crate) share: f64,
    pub(crate) interval: Interval,
    pub(crate) stars: &'static str,
}

/// Height of one shift.
const ROW: f64 = 17.0;

/// Draws shifts, which must be sorted by size and experiment; `None` if there are none.
pub(crate) fn picture(
    title: String,
    names: &[String],
    shifts: &[RelativeShift],
) -> Option<Picture> {
    let values = |shift: &RelativeShift| [shift.interval.low, shift.share, shift.interval.high];
    let [low, high] = range(shifts.iter().flat_map(values))?;
    let high = high.max(0.0);
    let margin = 0.12 * (high - low.min(0.0));
    let first = names
        .first()
        .map_or(String::new(), |name| fitting(name, 250.0));
    let x = Axis::shares(&format!("slower than {first} by, %"), low, high + margin, 6);
    let row = |i: usize| -(i as f64 + 0.5);
    let (mut ticks, mut before) = (Vec::new(), 0);
    for of_size in shifts.chunk_by(|one, two| one.bytes == two.bytes) {
        let middle = before as f64 + 0.5 * of_size.len() as f64;
        ticks.push((-middle, units::bytes(of_size[0].bytes)));
        before += of_size.len();
    }
    let y = Axis::exact(
        "size of a message",
        -(shifts.len() as f64) - 0.2,
        0.2,
        ticks,
    );
    let height = ROW * (shifts.len() as f64).max(3.0);
    let all_names = names;
    // A legend is only needed for several compared experiments.
    let names = if names.len() > 2 { names } else { &[] };
    let mut frame = Frame::new(x, y, names, height);
    if names.len() > 2 {
        separate_sizes(&mut frame, shifts);
    }
    frame.vertical("zero", 0.0);
    for (i, shift) in shifts.iter().enumerate() {
        draw(&mut frame, row(i), shift, &describe_one(all_names, shift));
    }
    let described = shifts.iter();
    let described = described.map(|shift| describe_one(all_names, shift) + ".");
    Some(frame.finish(title, joined(described, " ")))
}

/// Draws borders between sizes that have several rows.
fn separate_sizes(frame: &mut Frame, shifts: &[RelativeShift]) {
    let (left, right) = (0.0, WIDTH - 12.0);
    for (i, pair) in shifts.windows(2).enumerate() {
        if pair[0].bytes != pair[1].bytes {
            let y = frame.at_y(-(i as f64 + 1.0));
            frame.canvas.line("border", (left, y), (right, y));
        }
    }
}

fn draw(frame: &mut Frame, row: f64, shift: &RelativeShift, text: &str) {
    let class = format!("e {}", style::colour(shift.series));
    let (low, high) = (
        frame.at((shift.interval.low, row)),
        frame.at((shift.interval.high, row)),
    );
    let (middle, right) = (frame.at((shift.share, row)), WIDTH - 14.0);
    frame.canvas.titled(text, |canvas| {
        let size = (high.0 - low.0 + 8.0, ROW);
        canvas.rectangle("hit", (low.0 - 4.0, middle.1 - 0.5 * ROW), size);
        canvas.line(&class, low, high);
        for (x, y) in [low, high] {
            canvas.line(&class, (x, y - 3.5), (x, y + 3.5));
        }
        canvas.marker(shift.series, middle);
        let at = (right, middle.1 + 6.5);
        canvas.text("", at, TextAnchor::End, shift.stars);
    });
}

fn describe_one(names: &[String], shift: &RelativeShift) -> String {
    let name = names
        .get(shift.series)
        .map_or("second experiment", String::as_str);
    let [low, share, high] =
        [shift.interval.low, shift.share, shift.interval.high].map(units::percent);
    let text = format!(
        "{name}, {}: {share} ({low} to {high}) {}",
        units::bytes(shift.bytes),
        shift.stars
    );
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shift_has_a_row_and_stars() {
        let shift = |bytes, series, share: f64, stars| RelativeShift {
            bytes,
            series,
            share,
            interval: Interval {
                low: share - 0.01,
                high: share + 0.01,
            },
            stars,
        };
        let shifts = [
            shift(8, 1, 0.05, "***"),
            shift(8, 2, 0.0, ""),
            shift(64, 1, -0.02, "*"),
            shift(64, 2, 0.01, ""),
        ];
        let names = ["a", "b", "c"].map(str::to_owned);
        let drawn = picture("shifts".into(), &names, &shifts).unwrap().inline(1);
        assert!(drawn.contains(">***</text>") && drawn.contains(">*</text>"));
        assert_eq!(drawn.matches(">64 B</text>").count(), 1);
        assert!(
            drawn.contains("b, 8 B: +5.00 % (+4.00 % to +6.00 %) ***. c, 8 B: 0 %"),
            "{drawn}"
        );
        assert!(drawn.contains("slower than a by, %"));
        assert!(picture("none".into(), &names, &[]).is_none());
    }
}
