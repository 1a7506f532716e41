//! Signals inside a process, and the events that wait for them.

use rustc_hash::FxHashMap;

use super::channels::MarkId;
use super::{Array, ArrayStore, NoRoom};

/// Signals and waits of a process.
#[derive(Debug)]
pub(super) struct Signals {
    /// Ends without a partner, each with true for a signal.
    open: FxHashMap<u64, (MarkId, bool)>,
    /// Signals and their waits.
    pub(super) pairs: Array<[MarkId; 2]>,
}

impl Signals {
    /// Returns no signals.
    pub(super) fn new(store: &ArrayStore) -> Self {
        Self {
            open: FxHashMap::default(),
            pairs: Array::new(store.clone()),
        }
    }

    /// Adds a signal, or else a wait. Events of several locations may be added in any order, so
    /// either can be the first.
    pub(super) fn add(&mut self, id: u64, mark: MarkId, signals: bool) -> Result<(), NoRoom> {
        match self.open.remove(&id) {
            Some((other, true)) if !signals => self.pairs.push([other, mark]),
            Some((other, false)) if signals && other.location != mark.location => {
                self.pairs.push([mark, other])
            }
            _ => {
                self.open.insert(id, (mark, signals));
                Ok(())
            }
        }
    }
}
