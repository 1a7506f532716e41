//! Verdict on times of a trace, computed independently of the correction.

mod findings;
pub(super) mod late;
mod relations;
mod same;

use downbeat_clock_core::{Duration, Global, Timestamp};
pub(super) use findings::Findings;
use late::LateCounter;
pub use relations::{RelationCounts, Violation, WithinClocks};
pub use same::TraceDifference;
use thiserror::Error;

use super::encoding::{Merge, merge_all};
use super::workers::{groups, share};
use super::{EventId, Latencies, Location, LocationId, Trace};

/// Violations in the times of a trace.
///
/// Counts every message, and every pair of an enter and a dependent exit of a collective operation.
/// Pairs are counted by sorting: an operation with a thousand members can have a million of them.
///
/// ```
/// use downbeat_clock_core::{Duration, Timestamp};
/// use downbeat_trace::check::Verdict;
/// use downbeat_trace::{Event, Latencies, Matching, Place, TraceBuilder};
///
/// let mut builder = TraceBuilder::new(Matching::default());
/// let [sender, receiver] = [0, 1].map(|i| builder.add_location(Place { node: i, process: i }).expect("two are few"));
/// let world = builder.add_communicator(&[sender, receiver])?;
/// builder.push(sender, Timestamp::from_nanos(500), Event::Send { to: receiver.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
/// builder.push(receiver, Timestamp::from_nanos(499), Event::Receive { from: sender.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
/// let trace = builder.finish()?;
///
/// let found = Verdict::new(&trace, &trace.times(), &Latencies::ZERO)?;
/// assert!(!found.holds());
/// assert_eq!((found.messages.total, found.messages.reversed), (1, 1));
/// assert_eq!(found.faults[0].to_string(), "event 0 of location 1 is 1 ns too early for event 0 of location 0, a message");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Number of events.
    pub events: u64,
    /// Number of events that are before the event before them.
    pub decreasing: u64,
    /// Number of events that are at the time of the event before them, although they were later.
    pub merged: u64,
    /// Dependences by messages.
    pub messages: RelationCounts,
    /// Dependences of exits on enters of collective operations, counted as one message per pair.
    pub collectives: RelationCounts,
    /// Number of events that are before an event of another location of their clock that came before
    /// them.
    pub reordered: u64,
    /// Dependences by messages and collective operations between locations of one clock, which are in
    /// none of the other numbers.
    pub within_clocks: WithinClocks,
    /// Amounts by which messages arrived before they were sent.
    pub reversal: Reversal,
    /// Largest amount by which a message arrived earlier than its latency allows, or a
    /// member ended a collective operation earlier than the begin of another one allows.
    pub largest_violation: Duration,
    /// First violations, at most [`Self::MOST_FAULTS`].
    pub faults: Vec<Violation>,
}

/// Amounts by which messages arrived before they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reversal {
    /// Sum in nanoseconds.
    pub total: u128,
    /// Largest amount.
    pub largest: Duration,
}

/// Error of times that do not match the number of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the number of times of location {} differs from its number of events", location.index())]
pub struct TimesMismatch {
    /// First location that differs.
    pub location: LocationId,
}

impl Reversal {
    fn add(&mut self, by: Duration) {
        self.total += u128::from(by.as_nanos().unsigned_abs());
        self.largest = self.largest.max(by);
    }
}

impl Trace {
    /// Returns the times of all events of all locations.
    pub fn times(&self) -> Vec<&[Timestamp<Global>]> {
        self.locations().iter().map(Location::times).collect()
    }
}

/// Checks that there are as many times as events.
pub(super) fn check_fit<T: AsRef<[Timestamp<Global>]>>(
    trace: &Trace,
    times: &[T],
) -> Result<(), TimesMismatch> {
    let fits = |location: &LocationId| {
        let events = trace.locations()[location.index()].times().len();
        times
            .get(location.index())
            .is_some_and(|times| times.as_ref().len() == events)
    };
    match trace.ids().find(|location| !fits(location)) {
        Some(location) => Err(TimesMismatch { location }),
        None => Ok(()),
    }
}

impl Verdict {
    /// Maximum number of violations that are listed.
    pub const MOST_FAULTS: usize = 10;

    /// Checks `times` of the events of all locations of `trace`, whose own times are those before a
    /// correction. To check those, see [`Trace::times`].
    ///
    /// # Errors
    /// When the number of times differs from the number of events.
    pub fn new<T: AsRef<[Timestamp<Global>]>>(
        trace: &Trace,
        times: &[T],
        latencies: &Latencies,
    ) -> Result<Self, TimesMismatch> {
        check_fit(trace, times)?;
        let times: Vec<&[_]> = times.iter().map(AsRef::as_ref).collect();
        Ok(findings(trace, &times, latencies, 1, |_| true).finish())
    }

