//! Statistics of samples: tests, intervals, densities and plans of experiments.

mod batch_means;
mod chi_squared;
mod comparison;
mod density;
mod error;
#[cfg(test)]
mod golden;
mod histogram;
mod hodges_lehmann;
mod holm;
mod interval;
mod launches_needed;
mod mann_whitney;
mod median_interval;
mod normal;
mod normality;
mod p_values;
mod qq;
mod quantile;
mod rank_sum;
mod sample;
mod sample_size;
mod spread;
mod student;
mod t_test;
mod tukey;
mod variance_parts;

pub use batch_means::BatchMeans;
pub use comparison::{Comparison, ExperimentAverages};
pub use density::Density;
pub use error::StatsError;
pub use histogram::Histogram;
pub use hodges_lehmann::HodgesLehmann;
pub use holm::holm;
pub use interval::{Confidence, Interval};
pub use mann_whitney::{MannWhitney, RankMethod};
pub use median_interval::MedianInterval;
pub use normality::ShapiroWilk;
pub use p_values::{PValues, stars};
pub use sample::Sample;
pub use sample_size::{MeansOfSize, SampleSizeCheck};
pub use t_test::WelchTest;
pub use variance_parts::VarianceParts;
