//! Tables and arguments of plug-ins, as `downbeat_operation.h` declares them for C.

use core::ffi::{c_char, c_int, c_void};

use mpi::ffi::MPI_Comm;

/// Version of the interface.
pub(super) const ABI: u32 = 1;

/// The operation has no message.
pub(super) const NO_MESSAGE: u32 = 1;

/// Beginning of every table.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct TableHead {
    pub(super) abi: u32,
    pub(super) size: u32,
}

/// Table that a plug-in returns.
pub(super) trait Table: Copy {
    /// Beginning of the names of its functions.
    const PREFIX: &'static str;
    /// Names of its mandatory functions, with true for those that are there.
    fn mandatory(&self) -> [(&'static str, bool); 3];
}

/// Functions of an operation.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct OperationTable {
    pub(super) head: TableHead,
    pub(super) mpi_comm_size: u32,
    pub(super) flags: u32,
    pub(super) least_ranks: u32,
    pub(super) most_ranks: u32,
    pub(super) setup:
        Option<unsafe extern "C" fn(*const OperationContext, *mut *mut c_void) -> c_int>,
    pub(super) call: Option<unsafe extern "C" fn(*mut c_void, u32) -> c_int>,
    pub(super) check: Option<unsafe extern "C" fn(*mut c_void, u32) -> c_int>,
    pub(super) prepare: Option<unsafe extern "C" fn(*mut c_void, c_int)>,
    pub(super) teardown: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Table for OperationTable {
    const PREFIX: &'static str = "downbeat_operation_";

    fn mandatory(&self) -> [(&'static str, bool); 3] {
        [
            ("setup", self.setup.is_some()),
            ("call", self.call.is_some()),
            ("teardown", self.teardown.is_some()),
        ]
    }
}

/// Functions for memory of a kind of its own.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct BuffersTable {
    pub(super) head: TableHead,
    pub(super) allocate: Option<unsafe extern "C" fn(usize, usize) -> *mut c_void>,
    pub(super) copy: Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int>,
    pub(super) free: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Table for BuffersTable {
    const PREFIX: &'static str = "downbeat_buffers_";

    fn mandatory(&self) -> [(&'static str, bool); 3] {
        [
            ("allocate", self.allocate.is_some()),
            ("copy", self.copy.is_some()),
            ("free", self.free.is_some()),
        ]
    }
}

/// Arguments of an operation.
#[repr(C)]
pub(super) struct OperationContext {
    pub(super) head: TableHead,
    pub(super) comm: *const MPI_Comm,
    pub(super) fortran_comm: i32,
    pub(super) root: i32,
    pub(super) bytes: u64,
    pub(super) buffers: *const BuffersTable,
    pub(super) message: *mut c_char,
    pub(super) message_size: u64,
    pub(super) alignment: u64,
    pub(super) cache_size: u64,
    pub(super) cache: u32,
}
