//! Options for the method with which operations are measured.

use std::fmt::Display;

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{RoundGrid, RoundTime, Scheme, Windows};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{Barrier, Method, Preset};
use downbeat_records::Factors;

use crate::Failure;
use crate::cli::positive;

/// Options for the method of a measurement: that of a benchmark suite, or one of the user.
#[derive(Args, Clone, Debug)]
pub struct MethodOptions {
    /// Use the method of a benchmark suite, and its datatypes: osu, imb, imb-4.0, phloem, phloem-1.6, skampi, nbcbench, mpibench,
    /// mpiblib, mpicroscope, mpptest, reprompi or reprompi-2018; the options below change it
    #[arg(long = "as", value_name = "SUITE")]
    preset: Option<Preset>,
    /// Measurement scheme: ms1 (a barrier before each call), ms2 (several calls timed together), ms3 (the same with a barrier
    /// after each call), ms4 (each call starts in its own window of the global clock), round-time (ranks agree on the start
    /// of each call) or round-grid (each call starts at the next point of a grid of the global clock that all agreed on) [default: round-time]
    #[arg(long, value_name = "SCHEME", value_parser = Scheme::names(), ignore_case = true)]
    scheme: Option<String>,
    /// Barrier of ms1, ms2 and ms3: library, double, dissemination, tree, linear, recursive-doubling,
    /// double-ring, or harmonize: all ranks leave at one instant of the global clock
    /// [default: library]
    #[arg(long, value_name = "BARRIER")]
    barrier: Option<Barrier>,
    /// Number of calls that ms2 and ms3 time together [default: 1000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    calls: Option<u32>,
    /// Length of the windows of ms4, or distance of the points of round-grid [default: found by trials]
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    window: Option<Duration>,
    /// Delay of the start of a round, as a multiple of the latency of a broadcast, at most 100ms; fixed if given, as soon as
    /// a round began in time [default: adapts to the rate of late starts]
    #[arg(long, value_name = "FACTOR", value_parser = slack, allow_hyphen_values = true)]
    slack: Option<f64>,
    /// Number of valid observations; at most four times as many are made
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true, conflicts_with_all = ["stop", "time_slice"])]
    reps: Option<u32>,
    /// Duration of a measurement, which makes as many observations as fit into it; of more than 20000, evenly spaced ones are
    /// kept [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true, conflicts_with = "stop")]
    time_slice: Option<Duration>,
    /// Number of observations, valid or not, that ends a measurement before that duration; all are kept
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true, conflicts_with_all = ["stop", "reps"])]
    max_reps: Option<u32>,
    /// Stopping rule: count/MOST, time/SLICE/MOST, fill/SLICE/KEEP (of more, evenly spaced ones are kept),
    /// rse/BOUND/LEAST/MOST (relative standard error), interval/CONFIDENCE/BOUND/LEAST/MOST (of the mean; both allow for calls
    /// that depend on each other, or with /iid at the end take them for independent), decay/linear/BATCH/MOST or decay/exponential/BATCH/MOST (no new
    /// minimum), near/BOUND/TIMES/LEAST/MOST (values near the minimum)
    #[arg(long, value_name = "RULE", conflicts_with_all = ["reps", "time_slice", "max_reps"])]
    stop: Option<Stopping>,
    /// Number of warm-up calls, which are not recorded [default: 16]
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true)]
    warm_up: Option<u32>,
    /// Processing of the observations: median, percentiles (50, 90, 99, 99.9), or that of a suite: skampi,
    /// extremes, extremes/root, osu, global, mpibench/FACTOR, nbcbench/mean (median, min, max),
    /// rank-averages, root-best; or ps1 to ps8
    /// [default: median]
    #[arg(long, value_name = "PROCESSING")]
    processing: Option<Processing>,
}

fn slack(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if factor.is_finite() && factor >= 0.0 {
        Ok(factor)
    } else {
        Err("must be finite and not negative".to_owned())
    }
}

const CALLS: u32 = 1_000;
const WARM_UP: u32 = 16;
const TIME_SLICE: Duration = Duration::from_millis(500);
const KEEP: u32 = 20_000;

