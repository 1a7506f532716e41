//! Labels of processings in options and records.

use core::fmt;
use core::str::FromStr;

use super::{PerRank, Processing};
use crate::error::MethodError;
use crate::names::name_values;
use downbeat_records::stats::Confidence;

name_values! {
    PerRank, "figure of a rank":
    Median = "median",
    Mean = "mean",
    Min = "min",
    Max = "max",
}

/// Writes the label with all parameters, so that records contain them.
impl fmt::Display for Processing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Median => f.write_str("median"),
            Self::Percentiles => f.write_str("percentiles"),
            Self::Skampi => f.write_str("skampi"),
            Self::Extremes {
                root_only,
                confidence,
            } => {
                write!(
                    f,
                    "extremes/{}{}",
                    if *root_only { "root/" } else { "" },
                    confidence.share()
                )
            }
            Self::Osu => f.write_str("osu"),
            Self::Global { confidence } => write!(f, "global/{}", confidence.share()),
            Self::MpiBench { factor } => write!(f, "mpibench/{factor}"),
            Self::NbcBench { per_rank } => write!(f, "nbcbench/{per_rank}"),
            Self::RankAverages => f.write_str("rank-averages"),
            Self::RootBest => f.write_str("root-best"),
        }
    }
}

impl FromStr for Processing {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let (name, option) = text
            .split_once('/')
            .map_or((text, None), |(name, option)| (name, Some(option)));
        let alone = |processing| option.map_or(Ok(processing), |option| Err(wrong(option)));
        match name {
            "median" => alone(Self::Median),
            "percentiles" => alone(Self::Percentiles),
            "skampi" | "ps1" => alone(Self::Skampi),
            "extremes" | "ps2" => {
                let (root_only, share) = match option.and_then(|option| option.strip_prefix("root"))
                {
                    Some("") => (true, None),
                    Some(rest) => (
                        true,
                        Some(rest.strip_prefix('/').ok_or_else(|| wrong(rest))?),
                    ),
                    None => (false, option),
                };
                Ok(Self::Extremes {
                    root_only,
                    confidence: confidence(share)?,
                })
            }
            "osu" | "ps3" => alone(Self::Osu),
            "global" | "ps4" => Ok(Self::Global {
                confidence: confidence(option)?,
            }),
            "mpibench" | "ps5" => Ok(Self::MpiBench {
                factor: factor(option)?,
            }),
            "nbcbench" | "ps6" => Ok(Self::NbcBench {
                per_rank: per_rank(option)?,
            }),
            "rank-averages" | "ps7" => alone(Self::RankAverages),
            "root-best" | "ps8" => alone(Self::RootBest),
            _ => Err(MethodError::UnknownName {
                kind: "processing",
                name: name.to_owned(),
                known: KNOWN.to_owned(),
            }),
        }
    }
}

/// Names of all processings, with their numbers in Hunold 2016.
const KNOWN: &str = "median, percentiles, skampi (or ps1), extremes (ps2), osu (ps3), global (ps4), mpibench (ps5), nbcbench (ps6), \
                     rank-averages (ps7) and root-best (ps8)";

fn confidence(option: Option<&str>) -> Result<Confidence, MethodError> {
    let Some(option) = option else {
        return Ok(Confidence::USUAL);
    };
    let share = option.parse().map_err(|_| wrong(option))?;
    Confidence::new(share).map_err(|_| wrong(option))
}

fn factor(option: Option<&str>) -> Result<f64, MethodError> {
    let Some(option) = option else {
        return Ok(Processing::MPI_BENCH_FACTOR);
    };
    let factor: f64 = option.parse().map_err(|_| wrong(option))?;
    if factor.is_finite() && factor >= 1.0 {
        Ok(factor)
    } else {
        Err(MethodError::OutlierFactor(factor))
    }
}

/// Parses the figure of each rank; the median, which is the most robust, is the default.
fn per_rank(option: Option<&str>) -> Result<PerRank, MethodError> {
    let Some(option) = option else {
        return Ok(PerRank::Median);
    };
    option.parse().map_err(|_| wrong(option))
}

fn wrong(option: &str) -> MethodError {
    MethodError::ProcessingOption(option.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn processing() -> impl Strategy<Value = Processing> {
        let confidence =
            (1..1_000_u32).prop_map(|share| Confidence::new(f64::from(share) / 1_000.0).unwrap());
        let per_rank = prop::sample::select(PerRank::ALL.to_vec());
        (0..10, any::<bool>(), confidence, 1.0..1e9, per_rank).prop_map(
            |(which, root_only, confidence, factor, per_rank)| match which {
                0 => Processing::Median,
                1 => Processing::Skampi,
                2 => Processing::Extremes {
                    root_only,
                    confidence,
                },
                3 => Processing::Osu,
                4 => Processing::Global { confidence },
                5 => Processing::MpiBench { factor },
                6 => Processing::NbcBench { per_rank },
                7 => Processing::RankAverages,
                8 => Processing::Percentiles,
                _ => Processing::RootBest,
            },
        )
    }

    proptest! {
        #[test]
        fn printed_labels_can_be_parsed(processing in processing()) {
            prop_assert_eq!(processing.to_string().parse(), Ok(processing));
        }

        #[test]
        fn no_text_panics(name in "median|ps[0-9]|extremes(/root)?|global|mpibench|nbcbench|.*", option: String) {
            let _ = format!("{name}{option}").parse::<Processing>();
            let _ = format!("{name}/{option}").parse::<Processing>();
        }
    }

    #[test]
    fn processings_have_numbers_and_defaults() {
        let printed = |label: &str| label.parse::<Processing>().unwrap().to_string();
        let numbers = ["ps1", "ps2", "ps3", "ps4", "ps5", "ps6", "ps7", "ps8"];
        assert_eq!(
            numbers.map(printed),
            [
                "skampi",
                "extremes/0.95",
                "osu",
                "global/0.95",
                "mpibench/2",
                "nbcbench/median",
                "rank-averages",
                "root-best"
            ]
        );
        assert_eq!(printed("ps2/root"), "extremes/root/0.95");
        assert_eq!(printed("extremes/root/0.99"), "extremes/root/0.99");
        assert_eq!("median".parse(), Ok(Processing::default()));
    }

    #[test]
    fn invalid_labels_are_refused() {
        let error = |label: &str| label.parse::<Processing>().unwrap_err();
        for label in ["", "ps0", "ps9", "PS1", "medain", " median"] {
            assert!(
                matches!(error(label), MethodError::UnknownName { name, .. } if name == label),
                "{label}"
            );
        }
        for (label, option) in [
            ("median/3", "3"),
            ("skampi/", ""),
            ("extremes/rootless", "less"),
            ("extremes/root/", ""),
            ("extremes/1", "1"),
            ("extremes/root/NaN", "NaN"),
            ("global/95", "95"),
            ("global/0.95/root", "0.95/root"),
            ("mpibench/2x", "2x"),
            ("nbcbench/mode", "mode"),
            ("nbcbench/", ""),
            ("root-best/0", "0"),
        ] {
            assert_eq!(
                error(label),
                MethodError::ProcessingOption(option.into()),
                "{label}"
            );
        }
        assert_eq!(error("mpibench/0.5"), MethodError::OutlierFactor(0.5));
        assert!(matches!(
            error("mpibench/NaN"),
            MethodError::OutlierFactor(_)
        ));
        assert_eq!(
            error("mpibench/inf"),
            MethodError::OutlierFactor(f64::INFINITY)
        );
    }
}
