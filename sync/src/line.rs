//! Clock model between two ranks: a line through several offsets (algorithm 2 of Hunold 2018).

use core::num::NonZeroU32;

use downbeat_clock_core::fit::{OffsetFit, OffsetLine};
use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Counter, Domain, Duration, FitError, Timestamp};

use crate::pair::{OffsetClient, answer};
use crate::quality::{ExplainedError, MAX_DRIFT, Quality};
use crate::stated_error::{BatchMeans, StatedError};
use crate::{Comm, CommError, OffsetAlgorithm, SyncError};

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
    /// Figures about the line.
    pub quality: Quality,
}

/// Returns true if the contradiction of exchanges can be explained by a drift of up to `most` during
/// the session. A larger one is a step; so is one in a session during which the clock went back.
fn is_drift(why: FitError, session: Duration, most: f64) -> bool {
    matches!(why, FitError::Drifted { by } if by.as_nanos() as f64 <= most * session.as_nanos() as f64)
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
        let mut line = FitState::new(*self);
        let mut contradiction = None;
        let now = || base.apply(clock.ticks());
        let reference_quality: Quality = comm.recv(reference).await?;
        client.allow_drift(reference_quality.explained.drift);
        // The clock of the reference is as steep as its own line may be wrong.
        let most = MAX_DRIFT + reference_quality.explained.drift;
        for measurement in 0..self.measurements() {
            match client.attempt(clock, base, comm).await? {
                Ok(sample) => {
                    let is_last = measurement >= self.fit_points.get();
                    line.push(sample, client.started(), is_last);
                }
                Err(SyncError::Fit(why)) if is_drift(why, now() - client.started(), most) => {
                    line.left_out += 1;
                    contradiction = Some(why);
                }
                Err(why) => {
                    failure.get_or_insert(why);
                }
            }
        }
        // A contradiction is a failure only if all offsets were left out.
        let failure = failure.or(contradiction
            .filter(|_| line.fit.points() == 0)
            .map(SyncError::Fit));
        let learned = failure
            .map_or(Ok(()), Err)
            .and_then(|()| line.finish(reference_quality, most));
        Ok(learned.map_err(|why| why.against(reference_quality.rank)))
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
        comm.send(client, *quality).await?;
        for _ in 0..self.measurements() {
            answer(clock, base, comm, client).await?;
        }
        Ok(())
    }
}

/// Offsets that a client has measured, and their fit.
struct FitState<C: Domain> {
    weighted: bool,
    fit_points: u32,
    means: BatchMeans,
    first: Duration,
    fit: OffsetFit<C>,
    /// Offset that the line is shifted to, and its error.
    last: Option<(OffsetSample<C>, OffsetError)>,
    /// Half width of the most certain offset.
    narrowest: Duration,
    /// Sum of the weights, and the weighted sums of the squares and products of errors.
    weight: f64,
    squares: [f64; 3],
    /// Times of the first and the last offset.
    span: Option<[Timestamp<C>; 2]>,
    left_out: u32,
}

/// Maximum ratio of the half width of an offset to the smallest one if the offset may shift a
/// weighted line.
const MAX_RELATIVE_WIDTH: i64 = 4;

/// Largest change of a drift during a fit: that of a quartz from which the lid of its case was taken.
pub(crate) const MAX_WANDER: f64 = 1e-6;

/// Largest slope that errors of offsets explain, however large they are: a step inside the last offset makes its error
/// as large as the step, and a line through it that takes the step for drift.
const MAX_NOISE_SLOPE: f64 = 0.5;

/// Offsets are far off a line if they deviate this much more than explained.
pub(crate) const FAR: f64 = 2.0;

/// Largest error of an offset in nanoseconds: its half width, and the drift during its session.
#[derive(Clone, Copy, Debug)]
struct OffsetError {
    width: f64,
    session: f64,
}

impl OffsetError {
    fn at_drift(self, drift: f64) -> f64 {
        self.width + drift * self.session
    }
}

impl<C: Domain> FitState<C> {
    fn new(line: LineFit) -> Self {
        Self {
            weighted: line.weighted,
            fit_points: line.fit_points.get(),
            means: BatchMeans::default(),
            first: Duration::ZERO,
            fit: OffsetFit::new(),
            last: None,
            narrowest: Duration::MAX,
            weight: 0.0,
            squares: [0.0; 3],
            span: None,
            left_out: 0,
        }
    }

    /// Adds an offset whose measurement started at this time; the last one only shifts the line.
    fn push(&mut self, sample: OffsetSample<C>, started: Timestamp<C>, is_last: bool) {
        let width = sample.half_width.unwrap_or(Duration::MAX);
        // The clocks drifted between the middle and either end of the session.
        let error = OffsetError {
            width: width.as_nanos() as f64,
            session: (sample.at - started).abs().as_nanos() as f64,
        };
        if is_last {
            self.last = Some((sample, error));
            return;
        }
        self.narrowest = self.narrowest.min(width);
        let weight = if self.weighted {
            self.fit.push_by_certainty(sample);
            sample.certainty()
        } else {
            self.fit.push(sample);
            1.0
        };
        self.weight += weight;
        let OffsetError { width, session } = error;
        let products = [width * width, 2.0 * width * session, session * session];
        for (sum, product) in self.squares.iter_mut().zip(products) {
            *sum += weight * product;
        }
        let first = self.span.map_or(sample.at, |[first, _]| first);
        self.span = Some([first, sample.at]);
        let index = self.fit.points().saturating_sub(1) as usize;
        let at = (sample.at - first).as_nanos() as f64;
        if index == 0 {
            self.first = sample.offset;
        }
        // Clocks may have begun months apart.
        let offset = (sample.offset - self.first).as_nanos() as f64;
        let all = self.fit_points as usize;
        self.means.push(index, all, at, offset, weight);
    }

