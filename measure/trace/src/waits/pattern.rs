//! Patterns of wait states.

/// Reason for which a rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WaitPattern {
    /// A receive waits for its send.
    LateSender,
    /// A send waits for its receive.
    LateReceiver,
    /// Members of an operation wait for its root.
    LateRoot,
    /// The root of an operation waits for its members.
    EarlyRoot,
    /// Members of an operation wait for each other.
    AllToAll,
    /// Members of a barrier wait for each other.
    Barrier,
    /// Members of a prefix reduction wait for those of lower ranks.
    EarlyMember,
}

impl WaitPattern {
    /// All patterns, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::LateSender,
        Self::LateReceiver,
        Self::LateRoot,
        Self::EarlyRoot,
        Self::AllToAll,
        Self::Barrier,
        Self::EarlyMember,
    ];

    /// Returns the name of the pattern.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LateSender => "late sender",
            Self::LateReceiver => "late receiver",
            Self::LateRoot => "late root",
            Self::EarlyRoot => "early root",
            Self::AllToAll => "wait at N x N",
            Self::Barrier => "wait at barrier",
            Self::EarlyMember => "early member",
        }
    }
}
