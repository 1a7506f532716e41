//! Labels of algorithms: their text form in options and results.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;

use downbeat_clock_core::Duration;

use super::{Algorithm, Auto, Cube, CubeLength, FlatAlgorithm, Hierarchy};
use crate::line::LineFit;
use crate::offset::first_part;
use crate::{LabelError, OffsetAlgorithm, PlaceLevel};

/// Suffixes of the label of a line whose options are on.
const RECOMPUTE: &str = "recompute";
const WEIGHTED: &str = "weighted";

/// Formats as `1000/skampi/100`, or `1000/skampi/100/recompute/weighted`.
impl fmt::Display for LineFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.fit_points, self.offset)?;
        let options = [(RECOMPUTE, self.recompute), (WEIGHTED, self.weighted)];
        options
            .into_iter()
            .filter(|(_, on)| *on)
            .try_for_each(|(label, _)| write!(f, "/{label}"))
    }
}

/// Parses the form that is printed; parts that are left out at its end are those of the default, as in `500`.
impl FromStr for LineFit {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let (rest, weighted) = strip_option(Some(text), WEIGHTED);
        let (rest, recompute) = strip_option(rest, RECOMPUTE);
        let Self {
            mut fit_points,
            mut offset,
            ..
        } = Self::default();
        if let Some(rest) = rest {
            let (points, rest) = first_part(rest);
            fit_points =
                positive_number(points).ok_or_else(|| LabelError::FitPoints(points.to_owned()))?;
            offset = rest.map_or(Ok(offset), str::parse)?;
        }
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

/// Removes an option from the end of a label; nothing may be left of it.
fn strip_option<'a>(text: Option<&'a str>, label: &str) -> (Option<&'a str>, bool) {
    match text.and_then(|text| text.strip_suffix(label)) {
        Some("") => (None, true),
        Some(rest) if rest.ends_with('/') => (rest.strip_suffix('/'), true),
        _ => (text, false),
    }
}

fn positive_number(text: &str) -> Option<NonZeroU32> {
    let has_sign = text.starts_with('+');
    text.parse().ok().filter(|_| !has_sign)
}

/// Formats as `100/100`, or `30ms/100`.
impl fmt::Display for Cube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.length, self.exchanges)
    }
}

impl fmt::Display for CubeLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns(turns) => turns.fmt(f),
            Self::Lasting(time) => write_time(*time, f),
        }
    }
}

/// Units of times, from the largest.
const UNITS: [(&str, i64); 3] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];

/// Writes a time in the largest unit of which it is a multiple, so that no digit is lost.
fn write_time(time: Duration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let nanos = time.as_nanos();
    let whole = UNITS.into_iter().find(|(_, unit)| nanos % unit == 0);
    let (name, unit) = whole.unwrap_or(("ns", 1));
    write!(f, "{}{name}", nanos / unit)
}

/// Parses a time above 0.
fn positive_time(text: &str) -> Option<Duration> {
    let time: Option<Duration> = text.parse().ok();
    time.filter(|time| *time > Duration::ZERO)
}

/// Parses the form that is printed; the exchanges may be left out. A length with a unit is a time.
impl FromStr for Cube {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let wrong = |text: &str| LabelError::Cube(text.to_owned());
        let number = |text: &str| positive_number(text).ok_or_else(|| wrong(text));
        let time = |text: &str| positive_time(text).ok_or_else(|| wrong(text));
        let (length, exchanges) = first_part(text);
        let length = match length.ends_with('s') {
            true => CubeLength::Lasting(time(length)?),
            false => CubeLength::Turns(number(length)?),
        };
        Ok(Self {
            length,
            exchanges: exchanges.map_or(Ok(Self::default().exchanges), number)?,
        })
    }
}

impl fmt::Display for FlatAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Skampi(offset) => write!(f, "skampi/{offset}"),
            Self::NbcBench(offset) => write!(f, "nbcbench/{offset}"),
            Self::Jk(line) => write!(f, "jk/{line}"),
            Self::Hca(line) => write!(f, "hca/{line}"),
            Self::Hca2(line) => write!(f, "hca2/{line}"),
            Self::Hca3(line) => write!(f, "hca3/{line}"),
            Self::Hca3Offset(offset) => write!(f, "hca3-offset/{offset}"),
            Self::Cube(cube) => write!(f, "cube/{cube}"),
            Self::Prop => f.write_str("prop"),
        }
    }
}

