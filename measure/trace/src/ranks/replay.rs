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
use super::exchange::{Boxes, empty_boxes, exchange_bytes, gather_values};
use super::part::RankShare;
use crate::correct::CorrectedTimes;
use crate::correction_error::CorrectionError;
use crate::cycle::Cycle;
use crate::encoding::{Encoded, decode_values};
use crate::forward::Replay;
use crate::stamps::Stamps;
use crate::trace::Role;
use crate::{ControlledLogicalClock, EventId, Gradient, LocationId, Trace, limits};

impl ControlledLogicalClock {
    /// Does forward amortization, as [`forward`](Self::forward) does, on all ranks.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), on all ranks; and if a rank is gone.
    pub async fn forward_part<'a, C: Comm>(
        &self,
        part: &'a TracePart,
        comm: &C,
    ) -> Result<CorrectedTimes<'a>, CorrectionError> {
        self.forward_share(&part.trace, &part.share, comm).await
    }
}

impl CorrectedTimes<'_> {
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
        let TracePart { trace, share } = part;
        share.return_limits(trace, &mut self.stamps, comm).await?;
        let ghosts = share.exchange_ghost_times(trace, &self.times, comm).await?;
        let times = share.times_with_ghosts(&self.times, &ghosts);
        limits::find_limits(trace, &times, &self.latencies, &mut self.stamps);
        self.stretch(gradient);
        Ok(())
    }
}

/// The rank has clocks that wait.
const IS_WAITING: u8 = 1;

/// The rank sends others times.
const HAS_MAIL: u8 = 2;

/// Event of which another rank has a ghost, and its time.
type Mail = (EventId, i64);

impl RankShare {
    /// Completes a replay. Returns the maximum distance by which an event of any rank was
    /// moved.
    pub(crate) async fn complete_replay<C: Comm>(
        &self,
        replay: &mut Replay<'_>,
        comm: &C,
    ) -> Result<Duration, CorrectionError> {
        let mut next = vec![0; replay.trace.locations.len()];
        let mut ready = replay.unfinished().collect();
        loop {
            replay.run(&mut ready);
            let mut out = empty_boxes(comm);
            self.collect_mail(replay, &mut next, &mut out);
            let mut state = match replay.unfinished().next() {
                Some(_) => IS_WAITING,
                None => 0,
            };
            if out.iter().any(|mail| !mail.is_empty()) {
                state |= HAS_MAIL;
            }
            out.iter_mut().for_each(|mail| mail.push(state));
            let inbox = exchange_bytes(comm, out).await?;
            let inbox: Vec<_> = inbox
                .iter()
                .filter_map(|bytes| bytes.split_last())
                .collect();
            let state = inbox.iter().fold(0, |all, (state, _)| all | *state);
            if state & IS_WAITING == 0 {
                return Ok(all_reduce(comm, replay.error(), Duration::max).await?);
            }
            if state & HAS_MAIL == 0 {
                return Err(self.find_cycle(replay, comm).await?.into());
            }
            for (event, time) in inbox
                .iter()
                .flat_map(|(_, mail)| decode_values::<Mail>(mail))
            {
                deliver_time(replay, event, time, &mut ready);
            }
        }
    }

    /// Collects the times of sends and enters that were replayed since the last call, for
    /// the ranks that have ghosts of them; `next` has the next mark of every location.
    fn collect_mail(&self, replay: &Replay<'_>, next: &mut [usize], out: &mut Boxes) {
        if self.ghost_sources.iter().all(Vec::is_empty) {
            return;
        }
        let trace = replay.trace;
        for (location, next) in (0..).zip(next) {
            if !self.is_own(location) {
                continue;
            }
            let marks = &trace.locations[location as usize].marks;
            let reached = replay.part_of(location).mark;
            for (at, mark) in marks.iter().enumerate().take(reached).skip(*next) {
                let ranks = match mark.role() {
                    Role::Send => slice::from_ref(&self.owners[mark.peer() as usize]),
                    Role::Enter => {
                        let team = trace.instances[mark.partner as usize].team;
                        self.teams.get(team as usize).map_or(&[][..], Vec::as_slice)
                    }
                    _ => &[],
                };
                let event = EventId {
                    location: LocationId(location),
                    event: mark.event,
                };
                let mail: Mail = (event, replay.stamps.word(location, at as u32));
                for rank in ranks.iter().filter(|rank| **rank != self.rank) {
                    mail.encode(&mut out[*rank as usize]);
                }
            }
            *next = reached;
        }
    }

