#![doc = include_str!("../README.md")]
//!
//! # Contents
//! A region is entered by [`region!`] or by a [`Region`]; a [`Profile`] contains the events of all threads, and a
//! [`ProfileReport`] those of all ranks.
//!
//! # Several ranks
//! With the feature `ranks`, the function `report_over` merges the profiles of all ranks into one [`ProfileReport`] on rank 0,
//! in a logarithmic number of rounds; `gather` does so with any profile. Its [text](ProfileReport::text) has the layout of White 2007: it
//! lists the ranks with the longest and shortest events, and groups ranks by the fullest bin of their
//! [histograms](HistogramGroup). A [`ReportDiff`] compares two runs.
//!
#![cfg_attr(feature = "ranks", doc = "```")]
#![cfg_attr(not(feature = "ranks"), doc = "```ignore")]
//! use downbeat_regions::{TextOptions, gather, profile_of_this_thread, region};
//! use downbeat_sync::{Comm, ThreadCluster, ThreadComm, block_on_ready};
//!
//! let reports = ThreadCluster::new(3).run(|comm: &ThreadComm| {
//!     for _ in 0..10 {
//!         let _solve = region!("solve");
//!         std::hint::black_box((0..1_000 * u64::from(comm.rank())).sum::<u64>());
//!     }
//!     // Ranks that are processes gather `downbeat_regions::profile()`, which has all their threads.
//!     block_on_ready(gather(&profile_of_this_thread(), comm))
//! })?;
//! let report = reports.into_iter().next().ok_or("no rank 0")??.ok_or("no report on rank 0")?;
//! let solve = report.region("solve").and_then(|region| region.events.as_ref()).ok_or("no events")?;
//! assert_eq!((solve.ranks.to_string(), solve.count), ("0-2".to_owned(), 30));
//! print!("{}", report.text(&TextOptions::default()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! None is enabled by default.
//! - `json`: `ProfileReport::save` and `ProfileReport::load`, the files of `downbeat regions show` and `diff`.
//! - `ranks`: `gather`, over any communicator of `downbeat-sync`.
//! - `mpi`: as `ranks`, and the communicator over MPI; needs an MPI library and libclang to build.
//! - `tracing`: `RegionLayer`, with which the spans of a program that uses `tracing` are regions.
//!
//! # Example: load imbalance
//! A stencil code, on three threads or on the ranks of an MPI program:
//!
//! ```text
//! cargo run --release -p downbeat-regions --features json,ranks --example stencil -- --save packed.json
//! cargo build --release -p downbeat-regions --features json,mpi --example stencil_mpi
//! mpirun -np 3 target/release/examples/stencil_mpi --save packed.json
//! ```
//!
//! Its rows are on the first two ranks. The last one has no work and waits in the sum:
//!
//! ```text
//! *** profile for 3 tasks ***
//! max total, ms | min total, ms | avg total, ms | events | timer
//! --------------|---------------|---------------|--------|----
//!         26.47 |         26.44 |         26.45 |    100 | stencil step
//!         26.45 |          0.09 |          8.91 |     10 | sum of heat
//!         16.51 |          0.00 |         10.67 |    100 | relax
//!         10.22 |          0.00 |          4.12 |    100 | halo exchange
//!          7.67 |          0.48 |          4.08 |     10 | checkpoint
//! ```
//!
//! The histograms show the reason: the rank without work is a group of its own.
//!
//! ```text
//! *** relax
//! ...
//! event histogram for tasks: 0-1
//! 7000-7999 ticks:  1 max (task 0),  0 min (task 1),  0 avg
//! 6000-6999 ticks:  1 max (task 1),  0 min (task 0),  0 avg
//! 200-299 ticks:  1 max (task 0),  0 min (task 1),  0 avg
//! 100-199 ticks:  7 max (task 0),  6 min (task 1),  6 avg
//! 90-99 ticks:  4 max (task 1),  2 min (task 0),  3 avg
//! 80-89 ticks: 89 max (task 0), 87 min (task 1), 88 avg
//! 70-79 ticks:  2 max (task 1),  0 min (task 0),  1 avg
//!
//! event histogram for task: 2
//! 0 tick(s): 100 max (task 2), 100 min (task 2), 100 avg
//! ```
//!
//! With `--balanced`, all ranks have the same number of rows and form one group:
//!
//! ```text
//! event histogram for tasks: 0-2
//! 6000-6999 ticks:  1 max (task 0),  0 min (task 1),  0 avg
//! 2000-2999 ticks:  1 max (task 1),  0 min (task 0),  0 avg
//! 300-399 ticks:  1 max (task 2),  0 min (task 0),  0 avg
//! 200-299 ticks:  1 max (task 2),  0 min (task 0),  0 avg
//! 100-199 ticks:  3 max (task 1),  0 min (task 0),  2 avg
//! 80-89 ticks:  3 max (task 1),  1 min (task 0),  2 avg
//! 70-79 ticks:  2 max (task 0),  0 min (task 2),  1 avg
//! 60-69 ticks:  7 max (task 1),  2 min (task 0),  4 avg
//! 50-59 ticks: 89 max (task 2), 79 min (task 0), 84 avg
//! 40-49 ticks: 15 max (task 0),  0 min (task 1),  5 avg
//! ```
//!
//! # Inside and outside
//! A report has a call tree if regions are inside others: the time of each region inside each caller, and its own time, which is
//! not in regions inside it ([`PathReport`]). The total of a rank adds up its threads, so that a region that four threads share takes longer
//! than the one around it; reports therefore have the threads with the greatest and the least total as well, and that of a single rank
//! has every thread.
//!
//! # Configuration
//! [`configure`] sets the clock, the unit of histograms, and more, before the first region. Programs that do not call it are configured
//! by their environment:
//!
//! | variable | values | default |
//! |---|---|---|
//! | `DOWNBEAT_REGIONS_CLOCK` | `ordered`, `cheapest`, `tsc`, `system`: see [`ClockChoice`] | `ordered` |
//! | `DOWNBEAT_REGIONS_TICK` | length of a tick, as `1us` | `1ns` |
//! | `DOWNBEAT_REGIONS_SUBTRACT` | `yes` to subtract the length of an empty region from each event | `no` |
//! | `DOWNBEAT_REGIONS_NESTED` | `no` for no call tree | `yes` |
//!
//! A wrong value is named in the report, and the defaults are used.
//!
//! # Definitions
//! - Times are inclusive: the time of a region includes the regions inside it.
//! - Only what ends within a region is inside it: if a region is stopped before one that it contains, the latter counts as contained in
//!   the region around both.
//! - A region that is entered again in the same thread continues until all guards are dropped: this is one event, and
//!   the recursions are counted.
//! - Every thread has its own timer for every region. No events are lost when a thread ends.
//! - Call sites with the same name are one region. An empty name becomes `(unnamed)`, and control characters are escaped.
//!   A name longer than [`LONGEST_NAME`] bytes is cut and gets a hash, so that different names stay different.
//! - Starting a running region, or stopping one that is not running, has no effect but is counted, and so is an event that
//!   ended before it began by the clock. Reports show these counts.
//! - A profile can be made at any time: running regions are marked, and their current events are not included.
//!
//! # Caveats
//! * A region costs a little more than two reads of the clock, see [`Overhead`]. The cost of inner regions is part of the
//!   outer ones, even if [`RegionSettings::subtract_own`] is set.
//! * The first use of a region in a thread takes a lock and allocates memory. The first region of the program calibrates
//!   the clock, unless [`configure`] was called: avoid this in timed code.
//! * Destructors of thread-local values may run after a thread scope has ended: only a join waits for regions in them.
//! * An unordered clock costs half as much, and may be read some nanoseconds early: see [`ClockChoice::Cheapest`].
#![cfg_attr(docsrs, feature(doc_cfg))]

