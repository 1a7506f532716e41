//! Timeline of calls and messages as a picture.

use std::collections::{BTreeMap, BTreeSet};

use downbeat_clock_core::{Global, Timestamp};
use downbeat_common::page::axis::{linear_ticks, round_step};
use downbeat_common::page::rectangles::legend;
use downbeat_common::page::svg::{Canvas, LINE, Picture, TextAnchor, number, path};
use downbeat_common::units::{TimeUnit, counted, joined, short, time};
use downbeat_trace::CallKind;
use downbeat_trace::view::ViewMessage;

use super::colours::{class, message_class};
use super::layout::{Layout, PanelPlace, WIDE, row_names};
use super::panel::Panel;

/// Least width of a bar, so that it is visible.
const LEAST: f64 = 0.5;
/// Most messages with heads.
const HEADS: usize = 600;
/// Length of the head of a message.
const HEAD: f64 = 4.0;

/// Draws panels one above the other.
pub(super) fn picture(panels: &[Panel], title: &str, own_axes: bool) -> (Picture, Layout) {
    let mut canvas = Canvas::default();
    let above = legend(&mut canvas, kinds(panels), WIDE) + 6.0;
    let layout = Layout::new(panels, above, own_axes);
    for (panel, place) in panels.iter().zip(&layout.places) {
        labels(&mut canvas, panel, place, layout.left);
        if panels.len() > 1 {
            let at = (layout.left, place.label);
            canvas.text("", at, TextAnchor::Start, &panel.label);
        }
        canvas.group("bars", |canvas| bars(canvas, panel, place, &layout));
        canvas.group("messages", |canvas| messages(canvas, panel, place, &layout));
        axis(&mut canvas, place, &layout, panels.len() > 1);
    }
    let size = (WIDE, layout.height);
    let picture = Picture::of_size(title.to_owned(), describe(panels), size, canvas);
    (picture, layout)
}

/// Returns classes and names of all kinds of calls that are shown.
fn kinds(panels: &[Panel]) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    let (mut reversed, mut unknown) = (false, false);
    for Panel { walked, viewed, .. } in panels {
        let bars = viewed.rows.iter().flat_map(|row| &row.bars);
        found.extend(bars.map(|bar| walked.names.kind(bar.region)));
        reversed |= viewed.messages.iter().any(is_reversed);
        unknown |= viewed.rows.iter().any(|row| row.known.is_some());
    }
    let name = |kind: &CallKind| (class(*kind, 100), kind.label().to_owned());
    let mut all: Vec<_> = found.iter().map(name).collect();
    if reversed {
        all.push(("m c1".to_owned(), "received before it was sent".to_owned()));
    }
    if unknown {
        all.push(("still".to_owned(), "not kept".to_owned()));
    }
    all
}

fn is_reversed(message: &ViewMessage) -> bool {
    message.times[1] < message.times[0]
}

/// Writes the names of as many rows as there is space for.
fn labels(canvas: &mut Canvas, panel: &Panel, place: &PanelPlace, left: f64) {
    let every = round_step(LINE * 0.8 / place.row);
    for (row, name) in row_names(panel).enumerate().step_by(every) {
        let (top, height) = place.bars(row);
        let y = top + 0.5 * height + 4.5;
        canvas.text("", (left - 6.0, y), TextAnchor::End, &name);
    }
}

fn bars(canvas: &mut Canvas, panel: &Panel, place: &PanelPlace, layout: &Layout) {
    // The program is behind its calls, which may be short.
    let mut paths: BTreeMap<(bool, String), String> = BTreeMap::new();
    for (number, row) in panel.viewed.rows.iter().enumerate() {
        let mut add = |key, [low, high]: [f64; 2]| {
            let path = paths.entry(key).or_default();
            *path += &rectangle([low, high], place.bars(number), layout);
        };
        for [low, high] in unknown(row.known, place, panel) {
            add((false, "still".to_owned()), [low, high]);
        }
        for bar in &row.bars {
            let kind = panel.walked.names.kind(bar.region);
            let key = (kind != CallKind::User, class(kind, panel.percent(row, bar)));
            add(key, bar.times.map(|time| place.share(time)));
        }
    }
    for ((_, class), path) in paths {
        canvas.raw_path(&class, &path);
    }
}

/// Returns the parts of a row that are not known.
fn unknown(
    known: Option<[Timestamp<Global>; 2]>,
    place: &PanelPlace,
    panel: &Panel,
) -> impl Iterator<Item = [f64; 2]> {
    let [low, high] = panel.viewed.interval.map(|time| place.share(time));
    let known = known.map(|known| known.map(|time| place.share(time)));
    let parts = known.map(|[begin, end]| [[low, begin], [end, high]]);
    parts.into_iter().flatten().filter(|[low, high]| low < high)
}

/// Returns the path of a bar, given the shares of its ends.
fn rectangle([low, high]: [f64; 2], (top, height): (f64, f64), layout: &Layout) -> String {
    let x = layout.left + low * layout.width;
    let width = ((high - low) * layout.width).max(LEAST);
    let [x, top, width, height] = [x, top, width, height].map(number);
    format!("M{x} {top}h{width}v{height}h-{width}z")
}

