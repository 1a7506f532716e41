//! Violations in a part of a trace: that of a thread, of a rank, or of a stream up to an event.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::late::{self, LateCounter};
use super::{RelationCounts, Reversal, Verdict, Violation, WithinClocks};
use crate::encoding::{Merge, encoded, merged};
use crate::member_times::MemberTimes;
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
struct FirstFaults {
    faults: Vec<Violation>,
}

impl FirstFaults {
    /// Returns true if a violation by this event would be among the first.
    fn would_keep(&self, event: EventId) -> bool {
        let last = self.faults.last().map(Violation::event);
        self.faults.len() < Verdict::MOST_FAULTS || last.is_some_and(|last| event < last)
    }

    fn add(&mut self, fault: Violation) {
        let event = fault.event();
        if self.would_keep(event) {
            let place = self.faults.partition_point(|other| other.event() < event);
            self.faults.insert(place, fault);
            self.faults.truncate(Verdict::MOST_FAULTS);
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
            Violation::Merged(event)
        } else {
            Violation::Decreasing(event)
        };
        self.first[ORDER].add(fault);
    }

    /// Checks the events of a clock with several locations, in the order before a correction.
    pub(crate) fn order(&mut self, events: impl Iterator<Item = (EventId, Timestamp<Global>)>) {
        let mut last: Option<(EventId, Timestamp<Global>)> = None;
        for (event, time) in events {
            // Events of one location are compared with each other elsewhere.
            let is_before =
                |(other, before): (EventId, _)| time < before && event.location != other.location;
            if last.is_some_and(is_before) {
                self.counts.reordered += 1;
                self.first[CLOCKS].add(Violation::Reordered(event));
            }
            last = Some((event, time));
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
            self.first[MESSAGES].add(Violation::Early {
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
        members: &[MemberTimes],
        counter: &mut LateCounter,
        latencies: &Latencies,
    ) {
        let levels = latencies.levels().map(Duration::as_nanos);
        let (across, within, late) = counter.count(members, kind.pattern(), levels);
        self.counts.collectives.merge(across);
        self.counts.within_clocks.merge(within);
        if across.violated > 0 {
            let by = late::largest_violation(members, kind.pattern(), latencies);
            self.counts.largest_violation.merge(by);
        }
        let first = &mut self.first[OPERATIONS];
        for (rank, _) in late.iter().enumerate().filter(|(_, late)| **late > 0) {
            let exit = members[rank].exit.map(|(exit, _)| exit);
            if exit.is_none_or(|exit| !first.would_keep(exit)) {
                continue;
            }
            if let Some(fault) = late::first_fault(members, rank, kind, levels) {
                first.add(fault);
            }
        }
    }

    /// Returns the verdict on the whole trace.
    pub(crate) fn finish(mut self) -> Verdict {
        let faults = self.first.into_iter().flat_map(|first| first.faults);
        self.counts.faults = faults.take(Verdict::MOST_FAULTS).collect();
        self.counts
    }
}

merged! {
    Findings { counts, first }
    Verdict {
        events, decreasing, merged, messages, collectives, reordered, within_clocks, reversal,
        largest_violation, faults
    }
    RelationCounts { total, reversed, violated }
    WithinClocks { total, reversed }
    Reversal { total, largest }
}

encoded! { FirstFaults { faults } }

impl Merge for FirstFaults {
    fn merge(&mut self, other: Self) {
        other.faults.into_iter().for_each(|fault| self.add(fault));
    }
}
