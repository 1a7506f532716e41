//! The manifest by which Perfetto merges traces: version 1 of `perfetto_manifest`.

use std::collections::HashMap;

use downbeat_timers::SystemClockId;
use serde::Serialize;

use super::report::ClockOffset;
use crate::Job;
use crate::ranks::JobRanks;

/// A trace in the archive, and the rank whose clock stamped it.
pub(super) struct TraceFile {
    pub(super) path: String,
    pub(super) rank: usize,
}

#[derive(Serialize)]
struct Document<'a> {
    perfetto_manifest: Manifest<'a>,
}

#[derive(Serialize)]
struct Manifest<'a> {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_time: Option<ClockOfFile<'a>>,
    files: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    path: &'a str,
    machine: Machine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<Clocks<'a>>,
}

#[derive(Serialize)]
struct Machine<'a> {
    name: &'a str,
}

/// Relation of a clock to another: at one instant it shows T when the other shows T + `offset_ns`.
#[derive(Serialize)]
struct Clocks<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'a str>,
    sync_to: ClockOfFile<'a>,
    offset_ns: i64,
}

#[derive(Serialize)]
struct ClockOfFile<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'a str>,
}

/// Writes the manifest of these traces, which all were stamped by the same clock of their systems.
pub(super) fn manifest<J: Job>(
    traces: &[TraceFile],
    offsets: &[ClockOffset],
    ranks: &JobRanks<'_, J>,
    clock: SystemClockId,
) -> String {
    // Offsets of ranks that share a clock differ by what it drifts between their readings, which would contradict each other.
    let mut of_nodes = HashMap::new();
    for (place, one) in ranks.places.iter().zip(offsets) {
        of_nodes.entry(place.node).or_insert(one.offset_ns);
    }
    // Chrome's JSON has no clock of which Perfetto knows what it is.
    let clock_of = |path: &str| {
        let without = path.ends_with(".json") || path.ends_with(".json.gz");
        (!without).then(|| clock.name().trim_start_matches("CLOCK_"))
    };
    let reference = traces.first().map(|first| ClockOfFile {
        file: &first.path,
        clock: clock_of(&first.path),
    });
    let clocks = |one: &TraceFile| {
        let sync_to = traces.first().map(|first| ClockOfFile {
            file: &first.path,
            clock: clock_of(&first.path),
        })?;
        (one.path != sync_to.file).then(|| Clocks {
            clock: clock_of(&one.path),
            sync_to,
            offset_ns: -of_nodes[&ranks.places[one.rank].node],
        })
    };
    let files = traces.iter().map(|one| Entry {
        path: &one.path,
        machine: Machine {
            name: &offsets[one.rank].host,
        },
        clocks: clocks(one),
    });
    let document = Document {
        perfetto_manifest: Manifest {
            version: 1,
            trace_time: reference.filter(|reference| reference.clock.is_some()),
            files: files.collect(),
        },
    };
    // Structures of texts and numbers are always written.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
