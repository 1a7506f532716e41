//! Page with the timeline and the wait states.

use downbeat_common::Failure;
use downbeat_common::page::Page;
use downbeat_common::page::svg::Picture;
use downbeat_common::units::{counted, time};
use serde_json::to_string;

use super::calls;
use super::data::TimelineData;
use super::layout::Layout;
use super::panel::Panel;
use crate::trace::waits::{WaitReport, add_waits};

/// Script that zooms the timeline and names what is under the pointer.
const SCRIPT: &str = include_str!("script.js");

/// Builds the page.
pub(super) fn page(
    panels: &[Panel],
    (picture, layout): (Picture, Layout),
    waits: &WaitReport,
) -> Result<Page, Failure> {
    let mut page = Page::default();
    let Some(main) = panels.first() else {
        return Ok(page);
    };
    page.note(&format!("{}.", main.walked.contents()));
    let damage = panels.iter().map(|panel| panel.walked.archive.damage());
    let left_out = main.walked.left_out() + &damage.collect::<String>();
    page.notes(left_out.lines());
    page.note(&interval(main));
    panels
        .iter()
        .for_each(|panel| notes(&mut page, panel, panels.len() > 1));
    page.pictures([("timeline", Some(picture))]);
    page.table("The selected call, by each clock", &calls::table(panels));
    add_waits(&mut page, waits);
    let data = to_string(&TimelineData::new(panels, &layout)).map_err(Failure::run)?;
    page.script(SCRIPT, "timeline", &data);
    Ok(page)
}

/// Tells the interval that is shown.
fn interval(panel: &Panel) -> String {
    let [low, high] = panel.viewed.interval;
    let [first, last] = panel.viewed.span;
    let [shown, all] = [high - low, last - first].map(|span| time(span.as_nanos() as f64));
    let rest = match [low, high] == [first, last] {
        true => "",
        false => " Lost time and times in MPI are of the whole trace.",
    };
    format!("From {low} to {high}: {shown} of {all}.{rest}")
}

/// Explains a panel.
fn notes(page: &mut Page, panel: &Panel, is_one_of_many: bool) {
    let viewed = &panel.viewed;
    let of = match is_one_of_many {
        true => format!("{}: ", panel.label),
        false => String::new(),
    };
    let drawn = viewed.rows.iter().map(|row| row.locations);
    if !viewed.is_detailed {
        let each = match drawn.clone().max() {
            None | Some(1) => String::new(),
            Some(most) => format!(" Each row shows {most} locations."),
        };
        page.note(&format!(
            "{of}There are too many calls to draw each: every bar shows the region that takes most of its time, the darker the \
             more.{each} A shorter interval shows single calls: see --from, --to and --call."
        ));
    }
    let drawn: u64 = drawn.map(u64::from).sum();
    let all = panel.walked.names.locations().len() as u64;
    if drawn < all {
        let drawn = format!("{of}{drawn} of {all} locations are drawn, evenly chosen.");
        page.note(&drawn);
    }
    if viewed.left_out > 0 {
        let messages = counted(viewed.left_out as usize, "message is", "messages are");
        page.note(&format!(
            "{of}{messages} not drawn; a shorter interval has fewer."
        ));
    }
}
