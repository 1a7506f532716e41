//! Grids of cells drawn with few rectangles, and their legends.

use std::collections::BTreeMap;

use super::svg::{Canvas, LINE, TextAnchor, WIDTH, number, text_width};

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

impl Rectangle {
    /// Returns position and size of the rectangle if the grid begins here and cells have this size.
    pub fn drawn(&self, (left, top): (f64, f64), (width, height): (f64, f64)) -> [(f64, f64); 2] {
        let at = (
            left + self.at.0 as f64 * width,
            top + self.at.1 as f64 * height,
        );
        [
            at,
            (self.size.0 as f64 * width, self.size.1 as f64 * height),
        ]
    }
}

/// Returns the path of a rectangle in SVG.
pub fn outline([(x, y), (width, height)]: [(f64, f64); 2]) -> String {
    let [left, right, upper, lower] = [x, x + width, y, y + height].map(number);
    format!("M{left} {upper}H{right}V{lower}H{left}Z")
}

/// Draws a legend of classes, in as many rows as necessary; returns its height.
pub fn legend(canvas: &mut Canvas, classes: impl IntoIterator<Item = (String, String)>) -> f64 {
    legend_within(canvas, classes, WIDTH)
}

/// Draws a legend of classes in this width; returns its height.
pub fn legend_within(
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
        canvas.rectangle(&class, (x, y - 10.5), (SAMPLE, SAMPLE));
        if class == "hatch" {
            canvas.raw_path("hatch", &hatching((x, y - 10.5), (SAMPLE, SAMPLE)));
        }
        canvas.text("", (x + SAMPLE + 5.0, y), TextAnchor::Start, &text);
        x += width;
    }
    y + 5.0
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
