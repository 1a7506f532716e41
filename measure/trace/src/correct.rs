//! The controlled logical clock: forward and backward amortization together.

use std::ops::Range;

use crate::logical::{ClockRule, ControlVariable};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::backward::{self, Gradient};
use super::correction_error::CorrectionError;
use super::forward::{ForwardPass, Replay, Times};
use super::ranks::RankShare;
use super::stamps::Stamps;
use super::trace::Role;
use super::workers::{deal, groups, share};
use super::{Array, EventId, Latencies, LocationId, Trace, limits};
use downbeat_sync::{Comm, ThreadComm, block_on_ready};

/// Corrects the times of a trace so that no message arrives earlier than its latency allows
/// (Rabenseifner; Becker et al. 2009).
///
/// Events are only ever moved forward. A receive that is too early is moved to its earliest
/// possible time. The events after it follow by a distance that decreases with time, and the events
/// before it by a distance that increases towards the receive. On a location, time never decreases,
/// and increases where it did before.
///
/// ```
/// use downbeat_clock_core::{Duration, Timestamp};
/// use downbeat_trace::{Event, ControlledLogicalClock, Latencies, Matching, Place, TraceBuilder};
///
/// let mut builder = TraceBuilder::new(Matching::default());
/// let [sender, receiver] = [0, 1].map(|i| builder.add_location(Place { node: i, process: i }).expect("two are few"));
/// let world = builder.add_communicator(&[sender, receiver])?;
/// let micros = |micros: i64| Timestamp::from_nanos(1_000 * micros);
/// builder.push(sender, micros(500), Event::Send { to: receiver.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
/// builder.push(receiver, micros(300), Event::Note("work"))?;
/// builder.push(receiver, micros(499), Event::Receive { from: sender.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
/// builder.push(receiver, micros(10_600), Event::Note("work"))?;
/// let trace = builder.finish()?;
///
/// let two = Duration::from_micros(2);
/// let latencies = Latencies::new(two, two, two).expect("none is negative");
/// let corrected = ControlledLogicalClock::new(latencies).correct(&trace)?;
/// // The receive moves by 3 us, to its earliest time; the event 199 us before it by about 1 us.
/// assert_eq!(corrected.times()[1][..2], [Timestamp::from_nanos(301_010), micros(502)]);
/// // After it, the clock runs slower by a millionth until it has caught up.
/// assert_eq!(corrected.times()[1][2], Timestamp::from_nanos(10_602_990));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ControlledLogicalClock {
    /// Rule for clocks after a jump, with the control variable of the first pass.
    pub rule: ClockRule,
    /// Minimum latencies of messages.
    pub latencies: Latencies,
    /// Maximum accepted error: if an event was moved farther than this, another pass is made with
    /// slower clocks. `None` for a single pass.
    pub threshold: Option<Duration>,
    /// Maximum number of passes, including the repetition of an earlier one.
    pub most_passes: u32,
    /// Relative stretch of the intervals before jumps.
    pub gradient: Gradient,
    /// Number of threads that share the work. The result does not depend on it.
    pub workers: usize,
}

/// Corrected times of a trace.
#[derive(Debug)]
pub struct CorrectedTimes<'a> {
    pub(super) trace: &'a Trace,
    pub(super) latencies: Latencies,
    pub(super) times: Times,
    pub(super) stamps: Stamps,
    pub(super) passes: Vec<ForwardPass>,
    pub(super) groups: Vec<Range<usize>>,
}

impl ControlledLogicalClock {
    /// Returns a clock with these latencies and defaults for the rest: one pass with
    /// clocks that fall back by a millionth, a spacing of 1 ns, a gradient of one
    /// percent, one thread.
    pub fn new(latencies: Latencies) -> Self {
        let control = ControlVariable::new(1.0 - 1e-6).unwrap_or(ControlVariable::ONE);
        Self {
            rule: ClockRule {
                control,
                spacing: Duration::from_nanos(1),
            },
            latencies,
            threshold: None,
            most_passes: 8,
            gradient: Gradient::PERCENT,
            workers: 1,
        }
    }

