//! Results of clocks that sessions keep synchronized, as all programs show them.

use downbeat_clock_core::Duration;
use downbeat_records::stats::Sample;
use serde::Serialize;

use crate::Table;
use crate::page::Page;
use crate::page::axis::{Axis, range};
use crate::page::curves::{self, Curve};
use crate::page::svg::Picture;
use crate::records::median;
use crate::units;

/// Largest error of any rank, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LargestErrors {
    /// Median over all moments.
    pub median_ns: f64,
    /// Upper limit at 95 % of all moments.
    pub most_ns: f64,
    /// Largest of all moments.
    pub ever_ns: f64,
}

impl LargestErrors {
    /// Summarizes the largest error of any rank at each moment.
    pub fn of(mut errors: Vec<f64>) -> Self {
        let sample = Sample::new(&mut errors).ok();
        let at = |share: f64| sample.as_ref().map_or(0.0, |sample| sample.quantile(share));
        let [median_ns, most_ns, ever_ns] = [0.5, 0.95, 1.0].map(at);
        Self {
            median_ns,
            most_ns,
            ever_ns,
        }
    }
}

/// Allan deviation of clocks from that of rank 0, for an averaging time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AllanDeviation {
    /// Averaging time.
    pub seconds: f64,
    /// Of the median rank.
    pub median: f64,
    /// Of the rank with the largest.
    pub largest: f64,
}

impl AllanDeviation {
    /// Combines the deviations of ranks, as far as all of them have one.
    pub fn of_ranks<R: AsRef<[(Duration, f64)]>>(ranks: &[R]) -> Vec<Self> {
        let ranks = || ranks.iter().map(AsRef::as_ref);
        let times = ranks().map(<[_]>::len).min().unwrap_or(0);
        let deviation = |index: usize| {
            let of_ranks: Vec<f64> = ranks().map(|found| found[index].1).collect();
            let time = ranks().map(|found| found[index].0).max();
            Self {
                seconds: time.unwrap_or_default().as_secs_f64(),
                largest: of_ranks.iter().copied().fold(0.0, f64::max),
                median: median(of_ranks).unwrap_or_default(),
            }
        };
        (0..times).map(deviation).collect()
    }

    /// Returns a table with a row for each averaging time.
    pub fn table(all: &[Self]) -> Table {
        Table::of(all)
            .column("Averaging time", |one| units::time(1e9 * one.seconds))
            .column("Median rank", |one| format!("{:.1e}", one.median))
            .column("Worst rank", |one| format!("{:.1e}", one.largest))
            .table()
    }

    fn picture(all: &[Self]) -> Option<Picture> {
        let curve = |name: &str, value: fn(&Self) -> f64| {
            let points = all.iter().map(|one| (1e9 * one.seconds, value(one)));
            Curve {
                name: name.to_owned(),
                points: points.filter(|(_, deviation)| *deviation > 0.0).collect(),
            }
        };
        let curves = [
            curve("median rank", |one| one.median),
            curve("worst rank", |one| one.largest),
        ];
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let [short, long] = range(points().map(|(time, _)| *time))?;
        let [low, high] = range(points().map(|(_, deviation)| *deviation))?;
        // Whole powers of ten, so that there are ticks.
        let low_power = 10_f64.powf(low.log10().floor());
        let high_power = 10_f64.powf(high.log10().ceil());
        let axes = [
            Axis::log_times("averaging time", short, long, 6),
            Axis::logarithmic("Allan deviation", low_power, high_power, 5, |value| {
                format!("{value:.0e}")
            }),
        ];
        let [short, long] = [short, long].map(units::time);
        let described =
            format!("From {low:.1e} to {high:.1e}, for averaging times from {short} to {long}.");
        curves::picture("Allan deviation from rank 0", described, axes, &curves)
    }
}

/// Maximum number of points of a curve.
const MOST_POINTS: usize = 600;

