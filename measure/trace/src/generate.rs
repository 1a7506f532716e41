//! Synthetic programs: traces with known true times.

mod collectives;
mod program;
mod replay;

use std::iter;

use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{Global, Timestamp};
use fastrand::Rng;
use program::SAMPLE_SPACING;
pub use program::{SyntheticEvent, SyntheticProgram, SyntheticTraffic};
use replay::{ProgramRun, WrongClocks};

use super::deviation::TruthComparison;
use super::presync::ClockSample;
use super::{LocationId, Matching, Place, Trace, TraceBuilder, TraceError};
use downbeat_sync::ClusterError;
use downbeat_sync::internal::exponential;

impl SyntheticProgram {
    /// Returns the sessions of all locations, as
    /// [`PreSynchronization::maps`](super::presync::PreSynchronization::maps) takes them. The master has
    /// none.
    ///
    /// # Errors
    /// When a parameter is invalid.
    pub fn sessions(&self) -> Result<Vec<Vec<Vec<ClockSample>>>, ClusterError> {
        self.validate()?;
        let mut clocks = WrongClocks::new(self);
        // Independent of the random numbers of the program.
        let mut random = Rng::with_seed(!self.seed);
        let noise = self.noise.as_nanos() as f64 / 2.0;
        let mut sessions_of = |place: Place| {
            let mut session = |start: i64| {
                let times =
                    (0..i64::from(self.samples)).map(|sample| start + sample * SAMPLE_SPACING);
                let mut sample = |truth: i64| {
                    let late = noise * (exponential(&mut random) - exponential(&mut random));
                    let image = Timestamp::from_nanos(truth.saturating_add(late.round() as i64));
                    SplineKnot {
                        at: Timestamp::from_nanos(clocks.show(place.node, truth)),
                        image,
                    }
                };
                times.map(&mut sample).collect()
            };
            self.session_starts().map(&mut session).collect()
        };
        let others = self.places().into_iter().skip(1).map(&mut sessions_of);
        Ok(iter::once(vec![]).chain(others).collect())
    }

    /// Runs the program, and passes every event to `see`, those of each location in order.
    ///
    /// # Errors
    /// When a parameter is invalid, or `see` returns an error.
    pub fn run<E: From<ClusterError>>(
        &self,
        mut see: impl FnMut(SyntheticEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        self.validate()?;
        ProgramRun::new(self, &mut see).run()
    }

    /// Returns the trace, with the times of the locations' own clocks.
    ///
    /// # Errors
    /// When a parameter is invalid, or the program is too large for a trace.
    pub fn trace(&self, matching: Matching) -> Result<Trace, ClusterError> {
        self.validate()?;
        let mut builder = TraceBuilder::new(matching);
        self.build(&mut builder)?;
        builder.finish().map_err(too_large)
    }

    /// Adds all events to a builder.
    pub(super) fn build(&self, builder: &mut TraceBuilder) -> Result<(), ClusterError> {
        let [process, thread] = self.reserved();
        for (location, place) in (0..).zip(self.places()) {
            let is_rank = location < self.ranks();
            let id = if is_rank {
                builder.add_location(place)
            } else {
                builder.add_thread(LocationId(place.process))
            };
            let id = id.map_err(too_large)?;
            let (events, marks) = if is_rank { process } else { thread };
            builder.reserve(id, events, marks).map_err(too_large)?;
        }
        for members in self.communicators() {
            builder.add_communicator(&members).map_err(too_large)?;
        }
        self.run(|event| {
            let time = Timestamp::from_nanos(event.local.as_nanos());
            builder
                .push(event.location, time, event.event)
                .map_err(too_large)
        })
    }

    /// Returns the true times of all events, by location.
    ///
    /// # Errors
    /// When a parameter is invalid.
    pub fn truth(&self) -> Result<Vec<Vec<Timestamp<Global>>>, ClusterError> {
        let mut times = vec![vec![]; self.places().len()];
        self.run(|event| {
            times[event.location.index()].push(event.truth);
            Ok::<_, ClusterError>(())
        })?;
        Ok(times)
    }

    /// Compares times of all events with the true ones. If there are fewer times than events, the
    /// rest is ignored.
    ///
    /// # Errors
    /// When a parameter is invalid.
    pub fn error<T: AsRef<[Timestamp<Global>]>>(
        &self,
        times: &[T],
    ) -> Result<TruthComparison, ClusterError> {
        let mut error = TruthComparison::default();
        let mut remaining: Vec<_> = times.iter().map(|times| times.as_ref().iter()).collect();
        self.run(|event| {
            if let Some(shown) = remaining
                .get_mut(event.location.index())
                .and_then(Iterator::next)
            {
                error.add(*shown, event.truth);
            }
            Ok::<_, ClusterError>(())
        })?;
        Ok(error)
    }
}

/// Error of a program whose events do not fit in a trace.
fn too_large(why: TraceError) -> ClusterError {
    ClusterError::Parameter {
        name: format!("the program ({why})"),
        must: "small enough for a trace",
    }
}

#[cfg(test)]
mod tests;
