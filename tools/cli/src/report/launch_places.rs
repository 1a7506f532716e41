//! Launches beside each other on a horizontal axis.

use downbeat_common::page::axis::round_step;
use downbeat_common::page::frame::Frame;
use downbeat_common::page::svg::TextAnchor;

/// Launch of an experiment at a place of the axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchPlace {
    /// Index of the experiment.
    pub(crate) series: usize,
    /// Number of the launch, from 1.
    pub(crate) launch: usize,
}

/// Labels the places, which are one unit wide, with the numbers of the launches, and draws borders between experiments.
pub(crate) fn label(frame: &mut Frame, places: &[LaunchPlace]) {
    number_launches(frame, places);
    for (place, pair) in (1..).zip(places.windows(2)) {
        if pair[0].series != pair[1].series {
            frame.vertical("border", f64::from(place));
        }
    }
}

/// Draws the marker of each experiment above the middle of its places.
pub(crate) fn mark(frame: &mut Frame, places: &[LaunchPlace]) {
    let mut before = 0;
    for experiment in places.chunk_by(|one, two| one.series == two.series) {
        let x = frame.at_x(before as f64 + 0.5 * experiment.len() as f64);
        let y = frame.top() - 8.0;
        frame.canvas.marker(experiment[0].series, (x, y));
        before += experiment.len();
    }
}

fn number_launches(frame: &mut Frame, places: &[LaunchPlace]) {
    /// Width of a number with the space around it.
    const NUMBER: f64 = 20.0;
    let slot = frame.at_x(1.0) - frame.at_x(0.0);
    let neighbours = places
        .windows(2)
        .filter(|pair| pair[0].series == pair[1].series);
    let apart = neighbours.map(|pair| pair[1].launch - pair[0].launch);
    let every = round_step(NUMBER / slot * apart.min().unwrap_or(1) as f64);
    for (place, LaunchPlace { launch, .. }) in places.iter().enumerate() {
        if launch.is_multiple_of(every) || (*launch == 1 && every > 2) {
            let (x, bottom) = (frame.at_x(place as f64 + 0.5), frame.bottom());
            frame.canvas.line("axis", (x, bottom), (x, bottom + 4.0));
            let at = (x, bottom + 17.0);
            let text = launch.to_string();
            frame.canvas.text("", at, TextAnchor::Middle, &text);
        }
    }
}
