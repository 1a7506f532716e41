//! Algorithms that synchronize the clocks of all ranks, one per file.

pub(crate) mod closing;
pub(crate) mod cube;
mod defaults;
mod flat;
mod hca;
mod hca2;
mod hca3;
mod hierarchy;
mod jk;
mod label;
mod local_clock;
mod nbcbench;
mod prop;
mod skampi;
mod synchronize;

pub use cube::{Cube, CubeLength};
pub use flat::FlatAlgorithm;
pub use hca::Hca;
pub use hca2::Hca2;
pub use hca3::{Hca3, Hca3Offset};
pub use hierarchy::Hierarchy;
pub use jk::Jk;
pub use local_clock::{ClosingCost, LocalClock, Synchronized};
pub use nbcbench::NbcBench;
pub use prop::ClockPropSync;
pub use skampi::Skampi;
pub use synchronize::Algorithm;
