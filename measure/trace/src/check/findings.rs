//! Violations in a part of a trace: that of a thread, of a rank, or of a stream up to an event.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::late::{self, LateCounter, Party};
use super::{Fault, Verdict, WithinClocks};
use crate::check::Relations;
use crate::merge::{Number, Numbers};
use crate::{CollectiveKind, EventId, Latencies, Message};

/// Counts and first violations. Parts in any order are merged to those of the whole.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Counts, without violations.
    pub(crate) counts: Verdict,
    /// First violations of the order of locations and of clocks, of messages, and of collective
    /// operations.
    first: [FirstFaults; 4],
}

/// Kinds of violations, in the order in which they are listed.
const ORDER: usize = 0;
const CLOCKS: usize = 1;
const MESSAGES: usize = 2;
const OPERATIONS: usize = 3;

/// First violations of a kind, in the order of the trace.
#[derive(Debug, Default)]
struct FirstFaults(Vec<Fault>);

impl FirstFaults {
    /// Returns true if a violation by this event would be among the first.
    fn would_keep(&self, event: EventId) -> bool {
        let last = self.0.last().map(Fault::event);
        self.0.len() < Verdict::MOST_FAULTS || last.is_some_and(|last| event < last)
    }

    fn add(&mut self, fault: Fault) {
        let event = fault.event();
        if self.would_keep(event) {
            let place = self.0.partition_point(|other| other.event() < event);
            self.0.insert(place, fault);
            self.0.truncate(Verdict::MOST_FAULTS);
        }
    }
}

impl Findings {
    /// Checks one event against its predecessor: the times of both before and after a correction.
    #[inline]
    pub(crate) fn step(
        &mut self,
        event: EventId,
        before: [Timestamp<Global>; 2],
        after: [Timestamp<Global>; 2],
    ) {
        if after[1] > after[0] || (after[1] == after[0] && before[1] <= before[0]) {
            return;
        }
        let is_merged = after[1] == after[0];
        self.counts.merged += u64::from(is_merged);
        self.counts.decreasing += u64::from(!is_merged);
        let fault = if is_merged {
            Fault::Merged(event)
        } else {
            Fault::Decreasing(event)
        };
        self.first[ORDER].add(fault);
    }

    /// Checks the events of a clock with several locations, in the order before a correction.
    pub(crate) fn order(&mut self, events: impl Iterator<Item = (EventId, Timestamp<Global>)>) {
        let mut last: Option<(EventId, Timestamp<Global>)> = None;
        for (event, time) in events {
            if let Some(last) = last {
                self.order_step(last, (event, time));
            }
            last = Some((event, time));
        }
    }

    /// Checks one event against its predecessor on the same clock.
    pub(crate) fn order_step(
        &mut self,
        last: (EventId, Timestamp<Global>),
        (event, time): (EventId, Timestamp<Global>),
    ) {
        // Events of one location are compared with each other elsewhere.
        if time < last.1 && event.location != last.0.location {
            self.counts.reordered += 1;
            self.first[CLOCKS].add(Fault::Reordered(event));
        }
    }

    /// Checks a message, given the times of its ends and its minimum latency; `None` if both ends
    /// share a clock.
    #[inline]
    pub(crate) fn message(
        &mut self,
        Message { send, receive }: Message,
        [sent, received]: [Timestamp<Global>; 2],
        latency: Option<Duration>,
    ) {
        let Verdict {
            messages,
            reversal,
            largest_violation,
            within_clocks,
            ..
        } = &mut self.counts;
        let Some(latency) = latency else {
            within_clocks.total += 1;
            within_clocks.reversed += u64::from(received < sent);
            return;
        };
        messages.total += 1;
        if received < sent {
            messages.reversed += 1;
            reversal.add(sent - received);
        }
        let by = sent + latency - received;
        if by > Duration::ZERO {
            messages.violated += 1;
            *largest_violation = by.max(*largest_violation);
            let kind = None;
            self.first[MESSAGES].add(Fault::Early {
                send,
                receive,
                by,
                kind,
            });
        }
    }

    /// Checks a collective operation.
    pub(crate) fn collective(
        &mut self,
        kind: CollectiveKind,
        parties: &[Party],
        counter: &mut LateCounter,
        latencies: &Latencies,
    ) {
        let levels = latencies.levels().map(Duration::as_nanos);
        let (found, late) = counter.count(parties, kind.pattern(), levels);
        self.counts.collectives += found.across;
        self.counts.within_clocks += found.within;
        if found.across.violated > 0 {
            let by = late::largest_violation(parties, kind.pattern(), latencies);
            let largest = &mut self.counts.largest_violation;
            *largest = by.max(*largest);
        }
        let first = &mut self.first[OPERATIONS];
        for (rank, _) in late.iter().enumerate().filter(|(_, late)| **late > 0) {
            let exit = parties[rank].exit.map(|(exit, _)| exit);
            if exit.is_none_or(|exit| !first.would_keep(exit)) {
                continue;
            }
            let early = late::first_sender(parties, rank, kind.pattern(), levels);
            if let Some((send, receive, by)) = early {
                let kind = Some(kind);
                first.add(Fault::Early {
                    send,
                    receive,
                    by,
                    kind,
                });
            }
        }
    }

    /// Adds the findings in another part.
    pub(crate) fn merge(mut self, mut other: Self) -> Self {
        self.counts.merge(&mut other.counts);
        other.faults().for_each(|fault| self.add(fault));
        self
    }

    /// Returns the first violations of all kinds.
    pub(crate) fn faults(&self) -> impl Iterator<Item = Fault> + '_ {
        self.first.iter().flat_map(|first| first.0.iter().copied())
    }

    /// Adds a violation that another part found.
    pub(crate) fn add(&mut self, fault: Fault) {
        let kind = match fault {
            Fault::Decreasing(_) | Fault::Merged(_) => ORDER,
            Fault::Reordered(_) => CLOCKS,
            Fault::Early { kind: None, .. } => MESSAGES,
            Fault::Early { kind: Some(_), .. } => OPERATIONS,
        };
        self.first[kind].add(fault);
    }

    /// Returns the verdict on the whole trace.
    pub(crate) fn finish(mut self) -> Verdict {
        self.counts.faults = self.faults().take(Verdict::MOST_FAULTS).collect();
        self.counts
    }
}

/// All numbers except the violations.
impl Numbers for Verdict {
    fn numbers(&mut self, see: &mut impl FnMut(Number<'_>)) {
        let Self {
            events,
            decreasing,
            merged,
            messages,
            collectives,
            reordered,
            within_clocks,
            reversal,
            largest_violation,
            faults: _,
        } = self;
        let WithinClocks { total, reversed } = within_clocks;
        [events, decreasing, merged, reordered, total, reversed]
            .into_iter()
            .for_each(|count| see(Number::Count(count)));
        for of in [messages, collectives] {
            let Relations {
                total,
                reversed,
                violated,
            } = of;
            [total, reversed, violated]
                .into_iter()
                .for_each(|count| see(Number::Count(count)));
        }
        see(Number::Sum(&mut reversal.total));
        see(Number::Longest(&mut reversal.largest));
        see(Number::Longest(largest_violation));
    }
}
