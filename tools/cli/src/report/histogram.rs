//! Histograms and densities of the observations of all launches of each experiment.

use downbeat_records::stats::{Density, Histogram, Sample};

use super::smooth;
use downbeat_common::page::axis::{Axis, range};
use downbeat_common::page::frame::Frame;
use downbeat_common::page::style;
use downbeat_common::page::svg::Picture;
use downbeat_common::units::{self, TimeUnit, joined};

/// Maximum number of bins that can be distinguished.
const MOST_BINS: usize = 60;
/// Number of points of a density.
const PLACES: usize = 160;
/// Maximum number of experiments with bins: those of more would hide each other.
const MOST_WITH_BINS: usize = 2;

/// The observations of all launches of an experiment.
#[derive(Debug)]
pub(crate) struct PooledSample<'a> {
    /// Index of the experiment.
    pub(crate) series: usize,
    /// Observations without outliers.
    pub(crate) kept: Sample<'a>,
    /// Bandwidth that hides the steps of the clock, from [`smooth::step_bandwidth`].
    pub(crate) steps: f64,
}

struct HistogramShape {
    series: usize,
    histogram: Histogram,
    density: Option<Density>,
    /// Number of observations in a bin of height 1.
    unit: f64,
}

/// Draws the observations of each experiment that has some, without outliers; `None` if
/// there are none.
pub(crate) fn picture(
    title: String,
    names: &[String],
    samples: &[PooledSample<'_>],
) -> Option<Picture> {
    let ends = |pooled: &PooledSample<'_>| [0.0, 1.0].map(|share| pooled.kept.quantile(share));
    let [low, high] = range(samples.iter().flat_map(ends))?;
    let shapes: Vec<HistogramShape> = samples.iter().map(HistogramShape::new).collect();
    let with_bins = names.len() <= MOST_WITH_BINS;
    let heights = shapes.iter().map(|shape| shape.highest(with_bins));
    let highest = heights.fold(0.0, f64::max);

    let mut x = Axis::linear_times("run-time", low, high, 6);
    let unit = TimeUnit::for_nanos(low.abs().max(high.abs()));
    x.label = format!("run-time, {} (all launches, without outliers)", unit.name);
    // The unit is chosen so that no value exceeds 100 %.
    let per = if highest * unit.nanos > 1.0 {
        TimeUnit::for_nanos(unit.nanos / 1e3)
    } else {
        unit
    };
    let label = format!("% of the observations per {}", per.name);
    let y = Axis::from_zero(&label, highest, 0.01 / per.nanos, 4);
    let mut frame = Frame::new(x, y, names, 190.0);
    if with_bins {
        shapes.iter().for_each(|shape| shape.draw_bins(&mut frame));
    }
    // Lines are drawn over all bins.
    shapes
        .iter()
        .for_each(|shape| shape.draw_density(&mut frame));
    if with_bins {
        name_bins(&mut frame, names, &shapes);
    }
    let described = samples.iter().map(|pooled| describe(names, pooled));
    Some(frame.finish(title, joined(described, " ")))
}

impl HistogramShape {
    fn new(pooled: &PooledSample<'_>) -> Self {
        let (sample, steps) = (&pooled.kept, pooled.steps);
        // Steps of a clock that need wider kernels also need wider bins.
        let most = if steps > 0.0 {
            (sample.quantile(1.0) - sample.quantile(0.0)) / (2.2 * steps)
        } else {
            f64::INFINITY
        };
        let histogram = sample.histogram((most as usize).clamp(1, MOST_BINS));
        Self {
            series: pooled.series,
            unit: sample.len() as f64 * histogram.width,
            density: smooth::density(sample, PLACES, steps),
            histogram,
        }
    }

    /// Returns the ends of each bin, and the number of observations in it.
    fn bins(&self) -> impl Iterator<Item = ([f64; 2], u64)> {
        let Histogram {
            start,
            width,
            counts,
        } = &self.histogram;
        let edge = move |bin: usize| start + width * bin as f64;
        let counts = counts.iter().enumerate();
        counts.map(move |(bin, count)| ([edge(bin), edge(bin + 1)], *count))
    }

    fn highest(&self, with_bins: bool) -> f64 {
        let bins = self.bins().map(|(_, count)| count as f64 / self.unit);
        let density = self.density.iter().flat_map(|density| &density.heights);
        bins.filter(|_| with_bins)
            .chain(density.copied())
            .filter(|height| height.is_finite())
            .fold(0.0, f64::max)
    }

    fn draw_bins(&self, frame: &mut Frame) {
        if self.density.is_none() {
            return;
        }
        let mut outline = vec![frame.at((self.histogram.start, 0.0))];
        for (ends, count) in self.bins() {
            outline.extend(ends.map(|end| frame.at((end, count as f64 / self.unit))));
        }
        outline.extend(outline.last().map(|(x, _)| (*x, frame.bottom())));
        let class = format!("area {}", style::colour(self.series));
        frame.canvas.path(&class, &outline);
    }

    fn draw_density(&self, frame: &mut Frame) {
        let class = style::line(self.series);
        let Some(density) = &self.density else {
            // All observations are equal: a line over the full height.
            frame.vertical(&class, self.histogram.start);
            return;
        };
        let on_axis = density.points().filter(|(at, _)| frame.x.contains(*at));
        let places: Vec<_> = on_axis.map(|point| frame.at(point)).collect();
        frame.canvas.path(&class, &places);
        // A marker at the peak distinguishes the series without colours and dashes.
        if let Some(peak) = places.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)) {
            frame.canvas.marker(self.series, peak);
        }
    }
}

/// Describes the bins where a reader points at them; lower ones are above the higher ones that they overlap.
fn name_bins(frame: &mut Frame, names: &[String], shapes: &[HistogramShape]) {
    let mut bins = vec![];
    for shape in shapes {
        let all: u64 = shape.histogram.counts.iter().sum();
        for (ends, count) in shape.bins().filter(|(_, count)| *count > 0) {
            let [low, high] = ends.map(units::time);
            let text = format!(
                "{}, {low} to {high}: {} ({})",
                names[shape.series],
                units::counted(count as usize, "observation", "observations"),
                units::share(count as f64 / all as f64)
            );
            bins.push((count as f64 / shape.unit, ends, text));
        }
    }
    bins.sort_by(|one, two| two.0.total_cmp(&one.0));
    for (height, ends, text) in bins {
        frame.name_part(&text, ends, frame.at_y(height));
    }
}

fn describe(names: &[String], pooled: &PooledSample<'_>) -> String {
    let (name, sample) = (&names[pooled.series], &pooled.kept);
    let [low, first, median, third, high] =
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| units::time(sample.quantile(share)));
    let count = units::counted(sample.len(), "observation", "observations");
    format!("{name}: {count} from {low} to {high}, median {median}, quartiles {first} and {third}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(experiments: &mut [Vec<f64>]) -> String {
        let names: Vec<String> = (0..experiments.len()).map(|i| format!("e{i}")).collect();
        let samples: Vec<_> = experiments
            .iter_mut()
            .enumerate()
            .filter_map(|(series, nanos)| {
                Some(PooledSample {
                    series,
                    kept: Sample::new(nanos).ok()?,
                    steps: 0.0,
                })
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
