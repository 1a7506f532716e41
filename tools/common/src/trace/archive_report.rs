//! Reports on an OTF2 archive: what was corrected, and what was accepted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use downbeat_files::Checksums;
use downbeat_trace::formats::otf2::{self, Archive, Otf2Error, PartRead};
use serde::Serialize;

use crate::output;

/// Clock offsets and rewritten locations of a corrected archive.
#[derive(Debug, Default, Serialize)]
pub struct ArchiveReport {
    /// Total number of clock offsets of all locations.
    pub clock_offsets: usize,
    /// Names of the locations whose events were rewritten with other timestamps.
    pub rewritten: Vec<String>,
}

/// Counts that an archive has besides its events.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ArchiveRead {
    /// Relations that are not examined, by kind.
    pub not_examined: BTreeMap<&'static str, u64>,
    /// Definitions that a later one replaced.
    pub redefined: usize,
    /// Locations with another number of events than defined.
    pub miscounted: u64,
    /// Files whose checksums are wrong.
    pub changed: Vec<PathBuf>,
}

/// Names a file of an archive whose checksum is wrong, behind an error of the archive; empty if there
/// is none, or checksums do not count.
pub(super) fn behind_error(anchor: &Path, checksums: Checksums) -> String {
    let changed = match checksums {
        Checksums::Verify => otf2::changed_files(anchor).unwrap_or_default(),
        Checksums::Ignore => vec![],
    };
    // The error itself tells that a file is missing.
    let first = changed.iter().find(|file| file.exists());
    first.map_or_else(String::new, |file| {
        format!("; the checksum of {} is wrong", file.display())
    })
}

impl ArchiveReport {
    /// Formats the report in one line, or two if locations were rewritten.
    pub fn text(&self) -> String {
        let mut text = format!("Clock offsets in the archive: {}\n", self.clock_offsets);
        if let [first, others @ ..] = &self.rewritten[..] {
            let others = match others.len() {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            text += &format!("Locations with rewritten events: {first}{others}\n");
        }
        text
    }
}

impl ArchiveRead {
    /// Returns the counts of an archive of which `part` was read; its checksums are
    /// verified if they count.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn of(archive: &Archive, part: PartRead, checksums: Checksums) -> Result<Self, Otf2Error> {
        Ok(Self {
            not_examined: part.unexamined.iter().collect(),
            redefined: archive.redefined(),
            miscounted: part.miscounted,
            changed: match checksums {
                Checksums::Verify => otf2::changed_files(archive.anchor())?,
                Checksums::Ignore => vec![],
            },
        })
    }

    /// Names in one line the mistakes of an archive that were accepted, if there are any.
    pub fn accepted(&self) -> String {
        if self.redefined == 0 && self.miscounted == 0 {
            return String::new();
        }
        format!(
            "Accepted: {} given twice, {} with another number of events than defined\n",
            output::count(self.redefined, "definition"),
            output::count(self.miscounted as usize, "location")
        )
    }

    /// Names each file that was changed, in one line.
    pub fn damage(&self) -> String {
        let line = |file: &PathBuf| {
            let file = file.display();
            format!("{file}: its checksum is wrong: it is damaged, or another program changed it\n")
        };
        self.changed.iter().map(line).collect()
    }

    /// Warns of changed files, where results do not stand.
    pub fn warn_of_damage(&self) {
        self.damage().lines().for_each(output::warn);
    }

    /// Names what was accepted, and in one line each kind of relations that is not
    /// examined.
    pub fn remarks(&self) -> String {
        let kinds = self.not_examined.iter();
        let kinds = kinds.map(|(kind, number)| format!("Not examined, {kind}: {number}\n"));
        self.accepted() + &kinds.collect::<String>()
    }
}
