//! Operations of an MPI library.

mod calls;
mod constants;
mod datatype;
mod entries;
mod error;
mod group;
mod kind;
mod layout;
mod memory;
mod operation;
mod reference;
mod settings;
mod verify;

pub use datatype::{Datatype, Reduction};
pub use error::OperationError;
pub use group::MpiGroup;
pub use kind::OperationKind;
pub use operation::MpiOperation;
pub use settings::{OperationSettings, Root};
