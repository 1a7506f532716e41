//! How many values of a sample lie in bins of equal width.

use super::Sample;

/// How many values lie in bins of equal width.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Where the first bin begins.
    pub start: f64,
    /// How wide each is.
    pub width: f64,
    /// How many values each has. A value on an edge is in the bin that begins there, the greatest in the last one.
    pub counts: Vec<u64>,
}

impl Sample<'_> {
    /// The width of bins by the rule of Freedman and Diaconis: twice the distance of the quartiles over the cube root
    /// of the count. If more than half of the values are the same, by Scott's: 3.5 standard deviations over that root.
    ///
    /// `None` if all values are the same.
    pub fn bin_width(&self) -> Option<f64> {
        let quartiles = 2.0 * (self.quantile(0.75) - self.quantile(0.25));
        let spread = if quartiles > 0.0 { quartiles } else { 3.5 * self.standard_deviation()? };
        (spread > 0.0 && spread.is_finite()).then(|| spread / libm::cbrt(self.len() as f64))
    }

    /// A histogram from the least value to the greatest, with bins of the width of [`bin_width`](Self::bin_width) or a
    /// little less, but no more than so many. One bin of width 0 if all values are the same.
    pub fn histogram(&self, most: usize) -> Histogram {
        let (least, greatest) = (self.values()[0], self.values()[self.len() - 1]);
        let range = greatest - least;
        let wanted = self.bin_width().map_or(1.0, |width| libm::ceil(range / width));
        let bins = wanted.clamp(1.0, most.max(1) as f64) as usize;
        let width = range / bins as f64;
        let mut counts = Vec::with_capacity(bins);
        let mut below = 0;
        for bin in 1..bins {
            let end = self.values().partition_point(|value| *value < least + width * bin as f64);
            counts.push((end - below) as u64);
            below = end;
        }
        counts.push((self.len() - below) as u64);
        Histogram { start: least, width, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn there_are_as_many_bins_as_r_wants() {
        for shape in golden::SHAPES {
            let mut values = shape.values.to_vec();
            let sample = Sample::new(&mut values).unwrap();
            // R's way out, where more than half of the values are the same, is another one.
            if sample.quantile(0.25) < sample.quantile(0.75) {
                assert_eq!(sample.histogram(1_000).counts.len(), shape.bins);
            }
        }
    }

    #[test]
    fn values_on_edges_belong_to_the_bin_that_begins_there() {
        // Quartiles 1 and 3, so that bins are to be 4 / 5^(1/3) = 2.34 wide: two bins of 2.
        let mut values = [4.0, 0.0, 1.0, 2.0, 3.0];
        let found = Sample::new(&mut values).unwrap().histogram(9);
        assert_eq!(found, Histogram { start: 0.0, width: 2.0, counts: vec![2, 3] });
        assert_eq!(Sample::new(&mut values).unwrap().histogram(1).counts, [5]);
    }

    #[test]
    fn few_different_values_have_bins_too() {
        let same = Sample::new(&mut [7.0; 4]).unwrap().histogram(9);
        assert_eq!(same, Histogram { start: 7.0, width: 0.0, counts: vec![4] });
        // Scott: the standard deviation is 1, so bins of 3.5 / 100^(1/3) = 0.75: 14 of them.
        let mut values = vec![0.0; 100];
        values[99] = 10.0;
        let found = Sample::new(&mut values).unwrap().histogram(50);
        assert_eq!((found.counts.len(), found.counts[0], found.counts[13]), (14, 99, 1));
    }

    proptest! {
        #[test]
        fn no_value_is_lost(mut values in prop::collection::vec(-1e3..1e3, 1..100), most in 1_usize..40) {
            let sample = Sample::new(&mut values).unwrap();
            let found = sample.histogram(most);
            prop_assert!(found.counts.len() <= most);
            prop_assert_eq!(found.counts.iter().sum::<u64>(), sample.len() as u64);
            for (bin, count) in found.counts.iter().enumerate() {
                let (low, high) = (found.start + found.width * bin as f64, found.start + found.width * (bin + 1) as f64);
                let last = bin + 1 == found.counts.len();
                let inside = sample.values().iter().filter(|value| **value >= low && (**value < high || last)).count();
                prop_assert_eq!(*count, inside as u64);
            }
        }
    }
}
