//! Statistics of a sample.

mod comparison;
mod density;
mod error;
#[cfg(test)]
mod golden;
mod histogram;
mod hodges_lehmann;
mod holm;
mod interval;
mod mann_whitney;
mod median_interval;
mod normal;
mod normality;
mod p_values;
mod qq;
mod quantile;
mod rank_sum;
mod sample_size;
mod spread;
mod student;
mod t_test;
mod tukey;
mod variance_parts;

use core::fmt;

pub use comparison::{Averages, Comparison};
pub use density::Density;
pub use error::TestError;
pub use histogram::Histogram;
pub use hodges_lehmann::HodgesLehmann;
pub use holm::holm;
pub use interval::{Confidence, ConfidenceError, Interval};
pub use mann_whitney::{MannWhitney, RankMethod};
pub use median_interval::MedianInterval;
pub use normality::ShapiroWilk;
pub use p_values::{PValues, stars};
pub use sample_size::{MeansOfSize, SampleSizeCheck};
pub use t_test::WelchTest;
pub use variance_parts::{GroupError, VarianceParts};

/// Finite numbers in ascending order; at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    // Whoever sorted them may also say so.
    pub(crate) sorted: &'a [f64],
}

/// Why numbers are no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleError {
    /// There are none.
    Empty,
    /// The number at this place is infinite or not a number.
    NotFinite(usize),
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a sample needs at least one value"),
            Self::NotFinite(place) => {
                write!(f, "value {place} of the sample is not a finite number")
            }
        }
    }
}

impl core::error::Error for SampleError {}

impl<'a> Sample<'a> {
    /// Sorts the numbers, and takes them as a sample.
    ///
    /// # Errors
    /// When there are none, or one is not finite.
    pub fn new(values: &'a mut [f64]) -> Result<Self, SampleError> {
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            return Err(SampleError::NotFinite(place));
        }
        if values.is_empty() {
            return Err(SampleError::Empty);
        }
        values.sort_unstable_by(f64::total_cmp);
        Ok(Self { sorted: values })
    }

    /// The numbers, ascending.
    pub fn values(&self) -> &'a [f64] {
        self.sorted
    }

    /// How many there are; never zero.
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
