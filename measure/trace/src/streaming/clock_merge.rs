//! Merges the events of the locations that share a clock, in the order of a trace in memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::{LocationId, Pattern};
use super::census::Which;
use super::{Census, Link, SurveyedEvent};

/// Events of a clock that have not come yet.
#[derive(Debug)]
pub(super) struct ClockMerge {
    locations: Vec<u32>,
    /// Next event of each location that is not in the queue of ties.
    heads: Vec<Option<SurveyedEvent>>,
    /// Next events, without ties: time, position, and index of the location.
    queue: BinaryHeap<Reverse<(Timestamp<Global>, u64, u32)>>,
    /// Location whose next event is before all in the queue, and is not there.
    first: Option<u32>,
    ties: Ties,
}

/// Events of several locations at one time, by location.
#[derive(Debug, Default)]
struct Ties {
    parts: Vec<VecDeque<SurveyedEvent>>,
    count: usize,
    /// Locations that still send a message.
    sends: FxHashMap<u64, u32>,
    /// Ranks that still enter an operation, and their locations.
    enters: FxHashMap<Which, Vec<(u32, u32)>>,
}

impl ClockMerge {
    /// Reads the first event of each location; `read` returns the next event of one.
    pub(super) fn new<E>(
        locations: Vec<u32>,
        read: &mut impl FnMut(LocationId) -> Result<Option<SurveyedEvent>, E>,
    ) -> Result<Self, E> {
        let heads = locations.iter().map(|location| read(LocationId(*location)));
        let heads = heads.collect::<Result<Vec<_>, E>>()?;
        let queued = (0..).zip(&heads).filter_map(|(part, head)| {
            let head = head.as_ref()?;
            Some(Reverse((head.time, head.position, part)))
        });
        Ok(Self {
            queue: queued.collect(),
            heads,
            locations,
            first: None,
            ties: Ties::default(),
        })
    }

    /// Reads the next event of a location, after the last one was handed out.
    fn load<E>(
        &mut self,
        part: usize,
        read: &mut impl FnMut(LocationId) -> Result<Option<SurveyedEvent>, E>,
    ) -> Result<(), E> {
        let head = read(LocationId(self.locations[part]))?;
        if let Some(head) = head {
            let next = self.queue.peek();
            if next.is_none_or(|Reverse((next, ..))| head.time < *next) && self.first.is_none() {
                self.first = Some(part as u32);
            } else {
                self.queue
                    .push(Reverse((head.time, head.position, part as u32)));
            }
        }
        self.heads[part] = head;
        Ok(())
    }

    /// Returns the next event of the clock.
    #[inline]
    pub(super) fn next<E>(
        &mut self,
        census: &Census,
        read: &mut impl FnMut(LocationId) -> Result<Option<SurveyedEvent>, E>,
    ) -> Result<Option<SurveyedEvent>, E> {
        if let [location] = self.locations[..] {
            return match self.heads[0].take() {
                Some(head) => Ok(Some(head)),
                None => read(LocationId(location)),
            };
        }
        if self.ties.count > 0 {
            return Ok(self.ties.next(census));
        }
        if let Some(part) = self.first.take() {
            let event = self.heads[part as usize].take();
            self.load(part as usize, read)?;
            return Ok(event);
        }
        let Some(Reverse((time, _, part))) = self.queue.pop() else {
            return Ok(None);
        };
        let is_tie = |next: &Reverse<(Timestamp<Global>, u64, u32)>| next.0.0 == time;
        if !self.queue.peek().is_some_and(is_tie) {
            let event = self.heads[part as usize].take();
            self.load(part as usize, read)?;
            return Ok(event);
        }
        self.ties
            .parts
            .resize_with(self.locations.len(), VecDeque::new);
        let mut next = Some(part);
        while let Some(part) = next {
            while let Some(event) = self.heads[part as usize].take_if(|head| head.time == time) {
                self.ties.add(part, event);
                self.heads[part as usize] = read(LocationId(self.locations[part as usize]))?;
            }
            if let Some(head) = self.heads[part as usize] {
                self.queue.push(Reverse((head.time, head.position, part)));
            }
            let other = self.queue.peek().is_some_and(is_tie);
            next = if other { self.queue.pop() } else { None }.map(|Reverse((.., part))| part);
        }
        Ok(self.ties.next(census))
    }
}

impl Ties {
    fn add(&mut self, part: u32, event: SurveyedEvent) {
        match event.link {
            Link::Send { message } => drop(self.sends.insert(message, part)),
            Link::Enter { of } => {
                let entering = self.enters.entry(of.which).or_default();
                entering.push((of.rank, part));
            }
            _ => {}
        }
        self.parts[part as usize].push_back(event);
        self.count += 1;
    }

    /// Returns the next event: the first one that depends on no other one that has not come. Events
    /// that depend on each other in a cycle stay in their order.
    fn next(&mut self, census: &Census) -> Option<SurveyedEvent> {
        let fronts = (0..).zip(&self.parts);
        let fronts = fronts.filter_map(|(part, events)| Some((part, events.front()?)));
        let key = |(part, event): (u32, &SurveyedEvent)| (event.position, part);
        let free = fronts
            .clone()
            .filter(|(part, event)| !self.is_blocked(*part, event, census));
        let (_, part) = free.map(key).min().or_else(|| fronts.map(key).min())?;
        let event = self.parts[part as usize].pop_front()?;
        self.count -= 1;
        match event.link {
            Link::Send { message } => drop(self.sends.remove(&message)),
            Link::Enter { of } => {
                if let Some(entering) = self.enters.get_mut(&of.which) {
                    entering.retain(|(rank, _)| *rank != of.rank);
                    if entering.is_empty() {
                        self.enters.remove(&of.which);
                    }
                }
            }
            _ => {}
        }
        Some(event)
    }

    /// Returns true if the event depends on one of another location that has not come.
    fn is_blocked(&self, part: u32, event: &SurveyedEvent, census: &Census) -> bool {
        match event.link {
            Link::Receive { message } => {
                let sender = self.sends.get(&message);
                sender.is_some_and(|sender| *sender != part)
            }
            Link::Exit {
                of,
                kind,
                root,
                receives: true,
                ..
            } => {
                let is_awaited = |(rank, other): &(u32, u32)| {
                    let is_before = kind.pattern() != Pattern::ToLater || *rank < of.rank;
                    is_before && *other != part && census.is_awaited(of.which, kind, root, *rank)
                };
                let entering = self.enters.get(&of.which);
                entering.is_some_and(|entering| entering.iter().any(is_awaited))
            }
            _ => false,
        }
    }
}
