//! Edges of a cube that contradict all others are named.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

use downbeat_clock_core::Duration;
use downbeat_sync::payload::Payload;
use downbeat_sync::sim::{Clocks, Network, SimCluster, SimComm};
use downbeat_sync::{Algorithm, Comm, CommError, FarEdge, Quality};

/// Ranks with a message from one to the other that takes longer than that back.
const SLOW: [u32; 2] = [5, 37];
const LONGER: Duration = Duration::from_nanos(2_000);

/// Communicator in which messages from one rank to another take longer.
struct UnequalComm<'a>(&'a SimComm);

impl Comm for UnequalComm<'_> {
    fn rank(&self) -> u32 {
        self.0.rank()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    async fn send<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.0.send(to, payload).await
    }

    async fn send_sync<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.0.send_sync(to, payload).await
    }

    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        let received = self.0.recv(from).await;
        if [from, self.rank()] == SLOW {
            self.0.pause(LONGER);
        }
        received
    }

    async fn split(&self, _: Option<u32>, _: u32) -> Result<Option<Self>, CommError> {
        Ok(None)
    }
}

/// Returns what rank 0 learns of all ranks.
fn worst_quality(ranks: u32) -> Quality {
    let algorithm: Algorithm = "cube/4/10".parse().unwrap();
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let comm = UnequalComm(comm);
        let found = algorithm
            .synchronize(&comm.0.local_clock(&clock).unwrap(), &comm)
            .await;
        found.unwrap().quality
    };
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network::noiseless(),
        clocks: Clocks::perfect(),
        seed: 1,
    };
    let found = cluster.run(program).unwrap();
    found.into_iter().reduce(Quality::combine).unwrap()
}

#[test]
fn the_edge_whose_directions_differ_is_named() {
    for ranks in [64, 100] {
        let FarEdge { ranks: named, by } = worst_quality(ranks).far_edge.unwrap();
        assert!(named == SLOW || named == [SLOW[1], SLOW[0]], "{named:?}");
        // Half of the difference of the directions, less what the fit follows it by.
        assert!((600..=1_000).contains(&by.as_nanos().abs()), "{by}");
    }
}

#[test]
fn no_edge_of_an_even_network_is_named() {
    // The slow edge does not exist.
    assert_eq!(worst_quality(37).far_edge, None);
}
