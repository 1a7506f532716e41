//! A clock model that another thread can replace while it is read.

use core::marker::PhantomData;

use crate::latch::{Latch, LatchWriter};
use crate::model::WORDS;
use crate::{ClockModel, CounterInstruction, Domain, Duration, ErrorBound, Source, Timestamp};

/// A cell with a [`ClockModel`], and the bound of its error, that many threads read while one replaces them.
///
/// Readers take no lock and never wait for a writer, not even for one that was preempted half-way.
///
/// ```
/// use downbeat_clock_core::{ClockModel, Counter, Global, Published, TickRate, Ticks, Timestamp};
///
/// let first = ClockModel::<Counter, Global>::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// let clock = Published::new(first);
/// assert_eq!(clock.load().apply(Ticks(7)), Timestamp::from_nanos(7));
///
/// // A resynchronization finds that the clock is 3 ns ahead.
/// let second = ClockModel::through(Ticks(3), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// clock.writer().expect("no other writer").publish(second);
/// assert_eq!(clock.load().apply(Ticks(7)), Timestamp::from_nanos(4));
/// # Ok::<(), downbeat_clock_core::ModelError>(())
/// ```
///
/// # Layout
/// Programs in other languages read the cell in place, as 64-bit words in the byte order of the machine. The lowest 32 bits
/// of the first word are the [number of this layout](Self::LAYOUT), the others the [`CounterInstruction`]. The second word is
/// a sequence number, which selects one of two copies of 24 words: the first copy, which follows it, while it is even, the
/// second while it is odd. A copy is valid if the sequence number is the same before and after it was read. Its words are
///
/// | words | contents |
/// |---|---|
/// | 0, 1 | nanoseconds per tick: whole, and fraction in units of 2^-64 |
/// | 2, 3 | time at tick 0 plus half a nanosecond, in units of 2^-64 ns, a signed number of 128 bits: high word, low word |
/// | 4 | the highest tick to which this line may be applied without a check of overflow |
/// | 5 | tick at which the model was learned |
/// | 6 to 15 | room for two more lines, each with words as the first four, and the tick where it begins: 2^64 - 1 if unused |
/// | 16 to 18 | time at which the error is at most the next word, that error, both in nanoseconds; its growth per nanosecond, a double |
/// | 19, 20 | room for a second term of the bound; 0 |
/// | 21 to 23 | 0 |
#[derive(Debug)]
#[repr(transparent)]
pub struct Published<A: Source, B: Domain> {
    words: Latch<CELL>,
    domains: PhantomData<fn() -> (A, B)>,
}

/// Number of words of a copy.
const CELL: usize = 24;
/// Places of the words that tell where the second and the third line begin.
const LINE_BEGINS: [usize; 2] = [10, 15];
const BOUND: usize = 16;

impl<A: Source, B: Domain> Published<A, B> {
    /// Number of the layout in memory.
    pub const LAYOUT: u32 = 1;

    /// Creates a cell that holds `model`, of whose error nothing is known.
    pub fn new(model: ClockModel<A, B>) -> Self {
        Self::with_bound(model, ErrorBound::UNKNOWN, CounterInstruction::None)
    }

    /// Creates a cell that holds `model` and the bound of its error; `instruction` reads the counter.
    pub fn with_bound(
        model: ClockModel<A, B>,
        bound: ErrorBound<B>,
        instruction: CounterInstruction,
    ) -> Self {
        let tag = u64::from(Self::LAYOUT) | (instruction as u64) << 32;
        Self {
            words: Latch::new(tag, words(model, bound)),
            domains: PhantomData,
        }
    }

    /// Reads the model published last.
    #[inline(always)]
    pub fn load(&self) -> ClockModel<A, B> {
        ClockModel::from_words(self.words.read_first())
    }

    /// Reads the model published last, and the bound of its error.
    pub fn load_with_bound(&self) -> (ClockModel<A, B>, ErrorBound<B>) {
        let words = self.words.read();
        let model = core::array::from_fn(|i| words[i]);
        let bound = ErrorBound {
            at: Timestamp::from_nanos(words[BOUND] as i64),
            half_width: Duration::from_nanos(words[BOUND + 1] as i64),
            drift: f64::from_bits(words[BOUND + 2]),
        };
        (ClockModel::from_words(model), bound)
    }

