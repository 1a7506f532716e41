//! A comparison as one JSON document.

use std::path::Path;

use downbeat_records::GroupKey;
use downbeat_records::analysis::{Analysis, ComparedGroup};
use downbeat_records::stats::{PValues, stars};
use serde::Serialize;

use super::super::{JsonExperiment, JsonKey, JsonMethod};
use super::{Compared, NORMALITY, Options, method};

/// Everything, as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    method: JsonMethod,
    alternative: &'static str,
    /// Which average of each launch was compared.
    of: &'static str,
    experiments: [ExperimentReport<'a>; 2],
    differing_factors: Vec<&'a str>,
    groups: Vec<GroupReport<'a>>,
}

#[derive(Debug, Serialize)]
struct ExperimentReport<'a> {
    #[serde(flatten)]
    experiment: JsonExperiment<'a>,
    /// The groups that it has no averages of, though the other one has.
    missing: Vec<JsonKey<'a>>,
}

#[derive(Debug, Serialize)]
struct GroupReport<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    launches: [usize; 2],
    medians_ns: [f64; 2],
    shift_ns: f64,
    shift_low_ns: f64,
    shift_high_ns: f64,
    shift_confidence: f64,
    /// The shift as a share of the second median.
    relative_shift: Option<f64>,
    u: f64,
    p_method: &'static str,
    p: Sides,
    p_holm: Sides,
    /// By Holm's p of the alternative.
    stars: &'static str,
    t_test: Option<TTest>,
    /// Whether the means of each look normal; not known if there are too few.
    normality_p: [Option<f64>; 2],
}

#[derive(Debug, Serialize)]
struct Sides {
    two_sided: f64,
    less: f64,
    greater: f64,
}

impl From<PValues> for Sides {
    fn from(
        PValues {
            two_sided,
            less,
            greater,
        }: PValues,
    ) -> Self {
        Self {
            two_sided,
            less,
            greater,
        }
    }
}

#[derive(Debug, Serialize)]
struct TTest {
    t: f64,
    freedom: f64,
    p: Sides,
    /// The means are not normal, or too few to tell.
    doubtful: bool,
}

pub(super) fn report<'a>(options: &Options, compared: &'a Compared) -> Report<'a> {
    let Compared {
        experiments: [first, second],
        found,
        ..
    } = compared;
    let experiment =
        |folder: &Path, analysis: &'a Analysis, missing: &'a [GroupKey]| ExperimentReport {
            experiment: JsonExperiment::new(folder, analysis),
            missing: missing.iter().map(JsonKey::from).collect(),
        };
    Report {
        schema: "downbeat.comparison",
        version: 1,
        method: options.analysis.method(),
        alternative: options.alternative.name(),
        of: found.average.name(),
        experiments: [
            experiment(&options.first, first, &found.missing[0]),
            experiment(&options.second, second, &found.missing[1]),
        ],
        differing_factors: found
            .factors
            .iter()
            .map(|factor| factor.name.as_str())
            .collect(),
        groups: found
            .groups
            .iter()
            .map(|group| group_report(options, group))
            .collect(),
    }
}

fn group_report<'a>(options: &Options, group: &'a ComparedGroup) -> GroupReport<'a> {
    let ComparedGroup {
        key,
        comparison: found,
        adjusted,
    } = group;
    let t_test = found.welch.as_ref().ok().map(|welch| TTest {
        t: welch.t,
        freedom: welch.freedom,
        p: welch.p.into(),
        doubtful: found.means_are_doubtful(NORMALITY),
    });
    GroupReport {
        key: key.into(),
        launches: found.launches,
        medians_ns: found.medians,
        shift_ns: found.shift.shift,
        shift_low_ns: found.shift.interval.low,
        shift_high_ns: found.shift.interval.high,
        shift_confidence: found.shift.confidence,
        relative_shift: found.relative_shift(),
        u: found.mann_whitney.u,
        p_method: method(found.mann_whitney.method),
        p: found.mann_whitney.p.into(),
        p_holm: (*adjusted).into(),
        stars: stars(options.alternative.of(adjusted)),
        t_test,
        normality_p: found
            .normality
            .map(|tested| tested.ok().map(|tested| tested.p)),
    }
}
