//! Relations between locations that an archive states, and that are not examined.

use std::iter;

/// Numbers of relations between locations that an archive states and that no correction and no check
/// uses. "No violation" is said of all others only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnexaminedRelations([u64; Self::KINDS.len()]);

/// Kind of a relation that is not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    NonBlockingCollective,
    OtherCollective,
    Intercommunicator,
    RmaCollective,
    RmaOperation,
    RmaSynchronization,
    Thread,
    Lock,
    Task,
    Unknown,
    UndefinedPeer,
    Unbegun,
    Unended,
    Probe,
}

impl UnexaminedRelations {
    /// Names of the kinds of relations.
    pub const KINDS: [&'static str; 14] = [
        "non-blocking collective operations that were not completed",
        "operations that create or free communicators, windows or files",
        "collective operations on intercommunicators",
        "RMA collective operations",
        "RMA puts, gets and atomic operations",
        "RMA locks and synchronizations",
        "thread creations and ends",
        "thread locks",
        "tasks",
        "events of unknown kinds",
        "messages and operations with an undefined peer or communicator",
        "collective operations that were not begun",
        "collective operations that were not ended",
        "messages that a probe found and another call receives",
    ];

    /// Returns true if all relations are examined.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Returns the numbers of relations that are not zero, with the names of their kinds.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let all = iter::zip(Self::KINDS, self.0);
        all.filter(|(_, count)| *count > 0)
    }

    /// Returns all numbers, in the order of the kinds.
    pub fn counts(&self) -> [u64; Self::KINDS.len()] {
        self.0
    }

    /// Adds the numbers of another part of the archive.
    #[must_use]
    pub fn plus(self, others: [u64; Self::KINDS.len()]) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] + others[kind]))
    }

    pub(super) fn add(&mut self, relation: Relation) {
        self.0[relation as usize] += 1;
    }
}

impl Relation {
    /// Returns the relation whose later end is an event of this kind, which has no other meaning for
    /// other locations.
    pub(super) const fn of_event(kind: u8) -> Option<Self> {
        Some(match kind {
            // Forks and joins of the first version.
            24 | 25 => Self::Thread,
            29 | 60 => Self::Task,
            39 | 41 | 44 | 45 => Self::RmaSynchronization,
            89 => Self::Probe,
            // Buffers and measurement; regions and requests; metrics and parameters;
            // windows.
            10..=13 | 16 | 17 | 20..=22 | 31..=37
            // First acquisitions of locks; other ends of tasks and of synchronizations.
            | 26 | 57 | 28 | 30 | 59 | 61 | 40 | 42 | 43
            // Tests of accesses that are not complete; calling contexts, files, programs.
            | 51 | 66..=84 | 87 | 88
            // Receives of messages that a matched probe found.
            | 90..=92 => return None,
            _ => Self::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_their_relations() {
        let mut found = UnexaminedRelations::default();
        for kind in [41, 41, 29, 24, 200] {
            found.add(Relation::of_event(kind).unwrap());
        }
        found.add(Relation::RmaOperation);
        let both = found.plus(found.counts());
        let expected = [
            ("RMA puts, gets and atomic operations", 2),
            ("RMA locks and synchronizations", 4),
            ("thread creations and ends", 2),
            ("tasks", 2),
            ("events of unknown kinds", 2),
        ];
        assert_eq!(both.iter().collect::<Vec<_>>(), expected);
        assert_eq!(
            Relation::Probe as usize,
            UnexaminedRelations::KINDS.len() - 1
        );
    }
}
