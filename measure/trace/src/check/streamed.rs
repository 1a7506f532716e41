//! Verdict on the times of a stream, which holds only pending messages and operations.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::streaming::{Census, Link, Linked, StreamedOperation, UnderWay, Which};
use super::super::teams::sends;
use super::super::{CollectiveKind, EventId, Latencies, Message};
use super::late::{LateCounter, Party};
use super::{Findings, Verdict};

/// [`Verdict::new`] for a stream, with the same counts and violations.
#[derive(Debug)]
pub struct StreamedVerdict<'a> {
    census: &'a Census,
    latencies: Latencies,
    found: Findings,
    /// Times of the last event of every location, before and after.
    last: Vec<Option<[Timestamp<Global>; 2]>>,
    /// For each clock, given by its first location, true if it has others.
    is_shared: Vec<bool>,
    /// Last event of every shared clock with its time, by the first location of the clock.
    last_of_clocks: Vec<Option<(EventId, Timestamp<Global>)>>,
    sent: UnderWay<(EventId, Timestamp<Global>)>,
    ongoing: FxHashMap<Which, OngoingCheck>,
    counter: LateCounter,
}

/// Collective operation that is not complete.
#[derive(Debug)]
struct OngoingCheck {
    parties: Vec<Party>,
    kind_and_root: Option<(CollectiveKind, u32)>,
    /// Ranks that sent no data.
    without_data: Vec<u32>,
}

impl<'a> StreamedVerdict<'a> {
    /// Creates a verdict on no events.
    pub fn new(census: &'a Census, latencies: Latencies) -> Self {
        Self {
            census,
            latencies,
            found: Findings::default(),
            last: vec![None; census.ids().len()],
            is_shared: census.shared_clocks(),
            last_of_clocks: vec![None; census.ids().len()],
            sent: UnderWay::none(census),
            ongoing: FxHashMap::default(),
            counter: LateCounter::new(census.definitions.clocks.groups()),
        }
    }

    /// Takes the next event: its time before a correction, and the time to check.
    pub fn take(&mut self, event: Linked, before: Timestamp<Global>, time: Timestamp<Global>) {
        let Linked { id, link } = event;
        self.found.counts.events += 1;
        if let Some(last) = self.last[id.location.index()].replace([before, time]) {
            self.found.step(id, [last[0], before], [last[1], time]);
        }
        let clock = self.census.clocks()[id.location.index()] as usize;
        if self.is_shared[clock]
            && let Some(last) = self.last_of_clocks[clock].replace((id, time))
        {
            self.found.order_step(last, (id, time));
        }
        match link {
            Link::Nothing => {}
            Link::Send { message } | Link::EarlyReceive { message } => {
                self.sent.insert(message, (id, time));
            }
            Link::Receive { message } => {
                let Some((send, sent)) = self.sent.remove(message) else {
                    return;
                };
                let [from, to] = [send, id].map(|event| self.census.site(event.location.0));
                let message = Message { send, receive: id };
                let is_across = from.clock != to.clock;
                let latency = is_across.then(|| self.latencies.between_sites(from, to));
                self.found.message(message, [sent, time], latency);
            }
            Link::LateSend { message } => {
                if let Some((receive, received)) = self.sent.remove(message) {
                    let message = Message { send: id, receive };
                    self.found.message(message, [time, received], None);
                }
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
                if let Some(ongoing) = self.ongoing.get_mut(&operation.which) {
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
    fn party(&mut self, operation: StreamedOperation, id: EventId) -> &mut Party {
        let site = self.census.site(id.location.0);
        let ongoing = self
            .ongoing
            .entry(operation.which)
            .or_insert_with(|| OngoingCheck {
                parties: vec![
                    Party {
                        site,
                        enter: None,
                        exit: None
                    };
                    operation.members as usize
                ],
                kind_and_root: None,
                without_data: vec![],
            });
        let party = &mut ongoing.parties[operation.rank as usize];
        party.site = site;
        party
    }

    /// Checks an operation after its last event.
    fn end(&mut self, operation: StreamedOperation) {
        let Some(mut ongoing) = operation
            .is_last
            .then(|| self.ongoing.remove(&operation.which))
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
        let Self {
            found,
            counter,
            latencies,
            ..
        } = self;
        found.collective(kind, &ongoing.parties, counter, latencies);
    }

    /// Returns the verdict on all events.
    pub fn finish(self) -> Verdict {
        self.found.finish()
    }
}
