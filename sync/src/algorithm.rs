//! Algorithms that synchronize the clocks of all ranks, one per file.

mod auto;
pub(crate) mod closing;
mod cross_check;
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
mod prop;
mod synchronize;
mod warning;
mod watch;

pub use auto::Auto;
pub use cube::{Cube, CubeLength};
pub use flat::FlatAlgorithm;
pub use hierarchy::Hierarchy;
pub use local_clock::{AutoReport, ClosingCost, LocalClock, OtherClock, Synchronized};
pub use synchronize::Algorithm;
pub use warning::SyncWarning;
