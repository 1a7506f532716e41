//! Collective operations and teams of threads of a synthetic program.

use super::program::SyntheticEvent;
use super::replay::{ProgramRun, WORLD};
use crate::{Action, CollectiveKind, CommunicatorId, LocationId, Pattern};

/// All processes in reverse order.
const REVERSED: CommunicatorId = CommunicatorId(1);

/// Returns true for operations in which members may have no data.
const fn may_be_empty(kind: CollectiveKind) -> bool {
    use CollectiveKind::{Allgather, Alltoallv, Gather, ReduceScatter, Scatter};
    matches!(
        kind,
        Allgather | Alltoallv | Gather | ReduceScatter | Scatter
    )
}

impl<E, F: FnMut(SyntheticEvent) -> Result<(), E>> ProgramRun<'_, F> {
    /// Runs the collective operation of all processes with this index.
    pub(super) fn collective(&mut self, number: u32) -> Result<(), E> {
        let ranks = self.program.ranks();
        if ranks < 2 {
            return Ok(());
        }
        let turns = CollectiveKind::MPI_KINDS.len() as u32;
        let kind = CollectiveKind::MPI_KINDS[(number % turns) as usize];
        let communicator = if (number / turns).is_multiple_of(2) {
            WORLD
        } else {
            REVERSED
        };
        let members: Vec<_> = match communicator {
            WORLD => (0..ranks).map(LocationId).collect(),
            _ => (0..ranks).rev().map(LocationId).collect(),
        };
        let root = self.random.u32(..ranks);
        self.run_collective(&members, communicator, kind, root, self.latencies[2])
    }

    /// Lets all members enter, and leave as early as possible, with the given latency between any
    /// two.
    fn run_collective(
        &mut self,
        members: &[LocationId],
        communicator: CommunicatorId,
        kind: CollectiveKind,
        root: u32,
        latency: i64,
    ) -> Result<(), E> {
        let mut entered = Vec::with_capacity(members.len());
        for member in members {
            let at = self.shortly(*member);
            entered.push(self.event(*member, at, Action::Enter { communicator })?);
        }
        let latest = entered.iter().copied().max().unwrap_or(0);
        let mut latest_before = i64::MIN / 2;
        for ((rank, member), enter) in (0..).zip(members).zip(&entered) {
            let waits_for = match kind.pattern() {
                Pattern::FromRoot if rank != root => entered[root as usize],
                Pattern::ToRoot if rank == root => latest,
                Pattern::AllToAll => latest,
                Pattern::ToLater => latest_before,
                Pattern::FromRoot | Pattern::ToRoot => i64::MIN / 2,
            };
            latest_before = latest_before.max(*enter);
            let at = self
                .shortly(*member)
                .max(waits_for + latency + self.jitter());
            let [sent, received] = [(); 2].map(|()| !may_be_empty(kind) || self.random.u8(..8) > 0);
            self.event(
                *member,
                at,
                Action::Exit {
                    communicator,
                    kind,
                    root,
                    sent,
                    received,
                },
            )?;
        }
        Ok(())
    }

    /// Starts the threads of every process, which work, meet at a barrier, and end.
    pub(super) fn fork(&mut self) -> Result<(), E> {
        if self.program.threads < 2 {
            return Ok(());
        }
        for rank in (0..self.program.ranks()).map(LocationId) {
            self.in_order(|this| this.fork_in(rank))?;
        }
        Ok(())
    }

    /// Does so in the process of a rank.
    fn fork_in(&mut self, rank: LocationId) -> Result<(), E> {
        let latency = self.latencies[0];
        let team = self.program.team_of(rank);
        let at = self.shortly(rank);
        let forked = self.event(rank, at, Action::Fork { team })?;
        for thread in self.program.threads_of(rank) {
            let begun = forked + latency + self.jitter();
            self.event(thread, begun, Action::Begin { team })?;
            for _ in 0..self.program.internal {
                let at = self.shortly(thread);
                self.event(thread, at, Action::Internal)?;
            }
        }
        let members: Vec<_> = [rank]
            .into_iter()
            .chain(self.program.threads_of(rank))
            .collect();
        self.run_collective(&members, team, CollectiveKind::Barrier, 0, latency)?;
        let mut ended = i64::MIN / 2;
        for thread in self.program.threads_of(rank) {
            let at = self.shortly(thread);
            ended = ended.max(self.event(thread, at, Action::End { team })?);
        }
        let joined = ended + latency + self.jitter();
        self.event(rank, joined, Action::Join { team })?;
        Ok(())
    }
}
