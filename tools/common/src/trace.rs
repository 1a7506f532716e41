//! What programs that correct and check traces share: their options, what they find out, and how they say it.

mod archive_report;
mod correction;
mod deviation;
mod document;
pub mod files;
mod items;
mod new_trace;
mod page;
mod recording;
mod settings;
mod tables;
mod truth;
mod unfinished;

pub use archive_report::ArchiveReport;
pub use correction::CorrectionOptions;
pub use deviation::{AboveReport, DeviationReport, IntervalsReport};
pub use document::{Document, PassReport, PreSyncReport, Printed};
pub use items::{ItemSource, ReadItems, unwritable};
pub use new_trace::{NewTrace, WrittenTrace};
pub use page::{PageContents, PageOptions};
pub use recording::{ArchiveRead, Destination, Reading, Recording, RecordingSource, extent};
pub use settings::{LatencyOption, LatencySetting, MatchingOptions};
pub use tables::{Contents, LatencyReport, RelationsReport, Violations, left_out_line, percent};
pub use truth::{TruthReport, TruthStages};
pub use unfinished::{Unfinished, survive_lack_of_memory};
