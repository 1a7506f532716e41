//! Figures about the fits of a synchronization.

use downbeat_clock_core::Duration;

use crate::StatedError;
use crate::payload::{Payload, Words};

/// Largest drift of two clocks from each other unless another is declared: twice the rate error of the
/// worst quartz.
pub(crate) const MAX_DRIFT: f64 = 1e-3;

/// Figures about the lines on the path from a rank to rank 0. None of them bounds the error of its clock:
/// [`Synchronized::bound`](crate::Synchronized::bound) does.
///
/// A rank that learned from a rank that itself learned combines both. The default is that of a rank whose clock is
/// the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Standard deviation of the offsets from the line, in nanoseconds: the largest of all lines. Of a [cube](crate::algorithm::Cube) also
    /// the root mean square of what its edges disagree by around cycles, if that is greater.
    pub residual_deviation: Option<f64>,
    /// Error of the clock at the end of the measurements. Missing where too little was
    /// measured.
    pub stated_error: Option<StatedError>,
    /// Number of offsets that were left out because their exchanges contradicted each other: on
    /// busy cores exchanges are so far apart that the clocks drift by more than a message takes.
    /// Summed over all lines.
    pub left_out: u32,
    /// Edge of a [cube](crate::algorithm::Cube) that is furthest from the consensus of all others, if one is far from it: the path between
    /// its ranks takes longer in one direction, or one of their clocks is unsteady. It hardly counted.
    pub far_edge: Option<FarEdge>,
    /// Error of the model that the round trips of its offsets explain.
    pub(crate) explained: ExplainedError,
    /// Rank whose clock this is, among all ranks.
    pub(crate) rank: u32,
}

/// Edge of a cube that contradicts the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarEdge {
    /// Its ranks, among all ranks.
    pub ranks: [u32; 2],
    /// Difference of what it measured from what all edges together give.
    pub by: Duration,
}

/// Error of a model that a sound clock can have: the sums over all lines of what the round trips of the offsets left
/// uncertain. A larger one, found by the closing exchange, shows that a clock stepped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExplainedError {
    /// Error at the time of the offsets.
    pub(crate) offset: Duration,
    /// Error of the rate.
    pub(crate) drift: f64,
}

impl ExplainedError {
    /// Error of a clock that was not synchronized.
    pub(crate) const ANY: Self = Self {
        offset: Duration::MAX,
        drift: 0.0,
    };

    /// Returns the error of a model that is composed of two: the second also stretches the error of the first.
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            offset: stretched(self.offset, 1.0 + next.drift) + next.offset,
            drift: (1.0 + self.drift) * (1.0 + next.drift) - 1.0,
        }
    }

    /// Returns the error after a time.
    pub(crate) fn after(self, time: Duration) -> Duration {
        self.offset + stretched(time, self.drift)
    }
}

/// Returns a multiple of a time; saturates.
fn stretched(time: Duration, by: f64) -> Duration {
    Duration::from_nanos_f64(time.as_nanos() as f64 * by).unwrap_or(Duration::MAX)
}

impl Default for Quality {
    fn default() -> Self {
        Self::PERFECT
    }
}

impl Quality {
    /// Quality of a clock that is the reference.
    pub(crate) const PERFECT: Self = Self {
        residual_deviation: None,
        stated_error: Some(StatedError::NONE),
        left_out: 0,
        far_edge: None,
        explained: ExplainedError {
            offset: Duration::ZERO,
            drift: 0.0,
        },
        rank: 0,
    };

    /// Returns the quality of a model of this rank that is composed of two, the second of which is its reference's.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            residual_deviation: self
                .residual_deviation
                .into_iter()
                .chain(other.residual_deviation)
                .reduce(f64::max),
            stated_error: self.combine_errors(other, f64::hypot),
            left_out: self.left_out.saturating_add(other.left_out),
            far_edge: self
                .far_edge
                .into_iter()
                .chain(other.far_edge)
                .max_by_key(|edge| edge.by.abs()),
            explained: self.explained.then(other.explained),
            rank: self.rank,
        }
    }

    /// Returns what is worse of two ranks, with the sum of what they left out.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self {
            stated_error: self.combine_errors(other, f64::max),
            ..self.combine(other)
        }
    }

    fn combine_errors(self, other: Self, combine: fn(f64, f64) -> f64) -> Option<StatedError> {
        let both = self.stated_error.zip(other.stated_error);
        both.map(|(own, others)| own.combine(others, combine))
    }
}

/// A missing deviation is sent as NaN, a missing edge as one from a rank to itself. Its
/// distance and the stated error have 32 bits; a scatter has a negative sign.
impl Payload for Quality {
    const WORDS: usize = 6;

