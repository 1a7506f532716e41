//! A clock model that another thread can replace while it is read.

use core::marker::PhantomData;

use crate::latch::{Latch, LatchWriter};
use crate::model::WORDS;
use crate::{ClockModel, Domain, Source};

/// A cell with a [`ClockModel`] that many threads read while one replaces it.
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
#[derive(Debug)]
pub struct Published<A: Source, B: Domain> {
    words: Latch<WORDS>,
    domains: PhantomData<fn() -> (A, B)>,
}

impl<A: Source, B: Domain> Published<A, B> {
    /// Creates a cell that holds `model`.
    pub fn new(model: ClockModel<A, B>) -> Self {
        Self {
            words: Latch::new(model.to_words()),
            domains: PhantomData,
        }
    }

    /// Reads the model published last.
    #[inline(always)]
    pub fn load(&self) -> ClockModel<A, B> {
        ClockModel::from_words(self.words.read())
    }

    /// The exclusive right to replace the model; `None` while another caller holds it.
    pub fn writer(&self) -> Option<Publisher<'_, A, B>> {
        self.words.writer().map(|words| Publisher {
            words,
            domains: PhantomData,
        })
    }
}

/// The exclusive right to replace the model of a [`Published`] cell; released on drop.
#[derive(Debug)]
pub struct Publisher<'a, A: Source, B: Domain> {
    words: LatchWriter<'a, WORDS>,
    domains: PhantomData<fn() -> (A, B)>,
}

impl<A: Source, B: Domain> Publisher<'_, A, B> {
    /// Replaces the model.
    pub fn publish(&mut self, model: ClockModel<A, B>) {
        self.words.publish(model.to_words());
    }
}
