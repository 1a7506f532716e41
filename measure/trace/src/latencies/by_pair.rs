//! Messages of a trace, pair by pair: the messages of one pair are near each other in memory, and
//! pairs can be divided among threads.

use std::ops::Range;

use downbeat_clock_core::{Global, Timestamp};

use super::pair::{Arrival, EndpointPair};
use crate::encoding::{Encoded, decode_values};
use crate::trace::Role;
use crate::workers::{balanced, groups, share};
use crate::{LocationId, Trace};

/// Messages of a trace, sorted by pairs.
#[derive(Debug)]
pub(crate) struct MessagesByPair<'a> {
    trace: &'a Trace,
    times: &'a [&'a [Timestamp<Global>]],
    /// For every location, its marks of receives, by sender and then in order.
    receives: Vec<Vec<u32>>,
    runs: Vec<Run>,
}

/// Messages from one location to another.
#[derive(Debug)]
struct Run {
    pair: EndpointPair,
    way: usize,
    from: u32,
    to: u32,
    /// Indices in the receives of the receiver, or in the messages that were handed over.
    messages: Range<usize>,
    /// Messages that another rank handed over, with their marks.
    handed_over: Option<Vec<(u32, Arrival)>>,
}

/// Messages of a pair with their directions, in the order in which they were received according to
/// the clocks.
pub(crate) struct PairMessages<'a> {
    of: &'a MessagesByPair<'a>,
    /// Runs that have messages left. There are mostly two.
    rest: Vec<RunRest<'a>>,
}

/// Rest of a run.
struct RunRest<'a> {
    run: &'a Run,
    left: Range<usize>,
    /// Next messages, with their marks, the first one at the end.
    decoded: Vec<(u32, Arrival)>,
}

/// Maximum number of messages of a run that are decoded together, which reads memory in order.
const BLOCK: usize = 256;

impl<'a> MessagesByPair<'a> {
    /// Sorts the messages that are received in a trace, on this number of threads.
    pub(crate) fn new(
        trace: &'a Trace,
        times: &'a [&'a [Timestamp<Global>]],
        workers: usize,
    ) -> Self {
        let of_workers = share(groups(trace, workers), |_, locations| {
            let of_location = |location| Run::of_location(trace, location as u32);
            locations.map(of_location).unzip::<_, _, Vec<_>, Vec<_>>()
        });
        let (receives, runs): (Vec<_>, Vec<_>) = of_workers.into_iter().unzip();
        Self {
            trace,
            times,
            receives: receives.concat(),
            runs: runs.into_iter().flatten().flatten().collect(),
        }
    }

    /// Removes the messages of the pairs for which `rank_of` returns another rank, and adds them to
    /// that rank's box.
    pub(crate) fn hand_over(
        &mut self,
        out: &mut [Vec<u8>],
        rank_of: impl Fn(EndpointPair) -> Option<u32>,
    ) {
        let mut runs = std::mem::take(&mut self.runs);
        runs.retain(|run| {
            let Some(rank) = rank_of(run.pair) else {
                return true;
            };
            let (mut rest, mut messages) = (RunRest::new(run), vec![]);
            while rest.decode(self) {
                messages.extend(rest.decoded.drain(..).rev());
            }
            ((run.from, run.to), messages).encode(&mut out[rank as usize]);
            false
        });
        self.runs = runs;
    }

    /// Adds the messages that another rank handed over.
    pub(crate) fn take_over(&mut self, bytes: &[u8]) {
        for ((from, to), messages) in decode_values::<((u32, u32), Vec<_>)>(bytes) {
            let run = Run::between(self.trace, [from, to], 0..messages.len());
            self.runs.extend(run.map(|run| Run {
                handed_over: Some(messages),
                ..run
            }));
        }
    }

    /// Divides the pairs among threads, and calls `work` on each with its pairs and their messages.
    pub(crate) fn each<R: Send>(
        &mut self,
        workers: usize,
        work: impl Fn(&mut dyn Iterator<Item = (EndpointPair, PairMessages<'_>)>) -> R + Sync,
    ) -> Vec<R> {
        self.runs.sort_by_key(|run| run.pair);
        let this = &*self;
        let pairs: Vec<&[Run]> = this
            .runs
            .chunk_by(|one, other| one.pair == other.pair)
            .collect();
        let load = |runs: &&[Run]| runs.iter().map(|run| run.messages.len() as u64).sum();
        let loads: Vec<u64> = pairs.iter().map(load).collect();
        share(balanced(&loads, workers), |_, range| {
            work(
                &mut pairs[range]
                    .iter()
                    .map(|runs| (runs[0].pair, PairMessages::new(this, runs))),
            )
        })
    }
}

impl Run {
    /// Returns the run of messages between two locations; `None` if they share a clock.
    fn between(trace: &Trace, [from, to]: [u32; 2], messages: Range<usize>) -> Option<Self> {
        let [one, other] = [from, to].map(|location| trace.site(LocationId(location)));
        let (pair, way) = EndpointPair::between(one, other)?;
        Some(Self {
            pair,
            way,
            from,
            to,
            messages,
            handed_over: None,
        })
    }

    /// Returns the marks of receives by sender, and the runs of these.
    fn of_location(trace: &Trace, to: u32) -> (Vec<u32>, Vec<Self>) {
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
            let end = start + run.len();
            runs.extend(Self::between(trace, [sender(run[0]), to], start..end));
            start = end;
        }
        (receives, runs)
    }
}

impl<'a> RunRest<'a> {
    fn new(run: &'a Run) -> Self {
        Self {
            run,
            left: run.messages.clone(),
            decoded: vec![],
        }
    }

    /// Decodes the next messages; returns false if none are left.
    fn decode(&mut self, of: &MessagesByPair<'_>) -> bool {
        let Run {
            from,
            to,
            handed_over,
            ..
        } = self.run;
        let block = self.left.start..self.left.end.min(self.left.start + BLOCK);
        self.left.start = block.end;
        if let Some(messages) = handed_over {
            self.decoded.extend(messages[block].iter().rev().copied());
            return !self.decoded.is_empty();
        }
        let [sender, receiver] = [from, to].map(|run| &of.trace.locations[*run as usize]);
        let [sends, times] = [from, to].map(|run| of.times[*run as usize]);
        let receives = of.receives[*to as usize][block].iter().rev();
        self.decoded.extend(receives.map(|id| {
            let mark = receiver.marks[*id as usize];
            let event = mark.event as usize;
            let sent = sender.marks[mark.partner as usize].event as usize;
            let before = times[event.saturating_sub(1)];
            let arrival = Arrival {
                sent: sends[sent],
                received: times[event],
                waited: times[event] - before,
            };
            (*id, arrival)
        }));
        !self.decoded.is_empty()
    }
}

impl<'a> PairMessages<'a> {
    fn new(of: &'a MessagesByPair<'a>, runs: &'a [Run]) -> Self {
        let mut rest: Vec<_> = runs.iter().map(RunRest::new).collect();
        rest.retain_mut(|rest| rest.decode(of));
        Self { of, rest }
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
        if rest.decoded.is_empty() && !rest.decode(self.of) {
            self.rest.swap_remove(first);
        }
        Some((way, arrival))
    }
}