/// Draws the largest errors of any rank over time: seconds, and nanoseconds. Of many
/// points, the largest of those that follow each other is drawn, so that no peak is lost.
fn draw_errors(title: &str, errors: &[Curve]) -> Option<Picture> {
    let greater = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1);
    let drawn = |Curve { name, points }: &Curve| {
        let parts = points.chunks(points.len().div_ceil(MOST_POINTS).max(1));
        Curve {
            name: name.clone(),
            points: parts
                .filter_map(|part| part.iter().copied().max_by(greater))
                .collect(),
        }
    };
    let curves: Vec<Curve> = errors.iter().map(drawn).collect();
    let largest = |curve: &Curve| {
        let nanos = curve.points.iter().map(|(_, nanos)| *nanos);
        let largest = units::time(nanos.fold(0.0, f64::max));
        format!("{}: at most {largest}.", curve.name)
    };
    let axis =
        |[_, high]: [f64; 2]| Axis::times_to("largest error of any rank", 1.05 * high.max(1.0), 5);
    curves::over_time(title, largest, axis, &curves)
}

/// Page about kept clocks.
#[derive(Debug)]
pub struct KeptPage<'a> {
    /// Errors of the kept clocks.
    pub kept: Vec<Curve>,
    /// Errors of the clocks with which they are compared.
    pub compared: Vec<Curve>,
    /// Title of the picture that compares them.
    pub comparison: &'static str,
    /// Table of all results.
    pub results: &'a Table,
    /// Notes below the table.
    pub notes: &'a [String],
    /// Stability of the clocks, if they were compared.
    pub allan_deviations: &'a [AllanDeviation],
}

impl KeptPage<'_> {
    /// Returns the page.
    pub fn page(self) -> Page {
        let mut page = Page::default();
        page.section("errors", "Errors over time");
        let kept = draw_errors("Kept clocks", &self.kept);
        let all: Vec<Curve> = self.kept.into_iter().chain(self.compared).collect();
        let compared = draw_errors(self.comparison, &all);
        page.pictures([("kept", kept), ("compared", compared)]);
        page.table("Errors", self.results);
        page.notes(self.notes);
        if !self.allan_deviations.is_empty() {
            page.section("stability", "Stability of the clocks");
            let picture = AllanDeviation::picture(self.allan_deviations);
            page.pictures([("allan", picture)]);
            let table = AllanDeviation::table(self.allan_deviations);
            page.table("Allan deviation from rank 0", &table);
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_median_and_a_largest() {
        let errors = LargestErrors::of((1..=101).map(f64::from).collect());
        assert_eq!(
            [errors.median_ns, errors.most_ns, errors.ever_ns],
            [51.0, 96.0, 101.0]
        );
        assert_eq!(LargestErrors::of(vec![]).ever_ns, 0.0);
    }

    #[test]
    fn deviations_are_combined_as_far_as_all_ranks_have_them() {
        let second = Duration::from_secs(1);
        let ranks = [
            vec![(second, 3.0), (second * 2, 1.0)],
            vec![(second, 1.0)],
            vec![(second, 2.0), (second * 2, 1.0)],
        ];
        let combined = AllanDeviation::of_ranks(&ranks);
        let figures: Vec<_> = combined
            .iter()
            .map(|one| (one.seconds, one.median, one.largest))
            .collect();
        assert_eq!(figures, [(1.0, 2.0, 3.0)]);
        assert!(AllanDeviation::of_ranks::<Vec<_>>(&[]).is_empty());
    }

    #[test]
    fn a_picture_of_many_errors_shows_the_largest() {
        let peak = 7_777.0;
        let points = (0..10_000).map(|i| (f64::from(i), if i == 4_321 { peak } else { 1.0 }));
        let curve = Curve {
            name: "kept".to_owned(),
            points: points.collect(),
        };
        let shown = draw_errors("Kept clocks", &[curve]).unwrap();
        assert!(shown.inline(1).contains("kept: at most 7.777 us."));
        assert!(draw_errors("Kept clocks", &[]).is_none());
    }
}
