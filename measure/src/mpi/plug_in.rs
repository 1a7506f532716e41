//! Operations of users in shared libraries, by the interface that `downbeat_operation.h` declares.

mod abi;
mod buffers;
mod crash;
mod error;
mod library;
mod operation;
mod outcome;

pub use buffers::BufferHook;
pub(super) use buffers::HookedMemory;
pub use error::PlugInError;
pub use library::PlugInName;
pub use operation::{PlugIn, PlugInOperation};
