//! Forward amortization on several ranks: each replays its own clocks until all of them
//! wait, and then tells the others the times that its events give to ghosts there.
//! Backward amortization is local, once the limits of sends and the times of exits are
//! exchanged.

use std::collections::VecDeque;
use std::slice;

use downbeat_clock_core::Duration;
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use super::TracePart;
use super::exchange::{Boxes, empty_boxes, event_of, exchange_words, word_of};
use crate::correct::Corrected;
use crate::correction_error::CorrectionError;
use crate::cycle::Cycle;
use crate::cycle_search::{CycleSearch, find_wait};
use crate::forward::Replay;
use crate::stamps::Stamps;
use crate::trace::Role;
use crate::{ControlledLogicalClock, EventId, Gradient, LocationId, limits};

impl ControlledLogicalClock {
    /// Does forward amortization, as [`forward`](Self::forward) does, on all ranks.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), on all ranks; and if a rank is gone.
    pub async fn forward_part<'a, C: Comm>(
        &self,
        part: &'a TracePart,
        comm: &C,
    ) -> Result<Corrected<'a>, CorrectionError> {
        self.forward_with(&part.trace, async |replay| {
            part.complete_replay(replay, comm).await
        })
        .await
    }
}

impl Corrected<'_> {
    /// Does backward amortization of this part of a trace, as
    /// [`amortize`](Self::amortize) does.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn amortize_part<C: Comm>(
        &mut self,
        part: &TracePart,
        gradient: Gradient,
        comm: &C,
    ) -> Result<(), CommError> {
        part.return_limits(&mut self.stamps, comm).await?;
        let ghosts = part.exchange_ghost_times(&self.times, comm).await?;
        let times = part.times_with_ghosts(&self.times, &ghosts);
        limits::find_limits(self.trace, &times, &self.latencies, &mut self.stamps);
        self.stretch(gradient);
        Ok(())
    }
}

/// The rank has clocks that wait.
const IS_WAITING: u64 = 1;

/// The rank sends others times.
const HAS_MAIL: u64 = 2;

impl TracePart {
    /// Completes a replay. Returns the maximum distance by which an event of any rank was
    /// moved.
    async fn complete_replay<C: Comm>(
        &self,
        replay: &mut Replay<'_>,
        comm: &C,
    ) -> Result<Duration, CorrectionError> {
        let mut next = vec![0; self.trace.locations.len()];
        let mut ready = replay.unfinished().collect();
        loop {
            replay.run(&mut ready);
            let mut out = empty_boxes(comm);
            self.collect_mail(replay, &mut next, &mut out);
            let mut state = match replay.unfinished().next() {
                Some(_) => IS_WAITING,
                None => 0,
            };
            if out.iter().any(|words| !words.is_empty()) {
                state |= HAS_MAIL;
            }
            out.iter_mut().for_each(|words| words.push(state));
            let inbox = exchange_words(comm, out).await?;
            let states = inbox.iter().filter_map(|words| words.last());
            let state = states.fold(0, |all, state| all | state);
            if state & IS_WAITING == 0 {
                return Ok(all_reduce(comm, replay.error(), Duration::max).await?);
            }
            if state & HAS_MAIL == 0 {
                return Err(self.find_cycle(replay, comm).await?.into());
            }
            for [event, time] in inbox.iter().flat_map(|words| words.as_chunks().0) {
                self.deliver_time(replay, event_of(*event), *time as i64, &mut ready);
            }
        }
    }

    /// Collects the times of sends and enters that were replayed since the last call, for
    /// the ranks that have ghosts of them; `next` has the next mark of every location.
    fn collect_mail(&self, replay: &Replay<'_>, next: &mut [usize], out: &mut Boxes) {
        if self.ghost_sources.iter().all(Vec::is_empty) {
            return;
        }
        for (location, next) in (0..).zip(next) {
            if !self.is_own(location) {
                continue;
            }
            let marks = &self.trace.locations[location as usize].marks;
            let reached = replay.part_of(location).mark;
            for (at, mark) in marks.iter().enumerate().take(reached).skip(*next) {
                let ranks = match mark.role() {
                    Role::Send => slice::from_ref(&self.owners[mark.peer() as usize]),
                    Role::Enter => {
                        let team = self.trace.instances[mark.partner as usize].team;
                        self.teams.get(team as usize).map_or(&[][..], Vec::as_slice)
                    }
                    _ => &[],
                };
                let event = EventId {
                    location: LocationId(location),
                    event: mark.event,
                };
                let time = replay.stamps.word(location, at as u32) as u64;
                for rank in ranks.iter().filter(|rank| **rank != self.rank) {
                    out[*rank as usize].extend([word_of(event), time]);
                }
            }
            *next = reached;
        }
    }

    /// Publishes the time of a ghost. Clocks that waited for it become `ready`.
    fn deliver_time(
        &self,
        replay: &mut Replay<'_>,
        EventId { location, event }: EventId,
        time: i64,
        ready: &mut VecDeque<u32>,
    ) {
        let of = &self.trace.locations[location.index()];
        let Ok(at) = of.ghost_events.binary_search(&event) else {
            return;
        };
        let (LocationId(location), mark) = (location, of.marks[at]);
        let clock_of = |location: u32| self.trace.locations[location as usize].clock;
        match mark.role() {
            Role::Send if replay.stamps.publish(location, at as u32, time) => {
                ready.push_back(clock_of(mark.peer()));
            }
            Role::Enter => {
                let Replay { gates, stamps, .. } = replay;
                stamps.set(location, at as u32, time);
                let wake = |location| ready.push_back(clock_of(location));
                gates.enter(mark.partner, location, time, stamps, wake);
            }
            _ => {}
        }
    }

    /// Finds the cycle that some clocks wait in. The rank of each clock tells all others
    /// what it waits for.
    async fn find_cycle<C: Comm>(&self, replay: &Replay<'_>, comm: &C) -> Result<Cycle, CommError> {
        let stuck = replay.unfinished().next().map_or(u64::MAX, u64::from);
        let mut at = all_reduce(comm, stuck, u64::min).await? as u32;
        let mut search = CycleSearch::new(&self.trace);
        loop {
            if let Some(cycle) = search.at(at) {
                return Ok(cycle);
            }
            let wait = Some(at).filter(|at| self.is_own(*at));
            let wait = wait.and_then(|at| find_wait(replay, at));
            let mine = wait.map_or([0; 3], |[event, other]| [1, word_of(event), word_of(other)]);
            // Only one rank has any.
            match all_reduce(comm, mine, Ord::max).await? {
                [0, ..] => return Ok(Cycle { waits: vec![] }),
                [_, event, other] => at = search.add(event_of(event), event_of(other)),
            }
        }
    }

    /// Returns the limits of sends, which are known where they were received, to their
    /// ranks.
    async fn return_limits<C: Comm>(&self, stamps: &mut Stamps, comm: &C) -> Result<(), CommError> {
        let mut out = empty_boxes(comm);
        for (number, (location, owner)) in (0..).zip(self.trace.locations.iter().zip(&self.owners))
        {
            let ghosts = 0..location.ghost_events.len() as u32;
            out[*owner as usize].extend(ghosts.map(|mark| stamps.word(number, mark) as u64));
        }
        let inbox = exchange_words(comm, out).await?;
        for (sources, limits) in self.ghost_sources.iter().zip(&inbox) {
            for (id, limit) in sources.iter().zip(limits) {
                let mark = self.trace.locations[id.location as usize].marks[id.mark as usize];
                if mark.role() == Role::Send {
                    stamps.set(id.location, id.mark, *limit as i64);
                }
            }
        }
        Ok(())
    }
}
