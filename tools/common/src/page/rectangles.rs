//! Grids of cells drawn with few rectangles, and their legends.

use std::collections::BTreeMap;

use serde::Serialize;

use super::svg::{Canvas, LINE, TextAnchor, number, text_width};

/// Rectangle of equal cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// Column and row of the first cell.
    pub at: (usize, usize),
    /// Numbers of columns and rows.
    pub size: (usize, usize),
}

/// Covers the cells with rectangles: runs of equal cells in a row, merged with the same run in the rows below.
pub fn rectangles<C: Copy + Ord>(cells: &[C], columns: usize) -> BTreeMap<C, Vec<Rectangle>> {
    let mut found: BTreeMap<C, Vec<Rectangle>> = BTreeMap::new();
    // Rectangles that reach to the row above, by their first column.
    let mut above: BTreeMap<usize, (C, usize)> = BTreeMap::new();
    for (row, cells) in cells.chunks(columns).enumerate() {
        let mut here = BTreeMap::new();
        let mut column = 0;
        for run in cells.chunk_by(|one, other| one == other) {
            let cell = run[0];
            let of_cell = found.entry(cell).or_default();
            let reaching = above
                .get(&column)
                .filter(|(above, _)| *above == cell)
                .map(|(_, place)| *place);
            let place = match reaching.filter(|place| of_cell[*place].size.0 == run.len()) {
                Some(place) => {
                    of_cell[place].size.1 += 1;
                    place
                }
                None => {
                    of_cell.push(Rectangle {
                        at: (column, row),
                        size: (run.len(), 1),
                    });
                    of_cell.len() - 1
                }
            };
            here.insert(column, (cell, place));
            column += run.len();
        }
        above = here;
    }
    found
}

/// Grid of ranks, row by row, as the script of the page needs it to name the one under
/// the pointer.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// Position of the first cell.
    pub left: f64,
    /// Position of the first cell.
    pub top: f64,
    /// Width of a cell.
    pub width: f64,
    /// Height of a cell.
    pub height: f64,
    /// Number of columns.
    pub columns: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of ranks that share a cell.
    pub shared: u32,
    /// Number of all ranks.
    pub ranks: u32,
}

impl Grid {
    /// Draws the cells; each shape is in a group with a title.
    pub fn draw(&self, canvas: &mut Canvas, draw: impl FnOnce(&mut Canvas)) {
        // Numbers are always valid JSON.
        canvas.grid(&serde_json::to_string(self).unwrap_or_default(), draw);
    }

    /// Returns position and size of some cells.
    pub fn place(&self, of: &Rectangle) -> [(f64, f64); 2] {
        let size = (
            of.size.0 as f64 * self.width,
            of.size.1 as f64 * self.height,
        );
        [self.corner(of.at), size]
    }

    fn corner(&self, (column, row): (usize, usize)) -> (f64, f64) {
        (
            self.left + column as f64 * self.width,
            self.top + row as f64 * self.height,
        )
    }

    /// Position below the last row.
    pub fn bottom(&self) -> f64 {
        self.corner((0, self.rows)).1
    }

    /// Returns the lines between all cells, in units of cells.
    pub fn lines(&self) -> Vec<[(usize, usize); 2]> {
        let vertical = (1..self.columns).map(|column| [(column, 0), (column, self.rows)]);
        let horizontal = (1..self.rows).map(|row| [(0, row), (self.columns, row)]);
        vertical.chain(horizontal).collect()
    }

    /// Draws lines of the background, given in units of cells.
    pub fn cut(&self, canvas: &mut Canvas, lines: &[[(usize, usize); 2]]) {
        let line = |[from, to]: &[(usize, usize); 2]| {
            let ((x, y), (right, lower)) = (self.corner(*from), self.corner(*to));
            match from.0 == to.0 {
                true => format!("M{} {}V{}", number(x), number(y), number(lower)),
                false => format!("M{} {}H{}", number(x), number(y), number(right)),
            }
        };
        if !lines.is_empty() {
            canvas.raw_path("cut", &lines.iter().map(line).collect::<String>());
        }
    }
}

