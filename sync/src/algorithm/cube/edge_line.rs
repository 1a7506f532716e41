//! Line through the turns of an edge.

use downbeat_clock_core::FitError;

use crate::line::{FAR, MAX_WANDER, fault_of_line, rounded};
use crate::payload::payload_of_fields;

/// Result of one turn: by how much the higher rank's clock is ahead at a time of the lower one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EdgePoint {
    pub(super) at: f64,
    pub(super) ahead: f64,
    /// Width of what the messages leave possible.
    pub(super) width: f64,
    /// Duration of the turn.
    pub(super) took: f64,
    /// Slope by which differences at other times were corrected: the first ones can be far from right.
    pub(super) slope: f64,
}

/// Limits of a rank's clock, which the rank at the other end of an edge needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClockLimits {
    /// Rank among all ranks.
    pub(crate) rank: u32,
    /// Largest drift from rank 0, as a share of the clock's own rate.
    pub(crate) drift: f64,
    /// Largest error of a reading, in nanoseconds.
    pub(crate) grain: f64,
}

impl ClockLimits {
    /// Returns the largest drift of a clock from this one, as a share of the rate of this one.
    fn drift_of(self, other: Self) -> f64 {
        if other.drift < 1.0 {
            (self.drift + other.drift) / (1.0 - other.drift)
        } else {
            f64::INFINITY
        }
    }
}

payload_of_fields!([] ClockLimits { rank, drift, grain });

/// Line through all turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EdgeLine {
    /// Mean time, and value there.
    pub(super) at: f64,
    pub(crate) ahead: f64,
    pub(super) slope: f64,
    /// Standard deviation of the turns from the line.
    pub(super) deviation: f64,
    /// Number of turns.
    pub(super) turns: f64,
    /// Error at the mean time, and of the slope, that the messages explain.
    pub(super) error: f64,
    pub(super) drift_error: f64,
}

/// Sums for a line through points with equal weights, which grow by one point at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineSums {
    count: f64,
    at: f64,
    ahead: f64,
    squares: f64,
    products: f64,
}

impl LineSums {
    pub(super) fn push(&mut self, at: f64, ahead: f64) {
        self.count += 1.0;
        let from_mean = at - self.at;
        self.at += from_mean / self.count;
        self.ahead += (ahead - self.ahead) / self.count;
        self.squares += from_mean * (at - self.at);
        self.products += from_mean * (ahead - self.ahead);
    }

    pub(super) fn ahead(&self) -> f64 {
        self.ahead
    }

    /// Returns the slope, 0 if it is not known yet.
    pub(super) fn slope(&self) -> f64 {
        if self.squares > 0.0 {
            self.products / self.squares
        } else {
            0.0
        }
    }
}

/// Largest error of a width by rounding, in nanoseconds.
const ROUNDING: f64 = 1.0;

/// Fits a line between the clocks of the lower and the higher rank. Returns it with a fault of the clocks that it shows.
///
/// A rank that was descheduled during a turn makes it wide: such turns hardly count.
pub(super) fn line(
    points: &[EdgePoint],
    [low, high]: [ClockLimits; 2],
) -> (EdgeLine, Option<FitError>) {
    let (most, grains) = (low.drift_of(high), low.grain + high.grain);
    let weights = weights(points);
    let weight: f64 = weights.iter().sum();
    if weight <= 0.0 {
        return (EdgeLine::default(), Some(FitError::NoExchanges));
    }
    let mean = |value: &dyn Fn(&EdgePoint) -> f64| {
        let weighted = points.iter().zip(&weights);
        let sum: f64 = weighted.map(|(point, own)| own * value(point)).sum();
        sum / weight
    };
    let (at, ahead) = (mean(&|point| point.at), mean(&|point| point.ahead));
    let variance = mean(&|point| (point.at - at).powi(2));
    let covariance = mean(&|point| (point.at - at) * (point.ahead - ahead));
    let slope = if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    };
    let residual = |point: &EdgePoint| point.ahead - ahead - slope * (point.at - at);
    let deviation = mean(&|point| residual(point).powi(2)).sqrt();
    let ends = [points.first(), points.last()].map(|end| end.map_or(0.0, |point| point.at));
    let span = ends[1] - ends[0];
    // Limits are wrong by what the readings are.
    let width = |point: &EdgePoint| point.width + grains;
    let half =
        |point: &EdgePoint| 0.5 * width(point).max(0.0) + (most + point.slope.abs()) * point.took;
    let error = mean(&|point| half(point).powi(2)).sqrt() + MAX_WANDER * span;
    let drift_error = if variance > 0.0 {
        error / variance.sqrt() + MAX_WANDER
    } else {
        most
    };
    let fault = find_contradiction(points, grains, most).or_else(|| {
        let explained = [deviation, FAR * error];
        fault_of_line(explained, [slope.abs(), drift_error], most, span)
    });
    let line = EdgeLine {
        at,
        ahead,
        slope,
        deviation,
        turns: points.len() as f64,
        error,
        drift_error: drift_error.min(slope.abs() + most),
    };
    (line, fault)
}

