//! Labels of algorithms: their text form in options and results.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;

use super::{
    Algorithm, ClockPropSync, FlatAlgorithm, Hca, Hca2, Hca3, Hca3Offset, Hierarchy, Jk, NbcBench,
    Skampi,
};
use crate::line::LineFit;
use crate::{LabelError, OffsetAlgorithm};

/// Suffixes of the label of a line whose options are on.
const RECOMPUTE: &str = "/recompute";
const WEIGHTED: &str = "/weighted";

/// Formats as `1000/skampi/100`, or `1000/skampi/100/recompute/weighted`.
impl fmt::Display for LineFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_nothing = |label, on| if on { label } else { "" };
        let options = [
            or_nothing(RECOMPUTE, self.recompute),
            or_nothing(WEIGHTED, self.weighted),
        ];
        write!(f, "{}/{}{}", self.fit_points, self.offset, options.concat())
    }
}

impl FromStr for LineFit {
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
            return Err(LabelError::NotWeightable);
        }
        Ok(Self {
            fit_points,
            offset,
            recompute,
            weighted,
        })
    }
}

impl fmt::Display for FlatAlgorithm {
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

impl FromStr for FlatAlgorithm {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let (name, rest) = text
            .split_once('/')
            .map_or((text, None), |(name, rest)| (name, Some(rest)));
        let alone = |algorithm| {
            rest.map_or(Ok(algorithm), |rest| {
                Err(LabelError::TrailingText(rest.to_owned()))
            })
        };
        let offset = || rest.unwrap_or_default().parse::<OffsetAlgorithm>();
        let line = || rest.unwrap_or_default().parse::<LineFit>();
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
            _ => Err(LabelError::UnknownAlgorithm(name.to_owned())),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlatAlgorithm(algorithm) => algorithm.fmt(f),
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
        Ok(Self::FlatAlgorithm(text.parse()?))
    }
}

fn parse_levels<const N: usize>(text: &str) -> Result<[FlatAlgorithm; N], LabelError> {
    let levels = text
        .split(',')
        .map(str::parse)
        .collect::<Result<Vec<FlatAlgorithm>, _>>()?;
    levels
        .try_into()
        .map_err(|levels: Vec<FlatAlgorithm>| LabelError::Levels {
            expected: N,
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

    fn line() -> impl Strategy<Value = LineFit> {
        (1_u32.., offset(), any::<bool>(), any::<bool>()).prop_map(
            |(points, offset, recompute, weighted)| LineFit {
                fit_points: NonZeroU32::new(points).unwrap(),
                offset,
                recompute,
                weighted: weighted && matches!(offset, OffsetAlgorithm::Skampi { .. }),
            },
        )
    }

    fn flat() -> impl Strategy<Value = FlatAlgorithm> {
        prop_oneof![
            Just(FlatAlgorithm::None),
            Just(FlatAlgorithm::Prop(ClockPropSync)),
            offset().prop_map(|offset| FlatAlgorithm::Skampi(Skampi { offset })),
            offset().prop_map(|offset| FlatAlgorithm::NbcBench(NbcBench { offset })),
            offset().prop_map(|offset| FlatAlgorithm::Hca3Offset(Hca3Offset { offset })),
            line().prop_map(|line| FlatAlgorithm::Jk(Jk { line })),
            line().prop_map(|line| FlatAlgorithm::Hca(Hca { line })),
            line().prop_map(|line| FlatAlgorithm::Hca2(Hca2 { line })),
            line().prop_map(|line| FlatAlgorithm::Hca3(Hca3 { line })),
        ]
    }

    fn algorithm() -> impl Strategy<Value = Algorithm> {
        prop_oneof![
            flat().prop_map(Algorithm::FlatAlgorithm),
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
        fn printed_labels_are_parsed(algorithm in algorithm()) {
            prop_assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }

        #[test]
        fn no_text_causes_a_panic(text: String, points: String) {
            let _ = text.parse::<Algorithm>();
            let _ = format!("hca3/{points}/skampi/{text}").parse::<Algorithm>();
            let _ = format!("h2hca({text},{points})").parse::<Algorithm>();
        }
    }

    #[test]
    fn invalid_labels_are_refused_with_the_reason() {
        let error = |label: &str| label.parse::<Algorithm>().unwrap_err();
        assert_eq!(error(""), LabelError::UnknownAlgorithm(String::new()));
        assert_eq!(
            error("hca4/10/skampi/10"),
            LabelError::UnknownAlgorithm("hca4".into())
        );
        assert_eq!(
            error("HCA3/10/skampi/10"),
            LabelError::UnknownAlgorithm("HCA3".into())
        );
        for points in ["0", "-1", "8abc", "", "NaN", "1e3", "+5", "99999999999"] {
            assert_eq!(
                error(&format!("hca3/{points}/skampi/10")),
                LabelError::FitPoints(points.into())
            );
        }
        for (offset, wanted) in [
            ("skampi/0", LabelError::NoExchanges),
            ("skampi/8abc", LabelError::MissingExchanges),
            ("skampi", LabelError::MissingExchanges),
            ("", LabelError::UnknownOffsetAlgorithm),
            ("median/5", LabelError::UnknownOffsetAlgorithm),
            ("skampi/10/20", LabelError::MissingExchanges),
            ("skampi/10/recompute/x", LabelError::MissingExchanges),
            ("skampi/10/weighted/recompute", LabelError::MissingExchanges),
        ] {
            assert_eq!(error(&format!("jk/10/{offset}")), wanted, "{offset}");
        }
        assert_eq!(
            error("jk/10/mean-rtt/10/weighted"),
            LabelError::NotWeightable
        );
        assert_eq!(error("prop/3"), LabelError::TrailingText("3".into()));
        assert_eq!(
            error("h2hca(prop)"),
            LabelError::Levels {
                expected: 2,
                found: 1
            }
        );
        assert_eq!(
            error("h3hca(prop,prop)"),
            LabelError::Levels {
                expected: 3,
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
                matches!(error(unclosed), LabelError::UnknownAlgorithm(_)),
                "{unclosed}"
            );
        }
    }
}
