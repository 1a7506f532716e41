//! Clock model between two ranks: a line through several offsets (algorithm 2 of the 2018 paper).

use core::num::NonZeroU32;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Domain, Duration, FitError, OffsetFit, OffsetSample,
};

use crate::{Comm, CommError, OffsetAlgorithm, OffsetClient, Payload, SyncError, Words, answer};

/// Parameters by which a client learns the clock of a reference: the offsets and their measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineFit {
    /// Number of offsets that the line is fitted to. A single one gives no drift.
    pub fit_points: NonZeroU32,
    /// Algorithm that measures each offset.
    pub offset: OffsetAlgorithm,
    /// Measure one more offset afterwards, and shift the line so that it goes through it.
    pub recompute: bool,
    /// Weight the offsets by their certainty, so that those whose exchanges were all delayed by the
    /// scheduler hardly count. The algorithms of the papers weight all offsets equally.
    pub weighted: bool,
}

/// Model that a client learned from a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearnedModel<C: Domain, R: Domain> {
    /// Model from the client's time to the reference's.
    pub model: ClockModel<C, R>,
    /// Known error of the model.
    pub quality: Quality,
}

/// Error of a synchronization, as far as the algorithm knows it.
///
/// A rank that learned from a rank that itself learned combines both qualities. The default is that
/// of a rank whose clock is the reference, which has no error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Standard deviation of the offsets from the line, in nanoseconds: the largest of all lines on
    /// the path to rank 0.
    pub residual_deviation: Option<f64>,
    /// Maximum error of an offset of the line: summed over all lines on the path to rank 0; `None`
    /// unless the algorithm of every offset has an error bound.
    pub half_width: Option<Duration>,
    /// Number of offsets that were left out because their exchanges contradicted each other: on
    /// busy cores exchanges are so far apart that the clocks drift by more than a message takes.
    /// Summed over all lines on the path to rank 0.
    pub left_out: u32,
}

impl Default for Quality {
    fn default() -> Self {
        Self {
            residual_deviation: None,
            half_width: Some(Duration::ZERO),
            left_out: 0,
        }
    }
}

impl Quality {
    /// Returns the quality of a model that is composed of two.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            residual_deviation: self
                .residual_deviation
                .into_iter()
                .chain(other.residual_deviation)
                .reduce(f64::max),
            half_width: both_known(self.half_width, other.half_width, |a, b| a + b),
            left_out: self.left_out.saturating_add(other.left_out),
        }
    }
}

/// Joins two values; `None` unless both are known.
fn both_known(
    a: Option<Duration>,
    b: Option<Duration>,
    join: impl Fn(Duration, Duration) -> Duration,
) -> Option<Duration> {
    a.zip(b).map(|(a, b)| join(a, b))
}

/// A missing deviation is sent as NaN, and a missing half width as a negative one.
impl Payload for Quality {
    const WORDS: usize = 3;

    fn put(self, words: &mut Words) {
        words[0] = self.residual_deviation.unwrap_or(f64::NAN).to_bits();
        words[1] = self.half_width.map_or(-1, Duration::as_nanos) as u64;
        words[2] = self.left_out.into();
    }

    fn get(words: &Words) -> Option<Self> {
        Some(Self {
            residual_deviation: Some(f64::from_bits(words[0]))
                .filter(|deviation| !deviation.is_nan()),
            half_width: Some(Duration::from_nanos(words[1] as i64))
                .filter(|width| *width >= Duration::ZERO),
            left_out: u32::try_from(words[2]).ok()?,
        })
    }
}

/// Returns true if the contradiction of exchanges can be explained by drift during the session. A
/// larger one is a step.
fn is_drift(why: FitError, session: Duration) -> bool {
    // A thousandth: twice the maximum rate error of a quartz.
    matches!(why, FitError::Drifted { by } if by.as_nanos() <= session.as_nanos() / 1_000)
}

impl LineFit {
    /// Measures one offset and no drift.
    pub const fn offset_only(offset: OffsetAlgorithm) -> Self {
        Self {
            fit_points: NonZeroU32::MIN,
            offset,
            recompute: false,
            weighted: false,
        }
    }

    /// Number of offsets that a client measures and a reference answers.
    pub(crate) fn measurements(&self) -> u32 {
        self.fit_points.get().saturating_add(self.recompute.into())
    }

    /// Learns the clock of a reference, which calls [`teach`](Self::teach) meanwhile.
    ///
    /// A failed measurement does not stop the messages, or the reference would wait forever: that
    /// failure is the inner result.
    ///
    /// # Errors
    /// If the reference is gone.
    pub async fn learn<K: Clock, C: Domain, R: Domain, M: Comm>(
        &self,
        clock: &K,
        base: &ClockModel<Counter, C>,
        comm: &M,
        reference: u32,
    ) -> Result<Result<LearnedModel<C, R>, SyncError>, CommError> {
        let (mut client, mut failure) = OffsetClient::<C, R>::new_or_single(self.offset, reference);
        let mut line = FitState::new(self.weighted);
        let mut contradiction = None;
        let now = || base.apply(clock.ticks());
        for measurement in 0..self.measurements() {
            let started = now();
            match client.attempt(clock, base, comm).await? {
                Ok(sample) if measurement >= self.fit_points.get() => line.last = Some(sample),
                Ok(sample) => line.push(sample),
                Err(SyncError::Fit(why)) if is_drift(why, now() - started) => {
                    line.quality.left_out += 1;
                    contradiction = Some(why);
                }
                Err(why) => {
                    failure.get_or_insert(why);
                }
            }
        }
        let reference_quality: Quality = comm.recv(reference).await?;
        // A contradiction is a failure only if all offsets were left out.
        let failure = failure.or(contradiction
            .filter(|_| line.fit.points() == 0)
            .map(SyncError::Fit));
        Ok(failure
            .map_or(Ok(()), Err)
            .and_then(|()| line.finish(reference_quality)))
    }

