//! Report on a corrected OTF2 archive.

use downbeat_trace::formats::otf2::Archive;
use serde::Serialize;

/// Clock offsets and rewritten locations of a corrected archive.
#[derive(Debug, Serialize)]
pub struct ArchiveReport {
    /// Total number of clock offsets of all locations.
    pub clock_offsets: usize,
    /// Names of the locations whose events were rewritten with other timestamps.
    pub rewritten: Vec<String>,
}

impl ArchiveReport {
    /// Creates the report from one pair for every location of the archive: its number of clock
    /// offsets, and true if its events were rewritten.
    pub fn of(archive: &Archive, written: impl IntoIterator<Item = (usize, bool)>) -> Self {
        let mut report = Self {
            clock_offsets: 0,
            rewritten: vec![],
        };
        for (location, (knots, is_rewritten)) in archive.locations().iter().zip(written) {
            report.clock_offsets += knots;
            report
                .rewritten
                .extend(is_rewritten.then(|| location.name.clone()));
        }
        report
    }

    /// Formats the report in one line, or two if locations were rewritten.
    pub fn text(&self) -> String {
        let Self {
            clock_offsets,
            rewritten,
        } = self;
        let mut text = format!("Clock offsets in the archive: {clock_offsets}\n");
        if let [first, others @ ..] = &rewritten[..] {
            let others = if others.is_empty() {
                String::new()
            } else {
                format!(" and {} more", others.len())
            };
            text += &format!("Locations with rewritten events: {first}{others}\n");
        }
        text
    }
}
