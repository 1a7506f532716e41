//! Errors of kept clocks over time, by one way to measure them.

use std::fmt::Write as _;

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_common::kept::LargestErrors;
use downbeat_common::page::curves::Curve;
use downbeat_common::records::median;
use downbeat_sync::check::RankOffset;
use serde::Serialize;

use super::kept_clock::ShownTime;
use super::questions::Answer;

/// Errors, each the largest of all ranks at a measurement, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct ErrorsOverTime {
    /// Seconds since the beginning.
    times: Vec<f64>,
    kept: Vec<f64>,
    once: Vec<f64>,
    past: Vec<f64>,
    certain: Vec<f64>,
    half_widths: Vec<f64>,
    beyond_bound: usize,
    /// Largest error of a kept clock, and its rank.
    worst: (f64, u32),
    /// Measured offsets, for questions about the past.
    offsets: Vec<Vec<RankOffset>>,
}

impl ErrorsOverTime {
    /// Adds the answers to one measurement, on rank 0; returns a line of the CSV file for each.
    pub(super) fn add(
        &mut self,
        after: f64,
        by: &str,
        answers: &[Answer<ShownTime>],
        offsets: Vec<RankOffset>,
    ) -> String {
        let mut lines = String::new();
        let (mut largest_kept, mut largest_once, mut certain, mut width) =
            (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        for Answer {
            rank,
            offset,
            of_rank: shown,
            of_first: reference,
        } in answers
        {
            let kept = (shown.kept - reference.kept).as_nanos();
            let once = offset.offset.as_nanos();
            let half_width = offset.half_width.unwrap_or(Duration::ZERO);
            let bound = (shown.kept - shown.earliest).max(shown.latest - shown.kept);
            // Certain: also if the measurement is off as far as it can be. Without a half width it proves nothing.
            let is_beyond = offset.half_width.is_some()
                && (reference.kept + half_width < shown.earliest
                    || reference.kept - half_width > shown.latest);
            self.beyond_bound += usize::from(is_beyond);
            let error = kept.unsigned_abs() as f64;
            if error > self.worst.0 {
                self.worst = (error, *rank);
            }
            largest_kept = largest_kept.max(error);
            largest_once = largest_once.max(once.unsigned_abs() as f64);
            certain = certain.max(bound.as_nanos() as f64);
            width = width.max(half_width.as_nanos() as f64);
            let shown_width = offset.half_width.map(|width| width.as_nanos().to_string());
            // Writing to a string cannot fail.
            let _ = writeln!(
                lines,
                "{after},{rank},{by},{kept},{once},{},{}",
                shown_width.unwrap_or_default(),
                bound.as_nanos()
            );
        }
        if !answers.is_empty() {
            self.times.push(after);
            self.kept.push(largest_kept);
            self.once.push(largest_once);
            self.certain.push(certain);
            self.half_widths.push(width);
            self.offsets.push(offsets);
        }
        lines
    }

    /// Adds the errors of times in the past at one measurement.
    pub(super) fn add_past(&mut self, answers: &[Answer<Timestamp<Global>>]) {
        let error = |answer: &Answer<Timestamp<Global>>| {
            (answer.of_rank - answer.of_first).as_nanos().unsigned_abs() as f64
        };
        self.past
            .push(answers.iter().map(error).fold(0.0, f64::max));
    }

    pub(super) fn offsets(&self) -> &[Vec<RankOffset>] {
        &self.offsets
    }

    /// Summarizes the errors; `None` if there are none.
    pub(super) fn summary(self, by: &str, names: [&'static str; 2]) -> Option<MeasuredErrors> {
        if self.times.is_empty() {
            return None;
        }
        let curve = |name: &str, errors: &[f64]| Curve {
            name: name.to_owned(),
            points: self
                .times
                .iter()
                .copied()
                .zip(errors.iter().copied())
                .collect(),
        };
        let curves = [curve(names[0], &self.kept), curve(names[1], &self.once)];
        Some(MeasuredErrors {
            by: by.to_owned(),
            curves,
            worst_rank: self.worst.1,
            kept: LargestErrors::of(self.kept),
            once: LargestErrors::of(self.once),
            past: LargestErrors::of(self.past),
            certain: LargestErrors::of(self.certain),
            half_width_ns: median(self.half_widths).unwrap_or_default(),
            beyond_bound: self.beyond_bound,
        })
    }
}

/// Summary of the errors by one way to measure them.
#[derive(Debug, Serialize)]
pub(super) struct MeasuredErrors {
    pub(super) by: String,
    pub(super) kept: LargestErrors,
    /// Rank with the largest error of a kept clock.
    pub(super) worst_rank: u32,
    /// Errors of the same clocks by the synchronization alone.
    pub(super) once: LargestErrors,
    /// Errors of the past, by all sessions.
    pub(super) past: LargestErrors,
    /// Largest errors that the bounds of the kept clocks allow.
    pub(super) certain: LargestErrors,
    /// Median error of a measurement, at most.
    pub(super) half_width_ns: f64,
    /// Errors that are certainly beyond the bound of their clock.
    pub(super) beyond_bound: usize,
    /// Errors of kept clocks, and by the synchronization alone.
    #[serde(skip)]
    pub(super) curves: [Curve; 2],
}

#[cfg(test)]
mod tests {
    use downbeat_clock_core::offset::OffsetSample;

    use super::*;

    /// A rank whose kept clock is this far ahead of that of rank 0, certain to 100 ns, measured to `half_width`.
    fn answer(rank: u32, ahead: i64, half_width: Option<i64>) -> Answer<ShownTime> {
        let shown = 5_000 + ahead;
        let at = Timestamp::<Global>::from_nanos;
        Answer {
            rank,
            offset: OffsetSample {
                at: at(9_000),
                offset: Duration::from_nanos(-40),
                half_width: half_width.map(Duration::from_nanos),
            },
            of_rank: ShownTime {
                kept: at(shown),
                earliest: at(shown - 100),
                latest: at(shown + 100),
            },
            of_first: ShownTime {
                kept: at(5_000),
                earliest: at(5_000),
                latest: at(5_000),
            },
        }
    }

    #[test]
    fn the_largest_error_of_a_measurement_counts() {
        let mut errors = ErrorsOverTime::default();
        let first = [answer(1, 7, Some(3)), answer(2, -30, None)];
        let lines = errors.add(0.5, "skampi/9", &first, vec![]);
        assert_eq!(
            lines,
            "0.5,1,skampi/9,7,-40,3,100\n0.5,2,skampi/9,-30,-40,,100\n"
        );
        errors.add(1.0, "skampi/9", &[answer(1, 20, Some(5))], vec![]);
        // A measurement of which no rank could be used is none.
        assert_eq!(errors.add(1.5, "skampi/9", &[], vec![]), "");
        let past = |of_rank| Answer {
            rank: 1,
            offset: answer(1, 0, None).offset,
            of_rank: Timestamp::from_nanos(of_rank),
            of_first: Timestamp::from_nanos(10),
        };
        errors.add_past(&[past(4), past(12)]);
        let summary = errors.summary("skampi/9", ["kept", "once"]).unwrap();
        let figures = [summary.kept, summary.once, summary.past].map(|one| one.ever_ns);
        assert_eq!(figures, [30.0, 40.0, 6.0]);
        assert_eq!((summary.worst_rank, summary.beyond_bound), (2, 0));
        assert_eq!(summary.curves[0].points, [(0.5, 30.0), (1.0, 20.0)]);
        assert!(
            ErrorsOverTime::default()
                .summary("counter", ["kept", "once"])
                .is_none()
        );
    }

    #[test]
    fn only_errors_that_are_certain_are_beyond_a_bound() {
        let beyond = |ahead, half_width| {
            let mut errors = ErrorsOverTime::default();
            errors.add(0.0, "counter", &[answer(1, ahead, half_width)], vec![]);
            errors.beyond_bound
        };
        let cases = [
            (100, 0),
            (101, 0),
            (-101, 0),
            (150, 50),
            (151, 50),
            (-151, 50),
        ];
        let found = cases.map(|(ahead, width)| beyond(ahead, Some(width)));
        assert_eq!(found, [0, 1, 1, 0, 1, 1]);
        assert_eq!(beyond(10_000, None), 0);
    }
}
