//! Bindings of MPI's functions: how C and Fortran pass the same arguments.

use core::ffi::CStr;

use crate::call::Call;
use crate::constants::{Handle, Status};
use crate::pmpi::{out, pointer};

/// One binding.
pub(crate) trait Binding {
    /// True for Fortran.
    const IS_FORTRAN: bool;

    /// True if indices count from 0.
    const COUNTS_FROM_0: bool;

    /// Reads an integer.
    ///
    /// # Safety
    /// The argument must be that of an integer. The same holds for the other functions.
    unsafe fn integer(argument: usize) -> i32;

    /// Reads a number of elements.
    unsafe fn count(argument: usize) -> i64;

    /// Reads a number of elements of an array.
    unsafe fn count_of(argument: usize, index: usize) -> i64;

    /// Reads a handle.
    unsafe fn handle(kind: HandleKind, argument: usize) -> Handle;

    /// Reads a handle of an array, or one that a call makes, changes or frees.
    unsafe fn handle_at(kind: HandleKind, argument: usize, index: usize) -> Handle;

    /// Returns true if the program ignores this status, or these statuses.
    unsafe fn is_ignored(status: usize) -> bool;

    /// Returns true if this buffer stands for the one that receives.
    unsafe fn is_in_place(buffer: usize) -> bool;

    /// Returns the error code of a call; `last` is its last argument.
    unsafe fn code(result: usize, last: usize) -> i32;
}

/// Kind of object that a handle stands for. Sessions are handles as communicators are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HandleKind {
    Communicator,
    Window,
    Group,
    Datatype,
    Request,
    Message,
}

/// C. Large counts have 64 bits.
#[derive(Debug)]
pub(crate) struct C<const LARGE: bool>;

/// Fortran: arguments are addresses, and handles are integers.
#[derive(Debug)]
pub(crate) struct Fortran<const LARGE: bool, const F08: bool>;

/// Reads an integer that an argument points to, at an index of an array.
///
/// # Safety
/// It must point to integers.
#[inline(always)]
pub(crate) unsafe fn integer_at(argument: usize, index: usize) -> i32 {
    let integers = pointer(argument).cast::<i32>();
    // SAFETY: the caller guarantees that this element exists.
    let integer = unsafe { integers.add(index) };
    // SAFETY: as above.
    unsafe { integer.read() }
}

/// Reads a number of elements that an argument points to, at an index of an array.
///
/// # Safety
/// It must point to such numbers.
#[inline(always)]
unsafe fn count_at<const LARGE: bool>(argument: usize, index: usize) -> i64 {
    if LARGE {
        let counts = pointer(argument).cast::<i64>().wrapping_add(index);
        // SAFETY: the caller guarantees that this element exists.
        unsafe { counts.read() }
    } else {
        // SAFETY: as above.
        unsafe { integer_at(argument, index) }.into()
    }
}

/// Reads a status of an array, or a single one. That of Fortran has the same layout.
///
/// # Safety
/// The argument must point to statuses.
pub(crate) unsafe fn status_at(argument: usize, index: usize) -> Status {
    let mut status = Status::EMPTY;
    for (word, value) in status.0.iter_mut().enumerate() {
        // SAFETY: the caller guarantees that this element exists.
        *value = unsafe { integer_at(argument, index * crate::constants::STATUS_WORDS + word) };
    }
    status
}

impl<const LARGE: bool> Binding for C<LARGE> {
    const IS_FORTRAN: bool = false;
    const COUNTS_FROM_0: bool = true;

    #[inline(always)]
    unsafe fn integer(argument: usize) -> i32 {
        argument as i32
    }

    #[inline(always)]
    unsafe fn count(argument: usize) -> i64 {
        if LARGE {
            argument as i64
        } else {
            (argument as i32).into()
        }
    }

    unsafe fn count_of(argument: usize, index: usize) -> i64 {
        // SAFETY: the caller guarantees it.
        unsafe { count_at::<LARGE>(argument, index) }
    }

    #[inline(always)]
    unsafe fn handle(_: HandleKind, argument: usize) -> Handle {
        if cfg!(open_mpi) {
            argument
        } else {
            // The upper half of the register can hold anything.
            argument as u32 as usize
        }
    }

    #[inline(always)]
    unsafe fn handle_at(_: HandleKind, argument: usize, index: usize) -> Handle {
        if cfg!(open_mpi) {
            let handle = pointer(argument).cast::<usize>().wrapping_add(index);
            // SAFETY: the caller guarantees that this element exists.
            unsafe { handle.read() }
        } else {
            // SAFETY: as above.
            unsafe { integer_at(argument, index) as u32 as usize }
        }
    }

    #[inline(always)]
    unsafe fn is_ignored(status: usize) -> bool {
        status == crate::constants::IGNORED
    }

    unsafe fn is_in_place(buffer: usize) -> bool {
        buffer == crate::constants::IN_PLACE
    }

    #[inline(always)]
    unsafe fn code(result: usize, _: usize) -> i32 {
        result as i32
    }
}

