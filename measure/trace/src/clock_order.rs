//! Merges the events of locations that share a clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

use downbeat_clock_core::{Global, Timestamp};

use super::timeline::{Run, Timeline, Timelines};
use super::trace::{Mark, Role};
use super::{EventId, LocationId, Trace};

fn timelines_of(trace: &Trace) -> Timelines {
    let mut all = vec![Timeline::default(); trace.locations.len()];
    let mut parts = Vec::with_capacity(trace.locations.len());
    for (location, of) in (0..).zip(&trace.locations) {
        let timeline = &mut all[of.clock as usize];
        parts.push(timeline.locations.len() as u32);
        timeline.locations.push(location);
    }
    for timeline in &mut all {
        timeline.runs = match timeline.locations[..] {
            [] => vec![],
            [location] => {
                let end = trace.locations[location as usize].times.len() as u32;
                vec![Run { part: 0, end }; usize::from(end > 0)]
            }
            _ => Merge::new(trace, &timeline.locations, &parts).runs(),
        };
    }
    Timelines { all, parts }
}

/// Merge of the events of locations that share a clock.
struct Merge<'a> {
    trace: &'a Trace,
    parts: &'a [u32],
    locations: &'a [u32],
    heads: Vec<Head<'a>>,
}

/// Next event of a location, and how it was found.
struct Head<'a> {
    times: &'a [Timestamp<Global>],
    marks: &'a [Mark],
    /// Positions of events in the whole trace, each with the first event of a run of consecutive ones.
    positions: &'a [(u32, u64)],
    event: u32,
    mark: usize,
    position: usize,
}

impl Head<'_> {
    fn time(&self) -> Option<Timestamp<Global>> {
        self.times.get(self.event as usize).copied()
    }

    /// Returns the position of the event in the whole trace.
    fn position(&mut self) -> u64 {
        while self
            .positions
            .get(self.position + 1)
            .is_some_and(|(event, _)| *event <= self.event)
        {
            self.position += 1;
        }
        self.positions
            .get(self.position)
            .filter(|(event, _)| *event <= self.event)
            .map_or(0, |(event, position)| {
                position + u64::from(self.event - event)
            })
    }

    /// Returns the mark of the event, if it has one.
    fn mark(&mut self) -> Option<Mark> {
        let behind = &self.marks[self.mark..];
        let passed = behind.iter().take_while(|mark| mark.event < self.event);
        self.mark += passed.count();
        let mark = self.marks.get(self.mark).copied();
        mark.filter(|mark| mark.event == self.event)
    }
}

impl<'a> Merge<'a> {
    fn new(trace: &'a Trace, locations: &'a [u32], parts: &'a [u32]) -> Self {
        let head = |location: &u32| {
            let of = &trace.locations[*location as usize];
            Head {
                times: &of.times,
                marks: &of.marks,
                positions: &of.positions,
                event: 0,
                mark: 0,
                position: 0,
            }
        };
        Self {
            trace,
            parts,
            locations,
            heads: locations.iter().map(head).collect(),
        }
    }

    fn runs(mut self) -> Vec<Run> {
        let mut queue = BinaryHeap::new();
        for part in 0..self.heads.len() {
            queue.extend(self.key(part));
        }
        let mut runs: Vec<Run> = vec![];
        while let Some(first) = queue.pop() {
            let part = self.first_of(first, &mut queue);
            let next = queue.peek().map(|Reverse((time, ..))| *time);
            let head = &mut self.heads[part];
            head.event += 1;
            // The rest of the location up to the next event of another one.
            let later = &head.times[head.event as usize..];
            let is_before = |time: &&Timestamp<Global>| next.is_none_or(|next| **time < next);
            head.event += later.iter().take_while(is_before).count() as u32;
            let (this, end) = (part as u32, head.event);
            queue.extend(self.key(part));
            match runs.last_mut() {
                Some(run) if run.part == this => run.end = end,
                _ => runs.push(Run { part: this, end }),
            }
        }
        runs
    }

