//! Data that locations exchange during a replay: an integer for every mark.
//!
//! In forward amortization, sends and enters publish their corrected times, and receives and exits
//! store their jumps. Afterwards, sends and enters have their limits.

use super::{Array, NoRoom, Trace};

/// No value yet, and no receiver waits. Corrected times are never before measured ones, so no valid
/// time equals this.
const EMPTY: i64 = i64::MIN;

/// No value yet, and the receiver of the message waits for it.
const AWAITED: i64 = i64::MIN + 1;

/// Integer for every mark of every location.
#[derive(Debug)]
pub(super) struct Stamps {
    words: Vec<Array<i64>>,
}

impl Stamps {
    pub(super) fn new(trace: &Trace) -> Result<Self, NoRoom> {
        let of = |marks: usize| Array::collect(&trace.store, (0..marks).map(|_| EMPTY));
        let words = trace
            .locations
            .iter()
            .map(|location| of(location.marks.len()));
        Ok(Self {
            words: words.collect::<Result<_, _>>()?,
        })
    }

    /// Clears all stamps.
    pub(super) fn clear(&mut self) {
        self.words.iter_mut().for_each(|words| words.fill(EMPTY));
    }

    /// Returns the word of a mark.
    #[inline]
    pub(super) fn word(&self, location: u32, mark: u32) -> i64 {
        self.words[location as usize][mark as usize]
    }

    #[inline]
    pub(super) fn set(&mut self, location: u32, mark: u32, word: i64) {
        self.words[location as usize][mark as usize] = word;
    }

    /// Returns all words of a location.
    #[inline]
    pub(super) fn words_of(&self, location: usize) -> &[i64] {
        &self.words[location]
    }

    /// Returns true if nothing was stored for a mark.
    #[inline]
    pub(super) fn is_empty(&self, location: u32, mark: u32) -> bool {
        self.word(location, mark) == EMPTY
    }

    /// Returns the published time, if there is one.
    #[inline]
    pub(super) fn time(&self, location: u32, mark: u32) -> Option<i64> {
        Some(self.word(location, mark)).filter(|word| *word > AWAITED)
    }

    /// Returns the published time; if there is none, marks it as awaited, which its
    /// publisher will learn.
    #[inline]
    pub(super) fn time_or_wait(&mut self, location: u32, mark: u32) -> Option<i64> {
        let time = self.time(location, mark);
        if time.is_none() {
            self.set(location, mark, AWAITED);
        }
        time
    }

    /// Publishes a time, unless the receive on the same clock came before and stored a
    /// limit. Returns true if the receiver waits for it.
    #[inline]
    pub(super) fn publish(&mut self, location: u32, mark: u32, time: i64) -> bool {
        let word = &mut self.words[location as usize][mark as usize];
        let was = *word;
        if was <= AWAITED {
            *word = time;
        }
        was == AWAITED
    }
}
