//! Reports on an OTF2 archive: what was corrected, and what was accepted.

use std::fmt::Write as _;
use std::path::PathBuf;

use downbeat_trace::formats::otf2::Archive;
use serde::Serialize;

use crate::output;

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

/// Names in one line the mistakes of an archive that were accepted, if there are any, and
/// in one more each file that was changed.
pub(super) fn accepted_lines(redefined: usize, miscounted: u64, changed: &[PathBuf]) -> String {
    let mut text = String::new();
    if redefined > 0 || miscounted > 0 {
        text += &format!(
            "Accepted: {} given twice, {} with another number of events than defined\n",
            output::count(redefined, "definition"),
            output::count(miscounted as usize, "location")
        );
    }
    for file in changed {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}: its checksum is wrong: it is damaged, or another program changed it",
            file.display()
        );
    }
    text
}
