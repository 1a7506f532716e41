//! Timestamps of every rank in every call: `NAME.raw.csv`, for records in any format.
//!
//! ```text
//! # downbeat launch 2
//! # factor ranks = 2
//! operation,bytes,ranks,call,state,rank,start_ns,end_ns
//! # crc32 e2003d66
//! allreduce,8,2,0,valid,0,1000,1370
//! allreduce,8,2,0,valid,1,1002,1375
//! # end allreduce,8,2 valid=1 late=0 long=0
//! # crc32 e4b4a394
//! # complete
//! # crc32 7da27859
//! ```
//!
//! Times are those of the global clock, or else of the rank's own clock. For a series of calls, the
//! start is 0 and the end is the mean.

use std::io::{self, Read, Write};

use super::content::{LaunchBuilder, RecordEnd};
use super::csv;
use super::error::RecordFlaw;
use crate::{CallTimes, GroupKey, MeasuredGroup, Observation, Observations};
use downbeat_files::{Checksums, Lines};

pub(super) const COLUMNS: &str = "operation,bytes,ranks,call,state,rank,start_ns,end_ns";
const LONGEST_LINE: usize = 1 << 20;

/// Writes the lines of a group.
pub(super) fn write_group(
    to: &mut impl Write,
    group: &MeasuredGroup,
    observations: &Observations,
) -> io::Result<()> {
    let key = csv::key(&group.key);
    for (call, state) in observations.states().iter().enumerate() {
        for rank in 0..observations.ranks() {
            let place = call * observations.ranks() + rank;
            write!(to, "{key},{call},{},{rank},", state.name())?;
            match observations.call_times() {
                CallTimes::Global(all) => write_timestamps(to, &all[place])?,
                CallTimes::Local(all) => write_timestamps(to, &all[place])?,
                CallTimes::Means(all) => writeln!(to, "0,{}", all[place])?,
            }
        }
    }
    let without_figures = MeasuredGroup {
        figures: vec![],
        nanos: vec![],
        probes: vec![],
        ..group.clone()
    };
    writeln!(to, "# end {key} {}", csv::summary(&without_figures))
}

fn write_timestamps<D: downbeat_clock_core::Domain>(
    to: &mut impl Write,
    observation: &Observation<D>,
) -> io::Result<()> {
    writeln!(
        to,
        "{},{}",
        observation.start.as_nanos(),
        observation.end.as_nanos()
    )
}

/// End of the groups that the record has, too, in bytes.
pub(super) fn shared_end(file: impl Read, groups: &[GroupKey]) -> Result<RecordEnd, RecordFlaw> {
    let mut lines = Lines::new(file, LONGEST_LINE);
    let mut builder = LaunchBuilder::default();
    let mut pieces = csv::read_header(&mut lines, &mut builder, COLUMNS, Checksums::Verify)?;
    for key in groups {
        let expected = format!("# end {} ", csv::key(key));
        loop {
            if !lines.advance()? {
                return Err(lines.flaw(1, missing(key)).into());
            }
            if pieces.take(&mut lines, &mut builder)? {
                continue;
            }
            if lines.line().starts_with(expected.as_bytes()) {
                break;
            }
            if lines.line().starts_with(b"# end ") {
                let why = format!("the record's next group is {key}");
                return Err(lines.flaw(0, why).into());
            }
        }
        if !pieces.whole_piece(&mut lines, &mut builder)? {
            return Err(lines.flaw(1, missing(key)).into());
        }
    }
    Ok(pieces.end(&lines)?)
}

fn missing(key: &GroupKey) -> String {
    format!("the group of {key} is missing, but the record has it")
}
