//! The density of observations as it is drawn.

use downbeat_measure::{Density, Sample};

/// The density at so many places. Its kernels are at least as wide as the grain of the clock and the distance of the
/// places ask for: otherwise it would have a peak at every tick of the clock.
///
/// `None` if all values are the same.
pub(crate) fn density(sample: &Sample<'_>, places: usize) -> Option<Density> {
    let values = sample.values();
    let range = values[values.len() - 1] - values[0];
    let bandwidth = sample.silverman_bandwidth()?;
    let bandwidth = bandwidth.max(0.75 * sample.grain()?).max(range / places as f64);
    sample.density(bandwidth, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_of_a_clock_are_no_peaks() {
        // 100 000 observations of ten whole numbers, all as frequent.
        let mut flat: Vec<f64> = (0..100_000).map(|i| f64::from(i % 10)).collect();
        let found = density(&Sample::new(&mut flat).unwrap(), 200).unwrap();
        let inside: Vec<f64> = found.points().filter(|(at, _)| (2.0..=7.0).contains(at)).map(|(_, h)| h).collect();
        assert!(inside.len() > 50 && inside.iter().all(|height| (height - 0.1).abs() < 0.002), "{inside:?}");
        assert!(density(&Sample::new(&mut [4.0; 9]).unwrap(), 200).is_none());
    }
}