    fn put(self, words: &mut Words) {
        words[0] = self.residual_deviation.unwrap_or(f64::NAN).to_bits();
        words[1] = u64::from(self.left_out) << 32 | u64::from(self.rank);
        words[2] = self.explained.offset.as_nanos() as u64;
        words[3] = self.explained.drift.to_bits();
        let FarEdge { ranks, by } = self.far_edge.unwrap_or(FarEdge {
            ranks: [0, 0],
            by: Duration::ZERO,
        });
        words[4] = u64::from(ranks[0]) << 32 | u64::from(ranks[1]);
        let error = self.stated_error.map(|error| match error {
            StatedError::Error(nanos) => nanos,
            StatedError::Scatter(nanos) => -nanos,
        });
        let numbers = [by.as_nanos() as f64, error.unwrap_or(f64::NAN)];
        let [by, error] = numbers.map(|number| u64::from((number as f32).to_bits()));
        words[5] = by << 32 | error;
    }

    fn get(words: &Words) -> Option<Self> {
        let [deviation, counts, offset, drift, ranks, numbers] = *words;
        let [by, error] =
            [numbers >> 32, numbers].map(|bits| f64::from(f32::from_bits(bits as u32)));
        let far_edge = FarEdge {
            ranks: [(ranks >> 32) as u32, ranks as u32],
            by: Duration::from_nanos_f64(by)?,
        };
        Some(Self {
            residual_deviation: Some(f64::from_bits(deviation))
                .filter(|deviation| !deviation.is_nan()),
            stated_error: match error {
                _ if error.is_nan() => None,
                _ if error.is_sign_negative() => Some(StatedError::Scatter(-error)),
                _ => Some(StatedError::Error(error)),
            },
            left_out: (counts >> 32) as u32,
            far_edge: Some(far_edge).filter(|edge| edge.ranks[0] != edge.ranks[1]),
            explained: ExplainedError {
                offset: Duration::from_nanos(offset as i64),
                drift: f64::from_bits(drift),
            },
            rank: counts as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::to_words;

    const FIRST: Quality = Quality {
        residual_deviation: Some(3.0),
        stated_error: Some(StatedError::Error(4.0)),
        left_out: 1,
        far_edge: Some(FarEdge {
            ranks: [5, 7],
            by: Duration::from_nanos(-90),
        }),
        explained: ExplainedError {
            offset: Duration::from_nanos(10),
            drift: 0.5,
        },
        rank: 7,
    };

    #[test]
    fn qualities_of_two_lines_are_combined() {
        let second = Quality {
            residual_deviation: Some(2.0),
            stated_error: Some(StatedError::Error(3.0)),
            left_out: 2,
            far_edge: Some(FarEdge {
                ranks: [1, 2],
                by: Duration::from_nanos(89),
            }),
            explained: ExplainedError {
                offset: Duration::from_nanos(5),
                drift: 0.25,
            },
            rank: 3,
        };
        let both = FIRST.combine(second);
        let explained = ExplainedError {
            offset: Duration::from_nanos(18),
            drift: 0.875,
        };
        assert_eq!(
            both,
            Quality {
                stated_error: Some(StatedError::Error(5.0)),
                left_out: 3,
                explained,
                ..FIRST
            }
        );
        assert_eq!(
            FIRST.worse(second).stated_error,
            Some(StatedError::Error(4.0))
        );
        let scattered = Quality {
            stated_error: Some(StatedError::Scatter(3.0)),
            ..second
        };
        assert_eq!(
            FIRST.combine(scattered).stated_error,
            Some(StatedError::Scatter(5.0))
        );
        assert_eq!(
            both.explained.after(Duration::from_nanos(16)).as_nanos(),
            18 + 14
        );
        assert_eq!(FIRST.combine(Quality::default()), FIRST);
        let unknown = Quality {
            explained: ExplainedError::ANY,
            stated_error: None,
            ..second
        };
        assert_eq!(FIRST.combine(unknown).stated_error, None);
        assert_eq!(unknown.worse(FIRST).stated_error, None);
        assert_eq!(
            FIRST.combine(unknown).explained.after(Duration::ZERO),
            Duration::MAX
        );
    }

    #[test]
    fn missing_values_of_a_quality_are_transferred() {
        for quality in [
            Quality::default(),
            FIRST,
            Quality {
                residual_deviation: Some(0.0),
                stated_error: Some(StatedError::Scatter(0.0)),
                ..FIRST
            },
        ] {
            assert_eq!(Quality::get(&to_words(quality)), Some(quality));
        }
    }
}
