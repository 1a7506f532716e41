//! Forward amortization: moves receives that came too early forward, and the events after them by a
//! distance that decreases with time.

use std::collections::VecDeque;

use crate::logical::{ClockRule, ControlVariable, LogicalClock};
use downbeat_clock_core::{Duration, Global, Timestamp};

use super::array::Access;
use super::extremes::NEVER;
use super::gates::{Gates, follows};
use super::read_ahead::ReadAhead;
use super::stamps::Stamps;
use super::timeline::Run;
use super::trace::{Location, Role};
use super::{Array, Latencies, LocationId, NoRoom, Trace};

/// Corrected times of all locations, by location.
pub(super) type Times = Vec<Array<Timestamp<Global>>>;

/// Summary of one forward pass over a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardPass {
    /// Control variable of the pass.
    pub control: ControlVariable,
    /// Maximum distance by which an event was moved.
    pub error: Duration,
}

/// Replay of all events of a trace.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    pub(super) trace: &'a Trace,
    latencies: Latencies,
    pub(super) stamps: &'a mut Stamps,
    pub(super) gates: Gates<'a>,
    /// State of all clocks, by their first locations.
    clocks: Vec<ClockReplay<'a>>,
}

/// State of a clock that is replayed.
#[derive(Debug)]
struct ClockReplay<'a> {
    /// Runs of events that are not complete.
    runs: &'a [Run],
    /// True if the next event is on another location than the last one.
    is_elsewhere: bool,
    clock: LogicalClock<Global>,
    parts: Vec<ReplayPart<'a>>,
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
    corrected: Array<Timestamp<Global>>,
    marks_ahead: ReadAhead,
    times_ahead: ReadAhead,
}

impl<'a> Replay<'a> {
    /// Returns the initial state. `stamps` must be cleared, and hold the jumps of
    /// receives and exits and the limits of sends afterwards. The room of `times` is
    /// reused: an array for each location, or no array in the first pass.
    pub(super) fn new(
        trace: &'a Trace,
        rule: ClockRule,
        latencies: Latencies,
        stamps: &'a mut Stamps,
        mut times: Times,
    ) -> Result<Self, NoRoom> {
        let timelines = trace.timelines();
        trace.store.expect(Access::InTurns);
        let empty = || Array::new(trace.store.clone());
        times.resize_with(trace.locations.len(), empty);
        let clocks = (0..trace.locations.len() as u32).map(|clock| {
            let timeline = timelines.of(clock);
            let parts = timeline.locations.iter().map(|location| {
                let of = &trace.locations[*location as usize];
                let mut corrected = std::mem::take(&mut times[*location as usize]);
                corrected.clear();
                corrected.reserve_exact(of.times.len())?;
                Ok(ReplayPart {
                    location: *location,
                    trace: of,
                    mark: 0,
                    corrected,
                    marks_ahead: ReadAhead::new(&trace.store),
                    times_ahead: ReadAhead::new(&trace.store),
                })
            });
            let parts: Vec<_> = parts.collect::<Result<_, NoRoom>>()?;
            let first = timeline.runs.first();
            let start = first.and_then(|run| parts[run.part as usize].trace.times.first());
            Ok(ClockReplay {
                runs: &timeline.runs,
                is_elsewhere: false,
                clock: LogicalClock::new(rule, start.copied().unwrap_or(Timestamp::ORIGIN)),
                parts,
                error: Duration::ZERO,
            })
        });
        Ok(Self {
            trace,
            latencies,
            stamps,
            gates: Gates::new(trace, latencies)?,
            clocks: clocks.collect::<Result<_, NoRoom>>()?,
        })
    }

