//! The options that say how operations are measured.

use std::fmt::Display;

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_measure::{
    Barrier, EachCall, Method, Preset, Processing, RoundTime, Scheme, Series, Stopping, Windows,
};
use downbeat_records::Factors;

use crate::Failure;
use crate::cli::positive;

/// How operations are measured: as a suite does, or in a way of one's own.
#[derive(Args, Clone, Debug)]
pub struct MethodOptions {
    /// Measure as a suite of benchmarks does: osu, imb, phloem, skampi, nbcbench, mpibench, mpiblib, mpicroscope, mpptest or
    /// reprompi; the options below change its method
    #[arg(long = "as", value_name = "SUITE")]
    preset: Option<Preset>,
    /// How observations are made: ms1 (a barrier before each call), ms2 (several calls timed together), ms3 (the same with
    /// a barrier after each), ms4 (calls begin one window after the other, by the global clock) or round-time (each
    /// call has a start that was agreed on) [default: round-time]
    #[arg(long, value_name = "SCHEME", value_parser = ["ms1", "ms2", "ms3", "ms4", "round-time"], ignore_case = true)]
    scheme: Option<String>,
    /// The barrier of ms1, ms2 and ms3: library, double, dissemination or tree [default: library]
    #[arg(long, value_name = "BARRIER")]
    barrier: Option<Barrier>,
    /// How many calls ms2 and ms3 time together [default: 1000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    calls: Option<u32>,
    /// How long the windows of ms4 are [default: found by trying]
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    window: Option<Duration>,
    /// How much later than a broadcast takes a round begins, as a multiple of that, and at most 100ms; fixed, if
    /// given [default: follows the rate
    /// of late starts]
    #[arg(long, value_name = "FACTOR", value_parser = slack, allow_hyphen_values = true)]
    slack: Option<f64>,
    /// So many observations, valid or not
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true, conflicts_with_all = ["stop", "time_slice"])]
    reps: Option<u32>,
    /// As many observations as there is time for [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true, conflicts_with = "stop")]
    time_slice: Option<Duration>,
    /// But at most so many, valid or not [default: 10000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true, conflicts_with_all = ["stop", "reps"])]
    max_reps: Option<u32>,
    /// When there are enough: count/MOST, time/SLICE/MOST, rse/BOUND/LEAST/MOST (relative standard error),
    /// interval/CONFIDENCE/BOUND/LEAST/MOST (of the mean), decay/linear/BATCH/MOST or decay/exponential/BATCH/MOST (no new
    /// minimum), near/BOUND/TIMES/LEAST/MOST (the minimum nearly met again)
    #[arg(long, value_name = "RULE", conflicts_with_all = ["reps", "time_slice", "max_reps"])]
    stop: Option<Stopping>,
    /// How many calls are made before, and thrown away [default: 16]
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true)]
    warm_up: Option<u32>,
    /// What is made of the observations: median, or as suites do: skampi, extremes, extremes/root, osu,
    /// global, mpibench/FACTOR, nbcbench/mean (median, min, max), rank-averages, root-best; or ps1 to ps8
    /// [default: median]
    #[arg(long, value_name = "PROCESSING")]
    processing: Option<Processing>,
}

fn slack(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if factor.is_finite() && factor >= 0.0 {
        Ok(factor)
    } else {
        Err("must be finite and not negative".to_owned())
    }
}

const CALLS: u32 = 1_000;
const WARM_UP: u32 = 16;
const TIME_SLICE: Duration = Duration::from_millis(500);
const MOST: u32 = 10_000;

impl MethodOptions {
    /// The method for messages of a size.
    ///
    /// # Errors
    /// When the options contradict each other.
    pub fn method(&self, bytes: u64) -> Result<Method, Failure> {
        let own = Method {
            warm_up: WARM_UP,
            scheme: Scheme::RoundTime(RoundTime::default()),
            stopping: Stopping::TimeSlice {
                slice: TIME_SLICE,
                most: MOST,
            },
            processing: Processing::default(),
            root: 0,
        };
        let mut method = self.preset.map_or(own, |preset| preset.method(bytes));
        method.scheme = self.scheme(method.scheme)?;
        method.warm_up = self.warm_up.unwrap_or(method.warm_up);
        method.processing = self.processing.unwrap_or(method.processing);
        method.stopping = self.stopping().unwrap_or(method.stopping);
        let of_scheme = |why| Failure::Input(format!("--processing and --scheme: {why}"));
        method.check().map_err(of_scheme)?;
        Ok(method)
    }

