//! Offset algorithms and their numbers of exchanges.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;

use crate::LabelError;

/// Suffix of the label of an algorithm that may stop early.
const EARLY: &str = "/early";

/// Algorithm that estimates the offset between two ranks, with its number of exchanges.
///
/// The label is the name of the algorithm and the number of exchanges, 100 if it is left out; the suffix
/// `/early` allows SKaMPI to make fewer.
///
/// ```
/// use core::num::NonZeroU32;
/// use downbeat_sync::{OffsetAlgorithm, LabelError};
///
/// let exchanges = const { NonZeroU32::new(100).unwrap() };
/// let algorithm: OffsetAlgorithm = "skampi/100".parse()?;
/// assert_eq!(algorithm, OffsetAlgorithm::Skampi { exchanges, early_exit: false });
/// assert_eq!(algorithm.to_string(), "skampi/100");
/// assert_eq!("skampi".parse::<OffsetAlgorithm>()?.to_string(), "skampi/100");
/// assert_eq!("skampi/8abc".parse::<OffsetAlgorithm>(), Err(LabelError::MissingExchanges));
/// # Ok::<(), LabelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OffsetAlgorithm {
    /// Middle of the interval that no exchange contradicts; half of its width is an error bound.
    Skampi {
        /// Maximum number of exchanges.
        exchanges: NonZeroU32,
        /// End the measurement soon after an exchange that was nearly as quick as the quickest one
        /// ever between this pair of ranks, since a better one is unlikely. Algorithm 7 of the
        /// paper makes all exchanges.
        early_exit: bool,
    },
    /// Median exchange minus half the mean round trip of the pair. Messages are sent synchronously.
    /// The round trip is measured before the first use, by the same number of exchanges.
    MeanRtt {
        /// Number of exchanges.
        exchanges: NonZeroU32,
    },
    /// Mean of all exchanges except the slowest tenth.
    TraceCollector {
        /// Number of exchanges.
        exchanges: NonZeroU32,
    },
}

/// Number of exchanges of a label that names none.
const DEFAULT_EXCHANGES: NonZeroU32 = NonZeroU32::new(100).unwrap();

impl OffsetAlgorithm {
    /// Returns the number of exchanges.
    pub const fn exchanges(self) -> NonZeroU32 {
        let (Self::Skampi { exchanges, .. }
        | Self::MeanRtt { exchanges }
        | Self::TraceCollector { exchanges }) = self;
        exchanges
    }

    /// Returns the name of the algorithm, the first part of its label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skampi { .. } => "skampi",
            Self::MeanRtt { .. } => "mean-rtt",
            Self::TraceCollector { .. } => "trace-collector",
        }
    }

    /// Returns all algorithms, each with this number of exchanges.
    pub const fn all(exchanges: NonZeroU32) -> [Self; 3] {
        [
            Self::skampi(exchanges),
            Self::MeanRtt { exchanges },
            Self::TraceCollector { exchanges },
        ]
    }

    /// Returns SKaMPI's algorithm with exactly this number of exchanges.
    pub const fn skampi(exchanges: NonZeroU32) -> Self {
        Self::Skampi {
            exchanges,
            early_exit: false,
        }
    }
}

impl Default for OffsetAlgorithm {
    /// Returns `skampi/100`.
    fn default() -> Self {
        Self::skampi(DEFAULT_EXCHANGES)
    }
}

impl fmt::Display for OffsetAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let early = matches!(
            self,
            Self::Skampi {
                early_exit: true,
                ..
            }
        );
        write!(
            f,
            "{}/{}{}",
            self.name(),
            self.exchanges(),
            if early { EARLY } else { "" }
        )
    }
}

/// Parses the form that is printed, and the same without the number of exchanges.
impl FromStr for OffsetAlgorithm {
    type Err = LabelError;

