//! Collective operations while a trace is replayed: who may leave, and when at the earliest.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::extremes::{Extremes, NEVER};
use super::primitives::{AtomicU32, Mutex, MutexGuard};
use super::stamps::Stamps;
use super::trace::{Instance, NONE, Slot};
use super::{Latencies, LocationId, Pattern, Trace};

/// The gate that the members of a collective operation leave by.
#[derive(Debug)]
pub(super) struct Gate {
    /// What came in, of what counts for the next one to leave.
    seen: Extremes,
    /// How many enters are missing; not counted where members wait only for those before them.
    missing: u32,
    /// Members of lower ranks may leave.
    open: u32,
    /// Of these, members of lower ranks are woken.
    woken: u32,
}

/// So many ranks may leave.
const ALL: u32 = u32::MAX;

impl Gate {
    /// One thing that was waited for is there.
    fn came(&mut self) {
        self.missing -= 1;
        if self.missing == 0 {
            self.open = ALL;
        }
    }
}

/// The gates of all collective operations of a trace.
#[derive(Debug)]
pub(super) struct Gates<'a> {
    trace: &'a Trace,
    latencies: Latencies,
    gates: Vec<Mutex<Gate>>,
    /// Of every location, the operation that it waits to leave. Who has the gate of one may write its number here, or
    /// take it away.
    waits: Vec<AtomicU32>,
}

impl<'a> Gates<'a> {
    /// `beyond` says how many [`merge`](Self::merge)s there will be of each.
    pub(super) fn new(trace: &'a Trace, latencies: Latencies, beyond: impl Fn(u32) -> u32) -> Self {
        let gates = (0..).zip(&trace.instances).map(|(number, instance)| {
            let enters = trace
                .slots_of(instance)
                .iter()
                .filter(|slot| slot.enter != NONE)
                .count() as u32;
            let missing = enters + beyond(number);
            let mut gate = Gate {
                seen: Extremes::NONE,
                missing,
                open: 0,
                woken: 0,
            };
            if missing == 0 && instance.kind.pattern() != Pattern::ToLater {
                gate.open = ALL;
            }
            Mutex::new(gate)
        });
        let waits = trace
            .locations
            .iter()
            .map(|_| AtomicU32::new(NONE))
            .collect();
        Self {
            trace,
            latencies,
            gates: gates.collect(),
            waits,
        }
    }

    /// A member enters at `time`, which is in the stamps already. Locations that waited for it alone are handed to `wake`.
    pub(super) fn enter(
        &self,
        instance: u32,
        location: u32,
        time: i64,
        stamps: &Stamps,
        wake: impl FnMut(u32),
    ) {
        let found = &self.trace.instances[instance as usize];
        let mut gate = self.lock(instance);
        if found.kind.pattern() == Pattern::ToLater {
            self.advance(found, &mut gate, stamps);
        } else {
            gate.seen.add(time, self.trace.site(LocationId(location)));
            gate.came();
        }
        self.wake(instance, &mut gate, wake);
    }

    /// Members elsewhere have entered, of whose times these are the extremes.
    pub(super) fn merge(&self, instance: u32, seen: &Extremes, wake: impl FnMut(u32)) {
        let mut gate = self.lock(instance);
        gate.seen.merge(seen);
        gate.came();
        self.wake(instance, &mut gate, wake);
    }

    /// Hands over who can leave now, and waited for that.
    fn wake(&self, instance: u32, gate: &mut Gate, mut wake: impl FnMut(u32)) {
        let slots = self
            .trace
            .slots_of(&self.trace.instances[instance as usize]);
        let now = slots
            .get(gate.woken as usize..slots.len().min(gate.open as usize))
            .unwrap_or_default();
        gate.woken = gate.open;
        for slot in now {
            let waits = &self.waits[slot.location as usize];
            if waits.load(Ordering::Relaxed) == instance {
                waits.store(NONE, Ordering::Relaxed);
                wake(slot.location);
            }
        }
    }

    /// When the member of this rank, whose exit is this mark, can leave at the earliest; `None` if the location has to
    /// wait, and will be woken.
    pub(super) fn exit(
        &self,
        instance: u32,
        rank: u32,
        location: u32,
        mark: u32,
        stamps: &Stamps,
    ) -> Option<i64> {
        let found = &self.trace.instances[instance as usize];
        let in_order = found.kind.pattern() == Pattern::ToLater;
        let mut gate = self.lock(instance);
        if in_order && rank >= gate.open {
            self.advance(found, &mut gate, stamps);
        }
        if rank >= gate.open {
            self.waits[location as usize].store(instance, Ordering::Relaxed);
            return None;
        }
        if in_order {
            return Some(stamps.of(location, mark).load(Ordering::Relaxed));
        }
        Some(
            gate.seen
                .reach(self.trace.site(LocationId(location)), &self.latencies),
        )
    }

    /// Lets members leave in the order of their ranks, as far as all before them have entered. When they can is left where
    /// their exits will be.
    fn advance(&self, instance: &Instance, gate: &mut Gate, stamps: &Stamps) {
        for slot in &self.trace.slots_of(instance)[gate.open as usize..] {
            let site = self.trace.site(LocationId(slot.location));
            if slot.exit != NONE {
                let reach = gate.seen.reach(site, &self.latencies);
                stamps
                    .of(slot.location, slot.exit)
                    .store(reach, Ordering::Relaxed);
            }
            if slot.enter != NONE {
                let Some(time) = stamps.get(slot.location, slot.enter) else {
                    break;
                };
                gate.seen.add(time, site);
            }
            gate.open += 1;
        }
    }

    /// An enter that has not come, for which a member of this rank waits: the number of its slot, and this.
    pub(super) fn missing(
        &self,
        instance: u32,
        rank: u32,
        stamps: &Stamps,
    ) -> Option<(usize, Slot)> {
        let found = &self.trace.instances[instance as usize];
        let slots = self.trace.slots_of(found).iter().copied().enumerate();
        let mut before = slots.filter(|(other, _)| {
            found.kind.pattern() != Pattern::ToLater || *other < rank as usize
        });
        before
            .find(|(_, slot)| slot.enter != NONE && stamps.get(slot.location, slot.enter).is_none())
    }

    fn lock(&self, instance: u32) -> MutexGuard<'_, Gate> {
        // Nobody panics with it, so it is never poisoned.
        self.gates[instance as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time from which nothing follows.
pub(super) const fn follows(time: i64) -> bool {
    time != NEVER
}
