//! Conditions of the machine over time: one picture for each, with a point for each
//! launch.

use std::time::SystemTime;

use downbeat_common::machine::parse_time;
use downbeat_common::page::axis::Axis;
use downbeat_common::page::scatter::{self, ScatterPoint};
use downbeat_common::page::svg::Picture;
use downbeat_common::units;
use downbeat_records::analysis::LaunchConditions;

use super::measured::Experiments;

/// A launch of one of the experiments.
struct StartedLaunch<'a> {
    /// Index of the experiment.
    series: usize,
    /// Experiment, number and start.
    name: String,
    /// Time from the start of the first launch of all experiments, in nanoseconds.
    after: f64,
    conditions: &'a LaunchConditions,
}

/// Condition that a picture shows.
struct ShownCondition {
    title: &'static str,
    /// Name of the file of the picture.
    file: &'static str,
    /// Vertical axis from 0 to a value.
    axis: fn(f64) -> Axis,
    /// Values of a launch, each with its text.
    values: fn(&LaunchConditions) -> Vec<(f64, String)>,
}

const SHOWN: [ShownCondition; 4] = [
    ShownCondition {
        title: "Round trips between neighbouring ranks",
        file: "conditions-round-trips",
        axis: |high| Axis::times_to("longest round trip", 1.05 * high, 5),
        values: |conditions| {
            let named = ["at the start", "at the end"].into_iter();
            let found = conditions.round_trips.into_iter().zip(named);
            let found = found.filter_map(|(nanos, name)| Some((nanos?, name)));
            found
                .map(|(nanos, name)| (nanos, format!("{} {name}", units::time(nanos))))
                .collect()
        },
    },
    ShownCondition {
        title: "Late calls",
        file: "conditions-late",
        axis: |high| shares("late calls", high),
        values: |conditions| share(conditions.late),
    },
    ShownCondition {
        title: "Load of each processor",
        file: "conditions-load",
        axis: |high| Axis::from_zero("load", high, 1.0, 5),
        values: |conditions| {
            let load = conditions.load.into_iter();
            load.map(|load| (load, format!("{load:.2}"))).collect()
        },
    },
    ShownCondition {
        title: "Time that the host took",
        file: "conditions-stolen",
        axis: |high| shares("stolen time", high),
        values: |conditions| share(conditions.stolen),
    },
];

fn shares(label: &str, high: f64) -> Axis {
    Axis::from_zero(&format!("{label}, %"), high, 0.01, 5)
}

fn share(found: Option<f64>) -> Vec<(f64, String)> {
    let found = found.into_iter();
    found.map(|share| (share, units::share(share))).collect()
}

/// Draws each condition that any record states, for launches whose start is known;
/// returns pictures with the names of their files.
pub(crate) fn pictures(experiments: &Experiments) -> Vec<(&'static str, Option<Picture>)> {
    let launches = started_launches(experiments);
    let latest = launches.iter().map(|launch| launch.after);
    // Starts are known to a second.
    let latest = latest.fold(1e9, f64::max);
    let names = experiments.names();
    let drawn = SHOWN.iter().map(|shown| {
        let points = launches.iter().flat_map(|launch| {
            let values = (shown.values)(launch.conditions).into_iter();
            values.map(|(value, text)| ScatterPoint {
                series: launch.series,
                at: (launch.after, value),
                interval: None,
                text: format!("{}: {text}", launch.name),
            })
        });
        let points: Vec<ScatterPoint> = points.collect();
        let highest = points.iter().map(|point| point.at.1).fold(0.0, f64::max);
        let axes = [
            Axis::times_to("start of the launch", 1.02 * latest, 5),
            (shown.axis)(highest),
        ];
        (
            shown.file,
            scatter::picture(shown.title, axes, &names, &points),
        )
    });
    drawn.collect()
}

/// Returns the launches whose start is known.
fn started_launches(experiments: &Experiments) -> Vec<StartedLaunch<'_>> {
    let mut launches = Vec::new();
    for (series, measured) in experiments.all.iter().enumerate() {
        let all = measured.launches.iter().zip(&measured.analysis.conditions);
        for (number, ((_, launch), conditions)) in (1..).zip(all) {
            if let Some(started) = launch.facts.get("started").and_then(parse_time) {
                let name = format!("{}, launch {number}", measured.name);
                launches.push((started, series, name, conditions));
            }
        }
    }
    let first = launches.iter().map(|(started, ..)| *started).min();
    let since_first = |started: SystemTime| {
        let elapsed = first.and_then(|first| started.duration_since(first).ok());
        elapsed.map_or(0.0, |elapsed| elapsed.as_nanos() as f64)
    };
    let launches = launches.into_iter();
    let launches = launches.map(|(started, series, name, conditions)| {
        let after = since_first(started);
        StartedLaunch {
            series,
            name: format!("{name}, after {}", units::time(after)),
            after,
            conditions,
        }
    });
    launches.collect()
}
