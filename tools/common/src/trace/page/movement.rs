//! Picture of the movement of events: rows of locations, columns of time.

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;

use crate::page::HtmlTable;
use crate::page::axis::Axis;
use crate::page::bins::BinUnit;
use crate::page::frame::Frame;
use crate::page::rectangles::{
    DASH, Grid, GridCells, Rectangle, borders, dash, legend, outline, rectangles,
};
use crate::page::style;
use crate::page::svg::{Canvas, LINE, Picture, fitting};
use crate::trace::{LocationReport, MovementReport};
use crate::units::{count, counted, time};

/// Number of levels. The farthest movement is the darkest; each power of ten below is one step
/// lighter.
const LEVELS: i8 = 5;
/// Minimum height of rows with lines between them.
const SEPARATED: f64 = 8.0;
/// Maximum width of a name at a row.
const NAME: f64 = 100.0;
/// Value of a cell without events.
const NO_EVENT: i8 = i8::MIN;

/// Draws the picture; `None` if there are no locations.
pub(super) fn picture(movement: &MovementReport, names: &[String]) -> Option<Picture> {
    let MovementReport {
        slices,
        shared,
        cells,
        ..
    } = movement;
    if cells.is_empty() {
        return None;
    }
    let farthest = cells
        .iter()
        .flatten()
        .map(|by| by.unsigned_abs())
        .max()
        .unwrap_or(0);
    let decade = farthest.checked_ilog10().unwrap_or(0);
    let level = |cell: &Option<i64>| cell.map_or(NO_EVENT, |by| level(by, decade));
    let levels: Vec<i8> = cells.iter().map(level).collect();
    let shapes = rectangles(&levels, slices.count);
    let there: Vec<i8> = shapes
        .keys()
        .rev()
        .copied()
        .filter(|level| *level != NO_EVENT)
        .collect();

    let mut canvas = Canvas::default();
    let above = legend(
        &mut canvas,
        there
            .iter()
            .map(|level| (class(*level), words(*level, decade))),
    );
    let rows = cells.len() / slices.count;
    let height = (290.0 / rows as f64).min(28.0);
    let x = Axis::times_to(
        "time in the trace",
        slices.length as f64 * slices.count as f64,
        6,
    );
    let y = Axis::exact(
        "location",
        0.0,
        rows as f64,
        labels(rows, height, *shared, names),
    );
    let mut frame = Frame::below(canvas, above, x, y, rows as f64 * height);
    let (first, next) = (frame.at_x(0.0), frame.at_x(slices.length as f64));
    let (top, wide) = (frame.top(), next - first);
    let grid = Grid {
        left: first,
        top,
        width: wide,
        height,
        count: slices.count,
        cells: named_cells(movement, names),
    };
    grid.draw(&mut frame.canvas, |canvas| {
        // Hides the grid lines behind the cells.
        let size = (wide * slices.count as f64, rows as f64 * height);
        canvas.titled("no events", |canvas| {
            canvas.rectangle("paper", (first, top), size);
        });
        for level in there {
            canvas.titled(&words(level, decade), |canvas| {
                draw(canvas, level, &shapes[&level], (first, top), (wide, height));
            });
        }
    });
    let is_coloured = |level: &i8| ![0, NO_EVENT].contains(level);
    let mut lines = borders(&levels, slices.count, is_coloured);
    if height >= SEPARATED {
        lines.extend((1..rows).map(|row| [(0, row), (slices.count, row)]));
    }
    grid.cut(&mut frame.canvas, &lines);
    let each = if *shared > 1 {
        format!(", {} in a row", counted(*shared, "location", "locations"))
    } else {
        String::new()
    };
    Some(frame.finish(
        format!("Displacement of events over time{each}"),
        describe(movement),
    ))
}

