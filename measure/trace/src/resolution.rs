//! Resolution of the times in a file: conversion between its ticks and nanoseconds.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::{Array, ControlledLogicalClock, ForwardPass, Latencies, Trace};

/// Resolution of the times in a file, in ticks per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    per_second: i128,
}

const NANOS: i128 = 1_000_000_000;

impl Resolution {
    /// Creates the resolution; `None` if it is 0.
    pub fn new(per_second: u64) -> Option<Self> {
        (per_second > 0).then(|| Self {
            per_second: i128::from(per_second),
        })
    }

    /// Converts ticks to nanoseconds, rounded to the nearest, ties upwards; `None` on overflow.
    #[inline]
    pub(crate) fn nanos(self, ticks: i64) -> Option<i64> {
        if self.per_second == NANOS {
            return Some(ticks);
        }
        i64::try_from(
            (2 * NANOS * i128::from(ticks) + self.per_second).div_euclid(2 * self.per_second),
        )
        .ok()
    }

    /// Returns the first and the last tick within these times in nanoseconds, or twice the nearest
    /// tick if there is none.
    pub(crate) fn between(self, earliest: i64, latest: i64) -> Option<[i64; 2]> {
        if self.per_second == NANOS {
            return Some([earliest, latest]);
        }
        // The first tick that is rounded to `nanos` or more is half a nanosecond before it.
        let first =
            |nanos: i64| -(-self.per_second * (2 * i128::from(nanos) - 1)).div_euclid(2 * NANOS);
        let [first, last] = [first(earliest), first(latest.checked_add(1)?) - 1];
        let [first, last] = if first <= last {
            [first, last]
        } else {
            [self.nearest(earliest, latest); 2]
        };
        Some([i64::try_from(first).ok()?, i64::try_from(last).ok()?])
    }

    /// Returns true if a tick is longer than a nanosecond, so that most times are none of a tick.
    pub(crate) fn is_coarse(self) -> bool {
        self.per_second < NANOS
    }

    /// Returns the number of ticks after which at least this time has passed, by times that are
    /// rounded to nanoseconds.
    fn at_least(self, span: Duration) -> Duration {
        let nanos = i128::from(span.as_nanos());
        let rounding = i128::from(NANOS % self.per_second != 0 && nanos > 0);
        let ticks = -(-(nanos + rounding) * self.per_second).div_euclid(NANOS);
        Duration::from_nanos(i64::try_from(ticks).unwrap_or(i64::MAX))
    }

    /// Returns the time of a tick.
    pub(crate) fn time(self, tick: Timestamp<Global>) -> Timestamp<Global> {
        // Times are within 146 years.
        Timestamp::from_nanos(self.nanos(tick.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Converts times in ticks.
    pub(crate) fn times(self, ticks: &mut [Array<Timestamp<Global>>]) {
        let all = ticks.iter_mut().flatten();
        all.for_each(|time| *time = self.time(*time));
    }

    /// Returns the clock with all parameters in ticks, and a distance of one tick at least between
    /// events that have any.
    pub(crate) fn clock(self, clock: &ControlledLogicalClock) -> ControlledLogicalClock {
        let [process, node, beyond] = clock.latencies.levels().map(|level| self.at_least(level));
        let mut in_ticks = *clock;
        // They are in order, as the levels are.
        in_ticks.latencies = Latencies::new(process, node, beyond).unwrap_or(clock.latencies);
        in_ticks.rule.spacing = self.at_least(clock.rule.spacing);
        in_ticks.threshold = clock.threshold.map(|threshold| self.at_least(threshold));
        in_ticks
    }

    /// Converts the error of a pass in ticks.
    pub(crate) fn pass(self, pass: ForwardPass) -> ForwardPass {
        let error = self.time(Timestamp::from_nanos(pass.error.as_nanos()));
        ForwardPass {
            error: Duration::from_nanos(error.as_nanos()),
            ..pass
        }
    }

    /// Returns the nearest tick to the next time of a clock, after that of the last one if the times
    /// increase.
    #[inline]
    fn next_tick(self, last: &mut LastTick, time: Timestamp<Global>) -> Timestamp<Global> {
        let nanos = time.as_nanos();
        let tick = self.nearest(nanos, nanos) as i64;
        let tick = match *last {
            Some((before, tick_before)) if before == time => tick_before,
            Some((_, tick_before)) => tick.max(tick_before + 1),
            None => tick,
        };
        *last = Some((time, tick));
        Timestamp::from_nanos(tick)
    }

    fn nearest(self, earliest: i64, latest: i64) -> i128 {
        let middle = i128::from(earliest) + i128::from(latest);
        (self.per_second * middle + NANOS).div_euclid(2 * NANOS)
    }
}

/// Last time of a clock, and its tick.
type LastTick = Option<(Timestamp<Global>, i64)>;

impl Trace {
    /// Replaces all times by the nearest ticks, so that they can be written. On a clock, times that
    /// increase still do.
    pub(crate) fn put_in_ticks(&mut self, resolution: Resolution) {
        self.map_clocks(|_| {
            let mut last = None;
            move |_, time| resolution.next_tick(&mut last, time)
        });
    }

    /// Replaces ticks by their times.
    pub(crate) fn put_in_nanos(&mut self, resolution: Resolution) {
        for location in &mut self.locations {
            resolution.times(std::slice::from_mut(&mut location.times));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        for per_second in [1, 1_000, 1_000_000, 999_999_937, 2_693_000_000] {
            assert_eq!(
                Resolution::new(per_second)
                    .unwrap()
                    .nanos(3 * per_second as i64),
                Some(3_000_000_000)
            );
        }
        assert_eq!(Resolution::new(1).unwrap().nanos(i64::MAX), None);
        assert_eq!(Resolution::new(0), None);
    }

    proptest! {
        #[test]
        fn ticks_between_are_all_that_round_into_the_range(
            per_second in prop_oneof![1_000_000_000_u64..8_000_000_000, 100_000_000_u64..1_000_000_000],
            earliest in -1_000_000_000_000_i64..1_000_000_000_000,
            more in 0..3_i64,
        ) {
            let ticks = Resolution::new(per_second).unwrap();
            let latest = earliest + more;
            let [first, last] = ticks.between(earliest, latest).unwrap();
            let is_in = |tick: i64| (earliest..=latest).contains(&ticks.nanos(tick).unwrap());
            if (first..=last).any(is_in) {
                prop_assert!((first..=last).all(is_in) && !is_in(first - 1) && !is_in(last + 1));
            } else {
                prop_assert!(first == last && !is_in(first - 1) && !is_in(first + 1));
                let error = ticks.nanos(first).unwrap() as f64 - (earliest + latest) as f64 / 2.0;
                prop_assert!(error.abs() <= 0.5e9 / per_second as f64 + 1.0);
            }
        }
    }
}
