//! Looking up names that users give.

use crate::error::MethodError;

/// Returns the value that has this name among named ones.
pub(crate) fn look_up<T: Copy>(
    kind: &'static str,
    name: &str,
    named: impl IntoIterator<Item = (&'static str, T)>,
) -> Result<T, MethodError> {
    let named: Vec<(&'static str, T)> = named.into_iter().collect();
    let found = named.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = named.iter().map(|(known, _)| *known).collect();
        MethodError::UnknownName {
            kind,
            name: name.to_owned(),
            known: known.join(", "),
        }
    })
}

/// Parses a list with commas, of which each item names one or several values. Each value is listed once, where it is
/// named first.
pub(crate) fn parse_list<T: PartialEq>(
    text: &str,
    parse_item: impl Fn(&str) -> Result<Vec<T>, MethodError>,
) -> Result<Vec<T>, MethodError> {
    let mut list = Vec::new();
    for item in text.split(',') {
        for value in parse_item(item)? {
            if !list.contains(&value) {
                list.push(value);
            }
        }
    }
    Ok(list)
}

/// Names the values of an enum in options and records, by one table: all of them, the name of each, and both directions of its text.
/// A value may also have another name that is only read.
macro_rules! name_values {
    ($type:ident, $kind:literal $(, $also:literal means $meant:ident)?: $($value:ident = $name:literal,)+) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Name in options and records.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        /// Writes the [name](Self::name).
        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl core::str::FromStr for $type {
            type Err = $crate::error::MethodError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let named = [$(($name, Self::$value),)+ $(($also, Self::$meant))?];
                $crate::names::look_up($kind, text, named)
            }
        }
    };
}
pub(crate) use name_values;