/// Converts a handle of Fortran: in MPICH it is the same number.
fn from_fortran(kind: HandleKind, handle: i32) -> Handle {
    const fn conversion(symbol: &'static CStr) -> Call {
        Call::new(symbol, symbol)
    }
    // By kind.
    static CONVERSIONS: [Call; 6] = [
        conversion(c"PMPI_Comm_f2c"),
        conversion(c"PMPI_Win_f2c"),
        conversion(c"PMPI_Group_f2c"),
        conversion(c"PMPI_Type_f2c"),
        conversion(c"PMPI_Request_f2c"),
        conversion(c"PMPI_Message_f2c"),
    ];
    if cfg!(not(open_mpi)) {
        return handle as u32 as usize;
    }
    // SAFETY: it takes an integer.
    unsafe { CONVERSIONS[kind as usize].forward([handle as usize]) }
}

impl<const LARGE: bool, const F08: bool> Binding for Fortran<LARGE, F08> {
    const IS_FORTRAN: bool = true;
    // MPICH 4.0 does so, against the standard.
    const COUNTS_FROM_0: bool = F08 && cfg!(not(open_mpi));

    unsafe fn integer(argument: usize) -> i32 {
        // SAFETY: the caller guarantees it.
        unsafe { integer_at(argument, 0) }
    }

    unsafe fn count(argument: usize) -> i64 {
        // SAFETY: the caller guarantees it.
        unsafe { count_at::<LARGE>(argument, 0) }
    }

    unsafe fn count_of(argument: usize, index: usize) -> i64 {
        // SAFETY: the caller guarantees it.
        unsafe { count_at::<LARGE>(argument, index) }
    }

    unsafe fn handle(kind: HandleKind, argument: usize) -> Handle {
        // SAFETY: the caller guarantees it.
        unsafe { Self::handle_at(kind, argument, 0) }
    }

    unsafe fn handle_at(kind: HandleKind, argument: usize, index: usize) -> Handle {
        // SAFETY: the caller guarantees it.
        from_fortran(kind, unsafe { integer_at(argument, index) })
    }

    unsafe fn is_ignored(status: usize) -> bool {
        special::is_ignored(status)
    }

    unsafe fn is_in_place(buffer: usize) -> bool {
        if F08 && !cfg!(open_mpi) {
            // A descriptor begins with the address.
            // SAFETY: the caller guarantees it.
            return special::is_in_place(unsafe { pointer(buffer).cast::<usize>().read() });
        }
        special::is_in_place(buffer)
    }

    unsafe fn code(_: usize, last: usize) -> i32 {
        // SAFETY: the last argument is the error code; wrappers of Fortran replace it where it is absent.
        unsafe { integer_at(last, 0) }
    }
}

/// Addresses with a meaning of their own in Fortran.
mod special {
    use crate::objects::{NOWHERE, Symbol};
    use crate::pmpi::pointer;

    /// Returns true if an address is that of one of the variables, or held by one of the pointers, once MPI is initialized.
    fn is_one(address: usize, variables: &[Symbol], pointers: &[Symbol]) -> bool {
        let is = |symbol: &Symbol| symbol.address() == address;
        let holds = |symbol: &Symbol| {
            let at = symbol.address();
            // SAFETY: a variable of this name holds an address.
            at != NOWHERE && unsafe { pointer(at).cast::<usize>().read() } == address
        };
        variables.iter().any(is) || pointers.iter().any(holds)
    }

    pub(super) fn is_ignored(status: usize) -> bool {
        static VARIABLES: [Symbol; 4] = [
            Symbol::new(c"mpi_fortran_status_ignore_"),
            Symbol::new(c"mpi_fortran_statuses_ignore_"),
            Symbol::new(c"MPIR_F08_MPI_STATUS_IGNORE_OBJ"),
            Symbol::new(c"MPIR_F08_MPI_STATUSES_IGNORE_OBJ"),
        ];
        static POINTERS: [Symbol; 4] = [
            Symbol::new(c"MPI_F_STATUS_IGNORE"),
            Symbol::new(c"MPI_F_STATUSES_IGNORE"),
            Symbol::new(c"MPI_F08_STATUS_IGNORE"),
            Symbol::new(c"MPI_F08_STATUSES_IGNORE"),
        ];
        is_one(status, &VARIABLES, &POINTERS)
    }

    pub(super) fn is_in_place(buffer: usize) -> bool {
        static VARIABLES: [Symbol; 2] = [
            Symbol::new(c"mpi_fortran_in_place_"),
            Symbol::new(c"MPIR_F08_MPI_IN_PLACE"),
        ];
        static POINTERS: [Symbol; 1] = [Symbol::new(c"MPIR_F_MPI_IN_PLACE")];
        is_one(buffer, &VARIABLES, &POINTERS)
    }
}

/// Returns the length of a message in bytes; 0 if it has none.
pub(crate) fn received_bytes(status: &mut Status) -> u64 {
    let byte = crate::constants::byte();
    let mut count = 0_i32;
    // SAFETY: the status is one that a receive filled.
    let code = unsafe { crate::pmpi::get_count(out(status), byte, out(&mut count)) };
    if code == 0 && count >= 0 {
        return count as u64;
    }
    let mut count = 0_i64;
    // SAFETY: as above.
    let code = unsafe { crate::pmpi::get_elements_x(out(status), byte, out(&mut count)) };
    if code == 0 { count.max(0) as u64 } else { 0 }
}

/// Returns the length of `count` elements in bytes.
pub(crate) fn bytes(count: i64, datatype: Handle) -> u64 {
    // The call itself reports that it has none.
    if datatype == 0 || datatype == crate::constants::datatype_null() {
        return 0;
    }
    // SAFETY: the program passes a datatype.
    let size = unsafe { crate::pmpi::type_size(datatype) };
    count.max(0) as u64 * size.max(0) as u64
}
