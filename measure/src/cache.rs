//! State of the caches before a call.

use core::hint::black_box;

use crate::aligned::{Alignment, BufferError};
use crate::names::name_values;

/// State of the caches before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheState {
    /// The caches hold the data of the last call, which the next call uses again.
    #[default]
    Warm,
    /// Other data was written into the caches since the last call.
    ColdByOverwriting,
    /// The message has another address in every call, and returns to an address only after other messages filled the caches,
    /// as in mpptest. This takes no time between calls, but data that is not part of a message stays warm.
    ColdByWalking,
}

name_values! {
    CacheState, "cache state":
    Warm = "warm",
    ColdByOverwriting = "cold-overwrite",
    ColdByWalking = "cold-walk",
}

impl CacheState {
    /// Returns true if the state can be restored between calls that are timed together.
    pub const fn fits_series(self) -> bool {
        !matches!(self, Self::ColdByOverwriting)
    }
}

/// Brings the caches of a rank into a state.
#[derive(Debug)]
pub(crate) struct Cache {
    state: CacheState,
    bytes: usize,
    /// Data that overwrites the caches; empty for other states.
    other: Vec<u8>,
    turn: u8,
}

impl Cache {
    /// Takes the size of the largest cache that the rank's core shares with no other core; warm caches need no size.
    ///
    /// # Errors
    /// If the size is needed and zero, or if the memory cannot be allocated.
    pub(crate) fn new(state: CacheState, bytes: usize) -> Result<Self, BufferError> {
        if state != CacheState::Warm && bytes == 0 {
            return Err(BufferError::NoCacheSize);
        }
        let mut other = Vec::new();
        if state == CacheState::ColdByOverwriting {
            other
                .try_reserve_exact(bytes)
                .map_err(|_| BufferError::NoMemory { bytes })?;
            other.resize(bytes, 0);
        }
        Ok(Self {
            state,
            bytes,
            other,
            turn: 0,
        })
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> CacheState {
        self.state
    }

    /// Overwrites the caches, if that is the state. Call this before every observation, outside the timed section.
    pub(crate) fn prepare(&mut self) {
        if self.other.is_empty() {
            return;
        }
        // New data every time, passed to `black_box`: otherwise the compiler may remove the write.
        self.turn = self.turn.wrapping_add(1);
        self.other.fill(self.turn);
        black_box(&mut self.other);
    }

    /// Returns the offsets of messages of a size in a buffer of their own: a single offset, unless the state is
    /// [`ColdByWalking`](CacheState::ColdByWalking). Send and receive buffers each need their own walk.
    pub(crate) fn walk(&self, message: usize, alignment: Alignment) -> BufferWalk {
        match self.state {
            CacheState::Warm | CacheState::ColdByOverwriting => BufferWalk {
                message,
                stride: 0,
                places: 1,
                next: 0,
            },
            CacheState::ColdByWalking => {
                BufferWalk::within(self.bytes.saturating_mul(2), message, alignment)
            }
        }
    }
}

/// Sequence of offsets of a message in a buffer, which repeats from the beginning.
///
/// A message that is larger than the cache has only one offset: its end evicts its own beginning.
#[derive(Clone, Debug)]
pub(crate) struct BufferWalk {
    message: usize,
    /// Distance between two offsets.
    stride: usize,
    /// Number of offsets; at least 1.
    places: usize,
    next: usize,
}

impl BufferWalk {
    fn within(bytes: usize, message: usize, alignment: Alignment) -> Self {
        let stride = message
            .max(1)
            .checked_next_multiple_of(alignment.bytes())
            .unwrap_or(usize::MAX);
        let places = bytes.saturating_sub(message) / stride + 1;
        Self {
            message,
            stride,
            places,
            next: 0,
        }
    }

    /// Returns the necessary size of the buffer.
    pub(crate) fn buffer_bytes(&self) -> usize {
        (self.places - 1) * self.stride + self.message
    }

