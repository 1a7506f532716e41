//! Trace that several ranks share and correct together.
//!
//! Each rank has the events of its own locations. Of other locations, it has ghosts of
//! the events that its own ones depend on: the sends to it, and the members of all
//! collective operations in which its locations take part. Ranks tell each other the
//! times of ghosts, and then run the same passes as one rank that has the whole trace.
//! Operations on a [`TracePart`] are collective. Their results, errors included, are
//! those of one rank, bit for bit.

mod exchange;
mod ghosts;
mod latencies;
mod part;
mod replay;
mod results;
mod shares;
#[cfg(test)]
mod tests;

pub(crate) use exchange::exchange_bytes;
pub use exchange::gather_words;
pub(crate) use part::RankShare;
pub use part::TracePart;
pub use results::common_span;
pub use shares::{LocationLoad, LocationShares};
