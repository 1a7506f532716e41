//! Methods that measure an operation behind a barrier: schemes, or those of benchmark suites.

use std::fmt;
use std::str::FromStr;

use downbeat_clock_core::Duration;
use downbeat_measure::scheme::Scheme;
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{Barrier, Method, Preset};

/// A measurement scheme, or the method of a benchmark suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TimingMethod {
    Scheme(&'static str),
    Suite(Preset),
}

/// Default number of observations.
pub(super) const REPS: u32 = 500;

impl FromStr for TimingMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(scheme) = Scheme::names().into_iter().find(|scheme| *scheme == text) {
            return Ok(Self::Scheme(scheme));
        }
        text.parse().map(Self::Suite).map_err(|_| {
            let suites = Preset::ALL.map(Preset::name).join(", ");
            format!(
                "unknown method \"{text}\": expected {} or one of {suites}",
                Scheme::names().join(", ")
            )
        })
    }
}

/// Written as in options and records.
impl fmt::Display for TimingMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(name) => f.write_str(name),
            Self::Suite(preset) => preset.fmt(f),
        }
    }
}

impl TimingMethod {
    /// Returns the suite whose method it is, if it is one's.
    pub(super) fn suite(self) -> Option<Preset> {
        match self {
            Self::Suite(suite) => Some(suite),
            Self::Scheme(_) => None,
        }
    }

    /// Returns the method for an operation with messages of a size behind a barrier. Schemes take the other parameters from `default`;
    /// `reps` and `slice` override those of a suite.
    pub(super) fn method(
        self,
        default: &Method,
        (operation, bytes): (&str, u64),
        barrier: Barrier,
        reps: Option<u32>,
        slice: Option<Duration>,
    ) -> Method {
        let mut method = match self {
            Self::Suite(suite) => suite.method(operation, bytes),
            Self::Scheme(name) => Method {
                scheme: Scheme::named(name, reps.unwrap_or(REPS)).unwrap_or(default.scheme),
                ..default.clone()
            },
        };
        match (self, &mut method.scheme) {
            (Self::Scheme(_), Scheme::Series(_)) => method.stopping = Stopping::Count { most: 1 },
            (Self::Suite(_), Scheme::Series(series)) => {
                series.calls = reps.unwrap_or(series.calls);
            }
            (Self::Suite(_), _) if reps.is_some() || slice.is_some() => {
                method.stopping = default.stopping;
            }
            _ => {}
        }
        method.scheme = method.scheme.with_barrier(barrier);
        method
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_measure::processing::Processing;
    use downbeat_measure::scheme::{BarrierPlace, EachCall, RoundTime};

    #[test]
    fn options_override_the_method_of_a_suite() {
        let default = Method {
            warm_up: 16,
            scheme: Scheme::RoundTime(RoundTime::default()),
            stopping: Stopping::Count { most: 7 },
            processing: Processing::Median,
            root: 0,
        };
        let method = |name: &str, reps| {
            name.parse::<TimingMethod>().unwrap().method(
                &default,
                ("bcast", 8),
                Barrier::Tree,
                reps,
                None,
            )
        };
        assert_eq!(
            method("osu", None).stopping,
            Stopping::Count { most: 1_000 }
        );
        assert_eq!(method("osu", Some(7)).stopping, Stopping::Count { most: 7 });
        for name in ["imb-4.0", "ms2", "ms3"] {
            let Scheme::Series(series) = method(name, Some(7)).scheme else {
                panic!("{name}")
            };
            assert_eq!((series.calls, series.barrier), (7, Barrier::Tree), "{name}");
        }
        for (name, place) in [("ms1", BarrierPlace::Before), ("osu", BarrierPlace::After)] {
            let expected = EachCall {
                place,
                ..EachCall::new(Barrier::Tree)
            };
            assert_eq!(method(name, None).scheme, Scheme::EachCall(expected));
        }
        assert_eq!(method("round-time", None), default);
        for timing in Scheme::names()
            .into_iter()
            .chain(Preset::ALL.map(Preset::name))
        {
            assert_eq!(timing.parse::<TimingMethod>().unwrap().to_string(), timing);
            assert_eq!(method(timing, Some(3)).check(), Ok(()), "{timing}");
        }
        assert!(
            "ms5"
                .parse::<TimingMethod>()
                .unwrap_err()
                .contains("reprompi")
        );
    }
}
