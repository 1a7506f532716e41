//! Histograms and densities of the observations of all launches of each experiment.

use downbeat_records::stats::{Density, Histogram, Sample};

use super::smooth;
use downbeat_common::page::axis::Axis;
use downbeat_common::page::frame::Frame;
use downbeat_common::page::style;
use downbeat_common::page::svg::Picture;
use downbeat_common::units::{self, TimeUnit};

/// Maximum number of bins that can be distinguished.
const MOST_BINS: usize = 60;
/// Number of points of a density.
const PLACES: usize = 160;
/// Maximum number of experiments with bins: those of more would hide each other.
const MOST_WITH_BINS: usize = 2;

/// The observations of all launches of an experiment.
#[derive(Debug)]
pub(crate) struct PooledSample<'a> {
    /// Observations without outliers.
    pub(crate) kept: Sample<'a>,
    /// Bandwidth that hides the steps of the clock, from [`smooth::step_bandwidth`].
    pub(crate) steps: f64,
}

struct HistogramShape {
    histogram: Histogram,
    density: Option<Density>,
    /// Number of observations in a bin of height 1.
    unit: f64,
}

/// Draws the observations of each experiment without outliers; `None` if there are none.
pub(crate) fn picture(
    title: String,
    names: &[String],
    experiments: &[Option<PooledSample<'_>>],
) -> Option<Picture> {
    let samples = || experiments.iter().flatten().map(|pooled| &pooled.kept);
    let low = samples()
        .map(|sample| sample.quantile(0.0))
        .reduce(f64::min)?;
    let high = samples()
        .map(|sample| sample.quantile(1.0))
        .reduce(f64::max)?;
    let shapes: Vec<Option<HistogramShape>> = experiments
        .iter()
        .map(|pooled| pooled.as_ref().map(shape))
        .collect();
    let with_bins = shapes.len() <= MOST_WITH_BINS;
    let highest = shapes
        .iter()
        .flatten()
        .map(|shape| shape.highest(with_bins))
        .fold(0.0, f64::max);

    let mut x = Axis::linear_times("run-time", low, high, 6);
    let unit = TimeUnit::for_nanos(low.abs().max(high.abs()));
    x.label = format!("run-time, {} (all launches, without outliers)", unit.name);
    // The unit is chosen so that no value exceeds 100 %.
    let per = if highest * unit.nanos > 1.0 {
        TimeUnit::for_nanos(unit.nanos / 1e3)
    } else {
        unit
    };
    let y = Axis::from_zero(
        &format!("% of the observations per {}", per.name),
        highest,
        0.01 / per.nanos,
        4,
    );
    let mut frame = Frame::new(x, y, names, 190.0);
    let each = || {
        shapes
            .iter()
            .enumerate()
            .filter_map(|(series, shape)| Some((series, shape.as_ref()?)))
    };
    if with_bins {
        each().for_each(|(series, shape)| draw_bins(&mut frame, series, shape));
    }
    // Lines are drawn over all bins.
    each().for_each(|(series, shape)| draw_density(&mut frame, series, shape));
    if with_bins {
        name_bins(&mut frame, names, each());
    }
    Some(frame.finish(title, describe(names, experiments)))
}

fn shape(pooled: &PooledSample<'_>) -> HistogramShape {
    let (sample, steps) = (&pooled.kept, pooled.steps);
    // Steps of a clock that need wider kernels also need wider bins.
    let most = if steps > 0.0 {
        (sample.quantile(1.0) - sample.quantile(0.0)) / (2.2 * steps)
    } else {
        f64::INFINITY
    };
    let histogram = sample.histogram((most as usize).clamp(1, MOST_BINS));
    HistogramShape {
        unit: sample.len() as f64 * histogram.width,
        density: smooth::density(sample, PLACES, steps),
        histogram,
    }
}

impl HistogramShape {
    fn highest(&self, with_bins: bool) -> f64 {
        let bins = self
            .histogram
            .counts
            .iter()
            .map(|count| *count as f64 / self.unit)
            .filter(|_| with_bins);
        let density = self
            .density
            .iter()
            .flat_map(|density| density.heights.iter().copied());
        bins.chain(density)
            .filter(|height| height.is_finite())
            .fold(0.0, f64::max)
    }
}

fn draw_bins(frame: &mut Frame, series: usize, shape: &HistogramShape) {
    if shape.density.is_none() {
        return;
    }
    let mut outline = vec![frame.at((shape.histogram.start, 0.0))];
    for (bin, count) in shape.histogram.counts.iter().enumerate() {
        let edge = |bin: usize| shape.histogram.start + shape.histogram.width * bin as f64;
        let height = *count as f64 / shape.unit;
        outline.extend([
            frame.at((edge(bin), height)),
            frame.at((edge(bin + 1), height)),
        ]);
    }
    outline.extend(outline.last().map(|(x, _)| (*x, frame.bottom())));
    frame
        .canvas
        .path(&format!("area {}", style::colour(series)), &outline);
}

/// Describes the bins where a reader points at them; lower ones are above the higher ones that they overlap.
fn name_bins<'a>(
    frame: &mut Frame,
    names: &[String],
    shapes: impl Iterator<Item = (usize, &'a HistogramShape)>,
) {
    let mut bins = vec![];
    for (
        series,
        HistogramShape {
            histogram, unit, ..
        },
    ) in shapes
    {
        let all: u64 = histogram.counts.iter().sum();
        let edge = |bin: usize| histogram.start + histogram.width * bin as f64;
        for (bin, count) in histogram
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            let ends = [edge(bin), edge(bin + 1)];
            let [low, high] = ends.map(units::time);
            let text = format!(
                "{}, {low} to {high}: {} ({})",
                names[series],
                units::counted(*count as usize, "observation", "observations"),
                units::share(*count as f64 / all as f64)
            );
            bins.push((*count as f64 / unit, ends, text));
        }
    }
    bins.sort_by(|one, two| two.0.total_cmp(&one.0));
    for (height, ends, text) in bins {
        let [left, right] = ends.map(|at| frame.at_x(at));
        let (top, bottom) = (frame.at_y(height), frame.bottom());
        frame.canvas.titled(&text, |canvas| {
            canvas.rectangle("hit", (left, top), (right - left, bottom - top));
        });
    }
}

