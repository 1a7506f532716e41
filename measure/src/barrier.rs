//! Barrier algorithms.

use core::fmt;
use core::str::FromStr;

use downbeat_sync::{Comm, CommError, collective};

use crate::error::MethodError;
use crate::names::look_up;
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
}

impl Barrier {
    /// All barriers.
    pub const ALL: [Self; 4] = [Self::Library, Self::Double, Self::Dissemination, Self::Tree];

    /// Name in options and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Double => "double",
            Self::Dissemination => "dissemination",
            Self::Tree => "tree",
        }
    }

    /// Waits for all ranks.
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
            Self::Tree => collective::barrier(comm).await,
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

/// Writes the [name](Self::name).
impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Barrier {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        look_up("barrier", text, Self::ALL, Self::name)
    }
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
        let refused = "linear".parse::<Barrier>().unwrap_err().to_string();
        assert!(
            refused.contains("linear") && refused.contains("dissemination"),
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
