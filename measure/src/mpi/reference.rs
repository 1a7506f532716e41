//! Inputs and expected results for verifying operations; one rank computes the inputs of all ranks.

use fastrand::Rng;

use super::datatype::{Datatype, NumberKind, Reduction};
use super::neighbours::Neighbours;

/// One call on one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifyCase {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    pub(super) root: usize,
    /// Number of elements of a block.
    pub(super) block: usize,
    /// Index of the first element of this rank's share of a result.
    pub(super) share: usize,
    pub(super) datatype: Datatype,
    /// Reduction; `None` if the operation has none.
    pub(super) reduction: Option<Reduction>,
    pub(super) radius: u32,
}

impl VerifyCase {
    /// Returns true if no rank is a neighbour several times.
    pub(super) fn neighbours_differ(&self) -> bool {
        self.ranks > 2 * self.radius as usize
    }

    /// Returns the rank that sends the block with this index to this rank, if ranks are neighbours.
    pub(super) fn source(&self, block: usize) -> usize {
        let (rank, ranks) = (self.rank as u32, self.ranks as u32);
        Neighbours::of(rank, ranks, self.radius).sources[block] as usize
    }

    pub(super) fn is_root(&self) -> bool {
        self.rank == self.root
    }

    /// Returns the element that a rank contributes at this index.
    ///
    /// It is small enough for every datatype, and for exact floating-point reductions in any order.
    pub(super) fn input(&self, rank: usize, place: usize) -> i64 {
        use Reduction::{Band, Bor, Bxor, Land, Lor, Lxor, Max, Min, Prod, Sum};
        let Some(reduction) = self.reduction else {
            // Different for neighbouring ranks and indices, even in a byte.
            return (rank * 37 + place * 11 + 5) as i64;
        };
        let mut random = Rng::with_seed((rank as u64) << 40 ^ place as u64);
        let low = if self.datatype.meaning() == NumberKind::Unsigned {
            0
        } else {
            -50
        };
        match reduction {
            Sum => random.i64(low.max(-3)..=4),
            // Ones, and at most 20 twos.
            Prod => 1 + i64::from((rank + place).is_multiple_of(3) && rank < 60),
            Min | Max => random.i64(low..=50),
            // Mostly true and mostly false: otherwise many ranks would always have the same result. True values are not
            // always 1.
            Land => random.i64(0..8).min(2),
            Lor => (random.i64(0..8) - 5).max(0),
            Lxor => random.i64(0..3),
            Band => random.i64(..) | random.i64(..) | random.i64(..),
            Bor => random.i64(..) & random.i64(..) & random.i64(..),
            Bxor => random.i64(..),
        }
    }

    /// Returns the reduction of these ranks' elements at an index; `None` for no ranks.
    pub(super) fn combined(
        &self,
        ranks: impl IntoIterator<Item = usize>,
        place: usize,
    ) -> Option<i64> {
        let reduction = self.reduction?;
        let mut ranks = ranks.into_iter();
        let first = self.input(ranks.next()?, place);
        Some(ranks.fold(first, |sum, rank| {
            combine(reduction, sum, self.input(rank, place))
        }))
    }

    /// Returns true if an element has the expected value. A true value may be any number except 0, as MPI does not define
    /// which one a reduction returns.
    pub(super) fn accepts(&self, element: &[u8], expected: i64) -> bool {
        if self.is_logical() {
            return element.iter().any(|byte| *byte != 0) == (expected != 0);
        }
        let (bytes, width) = encode(self.datatype, expected);
        element == &bytes[..width]
    }

    /// Returns an element that is different from the expected one.
    pub(super) fn opposite(&self, expected: i64) -> [u8; 8] {
        if self.is_logical() {
            return encode(self.datatype, (expected == 0).into()).0;
        }
        encode(self.datatype, expected).0.map(|byte| !byte)
    }

    fn is_logical(&self) -> bool {
        self.reduction.is_some_and(Reduction::is_logical)
    }
}

fn combine(reduction: Reduction, a: i64, b: i64) -> i64 {
    match reduction {
        Reduction::Sum => a.wrapping_add(b),
        Reduction::Prod => a.wrapping_mul(b),
        Reduction::Min => a.min(b),
        Reduction::Max => a.max(b),
        Reduction::Land => (a != 0 && b != 0).into(),
        Reduction::Lor => (a != 0 || b != 0).into(),
        Reduction::Lxor => ((a != 0) != (b != 0)).into(),
        Reduction::Band => a & b,
        Reduction::Bor => a | b,
        Reduction::Bxor => a ^ b,
    }
}

/// Bytes of an element, and their number.
pub(super) type Element = ([u8; 8], usize);

/// Encodes a value; integers are truncated to the lowest bits.
pub(super) fn encode(datatype: Datatype, value: i64) -> Element {
    let mut bytes = [0; 8];
    let width = datatype.bytes() as usize;
    match (datatype, width) {
        (Datatype::Float, _) => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
        (Datatype::Double, _) => bytes = (value as f64).to_ne_bytes(),
        (_, 1) => bytes[0] = value as u8,
        (_, 2) => bytes[..2].copy_from_slice(&(value as u16).to_ne_bytes()),
        (_, 4) => bytes[..4].copy_from_slice(&(value as u32).to_ne_bytes()),
        _ => bytes = value.to_ne_bytes(),
    }
    (bytes, width)
}