    /// Returns the offset of the next message in the buffer: a multiple of the alignment.
    pub(crate) fn next_offset(&mut self) -> usize {
        let offset = self.next * self.stride;
        // A division would take longer than the rest, and some calls are timed with it.
        self.next += 1;
        if self.next == self.places {
            self.next = 0;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walk(cache: usize, message: usize, alignment: usize) -> BufferWalk {
        let cache = Cache::new(CacheState::ColdByWalking, cache).unwrap();
        cache.walk(message, Alignment::new(alignment).unwrap())
    }

    #[test]
    fn messages_move_through_twice_the_cache() {
        let mut walked = walk(128, 60, 64);
        assert_eq!(walked.buffer_bytes(), 252);
        let offsets: Vec<usize> = (0..6).map(|_| walked.next_offset()).collect();
        assert_eq!(offsets, [0, 64, 128, 192, 0, 64]);
        // Empty messages move, too; large ones do not.
        assert_eq!(
            (walk(64, 0, 32).buffer_bytes(), walk(64, 0, 32).places),
            (128, 5)
        );
        for message in [65, 128, 129, 1_000] {
            let mut large = walk(64, message, 1);
            assert_eq!(
                (
                    large.buffer_bytes(),
                    large.next_offset(),
                    large.next_offset()
                ),
                (message, 0, 0)
            );
        }
    }

    #[test]
    fn messages_of_other_states_stay_in_place() {
        for state in [CacheState::Warm, CacheState::ColdByOverwriting] {
            let cache = Cache::new(state, 1_024).unwrap();
            let mut walk = cache.walk(10, Alignment::default());
            assert_eq!(
                (walk.buffer_bytes(), walk.next_offset(), walk.next_offset()),
                (10, 0, 0)
            );
        }
    }

    #[test]
    fn overwriting_writes_new_data() {
        let mut cache = Cache::new(CacheState::ColdByOverwriting, 100).unwrap();
        for turn in [1, 2, 3] {
            cache.prepare();
            assert_eq!(cache.other, vec![turn; 100]);
        }
        let mut warm = Cache::new(CacheState::Warm, 0).unwrap();
        warm.prepare();
        assert_eq!(
            (warm.other.len(), warm.turn, warm.state()),
            (0, 0, CacheState::Warm)
        );
    }

    #[test]
    fn invalid_sizes_and_names_are_refused() {
        for state in [CacheState::ColdByOverwriting, CacheState::ColdByWalking] {
            assert_eq!(Cache::new(state, 0).unwrap_err(), BufferError::NoCacheSize);
        }
        let error = Cache::new(CacheState::ColdByOverwriting, usize::MAX).unwrap_err();
        assert_eq!(error, BufferError::NoMemory { bytes: usize::MAX });
        for state in CacheState::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        let message = "cool".parse::<CacheState>().unwrap_err().to_string();
        assert_eq!(
            message,
            "there is no cache state \"cool\"; there are warm, cold-overwrite, cold-walk"
        );
    }

    proptest! {
        #[test]
        fn an_offset_repeats_only_after_the_cache_was_filled(
            cache in 1_usize..10_000, message in 0_usize..25_000, power in 0_u32..8,
        ) {
            let mut walk = walk(cache, message, 1 << power);
            let mut offsets = Vec::new();
            loop {
                let offset = walk.next_offset();
                prop_assert!(offset.is_multiple_of(1 << power) && offset + message <= walk.buffer_bytes());
                if offsets.first() == Some(&offset) {
                    break;
                }
                offsets.push(offset);
            }
            prop_assert!(walk.buffer_bytes() <= (2 * cache).max(message));
            // All but a rest that is too small for a further message.
            prop_assert!(walk.buffer_bytes() + message + (1 << power) > 2 * cache);
        }

        #[test]
        fn nothing_overflows(cache in 1_usize.., message: usize, power in 0_u32..=30) {
            let mut walk = walk(cache, message, 1 << power);
            prop_assert!(walk.buffer_bytes() >= message);
            walk.next_offset();
            prop_assert!(walk.next_offset() <= walk.buffer_bytes());
        }
    }
}
