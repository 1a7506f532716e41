//! Ranks of a program, each in the colour of its group.

use std::collections::BTreeMap;

use downbeat_regions::{EventReport, HistogramGroup, RankPlace};

use downbeat_common::page::axis::linear_ticks;
use downbeat_common::page::bins::BinUnit;
use downbeat_common::page::rectangles::{
    DASH, Grid, Rectangle, borders, dash, hatching, legend, outline, rectangles,
};
use downbeat_common::page::style;
use downbeat_common::page::svg::{Canvas, LINE, Picture, TextAnchor, WIDTH, text_width};
use downbeat_common::units::{count, counted};

/// Maximum number of cells; if there are more ranks, several share one.
const MOST_CELLS: u32 = 128 * 128;
/// Maximum number of ranks in one row.
const MOST_IN_ONE_ROW: u32 = 64;
/// Maximum number of ranks that are drawn: a report of a few bytes may claim to have 2^32.
const MOST_RANKS: u32 = 1 << 24;
/// Number of colours: further groups are darker, and those beyond twice the number look the same.
const COLOURS: usize = 6;
/// Minimum width of cells that all have borders; narrower ones have them only where contents differ.
const BORDERED: f64 = 5.0;

/// CSS class of the colour of a group; group 0 has the longest events.
pub(super) fn colour(group: usize) -> String {
    style::colour(group % COLOURS)
}

/// CSS classes of the cells of a group.
pub(super) fn class(group: usize) -> String {
    match group / COLOURS {
        0 => format!("m {}", colour(group)),
        1 => format!("deep {}", colour(group)),
        _ => "rest".to_owned(),
    }
}

/// Content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RankCell {
    Group(usize),
    Without,
    Unlisted,
}

/// Draws the ranks; `None` if all are in one group, or there are too many.
pub(super) fn picture(
    name: &str,
    events: &EventReport,
    ranks: u32,
    unit: BinUnit,
) -> Option<Picture> {
    if ranks > MOST_RANKS {
        return None;
    }
    let shared = ranks.div_ceil(MOST_CELLS).max(1);
    let cells = shared_cells(&rank_cells(events, ranks), shared as usize);
    let counts = count_cells(&cells);
    if counts.len() < 2 {
        return None;
    }
    let mut canvas = Canvas::default();
    let top = legend(&mut canvas, classes(&counts, events, unit), WIDTH) + 8.0;
    let grid = rank_grid(cells.len(), top, ranks, shared);
    grid.draw(&mut canvas, |canvas| {
        for (cell, rectangles) in rectangles(&cells, grid.columns) {
            canvas.titled(&state(cell, events, unit), |canvas| {
                draw(canvas, &grid, cell, &rectangles);
            });
        }
    });
    let lines = match grid.width < BORDERED {
        true => borders(&cells, grid.columns, |cell| {
            matches!(cell, RankCell::Group(_))
        }),
        false => grid.lines(),
    };
    grid.cut(&mut canvas, &lines);
    label_ranks(&mut canvas, &grid);
    let title = format!("{name}: the group of each rank");
    Some(Picture::new(
        title,
        describe(events, ranks, unit),
        grid.bottom() + 22.0 + LINE,
        canvas,
    ))
}

fn rank_cells(events: &EventReport, ranks: u32) -> Vec<RankCell> {
    let numbers: BTreeMap<_, _> = events
        .groups
        .iter()
        .enumerate()
        .map(|(i, group)| (group.fullest, i))
        .collect();
    let cell = |place| match place {
        RankPlace::Group(fullest) => numbers
            .get(&fullest)
            .map_or(RankCell::Unlisted, |number| RankCell::Group(*number)),
        RankPlace::Without => RankCell::Without,
        RankPlace::Unlisted => RankCell::Unlisted,
    };
    events.places(ranks).into_iter().map(cell).collect()
}

/// Merges ranks that share a cell: it shows the content that is rarest among all ranks.
fn shared_cells(ranks: &[RankCell], shared: usize) -> Vec<RankCell> {
    let counts = count_cells(ranks);
    let rarest = |ranks: &[RankCell]| {
        ranks
            .iter()
            .copied()
            .min_by_key(|cell| counts.get(cell).copied())
    };
    ranks.chunks(shared).filter_map(rarest).collect()
}

/// Counts the cells of each content.
fn count_cells(cells: &[RankCell]) -> BTreeMap<RankCell, usize> {
    let mut counts = BTreeMap::new();
    cells
        .iter()
        .for_each(|cell| *counts.entry(*cell).or_default() += 1);
    counts
}

