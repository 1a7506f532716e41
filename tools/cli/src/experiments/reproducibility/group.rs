//! One group of all trials, as a row and in JSON.

use downbeat_common::Table;
use downbeat_common::output::{percent, time};
use downbeat_records::GroupKey;
use downbeat_records::analysis::{Reproducibility, TrialMean};
use downbeat_records::stats::{Confidence, Interval};
use serde::Serialize;

use crate::experiments::{or_dash, table_of_groups};

pub(super) fn table(found: &[Reproducibility], confidence: Confidence) -> Table {
    let mean = |group: &Reproducibility, pick: fn(f64, f64) -> f64| {
        let means = group.trials.iter().map(|trial| trial.mean);
        or_dash(means.reduce(pick).map(time))
    };
    let interval = |group: &Reproducibility| {
        let (_, interval) = group.deviation(confidence)?;
        let Interval { low, high } = interval?;
        Some(format!("{} to {}", percent(low), percent(high)))
    };
    table_of_groups(found, |group| &group.key)
        .column("trials", |group| group.trials.len().to_string())
        .column("launches", |group| {
            let launches = || group.trials.iter().map(|trial| trial.launches);
            match (launches().min().unwrap_or(0), launches().max().unwrap_or(0)) {
                (fewest, most) if fewest == most => most.to_string(),
                (fewest, most) => format!("{fewest} to {most}"),
            }
        })
        .column("smallest", |group| mean(group, f64::min))
        .column("largest", |group| mean(group, f64::max))
        .column("spread", |group| or_dash(group.spread().map(percent)))
        .column("deviation", |group| {
            let deviation = group.deviation(confidence);
            or_dash(deviation.map(|(deviation, _)| percent(deviation)))
        })
        .column("its interval", |group| or_dash(interval(group)))
        .named_by(3)
}

#[derive(Debug, Serialize)]
pub(super) struct ReproducibilityGroupReport<'a> {
    #[serde(flatten)]
    key: &'a GroupKey,
    /// Largest ratio minus 1.
    spread: Option<f64>,
    /// Standard deviation of the trials relative to their mean, and the limits of its interval.
    deviation: Option<f64>,
    deviation_interval: Option<[f64; 2]>,
    trials: &'a [TrialMean],
    missing: &'a [String],
}

impl<'a> ReproducibilityGroupReport<'a> {
    pub(super) fn new(group: &'a Reproducibility, confidence: Confidence) -> Self {
        let deviation = group.deviation(confidence);
        let interval = deviation.and_then(|(_, interval)| interval);
        Self {
            key: &group.key,
            spread: group.spread(),
            deviation: deviation.map(|(deviation, _)| deviation),
            deviation_interval: interval.map(|interval| [interval.low, interval.high]),
            trials: &group.trials,
            missing: &group.missing,
        }
    }
}
