//! Backend of simulated ranks, in virtual time.

mod clock;
mod cluster;
mod comm;
mod engine;
mod exchange;
mod group;
mod messages;
mod network;
mod news;
mod node_clock;
mod parameter;
mod part;
mod part_vec;
mod queue;
mod random;
mod rank_state;
mod simulate;
mod traffic;
mod true_clocks;

pub use clock::SimClock;
pub use cluster::SimCluster;
pub use comm::SimComm;
pub use exchange::{NextWindow, PartExchange, WindowReport};
#[cfg(feature = "serde")]
pub use network::parse_duration;
pub use network::{DelayBursts, DelayTail, Network, NetworkCard, NetworkLink};
pub use node_clock::{Clocks, Drift, DriftWalk, NodeClock, VirtualTime};
pub use parameter::require;
pub use random::exponential;
#[cfg(test)]
pub(crate) use random::normal;
pub use simulate::Simulated;
pub use true_clocks::TrueClocks;
