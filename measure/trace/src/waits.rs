//! Wait states: time that ranks lose because they wait for others, by the patterns of KOJAK and Scalasca.
//!
//! | pattern | time that is lost |
//! |---|---|
//! | late sender | of a receive: from its enter to the enter of the send, at most to the end of the receive. A call that completes several receives waits for the latest of them |
//! | late receiver | of a send that waits for its receive: from its enter to the enter of the receive, if it ends after that |
//! | late root | of the other members of a broadcast or scatter: from the enter to that of the root |
//! | early root | of the root of a gather or reduction: from its enter to that of the last member |
//! | wait at N x N | of each member of an operation in which all wait for all: from its enter to that of the last one |
//! | wait at barrier | the same for a barrier: its imbalance |
//! | early member | of a member of a prefix reduction: from its enter to that of the last one with a lower rank |
//!
//! No wait ends after the call in which it is. Calls are those of MPI, known by the names of their regions; messages
//! outside of them do not count. Non-blocking operations wait in the call that completes them.

mod collective;
mod late_receiver;
mod late_sender;
mod pattern;
mod states;
mod sums;

pub use pattern::WaitPattern;
pub use states::WaitStates;
pub use sums::{WaitSum, WaitSums};

#[cfg(test)]
mod tests;
