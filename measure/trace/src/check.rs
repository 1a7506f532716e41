//! Verdict on times of a trace, computed independently of the correction.

pub(super) mod late;
mod relations;
mod same;
mod streamed;

use core::fmt;

use downbeat_clock_core::{Duration, Global, Timestamp};
use late::Party;
pub use relations::{Fault, Relations};
pub use same::Difference;
pub use streamed::StreamedVerdict;

use super::{CollectiveKind, EventId, Latencies, Location, LocationId, Message, Trace};

/// Violations in the times of a trace.
///
/// Counts every message, and every pair of an enter and a dependent exit of a collective operation.
/// Pairs are counted by sorting: an operation with a thousand members can have a million of them.
///
/// ```
/// use downbeat_clock_core::{Duration, Timestamp};
/// use downbeat_trace::{Action, Latencies, Matching, Place, TraceBuilder, Verdict};
///
/// let mut builder = TraceBuilder::new(Matching::default());
/// let [sender, receiver] = [0, 1].map(|i| builder.add_location(Place { node: i, process: i }).expect("two are few"));
/// let world = builder.add_communicator(&[sender, receiver])?;
/// builder.push(sender, Timestamp::from_nanos(500), Action::Send { to: receiver, communicator: world, tag: 7 })?;
/// builder.push(receiver, Timestamp::from_nanos(499), Action::Receive { from: sender, communicator: world, tag: 7 })?;
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
    pub messages: Relations,
    /// Dependences of exits on enters of collective operations, counted as one message per pair.
    pub collectives: Relations,
    /// Amounts by which messages arrived before they were sent.
    pub reversal: Reversal,
    /// First violations, at most [`Self::MOST_FAULTS`].
    pub faults: Vec<Fault>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// First location that differs.
    pub location: LocationId,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the number of times of location {} differs from its number of events",
            self.location.index()
        )
    }
}

impl core::error::Error for Misfit {}

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
) -> Result<(), Misfit> {
    let fits = |location: &LocationId| {
        let events = trace.locations()[location.index()].times().len();
        times
            .get(location.index())
            .is_some_and(|times| times.as_ref().len() == events)
    };
    match trace.ids().find(|location| !fits(location)) {
        Some(location) => Err(Misfit { location }),
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
    ) -> Result<Self, Misfit> {
        check_fit(trace, times)?;
        let mut verdict = Self {
            events: trace.events(),
            ..Self::default()
        };
        for (location, times) in trace.ids().zip(times) {
            verdict.order(
                location,
                trace.locations()[location.index()].times(),
                times.as_ref(),
            );
        }
        let time = |event: EventId| times[event.location.index()].as_ref()[event.event as usize];
        for message in trace.messages() {
            let latency = latencies.between(trace, message.send.location, message.receive.location);
            let fault = verdict.message(
                message,
                [time(message.send), time(message.receive)],
                latency,
            );
            verdict.add_fault(fault);
        }
        let (mut parties, mut counter) = (vec![], late::LateCounter::default());
        for collective in trace.collectives() {
            parties.clear();
            parties.extend(
                collective
                    .members()
                    .map(|member| Party::new(member, trace, time)),
            );
            verdict.judge(collective.kind(), &parties, &mut counter, latencies);
        }
        Ok(verdict)
    }

    /// Returns true if there are no violations.
    pub fn holds(&self) -> bool {
        self.decreasing == 0
            && self.merged == 0
            && self.messages.violated == 0
            && self.collectives.violated == 0
    }

    /// Returns the dependences by messages and collective operations together.
    pub fn all(&self) -> Relations {
        let mut all = self.messages;
        all += self.collectives;
        all
    }

    /// Checks the order of the events of a location, given its times before and after a correction.
    pub(super) fn order(
        &mut self,
        location: LocationId,
        before: &[Timestamp<Global>],
        after: &[Timestamp<Global>],
    ) {
        for (event, (before, after)) in (1..).zip(before.windows(2).zip(after.windows(2))) {
            let fault = self.step(
                EventId { location, event },
                [before[0], before[1]],
                [after[0], after[1]],
            );
            self.add_fault(fault);
        }
    }

    pub(super) fn add_fault(&mut self, fault: Option<Fault>) {
        self.faults
            .extend(fault.filter(|_| self.faults.len() < Self::MOST_FAULTS));
    }

    /// Checks one event against its predecessor: the times of both before and after a correction.
    fn step(
        &mut self,
        event: EventId,
        before: [Timestamp<Global>; 2],
        after: [Timestamp<Global>; 2],
    ) -> Option<Fault> {
        if after[1] < after[0] {
            self.decreasing += 1;
            return Some(Fault::Decreasing(event));
        }
        let is_merged = after[1] == after[0] && before[1] > before[0];
        self.merged += u64::from(is_merged);
        is_merged.then_some(Fault::Merged(event))
    }

    /// Checks a message, given the times of its ends and its minimum latency.
    pub(super) fn message(
        &mut self,
        Message { send, receive }: Message,
        [sent, received]: [Timestamp<Global>; 2],
        latency: Duration,
    ) -> Option<Fault> {
        self.messages.total += 1;
        if received < sent {
            self.messages.reversed += 1;
            self.reversal.add(sent - received);
        }
        let by = sent + latency - received;
        (by > Duration::ZERO).then(|| {
            self.messages.violated += 1;
            Fault::Early {
                send,
                receive,
                by,
                kind: None,
            }
        })
    }

    /// Checks a collective operation.
    pub(super) fn judge(
        &mut self,
        kind: CollectiveKind,
        parties: &[Party],
        counter: &mut late::LateCounter,
        latencies: &Latencies,
    ) {
        for (_, fault) in self.count_collective(kind, parties, counter, latencies) {
            if self.faults.len() == Self::MOST_FAULTS {
                break;
            }
            self.add_fault(fault());
        }
    }

    /// Counts the violations of a collective operation. Returns, for each violating rank, a
    /// function that describes its first violation.
    fn count_collective<'a>(
        &mut self,
        kind: CollectiveKind,
        parties: &'a [Party],
        counter: &'a mut late::LateCounter,
        latencies: &Latencies,
    ) -> impl Iterator<Item = (usize, impl FnOnce() -> Option<Fault> + use<'a>)> + use<'a> {
        let latencies = latencies.levels().map(Duration::as_nanos);
        let (found, late) = counter.count(parties, kind.pattern(), latencies);
        self.collectives += found;
        late.iter()
            .enumerate()
            .filter(|(_, late)| **late > 0)
            .map(move |(rank, _)| {
                let fault = move || {
                    let (send, receive, by) =
                        late::first_sender(parties, rank, kind.pattern(), latencies)?;
                    Some(Fault::Early {
                        send,
                        receive,
                        by,
                        kind: Some(kind),
                    })
                };
                (rank, fault)
            })
    }
}

#[cfg(test)]
mod tests;
