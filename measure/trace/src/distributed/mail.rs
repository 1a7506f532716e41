//! Messages that ranks exchange during a replay, whenever all of their clocks wait.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::super::extremes::Extremes;
use super::super::forward::Replay;
use super::super::trace::{NONE, Role};
use super::super::{EventId, LocationId};
use super::TracePart;
use super::exchange::{Boxes, boxes, exchange};
use super::tree::TeamTree;
use super::words::{event_of, extremes_of, word_of, words_of};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// State of the pass on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// Ranks exchanged messages, and some may continue.
    Exchanged,
    /// All clocks are complete.
    Complete,
    /// Clocks wait for each other.
    Stuck,
}

/// Schedule of the checks for the end of the pass: frequent at first, then rare, because all ranks
/// have to wait for a check.
#[derive(Debug, Default)]
struct Schedule {
    steps: u64,
}

impl Schedule {
    const SELDOM: u64 = 64;

    fn is_to_look(&mut self) -> bool {
        self.steps += 1;
        self.steps.is_power_of_two() || self.steps.is_multiple_of(Self::SELDOM)
    }
}

/// Messages to and from other ranks.
pub(super) struct Mail<'s, C> {
    part: &'s TracePart,
    comm: &'s C,
    schedule: Schedule,
    out: Boxes,
    inbox: Boxes,
    /// Number of integers sent since the last check.
    sent: u64,
    /// For every location, the index of the first unprocessed mark: not yet sent if the location is
    /// on this rank, not yet received if it is on another.
    next: Vec<u32>,
    /// For every collective operation with other ranks, the number of missing enters of this rank,
    /// and of missing summaries from below in the tree.
    missing: Vec<u32>,
    /// Summaries from below in the tree of operations that are not complete there.
    below: FxHashMap<u32, Extremes>,
}

/// Position of the tag in the highest bits of an integer, which determines the ones that follow.
const TAG: u32 = 62;

/// The integer is the event of a send, and the next one its time.
const SEND: u64 = 0;

/// The integer is the name of a scan, and the next ones are a member's rank and the time of its
/// enter.
const MEMBER: u64 = 1;

/// The integer is the name of a collective operation, and the next five are the extremes of a
/// rank's enters.
const MEMBERS: u64 = 2;

impl<'s, C: Comm> Mail<'s, C> {
    pub(super) fn new(part: &'s TracePart, replay: &mut Replay<'_>, comm: &'s C) -> Self {
        let trace = &part.trace;
        let missing = (0..).zip(&trace.instances).map(|(number, instance)| {
            let slots = trace.slots_of(instance).iter();
            let enters = slots.filter(|slot| slot.enter != NONE).count();
            let children = part.tree(number).map_or(0, |tree| tree.children.len());
            (enters + children) as u32
        });
        let next = vec![0; trace.locations.len()];
        let mut mail = Self {
            part,
            comm,
            schedule: Schedule::default(),
            out: boxes(comm),
            inbox: boxes(comm),
            sent: 0,
            next,
            missing: missing.collect(),
            below: FxHashMap::default(),
        };
        for instance in part.shared().filter(|instance| !part.is_ordered(*instance)) {
            if mail.missing[instance as usize] == 0 {
                mail.send_members(replay, instance, &mut |_| {});
            }
        }
        mail
    }

