//! Report on wait states.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use downbeat_clock_core::Duration;
use downbeat_common::trace::ArchiveRead;
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
    /// Counts of an archive besides its events.
    #[serde(flatten)]
    archive: ArchiveRead,
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

impl CallLine {
    fn new(name: String, found: CallTime, of: Duration) -> Self {
        Self {
            name,
            calls: found.calls,
            time_nanos: found.time.as_nanos(),
            of_nanos: of.as_nanos(),
        }
    }
}

impl WaitReport {
    pub(in crate::trace) fn new(sums: &WaitSums, times: &CallTimes, walked: &WalkedTrace) -> Self {
        let (names, left) = (&walked.names, &walked.left);
        let program = ProgramTime {
            sums,
            times,
            walked,
            names,
            tracer: times.of_tracer(names),
        };
        let by_pattern = sums.by_pattern();
        let patterns = WaitPattern::ALL.into_iter().map(|pattern| {
            let sum = by_pattern.get(&pattern).copied().unwrap_or_default();
            WaitLine::new(pattern, &sum)
        });
        Self {
            schema: "downbeat.trace_waits",
            version: 1,
            locations: names.locations().len(),
            events: left.events,
            unmatched_messages: left.sends + left.receives,
            incomplete_operations: left.operations,
            gave_up: left.gave_up,
            archive: walked.archive.clone(),
            time_nanos: program.all().as_nanos(),
            tracer_nanos: (sums.time() - program.all()).as_nanos(),
            calls: program.calls(),
            in_mpi: program.in_mpi(),
            patterns: patterns.collect(),
            by_location: program.by_location(),
            by_region: program.by_region(),
        }
    }

    /// Returns the number of calls that waited, and the time that they lost.
    pub(super) fn total(&self) -> (u64, i64) {
        total(&self.patterns)
    }
}

/// Returns the number of calls that waited, and the time that they lost.
fn total(lines: &[WaitLine]) -> (u64, i64) {
    let calls = lines.iter().map(|line| line.calls).sum();
    (calls, lines.iter().map(|line| line.lost_nanos).sum())
}

/// Collects lines, those with the longest times first.
fn sorted<T>(lines: impl Iterator<Item = T>, nanos: impl Fn(&T) -> i64) -> Vec<T> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|line| Reverse(nanos(line)));
    lines
}

/// Times of the program, without that of the tracer.
struct ProgramTime<'a> {
    sums: &'a WaitSums,
    times: &'a CallTimes,
    walked: &'a WalkedTrace,
    names: &'a ProgramNames,
    tracer: BTreeMap<u32, CallTime>,
}

impl ProgramTime<'_> {
    fn of(&self, location: u32) -> Duration {
        let tracer = self.tracer.get(&location).copied().unwrap_or_default();
        self.sums.time_of(location) - tracer.time
    }

    fn all(&self) -> Duration {
        let tracer: Duration = self.tracer.values().map(|found| found.time).sum();
        self.sums.time() - tracer
    }

    fn calls(&self) -> Vec<CallLine> {
        let found = self.times.by_call(self.names).into_iter();
        let lines = found.map(|(name, of)| CallLine::new(name.to_owned(), of, self.all()));
        sorted(lines, |line| line.time_nanos)
    }

    fn in_mpi(&self) -> Vec<CallLine> {
        let found = self.times.by_location(self.names).into_iter();
        let lines = found.map(|(location, of)| {
            let name = self.walked.name_of(location).to_owned();
            CallLine::new(name, of, self.of(location))
        });
        sorted(lines, |line| line.time_nanos)
    }

    fn by_location(&self) -> Vec<LocationLine> {
        let mut found: BTreeMap<u32, Vec<WaitLine>> = BTreeMap::new();
        for ((location, pattern), sum) in self.sums.by_location() {
            let lines = found.entry(location).or_default();
            lines.push(WaitLine::new(pattern, &sum));
        }
        let lines = found.into_iter().map(|(location, patterns)| {
            let (calls, lost_nanos) = total(&patterns);
            LocationLine {
                location,
                name: self.walked.name_of(location).to_owned(),
                calls,
                lost_nanos,
                time_nanos: self.of(location).as_nanos(),
                patterns: sorted(patterns.into_iter(), |line| line.lost_nanos),
            }
        });
        sorted(lines, |line| line.lost_nanos)
    }

    /// Joins regions of one name.
    fn by_region(&self) -> Vec<RegionLine> {
        let name = |region| self.names.region(region);
        let found = self
            .sums
            .sum_by(|pattern, _, region| (name(region), pattern));
        let lines = found
            .into_iter()
            .map(|((region, pattern), sum)| RegionLine {
                region: region.to_owned(),
                waits: WaitLine::new(pattern, &sum),
            });
        sorted(lines, |line| line.waits.lost_nanos)
    }
}

/// Returns the share of a time, in percent.
pub(super) fn share(lost: i64, time: i64) -> f64 {
    lost as f64 / time.max(1) as f64
}

/// Returns a time as text.
pub(super) fn time(nanos: i64) -> String {
    Duration::from_nanos(nanos).to_string()
}
