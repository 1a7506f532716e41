//! Messages of a trace, pair by pair: the messages of one pair are near each other in memory, and
//! pairs can be divided among threads.

use std::ops::Range;

use downbeat_clock_core::Duration;

use super::pair::{Arrival, EndpointPair};
use crate::trace::Role;
use crate::workers::{balanced, groups, share};
use crate::{LocationId, Trace};

/// Receives of all locations, sorted by pairs.
#[derive(Debug)]
pub(super) struct MessagesByPair<'a> {
    trace: &'a Trace,
    /// For every location, its marks of receives, by sender and then in order.
    receives: Vec<Vec<u32>>,
    /// Runs of these from one sender, by pair.
    runs: Vec<Run>,
}

/// Messages from one location to another.
#[derive(Clone, Debug)]
struct Run {
    pair: EndpointPair,
    way: usize,
    from: u32,
    to: u32,
    /// Indices in the receives of the receiver.
    receives: Range<usize>,
}

/// Messages of a pair with their directions, in the order in which they were received according to
/// the clocks.
pub(super) struct PairMessages<'a> {
    trace: &'a Trace,
    /// Runs that have messages left. There are mostly two.
    rest: Vec<RunRest<'a>>,
}

/// Rest of a run.
struct RunRest<'a> {
    run: &'a Run,
    receives: &'a [u32],
    /// Next messages, with their marks, the first one at the end.
    decoded: Vec<(u32, Arrival)>,
}

/// Maximum number of messages of a run that are decoded together, which reads memory in order.
const BLOCK: usize = 256;

impl<'a> MessagesByPair<'a> {
    /// Sorts the messages of a trace, on this number of threads.
    pub(super) fn new(trace: &'a Trace, workers: usize) -> Self {
        let of_workers = share(groups(trace, workers), |_, locations| {
            let of_location = |location| Self::of_location(trace, location as u32);
            locations.map(of_location).unzip::<_, _, Vec<_>, Vec<_>>()
        });
        let (receives, runs): (Vec<_>, Vec<_>) = of_workers.into_iter().unzip();
        let mut runs = runs.into_iter().flatten().flatten().collect::<Vec<_>>();
        runs.sort_by_key(|run: &Run| run.pair);
        Self {
            trace,
            receives: receives.concat(),
            runs,
        }
    }

    /// Returns the marks of receives by sender, and the runs of these.
    fn of_location(trace: &Trace, to: u32) -> (Vec<u32>, Vec<Run>) {
        let location = &trace.locations[to as usize];
        if location.times.is_empty() {
            return (vec![], vec![]);
        }
        let marks = &location.marks;
        let sender = |mark: u32| marks[mark as usize].peer();
        let is_receive = |mark: &u32| marks[*mark as usize].role() == Role::Receive;
        let mut receives: Vec<u32> = (0..marks.len() as u32).filter(is_receive).collect();
        receives.sort_by_key(|mark| sender(*mark));
        let (mut runs, mut start) = (vec![], 0);
        for run in receives.chunk_by(|one, other| sender(*one) == sender(*other)) {
            let (from, end) = (sender(run[0]), start + run.len());
            let [one, other] = [from, to].map(|location| trace.site(LocationId(location)));
            if let Some((pair, way)) = EndpointPair::between(one, other) {
                runs.push(Run {
                    pair,
                    way,
                    from,
                    to,
                    receives: start..end,
                });
            }
            start = end;
        }
        (receives, runs)
    }

    /// Divides the pairs among threads, and calls `work` on each with its pairs and their messages.
    pub(super) fn each<R: Send>(
        &self,
        workers: usize,
        work: impl Fn(&mut dyn Iterator<Item = (EndpointPair, PairMessages<'_>)>) -> R + Sync,
    ) -> Vec<R> {
        let pairs: Vec<&[Run]> = self
            .runs
            .chunk_by(|one, other| one.pair == other.pair)
            .collect();
        let load = |runs: &&[Run]| runs.iter().map(|run| run.receives.len() as u64).sum();
        let loads: Vec<u64> = pairs.iter().map(load).collect();
        share(balanced(&loads, workers), |_, range| {
            work(
                &mut pairs[range]
                    .iter()
                    .map(|runs| (runs[0].pair, self.messages(runs))),
            )
        })
    }

    fn messages<'b>(&'b self, runs: &'b [Run]) -> PairMessages<'b> {
        let rest = runs.iter().map(|run| RunRest {
            run,
            receives: &self.receives[run.to as usize][run.receives.clone()],
            decoded: vec![],
        });
        let mut rest: Vec<_> = rest.collect();
        rest.iter_mut().for_each(|rest| rest.decode(self.trace));
        PairMessages {
            trace: self.trace,
            rest,
        }
    }
}

impl RunRest<'_> {
    /// Decodes the next messages.
    fn decode(&mut self, trace: &Trace) {
        let (block, rest) = self.receives.split_at(BLOCK.min(self.receives.len()));
        self.receives = rest;
        let [from, to] = [self.run.from, self.run.to].map(|at| &trace.locations[at as usize]);
        self.decoded.extend(block.iter().rev().map(|id| {
            let mark = to.marks[*id as usize];
            let sent = from.times[from.marks[mark.partner as usize].event as usize];
            let received = to.times[mark.event as usize];
            let before = mark
                .event
                .checked_sub(1)
                .map(|before| to.times[before as usize]);
            let waited = before.map_or(Duration::ZERO, |before| received - before);
            (
                *id,
                Arrival {
                    sent,
                    received,
                    waited,
                },
            )
        }));
    }
}

impl Iterator for PairMessages<'_> {
    type Item = (usize, Arrival);

    fn next(&mut self) -> Option<Self::Item> {
        let key = |rest: &RunRest<'_>| {
            let (mark, arrival) = rest.decoded.last()?;
            Some((arrival.received, rest.run.to, *mark))
        };
        let rest = self.rest.iter().enumerate();
        let (first, _) = rest.min_by_key(|(_, rest)| key(rest))?;
        let rest = &mut self.rest[first];
        let (way, (_, arrival)) = (rest.run.way, rest.decoded.pop()?);
        if rest.decoded.is_empty() {
            rest.decode(self.trace);
            if rest.decoded.is_empty() {
                self.rest.swap_remove(first);
            }
        }
        Some((way, arrival))
    }
}
