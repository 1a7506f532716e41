//! Export to the trace viewer [Perfetto](https://ui.perfetto.dev), in its own format,
//! `*.pftrace`.
//!
//! | of the trace | in Perfetto |
//! |---|---|
//! | the processes | processes, by the names of their first locations and their nodes |
//! | locations | their threads |
//! | enter and leave | a slice with the name of the region |
//! | a collective operation | a slice with its name; with it are the communicator, the root, and which data there was |
//! | start and completion of a non-blocking collective operation | instants: such operations overlap |
//! | send and receive | instants, with an arrow from one to the other; with them are who it was, communicator and tag |
//! | post and cancellation of a receive | instants |
//! | one-sided access, and its completion | instants; with the access are its target, communicator and bytes |
//! | signal and wait | instants, with an arrow from one to the other |
//! | fork and join, thread-begin and thread-end | slices `fork` and `thread` |
//! | note | an instant |
//! | value of a metric | a value of a counter of the thread |
//! | sessions in which clocks were compared | nothing: there is one clock |
//!
//! Events are of the categories `region`, `collective`, `message`, `thread`, `note` and `access`.
//!
//! Times are those of the trace in nanoseconds; if some are negative, all are shifted so that none
//! is. The arrow of a message goes from its earlier end to its later one; if clocks are wrong, that
//! may be from the receive to the send. For each sender, receiver, communicator and tag, the first
//! send and the first receive belong to one message, the second ones to the next, and so on. A
//! message with one end only has no arrow.
//!
//! Slices are nested: the last open one always ends first. If another one ends, all slices inside
//! of it end with it. An end without a beginning, or whose slice has already been ended so, is an
//! instant marked `not begun`; a slice without an end has none in Perfetto, either. Slices nested
//! more than 500 deep are left out. All of these are counted. A collective operation with very many
//! events inside is shown under the name `collective`.
//!
//! A file is written in two passes, which keep only open slices and pending messages in memory: all
//! items must pass through a [`PerfettoSurvey`], and then through a [`PerfettoWriter`].
//!
//! ```
//! use std::path::Path;
//!
//! use downbeat_trace::formats::TraceReader;
//! use downbeat_trace::formats::perfetto::{PerfettoSurvey, PerfettoWriter};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let to = std::env::temp_dir().join(format!("downbeat-{}.pftrace", std::process::id()));
//! let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
//!             0 7010 send 1 0 42\n1 7900 receive 0 0 42\nend 2\n";
//!
//! let mut survey = PerfettoSurvey::default();
//! let mut reader = TraceReader::new(Path::new("text"), text.as_bytes())?;
//! while let Some(item) = reader.next_item()? {
//!     survey.add_item(&item);
//! }
//! let mut writer = PerfettoWriter::create(&to, survey)?;
//! let mut reader = TraceReader::new(Path::new("text"), text.as_bytes())?;
//! while let Some(item) = reader.next_item()? {
//!     writer.write(&item)?;
//! }
//! let summary = writer.finish()?;
//!
//! assert_eq!((summary.events, summary.unmatched), (2, 0));
//! # std::fs::remove_file(&to)?;
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
mod decoder;
mod flows;
mod packets;
mod protobuf;
mod summary;
mod survey;
#[cfg(test)]
mod tests;
mod timeline;
mod writer;

pub use summary::PerfettoSummary;
pub use survey::PerfettoSurvey;
pub use writer::PerfettoWriter;
