//! Offsets of all ranks: as a table, and as one JSON document.

use downbeat_common::output::time;
use downbeat_common::{Table, Text, units};
use serde::Serialize;

/// Offset of a rank's clock from that of rank 0.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ClockOffset {
    pub(super) rank: usize,
    pub(super) host: String,
    /// The rank's clock minus that of rank 0.
    pub(super) offset_ns: i64,
    /// Limits of the offset, which hold for certain.
    pub(super) at_least_ns: i64,
    pub(super) at_most_ns: i64,
    /// Drift of the rank's clock: its time per time of rank 0's, minus 1.
    pub(super) drift_ppm: f64,
}

/// Result as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct OffsetsReport {
    pub(super) schema: &'static str,
    pub(super) version: u32,
    pub(super) job: String,
    pub(super) clock: &'static str,
    pub(super) algorithm: String,
    pub(super) ranks: Vec<ClockOffset>,
}

impl OffsetsReport {
    pub(super) fn text(&self) -> Text {
        let mut text = Text::from(format!(
            "{}, offsets of {} from rank 0, by {}\n\n",
            self.job, self.clock, self.algorithm
        ));
        let mut table = Table::new(["rank", "host", "offset", "at least", "at most", "drift"]);
        for one in &self.ranks {
            let [offset, least, most] =
                [one.offset_ns, one.at_least_ns, one.at_most_ns].map(|nanos| time(nanos as f64));
            let drift = units::without_negative_zero(one.drift_ppm, 3);
            let drift = format!("{drift:.3} ppm");
            table.row([
                one.rank.to_string(),
                one.host.clone(),
                offset,
                least,
                most,
                drift,
            ]);
        }
        text += table;
        text
    }
}
