//! Application timers: how long the regions of a program take, event by event, in reports that stay short at any scale.
//!
//! A region is entered by [`region!`] or by a [`Region`]; what all threads saw of it is a [`Profile`].
//!
//! ```
//! use downbeat_regions;
//! use downbeat_regions::region;
//!
//! fn step() {
//!     let _step = region!("step");
//!     for _ in 0..4 {
//!         let _physics = region!("physics");
//!     }
//! }
//!
//! step();
//! step();
//! let profile = regions::profile();
//! assert_eq!(profile.region("step").map(|found| found.events), Some(2));
//! assert_eq!(profile.region("physics").map(|found| found.events), Some(8));
//! ```
//!
//! Ranks [`gather()`] one [`ProfileReport`] of their profiles, in a logarithmic number of rounds, and rank 0 shows it as the 2007
//! paper on multi-resolution timers does: a [text](ProfileReport::text) that says which ranks took how long, and groups ranks by
//! the bin of their [histograms](HistogramGroup) that has the most events. With the feature `json` it is
//! saved (`ProfileReport::save`) for `downbeat regions show`. A [`ReportDiff`] says what another run has otherwise.
//!
//! ```
//! use downbeat_regions;
//! use downbeat_regions::region;
//! use downbeat_sync::{Comm, ThreadCluster, ThreadComm, block_on_ready};
//!
//! let reports = ThreadCluster::new(3).run(|comm: &ThreadComm| {
//!     for _ in 0..10 {
//!         let _solve = region!("solve");
//!         std::hint::black_box((0..1_000 * u64::from(comm.rank())).sum::<u64>());
//!     }
//!     // Ranks that are processes have all their threads in `regions::profile()`.
//!     block_on_ready(regions::gather(&regions::profile_of_this_thread(), comm))
//! })?;
//! let report = reports.into_iter().next().ok_or("there is a rank 0")??.ok_or("which has the report")?;
//! let solve = report.region("solve").and_then(|region| region.events.as_ref()).ok_or("all ranks solved")?;
//! assert_eq!((solve.ranks.to_string(), solve.count), ("0-2".to_owned(), 30));
//! print!("{}", report.text(&regions::TextOptions::default()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # An example
//! A stencil code, on three threads, or on the ranks of an MPI program:
//!
//! ```text
//! cargo run --release -p downbeat-regions --features json,ranks --example stencil -- --save packed.json
//! cargo build --release -p downbeat-regions --features json,mpi --example stencil_mpi
//! mpirun -np 3 target/release/examples/stencil_mpi --save packed.json
//! ```
//!
//! Its rows are packed onto the first ranks. The last one has no work, and waits for the sum:
//!
//! ```text
//! *** profile for 3 tasks ***
//! max total | min total | avg total | timer
//! ----------|-----------|-----------|------
//!    0.0128 |    0.0112 |    0.0122 | stencil step
//!    0.0111 |    0.0001 |    0.0038 | sum of heat
//!    0.0110 |    0.0000 |    0.0072 | relax
//!    0.0015 |    0.0000 |    0.0009 | halo exchange
//!    0.0002 |    0.0002 |    0.0002 | checkpoint
//! ```
//!
//! What region that is, its histograms say: ranks without work are a group of their own.
//!
//! ```text
//! *** relax
//! ...
//! event histogram for tasks: 0-1
//! 200-299 ticks: 01 max (task 1), 00 min (task 0), 00 avg
//! 100-199 ticks: 04 max (task 0), 02 min (task 1), 03 avg
//! 90-99 ticks: 04 max (task 1), 03 min (task 0), 03 avg
//! 80-89 ticks: 94 max (task 1), 92 min (task 0), 93 avg
//!
//! event histogram for task: 2
//! 0 tick(s): 100 max (task 2), 100 min (task 2), 100 avg
//! ```
//!
//! With `--balanced` all ranks have as many rows, and make one group:
//!
//! ```text
//! event histogram for tasks: 0-2
//! 700-799 ticks: 01 max (task 0), 00 min (task 1), 00 avg
//! 100-199 ticks: 01 max (task 1), 00 min (task 0), 00 avg
//! 80-89 ticks: 02 max (task 1), 00 min (task 2), 01 avg
//! 70-79 ticks: 02 max (task 0), 01 min (task 1), 01 avg
//! 60-69 ticks: 04 max (task 1), 01 min (task 0), 02 avg
//! 50-59 ticks: 96 max (task 2), 92 min (task 1), 94 avg
//! ```
//!
//! # What is defined
//! - Times are inclusive: a region's time contains that of the regions in it.
//! - A region that is entered while it runs in the same thread goes on until all guards are dropped: this is one event,
//!   and the recursions are counted.
//! - Every thread has a timer of its own for every region. Nothing is lost when a thread ends.
//! - Two call sites of one name are one region. An empty name is `(unnamed)`; control characters are escaped; of names
//!   beyond [`LONGEST_NAME`] bytes the beginning is kept, and a number that tells them apart.
//! - To start a running region or stop one that does not run changes nothing, and is counted; so is a clock that ran
//!   backwards, whose event is none. Reports tell.
//! - A profile may be made at any time: a region that runs is told to, and its event is not counted yet.
//!
//! # Caveats
//! * A region costs whoever runs it little more than two readings of the clock, see [`Overhead`]. What the regions in it
//!   cost is part of its time, also where its own cost is subtracted.
//! * The first use of a region in a thread takes a lock and memory, and the first of all calibrates the clock unless
//!   [`configure`] did: let that not happen where it is timed.
//! * The destructors of a thread run after a scope of threads has ended: only a join waits for regions in them.
//! * The unordered counter, which is the default, may be read some nanoseconds early: see [`ClockChoice`].

mod diff;
mod error;
#[cfg(feature = "ranks")]
mod gather;
#[cfg(all(test, feature = "ranks"))]
mod gather_tests;
mod groups;
mod name;
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

pub use diff::{HistogramShift, RankMove, RegionDiff, ReportDiff};
pub use error::RegionError;
#[cfg(feature = "ranks")]
pub use gather::gather;
pub use groups::{BinCounts, HistogramGroup, RankCount};
pub use name::LONGEST_NAME;
pub use places::RankPlace;
pub use profile::{Profile, RegionProfile, Remarks, ThreadEvent};
pub use ranks::{RankRun, RankSet};
pub use region::Region;
pub use report::{EventReport, ProfileReport, RankEvent, RankTotal, RegionReport};
pub use setup::{ClockChoice, Overhead, RegionClock, RegionSettings, configure};
pub use text::TextOptions;

/// Times from here to the end of the scope, as an event of the region of this name.
///
/// Its value is a guard, to be kept: `let _guard = region!("physics");`. The region is found once per call site and
/// thread. For a name that is no constant, see [`Region::named`].
#[macro_export]
macro_rules! region {
    ($name:expr) => {{
        static REGION: $crate::Region = $crate::Region::new($name);
        REGION.enter()
    }};
}

/// What all threads of this process have seen so far.
pub fn profile() -> Profile {
    registry::lock().profile()
}

/// What this thread has seen so far: for programs whose ranks are threads.
pub fn profile_of_this_thread() -> Profile {
    registry::lock().profile_of(region::timers())
}
