//! How far times are from the truth, where that is known.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_trace::{Trace, TruthComparison};
use serde::Serialize;

use super::Slices;
use crate::Failure;
use crate::output::{Table, time};

/// How far times are from the truth, before and after.
#[derive(Debug, Serialize)]
pub struct TruthStages {
    /// On one clock.
    pub pre_synchronized: TruthReport,
    /// In the end.
    pub corrected: TruthReport,
    /// The time that the trace takes, in slices.
    #[serde(skip)]
    pub slices: Slices,
    /// In each slice with an event, the error without the bias in nanoseconds: the root of the mean square, before and
    /// after.
    #[serde(skip)]
    pub over_time: Vec<Option<[f64; 2]>>,
}

/// How far times are from the truth.
#[derive(Debug, Serialize)]
pub struct TruthReport {
    /// On average: by how much times are ahead of the truth.
    pub bias_nanos: f64,
    /// Without that: the root of the mean square.
    pub centred_nanos: f64,
    /// Without that, at most.
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
    /// Of the times of a trace, and those that replace them; `None` if `truth` has other events.
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

    /// Of errors before and after: first those of all events, and then those in each slice of time.
    pub fn new(slices: Slices, errors: &[Vec<TruthComparison>; 2]) -> Self {
        // About the mean of the whole, not that of the slice.
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

    /// What is said where the trace at `truth` has other events than the one at `path`.
    pub fn not_same_trace(truth: &Path, path: &Path) -> Failure {
        Failure::option(
            "--truth",
            format!(
                "{} is another trace than {}",
                truth.display(),
                path.display()
            ),
        )
    }

    /// As a table.
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

    /// Errors of 6, 0 and 0 ns, of which the mean is 2; then of 8, 8 and 2 ns, and 6.
    #[test]
    fn errors_over_time_are_about_the_mean_of_all() {
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
