//! One group of all trials, as a row and in JSON.

use downbeat_common::output::{percent, time};
use downbeat_records::analysis::{AnalysisSettings, Reproducibility, TrialMean};
use downbeat_records::stats::{Confidence, Interval};
use serde::Serialize;

use crate::experiments::{JsonKey, key_cells, or_dash};

pub(super) fn row(group: &Reproducibility, settings: &AnalysisSettings) -> [String; 10] {
    let [operation, bytes, ranks] = key_cells(&group.key);
    let trials = &group.trials;
    let launches = |pick: fn(usize, usize) -> usize| {
        trials
            .iter()
            .map(|trial| trial.launches)
            .reduce(pick)
            .unwrap_or(0)
    };
    let mean = |pick: fn(f64, f64) -> f64| {
        or_dash(trials.iter().map(|trial| trial.mean).reduce(pick).map(time))
    };
    let (fewest, most) = (launches(usize::min), launches(usize::max));
    let deviation = group.deviation(settings.confidence);
    let interval = deviation.and_then(|(_, interval)| interval);
    let interval =
        interval.map(|Interval { low, high }| format!("{} to {}", percent(low), percent(high)));
    [
        operation,
        bytes,
        ranks,
        trials.len().to_string(),
        if fewest == most {
            most.to_string()
        } else {
            format!("{fewest} to {most}")
        },
        mean(f64::min),
        mean(f64::max),
        or_dash(group.spread().map(percent)),
        or_dash(deviation.map(|(deviation, _)| percent(deviation))),
        or_dash(interval),
    ]
}

#[derive(Debug, Serialize)]
pub(super) struct ReproducibilityGroupReport<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    /// Largest ratio minus 1.
    spread: Option<f64>,
    /// Standard deviation of the trials relative to their mean, and the limits of its interval.
    deviation: Option<f64>,
    deviation_interval: Option<[f64; 2]>,
    trials: Vec<ReproducibilityMeanReport<'a>>,
    missing: &'a [String],
}

#[derive(Debug, Serialize)]
struct ReproducibilityMeanReport<'a> {
    trial: &'a str,
    launches: usize,
    mean_ns: f64,
    /// Ratio of this mean to the smallest.
    ratio: Option<f64>,
}

impl<'a> ReproducibilityGroupReport<'a> {
    pub(super) fn new(group: &'a Reproducibility, confidence: Confidence) -> Self {
        let mean = |trial: &'a TrialMean| ReproducibilityMeanReport {
            trial: &trial.trial,
            launches: trial.launches,
            mean_ns: trial.mean,
            ratio: trial.ratio,
        };
        let deviation = group.deviation(confidence);
        let interval = deviation.and_then(|(_, interval)| interval);
        Self {
            key: (&group.key).into(),
            spread: group.spread(),
            deviation: deviation.map(|(deviation, _)| deviation),
            deviation_interval: interval.map(|interval| [interval.low, interval.high]),
            trials: group.trials.iter().map(mean).collect(),
            missing: &group.missing,
        }
    }
}