    /// Returns the clocks that are not complete, in order.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = u32> + '_ {
        let clocks = (0..).zip(&self.clocks);
        clocks.filter_map(|(clock, of)| (!of.runs.is_empty()).then_some(clock))
    }

    /// Returns the location of the next event of a clock, given by its first location.
    pub(super) fn next_part(&self, clock: u32) -> Option<&ReplayPart<'a>> {
        let of = self.clocks.get(clock as usize)?;
        of.parts.get(of.runs.first()?.part as usize)
    }

    /// Returns the state of a location.
    pub(super) fn part_of(&self, location: u32) -> &ReplayPart<'a> {
        let trace = self.trace;
        let clock = trace.locations[location as usize].clock;
        &self.clocks[clock as usize].parts[trace.timelines().part(location) as usize]
    }

    /// Returns the maximum distance by which an event was moved.
    pub(super) fn error(&self) -> Duration {
        let errors = self.clocks.iter().map(|clock| clock.error);
        errors.max().unwrap_or(Duration::ZERO)
    }

    /// Ends the replay: returns the corrected times of all events.
    pub(super) fn end(self) -> Times {
        let all = self.trace.locations.iter();
        let mut times: Times = all.map(|_| Array::default()).collect();
        for clock in self.clocks {
            for part in clock.parts {
                times[part.location as usize] = part.corrected;
            }
        }
        self.trace.store.expect(Access::InOrder);
        times
    }

    /// Replays these clocks, and those that they wake, until all of them wait or are
    /// complete.
    ///
    /// Clocks are replayed in the order in which they were woken: by then more of their
    /// data is there, so that they get farther at once.
    pub(super) fn run(&mut self, ready: &mut VecDeque<u32>) {
        while let Some(clock) = ready.pop_front() {
            while let Some(run) = self.clocks[clock as usize].runs.first().copied() {
                if !self.replay_run(clock, run, ready) {
                    break;
                }
                let of = &mut self.clocks[clock as usize];
                (of.runs, of.is_elsewhere) = (&of.runs[1..], true);
            }
        }
    }

    /// Replays the rest of a run of events of a clock; returns false if it has to wait
    /// for another clock. Clocks that waited for one of the events become `ready`.
    #[inline]
    fn replay_run(&mut self, clock: u32, run: Run, ready: &mut VecDeque<u32>) -> bool {
        let (trace, latencies) = (self.trace, self.latencies);
        let latency =
            |from: u32, to: u32| latencies.between(trace, LocationId(from), LocationId(to));
        let clock_of = |location: u32| trace.locations[location as usize].clock;
        let (replay, part) = (&mut self.clocks[clock as usize], run.part as usize);
        let of = &mut replay.parts[part];
        of.read_marks_ahead(trace, self.stamps);
        let (this, marks, mut next) = (of.location, &of.trace.marks[..], of.mark);
        while let Some(mark) = marks.get(next).filter(|mark| mark.event < run.end) {
            let at = next as u32;
            let (peer, partner) = (mark.peer(), mark.partner);
            // Events of one clock stay in their order.
            let is_within = mark.role() == Role::Receive && clock_of(peer) == clock;
            let earliest = match mark.role() {
                Role::Receive if !is_within => {
                    let sent = self.stamps.time_or_wait(peer, partner);
                    sent.map(|sent| sent.saturating_add(latency(peer, this).as_nanos()))
                }
                Role::Exit => self.gates.exit(partner, peer, (this, at), self.stamps),
                _ => Some(NEVER),
            };
            let Some(earliest) = earliest else {
                replay.parts[part].mark = next;
                return false;
            };
            replay.advance(part, mark.event as usize + 1);
            match mark.role() {
                Role::Send => {
                    if self.stamps.publish(this, at, replay.clock.now().as_nanos()) {
                        ready.push_back(clock_of(peer));
                    }
                }
                Role::Enter => {
                    let time = replay.clock.now().as_nanos();
                    self.stamps.set(this, at, time);
                    let wake = |location| ready.push_back(clock_of(location));
                    self.gates.enter(partner, this, time, self.stamps, wake);
                }
                Role::Receive | Role::Exit => {
                    let jump = replay.receive(part, earliest);
                    self.stamps.set(this, at, jump.as_nanos());
                    if mark.role() == Role::Receive {
                        let limit = match is_within {
                            true => i64::MAX,
                            false => (replay.clock.now() - latency(peer, this)).as_nanos(),
                        };
                        self.stamps.set(peer, partner, limit);
                    }
                }
                Role::Nothing => {}
            }
            next += 1;
        }
        replay.parts[part].mark = next;
        replay.advance(part, run.end as usize);
        true
    }
}

impl ReplayPart<'_> {
    /// Has the kernel read further marks and their stamps from a file, if they are needed soon.
    #[inline]
    fn read_marks_ahead(&mut self, trace: &Trace, stamps: &Stamps) {
        if self.mark >= self.marks_ahead.next {
            let part = self.marks_ahead.read(&self.trace.marks, self.mark);
            let words = stamps.words_of(self.location as usize);
            trace.store.read_soon(words.get(part).unwrap_or_default());
        }
    }
}

impl ClockReplay<'_> {
    /// Corrects all events of a location before this one.
    #[inline]
    fn advance(&mut self, part: usize, event: usize) {
        while let ReplayPart {
            trace, times_ahead, ..
        } = &mut self.parts[part]
            && event > times_ahead.next
        {
            let read = times_ahead.next;
            times_ahead.read(&trace.times, read);
            self.advance_in_memory(part, read);
        }
        self.advance_in_memory(part, event);
    }

    #[inline]
    fn advance_in_memory(&mut self, part: usize, event: usize) {
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
            corrected.extend_within([clock.advance_elsewhere(*first, last)].into_iter());
            *error = (*error).max(clock.displacement());
            next = others;
            *is_elsewhere = false;
        }
        corrected.extend_within(next.iter().map(|time| clock.advance(*time)));
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
}
