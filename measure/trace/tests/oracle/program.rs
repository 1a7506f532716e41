//! Random programs that could have run, with a list of all relations between their events.

use std::collections::BTreeMap;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_trace::{
    Action, ClockOwner, Clocks, CollectiveKind, CommunicatorId, EventId, LocationId, Matching,
    Pattern, Place, Trace, TraceBuilder, TraceError,
};
use fastrand::Rng;

/// Event: its location, and its index there.
pub(crate) type Event = (usize, usize);

/// Arguments of a push to a builder.
pub(crate) type Push = (LocationId, Timestamp<Global>, Action);

/// Program run, as seen by an observer with true time.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) places: Vec<Place>,
    /// Group of locations that share a clock.
    pub(crate) clock_of: ClockOwner,
    /// For every location, the first one with the same clock.
    pub(crate) clocks: Vec<usize>,
    pub(crate) teams: Vec<Vec<usize>>,
    pub(crate) events: Vec<Vec<(i64, Step)>>,
    /// Order in which events happened.
    pub(crate) order: Vec<Event>,
    /// Pairs of events of which the first must precede the second.
    pub(crate) relations: Vec<(Event, Event)>,
}

#[derive(Clone, Copy)]
pub(crate) enum Step {
    Internal,
    Send(usize, usize, i32),
    Receive(usize, usize, i32),
    Enter(usize),
    Exit(usize, CollectiveKind, usize, bool, bool),
    Fork(usize),
    Begin(usize),
    End(usize),
    Join(usize),
}

/// Message under way.
struct Flying {
    from: usize,
    to: usize,
    team: usize,
    tag: i32,
    sent: Event,
}

/// Collective operation that members take part in.
struct Ongoing {
    team: usize,
    kind: CollectiveKind,
    root: usize,
    data: Vec<(bool, bool)>,
    entered: Vec<Option<Event>>,
    exited: Vec<Option<Event>>,
}

struct Times {
    now: i64,
    offsets: Vec<i64>,
    percents: Vec<i64>,
}

impl Program {
    /// Makes a program with locations on a few nodes and processes, wrong clocks, and about this
    /// number of steps. Locations that share a clock differ by up to `jitter`.
    pub(crate) fn random(rng: &mut Rng, locations: usize, steps: usize, jitter: i64) -> Self {
        let mut program = Self {
            events: vec![vec![]; locations],
            ..Self::default()
        };
        for _ in 0..locations {
            let process = rng.u32(0..locations as u32);
            program.places.push(Place {
                node: process / 2,
                process,
            });
        }
        for _ in 0..rng.usize(1..=3) {
            let mut members: Vec<usize> = (0..locations).collect();
            rng.shuffle(&mut members);
            // Every pair of members is a relation, so their number is limited.
            members.truncate(rng.usize(1..=locations.min(40)));
            program.teams.push(members);
        }
        let wrong = [0, 5, 300, 20_000][rng.usize(0..4)];
        program.clock_of = match rng.u32(0..4) {
            0 => ClockOwner::Process,
            1 => ClockOwner::Node,
            _ => ClockOwner::Location,
        };
        let clocks = Clocks::new(program.clock_of, program.places.iter().copied());
        let readers = clocks.readers().iter().map(|reader| *reader as usize);
        program.clocks = readers.collect();
        let mut times = Times {
            now: 0,
            offsets: (0..locations).map(|_| rng.i64(-wrong..=wrong)).collect(),
            percents: (0..locations).map(|_| rng.i64(90..=110)).collect(),
        };
        for (location, clock) in program.clocks.iter().enumerate() {
            times.offsets[location] = times.offsets[*clock] + rng.i64(-jitter..=jitter);
            times.percents[location] = times.percents[*clock];
        }
        let mut clocks = times;
        let (mut flying, mut ongoing) = (vec![], vec![]);
        for _ in 0..steps {
            program.step(rng, &mut clocks, &mut flying, &mut ongoing, true);
        }
        while !flying.is_empty() || !ongoing.is_empty() {
            program.step(rng, &mut clocks, &mut flying, &mut ongoing, false);
        }
        program
    }

