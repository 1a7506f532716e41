//! A handful of words that one thread replaces while others read them.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// `N` words that are always read together, as one of the values that were published.
///
/// There are two copies and a sequence number. While the sequence is even readers use copy 0, while it is odd copy 1;
/// a writer first sends the readers to the copy it is not going to touch. A writer that is preempted half-way
/// therefore holds nobody up: a reader starts again only when the writer has *moved on* while it read. At rest the
/// sequence is even, and everything a reader touches lies in one cache line.
///
/// [`Published`](crate::Published) is the form for clock models.
#[derive(Debug)]
#[repr(align(64))]
pub struct Latch<const N: usize> {
    sequence: AtomicU64,
    copies: [[AtomicU64; N]; 2],
    claimed: AtomicBool,
}

impl<const N: usize> Latch<N> {
    /// A latch that holds `words`.
    #[cfg(not(loom))]
    pub const fn new(words: [u64; N]) -> Self {
        let mut copies = [const { [const { AtomicU64::new(0) }; N] }; 2];
        let mut i = 0;
        while i < N {
            copies[0][i] = AtomicU64::new(words[i]);
            copies[1][i] = AtomicU64::new(words[i]);
            i += 1;
        }
        Self {
            sequence: AtomicU64::new(0),
            copies,
            claimed: AtomicBool::new(false),
        }
    }

    /// As above; loom's atomics have no `const` constructor.
    #[cfg(loom)]
    pub fn new(words: [u64; N]) -> Self {
        let copies = [words.map(AtomicU64::new), words.map(AtomicU64::new)];
        Self {
            sequence: AtomicU64::new(0),
            copies,
            claimed: AtomicBool::new(false),
        }
    }

    /// The words published last.
    #[inline(always)]
    pub fn read(&self) -> [u64; N] {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let copy = &self.copies[(before & 1) as usize];
            let words = core::array::from_fn(|i| copy[i].load(Ordering::Relaxed));
            // Pairs with the fence in `direct_readers`: whoever saw a word of a later value sees its sequence too.
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == before {
                return words;
            }
            core::hint::spin_loop();
        }
    }

    /// The right to publish, unless another holds it.
    pub fn writer(&self) -> Option<LatchWriter<'_, N>> {
        // Acquire: what the last writer stored is there before this one goes on.
        let free = self
            .claimed
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Made only now: one that is made and thrown away would, on drop, return a right that another holds.
        free.is_ok().then(|| LatchWriter { latch: self })
    }
}

/// The right to publish in a [`Latch`], held by at most one at a time and returned on drop.
#[derive(Debug)]
pub struct LatchWriter<'a, const N: usize> {
    latch: &'a Latch<N>,
}

impl<const N: usize> LatchWriter<'_, N> {
    /// Replaces the words.
    pub fn publish(&mut self, words: [u64; N]) {
        // Only writers store to the sequence, and this is the only one.
        let resting = self.latch.sequence.load(Ordering::Relaxed);
        self.direct_readers(resting + 1);
        self.fill(0, words);
        self.direct_readers(resting + 2);
        self.fill(1, words);
    }

    /// Sends readers to the copy `sequence & 1`; the other one may be written after that.
    fn direct_readers(&self, sequence: u64) {
        // Release: a reader who sees the sequence finds that copy complete.
        self.latch.sequence.store(sequence, Ordering::Release);
        // A release store alone lets later stores overtake it. This fence holds them back, as seen by a reader that
        // read one of them and then passed its acquire fence.
        fence(Ordering::Release);
    }

    fn fill(&self, copy: usize, words: [u64; N]) {
        for (cell, word) in self.latch.copies[copy].iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
    }
}

impl<const N: usize> Drop for LatchWriter<'_, N> {
    fn drop(&mut self) {
        self.latch.claimed.store(false, Ordering::Release);
    }
}
