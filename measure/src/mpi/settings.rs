//! What all operations of a measurement are to be like.

use core::fmt;
use core::str::FromStr;

use super::datatype::{Datatype, Reduction};
use crate::aligned::Alignment;
use crate::cache::CacheState;
use crate::error::MethodError;

/// What operations are to be like. Those that have no reduction, or no root, take no notice of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationSettings {
    /// What messages are made of.
    pub datatype: Datatype,
    /// How it is combined.
    pub reduction: Reduction,
    /// Whose the message is, or who gets it.
    pub root: Root,
    /// Whether messages are where their results will be, as by `MPI_IN_PLACE`: all ranks', or where only the root has
    /// both, the root's.
    ///
    /// MPICH 4.0.2 crashes where more than 2 KiB are reduced in place to another root than rank 0.
    pub in_place: bool,
    /// Where messages begin.
    pub alignment: Alignment,
    /// What the caches are to be like before a call.
    pub cache: CacheState,
    /// The size of the cache that is to be cold; warm ones need none.
    pub cache_bytes: usize,
    /// The messages of a rank take no more bytes than this; what makes caches cold is not counted.
    pub memory: u64,
}

/// Bytes combined by "or", which every size allows; root 0; warm caches; up to 1 GiB of messages.
impl Default for OperationSettings {
    fn default() -> Self {
        Self {
            datatype: Datatype::Byte,
            reduction: Reduction::Bor,
            root: Root::Rank(0),
            in_place: false,
            alignment: Alignment::default(),
            cache: CacheState::Warm,
            cache_bytes: 0,
            memory: 1 << 30,
        }
    }
}

/// The one rank of an operation that is not like the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// Always this one.
    Rank(u32),
    /// Every rank in its turn: in call `i` the rank `i` modulo their number.
    Rotating,
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