    fn step(
        &mut self,
        rng: &mut Rng,
        clocks: &mut Times,
        flying: &mut Vec<Flying>,
        ongoing: &mut Vec<Ongoing>,
        begin: bool,
    ) {
        clocks.now += [0, 1, 10, 200, 1_000][rng.usize(0..5)];
        let location = rng.usize(0..self.events.len());
        match rng.u32(0..10) {
            0 => {
                self.add(clocks, location, Step::Internal);
            }
            1..4 if begin => {
                let (to, team, tag) = (
                    rng.usize(0..self.events.len()),
                    rng.usize(0..self.teams.len()),
                    rng.i32(0..2),
                );
                let sent = self.add(clocks, location, Step::Send(to, team, tag));
                flying.push(Flying {
                    from: location,
                    to,
                    team,
                    tag,
                    sent,
                });
            }
            4 if begin => {
                let team = rng.usize(0..self.teams.len());
                // Operations of a team are sequential, so that all members take part in the same
                // order.
                if ongoing.iter().all(|other: &Ongoing| other.team != team) {
                    ongoing.push(self.start(rng, team));
                }
            }
            5..7 if !flying.is_empty() => {
                let any = rng.usize(0..flying.len());
                let same = |m: &Flying| (m.from, m.to, m.team, m.tag);
                // The first message of its channel: messages do not overtake each other.
                let first = flying
                    .iter()
                    .position(|m| same(m) == same(&flying[any]))
                    .unwrap();
                let message = flying.remove(first);
                let received = self.add(
                    clocks,
                    message.to,
                    Step::Receive(message.from, message.team, message.tag),
                );
                self.relations.push((message.sent, received));
            }
            7.. if !ongoing.is_empty() => {
                let which = rng.usize(0..ongoing.len());
                let rank = rng.usize(0..self.teams[ongoing[which].team].len());
                self.take_part(clocks, &mut ongoing[which], rank);
                let is_done = |seen: &[Option<Event>]| seen.iter().all(Option::is_some);
                if is_done(&ongoing[which].exited) && is_done(&ongoing[which].entered) {
                    let done = ongoing.remove(which);
                    self.relate(&done);
                }
            }
            _ => {}
        }
    }

    fn start(&self, rng: &mut Rng, team: usize) -> Ongoing {
        let members = self.teams[team].len();
        let kind = match rng.usize(0..14) {
            12 => CollectiveKind::Fork,
            13 => CollectiveKind::Join,
            i => CollectiveKind::MPI_KINDS[i],
        };
        Ongoing {
            team,
            kind,
            // Threads of a team are always started by the same member.
            root: if matches!(kind, CollectiveKind::Fork | CollectiveKind::Join) {
                0
            } else {
                rng.usize(0..members)
            },
            data: (0..members)
                .map(|_| (rng.u8(0..4) > 0, rng.u8(0..4) > 0))
                .collect(),
            entered: vec![None; members],
            exited: vec![None; members],
        }
    }

    /// Returns true if the enter of one member must precede the exit of another.
    fn is_relation(op: &Ongoing, sender: usize, receiver: usize) -> bool {
        if sender == receiver {
            return false;
        }
        let data = matches!(
            op.kind,
            CollectiveKind::Barrier | CollectiveKind::Fork | CollectiveKind::Join
        ) || (op.data[sender].0 && op.data[receiver].1);
        data && match op.kind.pattern() {
            Pattern::FromRoot => sender == op.root,
            Pattern::ToRoot => receiver == op.root,
            Pattern::AllToAll => true,
            Pattern::ToLater => sender < receiver,
        }
    }

    /// Lets a member enter, or leave if it can.
    fn take_part(&mut self, clocks: &mut Times, op: &mut Ongoing, rank: usize) {
        let location = self.teams[op.team][rank];
        let nothing = (usize::MAX, 0);
        if op.entered[rank].is_none() {
            let step = match op.kind {
                // Only the root has an event here.
                CollectiveKind::Fork if rank != op.root => return op.entered[rank] = Some(nothing),
                CollectiveKind::Fork => Step::Fork(op.team),
                CollectiveKind::Join => Step::End(op.team),
                _ => Step::Enter(op.team),
            };
            op.entered[rank] = Some(self.add(clocks, location, step));
            return;
        }
        let waits = (0..op.entered.len())
            .any(|other| Self::is_relation(op, other, rank) && op.entered[other].is_none());
        if op.exited[rank].is_some() || waits {
            return;
        }
        let step = match op.kind {
            CollectiveKind::Join if rank != op.root => return op.exited[rank] = Some(nothing),
            CollectiveKind::Join => Step::Join(op.team),
            CollectiveKind::Fork => Step::Begin(op.team),
            kind => Step::Exit(op.team, kind, op.root, op.data[rank].0, op.data[rank].1),
        };
        op.exited[rank] = Some(self.add(clocks, location, step));
    }

    fn relate(&mut self, op: &Ongoing) {
        for sender in 0..op.entered.len() {
            for receiver in 0..op.entered.len() {
                if Self::is_relation(op, sender, receiver) {
                    self.relations
                        .push((op.entered[sender].unwrap(), op.exited[receiver].unwrap()));
                }
            }
        }
    }

    fn add(&mut self, clocks: &Times, location: usize, step: Step) -> Event {
        let time = clocks.now * clocks.percents[location] / 100 + clocks.offsets[location];
        self.events[location].push((time, step));
        let event = (location, self.events[location].len() - 1);
        self.order.push(event);
        event
    }

    /// Returns a builder with all locations and teams, and the events to push, in the order in
    /// which they happened.
    pub(crate) fn pushes(&self, matching: Matching) -> (TraceBuilder, Vec<Push>) {
        let mut builder = TraceBuilder::new(matching);
        let (ids, teams) = self.define(&mut builder);
        let push = |(location, event): &Event| {
            let (time, step) = self.events[*location][*event];
            (
                ids[*location],
                Timestamp::from_nanos(time),
                action(step, &ids, &teams),
            )
        };
        (builder, self.order.iter().map(push).collect())
    }

