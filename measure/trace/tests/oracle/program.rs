//! Random programs that could have run, with a list of all relations between their events.

use std::collections::BTreeMap;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_trace::{
    ClockOwner, Clocks, CollectiveKind, CommunicatorId, DependencePattern, Event, EventId,
    LocationId, Matching, Place, Trace, TraceBuilder, TraceError,
};
use fastrand::Rng;

/// Event: its location, and its index there.
pub(crate) type EventIndex = (usize, usize);

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
    pub(crate) order: Vec<EventIndex>,
    /// Pairs of events of which the first must precede the second.
    pub(crate) relations: Vec<(EventIndex, EventIndex)>,
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
    PostReceive(u64),
    CompleteReceive(usize, usize, i32, u64),
    CancelReceive(u64),
    Start(usize, u64),
    Complete(usize, CollectiveKind, usize, bool, bool, u64),
    Signal(u64),
    Wait(u64),
}

/// Sender, receiver, team and tag.
type Channel = (usize, usize, usize, i32);

/// Messages of a channel, of which the receives are blocking or posted, in this order.
#[derive(Default)]
struct Messages {
    sent: Vec<EventIndex>,
    receives: usize,
}

/// Receive that is posted.
struct Posted {
    channel: Channel,
    /// Index of its message in the channel.
    message: usize,
    request: u64,
}

/// Everything that is under way.
#[derive(Default)]
struct Flying {
    channels: BTreeMap<Channel, Messages>,
    posted: Vec<Posted>,
    /// Signals that nothing has waited for, with their ids.
    signals: Vec<(EventIndex, u64)>,
    ongoing: Vec<Ongoing>,
    /// Ids are not used again, as the events of the locations of a process are pushed in any order.
    last_id: u64,
}

/// Collective operation that members take part in.
struct Ongoing {
    team: usize,
    kind: CollectiveKind,
    root: usize,
    data: Vec<(bool, bool)>,
    entered: Vec<Option<EventIndex>>,
    exited: Vec<Option<EventIndex>>,
    /// Request of each member, if the operation is not blocking.
    requests: Option<Vec<u64>>,
}

struct Times {
    now: i64,
    offsets: Vec<i64>,
    percents: Vec<i64>,
}

