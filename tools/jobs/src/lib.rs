#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod above_nodes;
mod clock;
mod comparison;
mod counters;
pub mod drift;
pub mod factors;
pub mod keep;
pub mod nodes;
pub mod offsets;
mod ranks;
pub mod sync;
mod truth;
mod watch;

use core::fmt;

use downbeat_clock_core::Clock;
use downbeat_common::records::Factors;
use downbeat_sync::{Comm, CommError};

pub use clock::{CalibratedCounter, JobClock, JobClockName, RankClocks};
pub use ranks::{JobRanks, PlaceOptions};

/// Ranks on which commands run.
pub trait Job: fmt::Debug {
    /// Their communicator.
    type Comm: Comm + fmt::Debug;
    /// Clock that only these ranks have, as MPI_Wtime.
    type OwnClock: Clock + Clone + fmt::Debug;

    /// True if all ranks are threads of one process, and so share its clocks.
    const IS_ONE_PROCESS: bool = false;

    /// Name and version of the program.
    const PROGRAM: &'static str;

    /// Returns the communicator of all ranks.
    fn comm(&self) -> &Self::Comm;

    /// Returns the node of this rank: the lowest rank on it.
    ///
    /// # Errors
    /// If it cannot be found.
    fn node(&self) -> Result<u32, CommError>;

    /// Returns the clock that only these ranks have, if there is one.
    fn own_clock(&self) -> Option<Self::OwnClock> {
        None
    }

    /// Adds the library by which the ranks communicate to the factors.
    fn add_library(&self, factors: Factors) -> Factors {
        factors
    }

    /// Adds the configuration of that library, for experiments that others can repeat.
    fn add_configuration(&self, factors: Factors) -> Factors {
        factors
    }
}
