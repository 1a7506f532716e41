//! Collective operations and teams of threads of a synthetic program.

use super::replay::{ProgramRun, WORLD};
use crate::{CollectiveKind, CommunicatorId, DependencePattern, Event, LocationId};

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

/// Collective operation.
#[derive(Clone, Copy, Debug)]
struct Operation<'a> {
    members: &'a [LocationId],
    communicator: CommunicatorId,
    kind: CollectiveKind,
    root: u32,
    /// Latency between any two members.
    latency: i64,
    /// Request, if it is not blocking.
    request: Option<u64>,
}

impl<E> ProgramRun<'_, E> {
    /// Runs the collective operation of all processes with this index, or the pair of them.
    pub(super) fn collective(&mut self, number: u32) -> Result<(), E> {
        let ranks = self.program.ranks();
        if ranks < 2 {
            return Ok(());
        }
        let number = number * (1 + u32::from(self.program.asynchronous));
        let turns = CollectiveKind::MPI_KINDS.len() as u32;
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
        let operation = |number: u32, request| Operation {
            members: &members,
            communicator,
            kind: CollectiveKind::MPI_KINDS[(number % turns) as usize],
            root,
            latency: self.latencies[2],
            request,
        };
        if !self.program.asynchronous {
            let only = operation(number, None);
            let entered = self.enter(&only)?;
            return self.leave(&only, &entered);
        }
        // The first one is left last.
        let both = [0, 1].map(|request| operation(number + request as u32, Some(request)));
        let entered = [self.enter(&both[0])?, self.enter(&both[1])?];
        self.leave(&both[1], &entered[1])?;
        self.leave(&both[0], &entered[0])
    }

    /// Lets all members enter. Returns the times at which they do.
    fn enter(&mut self, operation: &Operation<'_>) -> Result<Vec<i64>, E> {
        let begin = Event::CollectiveBegin {
            communicator: operation.communicator.into(),
            request: operation.request,
        };
        let enter = |member: &LocationId| {
            let at = self.shortly(*member);
            self.event(*member, at, begin)
        };
        operation.members.iter().map(enter).collect()
    }

    /// Lets all members, who entered at these times, leave as early as possible.
    fn leave(&mut self, operation: &Operation<'_>, entered: &[i64]) -> Result<(), E> {
        let Operation {
            members,
            communicator,
            kind,
            root,
            latency,
            request,
        } = *operation;
        let latest = entered.iter().copied().max().unwrap_or(0);
        let mut latest_before = i64::MIN / 2;
        for ((rank, member), enter) in (0..).zip(members).zip(entered) {
            let waits_for = match kind.pattern() {
                DependencePattern::FromRoot if rank != root => entered[root as usize],
                DependencePattern::ToRoot if rank == root => latest,
                DependencePattern::AllToAll => latest,
                DependencePattern::ToLater => latest_before,
                DependencePattern::FromRoot | DependencePattern::ToRoot => i64::MIN / 2,
            };
            latest_before = latest_before.max(*enter);
            let at = self
                .shortly(*member)
                .max(waits_for + latency + self.jitter());
            let [sent, received] = [(); 2].map(|()| !may_be_empty(kind) || self.random.u8(..8) > 0);
            let end = Event::CollectiveEnd {
                communicator: communicator.into(),
                kind,
                root,
                sent,
                received,
                request,
                bytes: None,
            };
            self.event(*member, at, end)?;
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
        let forked = self.event(rank, at, Event::Fork { team: team.into() })?;
        for thread in self.program.threads_of(rank) {
            let begun = forked + latency + self.jitter();
            self.event(thread, begun, Event::ThreadBegin { team: team.into() })?;
            if self.program.asynchronous {
                let id = thread.0.into();
                let at = self.shortly(rank);
                let signalled = self.event(rank, at, Event::Signal { id })?;
                let waited = signalled + latency + self.jitter();
                self.event(thread, waited, Event::Wait { id })?;
            }
            for _ in 0..self.program.internal {
                let at = self.shortly(thread);
                self.event(thread, at, Event::Note("work"))?;
            }
        }
        let members: Vec<_> = [rank]
            .into_iter()
            .chain(self.program.threads_of(rank))
            .collect();
        let barrier = Operation {
            members: &members,
            communicator: team,
            kind: CollectiveKind::Barrier,
            root: 0,
            latency,
            request: None,
        };
        let entered = self.enter(&barrier)?;
        self.leave(&barrier, &entered)?;
        let mut ended = i64::MIN / 2;
        for thread in self.program.threads_of(rank) {
            let at = self.shortly(thread);
            ended = ended.max(self.event(thread, at, Event::ThreadEnd { team: team.into() })?);
        }
        let joined = ended + latency + self.jitter();
        self.event(rank, joined, Event::Join { team: team.into() })?;
        Ok(())
    }
}
