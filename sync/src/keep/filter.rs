//! Kalman filter of a clock's offset and rate, from one offset per session. The rate is a random walk.
//!
//! Neither the noise of the offsets nor the wander of the rate is known. Their ratio decides how much an offset counts, so a filter runs
//! for each of some ratios; the scale of both follows from how far its predictions were off, and the filter under which those are most
//! likely gives the estimate.

/// Offset measured at a time; in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OffsetPoint {
    pub(super) at: f64,
    pub(super) offset: f64,
    /// Variance of its noise, in units of the usual one: more for a point far from what was expected.
    pub(super) noise: f64,
    /// True if the estimation begins with it again, because the clock stepped.
    pub(super) restarts: bool,
}

/// Offset in nanoseconds and rate in nanoseconds per second, with the variances of both and their covariance in units of the noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OffsetState {
    pub(super) offset: f64,
    pub(super) rate: f64,
    variance: f64,
    covariance: f64,
    rate_variance: f64,
}

/// Variance of a rate that is not known, in units of the noise.
const UNKNOWN_RATE: f64 = 1e12;

impl OffsetState {
    /// State after a first offset.
    pub(super) fn new(offset: f64, rate: f64) -> Self {
        Self {
            offset,
            rate,
            variance: 1.0,
            covariance: 0.0,
            rate_variance: UNKNOWN_RATE,
        }
    }

    /// Returns the state after a time, given the variance of the wander per second in units of the noise.
    pub(super) fn after(self, time: f64, wander: f64) -> Self {
        let Self {
            variance,
            covariance,
            rate_variance,
            ..
        } = self;
        let walked = wander * time.abs();
        let square = time * time;
        Self {
            offset: self.offset + self.rate * time,
            variance: variance
                + 2.0 * covariance * time
                + rate_variance * square
                + walked * square / 3.0,
            covariance: covariance + rate_variance * time + walked * time / 2.0,
            rate_variance: rate_variance + walked,
            ..self
        }
    }

    /// Returns the state that takes an offset into account, given the variance of its noise.
    pub(super) fn corrected(self, offset: f64, noise: f64) -> Self {
        let Self {
            variance,
            covariance,
            rate_variance,
            ..
        } = self;
        let total = variance + noise;
        let innovation = offset - self.offset;
        Self {
            offset: self.offset + variance / total * innovation,
            rate: self.rate + covariance / total * innovation,
            variance: variance * noise / total,
            covariance: covariance * noise / total,
            rate_variance: rate_variance - covariance * covariance / total,
        }
    }

    /// Returns the state that takes the future into account: the one `smoothed` a time later, before whose offset `predicted` was expected.
    pub(super) fn smoothed(self, time: f64, predicted: &Self, smoothed: [f64; 2]) -> [f64; 2] {
        let by = [smoothed[0] - predicted.offset, smoothed[1] - predicted.rate];
        let determinant =
            predicted.variance * predicted.rate_variance - predicted.covariance.powi(2);
        let weighted = [
            predicted.rate_variance * by[0] - predicted.covariance * by[1],
            predicted.variance * by[1] - predicted.covariance * by[0],
        ];
        let [offset, rate] = weighted.map(|value| value / determinant);
        let to_offset = self.variance + self.covariance * time;
        let to_rate = self.covariance + self.rate_variance * time;
        [
            self.offset + to_offset * offset + self.covariance * rate,
            self.rate + to_rate * offset + self.rate_variance * rate,
        ]
    }
}

/// Estimate of a clock's offset and rate at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OffsetEstimate {
    pub(super) at: f64,
    pub(super) state: OffsetState,
    /// Variance of the noise of an offset, in square nanoseconds.
    noise: f64,
    /// Variance of the wander per second in units of the noise.
    pub(super) ratio: f64,
}

impl OffsetEstimate {
    /// Returns the expected offset at a time.
    pub(super) fn offset_at(&self, at: f64) -> f64 {
        self.state.offset + self.state.rate * (at - self.at)
    }

    /// Standard error of the offset at a time, in nanoseconds.
    pub(super) fn error_at(&self, at: f64) -> f64 {
        let then = self.state.after(at - self.at, self.ratio);
        (then.variance * self.noise).sqrt()
    }

    /// Standard deviation of the noise of an offset, in nanoseconds.
    pub(super) fn noise(&self) -> f64 {
        self.noise.sqrt()
    }

    /// Standard deviation of the change of the rate after a second, in nanoseconds per second.
    pub(super) fn wander(&self) -> f64 {
        (self.ratio * self.noise).sqrt()
    }
}

/// Filter for one ratio of wander to noise.
#[derive(Clone, Copy, Debug)]
struct RatioFilter {
    /// Variance of the wander per second in units of the noise.
    wander: f64,
    state: OffsetState,
    /// Sums over predictions: of their squared errors, in units of what was expected, and of the logarithms of what was expected.
    squares: f64,
    logarithms: f64,
    /// Logarithm of how likely the ratio is without any offset.
    prior: f64,
}

