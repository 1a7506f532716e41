//! Forward amortization: moves receives that came too early forward, and the events after them by a
//! distance that decreases with time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::PoisonError;
use std::thread;

use crate::logical::{ClockRule, ControlVariable, LogicalClock};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::extremes::NEVER;
use super::gates::{Gates, follows};
use super::primitives::{Mutex, MutexGuard};
use super::stamps::{Stamps, tell};
use super::timeline::Run;
use super::trace::{Location, Role};
use super::workers::Post;
use super::{Latencies, LocationId, Trace};

/// Corrected times of all locations, by location.
pub(super) type Times = Vec<Vec<Timestamp<Global>>>;

/// Inputs of a forward pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward<'a> {
    pub(super) trace: &'a Trace,
    pub(super) rule: ClockRule,
    pub(super) latencies: Latencies,
    /// Locations of every worker, which replays the clocks whose first location is among them.
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

/// State of a clock that is replayed.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    /// Runs of events that are not complete.
    runs: &'a [Run],
    /// True if the next event is on another location than the last one.
    is_elsewhere: bool,
    clock: LogicalClock<Global>,
    pub(super) parts: Vec<ReplayPart<'a>>,
    error: Duration,
}

/// State of a location whose clock is replayed.
#[derive(Debug)]
pub(super) struct ReplayPart<'a> {
    pub(super) location: u32,
    pub(super) trace: &'a Location,
    /// Index of the next mark.
    pub(super) mark: usize,
    /// Corrected times of the events replayed so far.
    corrected: Vec<Timestamp<Global>>,
}

/// State shared by all workers.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) forward: Forward<'a>,
    pub(super) stamps: &'a Stamps,
    pub(super) gates: Gates<'a>,
    pub(super) post: Post,
    /// State of all clocks, by their first locations. A clock that is awake belongs to exactly one
    /// worker.
    pub(super) replays: Vec<Mutex<Replay<'a>>>,
}

/// Reason to interrupt the replay of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It waits for another clock, or is complete.
    Rest,
    /// Its turn is over.
    Pause,
}

/// Number of events in one turn of a clock; loom can only explore a few.
const TURN: usize = if cfg!(downbeat_loom) { 4 } else { 1 << 13 };

/// Minimum number of runnable clocks from which a worker hands some to others even if their
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
        let timelines = self.trace.timelines();
        let mut times: Vec<_> = times.into_iter().map(Some).collect();
        let replays = (0..self.trace.locations.len() as u32).map(|clock| {
            let timeline = timelines.of(clock);
            let parts = timeline.locations.iter().map(|location| {
                let trace = &self.trace.locations[*location as usize];
                let mut corrected = times[*location as usize].take().unwrap_or_default();
                corrected.clear();
                corrected.reserve_exact(trace.times.len());
                ReplayPart {
                    location: *location,
                    trace,
                    mark: 0,
                    corrected,
                }
            });
            let parts: Vec<_> = parts.collect();
            let first = timeline.runs.first();
            let start = first.and_then(|run| parts[run.part as usize].trace.times.first());
            Mutex::new(Replay {
                runs: &timeline.runs,
                is_elsewhere: false,
                clock: LogicalClock::new(self.rule, start.copied().unwrap_or(Timestamp::ORIGIN)),
                parts,
                error: Duration::ZERO,
            })
        });
        let awake = (0..self.groups.len()).map(|worker| self.clocks(worker).count());
        Shared {
            forward: *self,
            stamps,
            gates: Gates::new(self.trace, self.latencies, beyond),
            post: Post::new(self.groups.len(), awake.sum()),
            replays: replays.collect(),
        }
    }

    /// Returns the clocks that a worker starts with, without those that have no events here.
    pub(super) fn clocks(&self, worker: usize) -> impl Iterator<Item = u32> + use<'a> {
        let Self { trace, groups, .. } = *self;
        let has_events = |clock: &u32| !trace.timelines().of(*clock).is_empty();
        let locations = groups[worker].clone();
        locations.map(|location| location as u32).filter(has_events)
    }
}

