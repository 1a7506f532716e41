//! Convex hulls of the messages of a trace that ranks share.

use downbeat_sync::{Comm, CommError};

use super::super::Latencies;
use super::super::presync::MessageHulls;
use super::TracePart;
use super::exchange::gather_everywhere;
use super::verdict::{sent_at, sent_elsewhere};

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
        let sent = |send, mark| sent_at(part, &times, &elsewhere, send, mark);
        for location in trace.ids().filter(|location| part.is_own(location.0)) {
            hulls.add_received(trace, location, sent, latencies);
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
