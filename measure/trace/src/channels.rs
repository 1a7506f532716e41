//! Which message is which: they do not overtake each other from one sender to one receiver with one tag.
//!
//! What waits for its other end is a list of marks, linked through the very fields that will name that end: so it takes no
//! memory of its own, however late the other end comes.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::trace::{Location, Mark, NONE, Role};

/// Who sends to whom, in which communicator, with which tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) communicator: u32,
    pub(super) tag: i32,
}

/// A mark: its location, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkId {
    pub(super) location: u32,
    pub(super) mark: u32,
}

/// What waits in a channel, in order: only sends, or only receives.
#[derive(Debug)]
struct Waiting {
    role: Role,
    first: MarkId,
    last: MarkId,
}

/// All channels in which something waits.
#[derive(Debug, Default)]
pub(super) struct Channels {
    waiting: FxHashMap<Key, Waiting>,
}

impl Channels {
    /// Adds the mark of a send or of a receive, which has been added to its location.
    #[inline]
    pub(super) fn add(&mut self, key: Key, role: Role, id: MarkId, locations: &mut [Location]) {
        let mut waiting = match self.waiting.entry(key) {
            Entry::Vacant(none) => {
                none.insert(Waiting {
                    role,
                    first: id,
                    last: id,
                });
                return;
            }
            Entry::Occupied(waiting) => waiting,
        };
        let others = waiting.get_mut();
        if others.role == role {
            let last = mark_mut(locations, others.last);
            *last = last.with(id.location, id.mark);
            others.last = id;
            return;
        }
        let other = others.first;
        if other == others.last {
            waiting.remove();
        } else {
            let next = *mark_mut(locations, other);
            others.first = MarkId {
                location: next.peer(),
                mark: next.partner,
            };
        }
        for (this, that) in [(id, other), (other, id)] {
            let mark = mark_mut(locations, this);
            *mark = mark.with(that.location, that.mark);
        }
    }

    /// All that waits, and has waited in vain when this is the end.
    pub(super) fn left(&self, locations: &[Location]) -> Vec<(Role, MarkId)> {
        let mut left = vec![];
        for waiting in self.waiting.values() {
            let mut at = waiting.first;
            loop {
                left.push((waiting.role, at));
                if at == waiting.last {
                    break;
                }
                let mark = locations[at.location as usize].marks[at.mark as usize];
                at = MarkId {
                    location: mark.peer(),
                    mark: mark.partner,
                };
            }
        }
        left
    }
}

fn mark_mut(locations: &mut [Location], id: MarkId) -> &mut Mark {
    &mut locations[id.location as usize].marks[id.mark as usize]
}

/// A mark that waits for its other end.
pub(super) const fn open(event: u32, role: Role) -> Mark {
    Mark::new(event, role, 0, NONE)
}
