//! Forward amortization: moves receives that came too early forward, and the events after them by a
//! distance that decreases with time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::PoisonError;

use crate::{ClockRule, ControlVariable, LogicalClock};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::cycle::Cycle;
use super::gates::{Gates, follows};
use super::primitives::Mutex;
use super::stamps::{Stamps, tell};
use super::trace::{Location, Role};
use super::workers::{Post, share};
use super::{EventId, Latencies, LocationId, Trace};

/// Corrected times of all locations.
pub(super) type Times = Vec<Vec<Timestamp<Global>>>;

/// Inputs of a forward pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward<'a> {
    pub(super) trace: &'a Trace,
    pub(super) rule: ClockRule,
    pub(super) latencies: Latencies,
    /// Locations of every worker.
    pub(super) groups: &'a [Range<usize>],
}

/// Summary of one forward pass over a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Control variable of the pass.
    pub control: ControlVariable,
    /// Maximum distance by which an event was moved.
    pub error: Duration,
}

/// State of a location that is replayed.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    location: u32,
    pub(super) trace: &'a Location,
    clock: LogicalClock<Global>,
    /// Index of the next mark.
    pub(super) mark: usize,
    /// Corrected times of the events replayed so far.
    corrected: Vec<Timestamp<Global>>,
    error: Duration,
}

/// State shared by all workers.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    forward: Forward<'a>,
    pub(super) stamps: &'a Stamps,
    pub(super) gates: Gates<'a>,
    pub(super) post: Post,
    /// State of all locations. A location that is awake belongs to exactly one worker.
    pub(super) replays: Vec<Mutex<Replay<'a>>>,
}

/// Reason to interrupt the replay of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It waits for another location, or is complete.
    Rest,
    /// Its turn is over.
    Pause,
}

/// Number of events in one turn of a location; loom can only explore a few.
const TURN: usize = if cfg!(loom) { 4 } else { 1 << 13 };

/// Minimum number of runnable locations from which a worker hands some to others even if their
/// turns are short. With fewer, the communication takes longer than the gain.
const MANY: usize = 256;

impl<'a> Forward<'a> {
    /// Replays a trace; `stamps` must be cleared, and hold the jumps of receives and exits
    /// afterwards. The memory of `times` is reused.
    ///
    /// # Errors
    /// If events wait for each other in a cycle.
    pub(super) fn run(&self, stamps: &'a Stamps, times: Times) -> Result<(Pass, Times), Cycle> {
        let shared = self.begin(stamps, times, self.trace.locations.len(), |_| 0);
        share(self.groups.to_vec(), |worker, group| {
            shared.work(worker, group.map(|location| location as u32));
        });
        let (replays, gates) = shared.end();
        if let Some(stuck) = replays.iter().find(|replay| !replay.is_done()) {
            return Err(cycle(stuck.location, &replays, &gates, stamps));
        }
        let error = largest_error(&replays);
        Ok((
            Pass {
                control: self.rule.control,
                error,
            },
            corrected(replays),
        ))
    }

    /// Returns the initial state; `awake` is the number of locations that are awake, and `beyond`
    /// the number of enters of a collective operation that are not in its slots.
    pub(super) fn begin(
        &self,
        stamps: &'a Stamps,
        times: Times,
        awake: usize,
        beyond: impl Fn(u32) -> u32,
    ) -> Shared<'a> {
        let locations = &self.trace.locations;
        let replays =
            locations
                .iter()
                .zip(0..)
                .zip(times)
                .map(|((trace, location), mut corrected)| {
                    corrected.clear();
                    corrected.reserve_exact(trace.times.len());
                    let start = trace.times.first().copied().unwrap_or(Timestamp::ORIGIN);
                    let clock = LogicalClock::new(self.rule, start);
                    Mutex::new(Replay {
                        location,
                        trace,
                        clock,
                        mark: 0,
                        corrected,
                        error: Duration::ZERO,
                    })
                });
        Shared {
            forward: *self,
            stamps,
            gates: Gates::new(self.trace, self.latencies, beyond),
            post: Post::new(self.groups.len(), awake),
            replays: replays.collect(),
        }
    }
}