    /// Acts as the reference of a client that calls [`learn`](Self::learn), with a clock of this
    /// quality.
    ///
    /// # Errors
    /// If the client is gone.
    pub async fn teach<K: Clock, D: Domain, M: Comm>(
        &self,
        clock: &K,
        base: &ClockModel<Counter, D>,
        quality: &Quality,
        comm: &M,
        client: u32,
    ) -> Result<(), CommError> {
        for _ in 0..self.measurements() {
            answer(clock, base, comm, client).await?;
        }
        comm.send(client, *quality).await
    }
}

/// Offsets that a client has measured, and their fit.
struct FitState<C: Domain> {
    weighted: bool,
    fit: OffsetFit<C>,
    /// Offset that the line is shifted to.
    last: Option<OffsetSample<C>>,
    /// Half width of the most certain offset.
    narrowest: Duration,
    quality: Quality,
}

/// Maximum ratio of the half width of an offset to the smallest one if the offset may shift a
/// weighted line.
const MAX_RELATIVE_WIDTH: i64 = 4;

impl<C: Domain> FitState<C> {
    fn new(weighted: bool) -> Self {
        Self {
            weighted,
            fit: OffsetFit::new(),
            last: None,
            narrowest: Duration::MAX,
            quality: Quality::default(),
        }
    }

    fn push(&mut self, sample: OffsetSample<C>) {
        self.quality.half_width =
            both_known(self.quality.half_width, sample.half_width, Duration::max);
        self.narrowest = sample
            .half_width
            .map_or(self.narrowest, |width| width.min(self.narrowest));
        if self.weighted {
            self.fit.push_by_certainty(sample);
        } else {
            self.fit.push(sample);
        }
    }

    fn finish<R: Domain>(
        &self,
        reference_quality: Quality,
    ) -> Result<LearnedModel<C, R>, SyncError> {
        let line = self.fit.line()?;
        let residual_deviation = line.residual_deviation();
        let uncertain = self.narrowest.as_nanos().saturating_mul(MAX_RELATIVE_WIDTH);
        let trusted = |last: &OffsetSample<C>| {
            last.half_width
                .is_none_or(|width| width.as_nanos() <= uncertain)
        };
        let (line, half_width) = match self.last.filter(|last| !self.weighted || trusted(last)) {
            Some(last) => (
                line.through(last),
                both_known(self.quality.half_width, last.half_width, Duration::max),
            ),
            None => (line, self.quality.half_width),
        };
        let quality = Quality {
            residual_deviation,
            half_width,
            ..self.quality
        };
        Ok(LearnedModel {
            model: line.model()?,
            quality: quality.combine(reference_quality),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::to_words;

    #[test]
    fn contradictions_up_to_a_thousandth_of_the_session_are_drift() {
        let drifted = |by| FitError::Drifted {
            by: Duration::from_nanos(by),
        };
        let session = Duration::from_micros(50);
        assert!(is_drift(drifted(50), session));
        assert!(!is_drift(drifted(51), session));
        assert!(!is_drift(FitError::NoExchanges, session));
    }

    #[test]
    fn qualities_of_two_lines_are_combined() {
        let width = |nanos| Some(Duration::from_nanos(nanos));
        let first = Quality {
            residual_deviation: Some(3.0),
            half_width: width(10),
            left_out: 1,
        };
        let second = Quality {
            residual_deviation: Some(2.0),
            half_width: width(5),
            left_out: 2,
        };
        assert_eq!(
            first.combine(second),
            Quality {
                residual_deviation: Some(3.0),
                half_width: width(15),
                left_out: 3
            }
        );
        assert_eq!(
            (
                first.combine(Quality::default()),
                Quality::default().combine(first)
            ),
            (first, first)
        );
        // If the bound of one part of the path is unknown, so is the total.
        let unknown = Quality {
            half_width: None,
            ..second
        };
        assert_eq!(
            (
                first.combine(unknown).half_width,
                unknown.combine(first).half_width
            ),
            (None, None)
        );
    }

    #[test]
    fn missing_values_of_a_quality_are_transferred() {
        let known = Quality {
            residual_deviation: Some(0.0),
            half_width: Some(Duration::ZERO),
            left_out: 7,
        };
        let unknown = Quality {
            residual_deviation: None,
            half_width: None,
            left_out: 0,
        };
        for quality in [Quality::default(), known, unknown] {
            assert_eq!(Quality::get(&to_words(quality)), Some(quality));
        }
    }
}
