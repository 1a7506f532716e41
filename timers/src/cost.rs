//! Read cost and resolution of a clock.

use downbeat_clock_core::{Clock, TickRate};

/// Cost of a read of a clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCost {
    /// Median cost.
    pub median: f64,
    /// 99th percentile of the cost.
    pub p99: f64,
}

/// Number of reads that are timed together: enough to hide the cost of the yardstick, few enough to detect slow reads.
const BATCH: u32 = 100;

impl ReadCost {
    /// Times `batches` batches of 100 reads with another clock, the yardstick.
    ///
    /// Returns `None` if `batches` is 0.
    pub fn measure(
        clock: &impl Clock,
        yardstick: &impl Clock,
        rate: TickRate,
        batches: usize,
    ) -> Option<Self> {
        let mut costs: Vec<f64> = (0..batches)
            .map(|_| {
                let start = yardstick.open();
                for _ in 0..BATCH {
                    core::hint::black_box(clock.ticks());
                }
                let ticks = yardstick.close().checked_since(start).unwrap_or_default();
                ticks as f64 * rate.nanos_per_tick() / f64::from(BATCH)
            })
            .collect();
        costs.sort_unstable_by(f64::total_cmp);
        // Nearest rank: the smallest cost that this percentage of the batches does not exceed.
        let at = |percent: usize| {
            costs
                .get((batches * percent).div_ceil(100).max(1) - 1)
                .copied()
        };
        Some(Self {
            median: at(50)?,
            p99: at(99)?,
        })
    }
}

/// Resolution of a clock, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Smallest difference between two different successive readings. At least the cost of a read, because a fast counter
    /// advances by more than its own step during a read.
    pub step: u64,
    /// Greatest common divisor of all differences: the step of the counter, as far as the readings show it.
    pub grain: u64,
    /// Number of readings that were smaller than the one before.
    pub backwards: u64,
}

impl Resolution {
    /// Reads the clock `reads` times in a row; returns `None` if it never advanced.
    pub fn measure(clock: &impl Clock, reads: u32) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut backwards = 0;
        let mut last = clock.ticks();
        for _ in 0..reads {
            let next = clock.ticks();
            match next.checked_since(last) {
                None => backwards += 1,
                Some(0) => {}
                Some(step) => {
                    found = Some(found.map_or(
                        Self {
                            step,
                            grain: step,
                            backwards: 0,
                        },
                        |smallest| Self {
                            step: smallest.step.min(step),
                            grain: greatest_common_divisor(smallest.grain, step),
                            backwards: 0,
                        },
                    ));
                }
            }
            last = next;
        }
        found.map(|found| Self { backwards, ..found })
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use downbeat_clock_core::Ticks;

    /// A clock that repeats the readings of a list.
    struct CyclicClock<'a>(&'a [u64], Cell<usize>);

    impl Clock for CyclicClock<'_> {
        fn ticks(&self) -> Ticks {
            let i = self.1.replace(self.1.get() + 1);
            Ticks(self.0[i % self.0.len()])
        }
    }

    /// A clock that advances by the next step of a list at every read.
    struct SteppingClock<'a>(&'a [u64], Cell<(usize, u64)>);

    impl Clock for SteppingClock<'_> {
        fn ticks(&self) -> Ticks {
            let (i, now) = self.1.get();
            let next = now + self.0[i % self.0.len()];
            self.1.set((i + 1, next));
            Ticks(next)
        }
    }

    #[test]
    fn the_smallest_step_and_the_grain_are_found() {
        let clock = SteppingClock(&[0, 60, 0, 0, 90, 150], Cell::default());
        assert_eq!(
            Resolution::measure(&clock, 100),
            Some(Resolution {
                step: 60,
                grain: 30,
                backwards: 0
            })
        );
    }

    #[test]
    fn steps_back_are_counted_and_a_stopped_clock_has_no_resolution() {
        let back = CyclicClock(&[10, 20, 5], Cell::default());
        let found = Resolution::measure(&back, 8).unwrap();
        assert_eq!((found.step, found.backwards), (5, 3));
        assert_eq!(
            Resolution::measure(&CyclicClock(&[7], Cell::default()), 50),
            None
        );
    }

    #[test]
    fn the_cost_is_measured_by_the_yardstick() {
        // A batch costs 2,000 or, once in fifty, 20,000 ticks of half a nanosecond each.
        let mut script = vec![2_000; 50];
        script[7] = 20_000;
        let steps: Vec<u64> = script.into_iter().flat_map(|cost| [1, cost]).collect();
        let yardstick = SteppingClock(&steps, Cell::default());
        let rate = TickRate::from_hz(2_000_000_000).unwrap();
        let free = CyclicClock(&[0], Cell::default());
        let cost = ReadCost::measure(&free, &yardstick, rate, 500).unwrap();
        assert!(
            (cost.median - 10.0).abs() < 1e-9 && (cost.p99 - 100.0).abs() < 1e-9,
            "{cost:?}"
        );
        assert_eq!(ReadCost::measure(&free, &yardstick, rate, 0), None);
    }
}
