//! Failures of plug-ins.

use core::ffi::c_int;

use downbeat_sync::CommError;
use thiserror::Error;

use super::abi::ABI;
use crate::aligned::BufferError;

/// A plug-in that cannot be used, or that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlugInError {
    /// The text is not `FILE:NAME`, or these contain other characters than are allowed.
    #[error("{0}")]
    Name(String),
    /// The file cannot be loaded.
    #[error("{0}")]
    Library(String),
    /// The library does not export the function.
    #[error("it has no function {0}")]
    NoSymbol(String),
    /// The function returned no table.
    #[error("{0} returned no table")]
    NoTable(String),
    /// The table is of another version of the interface.
    #[error("{symbol} is for version {found} of downbeat_operation.h, and not {ABI}")]
    Version {
        /// Function that returned it.
        symbol: String,
        /// Version.
        found: u32,
    },
    /// The table is too short.
    #[error("the table of {symbol} has {found} bytes, and must have at least {least}")]
    Size {
        /// Function that returned it.
        symbol: String,
        /// Its size.
        found: u32,
        /// Size that this version has.
        least: usize,
    },
    /// The table has no function of this name.
    #[error("the table of {symbol} has no function {function}")]
    NoFunction {
        /// Function that returned the table.
        symbol: String,
        /// Name of the missing function.
        function: &'static str,
    },
    /// The library is for another MPI library than the one that runs.
    #[error("it is built for another MPI library: {why}")]
    OtherMpi {
        /// Reason.
        why: String,
    },
    /// The least number of ranks exceeds the greatest one.
    #[error("{symbol} needs at least {least} ranks, and allows at most {most}")]
    RankLimits {
        /// Function that returned the table.
        symbol: String,
        /// Least number.
        least: u32,
        /// Greatest number.
        most: u32,
    },
    /// A function failed on this rank.
    #[error(
        "{function}{}",
        match message.as_str() {
            "" => format!(" failed with {code}"),
            message => format!(": {message}"),
        }
    )]
    Failed {
        /// Name of the function.
        function: &'static str,
        /// Value that it returned.
        code: c_int,
        /// Reason that it gave, in one line.
        message: String,
    },
    /// The state of the caches cannot be set up.
    #[error(transparent)]
    Cache(#[from] BufferError),
    /// Another rank failed.
    #[error("rank {rank} failed")]
    Elsewhere {
        /// The last such rank.
        rank: u32,
    },
    /// A function failed on this rank while others do not return from it: they may wait for this one. Only this rank knows.
    #[error("{0}; other ranks do not return from it")]
    OthersWait(Box<Self>),
    /// Communication of the ranks failed.
    #[error(transparent)]
    Comm(#[from] CommError),
}
