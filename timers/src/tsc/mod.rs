//! The time stamp counter of x86 processors.

mod facts;
mod read;

use downbeat_clock_core::{Clock, ReadOrdering, Ticks};

pub use facts::{Clocksource, Hypervisor, KernelFacts, TscDoubt, TscFacts, TscUnavailable};
use read::Readable;

use crate::CoreId;

/// The time stamp counter: the cheapest and finest clock of an x86 processor.
///
/// The value is the proof that the counter is there and runs at one rate, so reading it cannot fail. Its
/// [`ticks`](Clock::ticks) are ordered (`rdtscp`); [`open`](Clock::open) and [`close`](Clock::close) are fenced.
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
    counter: Readable,
}

impl TscClock {
    /// Finds out whether the counter is fit to be a clock.
    ///
    /// What speaks against one that is fit is told by [`TscFacts::doubts`].
    ///
    /// # Errors
    /// The reason why it is not.
    pub fn detect() -> Result<Self, TscUnavailable> {
        Self::from_facts(&TscFacts::gather()?)
    }

    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    fn from_facts(facts: &TscFacts) -> Result<Self, TscUnavailable> {
        facts.verdict()?;
        // SAFETY: the processor said that it has both instructions, and the kernel that they do not trap. Without `std`
        // the kernel was not asked: such a process is taken not to have forbidden itself the counter.
        let counter = unsafe { Readable::assume() };
        Ok(Self { counter })
    }

    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    fn from_facts(_: &TscFacts) -> Result<Self, TscUnavailable> {
        Err(TscUnavailable::OtherArchitecture)
    }

    /// The same counter without any order: cheaper, and able to run backwards between two cores.
    pub fn unordered(self) -> UnorderedTsc {
        UnorderedTsc { counter: self.counter }
    }

    /// An ordered reading, and the core that it was taken on: two different cores mean that the thread moved.
    ///
    /// The core is what the kernel keeps in TSC_AUX; Linux does.
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

    #[inline(always)]
    fn open(&self) -> Ticks {
        Ticks(self.counter.open())
    }

    #[inline(always)]
    fn close(&self) -> Ticks {
        Ticks(self.counter.close())
    }
}

/// The time stamp counter read by a bare `rdtsc`; made by [`TscClock::unordered`].
#[derive(Clone, Copy, Debug)]
pub struct UnorderedTsc {
    counter: Readable,
}

impl Clock for UnorderedTsc {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        Ticks(self.counter.unordered())
    }
}
