//! Summary of one group of a launch.

use downbeat_measure::stopping::StopReason;
use downbeat_records::stats::Sample;
use downbeat_records::{GroupKey, Observation, ObservationState, Observations};
use serde::Serialize;

use super::transfer::Transfer;

/// Summary of one group.
#[derive(Debug, Default, Serialize)]
pub(super) struct GroupSummary {
    pub(super) operation: String,
    pub(super) bytes: u64,
    pub(super) ranks: u32,
    pub(super) valid: usize,
    pub(super) late: usize,
    pub(super) long: usize,
    pub(super) drifted: usize,
    /// Number of observations that were made; of very many in a time slice, evenly spaced ones are kept.
    pub(super) made: u32,
    /// Number of independent observations whose mean would be as precise; `None` if it cannot be estimated.
    pub(super) effective: Option<f64>,
    /// Reason why an interval of the mean is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) no_interval: Option<String>,
    /// Reason why the operation was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
    pub(super) ended: String,
    pub(super) elapsed_s: f64,
    /// Number of figures of the processing; the others that follow help to find errors.
    #[serde(skip)]
    pub(super) processed: usize,
    /// Figures; the first is the main result.
    #[serde(serialize_with = "as_object")]
    pub(super) figures_ns: Vec<(String, f64)>,
    /// One-way time and throughput, where they have a meaning.
    #[serde(flatten)]
    pub(super) transfer: Option<Transfer>,
    /// Calls that were left out for being too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<LeftOut>,
    /// Number of synchronizations of the global clock, if it can drift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) synchronizations: Option<u32>,
}

/// Calls that began in time and exceeded their window, which makes figures of the others too low.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct LeftOut {
    /// Share of them among all that began in time.
    pub(super) share: f64,
    /// Shares by which mean and median are at most lower than with them.
    pub(super) mean_lowered: f64,
    pub(super) median_lowered: f64,
}

impl LeftOut {
    pub(super) fn of(observations: &Observations) -> Option<Self> {
        let is_long = |call: &&Observation| call.state == ObservationState::Long;
        let long = observations.iter().filter(is_long);
        let long: Vec<f64> = long.map(|call| call.nanos).collect();
        if long.is_empty() {
            return None;
        }
        let mut kept = observations.run_times();
        let mut all = [kept.as_slice(), long.as_slice()].concat();
        let (kept, all) = (Sample::new(&mut kept).ok()?, Sample::new(&mut all).ok()?);
        Some(Self {
            share: long.len() as f64 / all.len() as f64,
            mean_lowered: 1.0 - kept.mean() / all.mean(),
            median_lowered: 1.0 - kept.median() / all.median(),
        })
    }
}

impl GroupSummary {
    /// Creates the summary of a group of which no observation is valid.
    pub(super) fn invalid(key: &GroupKey, [late, long, drifted]: [usize; 3]) -> Self {
        Self {
            operation: key.operation.clone(),
            bytes: key.bytes,
            ranks: key.ranks,
            late,
            long,
            drifted,
            made: u32::try_from(late + long + drifted).unwrap_or(u32::MAX),
            ended: StopReason::Most.to_string(),
            ..Self::default()
        }
    }

    /// Returns the number of observations that were kept, valid or not.
    pub(super) fn all(&self) -> usize {
        self.valid + self.late + self.long + self.drifted
    }

    /// Returns a figure by its name.
    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures_ns.iter().find(|(known, _)| known == name);
        found.map(|(_, nanos)| *nanos)
    }

    /// Returns the main result.
    pub(super) fn reported(&self) -> Option<f64> {
        self.figures_ns.first().map(|(_, nanos)| *nanos)
    }
}

fn as_object<S: serde::Serializer>(
    figures: &[(String, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(figures.iter().map(|(name, nanos)| (name, nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_calls_are_weighed_against_the_valid_ones() {
        let of = |states: &[ObservationState]| {
            let mut found = Observations::of_durations(&[10.0, 20.0, 60.0, 900.0]);
            for (call, state) in found.0.iter_mut().zip(states) {
                call.state = *state;
            }
            LeftOut::of(&found)
        };
        use ObservationState::{Late, Long, Valid};
        // 10 and 20 instead of 10, 20 and 60; the last one began late.
        let expected = LeftOut {
            share: 1.0 / 3.0,
            mean_lowered: 0.5,
            median_lowered: 0.25,
        };
        assert_eq!(of(&[Valid, Valid, Long, Late]), Some(expected));
        assert_eq!(of(&[Valid, Valid, Valid, Late]), None);
        assert_eq!(of(&[Late, Late, Long, Late]), None);
    }
}
