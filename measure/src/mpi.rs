//! Operations of an MPI library.

mod barrier_algorithms;
mod calls;
mod computation;
mod constants;
mod control_variable;
mod datatype;
mod derived;
mod entries;
mod epoch;
mod error;
mod forms;
mod group;
mod kind;
mod layout;
mod memory;
mod message_layout;
mod neighbours;
mod one_sided;
mod operation;
mod persistent;
mod persistent_pair;
mod plug_in;
mod reference;
mod settings;
mod team;
mod transfers;
mod verify;
mod window;

pub use barrier_algorithms::{BarrierAlgorithms, SelectedBarrier};
pub use datatype::{Datatype, Reduction};
pub use epoch::{Epoch, WindowMemory};
pub use error::OperationError;
pub use group::MpiGroup;
pub use kind::OperationKind;
pub use message_layout::{Blocks, MessageLayout};
pub use operation::MpiOperation;
pub use plug_in::{BufferHook, PlugIn, PlugInError, PlugInName, PlugInOperation};
pub use settings::{OperationSettings, Root};

/// Command that the compiler of the MPI library runs, with the options that it adds, as it was when this crate was built; `None` if the
/// library's compiler did not tell.
pub const COMPILER: Option<&str> = option_env!("DOWNBEAT_MPICC");