    /// Returns the scatter at the end of the line.
    fn scatter(&self, line: &OffsetLine<C>) -> Option<f64> {
        let [first, _] = self.span?;
        let by_line =
            |at: f64| (line.offset_at(first + rounded(at)) - self.first).as_nanos() as f64;
        // The error of the one offset that the line is shifted to is unknown.
        let shifted = self.last.and_then(|_| line.residual_deviation());
        shifted.or_else(|| self.means.error_at_end(by_line))
    }

    fn finish<R: Domain>(
        &self,
        reference_quality: Quality,
        most: f64,
    ) -> Result<LearnedModel<C, R>, SyncError> {
        let line = self.fit.line()?;
        let explained = self.explain(&line, most)?;
        let uncertain = self.narrowest.as_nanos().saturating_mul(MAX_RELATIVE_WIDTH);
        let trusted = |last: &OffsetSample<C>| {
            last.half_width
                .is_none_or(|width| width.as_nanos() <= uncertain)
        };
        let last = self
            .last
            .filter(|(last, _)| !self.weighted || trusted(last));
        let (shifted, error) = last.map_or((line, explained.offset), |(last, error)| {
            (line.through(last), rounded(error.at_drift(most)))
        });
        let quality = Quality {
            residual_deviation: line.residual_deviation(),
            stated_error: self.scatter(&line).map(StatedError::Scatter),
            left_out: self.left_out,
            explained: ExplainedError {
                offset: error,
                ..explained
            },
            ..Quality::default()
        };
        Ok(LearnedModel {
            model: shifted.model()?,
            quality: quality.combine(reference_quality),
        })
    }

    /// Returns the error of the line that the errors of the offsets explain, between clocks whose rates
    /// differ by at most `most`.
    ///
    /// The true offsets lie on a line, up to the wander of the drift. So by the inequality of Cauchy and Schwarz the fitted
    /// line is off by at most the root mean square of the errors at its middle, and its deviation from the offsets is at
    /// most that of the true line: no distribution is assumed.
    ///
    /// # Errors
    /// If the offsets are far off the line, or the line is steeper than the drift of any clock: then one stepped.
    fn explain(&self, line: &OffsetLine<C>, most: f64) -> Result<ExplainedError, FitError> {
        let span = self
            .span
            .map_or(Duration::ZERO, |[first, last]| last - first)
            .as_nanos() as f64;
        let [widths, both, sessions] = self.squares;
        let squared = widths + most * (both + most * sessions);
        let error = (squared / self.weight).sqrt() + MAX_WANDER * span;
        let points = self.fit.points() as f64;
        let deviation = line.residual_deviation().unwrap_or(0.0);
        let explained = FAR * error * (points / (points - 2.0)).sqrt();
        let steep = line.drift().abs();
        let drift = if points > 1.0 {
            line.drift_bound(error) + MAX_WANDER
        } else {
            most
        };
        if let Some(fault) = fault_of_line([deviation, explained], [steep, drift], most, span) {
            return Err(fault);
        }
        Ok(ExplainedError {
            offset: rounded(error),
            // Neither the line nor the clocks are steeper.
            drift: drift.min(steep + most),
        })
    }
}

/// Returns a fault of clocks whose rates differ by at most `most`: offsets further from their line than explained, or a line over this
/// span that is steeper than the clocks and its error allow. Then one of them stepped.
pub(crate) fn fault_of_line(
    [deviation, explained]: [f64; 2],
    [steep, error]: [f64; 2],
    most: f64,
    span: f64,
) -> Option<FitError> {
    if deviation > explained {
        return Some(FitError::OffLine {
            deviation: rounded(deviation),
            explained: rounded(explained),
        });
    }
    let steepest = most + error.min(MAX_NOISE_SLOPE);
    (steep > steepest).then(|| FitError::Stepped {
        by: rounded((steep - steepest) * span),
        between: None,
    })
}

/// Rounds to whole nanoseconds; saturates.
pub(crate) fn rounded(nanos: f64) -> Duration {
    Duration::from_nanos_f64(nanos).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_up_to_the_drift_of_a_session_are_drift() {
        let drifted = |by| FitError::Drifted {
            by: Duration::from_nanos(by),
        };
        let session = Duration::from_micros(50);
        assert!(is_drift(drifted(50), session, 1e-3));
        assert!(!is_drift(drifted(51), session, 1e-3));
        assert!(!is_drift(drifted(50), -session, 1e-3));
        assert!(!is_drift(FitError::NoExchanges, session, 1e-3));
    }
}
