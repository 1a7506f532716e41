//! The feature powerset: every set of features that makes a difference.

use std::collections::BTreeSet;

use crate::workspace::Package;

/// Every set of the package's features, closed under what they imply: two choices that imply the same are one.
///
/// `default` is a name for others and not counted.
pub(crate) fn powerset(package: &Package) -> BTreeSet<BTreeSet<&str>> {
    let names: Vec<&str> = package
        .features
        .keys()
        .map(String::as_str)
        .filter(|&name| name != "default")
        .collect();
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

fn closure<'a>(package: &'a Package, chosen: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut waiting: Vec<&str> = chosen.collect();
    let mut on = BTreeSet::new();
    while let Some(feature) = waiting.pop() {
        // What is no feature of this package is an optional dependency, or a feature of one.
        if let Some((name, enables)) = package.features.get_key_value(feature)
            && on.insert(name.as_str())
        {
            waiting.extend(enables.iter().map(String::as_str));
        }
    }
    on
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_that_imply_the_same_are_one() {
        let features = [
            ("default", vec!["std"]),
            ("std", vec!["dep:libc"]),
            ("mpi", vec!["std", "dep:mpi"]),
            ("serde", vec!["dep:serde", "other?/serde"]),
        ];
        let package = Package {
            name: "it".into(),
            categories: vec![],
            features: features
                .map(|(name, on)| (name.into(), on.into_iter().map(String::from).collect()))
                .into(),
            targets: vec![],
        };
        let sets: Vec<String> = powerset(&package)
            .iter()
            .map(|set| set.iter().copied().collect::<Vec<_>>().join(","))
            .collect();
        assert_eq!(
            sets,
            ["", "mpi,serde,std", "mpi,std", "serde", "serde,std", "std"]
        );
    }
}
