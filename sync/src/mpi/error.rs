//! What MPI says is wrong.

use core::ffi::c_int;
use core::fmt;
use std::ffi::CStr;

use mpi::ffi;

use super::context::check_usable;

/// Why MPI did not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MpiError {
    /// MPI is not initialized yet.
    NotInitialized,
    /// MPI is already finalized.
    Finalized,
    /// MPI was initialized for the calls of one thread only, and that is another one.
    OtherThread,
    /// The communicator is one between two groups: it has no single order of ranks.
    InterCommunicator,
    /// MPI's colors end at 2^31 - 1.
    ColorTooLarge(u32),
    /// A call failed.
    Failed {
        /// Which.
        call: &'static str,
        /// What it returned.
        code: i32,
        /// The error class of that.
        class: i32,
    },
}

impl MpiError {
    /// What the return code of a call says.
    ///
    /// # Errors
    /// When it says that the call failed; what class of failure it is, MPI is asked only while it runs.
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

    /// What the library says of a call that failed; only while MPI runs, and on a thread that may ask it.
    pub fn text(&self) -> Option<String> {
        let Self::Failed { code, .. } = *self else {
            return None;
        };
        check_usable().ok()?;
        let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
        let mut length = 0;
        // SAFETY: MPI is running, and there is as much room as it may write.
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

/// Anyone may ask for the class of any number, also when it is no code and MPI is not there.
fn class_of(code: c_int) -> Option<c_int> {
    check_usable().ok()?;
    let mut class = 0;
    // SAFETY: MPI is running, and `class` can be written to.
    let returned = unsafe { ffi::MPI_Error_class(code, &raw mut class) };
    (returned == ffi::MPI_SUCCESS as c_int).then_some(class)
}

/// The names of those classes that the calls of this project can return.
const CLASSES: [(u32, &str); 16] = [
    (ffi::MPI_ERR_BUFFER, "MPI_ERR_BUFFER"),
    (ffi::MPI_ERR_COUNT, "MPI_ERR_COUNT"),
    (ffi::MPI_ERR_TYPE, "MPI_ERR_TYPE"),
    (ffi::MPI_ERR_TAG, "MPI_ERR_TAG"),
    (ffi::MPI_ERR_COMM, "MPI_ERR_COMM"),
    (ffi::MPI_ERR_RANK, "MPI_ERR_RANK"),
    (ffi::MPI_ERR_ROOT, "MPI_ERR_ROOT"),
    (ffi::MPI_ERR_OP, "MPI_ERR_OP"),
    (ffi::MPI_ERR_REQUEST, "MPI_ERR_REQUEST"),
    (ffi::MPI_ERR_ARG, "MPI_ERR_ARG"),
    (ffi::MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE"),
    (ffi::MPI_ERR_OTHER, "MPI_ERR_OTHER"),
    (ffi::MPI_ERR_INTERN, "MPI_ERR_INTERN"),
    (ffi::MPI_ERR_PENDING, "MPI_ERR_PENDING"),
    (ffi::MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM"),
    (ffi::MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN"),
];

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialized => f.write_str("MPI is not initialized"),
            Self::Finalized => f.write_str("MPI is already finalized"),
            Self::OtherThread => f.write_str("MPI was initialized for another thread only"),
            Self::InterCommunicator => f.write_str("the communicator is an inter-communicator"),
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
