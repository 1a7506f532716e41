//! Coordinator of ranks that are threads.

use downbeat_sync::{Comm, CommError};

use crate::link::{Link, LinkCell};
use crate::operation::{Coordinator, MessageCoordinator};

/// Memory by which the threads of a process measure the latency between their cores.
#[derive(Debug)]
pub struct ThreadLinks(Vec<LinkCell>);

impl ThreadLinks {
    /// Allocates memory for a number of threads.
    pub fn new(ranks: u32) -> Self {
        Self((0..ranks).map(|_| LinkCell::default()).collect())
    }
}

/// Coordinator of ranks that are threads of one process: it uses messages, and memory for links.
#[derive(Debug)]
pub struct ThreadCoordinator<'a, M> {
    /// Communicator of the ranks.
    pub comm: &'a M,
    /// Memory that they share. Two measurements at the same time need memory of their own.
    pub links: &'a ThreadLinks,
}

impl<M: Comm> Coordinator for ThreadCoordinator<'_, M> {
    async fn barrier(&self) -> Result<(), CommError> {
        MessageCoordinator(self.comm).barrier().await
    }

    async fn broadcast(&self, value: u64) -> Result<u64, CommError> {
        MessageCoordinator(self.comm).broadcast(value).await
    }

    async fn bitwise_or(&self, value: u64) -> Result<u64, CommError> {
        MessageCoordinator(self.comm).bitwise_or(value).await
    }

    fn link(&self, neighbour: u32) -> Link<'_> {
        let lower = self.comm.rank().min(neighbour) as usize;
        let cell = self.links.0.get(lower);
        cell.map_or(Link::Node, |LinkCell(cell)| Link::Memory(cell))
    }
}
