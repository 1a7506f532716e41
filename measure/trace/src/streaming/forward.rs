//! Forward amortization of a stream.

use crate::logical::{ClockRule, LogicalClock};
use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::extremes::NEVER;
use super::super::gates::follows;
use super::super::{ControlledLogicalClock, Latencies, Pass, Pattern};
use super::census::Which;
use super::gate::StreamedGate;
use super::{Census, Link, Linked, Record, StreamError, UnderWay};

/// Makes one forward pass over the events of a stream.
#[derive(Debug)]
pub struct StreamedForward<'a> {
    census: &'a Census,
    rule: ClockRule,
    latencies: Latencies,
    /// Clocks with the location of their last event, by their first locations.
    clocks: Vec<Option<(LogicalClock<Global>, u32)>>,
    /// Measured and corrected time of the last event of every location.
    last: Vec<Option<[Timestamp<Global>; 2]>>,
    /// Send times and locations of messages under way.
    sent: UnderWay<(i64, u32)>,
    gates: FxHashMap<Which, StreamedGate>,
    error: Duration,
    /// Number of receives and exits that were too early even after the events before them had been
    /// moved.
    pub jumps: u64,
    /// Number of receives, and of exits that wait for other members.
    pub arrivals: u64,
}

impl<'a> StreamedForward<'a> {
    /// Returns the state before the first event.
    pub fn new(census: &'a Census, rule: ClockRule, latencies: Latencies) -> Self {
        let locations = census.ids().len();
        let (clocks, last) = (vec![None; locations], vec![None; locations]);
        let (sent, gates) = (UnderWay::none(census), FxHashMap::default());
        Self {
            census,
            rule,
            latencies,
            clocks,
            last,
            sent,
            gates,
            error: Duration::ZERO,
            jumps: 0,
            arrivals: 0,
        }
    }

    /// Corrects the next event, which was measured at `time`.
    ///
    /// # Errors
    /// If an event that it waits for has not come.
    #[inline]
    pub fn take(&mut self, event: Linked, time: Timestamp<Global>) -> Result<Record, StreamError> {
        let location = event.id.location.0;
        let this = self.census.site(location);
        let (clock, reader) = self.clocks[this.clock as usize]
            .get_or_insert_with(|| (LogicalClock::new(self.rule, time), location));
        if std::mem::replace(reader, location) == location {
            clock.advance(time);
        } else {
            clock.advance_elsewhere(time, self.last[location as usize]);
            self.error = self.error.max(clock.displacement());
        }
        let mut record = Record {
            event,
            time: 0,
            jump: 0,
        };
        let earliest = match event.link {
            Link::Nothing | Link::LateSend { .. } => None,
            // Events of one clock stay in their order.
            Link::EarlyReceive { .. } => Some(NEVER),
            Link::Send { message } => {
                self.sent
                    .insert(message, (clock.now().as_nanos(), location));
                None
            }
            Link::Receive { message } => self.sent.remove(message).map(|(sent, from)| {
                let from = self.census.site(from);
                match from.clock == this.clock {
                    true => NEVER,
                    false => {
                        sent.saturating_add(self.latencies.between_sites(from, this).as_nanos())
                    }
                }
            }),
            Link::Enter { of } => {
                let gate = self
                    .gates
                    .entry(of.which)
                    .or_insert_with(|| StreamedGate::new(of.members));
                gate.add(of.rank, clock.now().as_nanos(), location);
                None
            }
            Link::Exit {
                receives: false, ..
            } => None,
            Link::Exit { of, kind, root, .. } => {
                let before = (kind.pattern() == Pattern::ToLater).then_some(of.rank);
                let gate = self
                    .gates
                    .entry(of.which)
                    .or_insert_with(|| StreamedGate::new(of.members));
                let to = (this, &self.latencies);
                let counts = |rank| self.census.counts(of.which, kind, root, rank);
                let is_own = |rank| self.census.clock_of_member(of.which, rank) == Some(this.clock);
                let site = |location| self.census.site(location);
                let reach = gate
                    .reach(before, to, Some(&counts), site)
                    .or_else(|| gate.reach_of_others(before, to, (&counts, &is_own), site));
                Some(reach.ok_or(StreamError::Cycle(event.id))?)
            }
        };
        self.arrivals += u64::from(earliest.is_some());
        if let Some(earliest) = earliest.filter(|earliest| follows(*earliest)) {
            let jump = clock.receive(Timestamp::from_nanos(earliest));
            if jump > Duration::ZERO {
                self.error = self.error.max(clock.displacement());
                self.jumps += 1;
                record.jump = jump.as_nanos();
            }
        }
        record.time = clock.now().as_nanos();
        self.last[location as usize] = Some([time, clock.now()]);
        if let Link::Enter { of } | Link::Exit { of, .. } = event.link
            && of.is_last
        {
            self.gates.remove(&of.which);
        }
        Ok(record)
    }

    /// Returns a summary of the pass.
    pub fn finish(self) -> Pass {
        Pass {
            control: self.rule.control,
            error: self.error,
        }
    }
}

impl ControlledLogicalClock {
    /// Makes as many passes over a stream as [`correct`](Self::correct) does: `run` makes one, with
    /// a [`StreamedForward`] for the rule that it is given. The results of the last call count.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn streamed_passes<E>(
        &self,
        run: impl FnMut(ClockRule) -> Result<Pass, E>,
    ) -> Result<Vec<Pass>, E> {
        self.passes(run)
    }
}
