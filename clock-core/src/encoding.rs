//! The encoding of a clock model as bytes, for messages and files.
//!
//! ```text
//! 0..3    "dbm"
//! 3       version, 1
//! 4..16   nanoseconds per unit, in units of 2^-64 ns
//! 16..32  time at the source's zero, in the same units, plus half a nanosecond
//! 32..40  anchor
//! 40..44  CRC-32 of the names of both domains and of all bytes above
//! ```
//!
//! All numbers are little-endian.

use crate::affine::Affine;
use crate::{ClockModel, Domain, ModelError, ModelSource, TickRate};

const MAGIC: [u8; 3] = *b"dbm";
const VERSION: u8 = 1;

/// Length of an encoded model in bytes.
const LEN: usize = 44;

impl<A: ModelSource, B: Domain> ClockModel<A, B> {
    /// Length of an encoded model in bytes.
    pub const ENCODED_LEN: usize = LEN;

    /// Encodes the model.
    ///
    /// ```
    /// use downbeat_clock_core::{ClockModel, Global, Local, ModelError, Node, TickRate, Timestamp};
    ///
    /// let model = ClockModel::<Local, Global>::through(Timestamp::from_nanos(5), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
    /// let bytes = model.encode();
    /// assert_eq!(ClockModel::decode(&bytes), Ok(model));
    /// assert_eq!(ClockModel::<Local, Node>::decode(&bytes), Err(ModelError::EncodedChecksum));
    /// # Ok::<(), downbeat_clock_core::ModelError>(())
    /// ```
    pub fn encode(&self) -> [u8; LEN] {
        let (Affine { rate, constant, .. }, anchor) = self.parts();
        let mut bytes = [0; LEN];
        bytes[..3].copy_from_slice(&MAGIC);
        bytes[3] = VERSION;
        // A rate is below 2^96.
        bytes[4..16].copy_from_slice(&rate.fixed().to_le_bytes()[..12]);
        bytes[16..32].copy_from_slice(&constant.to_le_bytes());
        bytes[32..40].copy_from_slice(&anchor.to_le_bytes());
        let checksum = checksum::<A, B>(&bytes[..40]);
        bytes[40..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a model.
    ///
    /// # Errors
    /// If the bytes do not encode a model, or encode one between other domains.
    pub fn decode(bytes: &[u8]) -> Result<Self, ModelError> {
        let bytes: &[u8; LEN] = bytes
            .try_into()
            .map_err(|_| ModelError::EncodedLength(bytes.len()))?;
        if bytes[..3] != MAGIC {
            return Err(ModelError::NotAModel);
        }
        if bytes[3] != VERSION {
            return Err(ModelError::EncodedVersion(bytes[3]));
        }
        if little_endian(&bytes[40..]) != u128::from(checksum::<A, B>(&bytes[..40])) {
            return Err(ModelError::EncodedChecksum);
        }
        let rate = TickRate::from_fixed(little_endian(&bytes[4..16]))
            .map_err(|_| ModelError::EncodedRange)?;
        let map = Affine::new(rate, little_endian(&bytes[16..32]) as i128)
            .ok_or(ModelError::EncodedRange)?;
        Ok(Self::from_parts(map, little_endian(&bytes[32..40]) as u64))
    }
}

fn little_endian(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// CRC-32 (IEEE 802.3), computed bit by bit: a program encodes only a few models, and a table would be larger than
/// the rest of this file.
fn checksum<A: ModelSource, B: Domain>(bytes: &[u8]) -> u32 {
    let parts = [A::NAME.as_bytes(), &[0], B::NAME.as_bytes(), &[0], bytes];
    !parts.into_iter().flatten().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{Counter, Global, Local, Ticks, Timestamp};
    use proptest::prelude::*;

    type CounterModel = ClockModel<Counter, Global>;

    fn model() -> impl Strategy<Value = CounterModel> {
        (any::<u64>(), any::<i64>(), 1_u64.., 1_u64..).prop_filter_map(
            "no such clock",
            |(at, image, nanos, ticks)| {
                CounterModel::through(
                    Ticks(at),
                    Timestamp::from_nanos(image),
                    TickRate::from_ratio(nanos, ticks).ok()?,
                )
                .ok()
            },
        )
    }

    proptest! {
        #[test]
        fn an_encoded_model_decodes_to_itself(model in model()) {
            prop_assert_eq!(CounterModel::decode(&model.encode()), Ok(model));
        }

        #[test]
        fn every_truncation_and_extension_is_rejected(model in model(), extra: u8) {
            let mut bytes = std::vec::Vec::from(model.encode());
            bytes.push(extra);
            for length in (0..=LEN + 1).filter(|length| *length != LEN) {
                prop_assert_eq!(CounterModel::decode(&bytes[..length]), Err(ModelError::EncodedLength(length)));
            }
        }

        #[test]
        fn one_or_two_flipped_bits_are_rejected(model in model(), second in 0..LEN * 8) {
            let bytes = model.encode();
            for first in 0..LEN * 8 {
                let mut damaged = bytes;
                damaged[first / 8] ^= 1 << (first % 8);
                prop_assert!(CounterModel::decode(&damaged).is_err(), "bit {first}");
                damaged[second / 8] ^= 1 << (second % 8);
                prop_assert!(first == second || CounterModel::decode(&damaged).is_err(), "bits {first} and {second}");
            }
        }

        /// With a valid checksum, arbitrary bytes are rejected or decode to a working model.
        #[test]
        fn arbitrary_bytes_are_rejected_or_decode_to_a_model(body: [u8; 32], more: [u8; 4], at: u64) {
            let mut bytes = [0; LEN];
            bytes[..3].copy_from_slice(&MAGIC);
            bytes[3] = VERSION;
            bytes[4..36].copy_from_slice(&body);
            bytes[36..40].copy_from_slice(&more);
            // Half of the random constants are out of range; make the others occur, too.
            if at & 1 == 0 {
                bytes[31] = 0;
            }
            let sum = checksum::<Counter, Global>(&bytes[..40]);
            bytes[40..].copy_from_slice(&sum.to_le_bytes());
            if let Ok(model) = CounterModel::decode(&bytes) {
                prop_assert_eq!(model.encode(), bytes);
                let shown = model.apply(Ticks(at));
                prop_assert!(model.apply(model.invert(shown)) >= shown || model.invert(shown) == Ticks(u64::MAX));
            }
        }
    }

    #[test]
    fn magic_version_and_domain_mismatches_have_distinct_errors() {
        let bytes = ClockModel::<Local, Global>::IDENTITY.encode();
        let changed = |at: usize, to| {
            let mut bytes = bytes;
            bytes[at] = to;
            ClockModel::<Local, Global>::decode(&bytes)
        };
        assert_eq!(changed(0, b'x'), Err(ModelError::NotAModel));
        assert_eq!(changed(3, 2), Err(ModelError::EncodedVersion(2)));
        assert_eq!(
            ClockModel::<Global, Local>::decode(&bytes),
            Err(ModelError::EncodedChecksum)
        );
    }

    #[test]
    fn the_checksum_is_crc_32() {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        struct Empty;
        impl Domain for Empty {
            const NAME: &'static str = "";
        }
        // The terminators of the two empty names, then "123456789": computed with Python's zlib.crc32.
        assert_eq!(checksum::<Empty, Empty>(b"123456789"), 0x467a_9c64);
    }
}