/// Returns what each turn deviates from the line by, with its weight.
pub(super) fn residuals(points: &[EdgePoint], line: &EdgeLine) -> impl Iterator<Item = (f64, f64)> {
    let residual = |point: &EdgePoint| point.ahead - line.ahead - line.slope * (point.at - line.at);
    points.iter().map(residual).zip(weights(points))
}

/// Returns the fault of a turn whose limits contradict each other, by more than the errors of
/// readings and what the clocks drift meanwhile.
fn find_contradiction(points: &[EdgePoint], grains: f64, most: f64) -> Option<FitError> {
    let of_turn = |point: &EdgePoint| -(point.width + grains + most * point.took + ROUNDING);
    let largest = points.iter().map(of_turn).fold(0.0, f64::max);
    (largest > 0.0).then(|| FitError::Stepped {
        by: rounded(largest),
        between: None,
    })
}

/// Returns the weights of turns, which decrease with what their width exceeds that of the narrowest by.
fn weights(points: &[EdgePoint]) -> Vec<f64> {
    let narrowest = points.iter().map(|point| point.width);
    let narrowest = narrowest.fold(f64::INFINITY, f64::min);
    let excess = |point: &EdgePoint| point.width - narrowest;
    let mut sorted: Vec<f64> = points.iter().map(excess).collect();
    sorted.sort_by(f64::total_cmp);
    // A nanosecond more or less says nothing.
    let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0) + ROUNDING;
    let weight = |point: &EdgePoint| 1.0 / (1.0 + (excess(point) / (3.0 * usual)).powi(2));
    points.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(drift: f64, grain: f64) -> ClockLimits {
        ClockLimits {
            drift,
            grain,
            ..ClockLimits::default()
        }
    }

    /// Fits a line between clocks that drift by up to a thousandth from each other.
    fn fine_line(points: &[EdgePoint]) -> (EdgeLine, Option<FitError>) {
        line(points, [limits(0.0, 0.0), limits(1e-3, 0.0)])
    }

    fn point(at: f64, ahead: f64, width: f64) -> EdgePoint {
        EdgePoint {
            at,
            ahead,
            width,
            took: 100.0,
            slope: 0.0,
        }
    }

    #[test]
    fn a_line_goes_through_points_on_it_and_wide_ones_hardly_count() {
        let on_line = |at: f64| point(at, 50.0 + 2e-5 * at, 600.0);
        let points: Vec<EdgePoint> = (0..10).map(|i| on_line(1e6 * f64::from(i))).collect();
        let (found, fault) = fine_line(&points);
        assert_eq!(fault, None);
        assert!(
            (found.slope - 2e-5).abs() < 1e-12 && found.deviation < 1e-6,
            "{found:?}"
        );
        assert!((found.ahead - 50.0 - 2e-5 * found.at).abs() < 1e-6);
        let mut sums = LineSums::default();
        points
            .iter()
            .for_each(|point| sums.push(point.at, point.ahead));
        assert!((sums.slope() - 2e-5).abs() < 1e-12);

        let mut disturbed = points;
        disturbed[4].ahead += 1e6;
        disturbed[4].width = 2e6;
        let (found, fault) = fine_line(&disturbed);
        assert_eq!(fault, None);
        assert!((found.slope - 2e-5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn steps_are_faults() {
        let steps = |by: f64| -> Vec<EdgePoint> {
            let ahead = |i: i32| if i < 5 { 0.0 } else { by };
            (0..10)
                .map(|i| point(1e6 * f64::from(i), ahead(i), 600.0))
                .collect()
        };
        assert_eq!(fine_line(&steps(0.0)).1, None);
        assert!(fine_line(&steps(1e9)).1.is_some());
        let (_, fault) = fine_line(&[point(0.0, 0.0, -5_000.0)]);
        assert!(matches!(fault, Some(FitError::Stepped { .. })));
        assert_eq!(fine_line(&[]).1, Some(FitError::NoExchanges));
        // One turn has no slope.
        assert_eq!(fine_line(&[point(7.0, 3.0, 10.0)]).0.slope, 0.0);
    }

    /// A step within a turn makes its width as much smaller.
    #[test]
    fn readings_and_learned_rates_explain_a_contradiction() {
        // The turn took 100 ns.
        let fault = |width: f64, low, high| line(&[point(0.0, 0.0, width)], [low, high]).1;
        let (coarse, steep, exact) = (limits(0.0, 1e4), limits(0.1, 0.0), limits(0.0, 0.0));
        assert_eq!(fault(-2e4, coarse, coarse), None);
        assert!(fault(-3e4, coarse, coarse).is_some());
        for [low, high] in [[0, 1], [1, 0]] {
            let one_is = |other: ClockLimits| {
                move |width: f64| fault(width, [exact, other][low], [exact, other][high])
            };
            assert_eq!(one_is(coarse)(-1e4), None);
            assert!(one_is(coarse)(-2e4).is_some());
            assert_eq!(one_is(steep)(-10.5), None);
            assert!(one_is(steep)(-13.0).is_some());
        }
        let unknown = limits(1.0, 0.0);
        assert_eq!(fault(-1e9, unknown, unknown), None);
    }
}