/// Draws the cells of a level.
fn draw(
    canvas: &mut Canvas,
    level: i8,
    shapes: &[Rectangle],
    first: (f64, f64),
    (width, height): (f64, f64),
) {
    let cells = shapes.iter().map(|of| of.drawn(first, (width, height)));
    if level != 0 {
        return canvas.raw_path(&class(level), &cells.map(outline).collect::<String>());
    }
    // One line for each row, and all of each row for the pointer.
    let row = |of: &Rectangle, row: usize| Rectangle {
        at: (of.at.0, of.at.1 + row),
        size: (of.size.0, 1),
    };
    let rows = shapes
        .iter()
        .flat_map(|of| (0..of.size.1).map(move |number| row(of, number)));
    let lines = rows.map(|of| outline(dash(of.drawn(first, (width, height)))));
    canvas.raw_path("hit", &cells.map(outline).collect::<String>());
    canvas.raw_path(DASH, &lines.collect::<String>());
}

/// Names rows, columns and values for the script of the page.
fn named_cells(movement: &MovementReport, names: &[String]) -> GridCells {
    let MovementReport {
        slices,
        shared,
        cells,
        ..
    } = movement;
    let row = |row: usize| match names.get(row) {
        _ if *shared > 1 => format!("locations {} to {}", row * shared, (row + 1) * shared - 1),
        Some(name) => fitting(name, 2.0 * NAME),
        None => format!("location {row}"),
    };
    let at = |column: usize| time(slices.length as f64 * column as f64);
    let column = |column: usize| format!("{} to {}", at(column), at(column + 1));
    let value = |by: &Option<i64>| match by {
        None | Some(0) => String::new(),
        Some(by) => time(*by as f64),
    };
    let joined = |texts: &mut dyn Iterator<Item = String>| texts.collect::<Vec<_>>().join(";");
    GridCells::Times {
        rows: (0..cells.len() / slices.count).map(row).collect(),
        columns: joined(&mut (0..slices.count).map(column)),
        values: joined(&mut cells.iter().map(value)),
    }
}

/// Returns the level of a movement: 0 if the event is not moved, negative if it is moved back.
fn level(by: i64, decade: u32) -> i8 {
    let Some(own) = by.unsigned_abs().checked_ilog10() else {
        return 0;
    };
    let level = LEVELS.saturating_sub_unsigned((decade - own) as u8).max(1);
    if by < 0 { -level } else { level }
}

fn class(level: i8) -> String {
    let colour = style::colour(usize::from(level < 0));
    match level.abs() {
        0 => DASH.to_owned(),
        level => format!("heat{level} {colour}"),
    }
}

/// Describes a level.
fn words(level: i8, decade: u32) -> String {
    let begin = |level: i8| {
        let power = decade.checked_sub(u32::from(level.abs_diff(LEVELS)));
        power.map(|power| {
            BinUnit::new(Duration::from_nanos(1)).begin(DecimalBin::containing(10_u64.pow(power)))
        })
    };
    let back = if level < 0 { "back, " } else { "" };
    match (level.abs(), begin(level.abs()), begin(level.abs() + 1)) {
        (0, ..) => "not moved".to_owned(),
        (1, Some(_), Some(end)) => format!("{back}less than {end}"),
        (_, Some(begin), _) => format!("{back}from {begin}"),
        _ => back.to_owned(),
    }
}

/// Labels as many rows as there is space for: with the name of a location, or the numbers of
/// several.
fn labels(rows: usize, height: f64, shared: usize, names: &[String]) -> Vec<(f64, String)> {
    let every = (LINE / height).ceil().max(1.0) as usize;
    let label = |row: usize| match names.get(row) {
        _ if shared > 1 => (row * shared).to_string(),
        Some(name) => fitting(name, NAME),
        None => row.to_string(),
    };
    // Rows are numbered from the top, axes from the bottom.
    (0..rows)
        .step_by(every)
        .map(|row| (rows as f64 - row as f64 - 0.5, label(row)))
        .collect()
}