    /// Finds the cycle that some clocks wait in. The rank of each clock tells all others
    /// what it waits for.
    async fn find_cycle<C: Comm>(&self, replay: &Replay<'_>, comm: &C) -> Result<Cycle, CommError> {
        let trace = replay.trace;
        let clock_of = |event: EventId| trace.locations[event.location.index()].clock;
        let stuck = replay.unfinished().next().map_or(u64::MAX, u64::from);
        let mut at = all_reduce(comm, stuck, u64::min).await? as u32;
        let mut waits: Vec<[EventId; 2]> = vec![];
        loop {
            if let Some(start) = waits.iter().position(|[event, _]| clock_of(*event) == at) {
                waits.drain(..start);
                return Ok(Cycle { waits });
            }
            let wait = Some(at).filter(|at| self.is_own(*at));
            let wait = wait.and_then(|at| find_wait(replay, at));
            // Only one rank has any.
            let all = gather_values(comm, &Vec::from_iter(wait)).await?;
            match all.concat().first() {
                None => return Ok(Cycle { waits: vec![] }),
                Some([event, other]) => {
                    waits.push([*event, *other]);
                    at = clock_of(*other);
                }
            }
        }
    }

    /// Returns the limits of sends, which are known where they were received, to their
    /// ranks.
    async fn return_limits<C: Comm>(
        &self,
        trace: &Trace,
        stamps: &mut Stamps,
        comm: &C,
    ) -> Result<(), CommError> {
        let mut out = empty_boxes(comm);
        for (location, of) in (0..).zip(&trace.locations) {
            for mark in 0..of.ghost_events.len() as u32 {
                let limit = stamps.word(location, mark);
                limit.encode(&mut out[self.owner(location) as usize]);
            }
        }
        let inbox = exchange_bytes(comm, out).await?;
        for (sources, limits) in self.ghost_sources.iter().zip(&inbox) {
            for (id, limit) in sources.iter().zip(decode_values(limits)) {
                let mark = trace.locations[id.location as usize].marks[id.mark as usize];
                if mark.role() == Role::Send {
                    stamps.set(id.location, id.mark, limit);
                }
            }
        }
        Ok(())
    }
}

/// Publishes the time of a ghost. Clocks that waited for it become `ready`.
fn deliver_time(
    replay: &mut Replay<'_>,
    EventId { location, event }: EventId,
    time: i64,
    ready: &mut VecDeque<u32>,
) {
    let trace = replay.trace;
    let of = &trace.locations[location.index()];
    let Ok(at) = of.ghost_events.binary_search(&event) else {
        return;
    };
    let (LocationId(location), mark) = (location, of.marks[at]);
    let clock_of = |location: u32| trace.locations[location as usize].clock;
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

/// Returns the event that a clock waits with, and the one that it waits for: of a
/// collective operation, the first missing one.
fn find_wait(replay: &Replay<'_>, at: u32) -> Option<[EventId; 2]> {
    let trace = replay.trace;
    let part = replay.next_part(at)?;
    let mark = *part.trace.marks.get(part.mark)?;
    let (mut location, mut awaited) = (mark.peer(), mark.partner);
    if mark.role() == Role::Exit {
        let member = (mark.peer(), part.location);
        let missing = replay.gates.missing(mark.partner, member, replay.stamps)?;
        (location, awaited) = (missing.location, missing.enter);
    }
    Some([
        trace.event_of_mark(part.location, part.mark as u32)?,
        trace.event_of_mark(location, awaited)?,
    ])
}