/// Returns the lines between cells of different contents that both are coloured, in units of cells: from a column and row to
/// another.
///
/// Colours of many contents contrast with the background, but not with each other: lines of the background separate them.
pub fn borders<C: PartialEq>(
    cells: &[C],
    columns: usize,
    is_coloured: impl Fn(&C) -> bool,
) -> Vec<[(usize, usize); 2]> {
    let rows = cells.len().div_ceil(columns);
    let coloured = |column: usize, row: usize| {
        let cell = (column < columns).then(|| cells.get(row * columns + column));
        cell.flatten().filter(|cell| is_coloured(cell))
    };
    let differ = |one: (usize, usize), two: (usize, usize)| {
        let cells = coloured(one.0, one.1).zip(coloured(two.0, two.1));
        cells.is_some_and(|(one, two)| one != two)
    };
    let mut lines = vec![];
    for column in 1..columns {
        let is_there = |row: usize| differ((column - 1, row), (column, row));
        let all = runs(rows, is_there).into_iter();
        lines.extend(all.map(|[from, to]| [(column, from), (column, to)]));
    }
    for row in 1..rows {
        let is_there = |column: usize| differ((column, row - 1), (column, row));
        let all = runs(columns, is_there).into_iter();
        lines.extend(all.map(|[from, to]| [(from, row), (to, row)]));
    }
    lines
}

/// Returns the begin and end of each run of indices below `count` for which something holds.
fn runs(count: usize, holds: impl Fn(usize) -> bool) -> Vec<[usize; 2]> {
    let mut found: Vec<[usize; 2]> = vec![];
    for index in (0..count).filter(|index| holds(*index)) {
        match found.last_mut().filter(|run| run[1] == index) {
            Some(run) => run[1] += 1,
            None => found.push([index, index + 1]),
        }
    }
    found
}

/// Returns the path of a rectangle in SVG.
pub fn outline([(x, y), (width, height)]: [(f64, f64); 2]) -> String {
    let [left, right, upper, lower] = [x, x + width, y, y + height].map(number);
    format!("M{left} {upper}H{right}V{lower}H{left}Z")
}

/// Draws a legend of classes in this width, in as many rows as necessary; returns its
/// height.
pub fn legend(
    canvas: &mut Canvas,
    classes: impl IntoIterator<Item = (String, String)>,
    most: f64,
) -> f64 {
    const SAMPLE: f64 = 12.0;
    let (mut x, mut y) = (6.0, LINE - 5.0);
    for (class, text) in classes {
        let width = SAMPLE + 5.0 + text_width(&text) + 12.0;
        if x > 6.0 && x + width > most {
            (x, y) = (6.0, y + LINE);
        }
        sample(canvas, &class, (x, y - 10.5), SAMPLE);
        canvas.text("", (x + SAMPLE + 5.0, y), TextAnchor::Start, &text);
        x += width;
    }
    y + 5.0
}

/// Class of cells without anything to show, which are lines.
pub const DASH: &str = "dash";

/// Draws a sample of a class in a square.
pub(super) fn sample(canvas: &mut Canvas, class: &str, (x, y): (f64, f64), size: f64) {
    match class {
        DASH => {
            let [at, drawn] = dash([(x, y), (size, size)]);
            canvas.rectangle(class, at, drawn);
        }
        _ => canvas.rectangle(class, (x, y), (size, size)),
    }
    if class == "hatch" {
        canvas.raw_path("hatch", &hatching((x, y), (size, size)));
    }
}

/// Returns the line in the middle of a row of cells that have nothing to show.
pub fn dash([(x, y), (width, height)]: [(f64, f64); 2]) -> [(f64, f64); 2] {
    let thick = (0.2 * height).clamp(0.8, 3.0);
    [(x, y + 0.5 * (height - thick)), (width, thick)]
}

