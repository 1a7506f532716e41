//! A few machine words that one thread replaces while others read them.

#[cfg(downbeat_loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(not(downbeat_loom))]
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// A sequence latch: `N` words that are always read together, as one of the published values.
///
/// There are two copies and a sequence number. Readers use copy 0 while the sequence is even and copy 1 while it is odd;
/// a writer first directs the readers to the copy that it does not write. A writer that is preempted half-way therefore
/// blocks no reader: a reader retries only if the writer *advanced* while it read. At rest the sequence is even, and
/// the tag, the sequence and the first six words of copy 0 are in one cache line.
///
/// [`PublishedModel`](crate::PublishedModel) is a latch of a clock model. Its layout in memory is that of its declaration, and known to
/// readers in other languages.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Latch<const N: usize> {
    /// Describes the words to readers in other languages; never changes.
    tag: u64,
    sequence: AtomicU64,
    copies: [[AtomicU64; N]; 2],
    claimed: AtomicBool,
}

impl<const N: usize> Latch<N> {
    /// Creates a latch that holds `words`, which `tag` describes.
    #[cfg(not(downbeat_loom))]
    pub const fn new(tag: u64, words: [u64; N]) -> Self {
        let mut copies = [const { [const { AtomicU64::new(0) }; N] }; 2];
        let mut i = 0;
        while i < N {
            copies[0][i] = AtomicU64::new(words[i]);
            copies[1][i] = AtomicU64::new(words[i]);
            i += 1;
        }
        Self {
            tag,
            sequence: AtomicU64::new(0),
            copies,
            claimed: AtomicBool::new(false),
        }
    }

    /// Creates a latch that holds `words`, which `tag` describes; loom's atomics have no `const` constructor.
    #[cfg(downbeat_loom)]
    pub fn new(tag: u64, words: [u64; N]) -> Self {
        let copies = [words.map(AtomicU64::new), words.map(AtomicU64::new)];
        Self {
            tag,
            sequence: AtomicU64::new(0),
            copies,
            claimed: AtomicBool::new(false),
        }
    }

    /// Returns the description of the words.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Reads the words published last.
    #[inline(always)]
    pub fn read(&self) -> [u64; N] {
        self.read_first()
    }

    /// Reads the first `M` of the words published last.
    #[inline(always)]
    pub fn read_first<const M: usize>(&self) -> [u64; M] {
        self.read_two::<M, 0>(M).0
    }

    /// Reads the first `M` of the words published last, and the `L` words from the index `from` on.
    #[inline(always)]
    pub fn read_two<const M: usize, const L: usize>(&self, from: usize) -> ([u64; M], [u64; L]) {
        const { assert!(M <= N, "a latch has fewer words") };
        assert!(from + L <= N, "a latch has fewer words");
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let copy = &self.copies[(before & 1) as usize];
            let words = (
                core::array::from_fn(|i| copy[i].load(Ordering::Relaxed)),
                core::array::from_fn(|i| copy[from + i].load(Ordering::Relaxed)),
            );
            // Pairs with the fence in `direct_readers`: a reader that saw a word of a later value also sees its sequence.
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == before {
                return words;
            }
            core::hint::spin_loop();
        }
    }

    /// The exclusive right to publish; `None` while another caller holds it.
    pub fn writer(&self) -> Option<LatchWriter<'_, N>> {
        // Acquire: the stores of the last writer are visible to this one.
        let free = self
            .claimed
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Created only on success: dropping a writer would release the right that another one holds.
        free.is_ok().then(|| LatchWriter { latch: self })
    }
}

/// The exclusive right to publish in a [`Latch`]; released on drop.
#[derive(Debug)]
pub struct LatchWriter<'a, const N: usize> {
    latch: &'a Latch<N>,
}

impl<const N: usize> LatchWriter<'_, N> {
    /// Replaces the words.
    pub fn publish(&mut self, words: [u64; N]) {
        self.publish_if(words, || true);
    }

    /// Replaces the words if this is still wanted right before readers see them: returns what `wanted` returns then.
    pub fn publish_if(&mut self, words: [u64; N], wanted: impl FnOnce() -> bool) -> bool {
        // Only writers store to the sequence, and this is the only one.
        let resting = self.latch.sequence.load(Ordering::Relaxed);
        self.direct_readers(resting + 1);
        self.fill(0, words);
        if !wanted() {
            // The other copy still has the words from before.
            let before = &self.latch.copies[1];
            self.fill(
                0,
                core::array::from_fn(|i| before[i].load(Ordering::Relaxed)),
            );
            self.direct_readers(resting + 2);
            return false;
        }
        self.direct_readers(resting + 2);
        self.fill(1, words);
        true
    }

    /// Directs readers to the copy `sequence & 1`; the other copy may be written after that.
    fn direct_readers(&self, sequence: u64) {
        // Release: a reader that sees the sequence sees that copy complete.
        self.latch.sequence.store(sequence, Ordering::Release);
        // A release store alone lets later stores overtake it. The fence prevents this for a reader that reads one of
        // them and then passes its acquire fence.
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
