//! How an operation behind a barrier is measured: by a scheme, or as a suite of benchmarks does.

use std::fmt;
use std::str::FromStr;

use downbeat_clock_core::Duration;
use downbeat_measure::{
    Barrier, EachCall, Method, Preset, RoundTime, Scheme, Series, Stopping, Windows,
};

/// A scheme, or a suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Timing {
    Scheme(&'static str),
    Suite(Preset),
}

const SCHEMES: [&str; 5] = ["ms1", "ms2", "ms3", "ms4", "round-time"];

impl FromStr for Timing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(scheme) = SCHEMES.into_iter().find(|scheme| *scheme == text) {
            return Ok(Self::Scheme(scheme));
        }
        text.parse().map(Self::Suite).map_err(|_| {
            let suites = Preset::ALL.map(Preset::name).join(", ");
            format!(
                "there is no method \"{text}\": there are {} and {suites}",
                SCHEMES.join(", ")
            )
        })
    }
}

/// As it is written in options and records.
impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(name) => f.write_str(name),
            Self::Suite(preset) => preset.fmt(f),
        }
    }
}

/// A method of which the barrier is not settled yet.
pub(super) struct Open(Method);

impl Open {
    pub(super) fn behind(self, barrier: Barrier) -> Method {
        Method {
            scheme: self.0.scheme.with_barrier(barrier),
            ..self.0
        }
    }
}

impl Timing {
    pub(super) fn rotates_root(self) -> bool {
        matches!(self, Self::Suite(suite) if suite.rotates_root())
    }

    /// Schemes are as `usual` but for their name. What was asked for goes before what a suite has.
    pub(super) fn method(
        self,
        usual: &Method,
        bytes: u64,
        reps: Option<u32>,
        slice: Option<Duration>,
    ) -> Open {
        let most = reps.unwrap_or(super::REPS);
        let series = Series::new(most);
        let one_series = Stopping::Count { most: 1 };
        let scheme = |scheme, stopping| Method {
            scheme,
            stopping,
            ..usual.clone()
        };
        Open(match self {
            Self::Scheme("ms1") => scheme(Scheme::EachCall(EachCall::default()), usual.stopping),
            Self::Scheme("ms2") => scheme(Scheme::Series(series), one_series),
            Self::Scheme("ms3") => scheme(
                Scheme::Series(Series {
                    barrier_after_each: true,
                    ..series
                }),
                one_series,
            ),
            Self::Scheme("ms4") => {
                scheme(Scheme::Windows(Windows { window: None }), usual.stopping)
            }
            Self::Scheme(_) => scheme(Scheme::RoundTime(RoundTime::default()), usual.stopping),
            Self::Suite(suite) => {
                let mut method = suite.method(bytes);
                match (&mut method.scheme, reps, slice) {
                    (_, None, None) => {}
                    (Scheme::Series(series), ..) => series.calls = reps.unwrap_or(series.calls),
                    _ => method.stopping = usual.stopping,
                }
                method
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_measure::Processing;

    #[test]
    fn what_was_asked_for_goes_before_what_a_suite_has() {
        let usual = Method {
            warm_up: 16,
            scheme: Scheme::RoundTime(RoundTime::default()),
            stopping: Stopping::Count { most: 7 },
            processing: Processing::Median,
            root: 0,
        };
        let method = |name: &str, reps| {
            name.parse::<Timing>()
                .unwrap()
                .method(&usual, 8, reps, None)
                .behind(Barrier::Tree)
        };
        assert_eq!(
            method("osu", None).stopping,
            Stopping::Count { most: 1_000 }
        );
        assert_eq!(method("osu", Some(7)).stopping, Stopping::Count { most: 7 });
        for name in ["imb", "ms2", "ms3"] {
            let Scheme::Series(series) = method(name, Some(7)).scheme else {
                panic!("{name}")
            };
            assert_eq!((series.calls, series.barrier), (7, Barrier::Tree), "{name}");
        }
        for name in ["ms1", "osu"] {
            assert_eq!(
                method(name, None).scheme,
                Scheme::EachCall(EachCall {
                    barrier: Barrier::Tree
                })
            );
        }
        assert_eq!(method("round-time", None), usual);
        for timing in SCHEMES.into_iter().chain(Preset::ALL.map(Preset::name)) {
            assert_eq!(timing.parse::<Timing>().unwrap().to_string(), timing);
            assert_eq!(method(timing, Some(3)).check(), Ok(()), "{timing}");
        }
        assert!("ms5".parse::<Timing>().unwrap_err().contains("reprompi"));
    }
}
