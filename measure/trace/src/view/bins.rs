//! Time of every region in bins of one location, whose width doubles when there are too many.

/// Part of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) region: u32,
    /// Begin and end in nanoseconds.
    pub(super) times: [i64; 2],
}

/// Bins of one location, from its first bar on. Their edges are multiples of their width, a power of two.
#[derive(Debug, Default)]
pub(super) struct LocationBins {
    shift: u32,
    /// Index of the first bin.
    first: i64,
    bins: Vec<BinContent>,
}

/// Time of each region in a bin, in nanoseconds.
pub(super) type BinContent = Vec<(u32, u64)>;

impl LocationBins {
    /// Adds a bar that does not begin before the last one; there are at most this number of bins afterwards.
    pub(super) fn add(&mut self, bar: Bar, most: usize) {
        let [start, end] = bar.times;
        if self.bins.is_empty() {
            self.first = start >> self.shift;
        }
        let last = |shift: u32| end.saturating_sub(1).max(start) >> shift;
        while last(self.shift).saturating_sub(self.first) >= most.max(2) as i64 {
            self.coarsen();
        }
        // By times that decrease, a bar may begin before the first one.
        let end_bin = last(self.shift).max(self.first);
        let begin = (start >> self.shift).clamp(self.first, end_bin);
        let needed = (end_bin - self.first + 1) as usize;
        if self.bins.len() < needed {
            self.bins.resize_with(needed, Vec::new);
        }
        for bin in begin..=end_bin {
            let [low, high] = [bin, bin.saturating_add(1)].map(|edge| edge << self.shift);
            let inside = end.min(high).saturating_sub(start.max(low));
            // A call that took no time is visible, too.
            let content = &mut self.bins[(bin - self.first) as usize];
            add(content, bar.region, inside.max(1) as u64);
        }
    }

    /// Returns the exponent of the width.
    pub(super) const fn shift(&self) -> u32 {
        self.shift
    }

    /// Doubles the width until it has this exponent.
    pub(super) fn coarsen_to(&mut self, shift: u32) {
        while self.shift < shift {
            self.coarsen();
        }
    }

    /// Returns the content of the bins with their indices.
    pub(super) fn all(&self) -> impl Iterator<Item = (i64, &BinContent)> {
        (self.first..).zip(&self.bins)
    }

    fn coarsen(&mut self) {
        let first = self.first >> 1;
        let mut merged: Vec<BinContent> = vec![];
        for (bin, content) in (self.first..).zip(std::mem::take(&mut self.bins)) {
            let place = ((bin >> 1) - first) as usize;
            match merged.get_mut(place) {
                None => merged.push(content),
                Some(of) => content
                    .iter()
                    .for_each(|(region, time)| add(of, *region, *time)),
            }
        }
        (self.shift, self.first, self.bins) = (self.shift + 1, first, merged);
    }
}

/// Adds the time of a region.
pub(super) fn add(content: &mut BinContent, region: u32, time: u64) {
    match content.iter_mut().rev().find(|(known, _)| *known == region) {
        Some((_, sum)) => *sum = sum.saturating_add(time),
        None => content.push((region, time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bar(region: u32, times: [i64; 2]) -> Bar {
        Bar { region, times }
    }

    #[test]
    fn bins_double_their_width() {
        let mut bins = LocationBins::default();
        bins.add(bar(0, [-3, 1]), 4);
        assert_eq!(bins.shift(), 0);
        bins.add(bar(1, [1, 3]), 4);
        let found: Vec<_> = bins
            .all()
            .map(|(bin, content)| (bin, content.clone()))
            .collect();
        let expected = [
            (-2, vec![(0, 1)]),
            (-1, vec![(0, 2)]),
            (0, vec![(0, 1), (1, 1)]),
            (1, vec![(1, 1)]),
        ];
        assert_eq!((bins.shift(), found), (1, expected.to_vec()));
        bins.coarsen_to(3);
        assert_eq!(bins.all().count(), 2);
    }

    #[test]
    fn the_longest_time_fits() {
        let mut bins = LocationBins::default();
        let reach = 1 << 62;
        bins.add(bar(0, [-reach, reach]), 16);
        let sum: u64 = bins
            .all()
            .flat_map(|(_, content)| content)
            .map(|(_, time)| time)
            .sum();
        assert_eq!(sum, 1 << 63);
    }

    proptest! {
        #[test]
        fn no_time_is_lost(lengths in prop::collection::vec((0_u32..4, 1_i64..5_000, 0_i64..3_000), 1..200), most in 2_usize..40) {
            let (mut bins, mut now, mut expected) = (LocationBins::default(), -20_000, [0; 4]);
            for (region, length, gap) in lengths {
                bins.add(bar(region, [now, now + length]), most);
                expected[region as usize] += length as u64;
                now += length + gap;
            }
            let mut found = [0; 4];
            for (region, time) in bins.all().flat_map(|(_, content)| content) {
                found[*region as usize] += time;
            }
            prop_assert_eq!(found, expected);
            prop_assert!(bins.all().count() <= most);
        }
    }
}
