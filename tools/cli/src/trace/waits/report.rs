//! Report on wait states.

use std::collections::BTreeMap;
use std::path::PathBuf;

use downbeat_clock_core::Duration;
use downbeat_trace::calls::{CallTime, CallTimes, ProgramNames};
use downbeat_trace::waits::{WaitPattern, WaitSum, WaitSums};
use serde::Serialize;

use crate::trace::walk::WalkedTrace;

/// Report on wait states, printed as JSON.
#[derive(Debug, Serialize)]
pub(in crate::trace) struct WaitReport {
    schema: &'static str,
    version: u32,
    pub(super) locations: usize,
    events: u64,
    /// Sends and receives without a counterpart, and operations that some members did not leave.
    unmatched_messages: usize,
    incomplete_operations: usize,
    /// True if messages or operations are not complete because the trace is too far from the order of time.
    gave_up: bool,
    /// Relations of an archive that are not examined, by kind.
    not_examined: BTreeMap<&'static str, u64>,
    /// Definitions of an archive that a later one replaced.
    redefined: usize,
    /// Locations of an archive with another number of events than defined.
    miscounted: u64,
    /// Files of an archive whose checksums are wrong.
    changed: Vec<PathBuf>,
    /// Time from the first to the last event, of all locations together, without that of the tracer.
    pub(super) time_nanos: i64,
    /// Time of the tracer: for the comparison of clocks.
    pub(super) tracer_nanos: i64,
    /// Functions of MPI, those that took most time first.
    pub(super) calls: Vec<CallLine>,
    /// Time in MPI on all locations, that with most first.
    pub(super) in_mpi: Vec<CallLine>,
    pub(super) patterns: Vec<WaitLine>,
    /// Those that lost most first.
    pub(super) by_location: Vec<LocationLine>,
    pub(super) by_region: Vec<RegionLine>,
}

/// Calls of MPI: of a function, or on a location.
#[derive(Debug, Serialize)]
pub(super) struct CallLine {
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) time_nanos: i64,
    /// Time from the first to the last event of the location, or of all locations together, without that of the tracer.
    pub(super) of_nanos: i64,
}

/// Waits of one pattern.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct WaitLine {
    pub(super) pattern: &'static str,
    pub(super) calls: u64,
    pub(super) lost_nanos: i64,
    /// Most that one call lost.
    pub(super) most_nanos: i64,
}

/// Waits of one location.
#[derive(Debug, Serialize)]
pub(super) struct LocationLine {
    pub(super) location: u32,
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) lost_nanos: i64,
    /// Time from its first to its last event, without that of the tracer.
    pub(super) time_nanos: i64,
    /// Those that lost most first.
    pub(super) patterns: Vec<WaitLine>,
}

/// Waits of one pattern in one region.
#[derive(Debug, Serialize)]
pub(super) struct RegionLine {
    pub(super) region: String,
    #[serde(flatten)]
    pub(super) waits: WaitLine,
}

impl WaitLine {
    fn new(pattern: WaitPattern, sum: &WaitSum) -> Self {
        Self {
            pattern: pattern.name(),
            calls: sum.calls,
            lost_nanos: sum.lost.as_nanos(),
            most_nanos: sum.most.as_nanos(),
        }
    }
}

impl WaitReport {
    pub(in crate::trace) fn new(sums: &WaitSums, times: &CallTimes, walked: &WalkedTrace) -> Self {
        let WalkedTrace {
            names,
            left,
            archive,
        } = walked;
        let by_pattern = sums.by_pattern();
        let line = |pattern: WaitPattern| {
            let sum = by_pattern.get(&pattern).copied().unwrap_or_default();
            WaitLine::new(pattern, &sum)
        };
        let program = ProgramTime::new(sums, times, names);
        Self {
            schema: "downbeat.trace_waits",
            version: 1,
            locations: names.locations().len(),
            events: left.events,
            unmatched_messages: left.sends + left.receives,
            incomplete_operations: left.operations,
            gave_up: left.gave_up,
            not_examined: archive.part.unexamined.iter().collect(),
            redefined: archive.redefined,
            miscounted: archive.part.miscounted,
            changed: archive.changed.clone(),
            time_nanos: program.all().as_nanos(),
            tracer_nanos: (sums.time() - program.all()).as_nanos(),
            calls: calls(&program, times, names),
            in_mpi: in_mpi(&program, times, names),
            patterns: WaitPattern::ALL.map(line).to_vec(),
            by_location: by_location(sums, &program, names),
            by_region: by_region(sums, names),
        }
    }

