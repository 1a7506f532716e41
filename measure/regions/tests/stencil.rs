//! Tests of the stencil example: its physics, and the groups in its report.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails where something is missing"
)]

#[path = "../examples/heat/mod.rs"]
mod heat;

use downbeat_regions::{Overhead, Profile, ProfileReport, RegionProfile};
use downbeat_sync::sim::{Clocks, Network, NetworkLink, SimCluster, SimComm};
use downbeat_sync::{Comm, ThreadCluster, ThreadComm, block_on_ready};
use downbeat_timers::Duration;
use heat::{COLUMNS, Deal, ROWS, STEPS, Tile, alone, spread};

use downbeat_clock_core::region::{RegionTimer, TickScale};

/// Any distribution over threads gives exactly the result of one rank, and the report counts the
/// events of all ranks.
#[test]
fn heat_spreads_alike_on_all_ranks() {
    let expected = alone();
    assert_eq!(expected.heat[0], expected.heat[1], "none is lost");
    for (ranks, deal) in [
        (1, Deal::Packed),
        (2, Deal::Packed),
        (3, Deal::Packed),
        (3, Deal::Balanced),
        (4, Deal::Balanced),
    ] {
        let program = |comm: &ThreadComm| {
            let outcome = block_on_ready(spread(deal, comm)).unwrap();
            (
                outcome,
                block_on_ready(downbeat_regions::gather(
                    &downbeat_regions::profile_of_this_thread(),
                    comm,
                ))
                .unwrap(),
            )
        };
        let found = ThreadCluster::new(ranks).run(program).unwrap();
        assert!(
            found.iter().all(|(outcome, _)| *outcome == expected),
            "{deal:?} on {ranks} ranks"
        );
        let report = found[0].1.as_ref().unwrap();
        let events = |name: &str| report.region(name).unwrap().events.as_ref().unwrap();
        for name in ["stencil step", "halo exchange", "relax"] {
            let found = events(name);
            assert_eq!(
                (found.ranks.len(), found.fewest.count),
                (ranks, STEPS as u64),
                "{name}"
            );
        }
        // Only ranks with rows have this region.
        let workers: Vec<u32> = (0..deal.workers(ranks)).collect();
        assert_eq!(events("checkpoint").ranks, workers.into_iter().collect());
    }
}

/// The same steps on simulated ranks: 1 ns per cell and 6 ns for the rest.
fn simulated(deal: Deal, ranks: u32) -> ProfileReport {
    let link = NetworkLink::steady(Duration::from_micros(1));
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network {
            socket: link.clone(),
            node: link.clone(),
            switch: link,
            ..Network::noiseless()
        },
        clocks: Clocks::perfect(),
        seed: 1,
    };
    let program = async |comm: &SimComm| {
        let timer = RegionTimer::new(comm.clock(), TickScale::NANOSECONDS);
        let mut tile = Tile::new(deal, comm.rank(), comm.size());
        for _ in 0..STEPS {
            tile.exchange(comm).await.unwrap();
            let _relax = timer.enter();
            comm.pause(Duration::from_nanos(6 + tile.cells() as i64));
            tile.relax();
        }
        let mut relax = RegionProfile::new("relax");
        relax.add(0, &timer.statistics());
        let profile = Profile::new(
            "simulated",
            Duration::from_nanos(1),
            Overhead::default(),
            vec![relax],
        );
        downbeat_regions::gather(&profile, comm).await.unwrap()
    };
    cluster.run(program).unwrap().swap_remove(0).unwrap()
}

/// As in figures 3 to 5 of the paper: ranks without work are a group of their own, after those with
/// the longest events.
#[test]
fn ranks_without_work_are_a_group_of_their_own() {
    let groups = |deal, ranks| -> Vec<(String, u64)> {
        let report = simulated(deal, ranks);
        let events = report.region("relax").unwrap().events.as_ref().unwrap();
        events
            .groups
            .iter()
            .map(|group| (group.ranks.to_string(), group.fullest.low()))
            .collect()
    };
    let cells = (ROWS * COLUMNS) as u64;
    assert_eq!(cells, 96_000);
    let packed =
        |with: &str, low, without: &str| vec![(with.to_owned(), low), (without.to_owned(), 6)];
    assert_eq!(groups(Deal::Packed, 2), packed("0", 90_000, "1"));
    assert_eq!(groups(Deal::Packed, 3), packed("0-1", 40_000, "2"));
    assert_eq!(groups(Deal::Packed, 6), packed("0-4", 10_000, "5"));
    assert_eq!(groups(Deal::Balanced, 2), [("0-1".to_owned(), 40_000)]);
    assert_eq!(groups(Deal::Balanced, 3), [("0-2".to_owned(), 30_000)]);
    assert_eq!(groups(Deal::Balanced, 6), [("0-5".to_owned(), 10_000)]);
}
