//! Labels: how a synchronization is asked for, and named in results.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;

use super::{
    Algorithm, ClockPropSync, Flat, Hca, Hca2, Hca3, Hca3Offset, Hierarchy, Jk, NbcBench, Skampi,
};
use crate::line::Line;
use crate::{OffsetAlgorithm, OffsetLabelError};

/// Why a text is not the label of an [`Algorithm`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// There is no such algorithm.
    NoSuchAlgorithm(String),
    /// The number of fit points is missing, zero or no number.
    FitPoints(String),
    /// The offset algorithm is not one.
    Offset(OffsetLabelError),
    /// Only the offsets of SKaMPI's algorithm say how certain they are.
    NothingToWeighBy,
    /// More follows than the algorithm takes.
    TooMuch(String),
    /// A hierarchy needs another number of algorithms.
    Levels {
        /// How many it takes.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchAlgorithm(name) => write!(
                f,
                "there is no algorithm \"{name}\"; there are none, skampi, nbcbench, jk, hca, hca2, hca3, hca3-offset, \
                 prop, h2hca(...) and h3hca(...)"
            ),
            Self::FitPoints(found) => write!(f, "the number of fit points must be a positive number, not \"{found}\""),
            Self::Offset(why) => why.fmt(f),
            Self::NothingToWeighBy => f.write_str(
                "only offsets measured by skampi can be weighted: the others do not say how certain they are",
            ),
            Self::TooMuch(rest) => write!(f, "\"{rest}\" is too much"),
            Self::Levels { wanted, found } => write!(f, "the hierarchy takes {wanted} algorithms, not {found}"),
        }
    }
}

impl core::error::Error for LabelError {}

impl From<OffsetLabelError> for LabelError {
    fn from(why: OffsetLabelError) -> Self {
        Self::Offset(why)
    }
}

/// What follows in the label of a line whose options are on.
const RECOMPUTE: &str = "/recompute";
const WEIGHTED: &str = "/weighted";

/// `1000/skampi/100`, or `1000/skampi/100/recompute/weighted`.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_nothing = |label, on| if on { label } else { "" };
        let options = [
            or_nothing(RECOMPUTE, self.recompute),
            or_nothing(WEIGHTED, self.weighted),
        ];
        write!(f, "{}/{}{}", self.fit_points, self.offset, options.concat())
    }
}

impl FromStr for Line {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let (points, rest) = text.split_once('/').unwrap_or((text, ""));
        let digits = !points.is_empty() && points.bytes().all(|byte| byte.is_ascii_digit());
        let fit_points: Option<NonZeroU32> = points.parse().ok().filter(|_| digits);
        let option =
            |rest, label| str::strip_suffix(rest, label).map_or((rest, false), |rest| (rest, true));
        let (rest, weighted) = option(rest, WEIGHTED);
        let (offset, recompute) = option(rest, RECOMPUTE);
        let fit_points = fit_points.ok_or_else(|| LabelError::FitPoints(points.to_owned()))?;
        let offset = offset.parse()?;
        if weighted && !matches!(offset, OffsetAlgorithm::Skampi { .. }) {
            return Err(LabelError::NothingToWeighBy);
        }
        Ok(Self {
            fit_points,
            offset,
            recompute,
            weighted,
        })
    }
}

impl fmt::Display for Flat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Skampi(Skampi { offset }) => write!(f, "skampi/{offset}"),
            Self::NbcBench(NbcBench { offset }) => write!(f, "nbcbench/{offset}"),
            Self::Jk(Jk { line }) => write!(f, "jk/{line}"),
            Self::Hca(Hca { line }) => write!(f, "hca/{line}"),
            Self::Hca2(Hca2 { line }) => write!(f, "hca2/{line}"),
            Self::Hca3(Hca3 { line }) => write!(f, "hca3/{line}"),
            Self::Hca3Offset(Hca3Offset { offset }) => write!(f, "hca3-offset/{offset}"),
            Self::Prop(ClockPropSync) => f.write_str("prop"),
        }
    }
}

impl FromStr for Flat {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let (name, rest) = text
            .split_once('/')
            .map_or((text, None), |(name, rest)| (name, Some(rest)));
        let alone = |algorithm| {
            rest.map_or(Ok(algorithm), |rest| {
                Err(LabelError::TooMuch(rest.to_owned()))
            })
        };
        let offset = || rest.unwrap_or_default().parse::<OffsetAlgorithm>();
        let line = || rest.unwrap_or_default().parse::<Line>();
        match name {
            "none" => alone(Self::None),
            "prop" => alone(Self::Prop(ClockPropSync)),
            "skampi" => Ok(Self::Skampi(Skampi { offset: offset()? })),
            "nbcbench" => Ok(Self::NbcBench(NbcBench { offset: offset()? })),
            "jk" => Ok(Self::Jk(Jk { line: line()? })),
            "hca" => Ok(Self::Hca(Hca { line: line()? })),
            "hca2" => Ok(Self::Hca2(Hca2 { line: line()? })),
            "hca3" => Ok(Self::Hca3(Hca3 { line: line()? })),
            "hca3-offset" => Ok(Self::Hca3Offset(Hca3Offset { offset: offset()? })),
            _ => Err(LabelError::NoSuchAlgorithm(name.to_owned())),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flat(algorithm) => algorithm.fmt(f),
            Self::Hierarchy(Hierarchy::Two { nodes, ranks }) => write!(f, "h2hca({nodes},{ranks})"),
            Self::Hierarchy(Hierarchy::Three {
                nodes,
                sockets,
                ranks,
            }) => {
                write!(f, "h3hca({nodes},{sockets},{ranks})")
            }
        }
    }
}

