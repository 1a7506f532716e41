//! Receives that complete before others that were posted earlier: the messages that these will
//! receive stay, so they take a later one.

use std::collections::BTreeSet;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::super::{EventId, LocationId};

/// For receives that do not take the first of the messages that wait: the number of messages before
/// the one that they take.
pub(crate) type Overtaking = FxHashMap<EventId, u32>;

/// Posted receives of all processes, during the first pass over a trace; channels have any name.
#[derive(Clone, Debug)]
pub(crate) struct Posted<C> {
    processes: FxHashMap<u32, PostedByProcess<C>>,
    pub(crate) overtaking: Overtaking,
    /// Receives for which too few messages waited.
    pub(super) early: Vec<(C, EventId)>,
}

#[derive(Clone, Debug)]
struct PostedByProcess<C> {
    /// Number of receives that were posted, blocking ones included.
    count: u64,
    /// By request: their numbers, and the locations that posted them.
    requests: FxHashMap<u64, (u64, LocationId)>,
    /// Numbers of receives that are not complete.
    open: BTreeSet<u64>,
    /// Complete receives while there are such.
    undecided: Vec<Undecided<C>>,
    /// Number of undecided receives at which to look for those that can be decided.
    limit: usize,
    /// Completions without posts, by request.
    early: FxHashMap<u64, EventId>,
}

/// Receive that may have overtaken others.
#[derive(Clone, Copy, Debug)]
struct Undecided<C> {
    channel: C,
    event: EventId,
    number: u64,
    /// Number of messages that waited.
    waiting: u32,
    overtakes: u32,
}

const FEW: usize = 1_024;

impl<C> Default for Posted<C> {
    fn default() -> Self {
        Self {
            processes: FxHashMap::default(),
            overtaking: Overtaking::default(),
            early: vec![],
        }
    }
}

impl<C> Default for PostedByProcess<C> {
    fn default() -> Self {
        Self {
            count: 0,
            requests: FxHashMap::default(),
            open: BTreeSet::new(),
            undecided: vec![],
            limit: 0,
            early: FxHashMap::default(),
        }
    }
}

impl<C: Copy + Eq + Hash> Posted<C> {
    pub(crate) fn post(&mut self, process: u32, request: u64, location: LocationId) {
        let of = self.processes.entry(process).or_default();
        if let Some((replaced, _)) = of.requests.insert(request, (of.count, location)) {
            of.open.remove(&replaced);
        }
        of.open.insert(of.count);
        of.count += 1;
    }

    pub(crate) fn cancel(&mut self, process: u32, request: u64) {
        if let Some(of) = self.processes.get_mut(&process)
            && let Some((number, _)) = of.requests.remove(&request)
        {
            of.open.remove(&number);
            if of.open.is_empty() {
                self.decide(process);
            }
        }
    }

    /// Takes the receive of a process, with its request if it was posted; `waiting` is the number of
    /// messages of the channel that wait.
    pub(crate) fn receive(
        &mut self,
        process: u32,
        (channel, waiting): (C, usize),
        event: EventId,
        request: Option<u64>,
    ) {
        if request.is_none() && !self.processes.contains_key(&process) {
            return;
        }
        let of = self.processes.entry(process).or_default();
        let post = request.and_then(|request| of.requests.remove(&request));
        if let (Some(request), None) = (request, post) {
            of.early.entry(request).or_insert(event);
        }
        let number = match post {
            Some((number, _)) => {
                of.open.remove(&number);
                number
            }
            None => {
                of.count += 1;
                of.count - 1
            }
        };
        if of.open.is_empty() && of.undecided.is_empty() {
            return;
        }
        of.undecided.push(Undecided {
            channel,
            event,
            number,
            waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
            overtakes: 0,
        });
        if of.open.is_empty() || of.undecided.len() >= of.limit.max(FEW) {
            self.decide(process);
        }
    }

    /// Decides on all receives that can be decided on, if it is time.
    fn decide(&mut self, process: u32) {
        let Some(of) = self.processes.get_mut(&process) else {
            return;
        };
        let first_open = of.open.first().copied().unwrap_or(u64::MAX);
        of.count_overtaken(first_open);
        for found in &of.undecided {
            if found.number >= first_open {
                continue;
            }
            if found.overtakes >= found.waiting {
                self.early.push((found.channel, found.event));
            }
            if found.overtakes > 0 {
                self.overtaking.insert(found.event, found.overtakes);
            }
        }
        of.undecided.retain(|found| found.number >= first_open);
        of.limit = 2 * of.undecided.len();
    }

    /// Decides on all receives after the last event. Returns the first completion that was posted
    /// after it in the stream, by another location.
    pub(crate) fn finish(&mut self) -> Option<EventId> {
        let all: Vec<u32> = self.processes.keys().copied().collect();
        let mut late = vec![];
        for process in all {
            if let Some(of) = self.processes.get_mut(&process) {
                late.extend(of.early.iter().filter_map(|(request, event)| {
                    let (_, location) = of.requests.get(request)?;
                    (*location != event.location).then_some(*event)
                }));
                of.open.clear();
            }
            self.decide(process);
        }
        late.into_iter().min()
    }
}

impl<C: Copy + Eq + Hash> PostedByProcess<C> {
    /// Adds, to every undecided receive, the number of those of its channel that were posted before
    /// and completed after it, among the ones with numbers below `end`.
    fn count_overtaken(&mut self, end: u64) {
        let is_counted = |found: &Undecided<C>| found.number < end;
        let mut by_channel: FxHashMap<C, Vec<usize>> = FxHashMap::default();
        for (index, found) in self.undecided.iter().enumerate() {
            by_channel.entry(found.channel).or_default().push(index);
        }
        for indices in by_channel.into_values().filter(|of| of.len() > 1) {
            let counted = indices.iter().map(|index| &self.undecided[*index]);
            let mut numbers: Vec<u64> = counted
                .filter(|found| is_counted(found))
                .map(|found| found.number)
                .collect();
            numbers.sort_unstable();
            let mut seen = Tally::new(numbers.len());
            for index in indices.into_iter().rev() {
                let found = &mut self.undecided[index];
                let rank = numbers.partition_point(|number| *number < found.number);
                found.overtakes += seen.below(rank);
                if is_counted(found) {
                    seen.add(rank);
                }
            }
        }
    }
}

/// Counts of ranks, with sums of the counts below a rank in logarithmic time: a Fenwick tree.
struct Tally(Vec<u32>);

impl Tally {
    fn new(ranks: usize) -> Self {
        Self(vec![0; ranks + 1])
    }

    fn add(&mut self, rank: usize) {
        let mut at = rank + 1;
        while let Some(count) = self.0.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn below(&self, rank: usize) -> u32 {
        let (mut at, mut sum) = (rank, 0);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}
