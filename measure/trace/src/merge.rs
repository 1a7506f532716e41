//! Merging of reports on parts of a trace, which consist of numbers.

use downbeat_clock_core::Duration;

/// Number of a report, by the way in which reports are merged. Zero changes nothing.
pub(super) enum Number<'a> {
    Count(&'a mut u64),
    Sum(&'a mut u128),
    Signed(&'a mut i128),
    Longest(&'a mut Duration),
    /// Not negative.
    Largest(&'a mut f64),
    Least(&'a mut i128),
    Greatest(&'a mut i128),
}

/// Report that consists of numbers.
pub(super) trait Numbers {
    /// Passes all numbers, always in the same order.
    fn numbers(&mut self, see: &mut impl FnMut(Number<'_>));

    /// Returns the numbers that are not zero: the index of each, and its lower and higher half.
    fn words(&mut self) -> Vec<[u64; 3]> {
        let (mut words, mut count) = (vec![], 0);
        self.numbers(&mut |number| {
            let [low, high] = number.words();
            if [low, high] != [0; 2] {
                words.push([count, low, high]);
            }
            count += 1;
        });
        words
    }

    /// Merges the numbers of a report on another part.
    fn absorb(&mut self, words: &[[u64; 3]]) {
        let (mut words, mut count) = (words.iter().peekable(), 0);
        self.numbers(&mut |number| {
            if let Some([_, low, high]) = words.next_if(|[index, ..]| *index == count) {
                number.absorb([*low, *high]);
            }
            count += 1;
        });
    }

    /// Merges a report on another part.
    fn merge(&mut self, other: &mut Self) {
        self.absorb(&other.words());
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    fn numbers(&mut self, see: &mut impl FnMut(Number<'_>)) {
        self.iter_mut().for_each(|each| each.numbers(see));
    }
}

impl Number<'_> {
    fn words(self) -> [u64; 2] {
        let word = match self {
            Self::Count(count) => u128::from(*count),
            Self::Sum(sum) => *sum,
            Self::Signed(number) | Self::Least(number) | Self::Greatest(number) => *number as u128,
            Self::Longest(duration) => duration.as_nanos() as u128,
            Self::Largest(share) => share.to_bits().into(),
        };
        [word as u64, (word >> 64) as u64]
    }

    fn absorb(self, [low, high]: [u64; 2]) {
        let word = u128::from(high) << 64 | u128::from(low);
        match self {
            Self::Count(count) => *count += low,
            Self::Sum(sum) => *sum = sum.saturating_add(word),
            Self::Signed(number) => *number += word as i128,
            Self::Least(number) => *number = (*number).min(word as i128),
            Self::Greatest(number) => *number = (*number).max(word as i128),
            Self::Longest(duration) => {
                *duration = (*duration).max(Duration::from_nanos(low as i64));
            }
            Self::Largest(share) => *share = share.max(f64::from_bits(low)),
        }
    }
}
