//! Answers of a node, or the reason why one is missing, in JSON: the value itself, or `{"unknown": "reason"}`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Told<T> {
    Unknown { unknown: String },
    Known(T),
}

pub(super) fn serialize<T: Serialize, S: Serializer>(
    value: &Result<T, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Ok(known) => Told::Known(known),
        Err(why) => Told::Unknown {
            unknown: why.clone(),
        },
    }
    .serialize(serializer)
}

pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Result<T, String>, D::Error> {
    Told::deserialize(deserializer).map(|told| match told {
        Told::Known(known) => Ok(known),
        Told::Unknown { unknown } => Err(unknown),
    })
}
