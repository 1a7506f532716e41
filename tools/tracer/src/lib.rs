//! libdownbeat_trace, to preload: records what an MPI program does, in C, C++, Fortran and Python, without compiling it again.
//!
//! It defines the functions of one MPI library, of its C header and of its bindings of Fortran; each records that it is entered and
//! left, and calls the next function of the same name. The records are described in `downbeat-recording`. It links no MPI library:
//! a process without MPI pays nothing but its loading.
//!
//! The library exists with the feature `mpi` only, which takes the functions from the compiler in the variable `MPICC`.
#![cfg(all(feature = "mpi", target_os = "linux"))]
#![expect(
    unsafe_code,
    reason = "it stands between a program and its MPI library"
)]

mod arguments;
mod binding;
mod blocks;
mod call;
mod calls;
mod communicators;
mod constants;
mod exchanges;
mod failure;
mod hooks;
mod objects;
mod pmpi;
mod process;
mod requests;
mod spare;
mod synchronize;
mod thread;
mod windows;
mod wrappers;
