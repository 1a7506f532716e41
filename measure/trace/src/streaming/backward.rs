//! Backward amortization of a stream, from its end to its beginning.

use std::collections::VecDeque;

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::backward::{Hull, Stretch};
use super::super::teams::sends;
use super::super::{CollectiveKind, Gradient, Latencies, LocationId, Pattern};
use super::census::Which;
use super::gate::StreamedGate;
use super::{Census, Link, Record, StreamedOperation, UnderWay};

/// Does backward amortization. It takes records from the last to the first, and holds those that a
/// jump may still move.
#[derive(Debug)]
pub struct StreamedBackward<'a> {
    census: &'a Census,
    latencies: Latencies,
    /// Without a gradient, no event is moved.
    gradient: Option<Gradient>,
    /// Receive times and locations of messages whose sends have not come yet.
    received: UnderWay<(i64, u32)>,
    left: FxHashMap<Which, Left>,
    /// For all clocks, by their first locations, the held events from the last to the first; the
    /// first of them is a jump.
    held: Vec<VecDeque<HeldEvents>>,
    hull: Hull,
}

/// Collective operation of which members have left.
#[derive(Debug)]
struct Left {
    kind: CollectiveKind,
    root: u32,
    /// Exits by reversed ranks, in reversed time.
    gate: StreamedGate,
    /// Members that contributed no data.
    silent: Vec<bool>,
}

/// Event that may still be moved.
#[derive(Debug)]
struct HeldEvents {
    location: LocationId,
    time: Timestamp<Global>,
    jump: i64,
    /// Latest time to which it may be moved.
    limit: Option<i64>,
}

impl<'a> StreamedBackward<'a> {
    /// Returns the state after the last event; without a gradient, no event is moved.
    pub fn new(census: &'a Census, latencies: Latencies, gradient: Option<Gradient>) -> Self {
        let (received, left) = (UnderWay::none(census), FxHashMap::default());
        let held = census.ids().map(|_| VecDeque::new()).collect();
        Self {
            census,
            latencies,
            gradient,
            received,
            left,
            held,
            hull: Hull::default(),
        }
    }

    /// Takes the record before those taken so far. `put` receives final times, for each location from
    /// the last event to the first. Returns true if others wait for the event.
    ///
    /// # Errors
    /// Those of `put`.
    pub fn take<E>(
        &mut self,
        record: &Record,
        mut put: impl FnMut(LocationId, Timestamp<Global>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let location = record.event.id.location;
        let limit = self.limit(record);
        let clock = self.census.clocks().get(location.index());
        let held = clock.and_then(|clock| self.held.get_mut(*clock as usize));
        match (self.gradient, held) {
            (Some(gradient), Some(held)) if !held.is_empty() || record.jump > 0 => {
                held.push_back(HeldEvents {
                    location,
                    time: record.time(),
                    jump: record.jump,
                    limit,
                });
                settle(held, &mut self.hull, gradient, false, &mut put)?;
            }
            _ => put(location, record.time())?,
        }
        Ok(limit.is_some())
    }

    /// Ends the pass after the last record.
    ///
    /// # Errors
    /// Those of `put`.
    pub fn finish<E>(
        mut self,
        mut put: impl FnMut(LocationId, Timestamp<Global>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(gradient) = self.gradient else {
            return Ok(());
        };
        self.held
            .iter_mut()
            .try_for_each(|held| settle(held, &mut self.hull, gradient, true, &mut put))
    }

    /// Returns the latest time of an event; `None` if no other event depends on it.
    fn limit(&mut self, record: &Record) -> Option<i64> {
        let (time, location) = (record.time, record.event.id.location.0);
        match record.event.link {
            Link::Nothing | Link::EarlyReceive { .. } | Link::LateSend { .. } => None,
            Link::Send { message } => {
                let (received, to) = self.received.remove(message)?;
                let [from, to] = [location, to].map(|location| self.census.site(location));
                if from.clock == to.clock {
                    return None;
                }
                let latency = self.latencies.between_sites(from, to);
                Some((Timestamp::<Global>::from_nanos(received) - latency).as_nanos())
            }
            Link::Receive { message } => {
                self.received.insert(message, (time, location));
                None
            }
            Link::Enter { of } => {
                let limit = self.limit_of_enter(of, location);
                self.forget(of);
                limit
            }
            Link::Exit {
                of,
                kind,
                root,
                sends,
                receives,
            } => {
                let left = self.left.entry(of.which).or_insert_with(|| Left {
                    kind,
                    root,
                    gate: StreamedGate::new(of.members),
                    silent: vec![false; of.members as usize],
                });
                left.silent[of.rank as usize] = !sends;
                if receives {
                    left.gate.add_late(mirrored(of), -time, location);
                }
                self.forget(of);
                None
            }
        }
    }

    fn limit_of_enter(&mut self, of: StreamedOperation, location: u32) -> Option<i64> {
        let Left {
            kind,
            root,
            gate,
            silent,
        } = self.left.get_mut(&of.which)?;
        if silent[of.rank as usize] || !sends(*kind, *root, of.rank) {
            return None;
        }
        // In reversed time, the first exit is the last, and messages go the other way.
        let before = (kind.pattern() == Pattern::ToLater).then(|| mirrored(of));
        let to = (self.census.site(location), &self.latencies);
        let reach = gate.reach_of_those_there(before, to, |location| self.census.site(location));
        Some(reach.saturating_neg())
    }

    /// Drops an operation at its first event.
    fn forget(&mut self, of: StreamedOperation) {
        if of.is_first {
            self.left.remove(&of.which);
        }
    }
}

/// Returns the rank, counted from the last.
const fn mirrored(of: StreamedOperation) -> u32 {
    of.members - 1 - of.rank
}

/// Amortizes the jumps whose intervals are complete; with `is_whole`, all of them. Hands out the
/// events that no remaining jump can move.
fn settle<E>(
    held: &mut VecDeque<HeldEvents>,
    hull: &mut Hull,
    gradient: Gradient,
    is_whole: bool,
    put: &mut impl FnMut(LocationId, Timestamp<Global>) -> Result<(), E>,
) -> Result<(), E> {
    while let (Some(first), Some(last)) = (held.front(), held.back()) {
        let stretch = Stretch::new(first.time, first.jump, gradient);
        if !is_whole && (held.len() == 1 || stretch.reaches(last.time)) {
            break;
        }
        if held
            .get(1)
            .is_some_and(|before| stretch.reaches(before.time))
        {
            hull.bend(
                stretch,
                held.iter().skip(1).map(|event| (event.time, event.limit)),
            );
            hull.raise(held.iter_mut().skip(1).map(|event| &mut event.time));
        }
        let is_before = held.iter().skip(1).position(|event| event.jump > 0);
        let settled = is_before.map_or(held.len(), |position| position + 1);
        held.drain(..settled)
            .try_for_each(|event| put(event.location, event.time))?;
    }
    Ok(())
}