/// Filters for all ratios.
#[derive(Clone, Debug)]
pub(super) struct WanderFilter {
    filters: Vec<RatioFilter>,
    best: usize,
    at: f64,
    /// Number of predictions in the sums; old ones count less.
    count: f64,
    /// Variance of the noise by the offsets' own account, in square nanoseconds.
    stated_noise: Option<f64>,
    /// Number of offsets in a row that were far from what was expected.
    far: u32,
}

/// Powers of ten of the ratios: per second cubed. Between two quartzes whose offsets are known to 10 ns it is about 1.
const RATIOS: core::ops::RangeInclusive<i32> = -8..=6;
/// Standard deviation of the power of ten that is expected.
const USUAL_POWERS: f64 = 3.0;
/// Variance of the noise that is expected, in square nanoseconds, as good as one offset.
const USUAL_NOISE: f64 = 100.0;
/// Share by which the variance of the noise that offsets state follows the last of them.
const STATED_SHARE: f64 = 0.1;
/// Smallest variance that is taken for stated: that of times in whole nanoseconds.
const LEAST_NOISE: f64 = 0.1;
/// Factor by which a prediction counts less after each offset.
const MEMORY: f64 = 0.995;
/// Number of predictions from which on the usual error is known.
const KNOWN: f64 = 12.0;
/// Multiple of its standard deviation from which on an offset counts less.
const FAR: f64 = 8.0;
/// Number of such offsets in a row that show that the clock stepped.
const STEPPED: u32 = 3;
/// Largest variance of a prediction that says something, in units of the noise.
const VAGUE: f64 = 1e6;

impl WanderFilter {
    /// Begins with an offset of 0 at time 0.
    pub(super) fn new() -> Self {
        let filter = |power: i32| RatioFilter {
            wander: 10_f64.powi(power),
            state: OffsetState::new(0.0, 0.0),
            squares: USUAL_NOISE,
            logarithms: 0.0,
            prior: -0.5 * (f64::from(power) / USUAL_POWERS).powi(2),
        };
        let mut filters = Self {
            filters: RATIOS.map(filter).collect(),
            best: 0,
            at: 0.0,
            count: 1.0,
            stated_noise: None,
            far: 0,
        };
        filters.choose();
        filters
    }

    /// Returns the estimate of the most likely filter.
    pub(super) fn estimate(&self) -> OffsetEstimate {
        let best = &self.filters[self.best];
        OffsetEstimate {
            at: self.at,
            state: best.state,
            noise: best.squares / self.count,
            ratio: best.wander,
        }
    }

    /// Tells the standard error of the next offset, where more is known than the offset alone.
    pub(super) fn expect_noise(&mut self, error: f64) {
        let variance = error * error;
        let before = self.stated_noise.unwrap_or(variance);
        self.stated_noise = Some(before + STATED_SHARE * (variance - before));
    }

    /// Takes an offset into account; returns what it counts.
    pub(super) fn push(&mut self, at: f64, offset: f64) -> OffsetPoint {
        let time = at - self.at;
        self.at = at;
        for filter in &mut self.filters {
            filter.state = filter.state.after(time, filter.wander);
        }
        let best = &self.filters[self.best];
        let scale = best.squares / self.count;
        // Variance that makes the offset no further than far.
        let needed = ((offset - best.state.offset) / FAR).powi(2) / scale;
        let is_far = self.count > KNOWN && needed > best.state.variance + 1.0;
        self.far = if is_far { self.far + 1 } else { 0 };
        let noise = if is_far {
            needed - best.state.variance
        } else {
            1.0
        };
        let restarts = self.far == STEPPED;
        if restarts {
            self.far = 0;
            for filter in &mut self.filters {
                filter.state = OffsetState::new(offset, filter.state.rate);
            }
        } else {
            self.correct(offset, noise);
        }
        OffsetPoint {
            at,
            offset,
            noise,
            restarts,
        }
    }

    fn correct(&mut self, offset: f64, noise: f64) {
        let is_vague = self.filters[self.best].state.variance > VAGUE;
        for filter in &mut self.filters {
            let expected = filter.state.variance + noise;
            let error = (offset - filter.state.offset).powi(2) / expected;
            filter.state = filter.state.corrected(offset, noise);
            if !is_vague {
                filter.squares = MEMORY * filter.squares + error;
                filter.logarithms = MEMORY * filter.logarithms + expected.ln();
            }
        }
        if !is_vague {
            self.count = MEMORY * self.count + 1.0;
            self.choose();
        }
    }

    /// Chooses the filter under which the offsets are most likely, with the scale that suits it best.
    fn choose(&mut self) {
        let likelihood = |filter: &RatioFilter| {
            let scale = filter.squares / self.count;
            // What is stated is right within a factor of e. Without it, the noise of a clock that wanders further between two offsets
            // hardly shows.
            let stated = self
                .stated_noise
                .map_or(0.0, |stated| (scale / stated.max(LEAST_NOISE)).ln());
            filter.prior - 0.5 * (stated.powi(2) + self.count * scale.ln() + filter.logarithms)
        };
        let all = self.filters.iter().map(likelihood).enumerate();
        let best = all.max_by(|(_, a), (_, b)| a.total_cmp(b));
        self.best = best.map_or(0, |(best, _)| best);
    }
}

