//! Thinning of observations: of the calls that fill a time slice, evenly spaced ones are kept.

/// Choice of one call of each block of 2^`level` adjacent calls.
///
/// The choice is pseudo-random, so that no pattern of calls, such as roots in turn, coincides with it; all ranks make the same
/// one. A call that is chosen is chosen at all lower levels, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thinning {
    level: u32,
}

impl Thinning {
    /// Level above which a block has more calls than can be numbered.
    const MOST: u32 = 31;

    /// Returns the choice at a level.
    pub(crate) fn at(level: u32) -> Self {
        Self {
            level: level.min(Self::MOST),
        }
    }

    /// Returns the level.
    pub(crate) fn level(self) -> u32 {
        self.level
    }

    /// Returns true if the call is chosen.
    pub(crate) fn keeps(self, call: u32) -> bool {
        self.chosen(call >> self.level) == u64::from(call)
    }

    /// Returns the number of chosen calls among the first ones.
    pub(crate) fn kept_of(self, calls: u32) -> usize {
        let blocks = calls >> self.level;
        blocks as usize + usize::from(self.chosen(blocks) < calls.into())
    }

    /// Halves kept observations, one of each block, until there are at most this number.
    pub(crate) fn limit<T>(&mut self, kept: &mut Vec<T>, most: usize) {
        while kept.len() > most && self.level < Self::MOST {
            self.halve(kept);
        }
    }

    /// Thins values of kept calls as far as another thinning, that of a later time.
    pub(crate) fn raise<T>(&mut self, to: Self, kept: &mut Vec<T>) {
        while self.level < to.level {
            self.halve(kept);
        }
    }

    /// Goes to the next level, with the values of those kept calls that are kept there, too.
    fn halve<T>(&mut self, kept: &mut Vec<T>) {
        let mut blocks = 0_u64..;
        let is_kept = |block: u64| half(self.level, block >> 1) == block & 1;
        kept.retain(|_| blocks.next().is_some_and(is_kept));
        self.level += 1;
    }

    /// Returns the call that is chosen of a block.
    fn chosen(self, block: u32) -> u64 {
        (0..self.level)
            .rev()
            .fold(block.into(), |block, level| 2 * block + half(level, block))
    }
}

/// Returns 0 or 1: the half of a pair of blocks of 2^`level` calls that is chosen.
fn half(level: u32, pair: u64) -> u64 {
    // The finalizer of SplitMix64, of which any bit is random.
    let mut bits = (pair << 5 | u64::from(level)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits >> 63
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn calls_that_repeat_a_pattern_are_kept_alike() {
        for (level, period) in [(3, 8_u32), (6, 4), (6, 64), (4, 3)] {
            let thinning = Thinning::at(level);
            let mut counts = vec![0_i32; period as usize];
            for call in (0..1_000_000).filter(|call| thinning.keeps(*call)) {
                counts[(call % period) as usize] += 1;
            }
            let fair = (1_000_000 >> level) as f64 / f64::from(period);
            for count in counts {
                assert!(
                    (f64::from(count) - fair).abs() < 6.0 * fair.sqrt(),
                    "{level}, {period}: {count}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn batches_are_thinned_as_the_whole(batches in prop::collection::vec(0_u32..300, 1..40), most in 1_usize..50) {
            let (mut thinning, mut kept, mut made) = (Thinning::default(), Vec::new(), 0);
            // What another rank keeps, which learns of the level only with the next batch.
            let (mut later, mut own) = (Thinning::default(), Vec::new());
            for batch in batches {
                later.raise(thinning, &mut own);
                own.extend((made..made + batch).filter(|call| thinning.keeps(*call)));
                kept.extend((made..made + batch).filter(|call| thinning.keeps(*call)));
                made += batch;
                prop_assert_eq!(thinning.kept_of(made), kept.len());
                thinning.limit(&mut kept, most);
                let expected: Vec<u32> = (0..made).filter(|call| thinning.keeps(*call)).collect();
                prop_assert_eq!(&kept, &expected);
                prop_assert!(kept.len() <= most);
                // No more than necessary is dropped: a block more or less at each end.
                prop_assert!(thinning.level() == 0 || 2 * kept.len() + 2 > most.min(made as usize) / 2);
            }
            later.raise(thinning, &mut own);
            prop_assert_eq!(own, kept);
        }

        #[test]
        fn one_call_of_each_block_is_chosen(level in 0_u32..12, block in 0_u32..1_000) {
            let (thinning, first) = (Thinning::at(level), block << level);
            let chosen = (first..first + (1 << level)).filter(|call| thinning.keeps(*call));
            prop_assert_eq!(chosen.count(), 1);
            prop_assert_eq!(thinning.kept_of(first), block as usize);
        }
    }
}
