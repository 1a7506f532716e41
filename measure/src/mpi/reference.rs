//! What operations are given to check them, and what they have to make of it, done by one rank for all.

use core::ops::Range;

use fastrand::Rng;

use super::datatype::Meaning;
use super::{Datatype, Reduction};

/// One call as one rank sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    pub(super) root: usize,
    /// Elements of a block.
    pub(super) block: usize,
    /// Where this rank's share of a result begins.
    pub(super) share: usize,
    pub(super) datatype: Datatype,
    /// `None` where nothing is combined.
    pub(super) reduction: Option<Reduction>,
}

impl Case {
    pub(super) fn is_root(&self) -> bool {
        self.rank == self.root
    }

    /// The element that a rank contributes at this place.
    ///
    /// Small enough for every datatype to hold it, and for floating point to combine it without error, in any order.
    pub(super) fn input(&self, rank: usize, place: usize) -> i64 {
        use Reduction::{Band, Bor, Bxor, Land, Lor, Lxor, Max, Min, Prod, Sum};
        let Some(reduction) = self.reduction else {
            // Different for neighbours either way, also in a byte.
            return (rank * 37 + place * 11 + 5) as i64;
        };
        let mut random = Rng::with_seed((rank as u64) << 40 ^ place as u64);
        let low = if self.datatype.meaning() == Meaning::Unsigned { 0 } else { -50 };
        match reduction {
            Sum => random.i64(low.max(-3)..=4),
            // Twos, of which there are at most 20, and ones.
            Prod => 1 + i64::from((rank + place).is_multiple_of(3) && rank < 60),
            Min | Max => random.i64(low..=50),
            // Mostly true and mostly false: else many ranks would always give the same. Not all that is true is 1.
            Land => random.i64(0..8).min(2),
            Lor => (random.i64(0..8) - 5).max(0),
            Lxor => random.i64(0..3),
            Band => random.i64(..) | random.i64(..) | random.i64(..),
            Bor => random.i64(..) & random.i64(..) & random.i64(..),
            Bxor => random.i64(..),
        }
    }

    /// What these ranks' elements of one place are together. `None` of no rank.
    pub(super) fn combined(&self, mut of: Range<usize>, place: usize) -> Option<i64> {
        let reduction = self.reduction?;
        let first = self.input(of.next()?, place);
        Some(of.fold(first, |sum, rank| combine(reduction, sum, self.input(rank, place))))
    }

    /// Whether an element is the expected one. Of truth there are several, and MPI does not say which it gives.
    pub(super) fn accepts(&self, element: &[u8], expected: i64) -> bool {
        if self.is_about_truth() {
            return element.iter().any(|byte| *byte != 0) == (expected != 0);
        }
        let (bytes, width) = encode(self.datatype, expected);
        element == &bytes[..width]
    }

    /// An element that is surely not the expected one.
    pub(super) fn opposite(&self, expected: i64) -> [u8; 8] {
        if self.is_about_truth() {
            return encode(self.datatype, (expected == 0).into()).0;
        }
        encode(self.datatype, expected).0.map(|byte| !byte)
    }

    fn is_about_truth(&self) -> bool {
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

/// An element of memory, at most as wide as a word.
pub(super) type Element = ([u8; 8], usize);

/// A value as a datatype holds it: of integers, the lowest bits.
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
    /// What an element says.
    pub(super) fn show(self, element: &[u8]) -> String {
        let mut word = [0; 8];
        match (self, element) {
            (Self::Float, &[a, b, c, d]) => f32::from_ne_bytes([a, b, c, d]).to_string(),
            (Self::Double, _) if element.len() == word.len() => {
                word.copy_from_slice(element);
                f64::from_ne_bytes(word).to_string()
            }
            _ => {
                let mut highest_first: Vec<String> = element.iter().map(|byte| format!("{byte:02x}")).collect();
                if cfg!(target_endian = "little") {
                    highest_first.reverse();
                }
                format!("0x{}", highest_first.concat())
            }
        }
    }
}