/// Parses the form that is printed; parameters that are left out are those of the default: `hca3` is `hca3/1000/skampi/100`.
impl FromStr for FlatAlgorithm {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let (name, rest) = first_part(text);
        let alone = |algorithm| {
            rest.map_or(Ok(algorithm), |rest| {
                Err(LabelError::TrailingText(rest.to_owned()))
            })
        };
        let offset = || rest.map_or(Ok(OffsetAlgorithm::default()), str::parse);
        let line = || rest.map_or(Ok(LineFit::default()), str::parse);
        match name {
            "none" => alone(Self::None),
            "prop" => alone(Self::Prop),
            "skampi" => Ok(Self::Skampi(offset()?)),
            "nbcbench" => Ok(Self::NbcBench(offset()?)),
            "jk" => Ok(Self::Jk(line()?)),
            "hca" => Ok(Self::Hca(line()?)),
            "hca2" => Ok(Self::Hca2(line()?)),
            "hca3" => Ok(Self::Hca3(line()?)),
            "cube" => Ok(Self::Cube(rest.map_or(Ok(Cube::default()), str::parse)?)),
            "hca3-offset" => Ok(Self::Hca3Offset(offset()?)),
            // As an algorithm of all ranks, it is known.
            "auto" => Err(LabelError::AutoLevel),
            _ => Err(LabelError::UnknownAlgorithm(name.to_owned())),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlatAlgorithm(algorithm) => algorithm.fmt(f),
            Self::Hierarchy(hierarchy) => hierarchy.fmt(f),
            Self::Auto(auto) => auto.fmt(f),
        }
    }
}

impl fmt::Display for Auto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("auto/")?;
        write_time(self.budget, f)
    }
}