/// Returns the offset and the rate at each point that all of them together give, given the variance of the wander per second in units of
/// the noise (Rauch, Tung and Striebel).
pub(super) fn smooth(points: &[OffsetPoint], wander: f64) -> Vec<[f64; 2]> {
    let mut states: Vec<[OffsetState; 2]> = Vec::with_capacity(points.len());
    let mut before: Option<(f64, OffsetState)> = None;
    for point in points {
        let states_at = match before.filter(|_| !point.restarts) {
            Some((at, state)) => {
                let predicted = state.after(point.at - at, wander);
                [predicted, predicted.corrected(point.offset, point.noise)]
            }
            None => [OffsetState::new(point.offset, 0.0); 2],
        };
        before = Some((point.at, states_at[1]));
        states.push(states_at);
    }
    let mut smoothed: Vec<[f64; 2]> = states
        .iter()
        .map(|[_, state]| [state.offset, state.rate])
        .collect();
    for next in (1..points.len()).rev() {
        let [this, next_point] = [&points[next - 1], &points[next]];
        if !next_point.restarts {
            let time = next_point.at - this.at;
            smoothed[next - 1] =
                states[next - 1][1].smoothed(time, &states[next][0], smoothed[next]);
        }
    }
    smoothed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::normal;

    /// Offsets of a clock whose rate wanders, as they are and as they are measured.
    fn walk(seed: u64, wander: f64, noise: f64, sessions: usize) -> Vec<(f64, f64, f64)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut normal = || normal(&mut random);
        let (mut offset, mut rate) = (0.0, 300.0);
        let steps = 100;
        let mut found = Vec::new();
        for session in 1..=sessions {
            for _ in 0..steps {
                offset += rate * 0.1;
                rate += wander * 0.1_f64.sqrt() * normal();
            }
            found.push((10.0 * session as f64, offset, offset + noise * normal()));
        }
        found
    }

    #[test]
    fn wander_and_noise_are_found() {
        for (wander, noise) in [(7.0, 5.0), (0.7, 30.0), (30.0, 1_000.0)] {
            let mut filter = WanderFilter::new();
            for (at, _, measured) in walk(1, wander, noise, 300) {
                filter.push(at, measured);
            }
            let estimate = filter.estimate();
            let off = |found: f64, truth: f64| (found / truth).ln().abs();
            assert!(
                off(estimate.wander(), wander) < 3_f64.ln(),
                "{wander} {noise}: {estimate:?}"
            );
            // The noise hardly shows where the clock wanders further between two sessions.
            if noise > 20.0 {
                assert!(
                    off(estimate.noise(), noise) < 2_f64.ln(),
                    "{wander} {noise}: {estimate:?}"
                );
            }
        }
    }

    #[test]
    fn a_steady_clock_is_predicted_and_smoothed_well() {
        let truth = walk(2, 0.0, 20.0, 100);
        let mut filter = WanderFilter::new();
        let points: Vec<OffsetPoint> = truth
            .iter()
            .map(|(at, _, measured)| filter.push(*at, *measured))
            .collect();
        let (at, offset, _) = truth[99];
        assert!((filter.estimate().offset_at(at) - offset).abs() < 10.0);
        let smoothed = smooth(&points, filter.estimate().ratio);
        let errors = smoothed
            .iter()
            .zip(&truth)
            .map(|([offset, _], (_, truth, _))| (offset - truth).abs());
        assert!(errors.fold(0.0, f64::max) < 15.0);
    }

    #[test]
    fn one_wrong_offset_hardly_counts_and_a_step_restarts() {
        let mut filter = WanderFilter::new();
        let mut points = Vec::new();
        for (at, truth, measured) in walk(3, 1.0, 5.0, 60) {
            let wrong = if at == 300.0 { 1e6 } else { 0.0 };
            let stepped = if at >= 400.0 { 1e5 } else { 0.0 };
            points.push(filter.push(at, measured + wrong + stepped));
            let off = filter.estimate().offset_at(at) - truth - stepped;
            // A step is believed when the third offset shows it.
            let is_known = !(400.0..420.0).contains(&at) && at > 20.0;
            assert!(!is_known || off.abs() < 200.0, "{at}: {off}");
        }
        let restarts: Vec<f64> = points
            .iter()
            .filter(|point| point.restarts)
            .map(|point| point.at)
            .collect();
        assert_eq!(restarts, [420.0]);
        let smoothed = smooth(&points, filter.estimate().ratio);
        assert!((smoothed[28][0] - points[28].offset).abs() < 100.0);
        assert!((smoothed[59][0] - points[59].offset).abs() < 100.0);
    }
}
