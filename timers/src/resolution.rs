//! Resolution of a clock.

use downbeat_clock_core::Clock;

/// Resolution of a clock, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Smallest difference between two different successive readings. At least the cost
    /// of a read, because a fast counter advances by more than its own step during a
    /// read. Some processors add a tick where two readings would be equal; such
    /// differences do not count.
    pub step: u64,
    /// Step of the counter: the largest one of which all differences are multiples, as
    /// far as the readings show it. A counter whose readings are converted to another
    /// unit, as those of the system clocks, is recognized in spite of the rounding.
    pub grain: u64,
    /// Number of readings that were smaller than the one before.
    pub backwards: u64,
}

/// Number of differences that show the step.
const COMPARED: usize = 256;

/// Smaller steps cannot be told from the rounding of readings.
const LEAST_ROUNDED: f64 = 4.0;

/// Most steps that a difference is tried as.
const MOST_MULTIPLES: u64 = 1_024;

/// Differences of which up to one in this many can be those of an added tick: one before
/// it, and one behind.
const TICK_ADDED: usize = 5;

/// Differences of which up to one in this many can be any: a hypervisor can move a
/// virtual processor between counters with different offsets.
const MOVED: usize = 50;

impl Resolution {
    /// Reads the clock `reads` times in a row; returns `None` if it never advanced.
    pub fn measure(clock: &impl Clock, reads: u32) -> Option<Self> {
        let (mut step, mut ones, mut backwards) = (u64::MAX, 0, 0);
        let mut differences = [0; COMPARED];
        let mut count = 0;
        let mut last = clock.ticks();
        for _ in 0..reads {
            let next = clock.ticks();
            match next.checked_since(last) {
                None => backwards += 1,
                Some(0) => {}
                Some(difference) => {
                    if difference == 1 {
                        ones += 1;
                    } else {
                        step = step.min(difference);
                    }
                    differences[count % COMPARED] = difference;
                    count += 1;
                }
            }
            last = next;
        }
        if count == 0 {
            return None;
        }
        if ones > count / TICK_ADDED || ones == count {
            step = 1;
        }
        let grain = step_of(&mut differences[..count.min(COMPARED)], step);
        Some(Self {
            // A tick that was added makes the next difference smaller.
            step: step.max(grain),
            grain,
            backwards,
        })
    }
}

/// Finds the step of a clock when it is created, in some ten microseconds.
pub(crate) fn grain_of(clock: &impl Clock) -> u64 {
    Resolution::measure(clock, 1_000).map_or(1, |found| found.grain)
}

/// Returns the step of which these differences are multiples; 1 if there is none. The
/// smallest difference is given.
fn step_of(differences: &mut [u64], smallest: u64) -> u64 {
    differences.sort_unstable();
    let differences = &*differences;
    let is_rare = |rare: usize, fits: &dyn Fn(u64) -> bool| {
        let rare = differences.len() / rare;
        let others = differences.iter().filter(|difference| !fits(**difference));
        others.take(rare + 1).count() <= rare
    };
    // The step is a divisor of the usual difference, which no added tick changed.
    let usual = most_frequent(differences);
    let exact = (1..=usual.min(MOST_MULTIPLES))
        .filter(|multiple| usual % *multiple == 0)
        .map(|multiple| usual / multiple)
        .filter(|step| (2..=smallest + 1).contains(step));
    let is_exact = |step: &u64| {
        let is_near =
            |difference| matches!(difference % step, 0 | 1) || (difference + 1) % step == 0;
        is_rare(TICK_ADDED, &|difference| difference % step == 0) && is_rare(MOVED, &is_near)
    };
    if let Some(step) = exact.into_iter().find(is_exact) {
        return step;
    }
    // Readings that are rounded to whole ticks: differences are off by one tick. Steps
    // are tried so close to each other that the largest differences are off by half a
    // tick more; of larger ones, every step has a multiple that is near enough.
    const LARGEST: u64 = 64;
    let small = differences[differences.len() / 20];
    let fits = |step: f64, difference: u64| {
        let multiples = difference as f64 / step;
        let apart = (multiples - (multiples + 0.5) as u64 as f64).abs() * step;
        difference / LARGEST > small || apart <= 1.5
    };
    let rounded = (1..=small.min(MOST_MULTIPLES)).flat_map(|multiple| {
        let apart = 1.0 / (LARGEST * multiple) as f64;
        let largest = (small + 1) as f64 / multiple as f64;
        (0..=2 * LARGEST).map(move |i| largest - i as f64 * apart)
    });
    rounded
        .take_while(|step| *step >= LEAST_ROUNDED)
        // The smallest difference may be rounded down.
        .filter(|step| *step < smallest as f64 + 1.0)
        .find(|step| is_rare(MOVED, &|difference| fits(*step, difference)))
        // Rounded up: `ceil` is not in `core`.
        .map_or(1, |step| smallest.min(step as u64 + 1))
}

