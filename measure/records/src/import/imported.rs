//! Content of an output.

use super::format::ImportFormat;
use crate::Launch;

/// Name of the fact of a launch whose observations are averages that a suite printed: of how many calls.
pub const AVERAGES: &str = "observations are averages of";

/// Conditions that an output does not state by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSettings {
    /// Format; if there is none, it is recognized.
    pub from: Option<ImportFormat>,
    /// Column of OSU and IMB that becomes the observation: `avg`, `min`, `max` or another that the output has.
    pub column: Option<String>,
    /// Number of ranks, for outputs that do not state it.
    pub ranks: Option<u32>,
}

/// Content of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Format, given or recognized.
    pub format: ImportFormat,
    /// Launches in their order, at least one, each with a group.
    pub launches: Vec<ImportedLaunch>,
    /// Operations whose tables have no times, which are left out.
    pub left_out: Vec<String>,
}

/// One launch of an output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedLaunch {
    /// Name of the experiment, if an output has several: that of its folder.
    pub variant: Option<String>,
    /// The launch. It is not complete if its output was cut off.
    pub launch: Launch,
}
