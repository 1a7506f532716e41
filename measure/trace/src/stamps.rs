//! What locations tell each other while a trace is replayed: a word for every mark.
//!
//! On the way forward, a send or an enter tells its corrected time, and receives and exits keep by how much they jumped.
//! Afterwards a send or an enter keeps how late it may become.

use std::sync::atomic::Ordering;

use super::Trace;
use super::primitives::AtomicI64;

/// Nothing is there, and nobody waits for it. Corrected times are not before measured ones, so none is like this.
const EMPTY: i64 = i64::MIN;

/// Nothing is there, and the receiver of the message waits for it.
const AWAITED: i64 = i64::MIN + 1;

/// A word for every mark of every location.
#[derive(Debug)]
pub(super) struct Stamps {
    words: Vec<Vec<AtomicI64>>,
}

impl Stamps {
    pub(super) fn new(trace: &Trace) -> Self {
        let of = |marks: usize| (0..marks).map(|_| AtomicI64::new(EMPTY)).collect();
        Self {
            words: trace
                .locations
                .iter()
                .map(|location| of(location.marks.len()))
                .collect(),
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        for word in self.words.iter_mut().flatten() {
            *word = AtomicI64::new(EMPTY);
        }
    }

    #[inline]
    pub(super) fn of(&self, location: u32, mark: u32) -> &AtomicI64 {
        &self.words[location as usize][mark as usize]
    }

    /// All words of a location.
    #[inline]
    pub(super) fn all_of(&self, location: usize) -> &[AtomicI64] {
        &self.words[location]
    }

    /// What was told, if anything was.
    #[inline]
    pub(super) fn get(&self, location: u32, mark: u32) -> Option<i64> {
        // Pairs with the release in `tell`: not for the word itself, but for what else its owner wrote before it.
        Some(self.of(location, mark).load(Ordering::Acquire)).filter(|word| *word > AWAITED)
    }

    /// What was told; if nothing was yet, whoever tells it will learn that it is waited for.
    #[inline]
    pub(super) fn get_or_wait(&self, location: u32, mark: u32) -> Option<i64> {
        self.get(location, mark).or_else(|| {
            let word = self.of(location, mark);
            word.compare_exchange(EMPTY, AWAITED, Ordering::AcqRel, Ordering::Acquire)
                .err()
                .filter(|word| *word > AWAITED)
        })
    }
}

/// Tells a time. Whether it is waited for.
#[inline]
pub(super) fn tell(word: &AtomicI64, time: i64) -> bool {
    word.swap(time, Ordering::AcqRel) == AWAITED
}
