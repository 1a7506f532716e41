//! Range checks of simulation parameters.

use downbeat_clock_core::Duration;

use crate::ClusterError;

/// Parameters whose names begin alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters<'a>(pub(super) &'a str);

impl Parameters<'_> {
    pub(super) fn require(
        self,
        good: bool,
        name: &str,
        must: &'static str,
    ) -> Result<(), ClusterError> {
        require(good, || format!("{}{name}", self.0), must)
    }

    pub(super) fn not_negative(self, name: &str, value: f64) -> Result<(), ClusterError> {
        let good = value.is_finite() && value >= 0.0;
        self.require(good, name, "a number that is not negative")
    }

    pub(super) fn positive(self, name: &str, value: f64) -> Result<(), ClusterError> {
        let good = value.is_finite() && value > 0.0;
        self.require(good, name, "a positive number")
    }

    /// Checks a span of time.
    pub(super) fn no_negative_span(self, name: &str, span: Duration) -> Result<(), ClusterError> {
        self.not_negative(name, span.as_nanos() as f64)
    }
}

/// Checks a condition of a parameter.
///
/// # Errors
/// [`ClusterError::Parameter`] with the name of the parameter.
pub fn require(
    good: bool,
    name: impl FnOnce() -> String,
    must: &'static str,
) -> Result<(), ClusterError> {
    if good {
        Ok(())
    } else {
        Err(ClusterError::Parameter { name: name(), must })
    }
}
