//! Data that locations exchange during a replay: an integer for every mark.
//!
//! In forward amortization, sends and enters publish their corrected times, and receives and exits
//! store their jumps. Afterwards, sends and enters store their limits.

use std::sync::atomic::Ordering;

use super::Trace;
use super::primitives::AtomicI64;

/// No value yet, and no receiver waits. Corrected times are never before measured ones, so no valid
/// time equals this.
const EMPTY: i64 = i64::MIN;

/// No value yet, and the receiver of the message waits for it.
const AWAITED: i64 = i64::MIN + 1;

/// Integer for every mark of every location.
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

    /// Clears all stamps.
    pub(super) fn clear(&mut self) {
        for word in self.words.iter_mut().flatten() {
            *word = AtomicI64::new(EMPTY);
        }
    }

    #[inline]
    pub(super) fn of(&self, location: u32, mark: u32) -> &AtomicI64 {
        &self.words[location as usize][mark as usize]
    }

    /// Returns all stamps of a location.
    #[inline]
    pub(super) fn all_of(&self, location: usize) -> &[AtomicI64] {
        &self.words[location]
    }

    /// Returns true if nothing was stored for a mark.
    #[inline]
    pub(super) fn is_empty(&self, location: u32, mark: u32) -> bool {
        self.of(location, mark).load(Ordering::Relaxed) == EMPTY
    }

    /// Returns the published value, if there is one.
    #[inline]
    pub(super) fn get(&self, location: u32, mark: u32) -> Option<i64> {
        // Pairs with the release in `tell`: not for the value itself, but for what its owner wrote
        // before it.
        Some(self.of(location, mark).load(Ordering::Acquire)).filter(|word| *word > AWAITED)
    }

    /// Returns the published value; if there is none, marks it as awaited, which its publisher will
    /// learn.
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

/// Publishes a time. Returns true if the receiver waits for it.
#[inline]
pub(super) fn tell(word: &AtomicI64, time: i64) -> bool {
    word.swap(time, Ordering::AcqRel) == AWAITED
}
