//! Why a simulation did not come to its end.

use core::fmt;

/// Why a [`SimCluster`](super::SimCluster) has no results.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimError {
    /// A parameter makes no sense.
    Parameter {
        /// Which.
        name: String,
        /// What it should be.
        must: &'static str,
    },
    /// All ranks that have not returned wait, and nothing is under way to any of them.
    Deadlock {
        /// How many wait.
        waiting: u32,
        /// The first of them.
        rank: u32,
        /// For whom that one waits, unless it waits for all, or for what is not simulated.
        waits_for: Option<u32>,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { name, must } => write!(f, "{name} must be {must}"),
            Self::Deadlock {
                waiting,
                rank,
                waits_for: Some(other),
            } => {
                write!(
                    f,
                    "{waiting} ranks wait for ever: the first is rank {rank}, for rank {other}"
                )
            }
            Self::Deadlock {
                waiting,
                rank,
                waits_for: None,
            } => {
                write!(f, "{waiting} ranks wait for ever: the first is rank {rank}")
            }
        }
    }
}

impl core::error::Error for SimError {}

/// Refuses negative values and values that are not a number.
///
/// # Errors
/// Names the parameter.
pub fn not_negative(value: f64, name: impl FnOnce() -> String) -> Result<(), SimError> {
    refuse_unless(
        value.is_finite() && value >= 0.0,
        name,
        "a number that is not negative",
    )
}

pub(super) fn positive(value: f64, name: impl FnOnce() -> String) -> Result<(), SimError> {
    refuse_unless(value.is_finite() && value > 0.0, name, "a positive number")
}

/// Refuses a parameter whose value is not good.
///
/// # Errors
/// Names the parameter.
pub fn refuse_unless(
    good: bool,
    name: impl FnOnce() -> String,
    must: &'static str,
) -> Result<(), SimError> {
    if good {
        Ok(())
    } else {
        Err(SimError::Parameter { name: name(), must })
    }
}
