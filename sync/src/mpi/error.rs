//! Errors of MPI.

use core::ffi::c_int;
use core::fmt;
use std::ffi::CStr;

use mpi::environment::{self, Threading};
use mpi::ffi;

/// Error of an MPI call, or reason why MPI cannot be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MpiError {
    /// MPI is not initialized yet.
    NotInitialized,
    /// MPI is already finalized.
    Finalized,
    /// MPI was initialized for the calls of another thread only.
    OtherThread,
    /// MPI was initialized for one thread at a time, and another thread has a communicator.
    SecondThread,
    /// The communicator is an inter-communicator, which has no single order of ranks.
    InterCommunicator,
    /// `MPI_COMM_WORLD` has one rank, but the launcher started several: it is not a launcher of the MPI
    /// library that the program is linked with.
    Singleton {
        /// Environment variable with the number of ranks that the launcher started.
        variable: &'static str,
        /// That number.
        ranks: u32,
        /// Launchers that the library understands.
        remedy: &'static str,
    },
    /// The color exceeds the maximum of MPI, 2^31 - 1.
    ColorTooLarge(u32),
    /// A call failed.
    Failed {
        /// Name of the MPI function.
        call: &'static str,
        /// Return code of the call.
        code: i32,
        /// Error class of the return code.
        class: i32,
    },
}

impl MpiError {
    /// Checks the return code of a call.
    ///
    /// # Errors
    /// If the code is not `MPI_SUCCESS`. The error class is only determined while MPI runs.
    #[inline]
    pub fn check(call: &'static str, code: c_int) -> Result<(), Self> {
        if code == ffi::MPI_SUCCESS as c_int {
            Ok(())
        } else {
            Err(Self::failed(call, code))
        }
    }

    #[cold]
    fn failed(call: &'static str, code: c_int) -> Self {
        Self::Failed {
            call,
            code,
            class: class_of(code).unwrap_or(ffi::MPI_ERR_UNKNOWN as c_int),
        }
    }

    /// Returns the library's message for a failed call; only while MPI runs, and on a thread that
    /// may call it.
    pub fn text(&self) -> Option<String> {
        let Self::Failed { code, .. } = *self else {
            return None;
        };
        check_usable().ok()?;
        let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
        let mut length = 0;
        // SAFETY: MPI is running, and the buffer has the maximum length.
        let returned =
            unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
        Self::check("MPI_Error_string", returned).ok()?;
        Some(
            CStr::from_bytes_until_nul(&text)
                .ok()?
                .to_string_lossy()
                .into_owned(),
        )
    }
}

/// Checks that this thread may call MPI.
pub(super) fn check_usable() -> Result<(), MpiError> {
    if !environment::is_initialized() {
        return Err(MpiError::NotInitialized);
    }
    if environment::is_finalized() {
        return Err(MpiError::Finalized);
    }
    if environment::threading_support() >= Threading::Serialized {
        return Ok(());
    }
    let mut main = 0;
    // SAFETY: MPI is running, any thread may ask this, and `main` can be written to.
    let code = unsafe { ffi::MPI_Is_thread_main(&raw mut main) };
    MpiError::check("MPI_Is_thread_main", code)?;
    if main == 0 {
        Err(MpiError::OtherThread)
    } else {
        Ok(())
    }
}

/// Returns the error class of any code, or `None` if MPI cannot be called or does not know the
/// code.
fn class_of(code: c_int) -> Option<c_int> {
    check_usable().ok()?;
    let mut class = 0;
    // SAFETY: MPI is running, and `class` can be written to.
    let returned = unsafe { ffi::MPI_Error_class(code, &raw mut class) };
    (returned == ffi::MPI_SUCCESS as c_int).then_some(class)
}

macro_rules! classes {
    ($($class:ident),*) => {
        [$((ffi::$class, stringify!($class))),*]
    };
}

/// Names of the error classes that the MPI calls of this project can return.
const CLASSES: [(u32, &str); 16] = classes![
    MPI_ERR_BUFFER,
    MPI_ERR_COUNT,
    MPI_ERR_TYPE,
    MPI_ERR_TAG,
    MPI_ERR_COMM,
    MPI_ERR_RANK,
    MPI_ERR_ROOT,
    MPI_ERR_OP,
    MPI_ERR_REQUEST,
    MPI_ERR_ARG,
    MPI_ERR_TRUNCATE,
    MPI_ERR_OTHER,
    MPI_ERR_INTERN,
    MPI_ERR_PENDING,
    MPI_ERR_NO_MEM,
    MPI_ERR_UNKNOWN
];

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialized => f.write_str("MPI is not initialized"),
            Self::Finalized => f.write_str("MPI is already finalized"),
            Self::OtherThread => f.write_str("MPI was initialized for another thread only"),
            Self::SecondThread => f.write_str(
                "another thread has a communicator: MPI must be initialized with MPI_THREAD_MULTIPLE",
            ),
            Self::InterCommunicator => f.write_str("the communicator is an inter-communicator"),
            Self::Singleton {
                variable,
                ranks,
                remedy,
            } => {
                write!(f, "{variable} is {ranks}, but MPI_COMM_WORLD has 1 rank: {remedy}")
            }
            Self::ColorTooLarge(color) => {
                write!(f, "MPI has no color {color}: they end at {}", c_int::MAX)
            }
            Self::Failed { call, code, class } => {
                match CLASSES
                    .into_iter()
                    .find(|(known, _)| i64::from(*known) == i64::from(*class))
                {
                    Some((_, name)) => write!(f, "{call} failed: {name}, code {code}"),
                    None => write!(f, "{call} failed: error class {class}, code {code}"),
                }
            }
        }
    }
}

impl core::error::Error for MpiError {}
