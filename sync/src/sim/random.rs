//! Random numbers that do not depend on the order in which ranks are simulated: each is from a
//! stream of its owner, or a hash of its subject.

use core::f64::consts::TAU;

use fastrand::Rng;

use crate::scramble::{SPLITMIX_STEP, scramble};

/// Purposes of streams and hashes, whose numbers are independent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Rank = 1,
    NodeClock,
    Asymmetry,
    Spell,
}

/// Hash of two numbers. Every bit of the result depends on every bit of both.
pub(super) fn hash(seed: u64, purpose: Purpose, a: u64, b: u64) -> u64 {
    let seed = scramble(seed.wrapping_add((purpose as u64).wrapping_mul(SPLITMIX_STEP)));
    scramble(scramble(seed ^ a) ^ b.wrapping_mul(SPLITMIX_STEP))
}

/// Returns the stream of numbers of one owner.
pub(super) fn stream(seed: u64, purpose: Purpose, owner: u64) -> Rng {
    Rng::with_seed(hash(seed, purpose, owner, 0))
}

/// Converts random bits to a number in `[0, 1)`.
pub(super) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Draws a number in `(0, 1]`, whose logarithm is finite.
pub(super) fn positive_unit(random: &mut Rng) -> f64 {
    1.0 - random.f64()
}

/// Draws an exponentially distributed number of mean 1.
pub fn exponential(random: &mut Rng) -> f64 {
    -positive_unit(random).ln()
}

/// Draws a normally distributed number (Box and Muller).
pub(crate) fn normal(random: &mut Rng) -> f64 {
    (2.0 * exponential(random)).sqrt() * (TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares means and deviations of 100,000 numbers, within five standard errors.
    #[test]
    fn random_numbers_have_the_expected_distributions() {
        let mut random = stream(1, Purpose::Rank, 0);
        let mut moments = |draw: fn(&mut Rng) -> f64| {
            let numbers: Vec<f64> = (0..100_000).map(|_| draw(&mut random)).collect();
            let mean = numbers.iter().sum::<f64>() / 1e5;
            (
                mean,
                (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5).sqrt(),
            )
        };
        for (draw, mean, deviation) in [
            (normal as fn(&mut Rng) -> f64, 0.0, 1.0),
            (exponential, 1.0, 1.0),
        ] {
            let found = moments(draw);
            assert!(
                (found.0 - mean).abs() < 5.0 / 316.0 && (found.1 - deviation).abs() < 0.03,
                "{found:?}"
            );
        }
    }

    #[test]
    fn hashes_of_similar_inputs_differ_in_many_bits() {
        let base = hash(7, Purpose::Asymmetry, 3, 5);
        let others = [
            hash(8, Purpose::Asymmetry, 3, 5),
            hash(7, Purpose::Spell, 3, 5),
            hash(7, Purpose::Asymmetry, 4, 5),
            hash(7, Purpose::Asymmetry, 3, 6),
            hash(7, Purpose::Asymmetry, 5, 3),
        ];
        for other in others {
            let differing = (base ^ other).count_ones();
            assert!((12..=52).contains(&differing), "{differing} bits");
        }
    }
}
