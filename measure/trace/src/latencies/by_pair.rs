//! Messages of a trace, pair by pair: the messages of one pair are near each other in memory, and
//! pairs can be divided among threads.

use std::ops::Range;

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::pair::{Arrival, EndpointPair};
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
    runs: Vec<Run<'a>>,
}

/// Messages from one location to another.
#[derive(Clone, Debug)]
struct Run<'a> {
    pair: EndpointPair,
    way: usize,
    from: u32,
    to: u32,
    messages: RunMessages<'a>,
}

#[derive(Clone, Debug)]
enum RunMessages<'a> {
    /// Indices in the receives of the receiver.
    Received(Range<usize>),
    /// Messages that another rank handed over.
    HandedOver(&'a [[u64; 4]]),
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
    run: &'a Run<'a>,
    left: RunMessages<'a>,
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
        out: &mut [Vec<u64>],
        rank_of: impl Fn(EndpointPair) -> Option<u32>,
    ) {
        let mut runs = std::mem::take(&mut self.runs);
        runs.retain(|run| {
            let Some(rank) = rank_of(run.pair) else {
                return true;
            };
            let words = &mut out[rank as usize];
            let mut rest = RunRest::new(run);
            words.extend([
                u64::from(run.from) << 32 | u64::from(run.to),
                run.len() as u64,
            ]);
            while rest.decode(self) {
                words.extend(rest.decoded.drain(..).rev().flat_map(words_of));
            }
            false
        });
        self.runs = runs;
    }

    /// Adds the messages that another rank handed over.
    pub(crate) fn take_over(&mut self, mut words: &'a [u64]) {
        while let [ends, count, rest @ ..] = words {
            let ends = [(ends >> 32) as u32, *ends as u32];
            let (messages, rest) = rest.split_at((*count as usize * 4).min(rest.len()));
            self.runs.extend(Run::between(
                self.trace,
                ends,
                RunMessages::HandedOver(messages.as_chunks().0),
            ));
            words = rest;
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
        let pairs: Vec<&[Run<'_>]> = this
            .runs
            .chunk_by(|one, other| one.pair == other.pair)
            .collect();
        let load = |runs: &&[Run<'_>]| runs.iter().map(|run| run.len() as u64).sum();
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

impl<'a> Run<'a> {
    /// Returns the run of messages between two locations; `None` if they share a clock.
    fn between(trace: &Trace, [from, to]: [u32; 2], messages: RunMessages<'a>) -> Option<Self> {
        let [one, other] = [from, to].map(|location| trace.site(LocationId(location)));
        let (pair, way) = EndpointPair::between(one, other)?;
        Some(Self {
            pair,
            way,
            from,
            to,
            messages,
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
            let messages = RunMessages::Received(start..end);
            runs.extend(Self::between(trace, [sender(run[0]), to], messages));
            start = end;
        }
        (receives, runs)
    }

    fn len(&self) -> usize {
        match &self.messages {
            RunMessages::Received(receives) => receives.len(),
            RunMessages::HandedOver(messages) => messages.len(),
        }
    }
}

fn words_of((mark, arrival): (u32, Arrival)) -> [u64; 4] {
    let Arrival {
        sent,
        received,
        waited,
    } = arrival;
    let nanos = [sent.as_nanos(), received.as_nanos(), waited.as_nanos()];
    let [sent, received, waited] = nanos.map(|nanos| nanos as u64);
    [mark.into(), sent, received, waited]
}

fn arrival_of(&[mark, sent, received, waited]: &[u64; 4]) -> (u32, Arrival) {
    let time = |word| Timestamp::from_nanos(word as i64);
    let arrival = Arrival {
        sent: time(sent),
        received: time(received),
        waited: Duration::from_nanos(waited as i64),
    };
    (mark as u32, arrival)
}

impl<'a> RunRest<'a> {
    fn new(run: &'a Run<'a>) -> Self {
        Self {
            run,
            left: run.messages.clone(),
            decoded: vec![],
        }
    }

    /// Decodes the next messages; returns false if none are left.
    fn decode(&mut self, of: &MessagesByPair<'_>) -> bool {
        match &mut self.left {
            RunMessages::Received(left) => {
                let block = left.start..left.end.min(left.start + BLOCK);
                left.start = block.end;
                let [from, to] =
                    [self.run.from, self.run.to].map(|of_run| &of.trace.locations[of_run as usize]);
                let [sends, times] =
                    [self.run.from, self.run.to].map(|of_run| of.times[of_run as usize]);
                let receives = &of.receives[self.run.to as usize][block];
                self.decoded.extend(receives.iter().rev().map(|id| {
                    let mark = to.marks[*id as usize];
                    let sent = sends[from.marks[mark.partner as usize].event as usize];
                    let received = times[mark.event as usize];
                    let before = mark
                        .event
                        .checked_sub(1)
                        .map(|before| times[before as usize]);
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
            RunMessages::HandedOver(left) => {
                let (block, rest) = left.split_at(BLOCK.min(left.len()));
                *left = rest;
                self.decoded.extend(block.iter().rev().map(arrival_of));
            }
        }
        !self.decoded.is_empty()
    }
}

impl<'a> PairMessages<'a> {
    fn new(of: &'a MessagesByPair<'a>, runs: &'a [Run<'a>]) -> Self {
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
