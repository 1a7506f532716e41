//! Statements of a synchronization about the error of a clock.

/// Error of a clock in relation to the clock of rank 0, in nanoseconds, as far as
/// measurements show it. It is no bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatedError {
    /// Standard error. What distorts all messages of a pair alike, as ways of unequal
    /// length do, is part of it: the measurements around cycles of ranks show it.
    Error(f64),
    /// Standard error but for what distorts all messages of a pair alike: nothing shows
    /// that, as between two ranks.
    Scatter(f64),
}

impl StatedError {
    /// Error of the reference.
    pub(crate) const NONE: Self = Self::Error(0.0);

    /// Returns the error or scatter in nanoseconds.
    pub fn nanos(self) -> f64 {
        match self {
            Self::Error(nanos) | Self::Scatter(nanos) => nanos,
        }
    }

    /// Returns true if the measurements show the error, not their scatter alone.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Returns a statement of the same kind about another number.
    pub(crate) fn map(self, change: impl FnOnce(f64) -> f64) -> Self {
        match self {
            Self::Error(nanos) => Self::Error(change(nanos)),
            Self::Scatter(nanos) => Self::Scatter(change(nanos)),
        }
    }

    /// Combines two statements; what one of them does not show, both do not.
    pub(crate) fn combine(self, other: Self, combine: fn(f64, f64) -> f64) -> Self {
        let nanos = combine(self.nanos(), other.nanos());
        match (self, other) {
            (Self::Error(_), Self::Error(_)) => Self::Error(nanos),
            _ => Self::Scatter(nanos),
        }
    }
}

/// Number of batches of consecutive measurements.
const BATCHES: usize = 8;

/// Means of batches of consecutive measurements. They differ by more than independent
/// measurements would make them, where these are correlated, or the clocks wander.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchMeans {
    batches: [Batch; BATCHES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    weight: f64,
    at: f64,
    value: f64,
}

impl BatchMeans {
    /// Adds measurement `index` of `all`: its value at a time.
    pub(crate) fn push(&mut self, index: usize, all: usize, at: f64, value: f64, weight: f64) {
        let batch = &mut self.batches[(index * BATCHES / all.max(1)).min(BATCHES - 1)];
        batch.weight += weight;
        let share = if batch.weight > 0.0 {
            weight / batch.weight
        } else {
            0.0
        };
        batch.at += share * (at - batch.at);
        batch.value += share * (value - batch.value);
    }

    /// Returns the standard error, at its end, of a line through the measurements, given
    /// what it shows at a time. `None` for fewer batches than show one.
    pub(crate) fn error_at_end(&self, line: impl Fn(f64) -> f64) -> Option<f64> {
        let known = self.batches.iter().filter(|batch| batch.weight > 0.0);
        let count = known.clone().count() as f64;
        let squares: f64 = known
            .map(|batch| (batch.value - line(batch.at)).powi(2))
            .sum();
        // Of a line through equidistant points, at the end of the last.
        let of_end = (1.0 + 3.0 * count.powi(2) / (count.powi(2) - 1.0)) / count;
        (count > 2.0).then(|| (squares / (count - 2.0) * of_end).sqrt())
    }
}

/// Returns the factor for a standard error that was found from few independent numbers:
/// with it, 90 % of errors are within 1.645 standard errors.
pub(crate) fn allowance_for_few(numbers: f64) -> f64 {
    // Quantiles of 95 % of Student's distribution, over 1.645.
    const QUANTILES: [f64; 6] = [3.84, 1.78, 1.43, 1.30, 1.23, 1.18];
    match numbers {
        ..1.5 => QUANTILES[0],
        1.5..6.5 => QUANTILES[numbers.round() as usize - 1],
        _ => 1.0 + 1.1 / numbers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_of_a_line_show_no_error_and_those_of_a_wandering_clock_do() {
        let line = |at: f64| 3.0 + 0.5 * at;
        let with = |wander: fn(f64) -> f64, all: usize| {
            let mut means = BatchMeans::default();
            for index in 0..all {
                let at = index as f64;
                means.push(index, all, at, line(at) + wander(at / all as f64), 1.0);
            }
            means.error_at_end(line)
        };
        assert!(with(|_| 0.0, 100).unwrap() < 1e-12);
        // Slow: the mean of all tells nothing of the end.
        assert!(with(|share| 40.0 * (share - 0.5).powi(2), 100).unwrap() > 2.0);
        assert_eq!(with(|_| 0.0, 2), None);
    }

    #[test]
    fn wide_measurements_hardly_count() {
        let mut means = BatchMeans::default();
        for index in 0..16 {
            let (value, weight) = if index == 7 { (1e6, 1e-9) } else { (0.0, 1.0) };
            means.push(index, 16, index as f64, value, weight);
        }
        assert!(means.error_at_end(|_| 0.0).unwrap() < 1.0);
    }

    #[test]
    fn few_numbers_allow_for_more() {
        let allowed: Vec<f64> = (1..12).map(|n| allowance_for_few(f64::from(n))).collect();
        assert!(allowed.is_sorted_by(|a, b| a > b), "{allowed:?}");
    }
}
