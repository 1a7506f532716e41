//! Checks of the parameters of a simulation.

use crate::ClusterError;

/// Refuses negative values and values that are not a number.
///
/// # Errors
/// Names the parameter.
pub fn require_non_negative(value: f64, name: impl FnOnce() -> String) -> Result<(), ClusterError> {
    require(
        value.is_finite() && value >= 0.0,
        name,
        "a number that is not negative",
    )
}

pub(super) fn positive(value: f64, name: impl FnOnce() -> String) -> Result<(), ClusterError> {
    require(value.is_finite() && value > 0.0, name, "a positive number")
}

/// Refuses a parameter whose value is not good.
///
/// # Errors
/// Names the parameter.
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