impl Flying {
    /// Returns the channels with messages that no receive was posted for.
    fn messages(&self) -> impl Iterator<Item = Channel> + '_ {
        let all = self.channels.iter();
        let open = all.filter(|(_, messages)| messages.sent.len() > messages.receives);
        open.map(|(channel, _)| *channel)
    }

    fn is_busy(&self) -> bool {
        !self.ongoing.is_empty() || !self.posted.is_empty() || self.messages().next().is_some()
    }
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
        let mut flying = Flying::default();
        for _ in 0..steps {
            program.step(rng, &mut clocks, &mut flying, true);
        }
        while flying.is_busy() {
            program.step(rng, &mut clocks, &mut flying, false);
        }
        program
    }

    fn step(&mut self, rng: &mut Rng, clocks: &mut Times, flying: &mut Flying, begin: bool) {
        clocks.now += [0, 1, 10, 200, 1_000][rng.usize(0..5)];
        let location = rng.usize(0..self.events.len());
        match rng.u32(0..12) {
            0 => {
                self.add(clocks, location, Step::Internal);
            }
            1..4 if begin => {
                let channel = self.channel(rng, location);
                let sent = self.add(
                    clocks,
                    location,
                    Step::Send(channel.1, channel.2, channel.3),
                );
                flying.channels.entry(channel).or_default().sent.push(sent);
            }
            4 if begin => {
                let team = rng.usize(0..self.teams.len());
                // All members take part in the same order, and only non-blocking operations of a
                // team overlap with others.
                let mut others = flying.ongoing.iter().filter(|other| other.team == team);
                if others.all(|other| other.requests.is_some()) {
                    flying.ongoing.push(self.start(rng, team));
                }
            }
            5 if begin => self.post(rng, clocks, flying, location),
            5..8 => self.receive(rng, clocks, flying),
            8 => self.signal(rng, clocks, flying, location),
            9.. if !flying.ongoing.is_empty() => {
                let which = rng.usize(0..flying.ongoing.len());
                let rank = rng.usize(0..self.teams[flying.ongoing[which].team].len());
                let (before, from_here) = flying.ongoing.split_at_mut(which);
                let this = &mut from_here[0];
                let mut before = before.iter().filter(|other| other.team == this.team);
                if before.all(|other| other.entered[rank].is_some()) {
                    self.take_part(clocks, this, rank);
                }
                let is_done = |seen: &[Option<EventIndex>]| seen.iter().all(Option::is_some);
                if is_done(&this.exited) && is_done(&this.entered) {
                    let done = flying.ongoing.remove(which);
                    self.relate(&done);
                }
            }
            _ => {}
        }
    }

    /// Returns a channel of messages that this location sends; tags tell the locations of a process
    /// apart.
    fn channel(&self, rng: &mut Rng, from: usize) -> Channel {
        let locations = self.events.len();
        let (to, team) = (rng.usize(0..locations), rng.usize(0..self.teams.len()));
        let tag = (rng.usize(0..2) * locations + from) * locations + to;
        (from, to, team, tag as i32)
    }

    /// Posts a receive, if possible for a message that is under way.
    fn post(&mut self, rng: &mut Rng, clocks: &mut Times, flying: &mut Flying, to: usize) {
        let mut channels: Vec<Channel> = flying.messages().filter(|of| of.1 == to).collect();
        if channels.is_empty() {
            let from = rng.usize(0..self.events.len());
            let (_, peer, team, _) = self.channel(rng, from);
            let locations = self.events.len();
            let tag = (rng.usize(0..2) * locations + from) * locations + peer;
            channels.extend((peer == to).then_some((from, to, team, tag as i32)));
        }
        if channels.is_empty() {
            return;
        }
        let channel = channels[rng.usize(0..channels.len())];
        flying.last_id += 1;
        let messages = flying.channels.entry(channel).or_default();
        flying.posted.push(Posted {
            channel,
            message: messages.receives,
            request: flying.last_id,
        });
        messages.receives += 1;
        self.add(clocks, to, Step::PostReceive(flying.last_id));
    }

    /// Completes a receive that was posted, or receives another message.
    fn receive(&mut self, rng: &mut Rng, clocks: &mut Times, flying: &mut Flying) {
        if !flying.posted.is_empty() && rng.bool() {
            let any = rng.usize(0..flying.posted.len());
            let Posted {
                channel: (from, to, team, tag),
                message,
                request,
            } = flying.posted[any];
            let channel = (from, to, team, tag);
            let Some(messages) = flying.channels.get_mut(&channel) else {
                return;
            };
            if let Some(sent) = messages.sent.get(message) {
                let step = Step::CompleteReceive(from, team, tag, request);
                let received = self.add(clocks, to, step);
                self.relations.push((*sent, received));
                flying.posted.swap_remove(any);
            } else if message + 1 == messages.receives {
                messages.receives -= 1;
                self.add(clocks, to, Step::CancelReceive(request));
                flying.posted.swap_remove(any);
            }
            return;
        }
        let channels: Vec<Channel> = flying.messages().collect();
        if channels.is_empty() {
            return;
        }
        let channel = channels[rng.usize(0..channels.len())];
        let (from, to, team, tag) = channel;
        let Some(messages) = flying.channels.get_mut(&channel) else {
            return;
        };
        if let Some(sent) = messages.sent.get(messages.receives) {
            let received = self.add(clocks, to, Step::Receive(from, team, tag));
            self.relations.push((*sent, received));
            messages.receives += 1;
        }
    }

    /// Signals, or waits for a signal of the process.
    fn signal(&mut self, rng: &mut Rng, clocks: &mut Times, flying: &mut Flying, location: usize) {
        let mut signals = flying.signals.iter();
        let place = |location: usize| self.places[location];
        let waited_for = signals.position(|((from, _), _)| place(*from) == place(location));
        match waited_for.filter(|_| rng.bool()) {
            Some(found) => {
                let (signal, id) = flying.signals.remove(found);
                let wait = self.add(clocks, location, Step::Wait(id));
                self.relations.push((signal, wait));
            }
            None => {
                flying.last_id += 1;
                let signal = self.add(clocks, location, Step::Signal(flying.last_id));
                flying.signals.push((signal, flying.last_id));
            }
        }
    }

    fn start(&self, rng: &mut Rng, team: usize) -> Ongoing {
        let members = self.teams[team].len();
        let kind = match rng.usize(0..14) {
            12 => CollectiveKind::Fork,
            13 => CollectiveKind::Join,
            i => CollectiveKind::MPI_KINDS[i],
        };
        let is_mpi = !matches!(kind, CollectiveKind::Fork | CollectiveKind::Join);
        Ongoing {
            team,
            kind,
            // Threads of a team are always started by the same member.
            root: if is_mpi { rng.usize(0..members) } else { 0 },
            data: (0..members)
                .map(|_| (rng.u8(0..4) > 0, rng.u8(0..4) > 0))
                .collect(),
            entered: vec![None; members],
            exited: vec![None; members],
            // Requests that are open together differ.
            requests: (is_mpi && rng.bool()).then(|| {
                let first = rng.u64(..);
                (0..members as u64)
                    .map(|rank| first.wrapping_add(rank))
                    .collect()
            }),
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
            DependencePattern::FromRoot => sender == op.root,
            DependencePattern::ToRoot => receiver == op.root,
            DependencePattern::AllToAll => true,
            DependencePattern::ToLater => sender < receiver,
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
                _ => match &op.requests {
                    Some(requests) => Step::Start(op.team, requests[rank]),
                    None => Step::Enter(op.team),
                },
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
            kind => {
                let (sent, received) = op.data[rank];
                match &op.requests {
                    Some(requests) => {
                        let request = requests[rank];
                        Step::Complete(op.team, kind, op.root, sent, received, request)
                    }
                    None => Step::Exit(op.team, kind, op.root, sent, received),
                }
            }
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

    fn add(&mut self, clocks: &Times, location: usize, step: Step) -> EventIndex {
        let time = clocks.now * clocks.percents[location] / 100 + clocks.offsets[location];
        self.events[location].push((time, step));
        let event = (location, self.events[location].len() - 1);
        self.order.push(event);
        event
    }

    fn define(&self, builder: &mut TraceBuilder) -> (Vec<LocationId>, Vec<CommunicatorId>) {
        let mut processes = BTreeMap::new();
        let mut add = |place: &Place| {
            let first = processes.get(&place.process).copied();
            let id = match first {
                Some(first) => builder.add_thread(first).unwrap(),
                None => builder.add_location(*place).unwrap(),
            };
            processes.entry(place.process).or_insert(id);
            id
        };
        let ids: Vec<LocationId> = self.places.iter().map(&mut add).collect();
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
    pub(crate) fn timelines(&self, pushed: &[EventIndex]) -> Vec<Vec<EventIndex>> {
        let position: BTreeMap<EventIndex, usize> = pushed.iter().copied().zip(0..).collect();
        let time = |(location, event): EventIndex| self.events[location][event].0;
        let mut sources: BTreeMap<EventIndex, Vec<EventIndex>> = BTreeMap::new();
        for (from, to) in &self.relations {
            if self.share_clock(from.0, to.0) && time(*from) == time(*to) && from.0 != to.0 {
                sources.entry(*to).or_default().push(*from);
            }
        }
        let mut timelines = vec![];
        for clock in 0..self.clocks.len() {
            let members = (0..self.clocks.len()).filter(|member| self.clocks[*member] == clock);
            let mut heads: Vec<EventIndex> = members.map(|member| (member, 0)).collect();
            let mut timeline = vec![];
            loop {
                heads.retain(|(location, event)| *event < self.events[*location].len());
                let Some(first) = heads.iter().map(|head| time(*head)).min() else {
                    break;
                };
                let mut tied: Vec<EventIndex> = heads.clone();
                tied.retain(|head| time(*head) == first);
                tied.sort_by_key(|head| position[head]);
                let is_free = |head: &&EventIndex| {
                    let has_come = |source: &EventIndex| {
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
    pub(crate) fn trace(&self, rng: &mut Rng) -> Result<(Trace, Vec<EventIndex>), TraceError> {
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
                event_of(step, &ids, &teams),
            )?;
        }
        Ok((builder.finish()?, pushed))
    }
}

fn event_of(step: Step, ids: &[LocationId], teams: &[CommunicatorId]) -> Event<'static> {
    match step {
        Step::Internal => Event::Note("work"),
        Step::Send(to, team, tag) => Event::Send {
            to: ids[to].into(),
            communicator: teams[team].into(),
            tag,
            request: None,
            bytes: None,
        },
        Step::Receive(from, team, tag) => Event::Receive {
            from: ids[from].into(),
            communicator: teams[team].into(),
            tag,
            request: None,
            bytes: None,
        },
        Step::Enter(team) => Event::CollectiveBegin {
            communicator: teams[team].into(),
            request: None,
        },
        Step::Exit(team, kind, root, sent, received) => Event::CollectiveEnd {
            communicator: teams[team].into(),
            kind,
            root: root as u32,
            sent,
            received,
            request: None,
            bytes: None,
        },
        Step::Fork(team) => Event::Fork {
            team: teams[team].into(),
        },
        Step::Begin(team) => Event::ThreadBegin {
            team: teams[team].into(),
        },
        Step::End(team) => Event::ThreadEnd {
            team: teams[team].into(),
        },
        Step::Join(team) => Event::Join {
            team: teams[team].into(),
        },
        Step::PostReceive(request) => Event::PostReceive { request },
        Step::CompleteReceive(from, team, tag, request) => Event::Receive {
            from: ids[from].into(),
            communicator: teams[team].into(),
            tag,
            request: Some(request),
            bytes: None,
        },
        Step::CancelReceive(request) => Event::CancelReceive { request },
        Step::Start(team, request) => Event::CollectiveBegin {
            communicator: teams[team].into(),
            request: Some(request),
        },
        Step::Complete(team, kind, root, sent, received, request) => Event::CollectiveEnd {
            communicator: teams[team].into(),
            kind,
            root: root as u32,
            sent,
            received,
            request: Some(request),
            bytes: None,
        },
        Step::Signal(id) => Event::Signal { id },
        Step::Wait(id) => Event::Wait { id },
    }
}

/// Returns the location and index of an event in a trace.
pub(crate) fn number(id: EventId) -> EventIndex {
    (id.location.index(), id.event as usize)
}