    /// Returns true if there are no violations.
    pub fn holds(&self) -> bool {
        self.violations() == 0
    }

    /// Returns the number of violations.
    pub fn violations(&self) -> u64 {
        let order = self.decreasing + self.merged + self.reordered;
        self.messages.violated + self.collectives.violated + order
    }

    /// Returns the number of violations, including the dependences within clocks that a correction
    /// of the times of `before` has reversed.
    pub(crate) fn violations_since(&self, before: &Self) -> u64 {
        let [now, then] = [self, before].map(|verdict| verdict.within_clocks.reversed);
        self.violations() + now.saturating_sub(then)
    }

    /// Returns the dependences by messages and collective operations together.
    pub fn all(&self) -> RelationCounts {
        let mut all = self.messages;
        all.merge(self.collectives);
        all
    }
}

/// Messages whose sends are looked up together: they are at many locations, so a processor that meets
/// them one by one waits for memory each time.
const BLOCK: usize = 256;

/// Checks the events of all locations and the collective operations, on this number of threads.
/// `is_own` is true for the collective operations, given by their numbers, that this rank
/// examines.
pub(super) fn findings(
    trace: &Trace,
    times: &[&[Timestamp<Global>]],
    latencies: &Latencies,
    workers: usize,
    is_own: impl Fn(u32) -> bool + Sync,
) -> Findings {
    let groups = groups(trace, workers);
    let parts = share(groups.clone(), |_, locations| {
        let mut found = Findings::default();
        for location in locations {
            let id = LocationId(location as u32);
            check_order(trace, times, id, &mut found);
            check_messages(trace, times, id, latencies, &mut found);
        }
        found
    });
    let of_worker = |worker: usize| trace.instances.len() * worker / groups.len();
    let of_operations = |worker, _| {
        let mut found = Findings::default();
        let mut counter = LateCounter::new(trace.clock_of());
        let numbers = of_worker(worker)..of_worker(worker + 1);
        let own = numbers.filter(|number| is_own(*number as u32));
        trace.each_operation(times, own, |instance, members| {
            found.collective(instance.kind, members, &mut counter, latencies);
        });
        found
    };
    let operations = trace
        .store
        .in_turns(|| share(groups.clone(), of_operations));
    let parts = parts.into_iter().chain(operations);
    merge_all(parts).unwrap_or_default()
}

/// Checks the events of a location against each other, and those of its clock if it is
/// the first location with it.
fn check_order(
    trace: &Trace,
    times: &[&[Timestamp<Global>]],
    id: LocationId,
    found: &mut Findings,
) {
    let timeline = trace.timelines().of(id.0);
    if timeline.locations.len() > 1 {
        let order = timeline.events();
        found.order(order.map(|(_, event)| (event, time_of(times, event))));
    }
    let (before, after) = (trace.locations[id.index()].times(), times[id.index()]);
    found.counts.events += before.len() as u64;
    let pairs = before.windows(2).zip(after.windows(2));
    for (event, (before, after)) in (1..).zip(pairs) {
        let event = EventId {
            location: id,
            event,
        };
        found.step(event, [before[0], before[1]], [after[0], after[1]]);
    }
}

/// Checks the messages that a location receives.
fn check_messages(
    trace: &Trace,
    times: &[&[Timestamp<Global>]],
    id: LocationId,
    latencies: &Latencies,
    found: &mut Findings,
) {
    let (to, after) = (trace.site(id), times[id.index()]);
    let mut received = trace.received_by(id);
    let (mut messages, mut sends) = (vec![], vec![]);
    loop {
        messages.clear();
        messages.extend(received.by_ref().take(BLOCK));
        if messages.is_empty() {
            break;
        }
        sends.clear();
        sends.extend(messages.iter().map(|message| time_of(times, message.send)));
        for (&message, sent) in messages.iter().zip(&sends) {
            let latency = latencies.between_sites(trace.site(message.send.location), to);
            let ends = [*sent, after[message.receive.event as usize]];
            let is_within = trace.share_clock(message.send.location, id);
            let message = trace.named_by_events(message);
            found.message(message, ends, (!is_within).then_some(latency));
        }
    }
}

/// Returns the time of an event.
pub(super) fn time_of(times: &[&[Timestamp<Global>]], event: EventId) -> Timestamp<Global> {
    times[event.location.index()][event.event as usize]
}

#[cfg(test)]
mod tests;
