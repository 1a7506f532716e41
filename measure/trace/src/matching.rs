//! Strictness of matching.

/// Strictness of matching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// If true, messages without another end, and collective operations without some members, are counted as
    /// [`LeftOut`](crate::LeftOut) instead of refused.
    pub lenient: bool,
    /// If true, no member of an `MPI_Alltoallv` waits for another. A trace does not tell who gave data to whom, so it may be
    /// corrected for messages that were never sent.
    pub skip_alltoallv: bool,
}
