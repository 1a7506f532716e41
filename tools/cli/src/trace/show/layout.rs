//! Positions of panels, rows and times in the picture.

use downbeat_clock_core::{Global, Timestamp};
use downbeat_common::page::svg::{LINE, fitting, text_width};
use downbeat_common::trace::short_name;

use super::panel::Panel;

/// Width of the picture.
pub(super) const WIDE: f64 = 900.0;
/// Width right of the bars: half of the text of a tick at the right end. The script has texts of at most this width, too.
const RIGHT: f64 = 32.0;
/// Most letters, and most width, of the name of a row.
const NAME: (usize, f64) = (26, 240.0);
/// Height of all rows together, and limits of that of one.
const ROWS: f64 = 480.0;
const ROW: (f64, f64) = (0.8, 22.0);
/// Height of an axis with its label.
pub(super) const AXIS: f64 = 20.0 + LINE;
/// Height between a panel and the axis, or the next panel.
const GAP: f64 = 6.0;

/// Positions of all panels.
#[derive(Debug)]
pub(super) struct Layout {
    /// Left end and width of the bars.
    pub(super) left: f64,
    pub(super) width: f64,
    pub(super) places: Vec<PanelPlace>,
    /// Height of the picture.
    pub(super) height: f64,
}

/// Position of one panel.
#[derive(Debug)]
pub(super) struct PanelPlace {
    /// Baseline of its label.
    pub(super) label: f64,
    pub(super) top: f64,
    pub(super) row: f64,
    pub(super) rows: usize,
    /// Time at the left end, and time from there to the right end in nanoseconds.
    pub(super) low: Timestamp<Global>,
    pub(super) nanos: f64,
    /// True if there is an axis below.
    pub(super) has_axis: bool,
}

impl Layout {
    /// Places panels below this height.
    pub(super) fn new(panels: &[Panel], above: f64, own_axes: bool) -> Self {
        let names = panels.iter().flat_map(row_names);
        let widest = names.map(|name| text_width(&name)).fold(0.0, f64::max);
        let left = widest + 12.0;
        let span = |panel: &Panel| {
            let [low, high] = panel.viewed.interval;
            ((high - low).as_nanos() as f64).max(1.0)
        };
        let longest = panels.iter().map(span).fold(1.0, f64::max);
        let (mut y, mut places) = (above, vec![]);
        for (number, panel) in (1..).zip(panels) {
            let rows = panel.viewed.rows.len().max(1);
            let row = (ROWS / panels.len() as f64 / rows as f64).clamp(ROW.0, ROW.1);
            if panels.len() > 1 {
                y += LINE;
            }
            let has_axis = own_axes || number == panels.len();
            places.push(PanelPlace {
                label: y - 5.0,
                top: y,
                row,
                rows,
                low: panel.viewed.interval[0],
                nanos: if own_axes { span(panel) } else { longest },
                has_axis,
            });
            y += row * rows as f64 + GAP + if has_axis { AXIS } else { 0.0 };
        }
        Self {
            left,
            width: WIDE - RIGHT - left,
            places,
            height: y,
        }
    }
}

impl PanelPlace {
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.row * self.rows as f64
    }

    /// Returns the top and the height of the bars of a row.
    pub(super) fn bars(&self, row: usize) -> (f64, f64) {
        let gap = match self.row {
            high if high >= 8.0 => 2.0,
            high if high >= 3.0 => 0.5,
            _ => 0.0,
        };
        (self.top + row as f64 * self.row, self.row - gap)
    }

    /// Returns the position of a time, 0 at the left end and 1 at the right end.
    pub(super) fn share(&self, time: Timestamp<Global>) -> f64 {
        (time - self.low).as_nanos() as f64 / self.nanos
    }
}

/// Returns the names of the rows: those of their first locations.
pub(super) fn row_names(panel: &Panel) -> impl Iterator<Item = String> {
    let rows = panel.viewed.rows.iter();
    rows.map(|row| fitting(&short_name(panel.walked.name_of(row.first), NAME.0), NAME.1))
}
