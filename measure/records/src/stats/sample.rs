//! A sample: the input of all statistics.

use super::StatsError;

/// Finite numbers in ascending order; at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Visible in the crate, so that numbers that are sorted already need no copy.
    pub(crate) sorted: &'a [f64],
}

impl<'a> Sample<'a> {
    /// Sorts the numbers in place and makes a sample of them.
    ///
    /// # Errors
    /// If there are none, or one is not finite.
    pub fn new(values: &'a mut [f64]) -> Result<Self, StatsError> {
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(StatsError::NotFinite(index));
        }
        if values.is_empty() {
            return Err(StatsError::Empty);
        }
        values.sort_unstable_by(f64::total_cmp);
        Ok(Self { sorted: values })
    }

    /// Creates a sample of values that are sorted and finite; `None` if there are none.
    pub fn of_sorted(sorted: &'a [f64]) -> Option<Self> {
        debug_assert!(sorted.is_sorted() && sorted.iter().all(|value| value.is_finite()));
        (!sorted.is_empty()).then_some(Self { sorted })
    }

    /// The numbers, ascending.
    pub fn values(&self) -> &'a [f64] {
        self.sorted
    }

    /// Number of values; never zero.
    #[expect(clippy::len_without_is_empty, reason = "a sample is never empty")]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        // Around the median, so that a sum of large numbers does not lose the small differences between them.
        let centre = self.median();
        centre + self.sorted.iter().map(|value| value - centre).sum::<f64>() / self.len() as f64
    }
}
