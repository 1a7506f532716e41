//! p values of a test, and their stars.

use super::holm;

/// Probabilities of a result at least as extreme as the observed one, if there is no difference.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct PValues {
    /// Alternative: they differ.
    pub two_sided: f64,
    /// Alternative: the first is smaller.
    pub less: f64,
    /// Alternative: the first is larger.
    pub greater: f64,
}

impl PValues {
    /// Result without evidence for any alternative.
    pub(super) const NO_EVIDENCE: Self = Self {
        two_sided: 1.0,
        less: 1.0,
        greater: 1.0,
    };

    /// Makes p values of the two tails; each of them includes the result itself.
    pub(super) fn from_tails(less: f64, greater: f64) -> Self {
        Self {
            two_sided: (2.0 * less.min(greater)).min(1.0),
            less,
            greater,
        }
    }

    /// Adjusts the p values of several tests by [Holm's method](holm()).
    ///
    /// Each alternative is adjusted separately: it is one question, asked in every test.
    pub fn adjusted(all: &[Self]) -> Vec<Self> {
        let adjusted = |side: fn(&Self) -> f64| holm(&all.iter().map(side).collect::<Vec<_>>());
        let two_sided = adjusted(|p| p.two_sided);
        let (less, greater) = (adjusted(|p| p.less), adjusted(|p| p.greater));
        let sides = two_sided.into_iter().zip(less).zip(greater);
        sides
            .map(|((two_sided, less), greater)| Self {
                two_sided,
                less,
                greater,
            })
            .collect()
    }
}

/// One star for p <= 0.05, two for p <= 0.01, three for p <= 0.001, and none for larger p.
pub fn stars(p: f64) -> &'static str {
    match p {
        p if p <= 0.001 => "***",
        p if p <= 0.01 => "**",
        p if p <= 0.05 => "*",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_enough_for_its_stars() {
        let shown = [
            0.0,
            0.001,
            0.001_1,
            0.01,
            0.010_1,
            0.05,
            0.050_1,
            1.0,
            f64::NAN,
        ]
        .map(stars);
        assert_eq!(shown, ["***", "***", "**", "**", "*", "*", "", "", ""]);
    }
}
