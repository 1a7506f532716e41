//! Report on the effect of a correction: tables 3 and 4 of Becker et al. (2009).

use downbeat_clock_core::Duration;
use downbeat_trace::deviation::{Deviation, Displacement, Intervals};
use serde::Serialize;

use super::tables::percent;
use crate::output::{self, time};
use crate::units;

/// Effect of a correction on times: tables 3 and 4 of Becker et al. (2009).
#[derive(Debug, Serialize)]
pub struct DeviationReport {
    /// Distances by which events are moved.
    pub displacement: DisplacementReport,
    /// Changes of the intervals from the first event of a location to each other one.
    pub event_position: IntervalsReport,
    /// Changes of the intervals from each event of a location to the next one.
    pub event_distance: IntervalsReport,
}

/// Distances by which events are moved.
#[derive(Debug, Serialize)]
pub struct DisplacementReport {
    /// Number of events.
    pub events: u64,
    /// Number of events that are moved.
    pub moved: u64,
    /// Mean distance in either direction.
    pub mean_nanos: f64,
    /// Mean distance forward.
    pub bias_nanos: f64,
    /// Largest distance.
    pub largest_nanos: i64,
}

/// Changes of intervals.
#[derive(Debug, Serialize)]
pub struct IntervalsReport {
    /// Number of intervals.
    pub intervals: u64,
    /// Sum of all changes over the sum of all lengths.
    pub mean_share: f64,
    /// Mean change.
    pub mean_nanos: f64,
    /// Largest change.
    pub largest_nanos: i64,
    /// Largest change as a share of the interval; `None` if an interval of length 0 became longer.
    pub largest_share: Option<f64>,
    /// Intervals that changed by more than each threshold.
    pub above: Vec<AboveReport>,
}

/// Intervals that changed by more than a share of their length.
#[derive(Debug, Serialize)]
pub struct AboveReport {
    /// Threshold as a share of the interval.
    pub threshold: f64,
    /// Share of all intervals.
    pub share_of_intervals: f64,
    /// Share of the total time of all intervals.
    pub share_of_time: f64,
}

impl From<&Deviation> for DeviationReport {
    fn from(found: &Deviation) -> Self {
        let Displacement {
            events,
            moved,
            largest,
            ..
        } = found.displacement;
        let displacement = DisplacementReport {
            events,
            moved,
            mean_nanos: found.displacement.mean(),
            bias_nanos: found.displacement.bias(),
            largest_nanos: largest.as_nanos(),
        };
        let intervals = |found: &Intervals| IntervalsReport {
            intervals: found.intervals,
            mean_share: found.mean_share(),
            mean_nanos: found.mean(),
            largest_nanos: found.largest.as_nanos(),
            largest_share: found
                .largest_share
                .is_finite()
                .then_some(found.largest_share),
            above: Intervals::THRESHOLDS
                .iter()
                .zip(found.shares())
                .map(
                    |(threshold, (share_of_intervals, share_of_time))| AboveReport {
                        threshold: *threshold,
                        share_of_intervals,
                        share_of_time,
                    },
                )
                .collect(),
        };
        let [event_position, event_distance] = [&found.position, &found.distance].map(intervals);
        Self {
            displacement,
            event_position,
            event_distance,
        }
    }
}

impl DeviationReport {
    /// Formats the moved events and the mean changes of intervals in one sentence.
    pub fn sentence(&self) -> String {
        let DisplacementReport {
            events,
            moved,
            mean_nanos,
            largest_nanos,
            ..
        } = self.displacement;
        let [position, distance] =
            [&self.event_position, &self.event_distance].map(|of| percent(of.mean_share));
        format!(
            "{} of {} moved ({}), by {} on average, by at most {}; event positions changed by \
             {position}, event distances by {distance}.",
            units::count(moved),
            output::count(events as usize, "event"),
            percent(moved as f64 / events.max(1) as f64),
            time(mean_nanos),
            Duration::from_nanos(largest_nanos),
        )
    }
}