/// Returns the most frequent of sorted differences.
fn most_frequent(differences: &[u64]) -> u64 {
    let runs = differences.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).map_or(1, |run| run[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{CyclicClock, SteppingClock};
    use core::cell::Cell;
    use std::vec::Vec;

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

    /// Readings of a counter with steps of 10.0008 ns, 70 ns and 1 ns, as whole
    /// nanoseconds.
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

    /// A counter of an emulator, which makes ticks of 16 ns of microseconds.
    #[test]
    fn a_step_between_two_numbers_of_ticks_is_found() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut now = 0.0;
            let mut read = || {
                now += 20.0 + 10.0 * random.f64();
                // Some reads take longer.
                now += [0.0, 60.0, 170.0][random.usize(..30).saturating_sub(27)];
                ((now / 62.5_f64).floor() * 62.5) as u64
            };
            let readings: Vec<u64> = (0..1_000).map(|_| read()).collect();
            assert_eq!(measured(&readings), [62, 62], "{seed}");
        }
    }

    /// Readings of a counter with this step by a loop whose iterations take one of these
    /// times.
    fn readings(step: u64, takes: &[u64]) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut now = 0;
        let mut read = || {
            now += takes[random.usize(..takes.len())];
            now / step * step
        };
        (0..1_000).map(|_| read()).collect()
    }

    fn measured(readings: &[u64]) -> [u64; 2] {
        let found = Resolution::measure(&CyclicClock(readings, Cell::default()), 999).unwrap();
        [found.step, found.grain]
    }

    /// The counter of a processor that adds a tick where two readings would be equal.
    #[test]
    fn an_added_tick_hides_no_step() {
        let mut random = fastrand::Rng::with_seed(3);
        for takes in [&[28, 33, 40][..], &[9, 10, 26, 30], &[70, 90, 120, 400]] {
            let mut added = readings(26, takes);
            for reading in &mut added {
                *reading += u64::from(random.u32(..20) == 0);
            }
            assert_eq!(measured(&added)[1], 26, "{takes:?}");
        }
    }

    #[test]
    fn a_counter_of_single_ticks_has_no_other_step() {
        for takes in [&[1][..], &[0, 0, 1], &[20, 21, 22, 23, 24, 25]] {
            assert_eq!(measured(&readings(1, takes))[1], 1, "{takes:?}");
        }
    }

    #[test]
    fn a_grain_is_never_above_the_smallest_difference() {
        // Steps of 10 ns, read in 30 to 42: a difference of 30 is rare.
        let mut takes = [41; 40];
        takes[..4].copy_from_slice(&[30, 31, 50, 62]);
        assert_eq!(measured(&readings(10, &takes)), [30, 10]);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1_000 {
            let steps: Vec<u64> = (0..5).map(|_| random.u64(1..200)).collect();
            let readings = readings(random.u64(1..40), &steps);
            let [step, grain] = measured(&readings);
            assert!(grain <= step, "{steps:?}: {grain} > {step}");
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
