//! Definitions of a trace that becomes an archive, and strings of its events.

use downbeat_otf2::{ClockOffset, StringRef};
use rustc_hash::FxHashMap;

use super::super::exact::ExactTrace;
use super::super::samples::{mean_time, offsets_of};
use crate::formats::MergedItems;
use crate::formats::definitions::TraceDefinitions;

/// Items that become an archive, and what it states of all of them.
pub(super) struct NewDefinitions<'a> {
    pub(super) items: &'a MergedItems,
    pub(super) all: &'a TraceDefinitions,
    /// Communicator of each window.
    pub(super) windows: Vec<u32>,
    pub(super) exact: ExactTrace,
}

/// Strings of events, each once.
#[derive(Debug, Default)]
pub(super) struct StringTable(pub(super) FxHashMap<String, u32>);

impl StringTable {
    pub(super) fn reference(&mut self, text: &str) -> StringRef {
        let next = self.0.len() as u32;
        // Most strings are not new.
        StringRef(match self.0.get(text) {
            Some(known) => *known,
            None => *self.0.entry(text.to_owned()).or_insert(next),
        })
    }
}

impl<'a> NewDefinitions<'a> {
    pub(super) fn of(items: &'a MergedItems) -> Self {
        Self {
            items,
            all: &items.definitions,
            windows: items.windows().iter().copied().collect(),
            exact: ExactTrace {
                shift: 0,
                master: items.definitions.master,
                is_unsized: items.is_mostly_unsized(),
            },
        }
    }

    /// Sets the shift of all times, of which the first and the last one are given, so
    /// that neither they nor those of sessions are negative. Returns the clock offsets of
    /// each location; `None` if there is no such shift.
    pub(super) fn shift_times(&mut self, [first, last]: [i64; 2]) -> Option<Vec<Vec<ClockOffset>>> {
        let sessions = self.all.sessions.iter().flatten();
        let first = sessions
            .map(|samples| mean_time(samples))
            .fold(first, i64::min);
        self.exact.shift = first.min(0).checked_neg()?;
        last.checked_add(self.exact.shift)?;
        let sessions = self.all.sessions.iter();
        sessions
            .map(|sessions| offsets_of(sessions, self.exact.shift))
            .collect()
    }
}
