//! Messages of a trace, pair by pair: the messages of one pair are near each other in memory, and
//! pairs can be divided among threads.

use std::ops::Range;

use downbeat_clock_core::{Duration, Global, Timestamp};

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

/// Message with its direction, and the keys of its place among those of the pair.
type Ordered = (Timestamp<Global>, u32, (usize, Arrival));

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

    /// Divides the pairs among threads, and calls `work` on each with its pairs and their messages
    /// in the order in which they were received according to the clocks.
    pub(super) fn each<R: Send>(
        &self,
        workers: usize,
        work: impl Fn(&mut dyn Iterator<Item = (EndpointPair, Vec<(usize, Arrival)>)>) -> R + Sync,
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

    /// Returns the messages of a pair in order, with their directions.
    fn messages(&self, runs: &[Run]) -> Vec<(usize, Arrival)> {
        let mut all: Vec<Ordered> = vec![];
        for run in runs {
            let [from, to] = [run.from, run.to].map(|at| &self.trace.locations[at as usize]);
            let receives = &self.receives[run.to as usize][run.receives.clone()];
            all.extend(receives.iter().map(|mark| {
                let mark = to.marks[*mark as usize];
                let sent = from.times[from.marks[mark.partner as usize].event as usize];
                let received = to.times[mark.event as usize];
                let before = mark
                    .event
                    .checked_sub(1)
                    .map(|before| to.times[before as usize]);
                let waited = before.map_or(Duration::ZERO, |before| received - before);
                (
                    received,
                    run.to,
                    (
                        run.way,
                        Arrival {
                            sent,
                            received,
                            waited,
                        },
                    ),
                )
            }));
        }
        // Each run is sorted, so that this merges them.
        all.sort_by_key(|(received, to, _)| (*received, *to));
        all.into_iter().map(|(.., message)| message).collect()
    }
}
