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
mod unfinished;

pub use archive_report::{ArchiveRead, ArchiveReport};
pub use correction::CorrectionOptions;
pub use deviation::{DeviationReport, TruthStages};
pub use document::{Document, PassReport, PreSyncReport};
pub use items::{ItemSource, unwritable};
pub use new_trace::NewTrace;
pub use page::{PageContents, PageOptions};
pub use recording::{Reading, Recording, RecordingSource};
pub use settings::{LatencyOption, MatchingOptions, parse_latencies};
pub use tables::{Contents, LatencyReport, Violations, left_out_line, short_name};
pub use unfinished::{Unfinished, survive_lack_of_memory};
