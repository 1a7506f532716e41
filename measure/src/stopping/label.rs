//! Labels of stopping rules in options and records.

use core::fmt;
use core::str::FromStr;

use downbeat_clock_core::Duration;

use super::{BATCH, Decay, KEEP, LEAST, MOST, Stopping, TIMES};
use crate::error::MethodError;
use downbeat_records::stats::Confidence;

impl fmt::Display for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { most } => write!(f, "count/{most}"),
            Self::TimeSlice { slice, most } => write!(f, "time/{}/{most}", ExactDuration(*slice)),
            Self::Fill { slice, keep } => write!(f, "fill/{}/{keep}", ExactDuration(*slice)),
            Self::RelativeError {
                bound,
                least,
                most,
                independent,
            } => write!(f, "rse/{bound}/{least}/{most}{}", suffix(*independent)),
            Self::Interval {
                confidence,
                bound,
                least,
                most,
                independent,
            } => {
                let (share, suffix) = (confidence.share(), suffix(*independent));
                write!(f, "interval/{share}/{bound}/{least}/{most}{suffix}")
            }
            Self::Decay { decay, batch, most } => write!(f, "decay/{decay}/{batch}/{most}"),
            Self::NearLeast {
                bound,
                times,
                least,
                most,
            } => write!(f, "near/{bound}/{times}/{least}/{most}"),
        }
    }
}

/// End of the label of a rule that takes run-times for independent and identically distributed.
const INDEPENDENT: &str = "/iid";

fn suffix(independent: bool) -> &'static str {
    if independent { INDEPENDENT } else { "" }
}

/// Duration in the largest unit that it is a multiple of: `Duration`'s own format rounds.
struct ExactDuration(Duration);

impl fmt::Display for ExactDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        let (unit, name) = units
            .into_iter()
            .find(|(unit, _)| nanos % unit == 0)
            .unwrap_or((1, "ns"));
        write!(f, "{}{name}", nanos / unit)
    }
}

/// Names of the rules, and forms of their labels.
const FORMS: [(&str, &str); 7] = [
    ("count", "count/MOST"),
    ("time", "time/SLICE/MOST"),
    ("fill", "fill/SLICE/KEEP"),
    ("rse", "rse/BOUND/LEAST/MOST or rse/BOUND/LEAST/MOST/iid"),
    (
        "interval",
        "interval/CONFIDENCE/BOUND/LEAST/MOST or interval/CONFIDENCE/BOUND/LEAST/MOST/iid",
    ),
    (
        "decay",
        "decay/linear/BATCH/MOST or decay/exponential/BATCH/MOST",
    ),
    ("near", "near/BOUND/TIMES/LEAST/MOST"),
];

/// Lists the names of all rules, as in `count, time and near`.
fn known_names() -> String {
    let names = FORMS.map(|(name, _)| name);
    let [most @ .., last] = &names;
    format!("{} and {last}", most.join(", "))
}

impl FromStr for Stopping {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let (name, rest) = text.split_once('/').unwrap_or((text, ""));
        let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == name) else {
            return Err(MethodError::UnknownName {
                kind: "stopping rule",
                name: name.to_owned(),
                known: known_names(),
            });
        };
        let may_be_independent = matches!(name, "rse" | "interval");
        let without = rest.strip_suffix(INDEPENDENT);
        let without = without.filter(|_| may_be_independent);
        let independent = without.is_some();
        let parts: Vec<&str> = without.unwrap_or(rest).split('/').collect();
        let rule = match (name, parts.as_slice()) {
            ("count", [most]) => Self::Count {
                most: count(MOST, most)?,
            },
            ("time", [slice, most]) => Self::TimeSlice {
                slice: parsed("SLICE", slice)?,
                most: count(MOST, most)?,
            },
            ("fill", [slice, keep]) => Self::Fill {
                slice: parsed("SLICE", slice)?,
                keep: count(KEEP, keep)?,
            },
            ("rse", [bound, least, most]) => Self::RelativeError {
                bound: parsed("BOUND", bound)?,
                least: count(LEAST, least)?,
                most: count(MOST, most)?,
                independent,
            },
            ("interval", [share, bound, least, most]) => Self::Interval {
                confidence: confidence(share)?,
                bound: parsed("BOUND", bound)?,
                least: count(LEAST, least)?,
                most: count(MOST, most)?,
                independent,
            },
            ("decay", [decay, batch, most]) => Self::Decay {
                decay: decay_kind(decay)?,
                batch: count(BATCH, batch)?,
                most: count(MOST, most)?,
            },
            ("near", [bound, times, least, most]) => Self::NearLeast {
                bound: parsed("BOUND", bound)?,
                times: count(TIMES, times)?,
                least: count(LEAST, least)?,
                most: count(MOST, most)?,
            },
            _ => return Err(MethodError::ParameterCount { form }),
        };
        rule.checked()
    }
}

fn parsed<T: FromStr>(name: &'static str, text: &str) -> Result<T, MethodError> {
    text.parse().map_err(|_| refuse(name, text))
}

fn refuse(name: &'static str, text: &str) -> MethodError {
    MethodError::Parameter {
        name,
        found: text.to_owned(),
    }
}

/// Parses a number of digits only: `u32` also parses `+5`, which is refused.
fn count(name: &'static str, text: &str) -> Result<u32, MethodError> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => parsed(name, text),
        false => Err(refuse(name, text)),
    }
}

