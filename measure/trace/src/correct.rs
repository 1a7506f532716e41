//! The controlled logical clock: all of it.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::{ClockRule, ControlVariable};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::backward::{Gradient, amortize};
use super::cycle::Cycle;
use super::forward::{Forward, Pass, Times};
use super::stamps::Stamps;
use super::trace::Role;
use super::workers::{deal, groups, share};
use super::{EventId, Latencies, LocationId, Trace, limits};

/// Corrects times of a trace, so that no message arrives before it can have arrived (Rabenseifner; Becker et al. 2009).
///
/// An event is only ever moved forward. A receive that seems too early is moved to where it is possible, and so are the
/// events after it, ever less; then those before it, by a share that grows towards it. Time on a location never
/// decreases, and increases where it did before.
///
/// ```
/// use downbeat_clock_core::{Duration, Timestamp};
/// use downbeat_trace::{Action, ControlledLogicalClock, Latencies, Matching, Place, TraceBuilder};
///
/// let mut builder = TraceBuilder::new(Matching::default());
/// let [sender, receiver] = [0, 1].map(|i| builder.add_location(Place { node: i, process: i }).expect("two are few"));
/// let world = builder.add_communicator(&[sender, receiver])?;
/// let micros = |micros: i64| Timestamp::from_nanos(1_000 * micros);
/// builder.push(sender, micros(500), Action::Send { to: receiver, communicator: world, tag: 7 })?;
/// builder.push(receiver, micros(300), Action::Internal)?;
/// builder.push(receiver, micros(499), Action::Receive { from: sender, communicator: world, tag: 7 })?;
/// builder.push(receiver, micros(600), Action::Internal)?;
/// let trace = builder.finish()?;
///
/// let two = Duration::from_micros(2);
/// let latencies = Latencies::new(two, two, two).expect("none is negative");
/// let corrected = ControlledLogicalClock::new(latencies).correct(&trace)?;
/// // The message arrives when it can; with a jump of 3 us, what was 199 us before moves by a third of that.
/// assert_eq!(corrected.times()[1][..2], [Timestamp::from_nanos(301_010), micros(502)]);
/// // From there on, a thousandth of what passes is made up for.
/// assert!((micros(602)..micros(603)).contains(&corrected.times()[1][2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ControlledLogicalClock {
    /// How clocks run after they were moved forward; with what share of their speed to begin with.
    pub rule: ClockRule,
    /// How long messages take at least.
    pub latencies: Latencies,
    /// With an event moved farther than this, everything is done again with slower clocks; `None` for one pass.
    pub threshold: Option<Duration>,
    /// With so many passes there is no other, but for one that is done again.
    pub most_passes: u32,
    /// By how much intervals before a jump are stretched.
    pub gradient: Gradient,
    /// How many threads share the work. The result does not depend on it.
    pub workers: usize,
}

/// What a correction makes of a trace.
#[derive(Debug)]
pub struct Corrected<'a> {
    pub(super) trace: &'a Trace,
    pub(super) latencies: Latencies,
    pub(super) times: Times,
    pub(super) stamps: Stamps,
    pub(super) passes: Vec<Pass>,
    pub(super) groups: Vec<Range<usize>>,
}

/// Which passes there were, and whether there is to be another.
#[derive(Debug)]
pub(super) struct Passes {
    threshold: Option<Duration>,
    most: usize,
    pub(super) done: Vec<Pass>,
    /// The last one was in vain, and the one before it is done again.
    is_again: bool,
}

impl Passes {
    pub(super) fn new(clock: &ControlledLogicalClock) -> Self {
        Self {
            threshold: clock.threshold,
            most: clock.most_passes as usize,
            done: vec![],
            is_again: false,
        }
    }

    /// A pass is done: with which control variable there is to be another, if there is.
    pub(super) fn next(&mut self, pass: Pass) -> Option<ControlVariable> {
        let last = self.done.last().copied();
        self.done.push(pass);
        let met = self
            .threshold
            .is_none_or(|threshold| pass.error <= threshold);
        let vain = last.filter(|last| pass.error >= last.error);
        let slower = pass.control.slower();
        let is_slowest = vain.is_none() && slower == pass.control;
        if met || is_slowest || self.is_again || self.done.len() >= self.most {
            return None;
        }
        self.is_again = vain.is_some();
        // Where it was in vain, intervals may as well keep more of their lengths.
        Some(vain.map_or(slower, |last| last.control))
    }
}

