//! Simulation of a synthetic program in true time, round after round.

use downbeat_clock_core::{Duration, Timestamp};
use fastrand::Rng;

use super::program::{SAMPLE_SPACING, SyntheticEvent, SyntheticProgram, SyntheticTraffic};
use crate::{CommunicatorId, Event, LocationId};
use downbeat_sync::internal::{NodeClock, exponential};
use downbeat_sync::sim::{Clocks, SimClock};

/// Clocks of all nodes, of which the first is correct.
#[derive(Debug)]
pub(super) struct WrongClocks {
    clocks: Clocks,
    nodes: Vec<NodeClock>,
}

impl WrongClocks {
    pub(super) fn new(program: &SyntheticProgram) -> Self {
        let clocks = program.lasting_clocks();
        let nodes = (0..program.nodes)
            .map(|node| NodeClock::new(&clocks, program.seed, node))
            .collect();
        Self { clocks, nodes }
    }

    /// Returns the reading of a node's clock at a true time.
    pub(super) fn show(&mut self, node: u32, truth: i64) -> i64 {
        if node == 0 {
            return truth;
        }
        let ticks = self.nodes[node as usize].ticks_at(truth, &self.clocks);
        ticks.0.wrapping_sub(SimClock::ZERO.0) as i64
    }
}

/// Offset and drift of a clock by interpolation between the first and the last session.
#[derive(Clone, Copy, Debug, Default)]
struct InterpolatedClock {
    from: f64,
    offset: f64,
    drift: f64,
}

/// Message that was sent and not yet received.
#[derive(Clone, Copy, Debug)]
struct MessageInFlight {
    from: u32,
    to: u32,
    tag: i32,
    /// True time of the send, and its time by interpolated clocks.
    truth: i64,
    shown: f64,
    /// Request of its receive, if that was posted.
    request: u64,
}

/// State of a running program.
pub(super) struct ProgramRun<'a, E> {
    pub(super) program: &'a SyntheticProgram,
    see: &'a mut dyn FnMut(SyntheticEvent) -> Result<(), E>,
    /// Events of the threads of a process, which are passed on in the order of their clock.
    held: Option<Vec<SyntheticEvent>>,
    clocks: WrongClocks,
    expected: Vec<InterpolatedClock>,
    pub(super) random: Rng,
    /// Latencies between threads, between processes of a node, and between nodes.
    pub(super) latencies: [i64; 3],
    /// Node of every location, and the time of its last event.
    nodes: Vec<u32>,
    pub(super) now: Vec<i64>,
    messages: Vec<MessageInFlight>,
    /// Receivers of every process, if they are the same in every round.
    fixed: Vec<Vec<u32>>,
    violated: u64,
    received: u64,
}

/// All processes, in the order of their locations.
pub(super) const WORLD: CommunicatorId = CommunicatorId(0);

impl<'a, E> ProgramRun<'a, E> {
    pub(super) fn new(
        program: &'a SyntheticProgram,
        see: &'a mut dyn FnMut(SyntheticEvent) -> Result<(), E>,
    ) -> Self {
        let nodes: Vec<_> = program.places().iter().map(|place| place.node).collect();
        let mut clocks = WrongClocks::new(program);
        let expected = (0..program.nodes)
            .map(|node| expected(program, &mut clocks, node))
            .collect();
        Self {
            program,
            see,
            held: None,
            clocks,
            expected,
            random: Rng::with_seed(program.seed),
            latencies: program.latencies.levels().map(Duration::as_nanos),
            now: vec![program.session().as_nanos(); nodes.len()],
            nodes,
            messages: vec![],
            fixed: match program.traffic {
                SyntheticTraffic::Pairs => vec![],
                _ => (0..program.ranks())
                    .map(|rank| program.receivers(rank))
                    .collect(),
            },
            violated: 0,
            received: 0,
        }
    }

    pub(super) fn run(mut self) -> Result<(), E> {
        let SyntheticProgram {
            rounds,
            collective_every,
            fork_every,
            ..
        } = *self.program;
        let (start, period) = (
            (self.program.session() + self.program.idle).as_nanos(),
            self.program.active().as_nanos() / i64::from(rounds.max(1)),
        );
        let is_due = |round: u32, every: u32| every > 0 && round % every == every - 1;
        for round in 0..rounds {
            self.compute(start + period * i64::from(round), period)?;
            self.send()?;
            self.receive()?;
            if is_due(round, collective_every) {
                self.collective(round / collective_every)?;
            }
            if is_due(round, fork_every) {
                self.fork()?;
            }
        }
        Ok(())
    }

    /// Adds an event at a location at a true time, or right after its last event if that is later.
    pub(super) fn event(
        &mut self,
        location: LocationId,
        truth: i64,
        event: Event<'static>,
    ) -> Result<i64, E> {
        let now = &mut self.now[location.index()];
        let truth = truth.max(now.saturating_add(1));
        *now = truth;
        let local = Timestamp::from_nanos(self.clocks.show(self.nodes[location.index()], truth));
        let event = SyntheticEvent {
            location,
            truth: Timestamp::from_nanos(truth),
            local,
            event,
        };
        match &mut self.held {
            Some(held) => held.push(event),
            None => (self.see)(event)?,
        }
        Ok(truth)
    }

    /// Passes on the events that `add` adds in the order of their true times.
    pub(super) fn in_order(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.held = Some(vec![]);
        add(self)?;
        let mut held = self.held.take().unwrap_or_default();
        held.sort_by_key(|event| event.truth);
        held.into_iter().try_for_each(&mut self.see)
    }

