//! Pre-synchronization: one clock for all locations from measured clock offsets, or from messages,
//! before each event is considered.
//!
//! While a program ran, its clocks were compared with that of one location, the master, in
//! sessions: at the start and at the end, and sometimes in between. Without sessions, the hulls of
//! messages limit the offsets.

mod error;
mod hulls;
mod map;
mod tree;

use downbeat_clock_core::fit::OffsetFit;
use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{
    ClockModel, Domain, Duration, FitError, Global, Local, TickRate, Timestamp,
};
pub use error::ClockOffsetError;
pub use hulls::MessageHulls;
use map::MapShape;
pub use map::{ClockMap, ClockMaps, ClockSample, Sessions};

use super::LocationId;

/// Curve that is fitted to the sessions of a clock. A single session is too short to show a drift:
/// in that case only the mean of its samples is used, whatever the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interpolation {
    /// No correction: clocks are taken as correct.
    Unchanged,
    /// Straight line through the means of the first and the last session.
    Linear,
    /// Straight line through all samples by least squares.
    LeastSquares,
    /// As [`LeastSquares`](Self::LeastSquares) for two sessions; for more, the constrained spline
    /// through their means, as in Intel Trace Collector.
    #[default]
    Spline,
    /// Straight line between the convex hulls of the messages to and from other clocks, without
    /// sessions: see [`PreSynchronization::maps_of_messages`].
    Hull,
}

/// Method and parameters of pre-synchronization.
///
/// ```
/// use downbeat_clock_core::Timestamp;
/// use downbeat_clock_core::spline::SplineKnot;
/// use downbeat_trace::presync::PreSynchronization;
/// use downbeat_trace::{ClockOwner, Clocks, Matching, Place, TraceBuilder};
///
/// let mut builder = TraceBuilder::new(Matching::default());
/// let places = [0, 1].map(|number| Place { node: number, process: number });
/// let master = builder.add_location(places[0])?;
/// let other = builder.add_location(places[1])?;
///
/// let sample = |at, image| SplineKnot { at: Timestamp::from_nanos(at), image: Timestamp::from_nanos(image) };
/// let sessions = [vec![], vec![vec![sample(0, 500)], vec![sample(2_000_000, 2_000_520)]]];
/// let clocks = Clocks::new(ClockOwner::Process, places);
/// let maps = PreSynchronization::new(master).maps(clocks.readers(), &sessions)?;
/// assert_eq!(maps.for_location(other).apply(Timestamp::from_nanos(1_000_000)), Timestamp::from_nanos(1_000_510));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreSynchronization {
    /// Curve through the sessions.
    pub interpolation: Interpolation,
    /// Location whose clock is the reference. It needs no samples; if it has any, they are ignored.
    pub master: LocationId,
    /// Maximum number of samples that are used of a session, from its start.
    pub most_samples: usize,
    /// Samples later than this after the first one of their session are ignored.
    pub longest_session: Duration,
    /// If true, [`Hull`](Interpolation::Hull) takes all clocks as correct where no message and no
    /// collective operation contradicts that.
    pub unless_possible: bool,
}

/// Session that is used.
#[derive(Debug)]
struct UsedSession<'a> {
    samples: &'a [ClockSample],
    mean: ClockSample,
}

impl PreSynchronization {
    /// Creates the usual settings: constrained spline, all samples.
    pub const fn new(master: LocationId) -> Self {
        Self {
            interpolation: Interpolation::Spline,
            master,
            most_samples: usize::MAX,
            longest_session: Duration::MAX,
            unless_possible: false,
        }
    }

