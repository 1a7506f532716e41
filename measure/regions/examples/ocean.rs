//! Reports of an ocean model with 360 and 4,500 ranks, as in figures 3 to 9 of White
//! 2007: blocks of its grid that are land have no work, and a packed distribution gives
//! the last ranks all of them.
//!
//! ```text
//! cargo run --release -p downbeat-regions --features ranks --example ocean -- 360 packed
//! ```

#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;

use downbeat_clock_core::histogram::DecimalBin;
use downbeat_clock_core::region::RegionEvent;
use downbeat_regions::{
    Overhead, Profile, ProfileReport, RegionProfile, TextOptions, ThreadEvent, gather,
};
use downbeat_sync::Comm;
use downbeat_sync::sim::{Clocks, Network, SimCluster};
use downbeat_timers::Duration;

/// Events of each region.
const STEPS: u64 = 128;

/// Cover of a block of the grid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cover {
    Ocean,
    Coast,
    Land,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_packed = words.iter().any(|word| word == "packed");
    let given = words.iter().find_map(|word| word.parse().ok());
    for ranks in given.map_or(vec![360, 4_500], |ranks| vec![ranks]) {
        let options = TextOptions {
            most_details: 1,
            ..TextOptions::default()
        };
        println!("{}", report(ranks, is_packed)?.text(&options));
    }
    Ok(())
}

/// Merges the profiles of simulated ranks.
fn report(ranks: u32, is_packed: bool) -> Result<ProfileReport, Box<dyn Error>> {
    let mut covers: Vec<Cover> = (0..ranks).map(|rank| cover(rank, ranks)).collect();
    if is_packed {
        covers.sort();
    }
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 2,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks: Clocks::perfect(),
        seed: 1,
    };
    let simulated = cluster.simulate(async |comm| {
        let rank = comm.rank();
        gather(&profile(rank, covers[rank as usize]), comm).await
    })?;
    let merged = simulated.results.into_iter().next();
    let report = merged.ok_or("there is no rank")??;
    report.ok_or_else(|| "rank 0 has no report".into())
}

/// Returns what covers the block of a rank in a Cartesian distribution: two continents in
/// an ocean.
fn cover(rank: u32, ranks: u32) -> Cover {
    let columns = f64::from(ranks).sqrt().ceil();
    let (x, y) = (
        (f64::from(rank) % columns) / columns,
        (f64::from(rank) / columns).floor() / columns,
    );
    let distance = |at: [f64; 2], radii: [f64; 2]| {
        ((x - at[0]) / radii[0]).powi(2) + ((y - at[1]) / radii[1]).powi(2)
    };
    let to_land = distance([0.25, 0.4], [0.12, 0.35]).min(distance([0.7, 0.55], [0.2, 0.22]));
    match to_land {
        0.0..0.8 => Cover::Land,
        0.8..1.3 => Cover::Coast,
        _ => Cover::Ocean,
    }
}

fn profile(rank: u32, cover: Cover) -> Profile {
    // Points of a block differ a little from rank to rank.
    let more = u64::from(rank) * 7_919 % 600;
    let work = match cover {
        Cover::Ocean => 5_200 + more,
        Cover::Coast => 4_100 + more,
        Cover::Land => 6 + more / 500,
    };
    let waiting = 5_900 - work.min(5_900);
    Profile::new(
        "simulated",
        Duration::from_millis(1),
        Overhead::default(),
        vec![
            region("step", 6_000),
            region("baroclinic_driver", work),
            region("barotropic_driver", waiting + 100),
        ],
    )
}

/// Makes a region whose first event takes longer, as what it needs is set up.
fn region(name: &str, length: u64) -> RegionProfile {
    let first = length.max(6_000) + 262;
    let event = |length, number| {
        Some(ThreadEvent {
            event: RegionEvent { length, number },
            thread: 0,
        })
    };
    let mut bins = vec![
        (DecimalBin::containing(first), 1),
        (DecimalBin::containing(length), STEPS - 1),
    ];
    bins.sort_unstable();
    if bins[0].0 == bins[1].0 {
        bins = vec![(bins[0].0, STEPS)];
    }
    RegionProfile {
        threads: 1,
        events: STEPS,
        total: first + (STEPS - 1) * length,
        longest: event(first, 1),
        second_longest: event(length, 2),
        shortest: event(length, 2),
        bins,
        ..RegionProfile::new(name)
    }
}