fn draw_density(frame: &mut Frame, series: usize, shape: &HistogramShape) {
    let Some(density) = &shape.density else {
        // All observations are equal: a line over the full height.
        let x = frame.at_x(shape.histogram.start);
        frame
            .canvas
            .line(&style::line(series), (x, frame.bottom()), (x, frame.top()));
        return;
    };
    let on_axis = density.points().filter(|(at, _)| frame.x.contains(*at));
    let places: Vec<_> = on_axis.map(|point| frame.at(point)).collect();
    frame.canvas.path(&style::line(series), &places);
    // A marker at the peak distinguishes the series without colours and dashes.
    if let Some(peak) = places.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)) {
        frame.canvas.marker(series, peak);
    }
}

fn describe(names: &[String], experiments: &[Option<PooledSample<'_>>]) -> String {
    let describe_one = |(name, pooled): (&String, &Option<PooledSample<'_>>)| {
        let sample = &pooled.as_ref()?.kept;
        let [low, first, median, third, high] =
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| units::time(sample.quantile(share)));
        let count = units::counted(sample.len(), "observation", "observations");
        Some(format!(
            "{name}: {count} from {low} to {high}, median {median}, quartiles {first} and {third}."
        ))
    };
    names
        .iter()
        .zip(experiments)
        .filter_map(describe_one)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(experiments: &mut [Vec<f64>]) -> String {
        let names: Vec<String> = (0..experiments.len()).map(|i| format!("e{i}")).collect();
        let samples: Vec<_> = experiments
            .iter_mut()
            .map(|nanos| {
                Sample::new(nanos)
                    .ok()
                    .map(|kept| PooledSample { kept, steps: 0.0 })
            })
            .collect();
        picture("all".into(), &names, &samples)
            .map(|picture| picture.inline(1))
            .unwrap_or_default()
    }

    fn spread(from: f64) -> Vec<f64> {
        (0..500)
            .map(|i| from + f64::from(i * 7_919 % 501) + f64::from(i * 31 % 201))
            .collect()
    }

    #[test]
    fn only_two_experiments_have_bins() {
        let two = drawn(&mut [spread(4_000.0), spread(4_100.0)]);
        assert_eq!(two.matches("class=\"area ").count(), 2);
        assert!(
            two.contains("% of the observations per ns")
                && two.contains("e1: 500 observations from 4.")
        );
        let three = drawn(&mut [spread(4_000.0), spread(4_100.0), spread(4_050.0)]);
        assert!(!three.contains("class=\"area ") && three.contains("class=\"l k2 c2\""));
    }

    #[test]
    fn no_observations_and_equal_observations_are_drawn() {
        assert_eq!(drawn(&mut [vec![], vec![]]), "");
        let same = drawn(&mut [vec![5.0; 4], vec![]]);
        assert!(
            same.contains("class=\"l k0 c0\"") && !same.contains("NaN"),
            "{same}"
        );
    }
}