    /// Corrects a trace, forward and backward.
    ///
    /// # Errors
    /// If events wait for each other in a cycle, or there is no room for their times.
    pub fn correct<'a>(&self, trace: &'a Trace) -> Result<CorrectedTimes<'a>, CorrectionError> {
        let mut corrected = self.forward(trace)?;
        corrected.amortize(self.gradient);
        Ok(corrected)
    }

    /// Does forward amortization only.
    ///
    /// If the error is above the threshold, it is repeated with twice the loss of clock speed,
    /// until the threshold is met or the maximum number of passes is reached. If a pass did not
    /// lower the error, the one before it is repeated, and its result is returned.
    ///
    /// # Errors
    /// If events wait for each other in a cycle, or there is no room for their times.
    pub fn forward<'a>(&self, trace: &'a Trace) -> Result<CorrectedTimes<'a>, CorrectionError> {
        let (share, comm) = (RankShare::default(), ThreadComm::alone());
        block_on_ready(self.forward_share(trace, &share, &comm))
    }

    /// Does the same on all ranks, of which this one has the events of its share.
    pub(super) async fn forward_share<'a, C: Comm>(
        &self,
        trace: &'a Trace,
        rank_share: &RankShare,
        comm: &C,
    ) -> Result<CorrectedTimes<'a>, CorrectionError> {
        let latencies = self.latencies;
        let mut stamps = Stamps::new(trace)?;
        let (mut times, mut passes, mut rule) = (vec![], vec![], self.rule);
        loop {
            let mut replay = Replay::new(trace, rule, latencies, &mut stamps, times)?;
            let error = rank_share.complete_replay(&mut replay, comm).await?;
            times = replay.end();
            let control = rule.control;
            passes.push(ForwardPass { control, error });
            let Some(next) = self.next_control(&passes) else {
                break;
            };
            rule.control = next;
            stamps.clear();
        }
        Ok(CorrectedTimes {
            trace,
            latencies,
            times,
            stamps,
            passes,
            groups: groups(trace, self.workers),
        })
    }

    /// Returns the control variable of the next pass, if another is needed after these.
    fn next_control(&self, done: &[ForwardPass]) -> Option<ControlVariable> {
        let pass = done.last()?;
        let is_met = self.threshold.is_none_or(|most| pass.error <= most);
        // If a pass did not lower the error, the one before it is repeated, in which
        // intervals can keep more of their lengths.
        let is_again = matches!(done, [.., one, _, last] if one.control == last.control);
        let vain = match done {
            [.., before, _] if pass.error >= before.error => Some(before.control),
            _ => None,
        };
        let slower = pass.control.slower();
        let is_slowest = vain.is_none() && slower == pass.control;
        let is_last = done.len() >= self.most_passes as usize;
        let ends = is_met || is_slowest || is_again || is_last;
        (!ends).then(|| vain.unwrap_or(slower))
    }
}

impl CorrectedTimes<'_> {
    /// Returns the corrected times of all events, by location.
    pub fn times(&self) -> &[Array<Timestamp<Global>>] {
        &self.times
    }

    /// Returns only the corrected times.
    pub fn into_times(self) -> Vec<Array<Timestamp<Global>>> {
        self.times
    }

    /// Returns the passes that were made; the result is that of the last one.
    pub fn passes(&self) -> &[ForwardPass] {
        &self.passes
    }

    /// Returns the receives and exits that were too early even after the events before them had
    /// been moved, and the distances by which they were moved: the violations that were corrected
    /// explicitly.
    pub fn jumps(&self) -> impl Iterator<Item = (EventId, Duration)> + '_ {
        // The exits of ghosts have no jumps.
        let is_own = |location: &LocationId| !self.times[location.index()].is_empty();
        self.trace.ids().filter(is_own).flat_map(move |location| {
            let marks = &self.trace.locations[location.index()].marks;
            let words = self.stamps.words_of(location.index());
            marks.iter().zip(words).filter_map(move |(mark, word)| {
                let (event, jump) = (mark.event, Duration::from_nanos(*word));
                let is_receive = matches!(mark.role(), Role::Receive | Role::Exit);
                let is_jump = is_receive && jump > Duration::ZERO;
                is_jump.then_some((EventId { location, event }, jump))
            })
        })
    }

    /// Does backward amortization: moves the events before the jumps. Call it once.
    pub fn amortize(&mut self, gradient: Gradient) {
        let times: Vec<&[_]> = self.times.iter().map(|times| &**times).collect();
        limits::find_limits(self.trace, &times, &self.latencies, &mut self.stamps);
        self.stretch(gradient);
    }

    /// Does backward amortization with limits that are known already.
    pub(super) fn stretch(&mut self, gradient: Gradient) {
        let timelines = self.trace.timelines();
        let mut clocks: Vec<_> = self.trace.ids().map(|_| vec![]).collect();
        for (location, times) in self.trace.locations.iter().zip(&mut self.times) {
            clocks[location.clock as usize].push(std::mem::take(times));
        }
        let done = share(deal(clocks, &self.groups), |worker, mut clocks| {
            for (clock, times) in (self.groups[worker].clone()).zip(&mut clocks) {
                let timeline = timelines.of(clock as u32);
                backward::amortize(self.trace, timeline, &self.stamps, times, gradient);
            }
            clocks
        });
        for (clock, times) in (0..).zip(done.into_iter().flatten()) {
            for (location, times) in timelines.of(clock).locations.iter().zip(times) {
                self.times[*location as usize] = times;
            }
        }
    }

    /// Returns the corrected time of an event; `None` if there is no such event.
    pub fn time(&self, id: EventId) -> Option<Timestamp<Global>> {
        let times = self.times.get(id.location.index())?;
        times.get(id.event as usize).copied()
    }
}

#[cfg(test)]
mod tests;
