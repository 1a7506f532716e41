//! Barrier algorithms.

use downbeat_sync::{Comm, CommError, collective};

use crate::names::name_values;
use crate::operation::Coordinator;

/// Algorithm by which ranks wait for each other before a call. Ranks leave a barrier at different times: this imbalance
/// is part of what is measured after the barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Barrier {
    /// The library's own barrier.
    #[default]
    Library,
    /// The library's own barrier, twice.
    Double,
    /// Messages to the ranks at distances 1, 2, 4, ...: all ranks leave at about the same time, if messages take equally
    /// long.
    Dissemination,
    /// Up a binomial tree and down again: the leaves leave last.
    Tree,
    /// All ranks report to rank 0, which answers them one after the other: the last rank leaves last.
    Linear,
    /// Exchanges with the ranks whose numbers differ in one bit; ranks beyond the largest power of two wait for a partner, and leave last.
    RecursiveDoubling,
    /// A message around a ring, twice: the last rank leaves last.
    DoubleRing,
    /// A [meeting](downbeat_sync::harmonize): all ranks leave at one instant of the global clock. A rank that learns of it too late leaves
    /// later, and makes the observation late.
    Harmonize,
}

name_values! {
    Barrier, "barrier":
    Library = "library",
    Double = "double",
    Dissemination = "dissemination",
    Tree = "tree",
    Linear = "linear",
    RecursiveDoubling = "recursive-doubling",
    DoubleRing = "double-ring",
    Harmonize = "harmonize",
}

impl Barrier {
    /// Returns true if the ranks need a global clock.
    pub const fn needs_global_clock(self) -> bool {
        matches!(self, Self::Harmonize)
    }

    /// Waits for all ranks, without a clock: a meeting has no common instant then.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn wait<M: Comm>(
        self,
        comm: &M,
        coordinator: &impl Coordinator,
    ) -> Result<(), CommError> {
        match self {
            Self::Library => coordinator.barrier().await,
            Self::Double => {
                coordinator.barrier().await?;
                coordinator.barrier().await
            }
            Self::Dissemination => disseminate(comm).await,
            Self::Tree | Self::Harmonize => collective::barrier(comm).await,
            Self::Linear => report_to_first(comm).await,
            Self::RecursiveDoubling => double_recursively(comm).await,
            Self::DoubleRing => go_around_twice(comm).await,
        }
    }
}

/// Dissemination barrier: after `log2(size)` rounds every rank has heard of every other rank.
async fn disseminate<M: Comm>(comm: &M) -> Result<(), CommError> {
    let (rank, size) = (u64::from(comm.rank()), u64::from(comm.size()));
    let mut step = 1;
    while step < size {
        comm.send(((rank + step) % size) as u32, ()).await?;
        comm.recv::<()>(((rank + size - step) % size) as u32)
            .await?;
        step *= 2;
    }
    Ok(())
}

/// Linear barrier: rank 0 hears of all others, then all hear of rank 0.
async fn report_to_first<M: Comm>(comm: &M) -> Result<(), CommError> {
    if comm.rank() > 0 {
        comm.send(0, ()).await?;
        return comm.recv(0).await;
    }
    for other in 1..comm.size() {
        comm.recv::<()>(other).await?;
    }
    for other in 1..comm.size() {
        comm.send(other, ()).await?;
    }
    Ok(())
}

/// Barrier by recursive doubling among the largest power of two of ranks, each of which may stand for one more.
async fn double_recursively<M: Comm>(comm: &M) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let inside = 1 << size.ilog2();
    if rank >= inside {
        comm.send(rank - inside, ()).await?;
        return comm.recv(rank - inside).await;
    }
    let represented = Some(rank + inside).filter(|other| *other < size);
    if let Some(other) = represented {
        comm.recv::<()>(other).await?;
    }
    for bit in 0..inside.ilog2() {
        let other = rank ^ (1 << bit);
        comm.send(other, ()).await?;
        comm.recv::<()>(other).await?;
    }
    match represented {
        Some(other) => comm.send(other, ()).await,
        None => Ok(()),
    }
}

/// Double ring: a message that has been around once tells rank 0 that all have entered, and then all ranks.
async fn go_around_twice<M: Comm>(comm: &M) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    if size == 1 {
        return Ok(());
    }
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    for _ in 0..2 {
        if rank > 0 {
            comm.recv::<()>(previous).await?;
        }
        comm.send(next, ()).await?;
        if rank == 0 {
            comm.recv::<()>(previous).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageCoordinator;
    use downbeat_clock_core::Duration;
    use downbeat_sync::sim::{Clocks, Network, NetworkLink, SimCluster, SimComm};

    #[test]
    fn names_can_be_parsed() {
        for barrier in Barrier::ALL {
            assert_eq!(barrier.to_string().parse(), Ok(barrier));
        }
        let refused = "bruck".parse::<Barrier>().unwrap_err().to_string();
        assert!(
            refused.contains("bruck") && refused.contains("dissemination"),
            "{refused}"
        );
    }

    #[test]
    fn no_rank_leaves_before_the_last_has_entered() {
        let link = NetworkLink::steady(Duration::from_micros(1));
        let network = Network {
            socket: link.clone(),
            node: link.clone(),
            switch: link,
            ..Network::noiseless()
        };
        for (ranks, barrier) in [1, 2, 3, 5, 8]
            .into_iter()
            .flat_map(|ranks| Barrier::ALL.map(|barrier| (ranks, barrier)))
        {
            let cluster = SimCluster {
                ranks,
                ranks_per_node: 1,
                sockets_per_node: 1,
                nodes_per_rack: None,
                network: network.clone(),
                clocks: Clocks::perfect(),
                seed: 1,
            };
            let program = async |comm: &SimComm| {
                comm.pause(Duration::from_millis(i64::from(comm.rank())));
                let entered = comm.true_now();
                barrier.wait(comm, &MessageCoordinator(comm)).await.unwrap();
                (entered, comm.true_now())
            };
            let found = cluster.run(program).unwrap();
            let last = found.iter().map(|(entered, _)| *entered).max().unwrap();
            assert!(
                found.iter().all(|(_, left)| *left >= last),
                "{barrier} of {ranks}"
            );
        }
    }
}
