//! Verdict on the times of a stream, which holds only pending messages and operations.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::streaming::{Census, Link, Linked, Operation};
use super::super::teams::sends;
use super::super::{CollectiveKind, EventId, Latencies, Message};
use super::late::{LateCounter, Party};
use super::{Fault, Verdict};

/// [`Verdict::new`] for a stream, with the same counts and violations.
#[derive(Debug)]
pub struct StreamedVerdict<'a> {
    census: &'a Census,
    latencies: Latencies,
    verdict: Verdict,
    /// Times of the last event of every location, before and after.
    last: Vec<Option<[Timestamp<Global>; 2]>>,
    sent: FxHashMap<u64, (EventId, Timestamp<Global>)>,
    ongoing: FxHashMap<u64, OngoingCheck>,
    counter: LateCounter,
    /// Violations of the order of events, of messages, and of collective operations.
    first: [FirstFaults; 3],
}

/// Collective operation that is not complete.
#[derive(Debug)]
struct OngoingCheck {
    parties: Vec<Party>,
    kind_and_root: Option<(CollectiveKind, u32)>,
    /// Ranks that sent no data.
    without_data: Vec<u32>,
}

/// First violations, in the order in which a trace in memory lists them.
#[derive(Debug, Default)]
struct FirstFaults(Vec<((u64, u32), Fault)>);

impl FirstFaults {
    /// Returns true if a violation at this position would be among the first.
    fn would_keep(&self, at: (u64, u32)) -> bool {
        self.0.len() < Verdict::MOST_FAULTS || self.0.last().is_some_and(|(last, _)| at < *last)
    }

    fn add(&mut self, at: (u64, u32), fault: Option<Fault>) {
        let Some(fault) = fault.filter(|_| self.would_keep(at)) else {
            return;
        };
        let place = self.0.partition_point(|(other, _)| *other < at);
        self.0.insert(place, (at, fault));
        self.0.truncate(Verdict::MOST_FAULTS);
    }
}

impl<'a> StreamedVerdict<'a> {
    /// Creates a verdict on no events.
    pub fn new(census: &'a Census, latencies: Latencies) -> Self {
        Self {
            census,
            latencies,
            verdict: Verdict::default(),
            last: vec![None; census.ids().len()],
            sent: FxHashMap::default(),
            ongoing: FxHashMap::default(),
            counter: LateCounter::default(),
            first: Default::default(),
        }
    }

    /// Takes the next event: its time before a correction, and the time to check.
    pub fn take(&mut self, event: Linked, before: Timestamp<Global>, time: Timestamp<Global>) {
        let Linked { id, link } = event;
        let of_event = (id.location.index() as u64, id.event);
        self.verdict.events += 1;
        if let Some(last) = self.last[id.location.index()].replace([before, time]) {
            let fault = self.verdict.step(id, [last[0], before], [last[1], time]);
            self.first[0].add(of_event, fault);
        }
        match link {
            Link::Nothing => {}
            Link::Send { message } => {
                self.sent.insert(message, (id, time));
            }
            Link::Receive { message } => {
                let Some((send, sent)) = self.sent.remove(&message) else {
                    return;
                };
                let [from, to] = [send, id].map(|event| self.census.site(event.location.0));
                let message = Message { send, receive: id };
                let fault = self.verdict.message(
                    message,
                    [sent, time],
                    self.latencies.between_sites(from, to),
                );
                self.first[1].add(of_event, fault);
            }
            Link::Enter { of: operation } => {
                let party = self.party(operation, id);
                party.enter = Some((id, time.as_nanos()));
                self.end(operation);
            }
            Link::Exit {
                of: operation,
                kind,
                root,
                sends,
                receives,
            } => {
                let party = self.party(operation, id);
                party.exit = receives.then_some((id, time.as_nanos()));
                if let Some(ongoing) = self.ongoing.get_mut(&operation.number) {
                    ongoing.kind_and_root = Some((kind, root));
                    ongoing
                        .without_data
                        .extend((!sends).then_some(operation.rank));
                }
                self.end(operation);
            }
        }
    }

    /// Returns the member of an operation to which an event belongs.
    fn party(&mut self, operation: Operation, id: EventId) -> &mut Party {
        let place = self.census.site(id.location.0).place;
        let ongoing = self
            .ongoing
            .entry(operation.number)
            .or_insert_with(|| OngoingCheck {
                parties: vec![
                    Party {
                        place,
                        enter: None,
                        exit: None
                    };
                    operation.members as usize
                ],
                kind_and_root: None,
                without_data: vec![],
            });
        let party = &mut ongoing.parties[operation.rank as usize];
        party.place = place;
        party
    }

    /// Checks an operation after its last event.
    fn end(&mut self, operation: Operation) {
        let Some(mut ongoing) = operation
            .is_last
            .then(|| self.ongoing.remove(&operation.number))
            .flatten()
        else {
            return;
        };
        let Some((kind, root)) = ongoing.kind_and_root else {
            return;
        };
        for rank in ongoing.without_data {
            ongoing.parties[rank as usize].enter = None;
        }
        for (rank, party) in (0..).zip(&mut ongoing.parties) {
            party.enter = party.enter.filter(|_| sends(kind, root, rank));
        }
        let late = self.verdict.count_collective(
            kind,
            &ongoing.parties,
            &mut self.counter,
            &self.latencies,
        );
        for (rank, fault) in late {
            let at = (operation.number, rank as u32);
            if self.first[2].would_keep(at) {
                self.first[2].add(at, fault());
            }
        }
    }

    /// Returns the verdict on all events.
    pub fn finish(mut self) -> Verdict {
        let all = self.first.into_iter().flat_map(|first| first.0);
        self.verdict.faults = all
            .map(|(_, fault)| fault)
            .take(Verdict::MOST_FAULTS)
            .collect();
        self.verdict
    }
}
