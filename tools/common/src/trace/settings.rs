//! Options that commands on traces share.

use std::path::Path;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use downbeat_clock_core::Duration;
use downbeat_trace::{ClockOwner, Latencies, Matching};
use serde::Deserialize;

use crate::cli;

/// Options for the matching of events, and for the clocks that locations share.
#[derive(Args, Clone, Copy, Debug)]
pub struct MatchingOptions {
    /// Ignore dependences within alltoallv: a trace does not tell which members exchanged data
    #[arg(long)]
    skip_alltoallv: bool,
    /// Group of locations that share a clock: their events keep their order, whatever is corrected
    #[arg(long, value_enum, default_value_t = OwnerOption::Process, value_name = "OWNER")]
    clock_of: OwnerOption,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OwnerOption {
    /// Each location has its own clock
    Location,
    /// Threads of a process
    Process,
    /// Processes of a node
    Node,
    /// All locations of the trace
    Cluster,
}

impl MatchingOptions {
    /// Converts to the library's options.
    pub fn matching(self) -> Matching {
        Matching {
            skip_alltoallv: self.skip_alltoallv,
            clock_of: self.clock_of.into(),
        }
    }
}

impl From<OwnerOption> for ClockOwner {
    fn from(option: OwnerOption) -> Self {
        match option {
            OwnerOption::Location => Self::Location,
            OwnerOption::Process => Self::Process,
            OwnerOption::Node => Self::Node,
            OwnerOption::Cluster => Self::Cluster,
        }
    }
}

/// Minimum latencies of messages, as given, and their origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyOption {
    /// Latencies; `None` if they are measured in the trace.
    pub given: Option<Latencies>,
    /// Origin of the latencies, in one to three words.
    pub source: &'static str,
}

impl LatencyOption {
    /// Latencies that are measured in the trace.
    pub const MEASURED: Self = Self {
        given: None,
        source: "measured",
    };

    /// Latencies of a check for which none are given: 0.
    pub const DEFAULT: Self = Self::known(Latencies::ZERO, "default");

    /// Help text of the option.
    pub const HELP: &str = "Minimum latencies of messages: measured in the trace; one time for all; three, \
                                   such as 200ns,500ns,2us, for messages within a process, within a node, and between nodes; or a \
                                   file with same-process = \"200ns\", same-node and other-node";

    const fn known(latencies: Latencies, source: &'static str) -> Self {
        let given = Some(latencies);
        Self { given, source }
    }
}

impl FromStr for LatencyOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "measured" {
            return Ok(Self::MEASURED);
        }
        // Text that begins like a time must be one; otherwise it is a path.
        if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') || text.contains(['/', '\\'])
        {
            let text_of_file =
                downbeat_files::read_text(Path::new(text)).map_err(|why| why.to_string())?;
            return LatencyFile::read(&text_of_file)
                .map(|latencies| Self::known(latencies, "from a file"))
                .map_err(|why| format!("{text}: {why}"));
        }
        parse_latencies(text).map(|latencies| Self::known(latencies, "given"))
    }
}

/// Parses one latency for all messages, or three by their distance.
///
/// # Errors
/// If the text is something else, or the latencies decrease.
pub fn parse_latencies(text: &str) -> Result<Latencies, String> {
    let levels = text.split(',').map(cli::not_negative);
    match levels.collect::<Result<Vec<_>, _>>()?[..] {
        [all] => in_order([all; 3]),
        [process, node, beyond] => in_order([process, node, beyond]),
        _ => Err(
            "expected one latency, or three: within a process, within a node, and between nodes"
                .to_owned(),
        ),
    }
}

fn in_order([process, node, beyond]: [Duration; 3]) -> Result<Latencies, String> {
    let why = "latencies must not decrease from within a process to within a node to between nodes";
    Latencies::new(process, node, beyond).ok_or_else(|| why.to_owned())
}

/// Contents of a file of latencies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LatencyFile {
    same_process: String,
    same_node: String,
    other_node: String,
}

impl LatencyFile {
    fn read(text: &str) -> Result<Latencies, String> {
        // The first line of the parser's message names the error.
        let first_line =
            |why: toml::de::Error| why.message().lines().next().unwrap_or_default().to_owned();
        let Self {
            same_process,
            same_node,
            other_node,
        } = toml::from_str(text).map_err(first_line)?;
        let level = |name: &str, text: &str| {
            cli::not_negative(text).map_err(|why| format!("{name}: {why}"))
        };
        in_order([
            level("same-process", &same_process)?,
            level("same-node", &same_node)?,
            level("other-node", &other_node)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(nanos: [i64; 3]) -> Result<LatencyOption, String> {
        in_order(nanos.map(Duration::from_nanos))
            .map(|latencies| LatencyOption::known(latencies, "given"))
    }

    #[test]
    fn latencies_are_measured_given_or_in_a_file() {
        assert_eq!("measured".parse(), Ok(LatencyOption::MEASURED));
        assert_eq!("0".parse(), given([0; 3]));
        assert_eq!("1us".parse(), given([1_000; 3]));
        assert_eq!("200ns,500ns,2us".parse(), given([200, 500, 2_000]));
        let missing = "/no/such/l.toml".parse::<LatencyOption>().unwrap_err();
        assert!(missing.starts_with("/no/such/l.toml: "), "{missing}");
        for wrong in [
            "1",
            "-1us",
            "1us,2us",
            "3us,2us,1us",
            "1us,1us,1us,1us",
            "200ns,",
            "8abc",
        ] {
            assert!(wrong.parse::<LatencyOption>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_has_all_three_levels_and_nothing_else() {
        let text = "same-process = \"1ns\"\nsame-node = \"2ns\"\nother-node = \"3ns\"\n";
        assert_eq!(
            LatencyFile::read(text).map(|latencies| LatencyOption::known(latencies, "given")),
            given([1, 2, 3])
        );
        let error = |from: &str, to: &str| LatencyFile::read(&text.replace(from, to)).unwrap_err();
        assert_eq!(
            error("\"1ns\"", "\"1\""),
            "same-process: a duration needs a unit: ns, us, ms, s, min or h"
        );
        assert_eq!(
            error("same-node = \"2ns\"", ""),
            "missing field `same-node`"
        );
        assert!(error("other", "another").starts_with("unknown field `another-node`"));
        assert!(error("1ns", "9ns").starts_with("latencies must not decrease"));
    }
}
