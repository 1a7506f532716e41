//! What programs that correct and check traces share: their options, what they find out, and how they say it.

mod correction;
mod document;
pub mod files;
mod items;
mod recording;
mod settings;
mod tables;
mod unfinished;

pub use correction::CorrectionOptions;
pub use document::{Document, PassReport, PreSyncReport, TruthStages};
pub use items::{for_each_item, unwritable};
pub use recording::{ArchiveReport, Place, Recording};
pub use settings::{Found, LatencyOption, MatchingOptions};
pub use tables::{Contents, DeviationReport, LatencyReport, TruthReport, Violations, truth, violations};
pub use unfinished::Unfinished;
