//! Tests of merging against a sequential merge of all profiles.

use std::collections::BTreeSet;

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;
use downbeat_clock_core::region::RegionEvent;
use downbeat_sync::sim::{Clocks, Network, SimCluster};
use downbeat_sync::{Comm, ThreadCluster, block_on_ready};

use super::profile::{Profile, RegionProfile, ReportRemarks, ThreadEvent};
use super::report::ProfileReport;
use super::setup::Overhead;
use super::{RegionError, TextOptions, gather};

const TICK: Duration = Duration::from_nanos(1);

/// Invented profile of a rank: some regions exist on some ranks only, and every seventh rank has
/// little work.
fn profile(rank: u32, regions: u32, tick: Duration) -> Profile {
    let mut random = fastrand::Rng::with_seed(rank.into());
    let region = |i: u32| {
        let name = format!("region {i:03}");
        if rank % 5 == 3 && i % 4 == 1 {
            return RegionProfile {
                remarks: ReportRemarks {
                    running: 1,
                    ..ReportRemarks::default()
                },
                ..RegionProfile::new(&name)
            };
        }
        let typical: u64 = if rank.is_multiple_of(7) {
            6
        } else {
            4_000 + 100 * u64::from(i)
        };
        let mut lengths: Vec<u64> = (0..20).map(|_| typical + random.u64(0..3)).collect();
        lengths[0] = 6_500;
        let mut bins: Vec<(DecimalBin, u64)> = vec![];
        let mut ordered = lengths.clone();
        ordered.sort_unstable();
        for length in &ordered {
            let bin = DecimalBin::containing(*length);
            match bins.last_mut().filter(|last| last.0 == bin) {
                Some(last) => last.1 += 1,
                None => bins.push((bin, 1)),
            }
        }
        let number = |length: u64| {
            lengths
                .iter()
                .position(|found| *found == length)
                .unwrap_or(0) as u64
                + 1
        };
        let event = |length| {
            Some(ThreadEvent {
                event: RegionEvent {
                    length,
                    number: number(length),
                },
                thread: 0,
            })
        };
        RegionProfile {
            threads: 1,
            events: 20,
            total: lengths.iter().sum(),
            longest: event(ordered[19]),
            second_longest: event(ordered[18]),
            shortest: event(ordered[0]),
            bins,
            ..RegionProfile::new(&name)
        }
    };
    let overhead = Overhead {
        within_picos: rank.into(),
        whole_picos: 1,
        subtracted: false,
    };
    let on_this_rank = (0..regions).filter(|i| !(rank + i).is_multiple_of(11));
    Profile::new("clock", tick, overhead, on_this_rank.map(region).collect())
}

/// Merges all profiles without messages.
fn directly(ranks: u32, regions: u32) -> ProfileReport {
    let parts = (1..ranks).map(|rank| ProfileReport::new(&profile(rank, regions, TICK)));
    parts.fold(
        ProfileReport::new(&profile(0, regions, TICK)),
        |all, part| all.merge(part).unwrap(),
    )
}

fn cluster(ranks: u32) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node: 4,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks: Clocks::perfect(),
        seed: 1,
    }
}

fn simulated(ranks: u32, regions: u32) -> ProfileReport {
    let program = async |comm: &_| {
        gather(&profile(Comm::rank(comm), regions, TICK), comm)
            .await
            .unwrap()
    };
    let mut results = cluster(ranks).run(program).unwrap();
    assert!(
        results.iter().skip(1).all(Option::is_none),
        "rank 0 gets it"
    );
    results.swap_remove(0).unwrap()
}

#[test]
fn the_merged_report_is_that_of_all_profiles() {
    for ranks in [1, 2, 3, 4, 5, 8, 13, 64, 100] {
        let (found, expected) = (simulated(ranks, 7), directly(ranks, 7));
        assert_eq!(
            found.text(&TextOptions::default()),
            expected.text(&TextOptions::default()),
            "{ranks} ranks"
        );
        assert_eq!(found.overhead, expected.overhead);
    }
}

#[test]
fn threads_are_ranks_too() {
    let run = |comm: &_| block_on_ready(gather(&profile(Comm::rank(comm), 5, TICK), comm)).unwrap();
    let results = ThreadCluster::new(3).run(run).unwrap();
    assert_eq!(results[0].as_ref().map(|report| report.ranks), Some(3));
    assert_eq!(results[0], Some(directly(3, 5)));
}

