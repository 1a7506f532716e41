//! Factors in which two experiments differ.

use crate::Factors;

/// A factor that differs between two experiments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorDifference {
    /// Name of the factor.
    pub name: String,
    /// Value in each experiment; `None` if it is not recorded.
    pub values: [Option<String>; 2],
}

/// Factors that differ, in the order of the first experiment, then those that only the second has.
pub fn factor_differences(first: &Factors, second: &Factors) -> Vec<FactorDifference> {
    let only_second = second
        .iter()
        .map(|(name, _)| name)
        .filter(|name| first.get(name).is_none());
    let names = first.iter().map(|(name, _)| name).chain(only_second);
    let values = |name: &str| [first, second].map(|factors| factors.get(name).map(str::to_owned));
    let all = names.map(|name| FactorDifference {
        name: name.to_owned(),
        values: values(name),
    });
    all.filter(|factor| factor.values[0] != factor.values[1])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_and_missing_factors_are_found() {
        let first = Factors::default()
            .with("ranks", &4)
            .with("mpi", &"A")
            .with("cache", &"warm");
        let second = Factors::default()
            .with("pinning", &"cores")
            .with("mpi", &"B")
            .with("ranks", &4);
        let difference = |name: &str, [one, other]: [&str; 2]| FactorDifference {
            name: name.to_owned(),
            values: [one, other].map(|value| (!value.is_empty()).then(|| value.to_owned())),
        };
        let expected = [
            difference("mpi", ["A", "B"]),
            difference("cache", ["warm", ""]),
            difference("pinning", ["", "cores"]),
        ];
        assert_eq!(factor_differences(&first, &second), expected);
        assert!(factor_differences(&first, &first).is_empty());
    }
}
