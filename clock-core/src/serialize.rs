//! Serialization of what people store, with the feature `serde`.
//!
//! | type | stored as |
//! |---|---|
//! | [`Duration`], [`Timestamp`] | whole nanoseconds |
//! | [`Ticks`] | a number |
//! | [`TickRate`] | whole nanoseconds per tick, and the fraction in units of 2^-64 ns |
//! | [`ClockModel`] | its [encoding](ClockModel::encode), which names both domains; in text formats as hexadecimal digits |
//! | [`ErrorBound`](crate::ErrorBound) | its fields |

use core::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{ClockModel, Domain, Duration, ModelSource, TickRate, Ticks, Timestamp};

/// Implements both traits for a type that is stored as another one.
macro_rules! stored_as {
    ($([$($generics:tt)*] $type:ty, $stored:ty, |$value:ident| $to:expr, |$found:ident| $from:expr;)*) => { $(
        impl<$($generics)*> Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = *self;
                $to.serialize(serializer)
            }
        }

        impl<'de, $($generics)*> Deserialize<'de> for $type {
            fn deserialize<S: Deserializer<'de>>(deserializer: S) -> Result<Self, S::Error> {
                let $found = <$stored>::deserialize(deserializer)?;
                $from.map_err(S::Error::custom)
            }
        }
    )* };
}

stored_as! {
    [] Duration, i64, |span| span.as_nanos(), |nanos| Ok::<_, fmt::Error>(Self::from_nanos(nanos));
    [D: Domain] Timestamp<D>, i64, |at| at.as_nanos(), |nanos| Ok::<_, fmt::Error>(Self::from_nanos(nanos));
    [] Ticks, u64, |ticks| ticks.0, |ticks| Ok::<_, fmt::Error>(Self(ticks));
    [] TickRate, (u64, u64), |rate| (rate.whole(), rate.fraction()),
        |parts| Self::from_fixed(u128::from(parts.0) << 64 | u128::from(parts.1));
}

/// Number of hexadecimal digits of a model in a text format.
const DIGITS: usize = 2 * LEN;
const LEN: usize = ClockModel::<crate::Local, crate::Global>::ENCODED_LEN;

impl<A: ModelSource, B: Domain> Serialize for ClockModel<A, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = self.encode();
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&bytes);
        }
        let digit = |place: usize| {
            let byte = bytes[place / 2];
            let nibble = if place % 2 == 0 {
                byte >> 4
            } else {
                byte & 0xf
            };
            b"0123456789abcdef"[usize::from(nibble)]
        };
        let text: [u8; DIGITS] = core::array::from_fn(digit);
        serializer.serialize_str(core::str::from_utf8(&text).unwrap_or_default())
    }
}

impl<'de, A: ModelSource, B: Domain> Deserialize<'de> for ClockModel<A, B> {
    fn deserialize<S: Deserializer<'de>>(deserializer: S) -> Result<Self, S::Error> {
        let bytes = if deserializer.is_human_readable() {
            deserializer.deserialize_str(EncodedModel)
        } else {
            deserializer.deserialize_bytes(EncodedModel)
        }?;
        Self::decode(&bytes).map_err(S::Error::custom)
    }
}

/// Reads the bytes of an encoded model.
struct EncodedModel;

impl Visitor<'_> for EncodedModel {
    type Value = [u8; LEN];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an encoded clock model of {LEN} bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        bytes
            .try_into()
            .map_err(|_| E::invalid_length(bytes.len(), &self))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let digits = text.as_bytes();
        if digits.len() != DIGITS {
            return Err(E::invalid_length(digits.len() / 2, &self));
        }
        let mut bytes = [0; LEN];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let nibble = |digit: u8| char::from(digit).to_digit(16);
            let (Some(high), Some(low)) = (nibble(pair[0]), nibble(pair[1])) else {
                return Err(E::custom("a model has hexadecimal digits only"));
            };
            *byte = (high << 4 | low) as u8;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use core::fmt::Debug;
    use std::string::{String, ToString};

    use super::*;
    use crate::{Counter, ErrorBound, Global, Local, Node};
    use serde::de::DeserializeOwned;

    fn assert_stored<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, text: &str) {
        assert_eq!(serde_json::to_string(value).unwrap(), text);
        assert_eq!(serde_json::from_str::<T>(text).unwrap(), *value);
    }

    fn refusal<T: DeserializeOwned + Debug>(text: &str) -> String {
        serde_json::from_str::<T>(text).unwrap_err().to_string()
    }

    #[test]
    fn values_are_stored_and_read_back() {
        assert_stored(&Duration::from_nanos(-5), "-5");
        assert_stored(&Timestamp::<Global>::from_nanos(7), "7");
        assert_stored(&Ticks(u64::MAX), "18446744073709551615");
        assert_stored(&TickRate::NANOSECOND, "[1,0]");
        let bound = ErrorBound::<Global> {
            at: Timestamp::from_nanos(1),
            ahead: Duration::from_nanos(2),
            behind: Duration::from_nanos(3),
            drift: 1e-6,
        };
        assert_stored(&bound, r#"{"at":1,"ahead":2,"behind":3,"drift":1e-6}"#);
    }

    #[test]
    fn models_are_stored_with_their_domains() {
        let rate = TickRate::from_hz(2_600_000_000).unwrap();
        let model =
            ClockModel::<Counter, Local>::through(Ticks(9), Timestamp::from_nanos(-4), rate)
                .unwrap();
        let text = serde_json::to_string(&model).unwrap();
        assert!(text.starts_with("\"64626d01"), "{text}");
        assert_stored(&model, &text);
        let other = refusal::<ClockModel<Counter, Node>>(&text);
        assert!(other.contains("is between other clocks"), "{other}");
        let short = refusal::<ClockModel<Counter, Local>>("\"64\"");
        assert!(
            short.contains("expected an encoded clock model of 44 bytes"),
            "{short}"
        );
        let letters = "\"".to_string() + &"xy".repeat(44) + "\"";
        let letters = refusal::<ClockModel<Counter, Local>>(&letters);
        assert!(letters.contains("hexadecimal digits only"), "{letters}");
    }

    #[test]
    fn rates_out_of_range_are_refused() {
        let why = refusal::<TickRate>("[0,0]");
        assert!(why.contains("rate"), "{why}");
    }
}
