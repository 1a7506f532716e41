//! Violations at every stage: figure 5 and table 3 of Becker et al. (2009).

use crate::page::style;
use crate::page::svg::{Canvas, LINE, Picture, TextAnchor, WIDTH, text_width};
use crate::page::{HtmlTable, Page};
use crate::trace::{RelationsReport, Violations, percent};
use crate::units::count;

/// Name of a stage and its violations.
pub(super) type ViolationStage<'a> = (&'static str, &'a Violations);

/// Height of a bar.
const BAR: f64 = 12.0;

/// Label and count of each kind of violation.
const KINDS: [(&str, ViolationShare); 4] = [
    (
        "messages reversed: received before they were sent",
        |found| (found.messages.reversed, found.messages.total),
    ),
    (
        "messages violated: received too early for their latency",
        |found| (found.messages.violated, found.messages.total),
    ),
    (
        "collective pairs reversed: left before another entered",
        |found| (found.collectives.reversed, found.collectives.total),
    ),
    (
        "collective pairs violated: left too early for the latency",
        |found| (found.collectives.violated, found.collectives.total),
    ),
];

type ViolationShare = fn(&Violations) -> (u64, u64);

/// Title of a group of bars; for each bar its stage, its series, the count and the total.
type BarGroup<'a> = (&'a str, Vec<(&'a str, usize, (u64, u64))>);

pub(super) fn picture(
    stages: &[ViolationStage<'_>],
    corrected: Option<(usize, usize)>,
) -> Option<Picture> {
    let bars = |share: &ViolationShare| {
        (0..)
            .zip(stages)
            .map(|(i, (stage, found))| (*stage, i, share(found)))
            .collect()
    };
    let mut groups: Vec<BarGroup<'_>> = KINDS
        .iter()
        .map(|(what, share)| (*what, bars(share)))
        .collect();
    groups.extend(corrected.map(|(corrected, total)| {
        let bar = (
            "corrected explicitly",
            stages.len(),
            (corrected as u64, total as u64),
        );
        (
            "receives and exits moved beyond the events before them",
            vec![bar],
        )
    }));
    groups.retain(|(_, bars)| bars.iter().any(|(_, _, (_, total))| *total > 0));
    if groups.is_empty() {
        return None;
    }
    let share = |(number, total): (u64, u64)| number as f64 / total.max(1) as f64;
    let all = || groups.iter().flat_map(|(_, bars)| bars);
    let most = all().map(|(_, _, found)| share(*found)).fold(0.0, f64::max);
    let margin = all()
        .map(|(stage, ..)| text_width(stage))
        .fold(0.0, f64::max)
        + 18.0;
    let width = WIDTH - margin - 4.0 - text_width("0.00e-99 %");
    let mut canvas = Canvas::default();
    let mut y = 0.0;
    for (what, bars) in &groups {
        canvas.text("quiet", (2.0, y + LINE - 4.0), TextAnchor::Start, what);
        y += LINE;
        canvas.line("axis", (margin, y), (margin, y + LINE * bars.len() as f64));
        for (stage, series, found) in bars {
            let length = if most > 0.0 {
                width * share(*found) / most
            } else {
                0.0
            };
            canvas.text("", (margin - 6.0, y + LINE - 5.0), TextAnchor::End, stage);
            let (number, of) = *found;
            let text = format!("{stage}: {} of {}", count(number), count(of));
            canvas.titled(&text, |canvas| {
                canvas.rectangle("hit", (margin, y), (WIDTH - margin, LINE));
                let class = format!("m {}", style::colour(*series));
                canvas.rectangle(&class, (margin, y + 3.0), (length, BAR));
            });
            let text = percent(share(*found));
            canvas.text(
                "",
                (margin + length + 6.0, y + LINE - 5.0),
                TextAnchor::Start,
                &text,
            );
            y += LINE;
        }
        y += 7.0;
    }
    let title = if stages.len() > 1 {
        "Violations at every stage"
    } else {
        "Violations"
    };
    Some(Picture::new(title.to_owned(), describe(&groups), y, canvas))
}

fn describe(groups: &[BarGroup<'_>]) -> String {
    let bar =
        |(stage, _, (number, of)): &(&str, usize, (u64, u64))| format!("{stage} {number} of {of}");
    let group = |(what, bars): &BarGroup<'_>| {
        format!(
            "{what}: {}.",
            bars.iter().map(bar).collect::<Vec<_>>().join(", ")
        )
    };
    groups.iter().map(group).collect::<Vec<_>>().join(" ")
}

pub(super) fn table(stages: &[ViolationStage<'_>]) -> HtmlTable {
    let headings = [
        "times",
        "messages",
        "reversed",
        "by, mean",
        "at most",
        "violated",
        "collective pairs",
        "reversed",
        "violated",
        "order lost",
    ];
    let mut table = HtmlTable::of_numbers("Violations", headings);
    let part = |number: u64, of: u64| {
        format!(
            "{} ({})",
            count(number),
            percent(number as f64 / of.max(1) as f64)
        )
    };
    let cells = |RelationsReport {
                     total,
                     reversed,
                     violated,
                 }: &RelationsReport| {
        [
            count(*total),
            part(*reversed, *total),
            part(*violated, *total),
        ]
    };
    for (stage, found) in stages {
        let [messages, reversed, violated] = cells(&found.messages);
        let [mean, largest] = found.reversal();
        let of_messages = [messages, reversed, mean, largest, violated];
        let row = [(*stage).to_owned()].into_iter().chain(of_messages);
        let row = row.chain(cells(&found.collectives));
        table.row(row.chain([count(found.disordered())]));
    }
    table
}

/// Lists the first violations of each stage.
pub(super) fn faults(page: &mut Page, stages: &[ViolationStage<'_>]) {
    for (stage, found) in stages.iter().filter(|(_, found)| !found.faults.is_empty()) {
        page.folded(&format!("The first violations, {stage}"), |page| {
            let mut table =
                HtmlTable::of_text(&format!("The first of {}", count(found.count())), ["what"]);
            found.faults.iter().for_each(|fault| table.row([fault]));
            page.table(&table);
        });
    }
}
