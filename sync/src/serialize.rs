//! Serialization of algorithms as their labels, with the feature `serde`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::algorithm::FlatAlgorithm;
use crate::line::LineFit;
use crate::{Algorithm, OffsetAlgorithm};

macro_rules! stored_as_label {
    ($($type:ty),*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<S: Deserializer<'de>>(deserializer: S) -> Result<Self, S::Error> {
                String::deserialize(deserializer)?.parse().map_err(S::Error::custom)
            }
        }
    )* };
}

stored_as_label!(Algorithm, FlatAlgorithm, LineFit, OffsetAlgorithm);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_stored_as_labels() {
        let algorithm = Algorithm::default();
        let text = serde_json::to_string(&algorithm).unwrap();
        assert_eq!(text, "\"auto/100ms\"");
        assert_eq!(serde_json::from_str::<Algorithm>(&text).unwrap(), algorithm);
        let offset: OffsetAlgorithm = serde_json::from_str("\"mean-rtt\"").unwrap();
        assert_eq!(offset.to_string(), "mean-rtt/100");
        let refused = serde_json::from_str::<LineFit>("\"0/skampi\"").unwrap_err();
        assert!(
            refused.to_string().starts_with("the number of fit points"),
            "{refused}"
        );
    }
}
