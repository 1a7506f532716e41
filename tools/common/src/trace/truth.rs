//! Errors of times against the true ones.

use downbeat_trace::deviation::TruthComparison;
use downbeat_trace::movement::TimeSlices;
use serde::Serialize;

use crate::output::time;
use crate::table::Table;

/// Errors against the true times, before and after a correction.
#[derive(Debug, Serialize)]
pub struct TruthStages {
    /// Errors after pre-synchronization.
    pub pre_synchronized: TruthReport,
    /// Errors after the correction.
    pub corrected: TruthReport,
    /// Time slices of the trace.
    #[serde(skip)]
    pub slices: TimeSlices,
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
    /// Creates the report from errors before and after: first those of all events, then those of
    /// each time slice.
    pub fn new(slices: TimeSlices, errors: &[Vec<TruthComparison>; 2]) -> Self {
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

    /// Returns a table of the errors.
    pub fn table(&self) -> Table {
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
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::Timestamp;

    /// Errors of 6, 0 and 0 ns, with a mean of 2; then of 8, 8 and 2 ns, with a mean of 6.
    #[test]
    fn errors_over_time_are_relative_to_the_mean_of_all_events() {
        let at = |nanos: [i64; 3]| nanos.map(Timestamp::from_nanos);
        let (measured, truth) = (at([6, 9, 200]), at([0, 9, 200]));
        let slices = TimeSlices::between(measured[0], measured[2]);
        let errors = [measured, at([8, 17, 202])].map(|times| {
            let mut errors = vec![TruthComparison::default(); 1 + slices.count];
            for ((time, truth), at) in times.into_iter().zip(truth).zip(measured) {
                errors[0].add(time, truth);
                errors[1 + slices.slice(at)].add(time, truth);
            }
            errors
        });
        let found = TruthStages::new(slices, &errors);
        let bias = [&found.pre_synchronized, &found.corrected].map(|error| error.bias_nanos);
        assert_eq!(bias, [2.0, 6.0]);
        assert_eq!((slices.length, found.over_time.len()), (3, 65));
        let there: Vec<_> = found
            .over_time
            .iter()
            .copied()
            .enumerate()
            .filter_map(|(i, at)| Some((i, at?)))
            .collect();
        assert_eq!(there, [(0, [4.0, 2.0]), (1, [2.0, 2.0]), (64, [2.0, 4.0])]);
    }
}
