//! Time of calls, by region and by location.

use std::collections::BTreeMap;

use downbeat_clock_core::Duration;
use rustc_hash::FxHashMap;

use super::finding::CallFinding;
use super::names::ProgramNames;
use crate::CallKind;

/// Calls of a region, or of all regions of MPI on a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTime {
    /// Number of calls that were left, each of a loop of tests too.
    pub calls: u64,
    /// Time in them, without that in regions inside.
    pub time: Duration,
}

/// Sums the time in each region on each location, told by a [`CallWalk`](crate::calls::CallWalk).
///
/// ```
/// use downbeat_trace::calls::{CallTimes, CallWalk};
/// use downbeat_trace::formats::TraceReader;
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nregion 0 main\nregion 1 MPI_Barrier\n\
///             0 10 enter 0\n0 50 enter 1\n0 80 leave 1\n0 90 leave 0\nend 4\n";
/// let mut reader = TraceReader::new("example.dbt".as_ref(), text.as_bytes())?;
/// let (mut walk, mut times) = (CallWalk::default(), CallTimes::default());
/// while let Some(item) = reader.next_item()? {
///     walk.add_item(&item, &mut |found| times.add_finding(found));
/// }
/// let (names, _) = walk.finish(&mut |found| times.add_finding(found));
/// let in_mpi = times.by_call(&names);
/// assert_eq!(in_mpi["MPI_Barrier"].time.as_nanos(), 30);
/// assert_eq!(in_mpi.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallTimes(FxHashMap<(u32, u32), CallTime>);

impl CallTimes {
    /// Takes what a walk has found.
    pub fn add_finding(&mut self, found: &CallFinding<'_>) {
        match found {
            CallFinding::Segment(segment) => {
                let [begin, end] = segment.times;
                self.sum(segment.region, segment.location).time += end - begin;
            }
            CallFinding::Left { call, .. } => {
                let sum = self.sum(call.region, call.location);
                sum.calls = sum.calls.saturating_add(call.calls);
            }
            _ => {}
        }
    }

    fn sum(&mut self, region: u32, location: u32) -> &mut CallTime {
        self.0.entry((region, location)).or_default()
    }

    /// Returns the time in each function of MPI.
    pub fn by_call<'a>(&self, names: &'a ProgramNames) -> BTreeMap<&'a str, CallTime> {
        let key = |region, _| names.region(region);
        self.by(names, CallKind::is_mpi, key)
    }

    /// Returns the time in MPI on each location.
    pub fn by_location(&self, names: &ProgramNames) -> BTreeMap<u32, CallTime> {
        self.by(names, CallKind::is_mpi, |_, location| location)
    }

    /// Returns the time of the tracer on each location, which is none of the program.
    pub fn of_tracer(&self, names: &ProgramNames) -> BTreeMap<u32, CallTime> {
        let is_tracer = |kind| kind == CallKind::Tracer;
        self.by(names, is_tracer, |_, location| location)
    }

    fn by<K: Ord>(
        &self,
        names: &ProgramNames,
        is_wanted: impl Fn(CallKind) -> bool,
        key: impl Fn(u32, u32) -> K,
    ) -> BTreeMap<K, CallTime> {
        let mut sums: BTreeMap<K, CallTime> = BTreeMap::new();
        for ((region, location), found) in &self.0 {
            if is_wanted(names.kind(*region)) {
                let sum = sums.entry(key(*region, *location)).or_default();
                sum.calls = sum.calls.saturating_add(found.calls);
                sum.time += found.time;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CallWalk;
    use crate::formats::TraceReader;

    #[test]
    fn a_loop_of_tests_counts_as_its_calls() {
        let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nregion 0 MPI_Testany\n\
                    0 10 enter 0\n0 10 note 17 calls\n0 50 leave 0\n\
                    0 60 enter 0\n0 61 note x\n0 62 note 9 calls\n0 70 leave 0\nend 7\n";
        let mut reader = TraceReader::new("test".as_ref(), text.as_bytes()).unwrap();
        let (mut walk, mut times) = (CallWalk::default(), CallTimes::default());
        while let Some(item) = reader.next_item().unwrap() {
            walk.add_item(&item, &mut |found| times.add_finding(found));
        }
        let (names, _) = walk.finish(&mut |found| times.add_finding(found));
        // Only a note right after the enter has the number of calls.
        let expected = CallTime {
            calls: 17 + 1,
            time: Duration::from_nanos(50),
        };
        assert_eq!(times.by_call(&names)["MPI_Testany"], expected);
    }
}
