//! Traces for [Perfetto](https://ui.perfetto.dev), which shows them: files in its own format, `*.pftrace`.
//!
//! | of the trace | in Perfetto |
//! |---|---|
//! | the processes | processes, by the names of their first locations and their nodes |
//! | locations | their threads |
//! | enter and leave | a slice with the name of the region |
//! | a collective operation | a slice with its name; with it are the communicator, the root, and which data there was |
//! | send and receive | instants, with an arrow from one to the other; with them are who it was, communicator and tag |
//! | fork and join, thread-begin and thread-end | slices `fork` and `thread` |
//! | note | an instant |
//! | sessions in which clocks were compared | nothing: there is one clock |
//!
//! Events are of the categories `region`, `collective`, `message`, `thread` and `note`.
//!
//! Times are those of the trace, in nanoseconds, unless some are negative: then all are later by so much that none is. A
//! message goes from its earlier end to its later one; where clocks are wrong, that is back from the receive. The
//! first send to a location from another one, in one communicator and with one tag, and the first receive there are of
//! one message, the second ones of another, and so on; one that has no other end has no arrow.
//!
//! Slices are nested, so that of what began and has not ended always the last one ends first. Where something else ends,
//! everything that began since ends with it. The end of what has not begun, or has already ended so, is an instant that
//! says `not begun`; what has no end has none in Perfetto, either. What is nested more than 500 deep is left out. All of
//! these are counted. Where very much happens inside of a collective operation, it is called `collective`.
//!
//! A file is written in two steps, each of which has in memory what is open, and not the trace: a [`PerfettoSurvey`] has
//! to see all that the trace says before a [`PerfettoWriter`] does.
//!
//! ```
//! use std::path::Path;
//!
//! use downbeat_trace::formats::TraceReader;
//! use downbeat_trace::formats::perfetto::{PerfettoSurvey, PerfettoWriter};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let to = std::env::temp_dir().join(format!("downbeat-{}.pftrace", std::process::id()));
//! let text = "# downbeat trace 1\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
//!             0 7010 send 1 0 42\n1 7900 receive 0 0 42\nend 2\n";
//!
//! let mut survey = PerfettoSurvey::default();
//! let mut reader = TraceReader::new(Path::new("text"), text.as_bytes())?;
//! while let Some(item) = reader.next_item()? {
//!     survey.take(&item);
//! }
//! let mut writer = PerfettoWriter::create(&to, &survey)?;
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
