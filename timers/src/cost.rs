//! Read cost of a clock.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{CyclicClock, SteppingClock};
    use core::cell::Cell;

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