    fn define(&self, builder: &mut TraceBuilder) -> (Vec<LocationId>, Vec<CommunicatorId>) {
        let ids: Vec<LocationId> = self
            .places
            .iter()
            .map(|place| builder.add_location(*place).unwrap())
            .collect();
        let of = |team: &Vec<usize>| team.iter().map(|member| ids[*member]).collect::<Vec<_>>();
        let teams = self
            .teams
            .iter()
            .map(|team| builder.add_communicator(&of(team)).unwrap())
            .collect();
        (ids, teams)
    }

    /// Returns the settings of its matching.
    pub(crate) fn matching(&self) -> Matching {
        Matching {
            clock_of: self.clock_of,
            ..Matching::default()
        }
    }

    pub(crate) fn share_clock(&self, one: usize, other: usize) -> bool {
        self.clocks[one] == self.clocks[other]
    }

    /// Returns the order of the events of each clock, given that in which they were added. Of the
    /// next events of all locations, the first one that depends on no other at the same time.
    pub(crate) fn timelines(&self, pushed: &[Event]) -> Vec<Vec<Event>> {
        let position: BTreeMap<Event, usize> = pushed.iter().copied().zip(0..).collect();
        let time = |(location, event): Event| self.events[location][event].0;
        let mut sources: BTreeMap<Event, Vec<Event>> = BTreeMap::new();
        for (from, to) in &self.relations {
            if self.share_clock(from.0, to.0) && time(*from) == time(*to) && from.0 != to.0 {
                sources.entry(*to).or_default().push(*from);
            }
        }
        let mut timelines = vec![];
        for clock in 0..self.clocks.len() {
            let members = (0..self.clocks.len()).filter(|member| self.clocks[*member] == clock);
            let mut heads: Vec<Event> = members.map(|member| (member, 0)).collect();
            let mut timeline = vec![];
            loop {
                heads.retain(|(location, event)| *event < self.events[*location].len());
                let Some(first) = heads.iter().map(|head| time(*head)).min() else {
                    break;
                };
                let mut tied: Vec<Event> = heads.clone();
                tied.retain(|head| time(*head) == first);
                tied.sort_by_key(|head| position[head]);
                let is_free = |head: &&Event| {
                    let has_come = |source: &Event| {
                        let head = heads.iter().find(|head| head.0 == source.0);
                        head.is_none_or(|head| head.1 > source.1)
                    };
                    sources.get(head).is_none_or(|of| of.iter().all(has_come))
                };
                let next = *tied.iter().find(is_free).unwrap_or(&tied[0]);
                timeline.push(next);
                heads
                    .iter_mut()
                    .filter(|head| **head == next)
                    .for_each(|head| head.1 += 1);
            }
            timelines.push(timeline);
        }
        timelines
    }

    /// Returns the trace of the program, pushed location by location or interleaved, and the order in
    /// which events were pushed.
    pub(crate) fn trace(&self, rng: &mut Rng) -> Result<(Trace, Vec<Event>), TraceError> {
        let mut builder = TraceBuilder::new(self.matching());
        let mut pushed = vec![];
        let (ids, teams) = self.define(&mut builder);
        let (mixed, mut next) = (rng.bool(), vec![0; ids.len()]);
        while let Some(first) =
            (0..ids.len()).find(|location| next[*location] < self.events[*location].len())
        {
            let any = rng.usize(0..ids.len());
            let location = if mixed && next[any] < self.events[any].len() {
                any
            } else {
                first
            };
            let (time, step) = self.events[location][next[location]];
            pushed.push((location, next[location]));
            next[location] += 1;
            builder.push(
                ids[location],
                Timestamp::<Global>::from_nanos(time),
                action(step, &ids, &teams),
            )?;
        }
        Ok((builder.finish()?, pushed))
    }
}

fn action(step: Step, ids: &[LocationId], teams: &[CommunicatorId]) -> Action {
    match step {
        Step::Internal => Action::Internal,
        Step::Send(to, team, tag) => Action::Send {
            to: ids[to],
            communicator: teams[team],
            tag,
        },
        Step::Receive(from, team, tag) => Action::Receive {
            from: ids[from],
            communicator: teams[team],
            tag,
        },
        Step::Enter(team) => Action::Enter {
            communicator: teams[team],
        },
        Step::Exit(team, kind, root, sent, received) => Action::Exit {
            communicator: teams[team],
            kind,
            root: root as u32,
            sent,
            received,
        },
        Step::Fork(team) => Action::Fork { team: teams[team] },
        Step::Begin(team) => Action::Begin { team: teams[team] },
        Step::End(team) => Action::End { team: teams[team] },
        Step::Join(team) => Action::Join { team: teams[team] },
    }
}

/// Returns the location and index of an event in a trace.
pub(crate) fn number(id: EventId) -> Event {
    (id.location.index(), id.event as usize)
}
