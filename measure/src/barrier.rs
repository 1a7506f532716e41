//! Barriers to choose from.

use core::fmt;
use core::str::FromStr;

use downbeat_sync::{Comm, CommError, collective};

use crate::Together;

/// How ranks wait for each other before a call. They leave a barrier one after the other: its imbalance is in what is
/// measured behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// The library's own, whatever that is.
    #[default]
    Library,
    /// The library's own, twice.
    Double,
    /// Messages to ranks 1, 2, 4, ... further on: all ranks leave at about the same time, if messages take the same time.
    Dissemination,
    /// Up a binomial tree and down again: those at the leaves leave last.
    Tree,
}

impl Barrier {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Library, Self::Double, Self::Dissemination, Self::Tree];

    /// As it is written.
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
    /// When a rank is gone.
    pub async fn wait<M: Comm>(self, comm: &M, together: &impl Together) -> Result<(), CommError> {
        match self {
            Self::Library => together.barrier().await,
            Self::Double => {
                together.barrier().await?;
                together.barrier().await
            }
            Self::Dissemination => disseminate(comm).await,
            Self::Tree => collective::barrier(comm).await,
        }
    }
}

/// After `log2(size)` rounds every rank has heard of every other.
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

/// As it is written in options and records.
impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a text is no barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierError(String);

impl fmt::Display for BarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no barrier \"{}\": there are {}",
            self.0,
            Barrier::ALL.map(Barrier::name).join(", ")
        )
    }
}

impl core::error::Error for BarrierError {}

impl FromStr for Barrier {
    type Err = BarrierError;

    fn from_str(text: &str) -> Result<Self, BarrierError> {
        let found = Self::ALL.into_iter().find(|barrier| barrier.name() == text);
        found.ok_or_else(|| BarrierError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByMessages;
    use downbeat_clock_core::Duration;
    use downbeat_sync::{Clocks, Network, NetworkLink, SimCluster, SimComm};

    #[test]
    fn names_are_read_as_they_are_written() {
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
    fn nobody_leaves_before_the_last_has_come() {
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
                let came = comm.true_now();
                barrier.wait(comm, &ByMessages(comm)).await.unwrap();
                (came, comm.true_now())
            };
            let found = cluster.run(program).unwrap();
            let last = found.iter().map(|(came, _)| *came).max().unwrap();
            assert!(
                found.iter().all(|(_, left)| *left >= last),
                "{barrier} of {ranks}"
            );
        }
    }
}
