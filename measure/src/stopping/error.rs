//! Why a text is no stopping rule.

use core::fmt;

use downbeat_clock_core::Duration;

/// Why a text is no stopping rule, or a rule makes no sense.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StoppingError {
    /// There is no rule of this name.
    NoSuchRule(String),
    /// The rule takes another number of parameters.
    Parameters {
        /// How the rule is written.
        form: &'static str,
    },
    /// A parameter is not what it should be.
    NotA {
        /// Which one, as in the rule's form.
        name: &'static str,
        /// What was found.
        found: String,
    },
    /// A number of observations is too small.
    TooFew {
        /// Which one, as in the rule's form.
        name: &'static str,
        /// What was found.
        found: u32,
        /// What it must be at least.
        least: u32,
    },
    /// The greatest number of observations is below the least one, or below a batch.
    Reversed {
        /// Which one is greater, as in the rule's form.
        name: &'static str,
        /// That number.
        least: u32,
        /// The greatest number.
        most: u32,
    },
    /// The bound is not a positive number.
    Bound(f64),
    /// The time slice is not longer than 0.
    Slice(Duration),
}

impl fmt::Display for StoppingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRule(name) => {
                write!(
                    f,
                    "there is no stopping rule \"{name}\"; there are count, time, rse, interval, decay and near"
                )
            }
            Self::Parameters { form } => write!(f, "the rule is written {form}"),
            Self::NotA { name, found } => write!(f, "{name} cannot be \"{found}\""),
            Self::TooFew { name, found, least } => {
                write!(f, "{name} must be at least {least}, and is {found}")
            }
            Self::Reversed { name, least, most } => {
                write!(
                    f,
                    "{name}, which is {least}, is above MOST, which is {most}"
                )
            }
            Self::Bound(bound) => write!(f, "BOUND must be a share above 0, and is {bound}"),
            Self::Slice(slice) => write!(f, "SLICE must be longer than 0, and is {slice}"),
        }
    }
}

impl core::error::Error for StoppingError {}
