//! Functions of the MPI library, as its header and its bindings of Fortran name them; generated when this library is built.

use core::ffi::c_int;

use downbeat_trace::AccessKind::{Get, Put};
use downbeat_trace::CollectiveKind::{
    Allgather, Allreduce, Alltoall, Alltoallv, Barrier, Broadcast, Exscan, Gather, Reduce,
    ReduceScatter, Scan, Scatter,
};

use crate::arguments::Arguments;
use crate::binding::{C, Fortran};
use crate::call::Call;
use crate::calls::CompletionKind::{All, Any, One, Several};
use crate::calls::*;
use crate::pmpi::out;
use crate::process;

/// Calls the handler of a function, or the function alone where its calls are not traced.
macro_rules! handle {
    ($arguments:expr, $handler:path, ($($extra:expr),*)) => {
        match TracedCall::of(&CALL) {
            // SAFETY: the program passes the arguments of this function.
            Some(call) => unsafe { $handler(call, $arguments $(, $extra)*) },
            // SAFETY: as above.
            None => unsafe { CALL.forward($arguments) },
        }
    };
}

// Exceptions of C++ that an error handler throws go through the calls.
macro_rules! wrapper {
    ($symbol:ident, $own:literal, $name:literal, [$($argument:ident),*], $handler:path, ($($extra:expr),*)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> usize {
            static CALL: Call = Call::new($own, $name);
            handle!([$($argument),*], $handler, ($($extra),*))
        }
    };
}

macro_rules! fortran_wrapper {
    ($symbol:ident, $own:literal, $name:literal, [$($argument:ident),*], $handler:path, ($($extra:expr),*)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> usize {
            static CALL: Call = Call::new($own, $name);
            let mut arguments = [$($argument),*];
            let mut error = 0_i32;
            // Programs with mpi_f08 can leave the error code out.
            if Arguments::last(&arguments) == 0 {
                arguments.set(arguments.len() - 1, out(&mut error));
            }
            handle!(arguments, $handler, ($($extra),*))
        }
    };
}

/// Another spelling of a function of Fortran.
macro_rules! alias {
    ($other:ident, $symbol:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $other() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("jmp {}", sym $symbol);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("b {}", sym $symbol);
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));

/// Switches recording off with 0, and on with any other level.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Pcontrol(level: c_int, a1: usize, a2: usize, a3: usize) -> usize {
    static CALL: Call = Call::new(c"MPI_Pcontrol", c"MPI_Pcontrol");
    process::record(level != 0);
    // SAFETY: other tools may take further arguments, which are in these registers.
    unsafe { CALL.forward([level as usize, a1, a2, a3]) }
}

/// The same for Fortran.
#[unsafe(no_mangle)]
unsafe extern "C" fn mpi_pcontrol_(level: *const c_int) {
    static CALL: Call = Call::new(c"mpi_pcontrol_", c"MPI_Pcontrol");
    // SAFETY: the program passes an integer.
    process::record(unsafe { level.read() } != 0);
    // SAFETY: as above.
    unsafe { CALL.forward([level.expose_provenance()]) };
}
