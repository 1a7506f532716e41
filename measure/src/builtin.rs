//! Built-in operations that consist of messages between ranks, for measurements without MPI.

use downbeat_sync::{Comm, CommError, collective};

use crate::barrier::Barrier;
use crate::error::MethodError;
use crate::names::{name_values, parse_list};
use crate::operation::{MessageCoordinator, Operation};

/// Kind of a built-in operation. Messages have 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuiltinKind {
    /// Nothing: the cost of measuring itself.
    Empty,
    /// Message from rank 0 to rank 1 and back; the other ranks do nothing.
    PingPong,
    /// Every rank sends to the next rank, and receives from the previous one.
    SendRecv,
    /// Barrier along a binomial tree.
    Barrier,
    /// Barrier with messages to the ranks at distances 1, 2, 4, ...
    Dissemination,
    /// Broadcast from rank 0 along a binomial tree.
    Bcast,
    /// Reduction up a binomial tree, and broadcast down again.
    Allreduce,
    /// Gathering on rank 0, one rank after the other.
    Gather,
}

name_values! {
    BuiltinKind, "operation":
    Empty = "empty",
    PingPong = "ping-pong",
    SendRecv = "sendrecv",
    Barrier = "barrier",
    Dissemination = "dissemination",
    Bcast = "bcast",
    Allreduce = "allreduce",
    Gather = "gather",
}

impl BuiltinKind {
    /// Parses a list of names: `bcast,gather`, or `all`. Each kind is listed once, where it is named first.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn list(text: &str) -> Result<Vec<Self>, MethodError> {
        parse_list(text, |name| match name {
            "all" => Ok(Self::ALL.to_vec()),
            _ => Ok(vec![name.parse()?]),
        })
    }

    /// Returns the least number of ranks.
    pub const fn min_ranks(self) -> u32 {
        if let Self::PingPong = self { 2 } else { 1 }
    }

    /// Returns the number of bytes that a rank contributes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Empty | Self::Barrier | Self::Dissemination => 0,
            _ => size_of::<u64>() as u64,
        }
    }
}

/// Built-in operation among the ranks of a communicator.
#[derive(Debug)]
pub struct BuiltinOperation<'a, M> {
    /// Kind of the operation.
    pub kind: BuiltinKind,
    /// Communicator of the ranks.
    pub comm: &'a M,
}

impl<M: Comm> Operation for BuiltinOperation<'_, M> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        let value = u64::from(number);
        match self.kind {
            BuiltinKind::Empty => Ok(()),
            BuiltinKind::PingPong => ping_pong(self.comm, value).await,
            BuiltinKind::SendRecv => send_receive(self.comm, value).await,
            BuiltinKind::Barrier => {
                Barrier::Tree
                    .wait(self.comm, &MessageCoordinator(self.comm))
                    .await
            }
            BuiltinKind::Dissemination => {
                Barrier::Dissemination
                    .wait(self.comm, &MessageCoordinator(self.comm))
                    .await
            }
            BuiltinKind::Bcast => collective::broadcast(self.comm, value).await.map(drop),
            BuiltinKind::Allreduce => collective::all_reduce(self.comm, value, u64::wrapping_add)
                .await
                .map(drop),
            BuiltinKind::Gather => collective::gather(self.comm, value).await.map(drop),
        }
    }
}

async fn ping_pong<M: Comm>(comm: &M, value: u64) -> Result<(), CommError> {
    match (comm.rank(), comm.size()) {
        (0, 2..) => {
            comm.send(1, value).await?;
            comm.recv::<u64>(1).await.map(drop)
        }
        (1, _) => {
            let value: u64 = comm.recv(0).await?;
            comm.send(0, value).await
        }
        _ => Ok(()),
    }
}

async fn send_receive<M: Comm>(comm: &M, value: u64) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    comm.send((rank + 1) % size, value).await?;
    comm.recv::<u64>((rank + size - 1) % size).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    #[test]
    fn all_operations_can_be_repeated_by_any_number_of_ranks() {
        for ranks in [1, 2, 3, 5] {
            let done = ThreadCluster::new(ranks).run(|comm| {
                for kind in BuiltinKind::ALL {
                    let mut operation = BuiltinOperation { kind, comm };
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
    fn names_and_lists_can_be_parsed() {
        for kind in BuiltinKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(BuiltinKind::list("all"), Ok(BuiltinKind::ALL.to_vec()));
        assert_eq!(
            BuiltinKind::list("gather,bcast,gather"),
            Ok(vec![BuiltinKind::Gather, BuiltinKind::Bcast])
        );
        assert_eq!(
            BuiltinKind::list("gather,all").unwrap()[..2],
            [BuiltinKind::Gather, BuiltinKind::Empty]
        );
        for wrong in ["", "bcast,", "bcast, gather", "All"] {
            assert!(BuiltinKind::list(wrong).is_err(), "{wrong}");
        }
        assert!(
            "alltoall"
                .parse::<BuiltinKind>()
                .unwrap_err()
                .to_string()
                .contains("allreduce")
        );
    }
}
