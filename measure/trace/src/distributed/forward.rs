//! Forward amortization on several ranks: each replays its own clocks until all of them wait,
//! then the ranks exchange the data that others wait for.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::correct::Passes;
use super::super::forward::{Forward, Times};
use super::super::stamps::Stamps;
use super::super::workers::groups;
use super::super::{Array, ControlledLogicalClock, Corrected, EventId, Gradient, Pass};
use super::mail::{End, Mail};
use super::{CorrectionError, TracePart, backward, cycle};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Corrected times of the events of one rank.
#[derive(Debug)]
pub struct CorrectedPart<'a> {
    pub(super) part: &'a TracePart,
    pub(super) corrected: Corrected<'a>,
}

impl ControlledLogicalClock {
    /// Does the same as [`forward`](Self::forward) for a trace that ranks share;
    /// collective.
    ///
    /// # Errors
    /// If events wait for each other in a cycle (the same error on all ranks), or if a rank is
    /// gone.
    pub async fn forward_part<'a, C: Comm>(
        &self,
        part: &'a TracePart,
        comm: &C,
    ) -> Result<CorrectedPart<'a>, CorrectionError> {
        let trace = &part.trace;
        if comm.size() == 1 {
            let corrected = self.forward(trace)?;
            return Ok(CorrectedPart { part, corrected });
        }
        let groups = groups(trace, self.workers);
        let mut stamps = Stamps::new(trace)?;
        let mut times = vec![];
        let mut passes = Passes::new(self);
        let mut rule = self.rule;
        loop {
            let forward = Forward {
                trace,
                rule,
                latencies: self.latencies,
            };
            let pass;
            (pass, times) = run(part, &forward, &mut stamps, times, comm).await?;
            let Some(control) = passes.next(pass) else {
                break;
            };
            rule.control = control;
            stamps.clear();
        }
        let (passes, latencies) = (passes.done, self.latencies);
        Ok(CorrectedPart {
            part,
            corrected: Corrected {
                trace,
                latencies,
                times,
                stamps,
                passes,
                groups,
            },
        })
    }
}

impl CorrectedPart<'_> {
    /// Returns the corrected times of all events of this rank's locations; the lists of other
    /// locations are empty.
    pub fn times(&self) -> &[Array<Timestamp<Global>>] {
        self.corrected.times()
    }

    /// Returns only the corrected times.
    pub fn into_times(self) -> Vec<Array<Timestamp<Global>>> {
        self.corrected.into_times()
    }

    /// Returns the passes that were made; the result is that of the last one.
    pub fn passes(&self) -> &[Pass] {
        self.corrected.passes()
    }

    /// Does the same as [`Corrected::jumps`] for this rank's locations.
    pub fn jumps(&self) -> impl Iterator<Item = (EventId, Duration)> + '_ {
        self.corrected
            .jumps()
            .filter(|(event, _)| self.part.is_own(event.location.0))
    }

    /// Does backward amortization: moves the events before the jumps. Collective; call it once.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn amortize<C: Comm>(
        &mut self,
        gradient: Gradient,
        comm: &C,
    ) -> Result<(), CommError> {
        backward::find_limits(self.part, &mut self.corrected, comm).await?;
        self.corrected.stretch(gradient);
        Ok(())
    }
}

/// Makes one pass. Returns the pass, the same on all ranks, and the corrected times of this rank's
/// events.
async fn run<'a, C: Comm>(
    part: &'a TracePart,
    forward: &Forward<'a>,
    stamps: &'a mut Stamps,
    times: Times,
    comm: &C,
) -> Result<(Pass, Times), CorrectionError> {
    let beyond = |instance: u32| {
        if !part.is_shared(instance) || part.is_ordered(instance) {
            return 0;
        }
        if part.tree(instance).is_some() {
            // The summary of all ranks.
            return 1;
        }
        let others = part
            .givers(instance)
            .iter()
            .filter(|giver| **giver != part.rank);
        if part.takers(instance).contains(&part.rank) {
            others.count() as u32
        } else {
            0
        }
    };
    let mut replay = forward.begin(stamps, times, beyond)?;
    let mut mail = Mail::new(part, &mut replay, comm);
    let mut ready = replay.unfinished().collect();
    let end = loop {
        replay.run(&mut ready);
        match mail.exchange(&mut replay, &mut ready).await? {
            End::Exchanged => {}
            end => break end,
        }
    };
    if let End::Stuck = end {
        return Err(CorrectionError::Cycle(
            cycle::find(part, &replay, comm).await?,
        ));
    }
    let (mut pass, times) = replay.end();
    pass.error = all_reduce(comm, pass.error, Duration::max).await?;
    Ok((pass, times))
}
