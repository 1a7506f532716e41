//! Forward amortization: moves receives that came too early forward, and the events after them by a
//! distance that decreases with time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::PoisonError;
use std::thread;

use crate::{ClockRule, ControlVariable, LogicalClock};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::gates::{Gates, follows};
use super::primitives::Mutex;
use super::stamps::{Stamps, tell};
use super::trace::{Location, Role};
use super::workers::Post;
use super::{Latencies, LocationId, Trace};

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
    pub(super) forward: Forward<'a>,
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
    /// Returns the initial state; `beyond` is the number of enters of a collective operation that
    /// are not in its slots. `stamps` must be cleared, and hold the jumps of receives and exits
    /// afterwards. The memory of `times` is reused.
    pub(super) fn begin(
        &self,
        stamps: &'a Stamps,
        times: Times,
        beyond: impl Fn(u32) -> u32,
    ) -> Shared<'a> {
        let locations = self.trace.locations.iter().zip(0..).zip(times);
        let replays = locations.map(|((trace, location), mut corrected)| {
            corrected.clear();
            corrected.reserve_exact(trace.times.len());
            let start = trace.times.first().copied().unwrap_or(Timestamp::ORIGIN);
            Mutex::new(Replay {
                location,
                trace,
                clock: LogicalClock::new(self.rule, start),
                mark: 0,
                corrected,
                error: Duration::ZERO,
            })
        });
        let awake = (0..self.groups.len()).map(|worker| self.locations(worker).count());
        Shared {
            forward: *self,
            stamps,
            gates: Gates::new(self.trace, self.latencies, beyond),
            post: Post::new(self.groups.len(), awake.sum()),
            replays: replays.collect(),
        }
    }

    /// Returns the locations of a worker, without those that have no events here.
    pub(super) fn locations(&self, worker: usize) -> impl Iterator<Item = u32> + use<'a> {
        let Self { trace, groups, .. } = *self;
        let has_events = |location: &usize| !trace.locations[*location].times.is_empty();
        groups[worker]
            .clone()
            .filter(has_events)
            .map(|location| location as u32)
    }
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

    /// Ends the replay, after all workers have stopped: returns the pass and the corrected times of
    /// all events.
    pub(super) fn end(self) -> (Pass, Times) {
        let replays = self.replays.into_iter();
        let replays =
            replays.map(|replay| replay.into_inner().unwrap_or_else(PoisonError::into_inner));
        let mut error = Duration::ZERO;
        let times = replays.map(|replay| {
            error = error.max(replay.error);
            replay.corrected
        });
        let (control, times) = (self.forward.rule.control, times.collect());
        (Pass { control, error }, times)
    }

    /// Replays all locations on all workers, the first of them on the calling thread, which calls
    /// `when_all_wait` when no location can continue, to add woken ones. Returns when that returns
    /// false.
    pub(super) fn work_all(&self, mut when_all_wait: impl FnMut(&mut VecDeque<u32>) -> bool) {
        thread::scope(|scope| {
            let _attendance = self.post.attend();
            let mut ready: VecDeque<u32> = self.forward.locations(0).collect();
            for worker in 1..self.forward.groups.len() {
                let work = move || self.work(worker, &mut self.forward.locations(worker).collect());
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    // The system gives no more threads.
                    ready.extend(self.forward.locations(worker));
                }
            }
            loop {
                self.work(0, &mut ready);
                if !when_all_wait(&mut ready) {
                    return self.post.end();
                }
                ready.iter().for_each(|_| self.post.rouse());
            }
        });
    }

    /// Replays locations, starting with `ready`, until the work is over; as the first worker, until
    /// all locations wait.
    ///
    /// A worker that wakes a location replays it itself: the data that it waited for is in the
    /// cache, and communication between threads for each message would take longer than the replay.
    /// Only workers with many runnable locations hand some to others. Locations are replayed in the
    /// order in which they were woken: by then more of their data is there, so that they get
    /// farther in one turn.
    pub(super) fn work(&self, worker: usize, ready: &mut VecDeque<u32>) {
        let _attendance = self.post.attend();
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
                    self.post.leave_half(ready);
                }
            }
            if !self.post.receive(worker, ready) {
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