fn describe(MovementReport { farthest, .. }: &MovementReport) -> String {
    let one = |location: &LocationReport| {
        let LocationReport {
            location,
            name,
            farthest_nanos,
            at_nanos,
            ..
        } = location;
        format!(
            "Location {location}, {name}: {} at {}.",
            time(*farthest_nanos as f64),
            time(*at_nanos as f64)
        )
    };
    let all: Vec<String> = farthest.iter().map(one).collect();
    if all.is_empty() {
        "No event is moved.".to_owned()
    } else {
        format!("The farthest: {}", all.join(" "))
    }
}

/// Lists the locations that are moved the farthest.
pub(super) fn table(MovementReport { farthest, .. }: &MovementReport) -> HtmlTable {
    let headings = [
        "location",
        "name",
        "farthest",
        "at",
        "events moved",
        "of",
        "mean",
    ];
    let mut table = HtmlTable::of_numbers("Locations that are moved the farthest", headings);
    for LocationReport {
        location,
        name,
        events,
        moved,
        mean_nanos,
        farthest_nanos,
        at_nanos,
    } in farthest
    {
        table.row([
            location.to_string(),
            name.clone(),
            time(*farthest_nanos as f64),
            time(*at_nanos as f64),
            count(*moved),
            count(*events),
            time(*mean_nanos),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::Timestamp;
    use downbeat_trace::movement::TimeSlices;

    fn drawn(shared: usize, slices: usize, cells: Vec<Option<i64>>) -> String {
        let slices = TimeSlices {
            begin: Timestamp::from_nanos(0),
            length: 1_000,
            count: slices,
        };
        let movement = MovementReport {
            slices,
            shared,
            cells,
            farthest: vec![],
        };
        let names = ["a".to_owned(), "a rather long name".to_owned()];
        picture(&movement, &names)
            .map(|picture| picture.inline(1))
            .unwrap_or_default()
    }

    #[test]
    fn levels_are_powers_of_ten_either_way() {
        let levels = [0, 1, 9, -10, 99_999, 100_000, -999_999, i64::MIN].map(|by| level(by, 18));
        assert_eq!(levels, [0, 1, 1, -1, 1, 1, -1, -5]);
        let said = [0, 1, 3, 5, -5, -1].map(|level| words(level, 5));
        assert_eq!(
            said,
            [
                "not moved",
                "less than 100 ns",
                "from 1 us",
                "from 100 us",
                "back, from 100 us",
                "back, less than 100 ns"
            ]
        );
    }

    #[test]
    fn cells_have_colours_and_rows_have_names() {
        let two = drawn(
            1,
            3,
            vec![Some(0), None, Some(70), Some(-7), Some(-7), Some(-7)],
        );
        for said in [
            "\"dash\"",
            "\"heat5 c0\"",
            "\"heat4 c1\"",
            "<title>back, from 1 ns</title>",
            "&quot;rows&quot;:[&quot;a&quot;,",
            "&quot;values&quot;:&quot;;;70.00 ns;-7.000 ns;",
            ">a</text>",
            ">a rather lon…<",
            ">back, from 1 ns<",
        ] {
            assert!(two.contains(said), "no {said} in {two}");
        }
        assert_eq!(drawn(1, 3, vec![]), "");
        let none = drawn(1, 1, vec![None]);
        assert!(
            none.contains("No event is moved.") && !none.contains("NaN"),
            "{none}"
        );
    }

    #[test]
    fn the_worst_picture_is_small() {
        let mut rng = fastrand::Rng::with_seed(1);
        let cells = (0..64 * 96)
            .map(|_| Some(rng.i64(-1_000_000..1_000_000) / 10_i64.pow(rng.u32(0..7))))
            .collect();
        let drawn = drawn(1_000, 96, cells);
        assert!((100_000..300_000).contains(&drawn.len()), "{}", drawn.len());
        assert!(drawn.contains(">4000</text>") && drawn.contains("1,000 locations in a row"));
    }
}
