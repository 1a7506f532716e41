//! Settings of all operations of a measurement.

use core::fmt;
use core::str::FromStr;

use super::datatype::{Datatype, Reduction};
use super::epoch::{Epoch, WindowMemory};
use super::kind::OperationKind;
use super::message_layout::MessageLayout;
use crate::Preset;
use crate::aligned::Alignment;
use crate::cache::CacheState;
use crate::error::MethodError;

/// Settings of operations. Operations without a reduction or a root ignore these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationSettings {
    /// Datatype of the elements.
    pub datatype: Datatype,
    /// Places of the elements in memory.
    pub layout: MessageLayout,
    /// Reduction that combines elements.
    pub reduction: Reduction,
    /// Root of the operation.
    pub root: Root,
    /// True to use `MPI_IN_PLACE`: on all ranks, or on the root if only the root has both a contribution and a result.
    ///
    /// MPICH 4.0.2 crashes if more than 2 KiB are reduced in place to another root than rank 0.
    pub in_place: bool,
    /// Alignment of messages.
    pub alignment: Alignment,
    /// State of the caches before a call.
    pub cache: CacheState,
    /// Size of the cache to make cold; warm caches need no size.
    pub cache_bytes: usize,
    /// Memory limit for the messages of a rank, in bytes, without the memory that makes caches cold.
    pub memory: u64,
    /// Number of messages that are in flight at once in each direction of `bandwidth` and `bidirectional`, and of accesses of
    /// `put-bandwidth` and `get-bandwidth`: the window of OSU and IMB. At least 1.
    pub in_flight: u32,
    /// Number of threads of each rank that call the operation at once, each with messages and a communicator of its own. At least 1; more need
    /// `MPI_THREAD_MULTIPLE`.
    pub threads: u32,
    /// Number of parts of the messages of `partitioned-ping-pong`. At least 1.
    pub partitions: u32,
    /// Distance up to which ranks are neighbours, on both sides, in neighborhood collectives. At least 1.
    pub radius: u32,
    /// Synchronization of one-sided operations.
    pub epoch: Epoch,
    /// Memory of their windows. That of a plug-in needs [`WindowMemory::Create`].
    pub window_memory: WindowMemory,
}

/// Contiguous bytes with bitwise or, which allow every size; root 0; warm caches; at most 1 GiB of messages; 64 in flight, as in OSU; one
/// thread; four parts; two neighbours; allocated windows that are flushed, as in OSU.
impl Default for OperationSettings {
    fn default() -> Self {
        Self {
            datatype: Datatype::Byte,
            layout: MessageLayout::Contiguous,
            reduction: Reduction::Bor,
            root: Root::Rank(0),
            in_place: false,
            alignment: Alignment::default(),
            cache: CacheState::Warm,
            cache_bytes: 0,
            memory: 1 << 30,
            in_flight: 64,
            threads: 1,
            partitions: 4,
            radius: 1,
            epoch: Epoch::Flush,
            window_memory: WindowMemory::Allocate,
        }
    }
}

impl OperationSettings {
    /// Returns the root of the first call, and the number of ranks that are roots in turn from there.
    pub(super) fn roots(&self, kind: OperationKind, ranks: u32) -> (u32, u32) {
        match self.root {
            _ if !kind.has_root() => (0, 1),
            Root::Rank(rank) => (rank, 1),
            Root::Rotating => (0, ranks),
        }
    }

    /// Returns the settings with which a suite calls the operation: its datatype, reduction and root. Those of suites whose sources
    /// are not public are the default ones.
    pub fn of_suite(suite: Preset, kind: OperationKind) -> Self {
        let (message, number, reduction) = match suite {
            Preset::Osu => (Datatype::Char, Datatype::SignedChar, Reduction::Sum),
            Preset::Imb | Preset::Imb4 => (Datatype::Byte, Datatype::Float, Reduction::Sum),
            Preset::Phloem | Preset::Phloem16 | Preset::Mpptest => {
                (Datatype::Byte, Datatype::Double, Reduction::Sum)
            }
            Preset::Skampi => (Datatype::Int, Datatype::Int, Reduction::Sum),
            // It reduces MPI_CHAR, for which MPI defines no reduction.
            Preset::MpiBlib => (Datatype::Char, Datatype::SignedChar, Reduction::Max),
            _ => (Datatype::Byte, Datatype::Byte, Reduction::Bor),
        };
        let default = Self::default();
        Self {
            datatype: if kind.has_reduction() {
                number
            } else {
                message
            },
            reduction,
            root: if kind.has_root() {
                Root::of_suite(suite)
            } else {
                default.root
            },
            ..default
        }
    }
}

/// Root of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// Always this rank.
    Rank(u32),
    /// All ranks in turn: rank `i` modulo the number of ranks in call `i`.
    Rotating,
}

impl Root {
    /// Returns the root with which a suite calls operations.
    pub fn of_suite(suite: Preset) -> Self {
        match suite.rotates_root() {
            true => Self::Rotating,
            false => OperationSettings::default().root,
        }
    }
}

const ROTATING: &str = "rotating";

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => rank.fmt(f),
            Self::Rotating => f.write_str(ROTATING),
        }
    }
}

impl FromStr for Root {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        if text == ROTATING {
            return Ok(Self::Rotating);
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|_| digits)
            .map(Self::Rank)
            .ok_or_else(|| MethodError::UnknownName {
                kind: "root",
                name: text.to_owned(),
                known: format!("rank numbers and {ROTATING}"),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_number_or_rotates() {
        assert_eq!(
            ("17".parse(), "rotating".parse()),
            (Ok(Root::Rank(17)), Ok(Root::Rotating))
        );
        assert_eq!(
            (Root::Rank(17).to_string(), Root::Rotating.to_string()),
            ("17".into(), "rotating".into())
        );
        for wrong in ["", "+1", "-1", "4294967296", "Rotating", "1 "] {
            let why = wrong.parse::<Root>().unwrap_err().to_string();
            assert_eq!(
                why,
                format!("there is no root \"{wrong}\"; there are rank numbers and rotating")
            );
        }
    }
}
