//! Failures of plug-ins.

use core::ffi::c_int;
use core::fmt;

use downbeat_sync::CommError;

use super::abi::ABI;
use crate::aligned::BufferError;

/// A plug-in that cannot be used, or that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlugInError {
    /// The text is not `FILE:NAME`, or these contain other characters than are allowed.
    Name(String),
    /// The file cannot be loaded.
    Library(String),
    /// The library does not export the function.
    NoSymbol(String),
    /// The function returned no table.
    NoTable(String),
    /// The table is of another version of the interface.
    Version {
        /// Function that returned it.
        symbol: String,
        /// Version.
        found: u32,
    },
    /// The table is too short.
    Size {
        /// Function that returned it.
        symbol: String,
        /// Its size.
        found: u32,
        /// Size that this version has.
        least: usize,
    },
    /// The table has no function of this name.
    NoFunction {
        /// Function that returned the table.
        symbol: String,
        /// Name of the missing function.
        function: &'static str,
    },
    /// The library is for another MPI library than the one that runs.
    OtherMpi {
        /// Reason.
        why: String,
    },
    /// The least number of ranks exceeds the greatest one.
    RankLimits {
        /// Function that returned the table.
        symbol: String,
        /// Least number.
        least: u32,
        /// Greatest number.
        most: u32,
    },
    /// A function failed on this rank.
    Failed {
        /// Name of the function.
        function: &'static str,
        /// Value that it returned.
        code: c_int,
        /// Reason that it gave, in one line.
        message: String,
    },
    /// The state of the caches cannot be set up.
    Cache(BufferError),
    /// Another rank failed.
    Elsewhere {
        /// The last such rank.
        rank: u32,
    },
    /// A function failed on this rank while others do not return from it: they may wait for this one. Only this rank knows.
    OthersWait(Box<Self>),
    /// Communication of the ranks failed.
    Comm(CommError),
}

impl fmt::Display for PlugInError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(why) | Self::Library(why) => f.write_str(why),
            Self::NoSymbol(symbol) => write!(f, "it has no function {symbol}"),
            Self::NoTable(symbol) => write!(f, "{symbol} returned no table"),
            Self::Version { symbol, found } => write!(
                f,
                "{symbol} is for version {found} of downbeat_operation.h, and not {ABI}"
            ),
            Self::Size {
                symbol,
                found,
                least,
            } => write!(
                f,
                "the table of {symbol} has {found} bytes, and must have at least {least}"
            ),
            Self::NoFunction { symbol, function } => {
                write!(f, "the table of {symbol} has no function {function}")
            }
            Self::OtherMpi { why } => write!(f, "it is built for another MPI library: {why}"),
            Self::RankLimits {
                symbol,
                least,
                most,
            } => write!(
                f,
                "{symbol} needs at least {least} ranks, and allows at most {most}"
            ),
            Self::Failed {
                function,
                code,
                message,
            } if message.is_empty() => write!(f, "{function} failed with {code}"),
            Self::Failed {
                function, message, ..
            } => write!(f, "{function}: {message}"),
            Self::Cache(why) => why.fmt(f),
            Self::Elsewhere { rank } => write!(f, "rank {rank} failed"),
            Self::OthersWait(why) => write!(f, "{why}; other ranks do not return from it"),
            Self::Comm(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for PlugInError {}

impl From<CommError> for PlugInError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

impl From<BufferError> for PlugInError {
    fn from(why: BufferError) -> Self {
        Self::Cache(why)
    }
}
