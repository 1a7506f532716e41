//! Violations at every stage: figure 5 and table 3 of Becker et al. (2009).

use downbeat_trace::check::RelationCounts;

use crate::Table;
use crate::output::percent;
use crate::page::Page;
use crate::page::style;
use crate::page::svg::{Canvas, LINE, Picture, TextAnchor, WIDTH, text_width};
use crate::trace::Violations;
use crate::units::{count, joined};

/// Name of a stage and its violations.
pub(super) type ViolationStage<'a> = (&'static str, &'a Violations);

/// Height of a bar.
const BAR: f64 = 12.0;

/// Titles of all groups of bars.
const KINDS: [&str; 5] = [
    "messages reversed: received before they were sent",
    "messages violated: received too early for their latency",
    "collective pairs reversed: left before another entered",
    "collective pairs violated: left too early for the latency",
    "receives and exits moved beyond the events before them",
];

/// Group of bars with its title.
type BarGroup<'a> = (&'static str, Vec<Bar<'a>>);

/// Share of the dependences of a stage.
struct Bar<'a> {
    stage: &'a str,
    series: usize,
    number: u64,
    of: u64,
}

impl Bar<'_> {
    fn share(&self) -> f64 {
        self.number as f64 / self.of.max(1) as f64
    }
}

/// Returns the bars of each kind of violation of which there can be some; `explicit` is
/// the number of receives and exits that were corrected explicitly, and of all.
fn bar_groups<'a>(stages: &[ViolationStage<'a>], explicit: Option<[u64; 2]>) -> Vec<BarGroup<'a>> {
    let mut groups: Vec<BarGroup<'_>> = KINDS.map(|kind| (kind, vec![])).into();
    for (series, (stage, found)) in stages.iter().enumerate() {
        let kinds = [found.messages, found.collectives];
        let counts = kinds.map(|of| [[of.reversed, of.total], [of.violated, of.total]]);
        for ((_, bars), &[number, of]) in groups.iter_mut().zip(counts.as_flattened()) {
            bars.push(Bar {
                stage,
                series,
                number,
                of,
            });
        }
    }
    groups[4].1.extend(explicit.map(|[number, of]| Bar {
        stage: "corrected explicitly",
        series: stages.len(),
        number,
        of,
    }));
    groups.retain(|(_, bars)| bars.iter().any(|bar| bar.of > 0));
    groups
}

pub(super) fn picture(
    stages: &[ViolationStage<'_>],
    explicit: Option<[u64; 2]>,
) -> Option<Picture> {
    let groups = bar_groups(stages, explicit);
    let bars = || groups.iter().flat_map(|(_, bars)| bars);
    let most = bars().map(Bar::share).fold(f64::MIN_POSITIVE, f64::max);
    let widest = bars().map(|bar| text_width(bar.stage)).reduce(f64::max)?;
    let margin = widest + 18.0;
    let width = WIDTH - margin - 4.0 - text_width("0.00e-99 %");
    let mut canvas = Canvas::default();
    let mut y = 0.0;
    for (what, bars) in &groups {
        canvas.text("quiet", (2.0, y + LINE - 4.0), TextAnchor::Start, what);
        y += LINE;
        canvas.line("axis", (margin, y), (margin, y + LINE * bars.len() as f64));
        for bar in bars {
            let length = width * bar.share() / most;
            let below = y + LINE - 5.0;
            canvas.text("", (margin - 6.0, below), TextAnchor::End, bar.stage);
            let text = format!("{}: {} of {}", bar.stage, count(bar.number), count(bar.of));
            canvas.titled(&text, |canvas| {
                canvas.rectangle("hit", (margin, y), (WIDTH - margin, LINE));
                let class = format!("m {}", style::colour(bar.series));
                canvas.rectangle(&class, (margin, y + 3.0), (length, BAR));
            });
            let at = (margin + length + 6.0, below);
            canvas.text("", at, TextAnchor::Start, &percent(bar.share()));
            y += LINE;
        }
        y += 7.0;
    }
    let title = match stages.len() {
        1 => "Violations",
        _ => "Violations at every stage",
    };
    let description = joined(groups.iter().map(describe), " ");
    Some(Picture::new(title.to_owned(), description, y, canvas))
}

fn describe((what, bars): &BarGroup<'_>) -> String {
    let bars = bars.iter();
    let bars = bars.map(|bar| format!("{} {} of {}", bar.stage, bar.number, bar.of));
    format!("{what}: {}.", joined(bars, ", "))
}

pub(super) fn table(stages: &[ViolationStage<'_>]) -> Table {
    let part = |number: u64, of: u64| {
        let share = percent(number as f64 / of.max(1) as f64);
        format!("{} ({share})", count(number))
    };
    let reversed = |of: RelationCounts| part(of.reversed, of.total);
    let violated = |of: RelationCounts| part(of.violated, of.total);
    Table::of(stages)
        .column("times", |(stage, _)| (*stage).to_owned())
        .column("messages", |(_, found)| count(found.messages.total))
        .column("reversed", |(_, found)| reversed(found.messages))
        .column("by, mean", |(_, found)| found.reversal()[0].clone())
        .column("at most", |(_, found)| found.reversal()[1].clone())
        .column("violated", |(_, found)| violated(found.messages))
        .column("collective pairs", |(_, found)| {
            count(found.collectives.total)
        })
        .column("reversed", |(_, found)| reversed(found.collectives))
        .column("violated", |(_, found)| violated(found.collectives))
        .column("order lost", |(_, found)| count(found.disordered()))
        .table()
}

/// Lists the first violations of each stage.
pub(super) fn faults(page: &mut Page, stages: &[ViolationStage<'_>]) {
    for (stage, found) in stages.iter().filter(|(_, found)| !found.faults.is_empty()) {
        page.folded(&format!("The first violations, {stage}"), |page| {
            let table = Table::of(&found.faults).column("what", ToString::to_string);
            let caption = format!("The first of {}", count(found.count()));
            page.text_table(&caption, &table.table());
        });
    }
}
