//! Drift as a page, as figure 2 of Hunold and Carpen-Amarie 2018: offsets over time, and what a line leaves of them.

use downbeat_common::output::count;
use downbeat_common::page::Page;
use downbeat_common::page::axis::Axis;
use downbeat_common::page::curves::{self, Curve};
use downbeat_common::page::svg::Picture;

use super::report::{DriftReport, MOST_CURVES};

impl DriftReport<'_> {
    /// Returns the page.
    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        page.section("drift", "Offsets to rank 0 over time");
        page.note(
            "Offsets since the first one: a straight line is a constant difference of rates. Residuals: what the line from the first to the \
             last offset leaves, by which clocks that were corrected by it are wrong.",
        );
        if self.ranks() > MOST_CURVES {
            let all = count(self.ranks(), "rank");
            page.note(&format!("Of {all}, the first {MOST_CURVES} are drawn."));
        }
        let drift = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            let first = points.first().map_or(0.0, |(_, offset)| *offset);
            let since = points.iter().map(|(time, offset)| (*time, offset - first));
            since.collect()
        };
        let offsets = self.picture("Offsets since the first", drift);
        let residuals = self.picture("Residuals of a line from begin to end", residuals);
        page.pictures([("offsets", offsets), ("residuals", residuals)]);
        page.notes(self.notes());
        page.section("lines", "Lines fitted to windows of time");
        page.table("Lines", &self.windows());
        page.section("residuals", "Residuals of a line from begin to end");
        page.table("Residuals", &self.residuals());
        page
    }

    fn picture(
        &self,
        title: &str,
        shown: impl Fn(&[(f64, f64)]) -> Vec<(f64, f64)>,
    ) -> Option<Picture> {
        let curves: Vec<Curve> = self
            .curves()
            .map(|(rank, points)| Curve {
                name: format!("rank {rank}"),
                points: shown(points),
            })
            .collect();
        let last = |curve: &Curve| {
            let last = curve.points.last().map_or(0.0, |(_, nanos)| *nanos);
            format!("{}: {last:.0} ns at the end.", curve.name)
        };
        let axis = |[low, high]: [f64; 2]| Axis::linear_times("offset", low, high, 5);
        curves::over_time(title, last, axis, &curves)
    }
}

/// Returns what the line from the first to the last point leaves of each.
fn residuals(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let [Some((begin, from)), Some((end, to))] = [points.first(), points.last()] else {
        return Vec::new();
    };
    let slope = if end > begin {
        (to - from) / (end - begin)
    } else {
        0.0
    };
    let residual = |(time, offset): &(f64, f64)| (*time, offset - from - slope * (time - begin));
    points.iter().map(residual).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_are_what_a_line_leaves() {
        let points = [(0.0, 10.0), (1.0, 25.0), (4.0, 50.0)];
        assert_eq!(residuals(&points), [(0.0, 0.0), (1.0, 5.0), (4.0, 0.0)]);
        assert_eq!(residuals(&points[..1]), [(0.0, 0.0)]);
        assert_eq!(residuals(&[]), []);
    }
}
