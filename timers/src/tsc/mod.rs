//! The time stamp counter of x86 processors.

mod facts;
mod read;

use downbeat_clock_core::{Clock, CounterInstruction, ReadOrdering, Ticks};

pub use facts::{KernelFacts, TscDoubt, TscFacts};
use read::TscAccess;

use crate::ClockUnavailable;
use crate::cores::CoreId;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use crate::resolution::grain_of;

/// The time stamp counter: the clock of an x86 processor with the lowest cost and the highest resolution.
///
/// A value exists only if the counter exists and runs at a constant rate, so reading it cannot fail.
/// [`ticks`](Clock::ticks) is ordered (`rdtscp`); [`open`](Clock::open) and [`close`](Clock::close) are fenced.
///
/// ```
/// use downbeat_timers::{Clock, TscClock};
///
/// match TscClock::detect() {
///     Ok(tsc) => {
///         let start = tsc.open();
///         let work: u64 = (0..1_000).sum();
///         let ticks = tsc.close().checked_since(start).expect("the counter is invariant");
///         println!("{work} took {ticks} ticks");
///     }
///     Err(why) => println!("no time stamp counter: {why}"),
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TscClock {
    counter: TscAccess,
    grain: u64,
}

impl TscClock {
    /// Creates the clock if the counter is usable as a clock. [`TscFacts::doubts`] lists reasons to distrust a usable one.
    ///
    /// # Errors
    /// If the counter is not usable.
    pub fn detect() -> Result<Self, ClockUnavailable> {
        Self::from_facts(&TscFacts::gather()?)
    }

    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    fn from_facts(facts: &TscFacts) -> Result<Self, ClockUnavailable> {
        facts.verdict()?;
        // SAFETY: the processor has both instructions, and according to the kernel they do not trap. Without `std` the
        // kernel is not queried: the process is assumed not to have disabled the counter for itself.
        let counter = unsafe { TscAccess::assume() };
        let tsc = Self { counter, grain: 1 };
        // Without ordering, a second reading within a step is a tick later on some processors.
        Ok(Self {
            grain: grain_of(&tsc),
            ..tsc
        })
    }

    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    fn from_facts(_: &TscFacts) -> Result<Self, ClockUnavailable> {
        Err(ClockUnavailable::NotX86)
    }

    /// The same counter read without ordering: cheaper, but readings can run backwards between two cores.
    pub fn unordered(self) -> UnorderedTsc {
        UnorderedTsc {
            counter: self.counter,
            grain: self.grain,
        }
    }

    /// An ordered reading and the core where it was taken: a different core means that the thread moved.
    ///
    /// The core is read from TSC_AUX, which Linux sets.
    #[inline(always)]
    pub fn ticks_and_core(&self) -> (Ticks, CoreId) {
        let (ticks, aux) = self.counter.ordered();
        // Linux: the lowest 12 bits are the core, the rest is the NUMA node.
        (Ticks(ticks), CoreId(aux & 0xfff))
    }
}

impl Clock for TscClock {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        Ticks(self.counter.ordered().0)
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Ordered
    }

    fn grain(&self) -> u64 {
        self.grain
    }

    fn instruction(&self) -> CounterInstruction {
        CounterInstruction::Rdtscp
    }

    #[inline(always)]
    fn open(&self) -> Ticks {
        Ticks(self.counter.open())
    }

    #[inline(always)]
    fn close(&self) -> Ticks {
        Ticks(self.counter.close())
    }
}

/// The time stamp counter read by a bare `rdtsc`; created by [`TscClock::unordered`].
#[derive(Clone, Copy, Debug)]
pub struct UnorderedTsc {
    counter: TscAccess,
    grain: u64,
}

impl Clock for UnorderedTsc {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        Ticks(self.counter.unordered())
    }

    fn grain(&self) -> u64 {
        self.grain
    }
}

#[cfg(test)]
#[cfg(all(feature = "std", any(target_arch = "x86", target_arch = "x86_64")))]
mod tests {
    use super::*;
    use crate::cores::tests::check_order_between_cores;
    use crate::cores::{allowed_cores, pin_to};

    /// The counter, if there is one; otherwise only detection is tested.
    fn detected() -> Option<TscClock> {
        let expected = TscFacts::gather().and_then(|facts| facts.verdict());
        match (TscClock::detect(), expected) {
            (Ok(tsc), Ok(())) => Some(tsc),
            (Err(found), Err(expected)) => {
                assert_eq!(found, expected);
                None
            }
            (found, expected) => panic!("{found:?}, but the facts say {expected:?}"),
        }
    }

    #[test]
    fn readings_on_one_thread_never_run_backwards() {
        let Some(tsc) = detected() else { return };
        let mut last = tsc.ticks();
        for _ in 0..100_000 {
            for next in [tsc.open(), tsc.ticks(), tsc.close(), tsc.ticks_and_core().0] {
                assert!(next >= last, "{next:?} after {last:?}");
                last = next;
            }
        }
        assert_eq!(
            (tsc.ordering(), tsc.unordered().ordering()),
            (ReadOrdering::Ordered, ReadOrdering::Unordered)
        );
    }

    #[test]
    fn an_ordered_reading_sent_to_another_core_is_not_ahead_of_its_next_reading() {
        let Some(tsc) = detected() else { return };
        check_order_between_cores(tsc, 100_000);
    }

    #[test]
    fn a_reading_contains_its_core() {
        let Some(tsc) = detected() else { return };
        for core in allowed_cores() {
            let there = std::thread::spawn(move || {
                pin_to(core).unwrap();
                tsc.ticks_and_core().1
            });
            assert_eq!(there.join().unwrap(), core);
        }
    }
}