    /// Returns a random time shortly after the last event of a location.
    pub(super) fn shortly(&mut self, location: LocationId) -> i64 {
        self.now[location.index()] + self.random.i64(20..200)
    }

    /// Returns the random additional latency of a message.
    pub(super) fn jitter(&mut self) -> i64 {
        (self.program.jitter.as_nanos() as f64 * exponential(&mut self.random)) as i64
    }

    /// Adds the local events of all processes, within the first quarter of the round if there is
    /// time. All processes finish them at the same time, so that receivers wait for messages, and
    /// not messages for receivers.
    fn compute(&mut self, start: i64, period: i64) -> Result<(), E> {
        let step = (period / 4 / i64::from(self.program.internal + 1)).max(2);
        for rank in (0..self.program.ranks()).map(LocationId) {
            let mut at = start.max(self.now[rank.index()]);
            for _ in 0..self.program.internal {
                at = at.max(self.now[rank.index()]) + self.random.i64(1..step);
                self.event(rank, at, Event::Note("work"))?;
            }
            let now = &mut self.now[rank.index()];
            *now = (*now).max(start + period / 4);
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), E> {
        self.messages.clear();
        let ranks = self.program.ranks();
        let mut planned = vec![];
        if self.fixed.is_empty() {
            let mut order: Vec<_> = (0..ranks).collect();
            self.random.shuffle(&mut order);
            for pair in order.chunks_exact(2) {
                planned.extend([(pair[0], pair[1], 0), (pair[1], pair[0], 0)]);
            }
        }
        for (from, receivers) in (0..).zip(&self.fixed) {
            planned.extend((0..).zip(receivers).map(|(tag, to)| (from, *to, tag)));
        }
        if self.program.asynchronous {
            // The second message of a channel may be received first.
            planned = planned.iter().flat_map(|message| [*message; 2]).collect();
            for (request, (_, to, _)) in (0..).zip(&planned) {
                let at = self.shortly(LocationId(*to));
                self.event(LocationId(*to), at, Event::PostReceive { request })?;
            }
        }
        let mut planned = (0..).zip(planned);
        planned.try_for_each(|(request, (from, to, tag))| self.send_one(from, to, tag, request))
    }

    fn send_one(&mut self, from: u32, to: u32, tag: i32, request: u64) -> Result<(), E> {
        let sender = LocationId(from);
        let at = self.shortly(sender);
        let truth = self.event(
            sender,
            at,
            Event::Send {
                to,
                communicator: WORLD.into(),
                tag,
                request: None,
                bytes: None,
            },
        )?;
        let shown = truth as f64 + self.error(self.nodes[from as usize], truth);
        self.messages.push(MessageInFlight {
            from,
            to,
            tag,
            truth,
            shown,
            request,
        });
        Ok(())
    }

    /// Receives all messages, those of a receiver in random order.
    fn receive(&mut self) -> Result<(), E> {
        let mut messages = std::mem::take(&mut self.messages);
        self.random.shuffle(&mut messages);
        messages.sort_by_key(|message| message.to);
        for message in &messages {
            let receiver = LocationId(message.to);
            let latency = self.latency(message.from, message.to);
            let there = message.truth + latency + self.jitter();
            let at =
                self.when_received(message, latency, there.max(self.now[receiver.index()] + 1));
            let receive = Event::Receive {
                from: message.from,
                communicator: WORLD.into(),
                tag: message.tag,
                request: self.program.asynchronous.then_some(message.request),
                bytes: None,
            };
            self.event(receiver, at, receive)?;
        }
        self.messages = messages;
        Ok(())
    }

    /// Returns when a message is received that could be received at `at`: later, if too many
    /// messages have violated their latencies.
    fn when_received(&mut self, message: &MessageInFlight, latency: i64, at: i64) -> i64 {
        let error = self.error(self.nodes[message.to as usize], at);
        let early = message.shown + latency as f64 - (at as f64 + error);
        self.received += 1;
        if early <= 0.0 {
            return at;
        }
        if (self.violated as f64) < self.program.violated * self.received as f64 {
            self.violated += 1;
            return at;
        }
        // Margin for rounding, and for the drift of the clock in the meantime.
        at + (early * 1.001) as i64 + 5
    }

    fn latency(&self, from: u32, to: u32) -> i64 {
        let is_near = self.nodes[from as usize] == self.nodes[to as usize];
        self.latencies[if is_near { 1 } else { 2 }]
    }

    /// Error of a clock after interpolation.
    fn error(&mut self, node: u32, truth: i64) -> f64 {
        let InterpolatedClock {
            from,
            offset,
            drift,
        } = self.expected[node as usize];
        let shown = self.clocks.show(node, truth);
        (shown - truth) as f64 - offset - drift * (shown as f64 - from)
    }
}

/// Fits the line through the middles of the first and the last session.
fn expected(program: &SyntheticProgram, clocks: &mut WrongClocks, node: u32) -> InterpolatedClock {
    let middle = i64::from(program.samples.saturating_sub(1)) * SAMPLE_SPACING / 2;
    let mut sessions = program.session_starts();
    let mut ahead = |start: i64| {
        let shown = clocks.show(node, start + middle);
        (shown, (shown - start - middle) as f64)
    };
    let Some((from, offset)) = sessions.next().map(&mut ahead) else {
        return InterpolatedClock::default();
    };
    let last = sessions.last().map(&mut ahead);
    let drift = last.map_or(0.0, |(to, later)| (later - offset) / (to - from) as f64);
    InterpolatedClock {
        from: from as f64,
        offset,
        drift,
    }
}