impl fmt::Display for Hierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (levels, ranks): (Vec<_>, _) = (self.levels().collect(), self.ranks());
        match levels[..] {
            [(PlaceLevel::Node, nodes)] => write!(f, "h2hca({nodes},{ranks})"),
            [(PlaceLevel::Node, nodes), (PlaceLevel::Socket, sockets)] => {
                write!(f, "h3hca({nodes},{sockets},{ranks})")
            }
            _ => {
                f.write_str("hlhca(")?;
                let mut levels = levels.into_iter();
                levels.try_for_each(|(level, algorithm)| write!(f, "{level}={algorithm},"))?;
                write!(f, "rank={ranks})")
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
        match text {
            "h2hca" => return Ok(Self::Hierarchy(Hierarchy::default())),
            "h3hca" => return Ok(Self::Hierarchy(Hierarchy::three_levels())),
            "auto" => return Ok(Self::Auto(Auto::REPEATED)),
            _ => (),
        }
        if let Some(time) = text.strip_prefix("auto/") {
            let budget = positive_time(time).ok_or_else(|| LabelError::Budget(time.to_owned()))?;
            return Ok(Self::Auto(Auto { budget }));
        }
        if let Some(levels) = inside("h2hca") {
            let [nodes, ranks] = parse_levels(levels)?;
            let hierarchy = Hierarchy::new(PlaceLevel::Node, nodes, ranks);
            return Ok(Self::Hierarchy(hierarchy));
        }
        if let Some(levels) = inside("h3hca") {
            let [nodes, sockets, ranks] = parse_levels(levels)?;
            let hierarchy = Hierarchy::new(PlaceLevel::Node, nodes, ranks);
            return Ok(Self::Hierarchy(
                hierarchy.between(PlaceLevel::Socket, sockets),
            ));
        }
        if let Some(levels) = inside("hlhca") {
            return parse_named_levels(levels).map(Self::Hierarchy);
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

/// Parses `rack=cube,node=cube,rank=prop`.
fn parse_named_levels(text: &str) -> Result<Hierarchy, LabelError> {
    let wrong = || LabelError::NamedLevels(text.to_owned());
    let (levels, ranks) = text.rsplit_once(',').ok_or_else(wrong)?;
    let ranks = ranks.strip_prefix("rank=").ok_or_else(wrong)?.parse()?;
    let mut found: Option<(PlaceLevel, Hierarchy)> = None;
    for part in levels.split(',') {
        let (level, algorithm) = part.split_once('=').ok_or_else(wrong)?;
        let level: PlaceLevel = level.parse().map_err(|_| wrong())?;
        let algorithm = algorithm.parse()?;
        let hierarchy = match found {
            None => Hierarchy::new(level, algorithm, ranks),
            Some((above, hierarchy)) if above < level => hierarchy.between(level, algorithm),
            Some(_) => return Err(wrong()),
        };
        found = Some((level, hierarchy));
    }
    found.map(|(_, hierarchy)| hierarchy).ok_or_else(wrong)
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
            Just(FlatAlgorithm::Prop),
            offset().prop_map(FlatAlgorithm::Skampi),
            offset().prop_map(FlatAlgorithm::NbcBench),
            offset().prop_map(FlatAlgorithm::Hca3Offset),
            line().prop_map(FlatAlgorithm::Jk),
            line().prop_map(FlatAlgorithm::Hca),
            line().prop_map(FlatAlgorithm::Hca2),
            line().prop_map(FlatAlgorithm::Hca3),
            (1_u32.., 1_u32.., 0..1_000_i64).prop_map(|(turns, exchanges, time)| {
                let [turns, exchanges] = [turns, exchanges].map(|n| NonZeroU32::new(n).unwrap());
                let length = match time {
                    0..500 => CubeLength::Turns(turns),
                    _ => CubeLength::Lasting(Duration::from_nanos(time.pow(time as u32 % 4 + 1))),
                };
                FlatAlgorithm::Cube(Cube { length, exchanges })
            }),
        ]
    }

    fn algorithm() -> impl Strategy<Value = Algorithm> {
        prop_oneof![
            flat().prop_map(Algorithm::FlatAlgorithm),
            (1_i64..).prop_map(|nanos| {
                let budget = Duration::from_nanos(nanos);
                Algorithm::Auto(Auto { budget })
            }),
            (1_usize..32, prop::collection::vec(flat(), 6)).prop_map(|(levels, algorithms)| {
                let mut used = (0..5).filter(|level| levels >> level & 1 == 1);
                let place = |level: usize| (PlaceLevel::ALL[level], algorithms[level]);
                let first = place(used.next().unwrap());
                let first = Hierarchy::new(first.0, first.1, algorithms[5]);
                Algorithm::Hierarchy(used.map(place).fold(first, |hierarchy, (level, between)| {
                    hierarchy.between(level, between)
                }))
            }),
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
            let _ = format!("hlhca(node={text},rank={points})").parse::<Algorithm>();
        }
    }

    #[test]
    fn parameters_that_are_left_out_have_defaults() {
        for (label, meant) in [
            ("skampi", "skampi/skampi/100"),
            ("nbcbench/mean-rtt", "nbcbench/mean-rtt/100"),
            ("jk", "jk/1000/skampi/100"),
            ("hca/50", "hca/50/skampi/100"),
            ("hca2/50/trace-collector", "hca2/50/trace-collector/100"),
            (
                "hca3/recompute/weighted",
                "hca3/1000/skampi/100/recompute/weighted",
            ),
            ("hca3/50/weighted", "hca3/50/skampi/100/weighted"),
            ("hca3-offset", "hca3-offset/skampi/100"),
            ("cube", "cube/1000/100"),
            ("cube/10", "cube/10/100"),
            ("cube/30ms", "cube/30ms/100"),
            ("cube/1.5s/20", "cube/1500ms/20"),
            ("auto", "auto/100ms"),
            ("auto/1.5s", "auto/1500ms"),
            ("h2hca", "h2hca(cube/1000/100,prop)"),
            ("h2hca(jk,none)", "h2hca(jk/1000/skampi/100,none)"),
            ("h3hca", "h3hca(cube/1000/100,cube/1000/100,prop)"),
            ("hlhca(node=jk,rank=none)", "h2hca(jk/1000/skampi/100,none)"),
            (
                "hlhca(island=cube,rack=cube/9,socket=skampi,rank=prop)",
                "hlhca(island=cube/1000/100,rack=cube/9/100,socket=skampi/skampi/100,rank=prop)",
            ),
        ] {
            let found: Algorithm = label.parse().unwrap();
            assert_eq!(found.to_string(), meant, "{label}");
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
            ("skampi/", LabelError::MissingExchanges),
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
        for (label, wrong) in [
            ("cube/0", "0"),
            ("cube/", ""),
            ("cube/9/x", "x"),
            ("cube/0s", "0s"),
            ("cube/-3ms", "-3ms"),
            ("cube/xs", "xs"),
            ("cube/1/2/3", "2/3"),
        ] {
            assert_eq!(error(label), LabelError::Cube(wrong.into()), "{label}");
        }
        for time in ["", "0s", "-3ms", "x", "100"] {
            let label = format!("auto/{time}");
            assert_eq!(error(&label), LabelError::Budget(time.into()), "{label}");
        }
        assert_eq!(error("h2hca(auto/20ms,prop)"), LabelError::AutoLevel);
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
        for levels in [
            "",
            "rank=prop",
            "rack=prop",
            "row=prop,rank=prop",
            "node=prop,rack=prop,rank=prop",
            "node=prop,node=prop,rank=prop",
            "node=prop,prop",
        ] {
            let label = format!("hlhca({levels})");
            assert_eq!(
                error(&label),
                LabelError::NamedLevels(levels.into()),
                "{label}"
            );
        }
        assert_eq!(
            error("hlhca(rack=hca4,rank=prop)"),
            LabelError::UnknownAlgorithm("hca4".into())
        );
        for unclosed in [
            "h2hca/1000",
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
