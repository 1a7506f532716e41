//! Kernel density estimates with normal kernels.

use core::f64::consts::TAU;

use super::Sample;

/// A density at evenly spaced points.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// The first point.
    pub start: f64,
    /// Distance between points.
    pub step: f64,
    /// Share of the values per unit at each point.
    pub heights: Vec<f64>,
    /// Standard deviation of the kernels.
    pub bandwidth: f64,
}

impl Density {
    /// Points and the heights there.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.heights
            .iter()
            .enumerate()
            .map(|(i, height)| (self.start + self.step * i as f64, *height))
    }
}

/// A kernel is cut where it has fallen to 1e-8 of its height.
const REACH: f64 = 6.0;

/// Values within this share of the bandwidth are merged: the error is below 1e-4 of a kernel.
const CELL: f64 = 1.0 / 32.0;

impl Sample<'_> {
    /// Bandwidth by Silverman's rule of thumb, R's `bw.nrd0`: 0.9 times the smaller of the standard
    /// deviation and the interquartile range over 1.34, over the fifth root of the count.
    ///
    /// `None` if all values are the same.
    pub fn silverman_bandwidth(&self) -> Option<f64> {
        let deviation = self
            .standard_deviation()
            .filter(|deviation| *deviation > 0.0 && deviation.is_finite())?;
        let quartiles = (self.quantile(0.75) - self.quantile(0.25)) / 1.34;
        // If more than half of the values are the same, the interquartile range is zero.
        let spread = if quartiles > 0.0 {
            quartiles.min(deviation)
        } else {
            deviation
        };
        Some(0.9 * spread * libm::pow(self.len() as f64, -0.2))
    }

    /// Density by kernels of this bandwidth, at a number of points from three bandwidths below the
    /// smallest value to three above the largest, as R's `density` does.
    ///
    /// `None` unless the bandwidth is positive and finite, and there are at least two points.
    pub fn density(&self, bandwidth: f64, places: usize) -> Option<Density> {
        if !(bandwidth > 0.0 && bandwidth.is_finite()) || places < 2 {
            return None;
        }
        let (least, greatest) = (self.values()[0], self.values()[self.len() - 1]);
        let start = least - 3.0 * bandwidth;
        let step = (greatest + 3.0 * bandwidth - start) / (places - 1) as f64;
        let cells = self.cells(bandwidth * CELL);
        let peak = 1.0 / (libm::sqrt(TAU) * bandwidth * self.len() as f64);
        let height = |place: f64| {
            let first = cells.partition_point(|(value, _)| *value < place - REACH * bandwidth);
            let near = cells[first..]
                .iter()
                .take_while(|(value, _)| *value <= place + REACH * bandwidth);
            peak * near
                .map(|(value, count)| count * kernel((place - value) / bandwidth))
                .sum::<f64>()
        };
        let heights = (0..places)
            .map(|i| height(start + step * i as f64))
            .collect();
        Some(Density {
            start,
            step,
            heights,
            bandwidth,
        })
    }

    /// Merges values within `width`; returns the mean and number of each group, ascending.
    fn cells(&self, width: f64) -> Vec<(f64, f64)> {
        let mut cells = Vec::new();
        let mut rest = self.values();
        while let Some(first) = rest.first() {
            let count = rest.partition_point(|value| value - first <= width);
            let above = rest[..count].iter().map(|value| value - first).sum::<f64>();
            cells.push((first + above / count as f64, count as f64));
            rest = &rest[count..];
        }
        cells
    }
}

fn kernel(distance: f64) -> f64 {
    libm::exp(-0.5 * distance * distance)
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    fn exact(values: &[f64], bandwidth: f64, place: f64) -> f64 {
        let sum = values
            .iter()
            .map(|value| kernel((place - value) / bandwidth))
            .sum::<f64>();
        sum / (TAU.sqrt() * bandwidth * values.len() as f64)
    }

    #[test]
    fn bandwidths_and_densities_are_those_of_r() {
        for shape in golden::SHAPES {
            let mut values = shape.values.to_vec();
            let sample = Sample::new(&mut values).unwrap();
            let bandwidth = sample.silverman_bandwidth().unwrap();
            assert!(
                (bandwidth / shape.bandwidth - 1.0).abs() < 1e-13,
                "{bandwidth} is not {}",
                shape.bandwidth
            );
            for (place, height) in shape.density {
                // The exact sum equals R's, so that the property test below holds for R, too.
                assert!(
                    (exact(shape.values, bandwidth, *place) / height - 1.0).abs() < 1e-11,
                    "at {place}"
                );
            }
        }
    }

    #[test]
    fn values_that_are_all_the_same_have_no_density() {
        assert_eq!(
            Sample::new(&mut [3.0; 5]).unwrap().silverman_bandwidth(),
            None
        );
        assert_eq!(Sample::new(&mut [3.0]).unwrap().silverman_bandwidth(), None);
        let mut two = [1.0, 2.0];
        let two = Sample::new(&mut two).unwrap();
        for bandwidth in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(two.density(bandwidth, 10), None);
        }
        assert_eq!(two.density(1.0, 1), None);
        let density = two.density(0.5, 3).unwrap();
        assert_eq!((density.start, density.step), (-0.5, 2.0));
        assert_eq!(
            density.points().map(|(place, _)| place).collect::<Vec<_>>(),
            [-0.5, 1.5, 3.5]
        );
    }

    proptest! {
        #[test]
        fn a_density_is_the_sum_of_all_kernels_and_of_area_one(
            mut values in prop::collection::vec(prop_oneof![0.0..100.0, 90.0..91.0], 2..400),
            share in 0.02..2.0,
        ) {
            let sample = Sample::new(&mut values).unwrap();
            let bandwidth = share * sample.silverman_bandwidth().unwrap();
            let density = sample.density(bandwidth, 200).unwrap();
            let peak = 1.0 / (TAU.sqrt() * bandwidth);
            for (place, height) in density.points() {
                prop_assert!((height - exact(sample.values(), bandwidth, place)).abs() < 1e-4 * peak, "at {place}");
            }
            if density.step < bandwidth {
                let area = density.step * density.heights.iter().sum::<f64>();
                prop_assert!((area - 1.0).abs() < 5e-3, "{area}");
            }
        }
    }
}