/// Returns the maximum distance by which an event was moved.
pub(super) fn largest_error(replays: &[Replay<'_>]) -> Duration {
    replays
        .iter()
        .map(|replay| replay.error)
        .max()
        .unwrap_or_default()
}

/// Returns the corrected times of all events.
pub(super) fn corrected(replays: Vec<Replay<'_>>) -> Times {
    replays.into_iter().map(|replay| replay.corrected).collect()
}

impl<'a> Shared<'a> {
    /// Returns the locations that are not complete, in order.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = u32> + '_ {
        let is_done = |location: usize| {
            let replay = self.replays[location].lock();
            replay.unwrap_or_else(PoisonError::into_inner).is_done()
        };
        (0..self.replays.len())
            .filter(move |location| !is_done(*location))
            .map(|location| location as u32)
    }

    /// Ends the replay, after all workers have stopped.
    pub(super) fn end(self) -> (Vec<Replay<'a>>, Gates<'a>) {
        let replays = self
            .replays
            .into_iter()
            .map(|replay| replay.into_inner().unwrap_or_else(PoisonError::into_inner));
        (replays.collect(), self.gates)
    }

    /// Replays locations, starting with `ready`, until no worker has any left.
    ///
    /// A worker that wakes a location replays it itself: the data that it waited for is in the
    /// cache, and communication between threads for each message would take longer than the replay.
    /// Only workers with many runnable locations hand some to others. Locations are replayed in the
    /// order in which they were woken: by then more of their data is there, so that they get
    /// farther in one turn.
    pub(super) fn work(&self, worker: usize, ready: impl IntoIterator<Item = u32>) {
        let _attendance = self.post.attend();
        let mut ready: VecDeque<u32> = ready.into_iter().collect();
        loop {
            while let Some(location) = ready.pop_front() {
                // The worker that replayed it last may still be about to report that the location
                // sleeps.
                let mut replay = self.replays[location as usize]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let before = replay.corrected.len();
                let stop = self.replay(&mut replay, |woken| {
                    self.post.rouse();
                    ready.push_back(woken);
                });
                let was_long = replay.corrected.len() - before >= TURN / 4;
                drop(replay);
                match stop {
                    Stop::Pause => ready.push_front(location),
                    Stop::Rest => self.post.rest(),
                }
                let has_enough = ready.len() > MANY || (was_long && ready.len() > 1);
                if has_enough && self.post.has_idle() {
                    self.post.leave_half(&mut ready);
                }
            }
            if !self.post.receive(worker, &mut ready) {
                return;
            }
        }
    }

    /// Replays a location for a turn, or until it has to wait for another.
    fn replay(&self, replay: &mut Replay<'_>, mut wake: impl FnMut(u32)) -> Stop {
        let this = replay.location;
        let own = self.stamps.all_of(this as usize);
        let marks = &replay.trace.marks;
        let turn = replay.corrected.len() + TURN;
        while let Some((mark, word)) = marks.get(replay.mark).zip(own.get(replay.mark)) {
            if mark.event as usize >= turn {
                replay.advance(turn);
                return Stop::Pause;
            }
            let earliest = match mark.role() {
                Role::Receive => match self.stamps.get_or_wait(mark.peer(), mark.partner) {
                    Some(sent) => sent.saturating_add(self.latency(mark.peer(), this)),
                    None => return Stop::Rest,
                },
                Role::Exit => {
                    let id = replay.mark as u32;
                    match self
                        .gates
                        .exit(mark.partner, mark.peer(), this, id, self.stamps)
                    {
                        Some(earliest) => earliest,
                        None => return Stop::Rest,
                    }
                }
                _ => i64::MIN,
            };
            replay.advance(mark.event as usize + 1);
            match mark.role() {
                Role::Send => {
                    if tell(word, replay.clock.now().as_nanos()) {
                        wake(mark.peer());
                    }
                }
                Role::Enter => {
                    let time = replay.clock.now().as_nanos();
                    tell(word, time);
                    self.gates
                        .enter(mark.partner, this, time, self.stamps, &mut wake);
                }
                Role::Receive | Role::Exit => {
                    let jump = replay.receive(earliest);
                    word.store(jump.as_nanos(), std::sync::atomic::Ordering::Relaxed);
                }
                Role::Nothing => {}
            }
            replay.mark += 1;
        }
        replay.advance(turn);
        if replay.is_done() {
            Stop::Rest
        } else {
            Stop::Pause
        }
    }

    #[inline]
    fn latency(&self, from: u32, to: u32) -> i64 {
        let [from, to] = [from, to].map(|location| self.forward.trace.site(LocationId(location)));
        self.forward.latencies.between_sites(from, to).as_nanos()
    }
}

/// Finds the cycle of locations that wait for each other, starting from one that waits forever.
fn cycle(stuck: u32, replays: &[Replay<'_>], gates: &Gates<'_>, stamps: &Stamps) -> Cycle {
    let mut seen: Vec<(u32, [EventId; 2])> = vec![];
    let mut at = stuck;
    loop {
        if let Some(start) = seen.iter().position(|(location, _)| *location == at) {
            return Cycle {
                waits: seen[start..].iter().map(|(_, wait)| *wait).collect(),
            };
        }
        let replay = &replays[at as usize];
        let Some(mark) = replay.trace.marks.get(replay.mark) else {
            return Cycle { waits: vec![] };
        };
        let (location, other) = match mark.role() {
            Role::Exit => match gates.missing(mark.partner, mark.peer(), stamps) {
                Some((_, slot)) => (slot.location, slot.enter),
                None => return Cycle { waits: vec![] },
            },
            _ => (mark.peer(), mark.partner),
        };
        let event = |location: u32, event: u32| EventId {
            location: LocationId(location),
            event,
        };
        let other = replays[location as usize].trace.marks[other as usize].event;
        seen.push((at, [event(at, mark.event), event(location, other)]));
        at = location;
    }
}

impl Replay<'_> {
    /// Corrects all events before this one.
    #[inline]
    fn advance(&mut self, event: usize) {
        let Self {
            trace,
            clock,
            corrected,
            ..
        } = self;
        let next = trace
            .times
            .get(corrected.len()..event.min(trace.times.len()))
            .unwrap_or_default();
        corrected.extend(next.iter().map(|time| clock.advance(*time)));
    }

    /// Handles a receive or exit, the last event, whose earliest possible time was not known
    /// before.
    #[inline]
    fn receive(&mut self, earliest: i64) -> Duration {
        if !follows(earliest) {
            return Duration::ZERO;
        }
        let jump = self.clock.receive(Timestamp::from_nanos(earliest));
        if jump > Duration::ZERO {
            if let Some(last) = self.corrected.last_mut() {
                *last = self.clock.now();
            }
            self.error = self.error.max(self.clock.displacement());
        }
        jump
    }

    pub(super) fn is_done(&self) -> bool {
        self.corrected.len() == self.trace.times.len()
    }
}
