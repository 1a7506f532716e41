//! The table of the functions of this library.

use crate::boundary::{downbeat_error_message, keep_message};
use crate::clock::*;
use crate::identity::{DOWNBEAT_ABI, IDENTITY};
#[cfg(feature = "mpi")]
use crate::library::mpi_functions;
use crate::library::{Library, functions};
#[cfg(feature = "mpi")]
use crate::mpi::*;
#[cfg(feature = "mpi")]
use crate::team::*;
use crate::timers::*;

macro_rules! fill {
    ($name:ident { $($function:ident($($argument:ty),*) -> $result:ty;)* }) => {
        crate::library::$name { $($function),* }
    };
}

static OWN: Library = Library {
    version: DOWNBEAT_ABI,
    size: size_of::<Library>() as u32,
    identity: &IDENTITY,
    keep_message,
    functions: functions!(fill),
    #[cfg(feature = "mpi")]
    mpi: mpi_functions!(fill),
    #[cfg(not(feature = "mpi"))]
    mpi: (),
};

/// Returns the functions of this library, for others in the same process. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn downbeat_library() -> *const Library {
    &raw const OWN
}
