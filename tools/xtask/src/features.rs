//! Sets of features.

use std::collections::BTreeSet;

use crate::workspace::Package;

/// Returns every set of the package's features, closed under what they enable: choices
/// that enable the same are one set.
///
/// `default` is a name for other features and not counted.
pub(crate) fn powerset(package: &Package) -> BTreeSet<BTreeSet<&str>> {
    let names = names(package);
    (0..1_usize << names.len())
        .map(|choice| {
            let chosen = names
                .iter()
                .enumerate()
                .filter(|(bit, _)| choice >> bit & 1 == 1);
            closure(package, chosen.map(|(_, &name)| name))
        })
        .collect()
}

/// Returns the empty set and the sets of a single feature, closed under what it enables.
pub(crate) fn singles(package: &Package) -> BTreeSet<BTreeSet<&str>> {
    let names = names(package);
    let sets = names.iter().map(|&name| closure(package, [name]));
    [BTreeSet::new()].into_iter().chain(sets).collect()
}

fn names(package: &Package) -> Vec<&str> {
    let names = package.features.keys().map(String::as_str);
    names.filter(|&name| name != "default").collect()
}

fn closure<'a>(
    package: &'a Package,
    chosen: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let mut waiting: Vec<&str> = chosen.into_iter().collect();
    let mut enabled = BTreeSet::new();
    while let Some(feature) = waiting.pop() {
        // The rest are optional dependencies and features of dependencies.
        if let Some((name, enables)) = package.features.get_key_value(feature)
            && enabled.insert(name.as_str())
        {
            waiting.extend(enables.iter().map(String::as_str));
        }
    }
    enabled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        let features = [
            ("default", vec!["std"]),
            ("std", vec!["dep:libc"]),
            ("mpi", vec!["std", "dep:mpi"]),
            ("serde", vec!["dep:serde", "other?/serde"]),
        ];
        Package {
            name: "it".into(),
            publish: None,
            categories: vec![],
            rust_version: String::new(),
            features: features
                .map(|(name, on)| (name.into(), on.into_iter().map(String::from).collect()))
                .into(),
            targets: vec![],
        }
    }

    fn joined(sets: &BTreeSet<BTreeSet<&str>>) -> Vec<String> {
        sets.iter()
            .map(|set| set.iter().copied().collect::<Vec<_>>().join(","))
            .collect()
    }

    #[test]
    fn choices_that_enable_the_same_are_one_set() {
        assert_eq!(
            joined(&powerset(&package())),
            ["", "mpi,serde,std", "mpi,std", "serde", "serde,std", "std"]
        );
    }

    #[test]
    fn single_features_are_closed() {
        assert_eq!(
            joined(&singles(&package())),
            ["", "mpi,std", "serde", "std"]
        );
    }
}