mod call_path;
mod call_tree;
mod diff;
mod error;
#[cfg(feature = "ranks")]
mod gather;
#[cfg(feature = "ranks")]
#[cfg(test)]
mod gather_tests;
mod groups;
#[cfg(feature = "tracing")]
mod layer;
mod name;
mod paths;
mod places;
mod profile;
mod ranks;
mod region;
mod registry;
mod report;
#[cfg(feature = "json")]
mod saved;
mod setup;
#[cfg(test)]
mod test_reports;
#[cfg(test)]
mod tests;
mod text;
#[cfg(feature = "ranks")]
mod wire;

pub use call_tree::CallTreeEntry;
pub use diff::{HistogramShift, RankMove, RegionDiff, ReportDiff};
pub use error::RegionError;
#[cfg(feature = "ranks")]
pub use gather::{gather, report_over};
pub use groups::{BinCounts, HistogramGroup, RankCount};
#[cfg(feature = "tracing")]
pub use layer::RegionLayer;
pub use name::LONGEST_NAME;
pub use paths::PathReport;
pub use places::RankPlace;
pub use profile::{PathProfile, Profile, RegionProfile, ReportRemarks, ThreadEvent, ThreadTotal};
pub use ranks::{RankRun, RankSet};
pub use region::{Region, RegionGuard};
pub use report::{EventReport, ProfileReport, RankEvent, RankThread, RankTotal, RegionReport};
pub use setup::{ClockChoice, Overhead, RegionClock, RegionSettings, configure};
pub use text::TextOptions;

/// Times the rest of the scope as an event of the region with this name.
///
/// Returns a guard that must be kept: `let _guard = region!("physics");`. The region is looked up
/// once per call site and thread. The name must be a constant; see [`Region::named`] for others.
#[macro_export]
macro_rules! region {
    ($name:expr) => {{
        static REGION: $crate::Region = $crate::Region::new($name);
        REGION.enter()
    }};
}

/// Makes a report of all threads of this process.
pub fn report() -> ProfileReport {
    ProfileReport::new(&profile())
}

/// Profile of all threads of this process.
pub fn profile() -> Profile {
    registry::lock().profile()
}

/// Profile of this thread: for programs whose ranks are threads.
pub fn profile_of_this_thread() -> Profile {
    registry::lock().profile_of(region::timers())
}