    /// Computes the clock maps of locations from their sessions. Locations after the end of
    /// `sessions` have none. `readers` has, for every location, the first one with the same clock:
    /// see [`Clocks::readers`](super::Clocks::readers) and [`Trace::clocks`](super::Trace::clocks).
    /// The first location with samples represents those with the same clock. Clocks
    /// without samples are taken as correct. Sessions that contradict the one before are
    /// left out. The result has the numbers of both.
    ///
    /// # Errors
    /// When the samples within the sessions of a clock contradict each other, or are out
    /// of range.
    pub fn maps(
        &self,
        readers: &[u32],
        sessions: &[Vec<Vec<ClockSample>>],
    ) -> Result<ClockMaps, ClockOffsetError> {
        let masters = self.masters_clock(readers)?;
        let mut found = ClockMaps::unchanged(readers.len());
        match self.interpolation {
            Interpolation::Unchanged => return Ok(found),
            Interpolation::Hull => return Err(ClockOffsetError::NeedsMessages),
            _ => {}
        }
        let mut owners: Vec<_> = readers.iter().copied().zip(0..).collect();
        owners.sort_unstable();
        for group in owners
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|group| group[0].0 != masters)
        {
            let sampled = group.iter().find_map(|(_, index)| {
                let sessions = sessions.get(*index as usize)?;
                sessions
                    .iter()
                    .any(|session| !session.is_empty())
                    .then_some((LocationId(*index), sessions))
            });
            let Some((location, sessions)) = sampled else {
                found.unknown += group.len();
                continue;
            };
            let used = self.select(sessions, &mut found.left_out);
            let map = self.draw(location, &used)?;
            for (_, index) in group {
                found.map_indices[*index as usize] = found.maps.len();
            }
            found.maps.push(map);
        }
        Ok(found)
    }

    /// Returns the master's clock, given by its first location.
    fn masters_clock(&self, readers: &[u32]) -> Result<u32, ClockOffsetError> {
        let found = readers.get(self.master.index()).copied();
        found.ok_or(ClockOffsetError::NoMaster(self.master))
    }

    /// Selects the sessions that are used, each of which must be consistent with the one before.
    fn select<'a>(
        &self,
        sessions: &'a [Vec<ClockSample>],
        left_out: &mut usize,
    ) -> Vec<UsedSession<'a>> {
        let mut used: Vec<UsedSession<'_>> = vec![];
        for samples in sessions.iter().filter(|session| !session.is_empty()) {
            let counts = |sample: &&ClockSample| sample.at - samples[0].at <= self.longest_session;
            let lasting = samples.iter().take_while(counts).count();
            // The first sample is always used.
            let samples = &samples[..lasting.min(self.most_samples).max(1)];
            let mean = mean(samples);
            match used.last().is_some_and(|last| contradicts(last.mean, mean)) {
                true => *left_out += 1,
                false => used.push(UsedSession { samples, mean }),
            }
        }
        used
    }

    /// Fits the line or curve through sessions, of which there is at least one.
    fn draw(
        &self,
        location: LocationId,
        sessions: &[UsedSession<'_>],
    ) -> Result<ClockMap, ClockOffsetError> {
        let means: Vec<_> = sessions.iter().map(|session| session.mean).collect();
        let (Some(first), Some(last)) = (means.first(), means.last()) else {
            return Ok(ClockMap::SAME);
        };
        let (run, rise) = (gap(first.at, last.at), gap(first.image, last.image));
        let rate = TickRate::from_ratio(rise, run).unwrap_or(TickRate::NANOSECOND);
        let line = ClockModel::through(first.at, first.image, rate)
            .map_err(|_| ClockOffsetError::TooFar(location))?;
        Ok(ClockMap {
            shape: match self.interpolation {
                Interpolation::Spline if means.len() > 2 => MapShape::Curve(means),
                Interpolation::LeastSquares | Interpolation::Spline if means.len() > 1 => {
                    MapShape::Line(closest(location, sessions)?)
                }
                _ => MapShape::Line(line),
            },
        })
    }
}

/// Fits the least-squares line to all samples.
fn closest(
    location: LocationId,
    sessions: &[UsedSession<'_>],
) -> Result<ClockModel<Local, Global>, ClockOffsetError> {
    let mut fit = OffsetFit::new();
    for sample in sessions.iter().flat_map(|session| session.samples) {
        fit.push(OffsetSample {
            at: sample.at,
            offset: sample.at.offset_from(sample.image),
            half_width: None,
        });
    }
    // Two sessions at different times have samples at different times.
    let line = fit
        .line()
        .map_err(|_: FitError| ClockOffsetError::TooFar(location))?;
    if line.drift().abs() > 1.0 / MOST_DRIFT as f64 {
        return Err(ClockOffsetError::Jump(location));
    }
    line.model().map_err(|_| ClockOffsetError::TooFar(location))
}

/// Inverse of the largest accepted drift; quartz clocks stay a factor of 100 below it. A spline is
/// monotonic in whole nanoseconds only if the slopes of its chords stay within this limit.
const MOST_DRIFT: i128 = 100;

/// Returns true if a session is not later than the one before on both clocks, or if one
/// clock gained too much on the other in between.
fn contradicts(before: ClockSample, after: ClockSample) -> bool {
    if after.at <= before.at || after.image <= before.image {
        return true;
    }
    let run = i128::from(gap(before.at, after.at));
    let gained = i128::from(gap(before.image, after.image)) - run;
    gained.abs() * MOST_DRIFT > run
}

/// Returns the mean of at least one sample, rounded to the nearest nanosecond.
fn mean(samples: &[ClockSample]) -> ClockSample {
    let count = samples.len() as i128;
    let mean = |nanos: fn(&ClockSample) -> i64| {
        let sum: i128 = samples.iter().map(|sample| i128::from(nanos(sample))).sum();
        (2 * sum + count).div_euclid(2 * count) as i64
    };
    ClockSample {
        at: Timestamp::from_nanos(mean(|sample| sample.at.as_nanos())),
        image: Timestamp::from_nanos(mean(|sample| sample.image.as_nanos())),
    }
}

fn gap<D: Domain>(from: Timestamp<D>, to: Timestamp<D>) -> u64 {
    to.as_nanos().abs_diff(from.as_nanos())
}

#[cfg(test)]
mod tests;