impl FromStr for Algorithm {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let inside = |name: &str| {
            text.strip_prefix(name)?
                .strip_prefix('(')?
                .strip_suffix(')')
        };
        if let Some(levels) = inside("h2hca") {
            let [nodes, ranks] = parse_levels(levels)?;
            return Ok(Self::Hierarchy(Hierarchy::Two { nodes, ranks }));
        }
        if let Some(levels) = inside("h3hca") {
            let [nodes, sockets, ranks] = parse_levels(levels)?;
            return Ok(Self::Hierarchy(Hierarchy::Three {
                nodes,
                sockets,
                ranks,
            }));
        }
        Ok(Self::Flat(text.parse()?))
    }
}

fn parse_levels<const N: usize>(text: &str) -> Result<[Flat; N], LabelError> {
    let levels = text
        .split(',')
        .map(str::parse)
        .collect::<Result<Vec<Flat>, _>>()?;
    levels
        .try_into()
        .map_err(|levels: Vec<Flat>| LabelError::Levels {
            wanted: N,
            found: levels.len(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offset() -> impl Strategy<Value = OffsetAlgorithm> {
        (0..3, 1_u32.., any::<bool>()).prop_map(|(which, exchanges, early_exit)| {
            let exchanges = NonZeroU32::new(exchanges).unwrap();
            match which {
                0 => OffsetAlgorithm::Skampi {
                    exchanges,
                    early_exit,
                },
                1 => OffsetAlgorithm::MeanRtt { exchanges },
                _ => OffsetAlgorithm::TraceCollector { exchanges },
            }
        })
    }

    fn line() -> impl Strategy<Value = Line> {
        (1_u32.., offset(), any::<bool>(), any::<bool>()).prop_map(
            |(points, offset, recompute, weighted)| Line {
                fit_points: NonZeroU32::new(points).unwrap(),
                offset,
                recompute,
                weighted: weighted && matches!(offset, OffsetAlgorithm::Skampi { .. }),
            },
        )
    }

    fn flat() -> impl Strategy<Value = Flat> {
        prop_oneof![
            Just(Flat::None),
            Just(Flat::Prop(ClockPropSync)),
            offset().prop_map(|offset| Flat::Skampi(Skampi { offset })),
            offset().prop_map(|offset| Flat::NbcBench(NbcBench { offset })),
            offset().prop_map(|offset| Flat::Hca3Offset(Hca3Offset { offset })),
            line().prop_map(|line| Flat::Jk(Jk { line })),
            line().prop_map(|line| Flat::Hca(Hca { line })),
            line().prop_map(|line| Flat::Hca2(Hca2 { line })),
            line().prop_map(|line| Flat::Hca3(Hca3 { line })),
        ]
    }

    fn algorithm() -> impl Strategy<Value = Algorithm> {
        prop_oneof![
            flat().prop_map(Algorithm::Flat),
            [flat(), flat()]
                .prop_map(|[nodes, ranks]| Algorithm::Hierarchy(Hierarchy::Two { nodes, ranks })),
            [flat(), flat(), flat()].prop_map(|[nodes, sockets, ranks]| Algorithm::Hierarchy(
                Hierarchy::Three {
                    nodes,
                    sockets,
                    ranks
                }
            )),
        ]
    }

    proptest! {
        #[test]
        fn a_label_that_was_printed_is_parsed(algorithm in algorithm()) {
            prop_assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }

        #[test]
        fn no_text_panics(text: String, points: String) {
            let _ = text.parse::<Algorithm>();
            let _ = format!("hca3/{points}/skampi/{text}").parse::<Algorithm>();
            let _ = format!("h2hca({text},{points})").parse::<Algorithm>();
        }
    }

    #[test]
    fn what_is_wrong_with_a_label_is_named() {
        let error = |label: &str| label.parse::<Algorithm>().unwrap_err();
        assert_eq!(error(""), LabelError::NoSuchAlgorithm(String::new()));
        assert_eq!(
            error("hca4/10/skampi/10"),
            LabelError::NoSuchAlgorithm("hca4".into())
        );
        assert_eq!(
            error("HCA3/10/skampi/10"),
            LabelError::NoSuchAlgorithm("HCA3".into())
        );
        for points in ["0", "-1", "8abc", "", "NaN", "1e3", "+5", "99999999999"] {
            assert_eq!(
                error(&format!("hca3/{points}/skampi/10")),
                LabelError::FitPoints(points.into())
            );
        }
        for offset in [
            "skampi/0",
            "skampi/8abc",
            "skampi",
            "",
            "median/5",
            "skampi/10/20",
            "skampi/10/recompute/x",
            "skampi/10/weighted/recompute",
        ] {
            assert!(
                matches!(error(&format!("jk/10/{offset}")), LabelError::Offset(_)),
                "{offset}"
            );
        }
        assert_eq!(
            error("jk/10/mean-rtt/10/weighted"),
            LabelError::NothingToWeighBy
        );
        assert_eq!(error("prop/3"), LabelError::TooMuch("3".into()));
        assert_eq!(
            error("h2hca(prop)"),
            LabelError::Levels {
                wanted: 2,
                found: 1
            }
        );
        assert_eq!(
            error("h3hca(prop,prop)"),
            LabelError::Levels {
                wanted: 3,
                found: 2
            }
        );
        for unclosed in [
            "h2hca",
            "h2hca(",
            "h2hca(prop,prop",
            "h2hca(prop,h2hca(prop,prop))",
        ] {
            assert!(
                matches!(error(unclosed), LabelError::NoSuchAlgorithm(_)),
                "{unclosed}"
            );
        }
    }
}
