//! The density of observations as it is drawn.

use downbeat_records::stats::{Density, Sample};

/// How many kinds of calls one may tell apart in a launch.
const PEAKS: usize = 3;
/// At how many places the steps of a clock are looked for.
const PLACES: usize = 128;
/// By which factor kernels become wider, and how often at most.
const WIDER: f64 = 1.3;
const TRIES: usize = 12;

/// What is lower than this share of the highest peak is none.
const PEAK: f64 = 0.05;

/// The density of a launch, at so many places. A clock that counts in steps gives a peak for every step, though none
/// that is exact enough for [`Sample::grain`]. So kernels start with Silverman's bandwidth and become wider until the
/// peaks are few.
///
/// `None` if all values are the same.
pub(crate) fn of_launch(sample: &Sample<'_>, places: usize) -> Option<Density> {
    let mut density = with(sample, places, 0.0)?;
    for _ in 0..TRIES {
        if peaks_of(&density.heights) <= PEAKS {
            break;
        }
        density = sample.density(density.bandwidth * WIDER, places)?;
    }
    Some(density)
}

/// How wide kernels have to be that hide the steps of the clock in all of these launches; 0 if Silverman's are enough.
pub(crate) fn steps<'a>(launches: impl Iterator<Item = Sample<'a>>) -> f64 {
    let widened = |launch: Sample<'a>| {
        let bandwidth = of_launch(&launch, PLACES)?.bandwidth;
        (bandwidth > launch.silverman_bandwidth()?).then_some(bandwidth)
    };
    launches.filter_map(widened).fold(0.0, f64::max)
}

/// The density by Silverman's bandwidth, or by a wider one: this, or what the clock and the distance of places ask for.
///
/// `None` if all values are the same.
pub(crate) fn with(sample: &Sample<'_>, places: usize, bandwidth: f64) -> Option<Density> {
    let values = sample.values();
    let range = values[values.len() - 1] - values[0];
    let least = bandwidth
        .max(0.75 * sample.grain()?)
        .max(range / places as f64);
    sample.density(sample.silverman_bandwidth()?.max(least), places)
}

/// How often heights fall again after they rose.
fn peaks_of(heights: &[f64]) -> usize {
    let step = PEAK * heights.iter().copied().fold(0.0, f64::max);
    let (mut peaks, mut rising, mut last) = (0, true, 0.0_f64);
    for &height in heights {
        // The highest since it began to rise, or the lowest since it began to fall.
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
        let found = of_launch(&Sample::new(nanos).unwrap(), 200).unwrap();
        found
            .points()
            .filter(|(at, _)| (ends.0..=ends.1).contains(at))
            .map(|(_, height)| height)
            .collect()
    }

    #[test]
    fn the_ticks_of_a_clock_are_no_peaks() {
        // 100 000 observations of ten whole numbers, all as frequent.
        let mut flat: Vec<f64> = (0..100_000).map(|i| f64::from(i % 10)).collect();
        let heights = inside(&mut flat, (2.0, 7.0));
        assert!(
            heights.len() > 50 && heights.iter().all(|height| (height - 0.1).abs() < 0.002),
            "{heights:?}"
        );
        // Steps of 10.015 ns in whole nanoseconds: the least difference is 1 ns.
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
        assert!((3.0..8.0).contains(&steps([Sample::new(&mut rounded).unwrap()].into_iter())));
        assert!(of_launch(&Sample::new(&mut [4.0; 9]).unwrap(), 200).is_none());
    }

    #[test]
    fn two_kinds_of_calls_stay_two_peaks() {
        let mut two: Vec<f64> = (0..1_000)
            .map(|i| f64::from(i % 37 + i % 2 * 200))
            .collect();
        let two = Sample::new(&mut two).unwrap();
        let found = of_launch(&two, 64).unwrap();
        assert_eq!(
            (peaks_of(&found.heights), found.bandwidth),
            (2, two.silverman_bandwidth().unwrap())
        );
        assert_eq!(steps([two].into_iter()), 0.0);
    }

    #[test]
    fn peaks_are_counted_if_they_are_high_enough() {
        assert_eq!(peaks_of(&[0.0, 1.0, 0.0, 1.0, 0.0]), 2);
        assert_eq!(peaks_of(&[0.0, 1.0, 0.98, 1.0, 0.0, 0.03, 0.0]), 1);
        assert_eq!(peaks_of(&[0.0, 0.4, 1.0, 0.9, 0.5, 0.6, 0.2]), 2);
        assert_eq!(peaks_of(&[]), 0);
    }
}
