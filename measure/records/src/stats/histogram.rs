//! Histograms with bins of equal width.

use super::Sample;

/// A histogram with bins of equal width.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Begin of the first bin.
    pub start: f64,
    /// Width of each bin.
    pub width: f64,
    /// Number of values in each bin. A value on an edge is in the bin that begins there.
    pub counts: Vec<u64>,
}

impl Sample<'_> {
    /// Width of bins by the rule of Freedman and Diaconis: twice the interquartile range over the
    /// cube root of the count. If more than half of the values are the same, by Scott's rule: 3.5
    /// standard deviations over that root.
    ///
    /// `None` if all values are the same.
    pub fn bin_width(&self) -> Option<f64> {
        let quartiles = 2.0 * (self.quantile(0.75) - self.quantile(0.25));
        let spread = if quartiles > 0.0 {
            quartiles
        } else {
            3.5 * self.standard_deviation()?
        };
        (spread > 0.0 && spread.is_finite()).then(|| spread / libm::cbrt(self.len() as f64))
    }

    /// Smallest distance between two different values: the resolution of the clock, if all are
    /// multiples of it.
    ///
    /// `None` if all values are the same.
    pub fn grain(&self) -> Option<f64> {
        let distances = self.values().windows(2).map(|pair| pair[1] - pair[0]);
        distances
            .filter(|distance| *distance > 0.0)
            .reduce(f64::min)
    }

    /// Histogram with bins of about the width of [`bin_width`](Self::bin_width), but at most `most`
    /// bins.
    ///
    /// The width is a multiple of the [`grain`](Self::grain), and edges lie between multiples of
    /// it: otherwise values of a coarse clock could alternate between one and two per bin, which
    /// shows gaps that are not in the values. One bin of width 0 if all values are the same.
    pub fn histogram(&self, most: usize) -> Histogram {
        let least = self.values()[0];
        let Some(grain) = self.grain() else {
            return Histogram {
                start: least,
                width: 0.0,
                counts: vec![self.len() as u64],
            };
        };
        let bins = self.bins_wanted().clamp(1.0, most.max(1) as f64);
        let range = self.values()[self.len() - 1] - least;
        let width = grain * libm::ceil((range + grain) / bins / grain);
        let start = least - 0.5 * grain;
        let bins = libm::floor((range + 0.5 * grain) / width) as usize + 1;
        let mut below = 0;
        let mut up_to = |end: usize| (end - core::mem::replace(&mut below, end)) as u64;
        let ends = (1..bins).map(|bin| {
            self.values()
                .partition_point(|value| *value < start + width * bin as f64)
        });
        let counts = ends.chain([self.len()]).map(&mut up_to).collect();
        Histogram {
            start,
            width,
            counts,
        }
    }

    /// Number of bins by the rule; R's `nclass.FD`.
    fn bins_wanted(&self) -> f64 {
        let range = self.values()[self.len() - 1] - self.values()[0];
        self.bin_width()
            .map_or(1.0, |width| libm::ceil(range / width))
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_many_bins_are_wanted_as_r_wants() {
        for shape in golden::SHAPES {
            let mut values = shape.values.to_vec();
            let sample = Sample::new(&mut values).unwrap();
            // R handles samples with more than half of the values the same in another way.
            if sample.quantile(0.25) < sample.quantile(0.75) {
                assert_eq!(sample.bins_wanted(), shape.bins as f64);
            }
        }
    }

    #[test]
    fn bins_are_made_of_whole_grains() {
        // Quartiles 1 and 3, so that the rule gives a width of 4 / 5^(1/3) = 2.34: two bins, of
        // three grains.
        let mut values = [4.0, 0.0, 1.0, 2.0, 3.0];
        let found = Sample::new(&mut values).unwrap().histogram(9);
        assert_eq!(
            found,
            Histogram {
                start: -0.5,
                width: 3.0,
                counts: vec![3, 2]
            }
        );
        assert_eq!(Sample::new(&mut values).unwrap().histogram(1).counts, [5]);
        // A flat distribution of integers stays flat except for its end, although the rule gives a
        // width of 5.45.
        let mut flat: Vec<f64> = (0..6_000).map(|i| f64::from(i % 100)).collect();
        let found = Sample::new(&mut flat).unwrap().histogram(60);
        assert_eq!((found.width, found.counts.len()), (6.0, 17));
        assert!(
            found.counts[..16].iter().all(|count| *count == 360),
            "{found:?}"
        );
    }

    #[test]
    fn few_different_values_have_bins() {
        let same = Sample::new(&mut [7.0; 4]).unwrap().histogram(9);
        assert_eq!(
            same,
            Histogram {
                start: 7.0,
                width: 0.0,
                counts: vec![4]
            }
        );
        // Scott: the standard deviation is 1, so bins of 3.5 / 100^(1/3) = 0.75.
        let mut values = vec![0.0; 100];
        values[99] = 10.0;
        let sample = Sample::new(&mut values).unwrap();
        assert_eq!((sample.bins_wanted(), sample.grain()), (14.0, Some(10.0)));
        assert_eq!(
            sample.histogram(50),
            Histogram {
                start: -5.0,
                width: 10.0,
                counts: vec![99, 1]
            }
        );
    }

    proptest! {
        #[test]
        fn no_value_is_lost(
            mut values in prop_oneof![
                prop::collection::vec(-1e3..1e3, 1..100),
                prop::collection::vec((0_u8..30).prop_map(f64::from), 1..100),
            ],
            most in 1_usize..40,
        ) {
            let sample = Sample::new(&mut values).unwrap();
            let found = sample.histogram(most);
            prop_assert!(found.counts.len() <= most);
            prop_assert_eq!(found.counts.iter().sum::<u64>(), sample.len() as u64);
            for (bin, count) in found.counts.iter().enumerate() {
                let edge = |bin: usize| found.start + found.width * bin as f64;
                let last = bin + 1 == found.counts.len();
                let is_in = |value: &f64| *value >= edge(bin) && (*value < edge(bin + 1) || last);
                prop_assert_eq!(*count, sample.values().iter().filter(|value| is_in(value)).count() as u64);
            }
            prop_assert!(found.width == 0.0 || found.start + found.width * found.counts.len() as f64 > sample.quantile(1.0));
        }
    }
}
