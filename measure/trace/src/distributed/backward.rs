//! Limits of sends and enters whose receivers are on other ranks.

use std::collections::BTreeMap;

use super::super::extremes::Extremes;
use super::super::limits::{self, exit_of, limit_enter, limit_enters};
use super::super::trace::{NONE, Role};
use super::super::{Corrected, LocationId};
use super::TracePart;
use super::exchange::{boxes, exchange};
use super::operations::{Teller, Told, go_through};
use super::words::{extremes_of, words_of};
use downbeat_sync::{Comm, CommError};

/// Replaces the stamps of sends and enters by their limits, on all ranks.
pub(super) async fn find_limits<C: Comm>(
    part: &TracePart,
    corrected: &mut Corrected<'_>,
    comm: &C,
) -> Result<(), CommError> {
    let trace = &part.trace;
    let Corrected {
        times,
        stamps,
        latencies,
        ..
    } = corrected;
    if comm.size() == 1 {
        limits::find_limits(trace, times, latencies, stamps);
        return Ok(());
    }
    for (number, instance) in (0..).zip(&trace.instances) {
        if !part.is_shared(number) {
            limit_enters(trace, times, latencies, stamps, instance);
        }
    }
    let mut out = boxes(comm);
    for (location, owner, mark) in foreign_sends(part) {
        out[owner as usize].push(stamps.word(location, mark) as u64);
    }
    let mut inbox = boxes(comm);
    exchange(comm, &part.neighbours, &mut out, &mut inbox).await?;
    let mut limits: Vec<_> = inbox.iter().map(|words| words.iter()).collect();
    for (location, receiver, mark) in sends_abroad(part) {
        if let Some(limit) = limits[receiver as usize].next() {
            stamps.set(location, mark, *limit as i64);
        }
    }
    go_through(part, &mut Exits { part, corrected }, comm).await
}

/// Returns the sends on other ranks of messages received here, by location and in their order:
/// location, rank, mark.
pub(super) fn foreign_sends(part: &TracePart) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
    let others = (0..)
        .zip(&part.owners)
        .filter(|(_, owner)| **owner != part.rank);
    others.flat_map(move |(location, owner)| {
        sends_of(part, location).map(move |(mark, _)| (location, *owner, mark))
    })
}

/// Returns the same messages on the rank that sends them, in the same order for each pair of ranks.
pub(super) fn sends_abroad(part: &TracePart) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
    let all = part
        .own()
        .flat_map(move |location| sends_of(part, location).map(move |send| (location, send)));
    let all = all.map(|(location, (mark, peer))| (location, part.owners[peer as usize], mark));
    all.filter(|(_, receiver, _)| *receiver != part.rank)
}

/// Returns the marks of sends, and their destinations.
fn sends_of(part: &TracePart, location: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
    let marks = (0..).zip(&part.trace.locations[location as usize].marks);
    marks
        .filter(|(_, mark)| mark.role() == Role::Send)
        .map(|(id, mark)| (id, mark.peer()))
}

/// Exit times of members of this rank; of a scan, every exit with the rank of its member.
struct Exits<'a, 'b> {
    part: &'a TracePart,
    corrected: &'a mut Corrected<'b>,
}

/// In reversed time, the first exit is the last.
impl Teller for Exits<'_, '_> {
    fn tell(&mut self, instance: u32, words: &mut Vec<u64>) -> Vec<u32> {
        let part = self.part;
        if part.is_ordered(instance) {
            words.extend(
                self.ranks(instance)
                    .into_iter()
                    .flat_map(|(rank, time)| [rank.into(), time as u64]),
            );
        } else if part.takers(instance).contains(&part.rank) {
            words.extend(words_of(&self.extremes(instance)));
        } else {
            return vec![];
        }
        part.givers(instance).to_vec()
    }

    fn hear(&mut self, instance: u32, told: &Told<'_>) {
        let part = self.part;
        let slots = part.trace.slots_of(part.instance(instance));
        let mut exits = Extremes::NONE;
        let mut later = BTreeMap::new();
        if part.is_ordered(instance) {
            later = self.ranks(instance);
            let others = told.iter().flat_map(|words| words.as_chunks().0);
            later.extend(others.map(|[rank, time]| (*rank as u32, *time as i64)));
        } else {
            exits = self.extremes(instance);
            for words in told.iter().filter_map(|words| words.first_chunk()) {
                exits.merge(&extremes_of(&part.trace, words));
            }
        }
        for (rank, slot) in slots.iter().enumerate().rev() {
            if slot.enter != NONE && part.is_own(slot.location) {
                let Corrected {
                    latencies, stamps, ..
                } = &mut *self.corrected;
                limit_enter(&part.trace, slot, &exits, latencies, stamps);
            }
            if let Some(time) = later.get(&(rank as u32)) {
                exits.add(-time, part.trace.site(LocationId(slot.location)));
            }
        }
    }
}

impl Exits<'_, '_> {
    /// Returns the exit times by the ranks of the members of a scan.
    fn ranks(&self, instance: u32) -> BTreeMap<u32, i64> {
        let (trace, times) = (&self.part.trace, &self.corrected.times);
        let slots = (0..).zip(trace.slots_of(self.part.instance(instance)));
        slots
            .filter_map(|(rank, slot)| Some((rank, exit_of(trace, times, slot)?)))
            .collect()
    }

    fn extremes(&self, instance: u32) -> Extremes {
        let (part, times) = (self.part, &self.corrected.times);
        let mut exits = Extremes::NONE;
        if part.takers(instance).contains(&part.rank) {
            for slot in part.trace.slots_of(part.instance(instance)) {
                if let Some(time) = exit_of(&part.trace, times, slot) {
                    exits.add(-time, part.trace.site(LocationId(slot.location)));
                }
            }
        }
        exits
    }
}
