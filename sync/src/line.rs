//! A clock model between two ranks: a line through several offsets (algorithm 2 of the 2018 paper).

use core::num::NonZeroU32;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Domain, Duration, FitError, OffsetFit, OffsetSample,
};

use crate::{Comm, CommError, OffsetAlgorithm, OffsetClient, Payload, SyncError, Words, answer};

/// How a client learns a reference's clock: from how many offsets, and how each is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineFit {
    /// Offsets that the line is fitted to. A single one tells no drift.
    pub fit_points: NonZeroU32,
    /// How an offset is measured.
    pub offset: OffsetAlgorithm,
    /// Measure one more offset afterwards, and move the line so that it goes through that.
    pub recompute: bool,
    /// Let an offset weigh the more the more certain it is, so that those whose exchanges were all hit by the scheduler
    /// hardly count. The papers' algorithms let them weigh as much as any other.
    pub weighted: bool,
}

/// What a client learned of a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearnedModel<C: Domain, R: Domain> {
    /// From the client's time to the reference's.
    pub model: ClockModel<C, R>,
    /// What is known of its error.
    pub quality: Quality,
}

/// What a synchronization knows of its own error.
///
/// A rank that learned from one that learned itself adds what is known of both. The default is that of a rank that had
/// nothing to learn, and cannot be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Standard deviation of the offsets from the line, in nanoseconds: the largest of all lines on the way to rank 0.
    pub residual_deviation: Option<f64>,
    /// How far the worst offset of a line can be off: summed over all lines on the way to rank 0, and not known unless
    /// the algorithm of every offset tells.
    pub half_width: Option<Duration>,
    /// Offsets that were left out, because their exchanges contradicted each other: on busy cores exchanges are so far
    /// apart that the clocks drift by more than a message takes. Summed over all lines on the way to rank 0.
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
    /// Of a model that was composed of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            residual_deviation: self
                .residual_deviation
                .into_iter()
                .chain(other.residual_deviation)
                .reduce(f64::max),
            half_width: both(self.half_width, other.half_width, |a, b| a + b),
            left_out: self.left_out.saturating_add(other.left_out),
        }
    }
}

/// What is known of two things together: nothing, unless it is known of both.
fn both(
    a: Option<Duration>,
    b: Option<Duration>,
    join: impl Fn(Duration, Duration) -> Duration,
) -> Option<Duration> {
    a.zip(b).map(|(a, b)| join(a, b))
}

/// What is not known travels as what cannot be: not a number, and less than nothing.
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

/// Whether exchanges contradict each other by no more than clocks drift apart in that time. More is a step.
fn is_drift(why: FitError, session: Duration) -> bool {
    // A thousandth: twice what a quartz can be off by.
    matches!(why, FitError::Drifted { by } if by.as_nanos() <= session.as_nanos() / 1_000)
}

impl LineFit {
    /// An offset without drift.
    pub const fn level(offset: OffsetAlgorithm) -> Self {
        Self {
            fit_points: NonZeroU32::MIN,
            offset,
            recompute: false,
            weighted: false,
        }
    }

    /// How often a client measures its offset, and a reference answers to that.
    pub(crate) fn measurements(&self) -> u32 {
        self.fit_points.get().saturating_add(self.recompute.into())
    }

    /// Learns the clock of a reference, which [teaches](Self::teach) meanwhile.
    ///
    /// An offset that cannot be told does not stop the messages, or the reference would wait in vain: that failure is
    /// the inner result.
    ///
    /// # Errors
    /// When the reference is gone.
    pub async fn learn<K: Clock, C: Domain, R: Domain, M: Comm>(
        &self,
        clock: &K,
        base: &ClockModel<Counter, C>,
        comm: &M,
        reference: u32,
    ) -> Result<Result<LearnedModel<C, R>, SyncError>, CommError> {
        let (mut client, mut failure) = OffsetClient::<C, R>::or_single(self.offset, reference);
        let mut line = Points::new(self.weighted);
        let mut contradiction = None;
        let now = || base.apply(clock.ticks());
        for measurement in 0..self.measurements() {
            let began = now();
            match client.attempt(clock, base, comm).await? {
                Ok(sample) if measurement >= self.fit_points.get() => line.last = Some(sample),
                Ok(sample) => line.push(sample),
                Err(SyncError::Fit(why)) if is_drift(why, now() - began) => {
                    line.quality.left_out += 1;
                    contradiction = Some(why);
                }
                Err(why) => {
                    failure.get_or_insert(why);
                }
            }
        }
        let of_reference: Quality = comm.recv(reference).await?;
        // Only if all were left out is a contradiction a failure.
        let failure = failure.or(contradiction
            .filter(|_| line.fit.points() == 0)
            .map(SyncError::Fit));
        Ok(failure
            .map_or(Ok(()), Err)
            .and_then(|()| line.learned(of_reference)))
    }

    /// Is the reference of a client that [learns](Self::learn), for a clock of this quality.
    ///
    /// # Errors
    /// When the client is gone.
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

/// What a client has measured so far.
struct Points<C: Domain> {
    weighted: bool,
    fit: OffsetFit<C>,
    /// Through which the line shall go.
    last: Option<OffsetSample<C>>,
    /// The half width of the most certain one.
    narrowest: Duration,
    quality: Quality,
}

/// How much less certain than the best an offset may be that moves a weighted line.
const MUCH: i64 = 4;

impl<C: Domain> Points<C> {
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
        self.quality.half_width = both(self.quality.half_width, sample.half_width, Duration::max);
        self.narrowest = sample
            .half_width
            .map_or(self.narrowest, |width| width.min(self.narrowest));
        if self.weighted {
            self.fit.push_by_certainty(sample)
        } else {
            self.fit.push(sample)
        }
    }

    fn learned<R: Domain>(&self, of_reference: Quality) -> Result<LearnedModel<C, R>, SyncError> {
        let line = self.fit.line()?;
        let residual_deviation = line.residual_deviation();
        let uncertain = self.narrowest.as_nanos().saturating_mul(MUCH);
        let trusted = |last: &OffsetSample<C>| {
            last.half_width
                .is_none_or(|width| width.as_nanos() <= uncertain)
        };
        let (line, half_width) = match self.last.filter(|last| !self.weighted || trusted(last)) {
            Some(last) => (
                line.through(last),
                both(self.quality.half_width, last.half_width, Duration::max),
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
            quality: quality.and(of_reference),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::to_words;

    #[test]
    fn a_contradiction_is_drift_up_to_a_thousandth_of_the_session_and_beyond_a_step() {
        let drifted = |by| FitError::Drifted {
            by: Duration::from_nanos(by),
        };
        let session = Duration::from_micros(50);
        assert!(is_drift(drifted(50), session));
        assert!(!is_drift(drifted(51), session));
        assert!(!is_drift(FitError::NoExchanges, session));
    }

    #[test]
    fn what_is_known_of_two_lines_is_put_together() {
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
            first.and(second),
            Quality {
                residual_deviation: Some(3.0),
                half_width: width(15),
                left_out: 3
            }
        );
        assert_eq!(
            (first.and(Quality::default()), Quality::default().and(first)),
            (first, first)
        );
        // A bound that holds for a part of the way is none for the whole.
        let unknown = Quality {
            half_width: None,
            ..second
        };
        assert_eq!(
            (first.and(unknown).half_width, unknown.and(first).half_width),
            (None, None)
        );
    }

    #[test]
    fn what_is_not_known_arrives_as_not_known() {
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
