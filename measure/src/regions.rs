//! Application timers: how long the regions of a program take, event by event, in reports that stay short at any scale.
//!
//! A region is entered by [`region!`](crate::region) or by a [`Region`]; what all threads saw of it is a [`Profile`].
//!
//! ```
//! use downbeat_measure::{region, regions};
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
//! What is defined:
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
//! * A region costs whoever runs it some 30 ns, see [`Overhead`]. The regions in it are part of its time.
//! * The unordered counter, which is the default, may be read some nanoseconds early: see [`ClockChoice`].

mod gather;
#[cfg(test)]
mod gather_tests;
mod groups;
mod name;
mod profile;
mod ranks;
mod region;
mod registry;
mod report;
#[cfg(feature = "json")]
mod saved;
mod setup;
#[cfg(test)]
mod tests;
mod text;
mod wire;

pub use gather::{GatherError, gather};
pub use groups::{BinCounts, CountOf, HistogramGroup};
pub use name::LONGEST_NAME;
pub use profile::{Profile, RegionProfile, Remarks, ThreadEvent};
pub use ranks::{RankSet, Run};
pub use region::Region;
pub use report::{EventReport, MergeError, RankEvent, RankTotal, RegionReport, Report};
pub use setup::{ClockChoice, Overhead, RegionClock, Settings, SetupError, configure};
pub use text::TextOptions;

/// Times from here to the end of the scope, as an event of the region of this name.
///
/// Its value is a guard, to be kept: `let _guard = region!("physics");`. The region is found once per call site and
/// thread. For a name that is no constant, see [`Region::named`].
#[macro_export]
macro_rules! region {
    ($name:expr) => {{
        static REGION: $crate::regions::Region = $crate::regions::Region::new($name);
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
