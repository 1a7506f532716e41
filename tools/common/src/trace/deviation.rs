//! Report on the effect of a correction, and on errors against true times: tables 3 and 4
//! of Becker et al. (2009).

use downbeat_clock_core::Duration;
use downbeat_trace::deviation::{Deviation, Displacement, IntervalChanges, TruthComparison};
use serde::{Serialize, Serializer};

use crate::output::{self, percent, time};
use crate::units;

/// Effect of a correction on times.
#[derive(Debug, Serialize)]
pub struct DeviationReport(#[serde(with = "DeviationFields")] pub Deviation);

/// Fields of [`Deviation`] in JSON.
#[derive(Serialize)]
#[serde(remote = "Deviation")]
struct DeviationFields {
    #[serde(with = "DisplacementFields")]
    displacement: Displacement,
    #[serde(rename = "event_position", with = "IntervalsFields")]
    position: IntervalChanges,
    #[serde(rename = "event_distance", with = "IntervalsFields")]
    distance: IntervalChanges,
}

/// Fields of [`Displacement`] in JSON.
#[derive(Serialize)]
#[serde(remote = "Displacement")]
struct DisplacementFields {
    events: u64,
    moved: u64,
    #[serde(getter = "Displacement::mean")]
    mean_nanos: f64,
    #[serde(getter = "Displacement::bias")]
    bias_nanos: f64,
    #[serde(rename = "largest_nanos", serialize_with = "nanos")]
    largest: Duration,
}

/// Fields of [`IntervalChanges`] in JSON.
#[derive(Serialize)]
#[serde(remote = "IntervalChanges")]
struct IntervalsFields {
    intervals: u64,
    #[serde(getter = "IntervalChanges::mean_share")]
    mean_share: f64,
    #[serde(getter = "IntervalChanges::mean")]
    mean_nanos: f64,
    #[serde(rename = "largest_nanos", serialize_with = "nanos")]
    largest: Duration,
    /// `null` if an interval of length 0 became longer.
    largest_share: f64,
    #[serde(getter = "shares_above")]
    above: Vec<AboveReport>,
}

/// IntervalChanges that changed by more than a share of their length.
#[derive(Debug, Serialize)]
struct AboveReport {
    threshold: f64,
    share_of_intervals: f64,
    share_of_time: f64,
}

/// Errors against the true times, before and after a correction.
#[derive(Debug, Serialize)]
pub struct TruthStages {
    /// Errors after pre-synchronization.
    #[serde(with = "TruthFields")]
    pub pre_synchronized: TruthComparison,
    /// Errors after the correction.
    #[serde(with = "TruthFields")]
    pub corrected: TruthComparison,
}

/// Fields of [`TruthComparison`] in JSON.
#[derive(Serialize)]
#[serde(remote = "TruthComparison")]
struct TruthFields {
    #[serde(getter = "TruthComparison::bias")]
    bias_nanos: f64,
    #[serde(getter = "TruthComparison::centred")]
    centred_nanos: f64,
    #[serde(getter = "TruthComparison::largest_centred")]
    largest_centred_nanos: f64,
}

fn nanos<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(time.as_nanos())
}

fn shares_above(found: &IntervalChanges) -> Vec<AboveReport> {
    let shares = IntervalChanges::THRESHOLDS.into_iter().zip(found.shares());
    let report = |(threshold, (share_of_intervals, share_of_time))| AboveReport {
        threshold,
        share_of_intervals,
        share_of_time,
    };
    shares.map(report).collect()
}

impl DeviationReport {
    /// Formats how many events moved, as a share of all.
    pub fn moved_share(&self) -> String {
        let Displacement { events, moved, .. } = self.0.displacement;
        percent(moved as f64 / events.max(1) as f64)
    }

    /// Formats the moved events and the mean changes of intervals in one sentence.
    pub fn sentence(&self) -> String {
        let displacement = &self.0.displacement;
        let intervals = [&self.0.position, &self.0.distance];
        let [position, distance] = intervals.map(|found| percent(found.mean_share()));
        format!(
            "{} of {} ({}) moved, by at most {}; the mean over all events is {}; event positions \
             changed by {position}, event distances by {distance}.",
            units::count(displacement.moved),
            output::count(displacement.events as usize, "event"),
            self.moved_share(),
            displacement.largest,
            time(displacement.mean()),
        )
    }
}

impl TruthStages {
    /// Formats the errors without bias in one sentence.
    pub fn sentence(&self) -> String {
        let [before, after] = [self.pre_synchronized, self.corrected];
        format!(
            "Against the truth, the error without bias went from {} to {} (largest {}).",
            time(before.centred()),
            time(after.centred()),
            time(after.largest_centred())
        )
    }
}