    /// The exclusive right to replace the model; `None` while another caller holds it.
    pub fn writer(&self) -> Option<Publisher<'_, A, B>> {
        self.words.writer().map(|words| Publisher {
            words,
            domains: PhantomData,
        })
    }
}

/// Words of a copy.
fn words<A: Source, B: Domain>(model: ClockModel<A, B>, bound: ErrorBound<B>) -> [u64; CELL] {
    let mut words = [0; CELL];
    words[..WORDS].copy_from_slice(&model.to_words());
    LINE_BEGINS
        .into_iter()
        .for_each(|place| words[place] = u64::MAX);
    words[BOUND] = bound.at.as_nanos() as u64;
    words[BOUND + 1] = bound.half_width.as_nanos() as u64;
    words[BOUND + 2] = bound.drift.to_bits();
    words
}

/// The exclusive right to replace the model of a [`Published`] cell; released on drop.
#[derive(Debug)]
pub struct Publisher<'a, A: Source, B: Domain> {
    words: LatchWriter<'a, CELL>,
    domains: PhantomData<fn() -> (A, B)>,
}

impl<A: Source, B: Domain> Publisher<'_, A, B> {
    /// Replaces the model by one of whose error nothing is known.
    pub fn publish(&mut self, model: ClockModel<A, B>) {
        self.publish_with_bound(model, ErrorBound::UNKNOWN);
    }

    /// Replaces the model and the bound of its error.
    pub fn publish_with_bound(&mut self, model: ClockModel<A, B>, bound: ErrorBound<B>) {
        self.words.publish(words(model, bound));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, Global, TickRate, Ticks};

    #[test]
    fn a_model_is_replaced_together_with_its_bound() {
        let model = |at| {
            ClockModel::<Counter, Global>::through(
                Ticks(at),
                Timestamp::ORIGIN,
                TickRate::NANOSECOND,
            )
            .unwrap()
        };
        let bound = ErrorBound {
            at: Timestamp::from_nanos(-7),
            half_width: Duration::from_nanos(30),
            drift: 1e-6,
        };
        let cell = Published::new(model(0));
        assert_eq!(cell.load_with_bound(), (model(0), ErrorBound::UNKNOWN));
        let mut writer = cell.writer().unwrap();
        writer.publish_with_bound(model(5), bound);
        assert_eq!(cell.load_with_bound(), (model(5), bound));
        writer.publish(model(9));
        assert_eq!(cell.load_with_bound(), (model(9), ErrorBound::UNKNOWN));
    }

    #[test]
    fn the_layout_is_that_of_the_documentation() {
        assert_eq!(size_of::<Published<Counter, Global>>(), 448);
        assert_eq!(align_of::<Published<Counter, Global>>(), 64);
        let model = ClockModel::<Counter, Global>::through(
            Ticks(7),
            Timestamp::from_nanos(-3),
            TickRate::from_ratio(5, 2).unwrap(),
        )
        .unwrap();
        let bound = ErrorBound {
            at: Timestamp::from_nanos(-1),
            half_width: Duration::from_nanos(2),
            drift: 0.5,
        };
        let cell = Published::with_bound(model, bound, CounterInstruction::Rdtscp);
        assert_eq!(cell.words.tag(), 1 << 32 | 1);
        let half = 1 << 63;
        // At tick 0: -3 - 17.5 ns, and half a nanosecond.
        let expected: [u64; CELL] = [
            2,
            half,
            -20_i64 as u64,
            0,
            u64::MAX,
            7,
            0,
            0,
            0,
            0,
            u64::MAX,
            0,
            0,
            0,
            0,
            u64::MAX,
            -1_i64 as u64,
            2,
            0.5_f64.to_bits(),
            0,
            0,
            0,
            0,
            0,
        ];
        let mut found = cell.words.read();
        // The limit follows from the rate.
        assert!(found[4] > 1 << 60);
        found[4] = u64::MAX;
        assert_eq!(found, expected);
    }
}
