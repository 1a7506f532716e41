//! Errors of times against the true ones.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_trace::{Trace, TruthComparison};
use serde::Serialize;

use super::Slices;
use crate::Failure;
use crate::output::{Table, time};

/// Errors against the true times, before and after a correction.
#[derive(Debug, Serialize)]
pub struct TruthStages {
    /// Errors after pre-synchronization.
    pub pre_synchronized: TruthReport,
    /// Errors after the correction.
    pub corrected: TruthReport,
    /// Time slices of the trace.
    #[serde(skip)]
    pub slices: Slices,
    /// Root mean square of the errors without the bias in nanoseconds, before and after, for each
    /// slice with an event.
    #[serde(skip)]
    pub over_time: Vec<Option<[f64; 2]>>,
}

/// Errors against the true times.
#[derive(Debug, Serialize)]
pub struct TruthReport {
    /// Mean error: the time by which events are ahead of the truth.
    pub bias_nanos: f64,
    /// Root mean square of the errors without the bias.
    pub centred_nanos: f64,
    /// Largest error without the bias.
    pub largest_centred_nanos: f64,
}

impl From<TruthComparison> for TruthReport {
    fn from(error: TruthComparison) -> Self {
        Self {
            bias_nanos: error.bias(),
            centred_nanos: error.centred(),
            largest_centred_nanos: error.largest_centred(),
        }
    }
}

impl TruthStages {
    /// Compares the times of a trace, and those that replace them, with the true ones; `None` if
    /// `truth` has other numbers of events.
    pub fn between<T: AsRef<[Timestamp<Global>]>>(
        trace: &Trace,
        corrected: &[T],
        truth: &Trace,
    ) -> Option<Self> {
        let (times, expected) = (trace.times(), truth.times());
        if !times
            .iter()
            .map(|times| times.len())
            .eq(expected.iter().map(|times| times.len()))
        {
            return None;
        }
        let slices = Slices::new(trace);
        let mut errors = [(); 2].map(|()| vec![TruthComparison::default(); 1 + slices.count]);
        for ((before, after), truth) in times.into_iter().zip(corrected).zip(expected) {
            for ((before, after), truth) in before.iter().zip(after.as_ref()).zip(truth) {
                for at in [0, 1 + slices.slice(*before)] {
                    errors[0][at].add(*before, *truth);
                    errors[1][at].add(*after, *truth);
                }
            }
        }
        Some(Self::new(slices, &errors))
    }

    /// Creates the report from errors before and after: first those of all events, then those of
    /// each time slice.
    pub fn new(slices: Slices, errors: &[Vec<TruthComparison>; 2]) -> Self {
        // Relative to the mean of all events, not to that of the slice.
        let about = |part: &TruthComparison, whole: &TruthComparison| {
            part.centred().hypot(part.bias() - whole.bias())
        };
        let both = |at: usize| {
            errors
                .each_ref()
                .map(|errors| about(&errors[at], &errors[0]))
        };
        let over_time = (1..=slices.count)
            .map(|at| (errors[0][at].events() > 0).then(|| both(at)))
            .collect();
        let [pre_synchronized, corrected] = errors.each_ref().map(|errors| errors[0].into());
        Self {
            pre_synchronized,
            corrected,
            slices,
            over_time,
        }
    }

    /// Error for a trace at `truth` that does not have the events of the one at `path`.
    pub fn not_same_trace(truth: &Path, path: &Path) -> Failure {
        Failure::option(
            "--truth",
            format!(
                "{} is not the same trace as {}",
                truth.display(),
                path.display()
            ),
        )
    }

    /// Formats the errors as a table.
    pub fn text(&self) -> String {
        let mut table = Table::new([
            "error against the truth",
            "bias",
            "centred",
            "largest, centred",
        ]);
        for (stage, error) in [
            ("pre-synchronized", &self.pre_synchronized),
            ("corrected", &self.corrected),
        ] {
            table.row([
                stage.to_owned(),
                time(error.bias_nanos),
                time(error.centred_nanos),
                time(error.largest_centred_nanos),
            ]);
        }
        table.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_trace::{Action, Matching, Place, TraceBuilder};

    fn trace(times: &[i64]) -> Trace {
        let mut builder = TraceBuilder::new(Matching::default());
        let location = builder
            .add_location(Place {
                node: 0,
                process: 0,
            })
            .unwrap();
        for time in times {
            builder
                .push(location, Timestamp::from_nanos(*time), Action::Internal)
                .unwrap();
        }
        builder.finish().unwrap()
    }

    /// Errors of 6, 0 and 0 ns, with a mean of 2; then of 8, 8 and 2 ns, with a mean of 6.
    #[test]
    fn errors_over_time_are_relative_to_the_mean_of_all_events() {
        let truth = trace(&[0, 9, 200]);
        let corrected = [[8, 17, 202].map(Timestamp::from_nanos)];
        let found = TruthStages::between(&trace(&[6, 9, 200]), &corrected, &truth).unwrap();
        assert_eq!(
            (
                found.pre_synchronized.bias_nanos,
                found.corrected.bias_nanos
            ),
            (2.0, 6.0)
        );
        assert_eq!((found.slices.length, found.over_time.len()), (3, 65));
        let there: Vec<_> = found
            .over_time
            .iter()
            .copied()
            .enumerate()
            .filter_map(|(i, at)| Some((i, at?)))
            .collect();
        assert_eq!(there, [(0, [4.0, 2.0]), (1, [2.0, 2.0]), (64, [2.0, 4.0])]);
        assert!(TruthStages::between(&trace(&[6, 9]), &corrected, &truth).is_none());
    }
}