/// Returns the positions of cells below `top`.
fn rank_grid(cells: usize, top: f64, ranks: u32, shared: u32) -> Grid {
    let one_row = cells <= MOST_IN_ONE_ROW as usize;
    let columns = match cells {
        few if one_row => few.max(1),
        ..=1_024 => 64,
        _ => 128,
    };
    let rows = cells.div_ceil(columns).max(1);
    let (left, height) = match one_row {
        true => (6.0, 44.0),
        false => (
            text_width(&ranks.to_string()) + 10.0,
            (290.0 / rows as f64).min(14.0),
        ),
    };
    Grid {
        left,
        top,
        width: ((WIDTH - 12.0 - left) / columns as f64).min(28.0),
        height,
        columns,
        rows,
        shared,
        ranks,
    }
}

/// Draws the cells of a content.
fn draw(canvas: &mut Canvas, grid: &Grid, cell: RankCell, rectangles: &[Rectangle]) {
    let (mut words, mut inside) = (String::new(), String::new());
    for rectangle in rectangles {
        let drawn = grid.place(rectangle);
        words += &outline(drawn);
        match cell {
            RankCell::Group(_) => {}
            RankCell::Unlisted => inside += &hatching(drawn[0], drawn[1]),
            RankCell::Without => {
                for row in 0..rectangle.size.1 {
                    let of_row = Rectangle {
                        at: (rectangle.at.0, rectangle.at.1 + row),
                        size: (rectangle.size.0, 1),
                    };
                    inside += &outline(dash(grid.place(&of_row)));
                }
            }
        }
    }
    match cell {
        RankCell::Group(group) => canvas.raw_path(&class(group), &words),
        RankCell::Without => {
            canvas.raw_path("hit", &words);
            canvas.raw_path(DASH, &inside);
        }
        RankCell::Unlisted => {
            canvas.raw_path("hit", &words);
            canvas.raw_path("hatch", &(words + &inside));
        }
    }
}

/// Writes the limits of the bin with most events of a group.
fn fullest(group: usize, events: &EventReport, unit: BinUnit) -> String {
    let group = events.groups.get(group);
    group.map_or_else(String::new, |group| unit.span(group.fullest))
}

/// Describes the content of a cell.
fn state(cell: RankCell, events: &EventReport, unit: BinUnit) -> String {
    match cell {
        RankCell::Group(group) => format!(
            "group {}, most events of {}",
            group + 1,
            fullest(group, events, unit)
        ),
        RankCell::Without => "without it".to_owned(),
        RankCell::Unlisted => "not listed".to_owned(),
    }
}

/// Draws the numbers of some ranks: below a single row, or at the beginning of rows.
fn label_ranks(canvas: &mut Canvas, grid: &Grid) {
    let Grid {
        shared,
        ranks,
        rows,
        ..
    } = *grid;
    let bottom = grid.bottom();
    let in_each_row = grid.columns * shared as usize;
    let mut text = |at, anchor, text: &str| canvas.text("", at, anchor, text);
    let (label, below) = if rows == 1 {
        let last = f64::from(ranks.saturating_sub(1));
        let ticks = linear_ticks(0.0, last.max(0.5), 8).into_iter();
        for (at, tick) in ticks.filter(|(at, _)| at.fract() == 0.0) {
            let x = grid.left + (at + 0.5) * grid.width;
            let tick = tick.split('.').next().unwrap_or_default();
            text((x.max(8.0), bottom + 16.0), TextAnchor::Middle, tick);
        }
        ("rank".to_owned(), 16.0 + LINE)
    } else {
        let powers = (0..).map(|power| 1_u32 << power);
        let mut high_enough = powers.filter(|every| f64::from(*every) * grid.height >= LINE);
        let every = high_enough.next().unwrap_or(1) as usize;
        for row in (0..rows).step_by(every) {
            let y = grid.top + (row as f64 + 0.5) * grid.height + 4.5;
            let first = (row * in_each_row).to_string();
            text((grid.left - 6.0, y), TextAnchor::End, &first);
        }
        let each = match shared {
            1 => String::new(),
            _ => format!("; {shared} ranks share a cell, which shows the rarest"),
        };
        let ranks = counted(in_each_row, "rank", "ranks");
        (
            format!("{ranks} in each row, from left to right{each}"),
            18.0,
        )
    };
    let middle = 0.5 * (grid.left + WIDTH - 12.0);
    canvas.text(
        "quiet",
        (middle, bottom + below),
        TextAnchor::Middle,
        &label,
    );
}

/// Returns classes and labels for the legend.
fn classes(
    counts: &BTreeMap<RankCell, usize>,
    events: &EventReport,
    unit: BinUnit,
) -> Vec<(String, String)> {
    let mut all = vec![];
    let mut rest = false;
    for cell in counts.keys() {
        all.push(match cell {
            RankCell::Group(group) if *group >= 2 * COLOURS => {
                if rest {
                    continue;
                }
                rest = true;
                (class(*group), format!("{} and beyond", group + 1))
            }
            RankCell::Group(group) => (
                class(*group),
                format!("{}: {}", group + 1, fullest(*group, events, unit)),
            ),
            RankCell::Without => (DASH.to_owned(), "without it".to_owned()),
            RankCell::Unlisted => ("hatch".to_owned(), "not listed".to_owned()),
        });
    }
    all
}