    /// Returns the number of calls that waited, and the time that they lost.
    pub(super) fn total(&self) -> (u64, i64) {
        let lines = self.patterns.iter();
        lines.fold((0, 0), |(calls, lost), line| {
            (calls + line.calls, lost + line.lost_nanos)
        })
    }
}

impl CallLine {
    fn new(name: &str, found: CallTime, of: Duration) -> Self {
        Self {
            name: name.to_owned(),
            calls: found.calls,
            time_nanos: found.time.as_nanos(),
            of_nanos: of.as_nanos(),
        }
    }

    fn sorted(lines: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut lines: Vec<_> = lines.collect();
        lines.sort_by_key(|line| -line.time_nanos);
        lines
    }
}

/// Time of the program, without that of the tracer.
struct ProgramTime<'a> {
    sums: &'a WaitSums,
    tracer: BTreeMap<u32, CallTime>,
}

impl<'a> ProgramTime<'a> {
    fn new(sums: &'a WaitSums, times: &CallTimes, names: &ProgramNames) -> Self {
        let tracer = times.of_tracer(names);
        Self { sums, tracer }
    }

    fn of(&self, location: u32) -> Duration {
        let tracer = self.tracer.get(&location).copied().unwrap_or_default();
        self.sums.time_of(location) - tracer.time
    }

    fn all(&self) -> Duration {
        let tracer: Duration = self.tracer.values().map(|found| found.time).sum();
        self.sums.time() - tracer
    }
}

fn calls(program: &ProgramTime<'_>, times: &CallTimes, names: &ProgramNames) -> Vec<CallLine> {
    let found = times.by_call(names).into_iter();
    CallLine::sorted(found.map(|(name, of)| CallLine::new(name, of, program.all())))
}

fn in_mpi(program: &ProgramTime<'_>, times: &CallTimes, names: &ProgramNames) -> Vec<CallLine> {
    let found = times.by_location(names).into_iter();
    CallLine::sorted(found.map(|(location, of)| {
        let name = names.locations().get(location as usize);
        let name = name.map_or("", String::as_str);
        CallLine::new(name, of, program.of(location))
    }))
}

fn by_location(
    sums: &WaitSums,
    program: &ProgramTime<'_>,
    names: &ProgramNames,
) -> Vec<LocationLine> {
    let mut found: BTreeMap<u32, Vec<WaitLine>> = BTreeMap::new();
    for ((location, pattern), sum) in sums.by_location() {
        let lines = found.entry(location).or_default();
        lines.push(WaitLine::new(pattern, &sum));
    }
    let line = |(location, mut patterns): (u32, Vec<WaitLine>)| {
        patterns.sort_by_key(|line| -line.lost_nanos);
        let name = names.locations().get(location as usize);
        LocationLine {
            location,
            name: name.cloned().unwrap_or_default(),
            calls: patterns.iter().map(|line| line.calls).sum(),
            lost_nanos: patterns.iter().map(|line| line.lost_nanos).sum(),
            time_nanos: program.of(location).as_nanos(),
            patterns,
        }
    };
    let mut lines: Vec<_> = found.into_iter().map(line).collect();
    lines.sort_by_key(|line| -line.lost_nanos);
    lines
}

/// Joins regions of one name.
fn by_region(sums: &WaitSums, names: &ProgramNames) -> Vec<RegionLine> {
    let mut found: BTreeMap<(&str, WaitPattern), WaitSum> = BTreeMap::new();
    for ((region, pattern), sum) in sums.by_region() {
        let of = found.entry((names.region(region), pattern)).or_default();
        of.calls += sum.calls;
        of.lost += sum.lost;
        of.most = of.most.max(sum.most);
    }
    let line = |((region, pattern), sum): ((&str, WaitPattern), WaitSum)| RegionLine {
        region: region.to_owned(),
        waits: WaitLine::new(pattern, &sum),
    };
    let mut lines: Vec<_> = found.into_iter().map(line).collect();
    lines.sort_by_key(|line| -line.waits.lost_nanos);
    lines
}

/// Returns the share of a time, in percent.
pub(super) fn share(lost: i64, time: i64) -> f64 {
    lost as f64 / time.max(1) as f64
}

/// Returns a time as text.
pub(super) fn time(nanos: i64) -> String {
    Duration::from_nanos(nanos).to_string()
}