/// Returns the path of diagonal lines across a rectangle.
pub fn hatching((x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    const DISTANCE: f64 = 6.0;
    let lines = ((width + height) / DISTANCE) as usize;
    // Each begins on the left or lower side and ends on the upper or right side.
    let line = |i: usize| {
        let along = (i as f64 + 0.5) * DISTANCE;
        let (from, to) = ((along - height).max(0.0), along.min(width));
        let height_at = |at: f64| y + along - at;
        (from < to).then(|| {
            let [x1, y1, x2, y2] = [x + from, height_at(from), x + to, height_at(to)].map(number);
            format!("M{x1} {y1}L{x2} {y2}")
        })
    };
    (0..=lines).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every cell is in exactly one rectangle, which has its kind.
        #[test]
        fn rectangles_cover_all_cells_once(kinds in prop::collection::vec(0_usize..3, 0..200), columns in 1_usize..20) {

            let mut covered = vec![None; kinds.len()];
            for (cell, rectangles) in rectangles(&kinds, columns) {
                for Rectangle { at, size } in rectangles {
                    prop_assert!(at.0 + size.0 <= columns);
                    for place in (at.1..at.1 + size.1).flat_map(|row| (at.0..at.0 + size.0).map(move |column| row * columns + column)) {
                        prop_assert_eq!(covered[place].replace(cell), None);
                    }
                }
            }
            prop_assert!(covered.iter().zip(&kinds).all(|(covered, cell)| *covered == Some(*cell)));
        }

        /// Two neighbours have a line between them if they differ and have colours.
        #[test]
        fn borders_are_between_different_colours(
            kinds in prop::collection::vec(0_usize..4, 1..120),
            columns in 1_usize..12,
        ) {
            let mut between = BTreeSet::new();
            for [from, to] in borders(&kinds, columns, |kind| *kind > 0) {
                for column in from.0..to.0.max(from.0 + 1) {
                    for row in from.1..to.1.max(from.1 + 1) {
                        let is_new = between.insert((column, row, from.0 == to.0));
                        prop_assert!(is_new);
                    }
                }
            }
            for (place, kind) in kinds.iter().enumerate() {
                let (column, row) = (place % columns, place / columns);
                let left = (column > 0).then(|| kinds[place - 1]);
                let above = place.checked_sub(columns).map(|place| kinds[place]);
                for (other, is_vertical) in [(left, true), (above, false)] {
                    let expected = other.is_some_and(|other| other != *kind && other > 0 && *kind > 0);
                    prop_assert_eq!(between.remove(&(column, row, is_vertical)), expected);
                }
            }
            prop_assert!(between.is_empty());
        }

        #[test]
        fn hatching_stays_inside(x in 0.0..9.0, y in 0.0..9.0, width in 0.1..99.0, height in 0.1..99.0) {
            for place in hatching((x, y), (width, height)).split(['M', 'L']).filter(|place| !place.is_empty()) {
                let numbers: Vec<f64> = place.split(' ').map(|number| number.parse().unwrap()).collect();
                // Coordinates are rounded to a tenth.
                prop_assert!((x - 0.06..=x + width + 0.06).contains(&numbers[0]), "{}", place);
                prop_assert!((y - 0.06..=y + height + 0.06).contains(&numbers[1]), "{}", place);
            }
        }
    }

    #[test]
    fn neighbours_are_one_rectangle() {
        let cells = [0, 0, 1, 0, 0, 1, 0, 1];
        let found = rectangles(&cells, 3);
        assert_eq!(
            found[&0],
            [
                Rectangle {
                    at: (0, 0),
                    size: (2, 2)
                },
                Rectangle {
                    at: (0, 2),
                    size: (1, 1)
                }
            ]
        );
        assert_eq!(
            found[&1],
            [
                Rectangle {
                    at: (2, 0),
                    size: (1, 2)
                },
                Rectangle {
                    at: (1, 2),
                    size: (1, 1)
                }
            ]
        );
    }
}