fn messages(canvas: &mut Canvas, panel: &Panel, place: &PanelPlace, layout: &Layout) {
    let rows = panel.row_numbers();
    let has_heads = panel.viewed.messages.len() <= HEADS;
    let mut paths: BTreeMap<bool, String> = BTreeMap::new();
    for message in &panel.viewed.messages {
        let [Some(from), Some(to)] = message.locations.map(|location| rows.get(&location)) else {
            continue;
        };
        let end = |row: usize, time| {
            let (top, height) = place.bars(row);
            (place.share(time), top + 0.5 * height)
        };
        let ends = [end(*from, message.times[0]), end(*to, message.times[1])];
        if let Some(shown) = inside(ends, place.share(panel.viewed.interval[1])) {
            // What ends outside has no head.
            let has_head = has_heads && shown[1] == ends[1];
            let ends = shown.map(|(share, y)| (layout.left + share * layout.width, y));
            let path = paths.entry(is_reversed(message)).or_default();
            *path += &arrow(ends, has_head);
        }
    }
    for (is_reversed, path) in paths {
        canvas.raw_path(message_class(is_reversed), &path);
    }
}

/// Returns the part of a line that is from 0 to `end`.
fn inside([from, to]: [(f64, f64); 2], end: f64) -> Option<[(f64, f64); 2]> {
    let cut = |(x, y): (f64, f64), (other_x, other_y): (f64, f64)| {
        let edge = x.clamp(0.0, end.max(0.0));
        if edge == x {
            return Some((x, y));
        }
        let share = (edge - x) / (other_x - x);
        (0.0..=1.0)
            .contains(&share)
            .then_some((edge, y + share * (other_y - y)))
    };
    Some([cut(from, to)?, cut(to, from)?])
}

/// Returns the path of a message, which has a head if it is wanted.
fn arrow([from, to]: [(f64, f64); 2], has_head: bool) -> String {
    let mut drawn = path(&[from, to]);
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let length = x.hypot(y);
    if has_head && length > 2.0 * HEAD {
        let (x, y) = (x / length * HEAD, y / length * HEAD);
        let side = |turn: f64| (to.0 - x - turn * y, to.1 - y + turn * x);
        drawn += &path(&[side(0.45), to, side(-0.45)]);
    }
    drawn
}

fn axis(canvas: &mut Canvas, place: &PanelPlace, layout: &Layout, is_one_of_many: bool) {
    let (left, right) = (layout.left, layout.left + layout.width);
    let bottom = place.bottom() + 3.0;
    if !place.has_axis {
        return;
    }
    canvas.line("axis", (left, bottom), (right, bottom));
    let unit = TimeUnit::for_nanos(place.nanos);
    canvas.group("ticks", |canvas| {
        for (at, _) in linear_ticks(0.0, place.nanos / unit.nanos, 8) {
            let x = left + at * unit.nanos / place.nanos * layout.width;
            canvas.line("axis", (x, bottom), (x, bottom + 4.0));
            canvas.text("", (x, bottom + 17.0), TextAnchor::Middle, &short(at));
        }
    });
    let since = match is_one_of_many {
        true => "the begin of each interval".to_owned(),
        false => place.low.to_string(),
    };
    let middle = (0.5 * (left + right), bottom + 17.0 + LINE);
    let label = format!("time since {since}, {}", unit.name);
    canvas.group("since", |canvas| {
        canvas.text("quiet", middle, TextAnchor::Middle, &label);
    });
}

fn describe(panels: &[Panel]) -> String {
    let describe = |Panel { label, viewed, .. }: &Panel| {
        let [low, high] = viewed.interval;
        format!(
            "{label}: {} in {}, {}.",
            counted(viewed.rows.len(), "row", "rows"),
            time((high - low).as_nanos() as f64),
            counted(viewed.messages.len(), "message", "messages")
        )
    };
    joined(panels.iter().map(describe), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_at_the_edges_and_labels_are_round() {
        let inside = |ends| inside(ends, 1.0);
        assert_eq!(round_step(0.2), 1);
        assert_eq!([1.5, 2.0, 17.3, 51.0].map(round_step), [2, 2, 20, 100]);
        assert_eq!(
            inside([(0.2, 1.0), (0.4, 2.0)]),
            Some([(0.2, 1.0), (0.4, 2.0)])
        );
        assert_eq!(
            inside([(-1.0, 0.0), (1.0, 2.0)]),
            Some([(0.0, 1.0), (1.0, 2.0)])
        );
        assert_eq!(
            inside([(0.5, 0.0), (1.5, 2.0)]),
            Some([(0.5, 0.0), (1.0, 1.0)])
        );
        assert_eq!(inside([(-2.0, 0.0), (-1.0, 2.0)]), None);
    }

    #[test]
    fn an_arrow_has_a_head_if_there_is_space() {
        assert_eq!(
            arrow([(0.0, 0.0), (10.0, 0.0)], true),
            "M0 0L10 0M6 1.8L10 0L6 -1.8"
        );
        assert_eq!(arrow([(0.0, 0.0), (5.0, 0.0)], true), "M0 0L5 0");
    }
}
