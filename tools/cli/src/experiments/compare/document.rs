//! Report of `downbeat compare` in JSON.

use downbeat_records::GroupKey;
use downbeat_records::analysis::ComparedGroup;
use downbeat_records::stats::{PValues, WelchTest, stars};
use serde::Serialize;

use super::super::verdict::RunTimeRatio;
use super::super::{JsonExperiment, JsonMethod, option_name};
use super::compared::{ComparedExperiments, NORMALITY, method_name};
use crate::experiments::Alternative;

/// The whole document.
#[derive(Debug, Serialize)]
pub(super) struct CompareReport<'a> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    method: JsonMethod,
    alternative: String,
    /// Average of each launch that was compared.
    of: &'static str,
    experiments: [CompareExperimentReport<'a>; 2],
    differing_factors: Vec<&'a str>,
    groups: Vec<CompareGroupReport<'a>>,
}

#[derive(Debug, Serialize)]
struct CompareExperimentReport<'a> {
    #[serde(flatten)]
    experiment: JsonExperiment<'a>,
    /// Groups that only the other experiment has averages of.
    missing: &'a [GroupKey],
}

#[derive(Debug, Serialize)]
struct CompareGroupReport<'a> {
    #[serde(flatten)]
    key: &'a GroupKey,
    launches: [usize; 2],
    medians_ns: [f64; 2],
    /// The second experiment minus the first.
    shift_ns: f64,
    shift_low_ns: f64,
    shift_high_ns: f64,
    shift_confidence: f64,
    /// The shift as a share of the first median.
    relative_shift: Option<f64>,
    /// Run-times of the second experiment as multiples of those of the first.
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    u: f64,
    p_method: &'static str,
    p: PValues,
    p_holm: PValues,
    /// Stars of the p-value of the alternative adjusted by Holm.
    stars: &'static str,
    t_test: Option<CompareTTest>,
    /// P-value of the normality test of the means of each; `None` if there are too few.
    normality_p: [Option<f64>; 2],
}

#[derive(Debug, Serialize)]
struct CompareTTest {
    #[serde(flatten)]
    test: WelchTest,
    /// True if the means are not normally distributed, or too few to test that.
    doubtful: bool,
}

pub(super) fn report(method: JsonMethod, compared: &ComparedExperiments) -> CompareReport<'_> {
    let ComparedExperiments {
        folders,
        alternative,
        analyses,
        comparison,
        ..
    } = compared;
    let experiment = |i: usize| CompareExperimentReport {
        experiment: JsonExperiment::new(&folders[i], &analyses[i]),
        missing: &comparison.missing[1 - i],
    };
    let factors = comparison.factors.iter();
    let groups = comparison.groups.iter();
    CompareReport {
        schema: "downbeat.comparison",
        version: 1,
        method,
        alternative: option_name(alternative),
        of: comparison.average.name(),
        experiments: [0, 1].map(experiment),
        differing_factors: factors.map(|factor| factor.name.as_str()).collect(),
        groups: groups
            .map(|group| group_report(*alternative, group))
            .collect(),
    }
}

fn group_report<'a>(alternative: Alternative, group: &'a ComparedGroup) -> CompareGroupReport<'a> {
    let ComparedGroup {
        key,
        comparison: found,
        adjusted,
    } = group;
    let t_test = found.welch.as_ref().ok().map(|welch| CompareTTest {
        test: *welch,
        doubtful: found.means_are_doubtful(NORMALITY),
    });
    let ([launches_b, launches_a], [median_b, median_a]) = (found.launches, found.medians);
    let ratio = RunTimeRatio::new(group);
    CompareGroupReport {
        key,
        launches: [launches_a, launches_b],
        medians_ns: [median_a, median_b],
        shift_ns: found.shift.shift,
        shift_low_ns: found.shift.interval.low,
        shift_high_ns: found.shift.interval.high,
        shift_confidence: found.shift.confidence,
        relative_shift: found.relative_shift(),
        ratio: ratio.map(|ratio| ratio.times),
        ratio_low: ratio.map(|ratio| ratio.interval.low),
        ratio_high: ratio.map(|ratio| ratio.interval.high),
        u: found.mann_whitney.u,
        p_method: method_name(found.mann_whitney.method),
        p: found.mann_whitney.p,
        p_holm: *adjusted,
        stars: stars(alternative.p_value(adjusted)),
        t_test,
        normality_p: [found.normality[1], found.normality[0]]
            .map(|tested| tested.ok().map(|tested| tested.p)),
    }
}