    /// Exchanges messages with the other ranks when all clocks here wait. Clocks that can continue
    /// are added to `ready`.
    pub(super) async fn exchange(
        &mut self,
        replay: &mut Replay<'_>,
        ready: &mut VecDeque<u32>,
    ) -> Result<End, CommError> {
        self.collect(replay, ready);
        if self.schedule.is_to_look() {
            let unfinished = replay.unfinished().next().is_some();
            let mine = [u64::from(unfinished), std::mem::take(&mut self.sent)];
            let all = all_reduce(self.comm, mine, |a, b| [a[0] | b[0], a[1] + b[1]]);
            match all.await? {
                [0, _] => return Ok(End::Complete),
                [_, 0] => return Ok(End::Stuck),
                _ => {}
            }
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        exchange(self.comm, &self.part.neighbours, &mut self.out, &mut inbox).await?;
        for (from, words) in (0..).zip(&inbox) {
            self.deliver(replay, from, words, ready);
        }
        self.inbox = inbox;
        Ok(End::Exchanged)
    }

    fn send(&mut self, to: u32, words: &[u64]) {
        self.sent += words.len() as u64;
        self.out[to as usize].extend_from_slice(words);
    }

    /// Puts everything new since the last call into the boxes of the ranks that may wait for it.
    fn collect(&mut self, replay: &mut Replay<'_>, ready: &mut VecDeque<u32>) {
        let part = self.part;
        for location in part.own() {
            let at = location as usize;
            let reached = replay.part_of(location).mark as u32;
            for id in self.next[at]..reached {
                let mark = part.trace.locations[at].marks[id as usize];
                match mark.role() {
                    Role::Send if !part.is_own(mark.peer()) => {
                        let event = EventId {
                            location: LocationId(location),
                            event: mark.event,
                        };
                        let time = replay.stamps.word(location, id);
                        let to = part.owners[mark.peer() as usize];
                        self.send(to, &[SEND << TAG | word_of(event), time as u64]);
                    }
                    Role::Enter if part.is_shared(mark.partner) => {
                        let time = replay.stamps.word(location, id);
                        let wake = &mut |location| ready.push_back(part.clock_of(location));
                        self.entered(replay, (mark.partner, mark.peer()), time, wake);
                    }
                    _ => {}
                }
            }
            self.next[at] = reached;
        }
    }

    fn entered(
        &mut self,
        replay: &mut Replay<'_>,
        (instance, rank): (u32, u32),
        time: i64,
        wake: &mut impl FnMut(u32),
    ) {
        let part = self.part;
        if part.is_ordered(instance) {
            let name = MEMBER << TAG | part.names[instance as usize];
            for to in part
                .team(instance)
                .owners
                .iter()
                .filter(|to| **to != part.rank)
            {
                self.send(*to, &[name, rank.into(), time as u64]);
            }
            return;
        }
        self.came(replay, instance, wake);
    }

    /// Counts an enter of this rank, or a summary from below.
    fn came(&mut self, replay: &mut Replay<'_>, instance: u32, wake: &mut impl FnMut(u32)) {
        self.missing[instance as usize] -= 1;
        if self.missing[instance as usize] == 0 {
            self.send_members(replay, instance, wake);
        }
    }

    /// Sends the enters of this rank, after all of its members have entered, and those below in the
    /// tree.
    fn send_members(&mut self, replay: &mut Replay<'_>, instance: u32, wake: &mut impl FnMut(u32)) {
        let part = self.part;
        let mut seen = self.below.remove(&instance).unwrap_or(Extremes::NONE);
        for slot in part.trace.slots_of(part.instance(instance)) {
            if slot.enter != NONE {
                let time = replay.stamps.word(slot.location, slot.enter);
                seen.add(time, part.trace.site(LocationId(slot.location)));
            }
        }
        match part.tree(instance) {
            Some(TeamTree {
                parent: Some(parent),
                ..
            }) => {
                self.send_summary(instance, std::slice::from_ref(parent), &seen);
            }
            Some(_) => self.complete(replay, instance, &seen, wake),
            None if part.givers(instance).contains(&part.rank) => {
                self.send_summary(instance, part.takers(instance), &seen);
            }
            None => {}
        }
    }

    /// Takes the summary of all ranks, and passes it down the tree.
    fn complete(
        &mut self,
        replay: &mut Replay<'_>,
        instance: u32,
        seen: &Extremes,
        wake: impl FnMut(u32),
    ) {
        if let Some(tree) = self.part.tree(instance) {
            self.send_summary(instance, &tree.children, seen);
        }
        replay.gates.merge(instance, seen, replay.stamps, wake);
    }

    fn send_summary(&mut self, instance: u32, to: &[u32], seen: &Extremes) {
        let name = MEMBERS << TAG | self.part.names[instance as usize];
        for to in to.iter().filter(|to| **to != self.part.rank) {
            self.send(*to, &[name]);
            self.send(*to, &words_of(seen));
        }
    }

    /// Processes a box from another rank. Clocks that waited for its contents are added to
    /// `ready`.
    fn deliver(
        &mut self,
        replay: &mut Replay<'_>,
        from: u32,
        mut words: &[u64],
        ready: &mut VecDeque<u32>,
    ) {
        let part = self.part;
        let named = |word: u64| part.named(word & !(3 << TAG));
        while let Some((first, rest)) = words.split_first() {
            let mut wake = |location: u32| ready.push_back(part.clock_of(location));
            let length = match (first >> TAG, rest) {
                (SEND, [time, ..]) => {
                    let EventId {
                        location: LocationId(location),
                        event,
                    } = event_of(*first);
                    let marks = &part.trace.locations[location as usize].marks;
                    let next = &mut self.next[location as usize];
                    // Sends arrive in the order of their location.
                    let ahead = marks[*next as usize..].iter();
                    *next += ahead
                        .take_while(|mark| mark.event != event || mark.role() != Role::Send)
                        .count() as u32;
                    if let Some(mark) = marks.get(*next as usize)
                        && replay.stamps.publish(location, *next, *time as i64)
                    {
                        wake(mark.peer());
                    }
                    1
                }
                (MEMBER, [rank, time, ..]) => {
                    if let Some(instance) = named(*first) {
                        let slot = part.trace.slots_of(part.instance(instance))[*rank as usize];
                        let (location, time) = (slot.location, *time as i64);
                        replay.stamps.set(location, slot.enter, time);
                        let Replay { gates, stamps, .. } = &mut *replay;
                        gates.enter(instance, location, time, stamps, wake);
                    }
                    2
                }
                (MEMBERS, [..]) => {
                    if let Some((instance, (seen, _))) = named(*first).zip(rest.split_first_chunk())
                    {
                        let seen = extremes_of(&part.trace, seen);
                        let tree = part.tree(instance);
                        if tree.is_some_and(|tree| tree.children.contains(&from)) {
                            let below = self.below.entry(instance).or_insert(Extremes::NONE);
                            below.merge(&seen);
                            self.came(replay, instance, &mut wake);
                        } else {
                            self.complete(replay, instance, &seen, wake);
                        }
                    }
                    5
                }
                _ => rest.len(),
            };
            words = rest.get(length..).unwrap_or_default();
        }
    }
}
