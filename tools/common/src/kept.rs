//! Results of clocks that sessions keep synchronized, as all programs show them.

use downbeat_clock_core::Duration;
use downbeat_records::stats::Sample;
use serde::Serialize;

use crate::Table;
use crate::page::axis::{Axis, linear_ticks};
use crate::page::curves::{self, Curve};
use crate::page::svg::Picture;
use crate::page::{HtmlTable, Page};
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
        let mut table = Table::new(["Averaging time", "Median rank", "Worst rank"]);
        for deviation in all {
            table.row([
                units::time(1e9 * deviation.seconds),
                format!("{:.1e}", deviation.median),
                format!("{:.1e}", deviation.largest),
            ]);
        }
        table
    }

    fn picture(all: &[Self]) -> Option<Picture> {
        let curve = |name: &str, value: fn(&Self) -> f64| Curve {
            name: name.to_owned(),
            points: all
                .iter()
                .filter(|deviation| value(deviation) > 0.0)
                .map(|deviation| (1e9 * deviation.seconds, value(deviation)))
                .collect(),
        };
        let curves = [
            curve("median rank", |deviation| deviation.median),
            curve("worst rank", |deviation| deviation.largest),
        ];
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let (mut low, mut high) = ([f64::INFINITY; 2], [0.0_f64; 2]);
        for (time, deviation) in points() {
            low = [low[0].min(*time), low[1].min(*deviation)];
            high = [high[0].max(*time), high[1].max(*deviation)];
        }
        points().next()?;
        // Whole powers of ten, so that there are ticks.
        let low_power = 10_f64.powf(low[1].log10().floor());
        let high_power = 10_f64.powf(high[1].log10().ceil());
        let axes = [
            Axis::log_times("averaging time", low[0], high[0], 6),
            Axis::logarithmic("Allan deviation", low_power, high_power, 5, |value| {
                format!("{value:.0e}")
            }),
        ];
        let described = format!(
            "From {:.1e} to {:.1e}, for averaging times from {} to {}.",
            low[1],
            high[1],
            units::time(low[0]),
            units::time(high[0])
        );
        let title = "Allan deviation from rank 0".to_owned();
        curves::picture(title, described, axes, &curves)
    }
}

/// Largest error of any rank over time: seconds, and nanoseconds.
#[derive(Clone, Debug)]
pub struct ErrorCurve {
    /// Name in the legend.
    pub name: &'static str,
    /// Points, in the order of time.
    pub points: Vec<(f64, f64)>,
}

/// Maximum number of points of a curve.
const MOST_POINTS: usize = 600;

impl ErrorCurve {
    /// Draws errors over time. Of many points, the largest of those that follow each other is drawn, so that no peak is lost.
    fn picture(title: &str, errors: &[Self]) -> Option<Picture> {
        let drawn = |errors: &Self| {
            let together = errors.points.len().div_ceil(MOST_POINTS).max(1);
            let largest = |some: &[(f64, f64)]| {
                let greater = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1);
                some.iter().copied().max_by(greater)
            };
            Curve {
                name: errors.name.to_owned(),
                points: errors.points.chunks(together).filter_map(largest).collect(),
            }
        };
        let curves: Vec<Curve> = errors.iter().map(drawn).collect();
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let end = points().map(|(time, _)| *time).fold(0.0, f64::max);
        let high = points().map(|(_, nanos)| *nanos).fold(0.0, f64::max);
        let axes = [
            Axis::exact("time, s", 0.0, end, linear_ticks(0.0, end, 6)),
            Axis::times_to("largest error of any rank", 1.05 * high.max(1.0), 5),
        ];
        let largest = |curve: &Curve| {
            let nanos = curve.points.iter().map(|(_, nanos)| *nanos);
            let largest = units::time(nanos.fold(0.0, f64::max));
            format!("{}: at most {largest}.", curve.name)
        };
        let described: Vec<String> = curves.iter().map(largest).collect();
        curves::picture(title.to_owned(), described.join(" "), axes, &curves)
    }
}

/// Page about kept clocks.
#[derive(Debug)]
pub struct KeptPage<'a> {
    /// Errors of the kept clocks.
    pub kept: Vec<ErrorCurve>,
    /// Errors of the clocks with which they are compared.
    pub compared: Vec<ErrorCurve>,
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
        let kept = ErrorCurve::picture("Kept clocks", &self.kept);
        let all: Vec<ErrorCurve> = self.kept.into_iter().chain(self.compared).collect();
        let compared = ErrorCurve::picture(self.comparison, &all);
        page.pictures([("kept".to_owned(), kept), ("compared".to_owned(), compared)]);
        page.table(&HtmlTable::of_table("Errors", self.results));
        for note in self.notes {
            page.note(note);
        }
        if !self.allan_deviations.is_empty() {
            page.section("stability", "Stability of the clocks");
            let picture = AllanDeviation::picture(self.allan_deviations);
            page.pictures([("allan".to_owned(), picture)]);
            let table = AllanDeviation::table(self.allan_deviations);
            page.table(&HtmlTable::of_table("Allan deviation from rank 0", &table));
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
        let curve = ErrorCurve {
            name: "kept",
            points: points.collect(),
        };
        let shown = ErrorCurve::picture("Kept clocks", &[curve]).unwrap();
        assert!(shown.inline(1).contains("kept: at most 7.777 us."));
        assert!(ErrorCurve::picture("Kept clocks", &[]).is_none());
    }
}