/// Compares numbers of the report with the profiles.
#[test]
fn every_number_is_right() {
    let (ranks, found) = (29, simulated(29, 6));
    let profiles: Vec<Profile> = (0..ranks).map(|rank| profile(rank, 6, TICK)).collect();
    let names: BTreeSet<&str> = profiles
        .iter()
        .flat_map(Profile::regions)
        .map(|region| region.name.as_str())
        .collect();
    assert!(
        found
            .regions
            .iter()
            .map(|region| region.name.as_str())
            .eq(names.iter().copied())
    );
    for region in &found.regions {
        let find = |rank: u32| {
            profiles[rank as usize]
                .region(&region.name)
                .filter(|region| region.events > 0)
        };
        let present: Vec<(u32, &RegionProfile)> = (0..ranks)
            .filter_map(|rank| Some((rank, find(rank)?)))
            .collect();
        let events = region.events.as_ref().unwrap();
        let listed: Vec<u32> = events
            .ranks
            .runs()
            .iter()
            .flat_map(|run| run.ranks())
            .collect();
        assert_eq!(
            listed,
            present.iter().map(|(rank, _)| *rank).collect::<Vec<_>>()
        );
        let total: u64 = present.iter().map(|(_, region)| region.total).sum();
        assert_eq!(
            (events.total, events.count),
            (total.into(), 20 * present.len() as u64)
        );
        let longest = present
            .iter()
            .map(|(_, region)| region.longest.unwrap().event.length)
            .max();
        assert_eq!(Some(events.longest.length), longest);
        let greatest = present.iter().map(|(_, region)| region.total).max();
        assert_eq!(Some(events.greatest_total.total), greatest);
        let rank = events.greatest_total.rank;
        assert_eq!(find(rank).map(|region| region.total), greatest);
        let grouped: u32 = events.groups.iter().map(|group| group.ranks.len()).sum();
        assert_eq!(grouped as usize, present.len());
        for group in &events.groups {
            let sum: u64 = group.bins.iter().map(|counts| counts.sum).sum();
            assert_eq!(sum, 20 * u64::from(group.ranks.len()));
        }
    }
}

/// As large as promised in optimized builds, smaller otherwise.
#[test]
fn many_ranks_make_a_short_report() {
    let (ranks, regions) = if cfg!(debug_assertions) {
        (512, 20)
    } else {
        (16_384, 100)
    };
    let found = simulated(ranks, regions);
    assert_eq!(
        (found.ranks, found.regions.len()),
        (ranks, regions as usize)
    );
    let text = found.text(&TextOptions::default());
    // At most three groups, and lists of about twenty lines.
    assert!(
        text.lines().count() < 120 * regions as usize,
        "{} lines",
        text.lines().count()
    );
    // Every seventh rank has little work: a group of its own, listed as one run.
    let events = found
        .region("region 000")
        .and_then(|region| region.events.as_ref())
        .unwrap();
    let idle = events.groups.last().unwrap();
    assert!(
        idle.bins.iter().any(|counts| counts.bin.high() < 10),
        "{idle:?}"
    );
    assert!(
        idle.ranks
            .runs()
            .iter()
            .all(
                |run| run.first.is_multiple_of(7) && run.stride.is_multiple_of(7) || run.count == 1
            )
    );
}

#[test]
fn all_ranks_learn_that_their_ticks_differ() {
    let program = async |comm: &_| {
        let tick = if Comm::rank(comm) == 2 {
            Duration::from_micros(1)
        } else {
            TICK
        };
        gather(&profile(0, 1, tick), comm).await
    };
    let results = cluster(5).run(program).unwrap();
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(RegionError::TicksDiffer)))
    );
}

#[test]
fn a_rank_that_sends_something_else_is_named() {
    let program = async |comm: &_| match Comm::rank(comm) {
        0 => gather(&profile(0, 1, TICK), comm).await.map(drop),
        _ => {
            Comm::send(comm, 0, [1, TICK.as_nanos() as u64, 1, 0, 0, 0]).await?;
            Comm::send(comm, 0, [3_u64, 0]).await?;
            Comm::send_bytes(comm, 0, &[255; 3]).await?;
            Ok(())
        }
    };
    let results = cluster(2).run(program).unwrap();
    assert!(matches!(
        results[0],
        Err(RegionError::NotAReport { from: 1 })
    ));
}

#[test]
fn reports_of_two_programs_stand_side_by_side() {
    let (one, other) = (directly(3, 4), directly(4, 6));
    let both = one.clone().merge(other.clone()).unwrap();
    assert_eq!((both.ranks, both.regions.len()), (7, 6));
    let count = |report: &ProfileReport, name| {
        report
            .region(name)
            .and_then(|region| region.events.as_ref())
            .map_or(0, |e| e.count)
    };
    for name in ["region 000", "region 003", "region 005"] {
        assert_eq!(count(&both, name), count(&one, name) + count(&other, name));
    }
    let longest = |report: &ProfileReport| {
        report
            .region("region 005")
            .unwrap()
            .events
            .as_ref()
            .unwrap()
            .longest
    };
    assert_eq!(
        (longest(&both).rank, longest(&both).length),
        (longest(&other).rank + 3, longest(&other).length)
    );
    let in_milliseconds = ProfileReport::new(&profile(0, 1, Duration::from_millis(1)));
    assert!(one.merge(in_milliseconds).is_err());
}