fn describe(events: &EventReport, ranks: u32, unit: BinUnit) -> String {
    let describe_group = |(i, group): (usize, &HistogramGroup)| {
        let ranks = counted(group.ranks.len() as usize, "rank", "ranks");
        format!(
            "Group {}, most events of {}: {ranks}.",
            i + 1,
            unit.span(group.fullest)
        )
    };
    let mut sentences: Vec<String> = events
        .groups
        .iter()
        .enumerate()
        .map(describe_group)
        .collect();
    let without = ranks.saturating_sub(events.ranks.len());
    if without > 0 {
        sentences.push(format!(
            "Without it: {} of {}.",
            count(without.into()),
            counted(ranks as usize, "rank", "ranks")
        ));
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::histogram::DecimalBin;
    use downbeat_regions::{RankCount, RankEvent, RankSet, RankTotal};
    use downbeat_timers::Duration;

    fn events(groups: &[(u64, RankSet)], all: RankSet) -> EventReport {
        let (count, event) = (
            RankCount { count: 1, rank: 0 },
            RankEvent {
                length: 1,
                rank: 0,
                thread: 0,
                number: 1,
            },
        );
        let total = RankTotal {
            total: 1,
            events: 1,
            rank: 0,
        };
        let group = |(length, ranks): &(u64, RankSet)| HistogramGroup {
            fullest: DecimalBin::containing(*length),
            ranks: ranks.clone(),
            bins: vec![],
        };
        EventReport {
            ranks: all,
            most: count,
            fewest: count,
            count: 1,
            longest: event,
            second_longest: None,
            shortest: event,
            longest_average: total,
            shortest_average: total,
            greatest_total: total,
            least_total: total,
            total: 1,
            threads: 1,
            all_threads: 1,
            greatest_thread: None,
            least_thread: None,
            by_thread: vec![],
            groups: groups.iter().map(group).collect(),
        }
    }

    fn drawn(events: &EventReport, ranks: u32) -> String {
        let picture = picture(
            "solve",
            events,
            ranks,
            BinUnit::new(Duration::from_nanos(1)),
        );
        picture.map(|picture| picture.inline(1)).unwrap_or_default()
    }

    #[test]
    fn a_shared_cell_shows_the_rarest_content() {
        let mut ranks = vec![RankCell::Group(0); 40];
        (ranks[7], ranks[39]) = (RankCell::Without, RankCell::Group(3));
        let cells = shared_cells(&ranks, 16);
        assert_eq!(
            cells,
            [RankCell::Without, RankCell::Group(0), RankCell::Group(3)]
        );
    }

    #[test]
    fn ranks_without_events_and_unlisted_ranks_are_drawn() {
        let alone = events(&[(50, (0..9).collect())], (0..9).collect());
        assert_eq!(drawn(&alone, 9), "", "one group");
        let some = drawn(&alone, 12);
        assert!(
            some.contains("class=\"dash\"") && some.contains(">without it</text>"),
            "{some}"
        );
        assert!(
            !some.contains("class=\"hatch\"") && some.contains("Without it: 3 of 12 ranks."),
            "{some}"
        );
        let squares = || (0..1_200_u32).map(|i| i * i);
        let cut = drawn(
            &events(&[(50, squares().collect())], squares().collect()),
            1_440_000,
        );
        assert!(
            cut.contains("class=\"hatch\"") && cut.contains(">not listed</text>"),
            "{cut}"
        );
        assert!(cut.contains("88 ranks share a cell"), "{cut}");
        assert_eq!(drawn(&alone, u32::MAX), "", "too many ranks");
    }

    #[test]
    fn the_picture_of_many_ranks_is_small() {
        let every =
            |rest: u32| -> RankSet { (0..16_384).filter(|rank| rank % 4 == rest).collect() };
        let groups = [(50, every(0)), (40, every(1)), (7, every(2)), (6, every(3))];
        let striped = drawn(&events(&groups, (0..16_384).collect()), 16_384);
        assert!(striped.len() < 10_000, "{}", striped.len());
        // Twelve groups have a colour of their own.
        let many: Vec<_> = (0..30)
            .filter_map(|i| {
                Some((
                    DecimalBin::from_index(30 - i)?.low(),
                    RankSet::single(i as u32),
                ))
            })
            .collect();
        let many = drawn(&events(&many, (0..30).collect()), 30);
        assert!(
            many.contains("class=\"deep c5\"") && many.contains(">13 and beyond</text>"),
            "{many}"
        );
    }
}
