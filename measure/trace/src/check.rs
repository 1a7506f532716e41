//! Whether times can be true: looked at anew, with nothing that a correction is made of.

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

/// What there is to say against times of a trace.
///
/// It counts every message, and every enter of a collective operation with every exit that waits for it, by way of
/// sorting: in an operation with a thousand members there can be a million.
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
    /// How many events there are.
    pub events: u64,
    /// How many are before the event before them.
    pub decreasing: u64,
    /// How many are at the time of the event before them, although they were later.
    pub merged: u64,
    /// Messages.
    pub messages: Relations,
    /// Enters of collective operations and exits that wait for them, as if there were a message from each to each.
    pub collectives: Relations,
    /// By how much messages arrived before they were sent: those that did.
    pub reversal: Reversal,
    /// The first of what there is to say, [`Self::MOST_FAULTS`] at most.
    pub faults: Vec<Fault>,
}

/// By how much messages arrived before they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reversal {
    /// Nanoseconds of all of them.
    pub total: u128,
    /// The largest.
    pub largest: Duration,
}

/// There are not as many times as events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The first location where it is so.
    pub location: LocationId,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there are not as many times of location {} as it has events",
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
    /// The times of all events of all locations.
    pub fn times(&self) -> Vec<&[Timestamp<Global>]> {
        self.locations().iter().map(Location::times).collect()
    }
}

/// Whether times are as many as events of the trace.
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
    /// So many faults are named at most.
    pub const MOST_FAULTS: usize = 10;

    /// What there is to say against `times`, of the events of all locations of `trace`, whose own times are those before a
    /// correction. For these, see [`Trace::times`].
    ///
    /// # Errors
    /// When there are not as many times as events.
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
            verdict.say(fault);
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

    /// Whether there is nothing to say.
    pub fn holds(&self) -> bool {
        self.decreasing == 0
            && self.merged == 0
            && self.messages.violated == 0
            && self.collectives.violated == 0
    }

    /// Messages and collective operations.
    pub fn all(&self) -> Relations {
        let mut all = self.messages;
        all += self.collectives;
        all
    }

    /// The events of a location, before and after.
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
            self.say(fault);
        }
    }

    pub(super) fn say(&mut self, fault: Option<Fault>) {
        self.faults
            .extend(fault.filter(|_| self.faults.len() < Self::MOST_FAULTS));
    }

    /// An event, and when the one before it on its location and it were, before and after.
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

    /// A message: its ends, when they were, and how long it takes at least.
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

    /// A collective operation.
    pub(super) fn judge(
        &mut self,
        kind: CollectiveKind,
        parties: &[Party],
        counter: &mut late::LateCounter,
        latencies: &Latencies,
    ) {
        for (_, fault) in self.look_at(kind, parties, counter, latencies) {
            if self.faults.len() == Self::MOST_FAULTS {
                break;
            }
            self.say(fault());
        }
    }

    /// The same. The first of what there is to say against the exit of each rank that is given.
    fn look_at<'a>(
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
