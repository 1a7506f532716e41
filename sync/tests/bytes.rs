//! Transfers of more bytes than a message holds, between threads and between simulated ranks; those
//! over MPI are in the tests that span crates.

#[path = "common/bytes.rs"]
mod bytes;
mod common;
#[path = "common/plain.rs"]
mod plain;

use bytes::bytes_arrive;
use common::run;
use downbeat_sync::sim::{Clocks, SimCluster, SimComm};
use downbeat_sync::{Comm, CommError, block_on_ready};

#[test]
fn between_threads() {
    for ranks in [1, 2, 3] {
        let results = run(ranks, |comm| block_on_ready(bytes_arrive(comm)));
        assert_eq!(results.unwrap(), vec![Ok(()); ranks as usize]);
    }
}

fn cluster(ranks: u32) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: plain::plain(),
        clocks: Clocks::perfect(),
        seed: 1,
    }
}

#[test]
fn between_simulated_ranks() {
    for ranks in [1, 2, 5] {
        assert_eq!(
            cluster(ranks).run(bytes_arrive::<SimComm>),
            Ok(vec![Ok(()); ranks as usize])
        );
    }
}

#[test]
fn from_a_rank_that_left_or_sent_something_else() {
    let program = async |comm: &SimComm| match comm.rank() {
        0 => comm.send(1, [0_u64; 6]).await,
        _ => comm.recv_bytes(0, &mut [0; 49]).await,
    };
    let other_length = CommError::WrongLength {
        from: 0,
        expected: 49,
        found: 48,
    };
    assert_eq!(
        cluster(3).run(program),
        Ok(vec![
            Ok(()),
            Err(other_length),
            Err(CommError::Left { rank: 0 })
        ])
    );
}
