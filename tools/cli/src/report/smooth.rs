//! Densities of observations.

use downbeat_records::stats::{Density, Sample};

/// Maximum number of peaks in the density of a launch.
const PEAKS: usize = 3;
/// Number of points of the density in which steps of a clock are searched.
const POINTS: usize = 128;
/// Factor by which kernels are widened.
const WIDER: f64 = 1.3;
/// Maximum number of times that kernels are widened.
const TRIES: usize = 12;

/// Minimum height of a peak, as a share of the highest.
const PEAK: f64 = 0.05;

/// Returns the density of a launch at `points` points; `None` if all values are equal.
///
/// A clock that counts in steps makes a peak for every step, but the steps may not be exact enough for [`Sample::grain`].
/// So kernels start with Silverman's bandwidth and are widened until there are few peaks.
pub(crate) fn launch_density(sample: &Sample<'_>, points: usize) -> Option<Density> {
    let mut density = density(sample, points, 0.0)?;
    for _ in 0..TRIES {
        if count_peaks(&density.heights) <= PEAKS {
            break;
        }
        density = sample.density(density.bandwidth * WIDER, points)?;
    }
    Some(density)
}

/// Returns the bandwidth that hides the steps of the clock in all of these launches; 0 if Silverman's does.
pub(crate) fn step_bandwidth<'a>(launches: impl Iterator<Item = Sample<'a>>) -> f64 {
    let widened = |launch: Sample<'a>| {
        let bandwidth = launch_density(&launch, POINTS)?.bandwidth;
        (bandwidth > launch.silverman_bandwidth()?).then_some(bandwidth)
    };
    launches.filter_map(widened).fold(0.0, f64::max)
}

/// Returns the density with Silverman's bandwidth, or a wider one: the given one, or that which the grain of the clock and
/// the distance of points need. `None` if all values are equal.
pub(crate) fn density(sample: &Sample<'_>, points: usize, bandwidth: f64) -> Option<Density> {
    let values = sample.values();
    let range = values[values.len() - 1] - values[0];
    let least = bandwidth
        .max(0.75 * sample.grain()?)
        .max(range / points as f64);
    sample.density(sample.silverman_bandwidth()?.max(least), points)
}

/// Counts the peaks of a density.
fn count_peaks(heights: &[f64]) -> usize {
    let step = PEAK * heights.iter().copied().fold(0.0, f64::max);
    let (mut peaks, mut rising, mut last) = (0, true, 0.0_f64);
    for &height in heights {
        // Maximum since the last rise began, or minimum since the last fall began.
        last = if rising {
            last.max(height)
        } else {
            last.min(height)
        };
        if rising && height <= last - step {
            (peaks, rising, last) = (peaks + 1, false, height);
        } else if !rising && height >= last + step {
            (rising, last) = (true, height);
        }
    }
    peaks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(nanos: &mut [f64], ends: (f64, f64)) -> Vec<f64> {
        let found = launch_density(&Sample::new(nanos).unwrap(), 200).unwrap();
        found
            .points()
            .filter(|(at, _)| (ends.0..=ends.1).contains(at))
            .map(|(_, height)| height)
            .collect()
    }

    #[test]
    fn the_ticks_of_a_clock_are_not_peaks() {
        // 100 000 observations, uniform over ten whole numbers.
        let mut flat: Vec<f64> = (0..100_000).map(|i| f64::from(i % 10)).collect();
        let heights = inside(&mut flat, (2.0, 7.0));
        assert!(
            heights.len() > 50 && heights.iter().all(|height| (height - 0.1).abs() < 0.002),
            "{heights:?}"
        );
        // Steps of 10.015 ns in whole nanoseconds: the smallest difference is 1 ns.
        let mut rounded: Vec<f64> = (0..100_000)
            .map(|i| (f64::from(i % 8) * 10.015 + f64::from(i % 3) * 0.4).round())
            .collect();
        let heights = inside(&mut rounded.clone(), (25.0, 45.0));
        assert!(
            heights.len() > 20
                && heights
                    .iter()
                    .all(|height| (height / 0.0125 - 1.0).abs() < 0.1),
            "{heights:?}"
        );
        assert!((3.0..8.0).contains(&step_bandwidth(
            [Sample::new(&mut rounded).unwrap()].into_iter()
        )));
        assert!(launch_density(&Sample::new(&mut [4.0; 9]).unwrap(), 200).is_none());
    }

    #[test]
    fn two_modes_stay_two_peaks() {
        let mut two: Vec<f64> = (0..1_000)
            .map(|i| f64::from(i % 37 + i % 2 * 200))
            .collect();
        let two = Sample::new(&mut two).unwrap();
        let found = launch_density(&two, 64).unwrap();
        assert_eq!(
            (count_peaks(&found.heights), found.bandwidth),
            (2, two.silverman_bandwidth().unwrap())
        );
        assert_eq!(step_bandwidth([two].into_iter()), 0.0);
    }

    #[test]
    fn only_high_peaks_are_counted() {
        assert_eq!(count_peaks(&[0.0, 1.0, 0.0, 1.0, 0.0]), 2);
        assert_eq!(count_peaks(&[0.0, 1.0, 0.98, 1.0, 0.0, 0.03, 0.0]), 1);
        assert_eq!(count_peaks(&[0.0, 0.4, 1.0, 0.9, 0.5, 0.6, 0.2]), 2);
        assert_eq!(count_peaks(&[]), 0);
    }
}