fn confidence(text: &str) -> Result<Confidence, MethodError> {
    let share = Confidence::new(parsed("CONFIDENCE", text)?);
    share.map_err(|_| refuse("CONFIDENCE", text))
}

fn decay_kind(text: &str) -> Result<Decay, MethodError> {
    let mut kinds = [Decay::Linear, Decay::Exponential].into_iter();
    let found = kinds.find(|decay| decay.to_string() == text);
    found.ok_or_else(|| refuse("the decay", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule() -> impl Strategy<Value = Stopping> {
        let share = (1..1_000_u32).prop_map(|share| f64::from(share) / 1_000.0);
        let decay = prop::sample::select(vec![Decay::Linear, Decay::Exponential]);
        let counts = (2_u32.., 2_u32..).prop_map(|(a, b)| (a.min(b), a.max(b)));
        (
            0..7,
            1_i64..,
            share.clone(),
            share,
            decay,
            counts,
            any::<bool>(),
        )
            .prop_map(
                |(which, nanos, bound, share, decay, (least, most), independent)| match which {
                    0 => Stopping::Count { most },
                    1 => Stopping::TimeSlice {
                        slice: Duration::from_nanos(nanos),
                        most,
                    },
                    2 => Stopping::RelativeError {
                        bound,
                        least,
                        most,
                        independent,
                    },
                    3 => Stopping::Interval {
                        confidence: Confidence::new(share).unwrap(),
                        bound,
                        least,
                        most,
                        independent,
                    },
                    4 => Stopping::Fill {
                        slice: Duration::from_nanos(nanos),
                        keep: most,
                    },
                    5 => Stopping::Decay {
                        decay,
                        batch: least,
                        most,
                    },
                    _ => Stopping::NearLeast {
                        bound,
                        times: least,
                        least,
                        most,
                    },
                },
            )
    }

    proptest! {
        #[test]
        fn printed_labels_can_be_parsed(rule in rule()) {
            prop_assert_eq!(rule.to_string().parse(), Ok(rule));
        }

        #[test]
        fn no_text_panics(name in "count|time|fill|rse|interval|decay|near|.*", parameters: String) {
            let _ = format!("{name}{parameters}").parse::<Stopping>();
            let _ = format!("{name}/{parameters}/{parameters}/{parameters}").parse::<Stopping>();
        }
    }

    #[test]
    fn labels_are_short() {
        for label in [
            "count/1000",
            "time/1s/100000",
            "time/1500us/7",
            "time/90s/7",
            "fill/500ms/20000",
            "time/1ns/7",
            "rse/0.025/8/1000",
            "rse/0.025/8/1000/iid",
            "interval/0.95/0.025/5/1000",
            "interval/0.95/0.025/5/1000/iid",
            "decay/linear/100/10000",
            "decay/exponential/1/1",
            "near/0.05/3/4/30",
        ] {
            assert_eq!(label.parse::<Stopping>().unwrap().to_string(), label);
        }
        assert_eq!(
            "time/0.5 min/9".parse::<Stopping>().unwrap().to_string(),
            "time/30s/9"
        );
    }

    #[test]
    fn messages_name_the_invalid_parameter() {
        let message = |label: &str| label.parse::<Stopping>().unwrap_err().to_string();
        let rules = "; there are count, time, fill, rse, interval, decay and near";
        assert_eq!(
            message(""),
            format!("there is no stopping rule \"\"{rules}")
        );
        assert_eq!(
            message("forever"),
            format!("there is no stopping rule \"forever\"{rules}")
        );
        assert_eq!(message("count"), "MOST cannot be \"\"");
        assert_eq!(message("count/1/2"), "the rule is written count/MOST");
        assert_eq!(message("time/1s"), "the rule is written time/SLICE/MOST");
        for count in ["", "8abc", "-1", "+5", "1e3", "4294967296", "NaN"] {
            assert_eq!(
                message(&format!("count/{count}")),
                format!("MOST cannot be \"{count}\"")
            );
        }
        assert_eq!(message("count/0"), "MOST must be at least 1, and is 0");
        assert_eq!(message("time/5/9"), "SLICE cannot be \"5\"");
        assert_eq!(
            message("time/-1s/9"),
            "SLICE must be longer than 0, and is -1.000 s"
        );
        assert_eq!(message("rse/5%/8/9"), "BOUND cannot be \"5%\"");
        assert_eq!(
            message("rse/NaN/8/9"),
            "BOUND must be a share above 0, and is NaN"
        );
        assert_eq!(
            message("rse/0/8/9"),
            "BOUND must be a share above 0, and is 0"
        );
        assert_eq!(
            message("rse/0.1/9/8"),
            "LEAST, which is 9, is above MOST, which is 8"
        );
        assert_eq!(message("rse/0.1/1/8"), "LEAST must be at least 2, and is 1");
        assert_eq!(
            message("interval/95/0.1/5/9"),
            "CONFIDENCE cannot be \"95\""
        );
        assert_eq!(message("decay/cubic/1/2"), "the decay cannot be \"cubic\"");
        assert_eq!(
            message("near/0.05/3/4"),
            "the rule is written near/BOUND/TIMES/LEAST/MOST"
        );
        assert_eq!(
            message("near/0.05/0/4/9"),
            "TIMES must be at least 1, and is 0"
        );
        assert_eq!(
            message("decay/linear/3/2"),
            "BATCH, which is 3, is above MOST, which is 2"
        );
    }
}
