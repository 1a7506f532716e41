//! Wait states: time that ranks lose because they wait for others, as Scalasca 2 defines
//! them.
//!
//! | pattern | in Scalasca | time that is lost |
//! |---|---|---|
//! | late sender | Late Sender | of a call that receives: from its enter to the enter of the send. A call that completes several receives waits for the latest of them; tests of requests do not wait |
//! | late receiver | Late Receiver | of a blocking send, or of a wait that completes a non-blocking one: from its enter to the enter of the call that received the message or posted the receive, if it ends after that. Of several sends the latest counts, and none in a call that had a late sender |
//! | late root | Late Broadcast | of each other member of a broadcast or scatter that receives data: from its enter to that of the root |
//! | early root | Early Reduce | of the root of a gather or reduction that receives data: from its enter to the first enter of another member that sends data |
//! | wait at N x N | Wait at N x N | of each member that receives data, of an operation in which all wait for all: from its enter to the last enter of a member that sends data. Not of `MPI_Alltoallv` and `MPI_Alltoallw`, in which some members may not wait for others |
//! | wait at barrier | Wait at Barrier | of each member of a barrier: from its enter to that of the last one |
//! | early member | Early Scan | of a member of a prefix reduction that has data: from its enter to that of the last one with a lower rank |
//!
//! No wait ends after the call in which it is. Calls are those of MPI, known by the names
//! of their regions; messages outside of them do not count. Scalasca ignores non-blocking
//! collective operations; here, members wait in the call that completes them. Recordings
//! of `downbeat record` do not have the completions of non-blocking sends, archives of
//! Score-P do.

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