    fn from_str(label: &str) -> Result<Self, LabelError> {
        let (label, early_exit) = label
            .strip_suffix(EARLY)
            .map_or((label, false), |label| (label, true));
        let (name, number) = first_part(label);
        let algorithm = Self::all(NonZeroU32::MIN)
            .into_iter()
            .find(|algorithm| algorithm.name() == name);
        let algorithm = algorithm.ok_or(LabelError::UnknownOffsetAlgorithm)?;
        let exchanges = number.map_or(Ok(DEFAULT_EXCHANGES), exchanges)?;
        Ok(match algorithm {
            Self::Skampi { .. } => Self::Skampi {
                exchanges,
                early_exit,
            },
            _ if early_exit => return Err(LabelError::EarlyExit),
            Self::MeanRtt { .. } => Self::MeanRtt { exchanges },
            Self::TraceCollector { .. } => Self::TraceCollector { exchanges },
        })
    }
}

/// Splits a label at its first slash.
pub(crate) fn first_part(label: &str) -> (&str, Option<&str>) {
    match label.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (label, None),
    }
}

/// Parses a number of exchanges: digits only and no leading zeros, so that each algorithm has one
/// label.
fn exchanges(number: &str) -> Result<NonZeroU32, LabelError> {
    if number == "0" {
        return Err(LabelError::NoExchanges);
    }
    if number.is_empty()
        || number.starts_with('0')
        || !number.bytes().all(|digit| digit.is_ascii_digit())
    {
        return Err(LabelError::MissingExchanges);
    }
    // Only the number of digits can be wrong.
    number.parse().map_err(|_| LabelError::TooManyExchanges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(label: &str) -> Result<OffsetAlgorithm, LabelError> {
        label.parse()
    }

    #[test]
    fn labels_are_those_of_the_papers() {
        let printed = OffsetAlgorithm::all(const { NonZeroU32::new(100).unwrap() })
            .map(|algorithm| algorithm.to_string());
        assert_eq!(
            printed,
            ["skampi/100", "mean-rtt/100", "trace-collector/100"]
        );
    }

    #[test]
    fn invalid_offset_labels_are_refused_with_the_reason() {
        for label in [
            "",
            "/",
            "/100",
            "NaN",
            "SKaMPI/100",
            " skampi/100",
            "skampi /100",
            "100/skampi",
            "hca3/100",
        ] {
            assert_eq!(
                parse(label),
                Err(LabelError::UnknownOffsetAlgorithm),
                "{label}"
            );
        }
        for number in [
            "", "/", "8abc", "NaN", "inf", "-1", "+1", "1.5", "1e3", " 1", "1 ", "1/", "1/2",
            "007", "00", "٣",
        ] {
            let label = format!("mean-rtt/{number}");
            assert_eq!(parse(&label), Err(LabelError::MissingExchanges), "{label}");
        }
        assert_eq!(parse("skampi/"), Err(LabelError::MissingExchanges));
        assert_eq!(parse("skampi/0"), Err(LabelError::NoExchanges));
        assert_eq!(
            parse("skampi/4294967296"),
            Err(LabelError::TooManyExchanges)
        );
        for label in ["skampi/10/early/early", "skampi/10/late", "skampi//early"] {
            assert_eq!(parse(label), Err(LabelError::MissingExchanges), "{label}");
        }
        assert_eq!(parse("mean-rtt/10/early"), Err(LabelError::EarlyExit));
    }

    proptest! {
        #[test]
        fn printed_labels_are_parsed(exchanges: NonZeroU32) {
            let early = OffsetAlgorithm::Skampi { exchanges, early_exit: true };
            for algorithm in OffsetAlgorithm::all(exchanges).into_iter().chain([early]) {
                prop_assert_eq!(parse(&algorithm.to_string()), Ok(algorithm));
            }
        }

        #[test]
        fn parsed_labels_are_printed_unchanged(label in "(skampi|mean-rtt|trace-collector|[a-z-]{0,3})/?[0-9+ a]{0,11}(/|/early)?") {
            if let Ok(algorithm) = parse(&label) {
                let printed = algorithm.to_string();
                prop_assert!(printed == label || printed.replace("/100", "") == label, "{label}: {printed}");
            }
        }

        #[test]
        fn no_text_causes_a_panic(label in "\\PC*") {
            let _ = parse(&label);
        }
    }
}
