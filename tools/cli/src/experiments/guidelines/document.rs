//! Guidelines as one JSON document.

use downbeat_records::GroupKey;
use downbeat_records::analysis::{Average, TestedGuideline};
use serde::Serialize;

use super::GuidelineReport;
use crate::experiments::{JsonExperiment, JsonMethod};

/// Guidelines of an experiment as one JSON document.
#[derive(Serialize)]
pub(super) struct GuidelineDocument<'a> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    method: JsonMethod,
    of: &'static str,
    tolerance: f64,
    level: f64,
    #[serde(flatten)]
    experiment: JsonExperiment<'a>,
    violated: usize,
    /// Tested guidelines: violated ones first, by the factor.
    guidelines: Vec<JsonGuideline<'a>>,
    /// Number of guidelines that need groups that were not measured, and these groups.
    untested: usize,
    missing: &'a [GroupKey],
}

#[derive(Serialize)]
struct JsonGuideline<'a> {
    #[serde(flatten)]
    key: &'a GroupKey,
    kind: &'static str,
    /// The other side, in words and as groups.
    bound: String,
    others: Vec<JsonOther<'a>>,
    launches: usize,
    time_ns: f64,
    bound_ns: f64,
    times: f64,
    times_low: f64,
    times_high: f64,
    p: f64,
    p_holm: f64,
    violated: bool,
}

#[derive(Serialize)]
struct JsonOther<'a> {
    #[serde(flatten)]
    key: &'a GroupKey,
    calls: u64,
}

impl GuidelineReport<'_> {
    pub(super) fn document(&self) -> GuidelineDocument<'_> {
        let options = self.options;
        GuidelineDocument {
            schema: "downbeat.guidelines",
            version: 1,
            method: options.analysis.method(),
            of: Average::from(options.of).name(),
            tolerance: options.tolerance,
            level: options.level,
            experiment: JsonExperiment::new(self.folder, &self.analysis),
            violated: self.violated().count(),
            guidelines: self.tested.iter().map(guideline).collect(),
            untested: self.guidelines.untestable,
            missing: &self.guidelines.missing,
        }
    }
}

fn guideline(one: &TestedGuideline) -> JsonGuideline<'_> {
    let found = &one.guideline;
    let others = found.others.iter();
    let others = others.map(|(key, calls)| JsonOther { key, calls: *calls });
    JsonGuideline {
        key: &found.key,
        kind: found.kind.name(),
        bound: found.bound(),
        others: others.collect(),
        launches: one.launches,
        time_ns: one.medians[0],
        bound_ns: one.medians[1],
        times: one.times,
        times_low: one.interval.low,
        times_high: one.interval.high,
        p: one.p,
        p_holm: one.adjusted,
        violated: one.violated,
    }
}
