//! `libdownbeat`: one precise clock for the ranks of programs in C, C++ and Fortran.
//!
//! This crate is compiled to the libraries `libdownbeat` and, with the feature `mpi` and once for each MPI library,
//! `libdownbeat_mpi`, static and shared; `cargo xtask install` installs them with their headers. Its functions are those of
//! `include/downbeat.h`, which documents them. Rust programs use the crate [`downbeat`].
//!
//! # Rules of the boundary
//! - Every call returns a code, and the reason of a failure in [`downbeat_error_message`], for each thread. No panic leaves a
//!   call, nor its message.
//! - A NULL pointer and a closed handle are failures: the memory of handles is never freed.
//! - [`DOWNBEAT_ABI`] is checked where handles are made.
//! - Every call that uses state is done by the library that the process loaded first ([`Library`]).
//! - The layout of [`Model`] is that of `PublishedModel` in `downbeat-clock-core`; programs read it in place, as long as they know the
//!   number of its layout.

mod boundary;
mod clock;
mod environment;
mod failure;
mod handle;
mod identity;
mod library;
#[cfg(feature = "mpi")]
mod mpi;
mod objects;
mod status;
mod table;
#[cfg(feature = "mpi")]
mod team;
mod timers;
mod tracer;

pub use boundary::downbeat_error_message;
pub use clock::*;
pub use identity::DOWNBEAT_ABI;
pub use library::Library;
#[cfg(feature = "mpi")]
pub use mpi::*;
pub use objects::*;
pub use status::*;
pub use table::downbeat_library;
#[cfg(feature = "mpi")]
pub use team::*;
pub use timers::*;
