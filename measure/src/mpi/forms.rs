//! Forms of operations: blocking, non-blocking and persistent.

use super::calls::MpiCall;
use super::persistent::PersistentCall;

/// Forms of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallForms {
    pub(super) blocking: MpiCall,
    /// Non-blocking form followed by a wait, with a computation in between if there is one.
    pub(super) immediate: Option<MpiCall>,
    pub(super) persistent: Option<PersistentCall>,
    /// Requests that the blocking form needs.
    pub(super) requests: Option<PersistentCall>,
}

impl CallForms {
    /// Returns the forms of an operation that is no collective one.
    pub(super) const fn only_blocking(call: MpiCall) -> Self {
        Self {
            blocking: call,
            immediate: None,
            persistent: None,
            requests: None,
        }
    }

    /// Returns the form of a call that starts requests, which are made in advance.
    pub(super) const fn by_requests(requests: PersistentCall, call: MpiCall) -> Self {
        Self {
            requests: Some(requests),
            ..Self::only_blocking(call)
        }
    }
}

/// Creates the calls of a blocking, a non-blocking and a persistent function with these arguments; the non-blocking one also takes a
/// request, and the persistent one hints and a request.
macro_rules! collective {
    ($blocking:ident, $immediate:ident, $extension:ident: $($argument:ident)*) => {{
        unsafe fn blocking(with: &$crate::mpi::calls::CallArguments) -> Result<(), downbeat_sync::MpiError> {
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
            let code = unsafe { mpi::ffi::$blocking($(with.$argument),*) };
            downbeat_sync::MpiError::check(stringify!($blocking), code)
        }
        unsafe fn immediate(with: &$crate::mpi::calls::CallArguments) -> Result<(), downbeat_sync::MpiError> {
            let mut request = $crate::mpi::calls::no_request();
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid; the request is writable.
            let code = unsafe { mpi::ffi::$immediate($(with.$argument,)* &raw mut request) };
            downbeat_sync::MpiError::check(stringify!($immediate), code)?;
            with.computation.run(&mut request)?;
            $crate::mpi::calls::wait(request)
        }
        unsafe fn make(
            with: &$crate::mpi::calls::CallArguments,
            function: *mut core::ffi::c_void,
        ) -> Result<(), downbeat_sync::MpiError> {
            // SAFETY: the caller guarantees that this is the function, whose arguments are those of the blocking one and these two.
            let function = unsafe {
                core::mem::transmute::<
                    *mut core::ffi::c_void,
                    unsafe extern "C" fn(
                        $($crate::mpi::forms::any!($argument),)*
                        mpi::ffi::MPI_Info,
                        *mut mpi::ffi::MPI_Request,
                    ) -> core::ffi::c_int,
                >(function)
            };
            // SAFETY: a constant.
            let no_info = unsafe { mpi::ffi::RSMPI_INFO_NULL };
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid, as long as the request exists.
            let code = unsafe { function($(with.$argument,)* no_info, with.requests) };
            downbeat_sync::MpiError::check(concat!(stringify!($blocking), "_init"), code)
        }
        let functions = [
            concat!(stringify!($blocking), "_init"),
            concat!(stringify!($extension), "_init"),
        ];
        let persistent = Some($crate::mpi::persistent::PersistentCall { functions, requests: 1, make });
        $crate::mpi::forms::CallForms { blocking, immediate: Some(immediate), persistent, requests: None }
    }};
}
pub(super) use collective;

/// Type that the compiler infers from an argument.
macro_rules! any {
    ($argument:ident) => {
        _
    };
}
pub(super) use any;
