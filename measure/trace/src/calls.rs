//! Calls of a program, found while the items of its trace pass once: the regions that are open on each
//! location, messages with both ends, and collective operations with all members.
//!
//! A [`CallWalk`] takes items and tells a [`CallObserver`] what it finds. Only open regions, messages under
//! way and unfinished operations are in memory, so items of several locations should be roughly in the order
//! of time.

mod folded;
mod messages;
mod names;
mod observer;
mod operations;
mod post_order;
mod stack;
mod times;
mod walk;

pub use folded::FoldedCalls;
pub use names::ProgramNames;
pub use observer::{Call, CallObserver, CallSegment, MessageEnd, Operation, OperationMember};
pub use times::{CallTime, CallTimes};
pub use walk::{CallWalk, LeftOpen};
