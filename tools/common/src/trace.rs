//! What programs that correct and check traces share: their options, what they find out, and how they say it.

mod correction;
mod document;
pub mod files;
mod settings;
mod tables;

pub use correction::CorrectionOptions;
pub use document::{Document, PassReport, PreSyncReport, TruthStages};
pub use settings::{Found, LatencyOption, MatchingOptions};
pub use tables::{Contents, DeviationReport, LatencyReport, TruthReport, Violations, truth, violations};
