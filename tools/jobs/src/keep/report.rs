//! Report on kept clocks: as tables, as a page, and as one JSON document.

use downbeat_clock_core::Duration;
use downbeat_common::kept::{AllanDeviation, KeptPage, LargestErrors};
use downbeat_common::output::count;
use downbeat_common::page::Page;
use downbeat_common::records::{Factors, serialize_factors};
use downbeat_common::units::{counted, digits, time};
use downbeat_common::{Table, Text};
use serde::Serialize;

use super::errors::MeasuredErrors;
use crate::counters::CounterAgreement;
use crate::watch;

/// Sessions of all ranks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SessionFigures {
    pub(super) sessions: u32,
    /// Longest session of any rank.
    pub(super) longest_s: f64,
    /// Number of ranks that do not read the counter of rank 0.
    pub(super) kept_ranks: usize,
    /// Median over these ranks: standard deviation of a session's offset, and change of a rate in a second, as they were found.
    pub(super) noise_ns: f64,
    pub(super) wander_ppb: f64,
    /// Allan deviation of these ranks from rank 0.
    pub(super) allan_deviations: Vec<AllanDeviation>,
}

/// Report as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct KeepReport<'a> {
    pub(super) schema: &'static str,
    pub(super) version: u32,
    #[serde(serialize_with = "serialize_factors")]
    pub(super) factors: &'a Factors,
    pub(super) rounds: u64,
    /// Number of measurements that were left out because the previous one took too long.
    pub(super) missed: u64,
    /// Number of offsets whose messages contradicted each other.
    pub(super) contradictory: u64,
    pub(super) sessions: SessionFigures,
    /// Errors by messages, and by the counter that all ranks share.
    pub(super) errors: Vec<MeasuredErrors>,
    /// Agreement of the counters of the cores, if it was measured.
    #[serde(skip)]
    pub(super) counters: Option<CounterAgreement>,
}

impl KeepReport<'_> {
    fn table(&self) -> Table {
        let headings = ["clock", "measured by", "median", "95 %", "largest"];
        let mut table = Table::new(headings).named_by(2);
        let row = |name: &str, by: &str, errors: LargestErrors| {
            let times = [errors.median_ns, errors.most_ns, errors.ever_ns].map(time);
            let cells = [name.to_owned(), by.to_owned()];
            cells.into_iter().chain(times).collect::<Vec<_>>()
        };
        for measured in &self.errors {
            let by = &measured.by;
            table.row(row("kept", by, measured.kept));
            table.row(row("synchronized once", by, measured.once));
            table.row(row("kept, the past", by, measured.past));
        }
        table
    }

    fn notes(&self, every: Duration) -> Vec<String> {
        let mut notes = vec![format!(
            "Errors: the largest of all ranks at a measurement, one every {every}. Synchronized once: the same clocks without the sessions. \
             The past: errors of earlier times by all sessions."
        )];
        for measured in &self.errors {
            let certain = match measured.half_width_ns {
                0.0 => String::new(),
                width => format!(" certain to {};", time(width)),
            };
            notes.push(format!(
                "Measured by {}:{certain} the bounds of kept clocks usually allow errors up to {}, and {} certainly beyond them. The largest \
                 error of a kept clock is that of rank {}.",
                measured.by,
                time(measured.certain.median_ns),
                counted(measured.beyond_bound, "is", "are"),
                measured.worst_rank
            ));
        }
        notes.extend(self.counters.map(|counters| counters.describe()));
        let SessionFigures {
            sessions,
            longest_s,
            ..
        } = self.sessions;
        notes.push(format!(
            "{}, each at most {} long.",
            count(sessions as usize, "session"),
            time(1e9 * longest_s)
        ));
        notes.extend(watch::missed(self.missed));
        if self.contradictory > 0 {
            notes.push(format!(
                "{} left out, because messages contradicted each other.",
                count(self.contradictory as usize, "offset")
            ));
        }
        notes
    }

    /// Returns a sentence about what the sessions found.
    fn found(&self) -> String {
        let SessionFigures {
            kept_ranks,
            noise_ns,
            wander_ppb,
            ..
        } = self.sessions;
        if kept_ranks == 0 {
            return "All ranks read one counter: sessions have nothing to correct; --skew drift=20ppm gives each node an error.".to_owned();
        }
        format!(
            "Found by the sessions, on {}: they are off by {}, and rates change by {} ppb in a second.",
            count(kept_ranks, "rank"),
            time(noise_ns),
            digits(wander_ppb, 2)
        )
    }

    pub(super) fn text(&self, headline: &str, every: Duration) -> Text {
        let mut text = Text::from(format!("{headline}\n\n"));
        text += self.table();
        text += format!("\n{}\n{}\n", self.notes(every).join("\n"), self.found());
        let deviations = &self.sessions.allan_deviations;
        if !deviations.is_empty() {
            text += "\nAllan deviation from rank 0, by the sessions:\n\n";
            text += AllanDeviation::table(deviations);
        }
        text
    }

    pub(super) fn page(&self, every: Duration) -> Page {
        let curves = |index: usize| {
            let curves = self
                .errors
                .iter()
                .map(|measured| measured.curves[index].clone());
            curves.collect()
        };
        let notes: Vec<String> = self
            .notes(every)
            .into_iter()
            .chain([self.found()])
            .collect();
        let page = KeptPage {
            kept: curves(0),
            compared: curves(1),
            comparison: "Beside the same clocks without sessions",
            results: &self.table(),
            notes: &notes,
            allan_deviations: &self.sessions.allan_deviations,
        };
        page.page()
    }
}
