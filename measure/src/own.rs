//! Operations of Downbeat's own, by messages between ranks: what is measured where there is no MPI.

use core::fmt;
use core::str::FromStr;

use downbeat_sync::{Comm, CommError, collective};

use crate::{Barrier, ByMessages, Operation};

/// An operation by messages. Each moves one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnKind {
    /// Nothing: the floor.
    Empty,
    /// From rank 0 to rank 1 and back; the others do nothing.
    PingPong,
    /// Every rank sends to the next, and receives from the one before.
    SendRecv,
    /// Along a binomial tree.
    Barrier,
    /// To ranks 1, 2, 4, ... further on.
    Dissemination,
    /// From rank 0 along a binomial tree.
    Bcast,
    /// Up a binomial tree, and down again.
    Allreduce,
    /// To rank 0, one rank after the other.
    Gather,
}

impl OwnKind {
    /// All there are.
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::PingPong,
        Self::SendRecv,
        Self::Barrier,
        Self::Dissemination,
        Self::Bcast,
        Self::Allreduce,
        Self::Gather,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::PingPong => "ping-pong",
            Self::SendRecv => "sendrecv",
            Self::Barrier => "barrier",
            Self::Dissemination => "dissemination",
            Self::Bcast => "bcast",
            Self::Allreduce => "allreduce",
            Self::Gather => "gather",
        }
    }

    /// Those that a list names: `bcast,gather`, or `all`. Each is there once, where it is named first.
    ///
    /// # Errors
    /// When there is no such name.
    pub fn list(text: &str) -> Result<Vec<Self>, OwnKindError> {
        let mut found = Vec::new();
        for name in text.split(',') {
            let named = if name == "all" {
                Self::ALL.to_vec()
            } else {
                vec![name.parse()?]
            };
            for kind in named {
                if !found.contains(&kind) {
                    found.push(kind);
                }
            }
        }
        Ok(found)
    }

    /// How many ranks it takes at least.
    pub const fn least_ranks(self) -> u32 {
        if let Self::PingPong = self { 2 } else { 1 }
    }

    /// How many bytes a rank contributes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Empty | Self::Barrier | Self::Dissemination => 0,
            _ => size_of::<u64>() as u64,
        }
    }
}

/// As it is written in options and records.
impl fmt::Display for OwnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a text is no operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnKindError(String);

impl fmt::Display for OwnKindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no operation \"{}\": there are {}",
            self.0,
            OwnKind::ALL.map(OwnKind::name).join(", ")
        )
    }
}

impl core::error::Error for OwnKindError {}

impl FromStr for OwnKind {
    type Err = OwnKindError;

    fn from_str(text: &str) -> Result<Self, OwnKindError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| OwnKindError(text.to_owned()))
    }
}

/// An operation by messages, among these ranks.
#[derive(Debug)]
pub struct OwnOperation<'a, M> {
    /// Which.
    pub kind: OwnKind,
    /// Among whom.
    pub comm: &'a M,
}

impl<M: Comm> Operation for OwnOperation<'_, M> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        let word = u64::from(number);
        match self.kind {
            OwnKind::Empty => Ok(()),
            OwnKind::PingPong => ping_pong(self.comm, word).await,
            OwnKind::SendRecv => send_around(self.comm, word).await,
            OwnKind::Barrier => Barrier::Tree.wait(self.comm, &ByMessages(self.comm)).await,
            OwnKind::Dissemination => {
                Barrier::Dissemination
                    .wait(self.comm, &ByMessages(self.comm))
                    .await
            }
            OwnKind::Bcast => collective::broadcast(self.comm, word).await.map(drop),
            OwnKind::Allreduce => collective::all_reduce(self.comm, word, u64::wrapping_add)
                .await
                .map(drop),
            OwnKind::Gather => collective::gather(self.comm, word).await.map(drop),
        }
    }
}

async fn ping_pong<M: Comm>(comm: &M, word: u64) -> Result<(), CommError> {
    match (comm.rank(), comm.size()) {
        (0, 2..) => {
            comm.send(1, word).await?;
            comm.recv::<u64>(1).await.map(drop)
        }
        (1, _) => {
            let word: u64 = comm.recv(0).await?;
            comm.send(0, word).await
        }
        _ => Ok(()),
    }
}

async fn send_around<M: Comm>(comm: &M, word: u64) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    comm.send((rank + 1) % size, word).await?;
    comm.recv::<u64>((rank + size - 1) % size).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    #[test]
    fn all_operations_can_be_called_again_and_again_by_any_number_of_ranks() {
        for ranks in [1, 2, 3, 5] {
            let done = ThreadCluster::new(ranks).run(|comm| {
                for kind in OwnKind::ALL {
                    let mut operation = OwnOperation { kind, comm };
                    for number in 0..3 {
                        block_on_ready(operation.call(number)).unwrap();
                    }
                }
                true
            });
            assert!(done.unwrap().into_iter().all(|done| done));
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in OwnKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(OwnKind::list("all"), Ok(OwnKind::ALL.to_vec()));
        assert_eq!(
            OwnKind::list("gather,bcast,gather"),
            Ok(vec![OwnKind::Gather, OwnKind::Bcast])
        );
        assert_eq!(
            OwnKind::list("gather,all").unwrap()[..2],
            [OwnKind::Gather, OwnKind::Empty]
        );
        for wrong in ["", "bcast,", "bcast, gather", "All"] {
            assert!(OwnKind::list(wrong).is_err(), "{wrong}");
        }
        assert!(
            "alltoall"
                .parse::<OwnKind>()
                .unwrap_err()
                .to_string()
                .contains("allreduce")
        );
    }
}
