//! Receives that are posted before they complete: messages of a channel belong to them in
//! the order of the posts.

use std::collections::BTreeSet;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::{EventId, LocationId};

/// For receives that did not complete in the order of their posts, the indices of their
/// messages in their channels.
pub(super) type Overtaking = FxHashMap<EventId, u32>;

/// Posted receives of all processes, during the first pass over a trace; channels have
/// any name.
#[derive(Clone, Debug)]
pub(super) struct Posted<C> {
    processes: FxHashMap<u32, PostedByProcess<C>>,
    overtaking: Overtaking,
}

#[derive(Clone, Debug)]
struct PostedByProcess<C> {
    /// Number of receives that were posted, blocking ones included.
    count: u64,
    /// By request: their numbers, and the locations that posted them.
    requests: FxHashMap<u64, (u64, LocationId)>,
    /// Numbers of receives that are not complete.
    open: BTreeSet<u64>,
    /// Complete receives that may have overtaken others.
    undecided: Vec<Undecided<C>>,
    /// Index of the first message of a channel that belongs to an undecided receive.
    next: FxHashMap<C, u32>,
    /// Number of undecided receives at which to look for those that can be decided.
    limit: usize,
    /// Completions without posts, by request.
    early: FxHashMap<u64, EventId>,
}

#[derive(Clone, Copy, Debug)]
struct Undecided<C> {
    /// Number of the post.
    number: u64,
    channel: C,
    event: EventId,
    /// Index of the message, if completions were in order.
    index: u32,
}

const FEW: usize = 1_024;

impl<C> Default for Posted<C> {
    fn default() -> Self {
        Self {
            processes: FxHashMap::default(),
            overtaking: Overtaking::default(),
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
            next: FxHashMap::default(),
            limit: 0,
            early: FxHashMap::default(),
        }
    }
}

impl<C: Copy + Eq + Hash> Posted<C> {
    pub(super) fn post(&mut self, process: u32, request: u64, location: LocationId) {
        let of = self.processes.entry(process).or_default();
        if let Some((replaced, _)) = of.requests.insert(request, (of.count, location)) {
            of.open.remove(&replaced);
        }
        of.open.insert(of.count);
        of.count += 1;
    }

    pub(super) fn cancel(&mut self, process: u32, request: u64) {
        if let Some(of) = self.processes.get_mut(&process)
            && let Some((number, _)) = of.requests.remove(&request)
        {
            of.open.remove(&number);
            if of.open.is_empty() {
                of.decide(&mut self.overtaking);
            }
        }
    }

    /// Takes the receive of a process, with its request if it was posted; `index` is the
    /// number of receives of its channel before it.
    pub(super) fn receive(
        &mut self,
        process: u32,
        (channel, index): (C, u32),
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
        of.next.entry(channel).or_insert(index);
        of.undecided.push(Undecided {
            number,
            channel,
            event,
            index,
        });
        if of.open.is_empty() || of.undecided.len() >= of.limit.max(FEW) {
            of.decide(&mut self.overtaking);
        }
    }

    /// Decides on all receives after the last event. Returns them, and the first
    /// completion that was posted after it in the stream, by another location.
    pub(super) fn finish(mut self) -> (Overtaking, Option<EventId>) {
        let mut late = vec![];
        for of in self.processes.values_mut() {
            late.extend(of.early.iter().filter_map(|(request, event)| {
                let (_, location) = of.requests.get(request)?;
                (*location != event.location).then_some(*event)
            }));
            of.open.clear();
            of.decide(&mut self.overtaking);
        }
        (self.overtaking, late.into_iter().min())
    }
}

impl<C: Copy + Eq + Hash> PostedByProcess<C> {
    /// Decides on all receives that were posted before those that are not complete.
    fn decide(&mut self, overtaking: &mut Overtaking) {
        let first_open = self.open.first().copied().unwrap_or(u64::MAX);
        self.undecided.sort_unstable_by_key(|found| found.number);
        let is_decided = |found: &Undecided<C>| found.number < first_open;
        let decided = self.undecided.partition_point(is_decided);
        for found in self.undecided.drain(..decided) {
            // It was inserted with the receive.
            let next = self.next.entry(found.channel).or_insert(found.index);
            if *next != found.index {
                overtaking.insert(found.event, *next);
            }
            *next += 1;
        }
        if self.undecided.is_empty() {
            self.next.clear();
        }
        self.limit = 2 * self.undecided.len();
    }
}
