//! Resolution of a clock.

use downbeat_clock_core::Clock;

/// Resolution of a clock, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Smallest difference between two different successive readings. At least the cost of a read, because a fast counter
    /// advances by more than its own step during a read.
    pub step: u64,
    /// Step of the counter: the largest one of which all differences are multiples, as far as the readings show it. A counter
    /// whose readings are converted to another unit, as those of the system clocks, is recognized in spite of the rounding.
    pub grain: u64,
    /// Number of readings that were smaller than the one before.
    pub backwards: u64,
}

/// Number of differences that show the step.
const COMPARED: usize = 256;

/// Smaller steps cannot be told from the rounding of readings.
const LEAST_ROUNDED: f64 = 4.0;

impl Resolution {
    /// Reads the clock `reads` times in a row; returns `None` if it never advanced.
    pub fn measure(clock: &impl Clock, reads: u32) -> Option<Self> {
        let (mut step, mut backwards) = (u64::MAX, 0);
        let mut differences = [0; COMPARED];
        let mut count = 0;
        let mut last = clock.ticks();
        for _ in 0..reads {
            let next = clock.ticks();
            match next.checked_since(last) {
                None => backwards += 1,
                Some(0) => {}
                Some(difference) => {
                    step = step.min(difference);
                    differences[count % COMPARED] = difference;
                    count += 1;
                }
            }
            last = next;
        }
        let differences = &mut differences[..count.min(COMPARED)];
        (count > 0).then(|| Self {
            step,
            grain: step_of(differences),
            backwards,
        })
    }
}

/// Finds the step of a clock when it is created, in some ten microseconds.
pub(crate) fn grain_of(clock: &impl Clock) -> u64 {
    Resolution::measure(clock, 1_000).map_or(1, |found| found.grain)
}

/// Returns the step of which these differences are multiples; 1 if there is none.
///
/// A few may be others: a hypervisor can move a virtual processor between counters with different offsets.
fn step_of(differences: &mut [u64]) -> u64 {
    differences.sort_unstable();
    let (differences, most) = (&*differences, differences.len() / 20);
    let is_rare = |fits: &dyn Fn(u64) -> bool| {
        let others = differences.iter().filter(|difference| !fits(**difference));
        others.take(most + 1).count() <= most
    };
    // A small difference, which is this multiple of the step.
    let small = differences[most];
    let multiples = || 1..=small.min(1_024);
    let exact = multiples()
        .filter(|multiple| small % *multiple == 0)
        .map(|multiple| small / multiple);
    let exact = exact.filter(|step| *step > 1);
    if let Some(step) = exact
        .into_iter()
        .find(|step| is_rare(&|difference| difference % *step == 0))
    {
        return step;
    }
    // Readings that are rounded to whole ticks: differences are off by one tick. Steps are tried so close to each other that
    // the largest differences are off by half a tick more; of larger ones, every step has a multiple that is near enough.
    const LARGEST: u64 = 64;
    let fits = |step: f64, difference: u64| {
        let multiples = difference as f64 / step;
        let apart = (multiples - (multiples + 0.5) as u64 as f64).abs() * step;
        difference / LARGEST > small || apart <= 1.5
    };
    let rounded = multiples().flat_map(|multiple| {
        let apart = 1.0 / (LARGEST * multiple) as f64;
        let largest = (small + 1) as f64 / multiple as f64;
        (0..=2 * LARGEST).map(move |i| largest - i as f64 * apart)
    });
    rounded
        .take_while(|step| *step >= LEAST_ROUNDED)
        .find(|step| is_rare(&|difference| fits(*step, difference)))
        // Rounded up: `ceil` is not in `core`.
        .map_or(1, |step| step as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{CyclicClock, SteppingClock};
    use core::cell::Cell;

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

    /// Readings of a counter with steps of 10.0008 ns, 70 ns and 1 ns, as whole nanoseconds.
    #[test]
    fn the_step_of_a_converted_counter_is_found() {
        let mut random = fastrand::Rng::with_seed(5);
        for (step, most) in [(10.0008_f64, 12), (69.84, 71), (1.0, 3), (279.365, 281)] {
            let mut readings = vec![0];
            let mut now = 0.0;
            for _ in 0..1_000 {
                now += 33.0 + 9.0 * random.f64();
                readings.push(((now / step).floor() * step) as u64);
            }
            let found = Resolution::measure(&CyclicClock(&readings, Cell::default()), 1_000);
            let grain = found.unwrap().grain;
            assert!(
                grain as f64 + 1.0 > step && grain <= most,
                "{step}: {grain}"
            );
        }
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
}
