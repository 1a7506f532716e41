//! Looking up names that users give.

use crate::error::MethodError;

/// Returns the value that has this name.
pub(crate) fn look_up<T: Copy>(
    kind: &'static str,
    name: &str,
    all: impl IntoIterator<Item = T>,
    name_of: fn(T) -> &'static str,
) -> Result<T, MethodError> {
    let all: Vec<T> = all.into_iter().collect();
    let found = all.iter().copied().find(|value| name_of(*value) == name);
    found.ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|value| name_of(*value)).collect();
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
