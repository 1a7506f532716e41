//! List of the guidelines between operations.

use downbeat_common::{Table, Text};
use downbeat_records::analysis::Guideline;
use serde::Serialize;

/// Guidelines between operations as one JSON document.
#[derive(Serialize)]
pub(super) struct GuidelineList {
    schema: &'static str,
    version: u32,
    rules: Vec<JsonRule>,
}

#[derive(Serialize)]
struct JsonRule {
    operation: &'static str,
    bound: String,
}

pub(super) fn document() -> GuidelineList {
    let rule = |(operation, bound)| JsonRule { operation, bound };
    GuidelineList {
        schema: "downbeat.guideline_rules",
        version: 1,
        rules: Guideline::rules().map(rule).collect(),
    }
}

pub(super) fn text() -> Text {
    let table = Table::of(Guideline::rules())
        .column("operation", |(operation, _)| (*operation).to_owned())
        .column("not slower than", |(_, bound)| bound.clone());
    let mut text = Text::from(table.named_by(2));
    text += "\nn: number of ranks. Sizes are those of --sizes: of the message of one rank for gather, scatter and the like.\n\
             Each operation: not slower than its non-blocking form, than with the next larger message, and than several calls\n\
             with parts of it. A persistent operation: not slower than the blocking and the non-blocking one.\n";
    text
}