impl<'a> Shared<'a> {
    /// Returns the clocks that are not complete, in order.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = u32> + '_ {
        let clocks = 0..self.replays.len() as u32;
        clocks.filter(move |clock| !self.replay_of(*clock).is_done())
    }

    /// Returns the state of a clock, given by its first location.
    pub(super) fn replay_of(&self, clock: u32) -> MutexGuard<'_, Replay<'a>> {
        self.replays[clock as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `see` with the state of a location.
    pub(super) fn with_part<R>(&self, location: u32, see: impl FnOnce(&ReplayPart<'_>) -> R) -> R {
        let trace = self.forward.trace;
        let replay = self.replay_of(trace.locations[location as usize].clock);
        see(&replay.parts[trace.timelines().part(location) as usize])
    }

    /// Ends the replay, after all workers have stopped: returns the pass and the corrected times of
    /// all events.
    pub(super) fn end(self) -> (Pass, Times) {
        let replays = self.replays.into_iter();
        let replays =
            replays.map(|replay| replay.into_inner().unwrap_or_else(PoisonError::into_inner));
        let mut error = Duration::ZERO;
        let mut times: Times = self
            .forward
            .trace
            .locations
            .iter()
            .map(|_| vec![])
            .collect();
        for replay in replays {
            error = error.max(replay.error);
            for part in replay.parts {
                times[part.location as usize] = part.corrected;
            }
        }
        let control = self.forward.rule.control;
        (Pass { control, error }, times)
    }

    /// Replays all clocks on all workers, the first of them on the calling thread, which calls
    /// `when_all_wait` when no clock can continue, to add woken ones. Returns when that returns
    /// false.
    pub(super) fn work_all(&self, mut when_all_wait: impl FnMut(&mut VecDeque<u32>) -> bool) {
        thread::scope(|scope| {
            let _attendance = self.post.attend();
            let mut ready: VecDeque<u32> = self.forward.clocks(0).collect();
            for worker in 1..self.forward.groups.len() {
                let work = move || self.work(worker, &mut self.forward.clocks(worker).collect());
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    // The system gives no more threads.
                    ready.extend(self.forward.clocks(worker));
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

    /// Replays clocks, starting with `ready`, until the work is over; as the first worker, until
    /// all clocks wait.
    ///
    /// A worker that wakes a clock replays it itself: the data that it waited for is in the
    /// cache, and communication between threads for each message would take longer than the replay.
    /// Only workers with many runnable clocks hand some to others. Clocks are replayed in the
    /// order in which they were woken: by then more of their data is there, so that they get
    /// farther in one turn.
    pub(super) fn work(&self, worker: usize, ready: &mut VecDeque<u32>) {
        let _attendance = self.post.attend();
        loop {
            while let Some(clock) = ready.pop_front() {
                // The worker that replayed it last may still be about to report that the clock
                // sleeps.
                let mut replay = self.replay_of(clock);
                let (stop, events) = self.replay(&mut replay, |woken| {
                    self.post.rouse();
                    ready.push_back(woken);
                });
                let was_long = events >= TURN / 4;
                drop(replay);
                match stop {
                    Stop::Pause => ready.push_front(clock),
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

    /// Replays a clock for a turn, or until it has to wait for another. Returns the number of its
    /// events, too. `wake` receives the clocks that waited for one of them.
    fn replay(&self, replay: &mut Replay<'_>, mut wake: impl FnMut(u32)) -> (Stop, usize) {
        let mut left = TURN;
        while let Some((run, rest)) = replay.runs.split_first() {
            let part = run.part as usize;
            let start = replay.parts[part].corrected.len();
            let end = (run.end as usize).min(start + left);
            let is_blocked = !self.replay_run(replay, part, end, &mut wake);
            left -= replay.parts[part].corrected.len() - start;
            if is_blocked {
                return (Stop::Rest, TURN - left);
            }
            if end < run.end as usize {
                return (Stop::Pause, TURN - left);
            }
            replay.runs = rest;
            replay.is_elsewhere = true;
        }
        (Stop::Rest, TURN - left)
    }

    /// Replays a location up to the event `end`; returns false if its clock has to wait for another.
    #[inline]
    fn replay_run(
        &self,
        replay: &mut Replay<'_>,
        part: usize,
        end: usize,
        wake: &mut impl FnMut(u32),
    ) -> bool {
        let trace = self.forward.trace;
        let clock_of = |location: u32| trace.locations[location as usize].clock;
        let of = &replay.parts[part];
        let (this, marks, mut next) = (of.location, &of.trace.marks, of.mark);
        let (own, clock) = (self.stamps.all_of(this as usize), clock_of(this));
        while let Some((mark, word)) = marks.get(next).zip(own.get(next)) {
            if mark.event as usize >= end {
                break;
            }
            let earliest = match mark.role() {
                // Events of one clock stay in their order.
                Role::Receive if clock_of(mark.peer()) == clock => Some(NEVER),
                Role::Receive => self
                    .stamps
                    .get_or_wait(mark.peer(), mark.partner)
                    .map(|sent| sent.saturating_add(self.latency(mark.peer(), this))),
                Role::Exit => {
                    let exit = (this, next as u32);
                    self.gates
                        .exit(mark.partner, mark.peer(), exit, self.stamps)
                }
                _ => Some(NEVER),
            };
            let Some(earliest) = earliest else {
                replay.parts[part].mark = next;
                return false;
            };
            replay.advance(part, mark.event as usize + 1);
            match mark.role() {
                Role::Send => {
                    if tell(word, replay.clock.now().as_nanos()) {
                        wake(clock_of(mark.peer()));
                    }
                }
                Role::Enter => {
                    let time = replay.clock.now().as_nanos();
                    tell(word, time);
                    let wake = |location| wake(clock_of(location));
                    self.gates
                        .enter(mark.partner, this, time, self.stamps, wake);
                }
                Role::Receive | Role::Exit => {
                    let jump = replay.receive(part, earliest);
                    word.store(jump.as_nanos(), std::sync::atomic::Ordering::Relaxed);
                }
                Role::Nothing => {}
            }
            next += 1;
        }
        replay.parts[part].mark = next;
        replay.advance(part, end);
        true
    }

    #[inline]
    fn latency(&self, from: u32, to: u32) -> i64 {
        let [from, to] = [from, to].map(|location| self.forward.trace.site(LocationId(location)));
        self.forward.latencies.between_sites(from, to).as_nanos()
    }
}

impl Replay<'_> {
    /// Corrects all events of a location before this one.
    #[inline]
    fn advance(&mut self, part: usize, event: usize) {
        let Self {
            clock,
            parts,
            is_elsewhere,
            error,
            ..
        } = self;
        let ReplayPart {
            trace, corrected, ..
        } = &mut parts[part];
        let mut next = trace
            .times
            .get(corrected.len()..event.min(trace.times.len()))
            .unwrap_or_default();
        if let ([first, others @ ..], true) = (next, *is_elsewhere) {
            let before = corrected.len().checked_sub(1);
            let last = before.map(|last| [trace.times[last], corrected[last]]);
            corrected.push(clock.advance_elsewhere(*first, last));
            *error = (*error).max(clock.displacement());
            next = others;
            *is_elsewhere = false;
        }
        corrected.extend(next.iter().map(|time| clock.advance(*time)));
    }

    /// Handles a receive or exit, the last event, whose earliest possible time was not known
    /// before.
    #[inline]
    fn receive(&mut self, part: usize, earliest: i64) -> Duration {
        if !follows(earliest) {
            return Duration::ZERO;
        }
        let jump = self.clock.receive(Timestamp::from_nanos(earliest));
        if jump > Duration::ZERO {
            if let Some(last) = self.parts[part].corrected.last_mut() {
                *last = self.clock.now();
            }
            self.error = self.error.max(self.clock.displacement());
        }
        jump
    }

    pub(super) fn is_done(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the location of the next event.
    pub(super) fn next(&self) -> Option<&ReplayPart<'_>> {
        let run = self.runs.first()?;
        self.parts.get(run.part as usize)
    }
}
