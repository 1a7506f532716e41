//! Errors against the true times, before and after, over time.

use crate::page::HtmlTable;
use crate::page::axis::Axis;
use crate::page::frame::Frame;
use crate::page::style;
use crate::page::svg::Picture;
use crate::trace::{TruthReport, TruthStages};
use crate::units::{TimeUnit, time};

const STAGES: [&str; 2] = ["pre-synchronized", "corrected"];

/// Draws the picture; `None` if there are no events.
pub(super) fn picture(
    TruthStages {
        slices, over_time, ..
    }: &TruthStages,
) -> Option<Picture> {
    let there = || {
        (0..)
            .map(f64::from)
            .zip(over_time)
            .filter_map(|(slice, errors)| Some((slice, (*errors)?)))
    };
    let largest = there().flat_map(|(_, errors)| errors).reduce(f64::max)?;
    let length = slices.length as f64;
    let x = Axis::times_to("time in the trace", length * slices.count as f64, 6);
    let unit = TimeUnit::for_nanos(largest);
    let y = Axis::from_zero(
        &format!("error without bias, {}", unit.name),
        largest,
        unit.nanos,
        5,
    );
    let mut frame = Frame::new(x, y, &STAGES.map(str::to_owned), 190.0);
    for series in 0..STAGES.len() {
        let places: Vec<_> = there()
            .map(|(slice, errors)| frame.at(((slice + 0.5) * length, errors[series])))
            .collect();
        frame.canvas.path(&style::line(series), &places);
        let errors = there().map(|(slice, errors)| (slice, errors[series]));
        for (place, (slice, error)) in places.iter().zip(errors) {
            let [begin, end] = [slice, slice + 1.0].map(|slices| time(slices * length));
            let text = format!("{}, {begin} to {end}: {}", STAGES[series], time(error));
            frame
                .canvas
                .titled(&text, |canvas| canvas.disc("hit", *place, 4.0));
        }
        // Markers at some points, to tell the lines apart.
        places
            .iter()
            .skip(4 * series)
            .step_by(12)
            .for_each(|place| frame.canvas.marker(series, *place));
    }
    let most = |series: usize| {
        there()
            .map(|(_, errors)| errors[series])
            .fold(0.0, f64::max)
    };
    let said = |(series, stage): (usize, &str)| {
        format!(
            "{stage}: at most {} in a slice of time.",
            time(most(series))
        )
    };
    let description = STAGES
        .into_iter()
        .enumerate()
        .map(said)
        .collect::<Vec<_>>()
        .join(" ");
    Some(frame.finish("Error against the truth, over time".to_owned(), description))
}

pub(super) fn table(
    TruthStages {
        pre_synchronized,
        corrected,
        ..
    }: &TruthStages,
) -> HtmlTable {
    let mut table = HtmlTable::of_numbers(
        "Error against the truth",
        ["times", "bias", "without bias", "at most, without bias"],
    );
    for (stage, found) in STAGES.into_iter().zip([pre_synchronized, corrected]) {
        let TruthReport {
            bias_nanos,
            centred_nanos,
            largest_centred_nanos,
        } = found;
        let cells = [bias_nanos, centred_nanos, largest_centred_nanos].map(|nanos| time(*nanos));
        table.row([stage.to_owned()].into_iter().chain(cells));
    }
    table
}
