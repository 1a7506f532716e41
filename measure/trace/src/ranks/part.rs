//! Part of a trace on one rank.

use std::ops::Deref;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

use super::exchange::{agree_on_error, empty_boxes, exchange_bytes};
use crate::channels::MarkId;
use crate::correction_error::CorrectionError;
use crate::encoding::{Encoded, decode_values};
use crate::presync::ClockMaps;
use crate::{EventId, LocationId, Trace, TraceError};

/// Trace whose locations several ranks share; the whole trace on a single rank.
///
/// As a [`Trace`], it has the events of the locations of its rank, and no events of
/// others.
#[derive(Debug)]
pub struct TracePart {
    pub(super) trace: Trace,
    pub(super) share: RankShare,
}

/// Share of a rank in a trace. The default is that of a single rank, which has all.
#[derive(Debug, Default)]
pub(crate) struct RankShare {
    pub(super) rank: u32,
    /// Rank of every location; none if there is a single one.
    pub(super) owners: Vec<u32>,
    /// For every team, the other ranks with members.
    pub(super) teams: Vec<Vec<u32>>,
    /// For every rank, the marks of which it has ghosts, in order.
    pub(super) ghost_sources: Vec<Vec<MarkId>>,
}

/// Times of the ghosts of every location, by their marks.
pub(super) type GhostTimes = Vec<Vec<Timestamp<Global>>>;

/// The whole trace, on a single rank.
impl From<Trace> for TracePart {
    fn from(trace: Trace) -> Self {
        let share = RankShare::default();
        Self { trace, share }
    }
}

impl Deref for TracePart {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.trace
    }
}

impl RankShare {
    /// Returns the rank that has the events of a location.
    pub(super) fn owner(&self, location: u32) -> u32 {
        self.owners.get(location as usize).copied().unwrap_or(0)
    }

    pub(super) fn is_own(&self, location: u32) -> bool {
        self.owner(location) == self.rank
    }

    /// Returns the times of all ghosts, given the times of the events of this rank.
    pub(super) async fn exchange_ghost_times<T: AsRef<[Timestamp<Global>]>, C: Comm>(
        &self,
        trace: &Trace,
        times: &[T],
        comm: &C,
    ) -> Result<GhostTimes, CommError> {
        let mut out = empty_boxes(comm);
        for (out, sources) in out.iter_mut().zip(&self.ghost_sources) {
            for id in sources {
                let mark = trace.locations[id.location as usize].marks[id.mark as usize];
                times[id.location as usize].as_ref()[mark.event as usize].encode(out);
            }
        }
        let inbox = exchange_bytes(comm, out).await?;
        let mut inbox: Vec<_> = inbox.iter().map(|bytes| decode_values(bytes)).collect();
        let ghosts = (0..).zip(&trace.locations).map(|(location, of)| {
            let times = inbox[self.owner(location) as usize].by_ref();
            times.take(of.ghost_events.len()).collect()
        });
        Ok(ghosts.collect())
    }

    /// Returns the times of events together with those of ghosts, by location.
    pub(super) fn times_with_ghosts<'a, T: AsRef<[Timestamp<Global>]>>(
        &self,
        times: &'a [T],
        ghosts: &'a GhostTimes,
    ) -> Vec<&'a [Timestamp<Global>]> {
        let both = (0..).zip(times.iter().zip(ghosts));
        let both = both.map(|(location, (own, ghosts))| match self.is_own(location) {
            true => own.as_ref(),
            false => ghosts,
        });
        both.collect()
    }
}

impl TracePart {
    pub(crate) fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// Returns the rank that has the events of a location; `None` if there is no such
    /// location.
    pub fn owner(&self, location: LocationId) -> Option<u32> {
        let exists = location.index() < self.trace.locations.len();
        exists.then(|| self.share.owner(location.0))
    }

    /// Returns true if this rank examines an operation for all ranks with members. All of
    /// them find the same one, by the number of an event of the first member.
    pub(super) fn is_examined_here(&self, instance: u32) -> bool {
        let slots = self.slots_of(&self.trace.instances[instance as usize]);
        let Some(first) = slots.first() else {
            return false;
        };
        let event = self.event_of_mark(first.location, first.enter.min(first.exit));
        let number = event.map_or(0, |event| event.event);
        self.share
            .is_own(slots[number as usize % slots.len()].location)
    }

    /// Fails on all ranks, unless `other` has the same numbers of events.
    pub(crate) async fn agree_on_events<C: Comm>(
        &self,
        other: &Self,
        comm: &C,
    ) -> Result<(), CorrectionError> {
        let counts = |part: &Self| {
            let counts = part.locations().iter().map(|of| of.times().len());
            counts.collect::<Vec<_>>()
        };
        let is_same = u64::from(counts(self) == counts(other));
        match all_reduce(comm, is_same, u64::min).await? {
            1 => Ok(()),
            _ => Err(CorrectionError::OtherTruth),
        }
    }

    /// Maps all times to another clock, as [`ClockMaps::correct`] does.
    ///
    /// # Errors
    /// As [`ClockMaps::correct`], on all ranks; and if a rank is gone.
    pub async fn correct<C: Comm>(
        &mut self,
        maps: &ClockMaps,
        comm: &C,
    ) -> Result<(), CorrectionError> {
        let fault = maps.correct(&mut self.trace).err().map(|why| match why {
            TraceError::TooFar(EventId { location, event }) => {
                (u64::from(location.0) << 32 | u64::from(event), why)
            }
            _ => (u64::MAX, why),
        });
        agree_on_error(comm, fault).await
    }
}