impl MethodOptions {
    /// Returns the method for an operation, by its name, and messages of this size.
    ///
    /// # Errors
    /// When the options contradict each other.
    pub fn method(&self, operation: &str, bytes: u64) -> Result<Method, Failure> {
        let default = Method {
            warm_up: WARM_UP,
            scheme: Scheme::RoundTime(RoundTime::default()),
            stopping: Stopping::Fill {
                slice: TIME_SLICE,
                keep: KEEP,
            },
            processing: Processing::default(),
            root: 0,
        };
        let mut method = self
            .preset
            .map_or(default, |preset| preset.method(operation, bytes));
        method.scheme = self.scheme(method.scheme)?;
        method.warm_up = self.warm_up.unwrap_or(method.warm_up);
        method.processing = self.processing.unwrap_or(method.processing);
        method.stopping = self.stopping().unwrap_or(method.stopping);
        let unsuitable = |why| Failure::Input(format!("--processing and --scheme: {why}"));
        method.check().map_err(unsuitable)?;
        Ok(method)
    }

    /// Returns the suite whose method it is, if it is one's.
    pub fn suite(&self) -> Option<Preset> {
        self.preset
    }

    /// Returns the method for an operation that the suite treats as most others.
    ///
    /// # Errors
    /// As [`method`](Self::method).
    pub fn usual_method(&self) -> Result<Method, Failure> {
        self.method("allreduce", 0)
    }

    /// Adds the factors on which the results depend: the suite and the differences from its method, or the whole
    /// [usual method](Self::usual_method).
    pub fn factors(&self, factors: Factors, usual: &Method) -> Factors {
        let factors = match self.preset {
            Some(preset) => factors.with("as", &preset),
            None => factors,
        };
        let details = self.details(&usual.scheme);
        let details = details
            .iter()
            .map(|(name, value, given)| (*name, value as &dyn Display, *given));
        let scheme = (
            "scheme",
            &usual.scheme as &dyn Display,
            self.scheme.is_some(),
        );
        let others: [(&str, &dyn Display, bool); 3] = [
            ("stop", &usual.stopping, self.stopping().is_some()),
            ("processing", &usual.processing, self.processing.is_some()),
            ("warm-up", &usual.warm_up, self.warm_up.is_some()),
        ];
        let named = [scheme].into_iter().chain(details).chain(others);
        named
            .filter(|(.., given)| *given || self.preset.is_none())
            .fold(factors, |factors, (name, value, _)| {
                factors.with(name, value)
            })
    }

    /// Returns the parameters of a scheme, and for each true if it was given.
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
            Scheme::RoundTime(RoundTime {
                slack, adaptive, ..
            }) => {
                let slack = if *adaptive {
                    "adaptive".to_owned()
                } else {
                    slack.to_string()
                };
                vec![("slack", slack, self.slack.is_some())]
            }
            Scheme::RoundGrid(RoundGrid { spacing }) => {
                let spacing =
                    spacing.map_or_else(|| "adaptive".to_owned(), |spacing| spacing.to_string());
                vec![("window", spacing, self.window.is_some())]
            }
            _ => Vec::new(),
        }
    }

    fn scheme(&self, default: Scheme) -> Result<Scheme, Failure> {
        let named = self.scheme.as_deref().map(str::to_ascii_lowercase);
        let mut scheme = named
            .and_then(|name| Scheme::named(&name, CALLS))
            .unwrap_or(default);
        let name = scheme.to_string();
        let unused = |option: &str| {
            Err(Failure::option(
                option,
                format!("does not apply to the scheme {name}"),
            ))
        };
        match self.barrier {
            Some(_) if scheme.barrier().is_none() => return unused("--barrier"),
            Some(barrier) => scheme = scheme.with_barrier(barrier),
            None => {}
        }
        match (self.calls, &mut scheme) {
            (Some(calls), Scheme::Series(series)) => series.calls = calls,
            (Some(_), _) => return unused("--calls"),
            (None, _) => {}
        }
        match (self.window, &mut scheme) {
            (Some(window), Scheme::Windows(windows)) => windows.window = Some(window),
            (Some(window), Scheme::RoundGrid(grid)) => grid.spacing = Some(window),
            (Some(_), _) => return unused("--window"),
            (None, _) => {}
        }
        match (self.slack, &mut scheme) {
            (Some(slack), Scheme::RoundTime(rounds)) => {
                *rounds = RoundTime {
                    slack,
                    adaptive: false,
                    ..*rounds
                }
            }
            (Some(_), _) => return unused("--slack"),
            (None, _) => {}
        }
        Ok(scheme)
    }

    fn stopping(&self) -> Option<Stopping> {
        let slice = self.time_slice.unwrap_or(TIME_SLICE);
        match (self.stop, self.reps, self.max_reps) {
            (Some(rule), ..) => Some(rule),
            (None, Some(most), _) => Some(Stopping::Count { most }),
            (None, None, Some(most)) => Some(Stopping::TimeSlice { slice, most }),
            (None, None, None) => {
                let keep = KEEP;
                self.time_slice.map(|slice| Stopping::Fill { slice, keep })
            }
        }
    }
}
