//! Patterns of wait states.

use crate::named::named;

named! {
    /// Reason for which a rank waits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum WaitPattern {
        /// A receive waits for its send.
        LateSender = "late sender",
        /// A send waits for its receive.
        LateReceiver = "late receiver",
        /// Members of an operation wait for its root.
        LateRoot = "late root",
        /// The root of an operation waits for its members.
        EarlyRoot = "early root",
        /// Members of an operation wait for each other.
        AllToAll = "wait at N x N",
        /// Members of a barrier wait for each other.
        Barrier = "wait at barrier",
        /// Members of a prefix reduction wait for those of lower ranks.
        EarlyMember = "early member",
    }

    /// Returns the name of the pattern.
    fn name
}
