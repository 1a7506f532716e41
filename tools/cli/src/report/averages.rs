//! Averages of launches with their intervals, beside that of the experiment.

use downbeat_common::page::axis::{Axis, range, round_step};
use downbeat_common::page::frame::Frame;
use downbeat_common::page::interval::IntervalTime;
use downbeat_common::page::style;
use downbeat_common::page::svg::Picture;
use downbeat_common::units::{self, joined};

use super::launch_places::{self, LaunchPlace};

/// Averages of the launches of one experiment.
#[derive(Debug)]
pub(crate) struct ExperimentLaunches {
    pub(crate) name: String,
    /// Median of the averages.
    pub(crate) median: IntervalTime,
    /// Launches with an average, at least one: their numbers from 1, and the averages
    /// with intervals by the observations of the launch.
    pub(crate) launches: Vec<(usize, IntervalTime)>,
}

/// Maximum number of launches that are drawn, so that their marks are distinct.
const MOST: usize = 60;

/// Draws the launches of all experiments; `None` if there are none.
pub(crate) fn picture(
    title: String,
    average: &str,
    experiments: &[ExperimentLaunches],
) -> Option<Picture> {
    let all: usize = experiments.iter().map(|one| one.launches.len()).sum();
    let every = round_step(all as f64 / MOST as f64);
    let shown: Vec<_> = experiments
        .iter()
        .map(|experiment| thinned(&experiment.launches, every))
        .collect();
    let drawn = shown.iter().flatten().map(|(_, average)| *average);
    let medians = experiments.iter().map(|experiment| experiment.median);
    let [low, high] = range(drawn.chain(medians).flat_map(IntervalTime::values))?;
    let places = (0..).zip(&shown).flat_map(|(series, shown)| {
        let place = move |(launch, _): &(usize, _)| LaunchPlace {
            series,
            launch: *launch,
        };
        shown.iter().map(place)
    });
    let places: Vec<LaunchPlace> = places.collect();
    let label = match every {
        1 => "launch".to_owned(),
        _ => format!("launch (1 of {every} shown)"),
    };
    let names: Vec<String> = experiments.iter().map(|one| one.name.clone()).collect();
    let mut frame = Frame::new(
        Axis::exact(&label, 0.0, places.len() as f64, vec![]),
        Axis::times(&format!("{average} run-time"), low, high, 5),
        &names,
        210.0,
    );
    let mut before = 0;
    for (series, (experiment, shown)) in experiments.iter().zip(&shown).enumerate() {
        let ends = [before, before + shown.len()].map(|place| frame.at_x(place as f64));
        draw_experiment(&mut frame, series, ends, experiment);
        for (place, (number, average)) in (before..).zip(shown) {
            let text = format!("{}, launch {number}: {}", experiment.name, average.text());
            let point = average.point(series, place as f64 + 0.5, text);
            point.draw(&mut frame, 0.0);
        }
        before += shown.len();
    }
    launch_places::label(&mut frame, &places);
    Some(frame.finish(title, joined(experiments.iter().map(describe), " ")))
}

/// Returns every n-th launch; all if none has such a number.
fn thinned(launches: &[(usize, IntervalTime)], every: usize) -> Vec<(usize, IntervalTime)> {
    let shown = launches.iter().copied();
    let shown: Vec<_> = shown
        .filter(|(number, _)| number.is_multiple_of(every))
        .collect();
    match shown.is_empty() {
        true => launches.to_vec(),
        false => shown,
    }
}

/// Draws the median of an experiment and its interval behind the launches, between two horizontal positions.
fn draw_experiment(
    frame: &mut Frame,
    series: usize,
    [left, right]: [f64; 2],
    experiment: &ExperimentLaunches,
) {
    let colour = style::colour(series);
    let IntervalTime { nanos, .. } = experiment.median;
    let [low, high] = range(experiment.median.values()).unwrap_or([nanos; 2]);
    let [low, middle, high] = [low, nanos, high].map(|nanos| frame.at_y(nanos));
    frame.canvas.titled(&describe_median(experiment), |canvas| {
        let size = (right - left, low - high);
        canvas.rectangle(&format!("h1 {colour}"), (left, high), size);
        canvas.line(&format!("thin {colour}"), (left, middle), (right, middle));
    });
}

fn describe_median(experiment: &ExperimentLaunches) -> String {
    format!(
        "{}: median of {} {}",
        experiment.name,
        units::counted(experiment.launches.len(), "launch", "launches"),
        experiment.median.text()
    )
}

fn describe(experiment: &ExperimentLaunches) -> String {
    let nanos = experiment.launches.iter().map(|(_, average)| average.nanos);
    let [least, most] = range(nanos).unwrap_or_default().map(units::time);
    let median = describe_median(experiment);
    format!("{median}, launches from {least} to {most}.")
}

#[cfg(test)]
mod tests {
    use downbeat_records::stats::Interval;

    use super::*;

    fn experiment(name: &str, count: usize) -> ExperimentLaunches {
        let launch = |number: usize| {
            let average = IntervalTime {
                nanos: 400.0 + number as f64,
                interval: Some(Interval {
                    low: 399.0 + number as f64,
                    high: 401.0 + number as f64,
                }),
            };
            (number, average)
        };
        ExperimentLaunches {
            name: name.to_owned(),
            median: IntervalTime {
                nanos: 405.0,
                interval: Some(Interval {
                    low: 402.0,
                    high: 409.0,
                }),
            },
            launches: (1..=count).map(launch).collect(),
        }
    }

    #[test]
    fn every_launch_has_a_dot_and_a_bar_over_the_interval_of_its_experiment() {
        let experiments = [experiment("one", 10), experiment("two", 3)];
        let drawn = picture("averages".into(), "median", &experiments)
            .unwrap()
            .inline(1);
        // Each experiment has a marker in the legend, and each launch a bar with two ends.
        for (colour, launches) in [("c0", 10), ("c1", 3)] {
            let drawn = |class: &str| {
                drawn
                    .matches(&format!("class=\"{class} {colour}\""))
                    .count()
            };
            let found = [drawn("m"), drawn("e"), drawn("h1"), drawn("thin")];
            assert_eq!(found, [launches + 1, 3 * launches, 1, 1], "{colour}");
        }
        for text in [
            "two, launch 3: 403.0 ns (402.0 ns to 404.0 ns)",
            "one: median of 10 launches 405.0 ns (402.0 ns to 409.0 ns), launches from 401.0 ns to 410.0 ns.",
        ] {
            assert!(drawn.contains(text), "no {text} in {drawn}");
        }
        assert!(picture("none".into(), "median", &[]).is_none());
    }

    #[test]
    fn many_launches_are_thinned_but_counted() {
        let drawn = picture("many".into(), "median", &[experiment("one", 250)])
            .unwrap()
            .inline(1);
        assert!(
            drawn.contains("launch (1 of 5 shown)") && drawn.contains("median of 250 launches")
        );
        assert_eq!(drawn.matches("class=\"m c0\"").count(), 50);
    }
}
