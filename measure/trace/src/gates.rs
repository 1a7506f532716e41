//! Collective operations during the replay of a trace: members that may leave, and their earliest
//! exit times.

use rustc_hash::FxHashMap;

use super::extremes::{Extremes, NEVER};
use super::stamps::Stamps;
use super::trace::{Instance, NONE, Slot};
use super::{Array, DependencePattern, Latencies, LocationId, NoRoom, Trace};

/// State of a collective operation that its members wait to leave.
#[derive(Debug)]
pub(super) struct Gate {
    /// Extremes of the enters that the next exit depends on.
    seen: Extremes,
    /// Number of missing enters; not counted where members wait only for lower ranks.
    missing: u32,
    /// Members of lower ranks than this may leave.
    open: u32,
    /// Members of lower ranks than this were woken.
    woken: u32,
    /// True if members wait that are in the list of early ones.
    has_early: bool,
}

/// Value of `open` that lets all ranks leave.
const ALL: u32 = u32::MAX;

/// Gates of all collective operations of a trace.
#[derive(Debug)]
pub(super) struct Gates<'a> {
    members: Members<'a>,
    gates: Array<Gate>,
    /// For every location, the operation that its clock waits to leave.
    waits: Vec<u32>,
    /// By operation, waiting members whose clocks have enters that come after this exit, for which
    /// they must not wait: their ranks and locations.
    early: FxHashMap<u32, Vec<(u32, u32)>>,
}

/// Members of collective operations, and the latencies between them.
#[derive(Clone, Copy, Debug)]
struct Members<'a> {
    trace: &'a Trace,
    latencies: Latencies,
}

impl<'a> Gates<'a> {
    /// Returns the gates of a trace.
    pub(super) fn new(trace: &'a Trace, latencies: Latencies) -> Result<Self, NoRoom> {
        let gates = trace.instances.iter().map(|instance| {
            let slots = trace.slots_of(instance).iter();
            let missing = slots.filter(|slot| slot.enter != NONE).count() as u32;
            let is_open = missing == 0 && instance.kind.pattern() != DependencePattern::ToLater;
            Gate {
                seen: Extremes::NONE,
                missing,
                open: if is_open { ALL } else { 0 },
                woken: 0,
                has_early: false,
            }
        });
        Ok(Self {
            members: Members { trace, latencies },
            gates: Array::collect(&trace.store, gates)?,
            waits: vec![NONE; trace.locations.len()],
            early: FxHashMap::default(),
        })
    }

    /// Records the enter of a member at `time`, which is in the stamps already. Locations that can
    /// leave now are handed to `wake`.
    pub(super) fn enter(
        &mut self,
        instance: u32,
        location: u32,
        time: i64,
        stamps: &mut Stamps,
        wake: impl FnMut(u32),
    ) {
        let Members { trace, .. } = self.members;
        let found = &trace.instances[instance as usize];
        let gate = &mut self.gates[instance as usize];
        if found.kind.pattern() == DependencePattern::ToLater {
            self.members.advance(found, gate, stamps);
        } else {
            gate.seen.add(time, trace.site(LocationId(location)));
            gate.missing -= 1;
            if gate.missing == 0 {
                gate.open = ALL;
            }
        }
        self.wake(instance, stamps, wake);
    }

    /// Hands over the locations that waited and can leave now.
    fn wake(&mut self, instance: u32, stamps: &Stamps, mut wake: impl FnMut(u32)) {
        let Self {
            members,
            gates,
            waits,
            early,
        } = self;
        let gate = &mut gates[instance as usize];
        let slots = members.slots(instance);
        let now = slots
            .get(gate.woken as usize..slots.len().min(gate.open as usize))
            .unwrap_or_default();
        gate.woken = gate.open;
        let mut wake = |location: u32| {
            let waits = &mut waits[location as usize];
            if *waits == instance {
                *waits = NONE;
                wake(location);
            }
        };
        now.iter().for_each(|slot| wake(slot.location));
        if gate.has_early {
            let waiting = early.entry(instance).or_default();
            waiting.retain(|member| {
                let (reach, _) = members.reach_of_others(instance, gate, *member, stamps);
                reach.is_some().then(|| wake(member.1)).is_none()
            });
            gate.has_early = !waiting.is_empty();
        }
    }

