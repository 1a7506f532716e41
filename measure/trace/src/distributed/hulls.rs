//! Convex hulls of the messages of a trace that ranks share.

use downbeat_sync::{Comm, CommError};

use super::super::trace::Role;
use super::super::{Latencies, LocationId, MessageHulls};
use super::TracePart;
use super::exchange::gather_everywhere;
use super::verdict::sent_elsewhere;

impl MessageHulls {
    /// Does the same as [`of_trace`](Self::of_trace) for a trace that ranks share; collective, with
    /// the same result on all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn of_part<C: Comm>(
        part: &TracePart,
        latencies: &Latencies,
        comm: &C,
    ) -> Result<Self, CommError> {
        let trace = &part.trace;
        if comm.size() == 1 {
            return Ok(Self::of_trace(trace, latencies));
        }
        let times = trace.times();
        let elsewhere = sent_elsewhere(part, &times, comm).await?;
        let mut hulls = Self::default();
        for (to, location) in (0..).zip(&trace.locations) {
            let receives = location.marks.iter().filter(|_| part.is_own(to));
            for mark in receives.filter(|mark| mark.role() == Role::Receive) {
                let (from, sent) = (mark.peer(), mark.partner as usize);
                let sent = match part.is_own(from) {
                    true => {
                        let event = trace.locations[from as usize].marks[sent].event;
                        times[from as usize][event as usize]
                    }
                    false => elsewhere[from as usize][sent],
                };
                let received = times[to as usize][mark.event as usize];
                let sites = [from, to].map(|location| trace.site(LocationId(location)));
                hulls.add_message(sites, [sent, received], latencies);
            }
        }
        let stays = part.stays(comm).await?;
        stays
            .values()
            .for_each(|of| hulls.add_operation(of, latencies));
        let all = gather_everywhere(comm, hulls.words()).await?;
        let mut merged = Self::default();
        all.iter().for_each(|words| merged.merge(words));
        Ok(merged)
    }
}
