//! Calls of a program, found while the items of its trace pass once: the regions that are open on each
//! location, messages with both ends, and collective operations with all members.
//!
//! A [`CallWalk`] takes items and passes on each [`CallFinding`]. Only open regions,
//! messages under way and unfinished operations are in memory, so items of several
//! locations should be roughly in the order of time.

mod finding;
mod folded;
mod names;
mod operations;
mod stack;
mod times;
mod walk;

pub use finding::{Call, CallFinding, CallSegment, MessageEnd, Operation, OperationMember};
pub use folded::FoldedCalls;
pub use names::ProgramNames;
pub use times::{CallTime, CallTimes};
pub use walk::{CallWalk, LeftOpen};
