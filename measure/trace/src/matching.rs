//! Settings of matching.

use super::ClockOwner;

/// Settings of matching: ignored dependences, and the clocks that locations share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// If true, no member of an `MPI_Alltoallv` waits for another. A trace does not record which
    /// members exchanged data, so a correction may otherwise enforce messages that were never sent.
    pub skip_alltoallv: bool,
    /// Locations that share a clock. Messages and collective operations between them are not
    /// corrected, as the clock has recorded their order.
    pub clock_of: ClockOwner,
}