impl Datatype {
    /// Formats an element.
    pub(super) fn show(self, element: &[u8]) -> String {
        let mut word = [0; 8];
        match (self, element) {
            (Self::Float, &[a, b, c, d]) => f32::from_ne_bytes([a, b, c, d]).to_string(),
            (Self::Double, _) if element.len() == word.len() => {
                word.copy_from_slice(element);
                f64::from_ne_bytes(word).to_string()
            }
            _ => {
                let mut highest_first: Vec<String> =
                    element.iter().map(|byte| format!("{byte:02x}")).collect();
                if cfg!(target_endian = "little") {
                    highest_first.reverse();
                }
                format!("0x{}", highest_first.concat())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(datatype: Datatype, reduction: Option<Reduction>) -> VerifyCase {
        VerifyCase {
            rank: 1,
            ranks: 5,
            root: 2,
            block: 10,
            share: 0,
            datatype,
            radius: 1,
            reduction,
        }
    }

    fn inputs(case: &VerifyCase, rank: usize) -> Vec<i64> {
        (0..200).map(|place| case.input(rank, place)).collect()
    }

    #[test]
    fn inputs_differ_between_ranks_and_indices() {
        let case = case(Datatype::Byte, None);
        let bytes = |rank| -> Vec<u8> {
            (0..40)
                .map(|place| encode(Datatype::Byte, case.input(rank, place)).0[0])
                .collect()
        };
        for rank in 0..20 {
            let own = bytes(rank);
            assert!(own.windows(2).all(|two| two[0] != two[1]));
            assert!((0..rank).all(|other| bytes(other).iter().zip(&own).all(|(a, b)| a != b)));
        }
    }

    /// Otherwise verification could not distinguish reductions.
    #[test]
    fn reductions_have_different_results() {
        for datatype in Datatype::ALL {
            for reduction in Reduction::ALL
                .into_iter()
                .filter(|reduction| datatype.allows(*reduction))
            {
                let case = case(datatype, Some(reduction));
                let results: Vec<i64> = (0..200)
                    .map(|place| case.combined(0..5, place).unwrap())
                    .collect();
                // Results of the other reductions for the same input.
                for other in Reduction::ALL
                    .into_iter()
                    .filter(|other| *other != reduction && datatype.allows(*other))
                {
                    let wrong = |place: usize| {
                        let all = (1..5).fold(case.input(0, place), |a, rank| {
                            combine(other, a, case.input(rank, place))
                        });
                        !case.accepts(
                            &encode(datatype, all).0[..datatype.bytes() as usize],
                            results[place],
                        )
                    };
                    let differing = (0..200).filter(|place| wrong(*place)).count();
                    // As truth values, these reductions have equal results.
                    let same_truth_values = matches!(
                        (reduction, other),
                        (
                            Reduction::Lor,
                            Reduction::Bor | Reduction::Max | Reduction::Sum
                        )
                    ) || matches!(
                        (reduction, other),
                        (Reduction::Land, Reduction::Min | Reduction::Prod)
                    );
                    assert!(
                        differing > 10 || same_truth_values,
                        "{datatype} {reduction} {other}: {differing}"
                    );
                }
            }
        }
    }

    /// Floating-point numbers and bytes represent results exactly in any order.
    #[test]
    fn results_are_exact() {
        for reduction in [
            Reduction::Sum,
            Reduction::Prod,
            Reduction::Min,
            Reduction::Max,
        ] {
            let case = case(Datatype::Float, Some(reduction));
            for place in 0..200 {
                let many = case.combined(0..1000, place).unwrap();
                assert!(many.abs() < 1 << 24, "{reduction}: {many}");
            }
        }
        let unsigned = case(Datatype::Uint8, Some(Reduction::Sum));
        assert!((0..5).all(|rank| {
            inputs(&unsigned, rank)
                .iter()
                .all(|value| (0..=50).contains(value))
        }));
    }

    /// Compares with reductions by hand.
    #[test]
    fn ranks_are_combined() {
        let results = Reduction::ALL.map(|reduction| combine(reduction, 6, -3));
        assert_eq!(results, [3, -18, -3, 6, 1, 1, 0, 4, -1, -5]);
        let truths = [Reduction::Land, Reduction::Lor, Reduction::Lxor]
            .map(|reduction| combine(reduction, 2, 0));
        assert_eq!(truths, [0, 1, 1]);
        let case = case(Datatype::Int32, Some(Reduction::Sum));
        let [a, b, c] = [1, 2, 3].map(|rank| case.input(rank, 17));
        assert_eq!(case.combined(1..4, 17), Some(a + b + c));
        assert_eq!(
            (case.combined(1..2, 17), case.combined(0..0, 17)),
            (Some(a), None)
        );
    }

    #[test]
    fn elements_are_encoded_and_shown() {
        let shown = |datatype: Datatype, value| {
            let (bytes, width) = encode(datatype, value);
            datatype.show(&bytes[..width])
        };
        assert_eq!(shown(Datatype::Float, -3), "-3");
        assert_eq!(shown(Datatype::Double, 7), "7");
        assert_eq!(shown(Datatype::Int16, -2), "0xfffe");
        assert_eq!(shown(Datatype::Uint32, 258), "0x00000102");
        assert_eq!(shown(Datatype::Byte, 0x1ff), "0xff");
        assert_eq!(shown(Datatype::Int64, 1), "0x0000000000000001");
    }

    #[test]
    fn opposites_are_wrong_and_true_has_several_values() {
        for datatype in Datatype::ALL {
            for reduction in Reduction::ALL.map(Some).into_iter().chain([None]) {
                let case = case(datatype, reduction);
                let width = datatype.bytes() as usize;
                for expected in [0, 1] {
                    assert!(case.accepts(&encode(datatype, expected).0[..width], expected));
                    assert!(!case.accepts(&case.opposite(expected)[..width], expected));
                }
                let logical = reduction.is_some_and(Reduction::is_logical);
                assert_eq!(case.accepts(&encode(datatype, 2).0[..width], 1), logical);
            }
        }
    }
}