impl ControlledLogicalClock {
    /// With everything but the latencies as is right for most: one pass with 99.9 % of the speed, a spacing of 1 ns, a
    /// gradient of one percent, one thread.
    pub fn new(latencies: Latencies) -> Self {
        let control = ControlVariable::new(0.999).unwrap_or(ControlVariable::ONE);
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
    /// When events wait for each other in a circle.
    pub fn correct<'a>(&self, trace: &'a Trace) -> Result<Corrected<'a>, Cycle> {
        let mut corrected = self.forward(trace)?;
        corrected.amortize(self.gradient);
        Ok(corrected)
    }

    /// Only moves events forward, and those after them.
    ///
    /// Over the threshold it does so again with twice as much lost of the clocks' speed, until the threshold is met or
    /// there were enough passes. Where one did not lower the error, the one before it is done again and counts.
    ///
    /// # Errors
    /// When events wait for each other in a circle.
    pub fn forward<'a>(&self, trace: &'a Trace) -> Result<Corrected<'a>, Cycle> {
        let groups = groups(trace, self.workers);
        let mut stamps = Stamps::new(trace);
        let mut times = trace.locations.iter().map(|_| vec![]).collect();
        let mut is_first = true;
        let passes = self.passes(|rule| {
            if !std::mem::take(&mut is_first) {
                stamps.clear();
            }
            let forward = Forward {
                trace,
                rule,
                latencies: self.latencies,
                groups: &groups,
            };
            let (pass, found) = forward.run(&stamps, std::mem::take(&mut times))?;
            times = found;
            Ok(pass)
        })?;
        Ok(Corrected {
            trace,
            latencies: self.latencies,
            times,
            stamps,
            passes,
            groups,
        })
    }

    /// Goes forward as often as is needed; `run` does it once.
    pub(super) fn passes<E>(
        &self,
        mut run: impl FnMut(ClockRule) -> Result<Pass, E>,
    ) -> Result<Vec<Pass>, E> {
        let mut passes = Passes::new(self);
        let mut rule = self.rule;
        while let Some(control) = passes.next(run(rule)?) {
            rule.control = control;
        }
        Ok(passes.done)
    }
}

impl Corrected<'_> {
    /// The corrected times of all events of all locations.
    pub fn times(&self) -> &[Vec<Timestamp<Global>>] {
        &self.times
    }

    /// The corrected times alone.
    pub fn into_times(self) -> Vec<Vec<Timestamp<Global>>> {
        self.times
    }

    /// The passes that there were, of which the last one counts.
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// The receives and exits that had to be moved forward beyond what events before them were, and by how much: the
    /// violations that were corrected explicitly.
    pub fn jumps(&self) -> impl Iterator<Item = (EventId, Duration)> + '_ {
        self.trace.ids().flat_map(move |location| {
            let marks = &self.trace.locations[location.index()].marks;
            marks
                .iter()
                .zip(self.stamps.all_of(location.index()))
                .filter_map(move |(mark, stamp)| {
                    let jump = Duration::from_nanos(stamp.load(Ordering::Relaxed));
                    let is_receive = matches!(mark.role(), Role::Receive | Role::Exit);
                    (is_receive && jump > Duration::ZERO).then_some((
                        EventId {
                            location,
                            event: mark.event,
                        },
                        jump,
                    ))
                })
        })
    }

    /// Moves what came before the jumps, too. To be done once.
    pub fn amortize(&mut self, gradient: Gradient) {
        limits::find(
            self.trace,
            &self.times,
            &self.latencies,
            &self.stamps,
            &self.groups,
        );
        self.stretch(gradient);
    }

    /// The same, where the limits have been found.
    pub(super) fn stretch(&mut self, gradient: Gradient) {
        let parts = deal(std::mem::take(&mut self.times), &self.groups);
        let done = share(parts, |worker, mut times| {
            for (times, location) in times.iter_mut().zip(self.groups[worker].clone()) {
                amortize(
                    &self.trace.locations[location].marks,
                    self.stamps.all_of(location),
                    times,
                    gradient,
                );
            }
            times
        });
        self.times = done.into_iter().flatten().collect();
    }

    /// The corrected time of an event; `None` if there is none.
    pub fn time(
        &self,
        EventId {
            location: LocationId(location),
            event,
        }: EventId,
    ) -> Option<Timestamp<Global>> {
        self.times
            .get(location as usize)?
            .get(event as usize)
            .copied()
    }
}

#[cfg(test)]
mod tests;