    /// Returns the earliest exit time of the member of this rank, whose exit is given by its location
    /// and mark; `None` if the clock has to wait. Its location will then be woken.
    pub(super) fn exit(
        &mut self,
        instance: u32,
        rank: u32,
        (location, mark): (u32, u32),
        stamps: &mut Stamps,
    ) -> Option<i64> {
        let Members { trace, latencies } = self.members;
        let found = &trace.instances[instance as usize];
        let in_order = found.kind.pattern() == DependencePattern::ToLater;
        let gate = &mut self.gates[instance as usize];
        if in_order && rank >= gate.open {
            self.members.advance(found, gate, stamps);
        }
        if rank >= gate.open {
            if trace.locations[location as usize].shares_clock {
                let member = (rank, location);
                let (reach, is_early) =
                    self.members.reach_of_others(instance, gate, member, stamps);
                if reach.is_some() {
                    return reach;
                }
                if is_early {
                    self.early.entry(instance).or_default().push(member);
                    gate.has_early = true;
                }
            }
            self.waits[location as usize] = instance;
            return None;
        }
        Some(match in_order {
            true => stamps.word(location, mark),
            false => gate
                .seen
                .reach(trace.site(LocationId(location)), &latencies),
        })
    }

    /// Returns a missing enter that a member waits for, given by its rank and location.
    pub(super) fn missing(
        &self,
        instance: u32,
        (rank, location): (u32, u32),
        stamps: &Stamps,
    ) -> Option<Slot> {
        let trace = self.members.trace;
        let found = &trace.instances[instance as usize];
        let mut awaited = trace.awaited_by(found, rank).iter();
        let is_missing = |slot: &&Slot| {
            let [member, this] = [slot.location, location].map(LocationId);
            let is_awaited = slot.enter != NONE && !trace.share_clock(member, this);
            is_awaited && stamps.time(slot.location, slot.enter).is_none()
        };
        awaited.find(is_missing).copied()
    }
}

impl Members<'_> {
    fn slots(&self, instance: u32) -> &[Slot] {
        self.trace
            .slots_of(&self.trace.instances[instance as usize])
    }

    /// Returns the earliest exit time of a member, given by its rank and location, that waits only
    /// for other clocks, `None` if one of them is missing; and true if enters of its own clock are.
    fn reach_of_others(
        &self,
        instance: u32,
        gate: &Gate,
        (rank, location): (u32, u32),
        stamps: &Stamps,
    ) -> (Option<i64>, bool) {
        let found = &self.trace.instances[instance as usize];
        let mut seen = match found.kind.pattern() {
            // Those of higher ranks may be in the extremes of the gate.
            DependencePattern::ToLater => Extremes::NONE,
            _ => gate.seen,
        };
        let (mut others, mut own) = (false, false);
        let awaited = self.trace.awaited_by(found, rank).iter();
        for slot in awaited.filter(|slot| slot.enter != NONE) {
            let [member, this] = [slot.location, location].map(LocationId);
            match stamps.time(slot.location, slot.enter) {
                Some(time) => seen.add(time, self.trace.site(member)),
                None if self.trace.share_clock(member, this) => own = true,
                None => others = true,
            }
        }
        let site = self.trace.site(LocationId(location));
        let reach = (!others).then(|| seen.reach(site, &self.latencies));
        (reach, own)
    }

    /// Lets members leave in the order of their ranks, as far as all lower ranks have entered.
    /// Their earliest exit times are stored in the stamps of the exits.
    fn advance(&self, instance: &Instance, gate: &mut Gate, stamps: &mut Stamps) {
        for slot in &self.trace.slots_of(instance)[gate.open as usize..] {
            let site = self.trace.site(LocationId(slot.location));
            // A member that left early has its jump there.
            if slot.exit != NONE && stamps.is_empty(slot.location, slot.exit) {
                let reach = gate.seen.reach(site, &self.latencies);
                stamps.set(slot.location, slot.exit, reach);
            }
            if slot.enter != NONE {
                let Some(time) = stamps.time(slot.location, slot.enter) else {
                    break;
                };
                gate.seen.add(time, site);
            }
            gate.open += 1;
        }
    }
}

/// Returns true if this time constrains other events.
pub(super) const fn follows(time: i64) -> bool {
    time != NEVER
}
