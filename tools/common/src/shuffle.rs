//! Random order of measurements.

use downbeat_sync::internal::{SPLITMIX_STEP, scramble};

/// Brings items into a random order; all orders are equally likely.
///
/// The same seed gives the same order in all versions and on all machines, as records contain the seed: Fisher and Yates's
/// shuffle, from the last index down, with Lemire's method (2019) and SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) fn shuffle<T>(things: &mut [T], seed: u64) {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_add(SPLITMIX_STEP);
        scramble(state)
    };
    for last in (1..things.len()).rev() {
        let drawn = draw_below(last as u64 + 1, &mut draw);
        things.swap(last, drawn as usize);
    }
}

/// Draws a number below `end`, which must be above 0. The upper half of the product is the number; the draw is repeated if
/// the lower half is one of the few values that would bias the result.
fn draw_below(end: u64, draw: &mut impl FnMut() -> u64) -> u64 {
    let too_many = end.wrapping_neg() % end;
    loop {
        let product = u128::from(draw()) * u128::from(end);
        if product as u64 >= too_many {
            return (product >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(count: u32, seed: u64) -> Vec<u32> {
        let mut things: Vec<u32> = (0..count).collect();
        shuffle(&mut things, seed);
        things
    }

    /// The published first numbers of SplitMix64 from 0.
    #[test]
    fn the_generator_is_split_mix_64() {
        let numbers = [1, 2, 3].map(|place: u64| scramble(place.wrapping_mul(SPLITMIX_STEP)));
        assert_eq!(
            numbers,
            [
                0xe220_a839_7b1d_cdaf,
                0x6e78_9e6a_a1b9_65f4,
                0x06c4_5d18_8009_454f
            ]
        );
    }

    /// The expected orders are printed by `tests/golden/shuffle.py`.
    #[test]
    fn orders_never_change() {
        assert_eq!(order(12, 1), [7, 0, 4, 1, 2, 11, 5, 10, 3, 9, 8, 6]);
        assert_eq!(order(12, 2), [9, 0, 10, 1, 3, 4, 11, 2, 6, 5, 8, 7]);
        assert_eq!(order(12, u64::MAX), [4, 9, 0, 8, 1, 6, 7, 5, 3, 2, 11, 10]);
    }

    #[test]
    fn biased_draws_are_repeated() {
        // Of 2^64 = 5 * k + 1 numbers, the one whose product has the lower half 0 is excess.
        let mut numbers = [0, u64::MAX].into_iter();
        assert_eq!(draw_below(5, &mut || numbers.next().unwrap()), 4);
        assert_eq!(draw_below(1 << 63, &mut || 7), 3);
        assert_eq!(draw_below(1, &mut || u64::MAX), 0);
    }

    #[test]
    fn all_orders_are_about_equally_likely() {
        let mut counts = std::collections::HashMap::new();
        for seed in 0..24_000 {
            *counts.entry(order(4, seed)).or_insert(0_i32) += 1;
        }
        // Each 1,000 times, with a deviation of 31.
        assert_eq!(counts.len(), 24);
        assert!(
            counts.values().all(|count| (count - 1_000).abs() < 140),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn items_are_neither_lost_nor_duplicated(things in prop::collection::vec(0_u8..50, 0..200), seed: u64) {
            let (mut shuffled, mut again) = (things.clone(), things.clone());
            shuffle(&mut shuffled, seed);
            shuffle(&mut again, seed);
            prop_assert_eq!(&shuffled, &again);
            let sorted = |mut things: Vec<u8>| { things.sort_unstable(); things };
            prop_assert_eq!(sorted(shuffled), sorted(things));
        }
    }
}