    /// Returns the location whose event comes next: of those at one time, the first one that depends
    /// on no other one that has not come. All but its key are in the queue then.
    fn first_of(&mut self, first: Key, queue: &mut BinaryHeap<Key>) -> usize {
        let Reverse((time, _, part)) = first;
        let is_next = |queue: &BinaryHeap<Key>| {
            let next = queue.peek();
            next.is_some_and(|Reverse((next, ..))| *next == time)
        };
        if !is_next(queue) || !self.is_blocked(part, time) {
            return part;
        }
        let mut passed = vec![first];
        let mut found = None;
        while found.is_none() && is_next(queue) {
            let Some(next) = queue.pop() else { break };
            let Reverse((.., other)) = next;
            match self.is_blocked(other, time) {
                true => passed.push(next),
                false => found = Some(other),
            }
        }
        // Events that depend on each other in a cycle stay in their order.
        let is_left = |Reverse((.., other)): &Key| *other != found.unwrap_or(part);
        queue.extend(passed.into_iter().filter(is_left));
        found.unwrap_or(part)
    }

    /// Returns the key of the next event of a location in the queue.
    fn key(&mut self, part: usize) -> Option<Key> {
        let head = &mut self.heads[part];
        let time = head.time()?;
        Some(Reverse((time, head.position(), part)))
    }

    /// Returns true if the next event of a location depends on an event of the clock at this time
    /// that has not come.
    fn is_blocked(&mut self, part: usize, time: Timestamp<Global>) -> bool {
        let Some(mark) = self.heads[part].mark() else {
            return false;
        };
        let (trace, parts) = (self.trace, self.parts);
        let clock = trace.locations[self.locations[part] as usize].clock;
        let is_awaited = |location: u32, mark: u32| {
            let of = &trace.locations[location as usize];
            let Some(mark) = of.marks.get(mark as usize).filter(|_| of.clock == clock) else {
                return false;
            };
            let head = &self.heads[parts[location as usize] as usize];
            location != self.locations[part]
                && mark.event >= head.event
                && of.times[mark.event as usize] == time
        };
        match mark.role() {
            Role::Receive => is_awaited(mark.peer(), mark.partner),
            Role::Exit => {
                let instance = &trace.instances[mark.partner as usize];
                let mut awaited = trace.awaited_by(instance, mark.peer()).iter();
                awaited.any(|slot| is_awaited(slot.location, slot.enter))
            }
            _ => false,
        }
    }
}

/// Next event of a location in a queue, the earliest on top: its time, its position in the whole
/// trace, and the index of the location among those of the clock.
type Key = Reverse<(Timestamp<Global>, u64, usize)>;

impl Trace {
    /// Returns the order of the events of every clock.
    pub(super) fn timelines(&self) -> &Timelines {
        self.timelines.get_or_init(|| timelines_of(self))
    }

    /// Replaces all times by what the function of their clock, which is given by its
    /// first location, returns for them in the order of the clock's events. It must not
    /// change this order.
    pub(super) fn map_clocks<F: FnMut(EventId, Timestamp<Global>) -> Timestamp<Global>>(
        &mut self,
        map_of: impl Fn(LocationId) -> F,
    ) {
        self.timelines();
        let timelines = self.timelines.take().unwrap_or_default();
        for clock in self.ids() {
            let (timeline, mut map) = (timelines.of(clock.0), map_of(clock));
            let mut next = vec![0; timeline.locations.len()];
            for Run { part, end } in &timeline.runs {
                let location = LocationId(timeline.locations[*part as usize]);
                let start = std::mem::replace(&mut next[*part as usize], *end);
                let times = &mut self.locations[location.index()].times;
                for (event, time) in (start..).zip(&mut times[start as usize..*end as usize]) {
                    *time = map(EventId { location, event }, *time);
                }
            }
        }
        self.timelines = OnceLock::from(timelines);
    }

    /// Returns true if two locations share a clock.
    #[inline]
    pub(super) fn share_clock(&self, one: LocationId, other: LocationId) -> bool {
        self.locations[one.index()].clock == self.locations[other.index()].clock
    }
}
