//! Errors against the true times, before and after.

use crate::page::HtmlTable;
use crate::trace::{TruthReport, TruthStages};
use crate::units::time;

const STAGES: [&str; 2] = ["pre-synchronized", "corrected"];

/// Formats the errors.
pub(super) fn table(
    TruthStages {
        pre_synchronized,
        corrected,
    }: &TruthStages,
) -> HtmlTable {
    let mut table = HtmlTable::of_numbers(
        "Error against the truth",
        ["times", "bias", "without bias", "at most, without bias"],
    );
    for (stage, found) in STAGES.into_iter().zip([pre_synchronized, corrected]) {
        let TruthReport {
            bias_nanos,
            centred_nanos,
            largest_centred_nanos,
        } = found;
        let cells = [bias_nanos, centred_nanos, largest_centred_nanos].map(|nanos| time(*nanos));
        table.row([stage.to_owned()].into_iter().chain(cells));
    }
    table
}