    /// Whether every call has another root, unless something else was asked for.
    pub fn rotates_root(&self) -> bool {
        self.preset.is_some_and(Preset::rotates_root)
    }

    /// What the results depend on: the suite and what differs from its method; or all of one's own method.
    ///
    /// # Errors
    /// As [`method`](Self::method).
    pub fn factors(&self, factors: Factors) -> Result<Factors, Failure> {
        let method = self.method(0)?;
        let of_suite = self.preset.is_some();
        let named = |factors: Factors, name: &str, value: &dyn Display, asked_for: bool| {
            if asked_for || !of_suite {
                factors.with(name, value)
            } else {
                factors
            }
        };
        let mut factors = self
            .preset
            .map_or(factors.clone(), |preset| factors.with("as", &preset));
        factors = named(factors, "scheme", &method.scheme, self.scheme.is_some());
        for (name, value, asked_for) in self.details(&method.scheme) {
            factors = named(factors, name, &value, asked_for);
        }
        factors = named(factors, "stop", &method.stopping, self.stopping().is_some());
        factors = named(
            factors,
            "processing",
            &method.processing,
            self.processing.is_some(),
        );
        Ok(named(
            factors,
            "warm-up",
            &method.warm_up,
            self.warm_up.is_some(),
        ))
    }

    /// The parameters of a scheme, and whether each was asked for.
    fn details(&self, scheme: &Scheme) -> Vec<(&'static str, String, bool)> {
        let barrier = |barrier: Barrier| ("barrier", barrier.to_string(), self.barrier.is_some());
        match scheme {
            Scheme::EachCall(each) => vec![barrier(each.barrier)],
            Scheme::Series(series) => {
                vec![
                    barrier(series.barrier),
                    ("calls", series.calls.to_string(), self.calls.is_some()),
                ]
            }
            Scheme::Windows(Windows { window }) => {
                let window = window.map_or_else(|| "found".to_owned(), |window| window.to_string());
                vec![("window", window, self.window.is_some())]
            }
            Scheme::RoundTime(RoundTime { slack, adaptive }) => {
                let slack = if *adaptive {
                    "adaptive".to_owned()
                } else {
                    slack.to_string()
                };
                vec![("slack", slack, self.slack.is_some())]
            }
            _ => Vec::new(),
        }
    }

    fn scheme(&self, of_preset: Scheme) -> Result<Scheme, Failure> {
        let series = Series::new(CALLS);
        let mut scheme = match self.scheme.as_deref() {
            None => of_preset,
            Some("ms1") => Scheme::EachCall(EachCall::default()),
            Some("ms2") => Scheme::Series(series),
            Some("ms3") => Scheme::Series(Series {
                barrier_after_each: true,
                ..series
            }),
            Some("ms4") => Scheme::Windows(Windows { window: None }),
            Some(_) => Scheme::RoundTime(RoundTime::default()),
        };
        let name = scheme.to_string();
        let unused = |option: &str| {
            Err(Failure::option(
                option,
                format!("has no meaning for the scheme {name}"),
            ))
        };
        match (self.barrier, &mut scheme) {
            (
                Some(barrier),
                Scheme::EachCall(EachCall { barrier: its })
                | Scheme::Series(Series { barrier: its, .. }),
            ) => {
                *its = barrier;
            }
            (Some(_), _) => return unused("--barrier"),
            (None, _) => {}
        }
        match (self.calls, &mut scheme) {
            (Some(calls), Scheme::Series(series)) => series.calls = calls,
            (Some(_), _) => return unused("--calls"),
            (None, _) => {}
        }
        match (self.window, &mut scheme) {
            (Some(window), Scheme::Windows(windows)) => windows.window = Some(window),
            (Some(_), _) => return unused("--window"),
            (None, _) => {}
        }
        match (self.slack, &mut scheme) {
            (Some(slack), Scheme::RoundTime(rounds)) => {
                *rounds = RoundTime {
                    slack,
                    adaptive: false,
                }
            }
            (Some(_), _) => return unused("--slack"),
            (None, _) => {}
        }
        Ok(scheme)
    }

    fn stopping(&self) -> Option<Stopping> {
        let most = self.max_reps.unwrap_or(MOST);
        match (self.stop, self.reps, self.time_slice) {
            (Some(rule), ..) => Some(rule),
            (None, Some(reps), _) => Some(Stopping::Count { most: reps }),
            (None, None, Some(slice)) => Some(Stopping::TimeSlice { slice, most }),
            (None, None, None) => self.max_reps.map(|most| Stopping::TimeSlice {
                slice: TIME_SLICE,
                most,
            }),
        }
    }
}
