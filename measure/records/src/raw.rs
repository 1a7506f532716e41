//! What every rank saw in every call, beside the run-times: `NAME.raw.csv`, whatever the format of the record.
//!
//! ```text
//! # downbeat launch 1
//! # factor ranks = 2
//! operation,bytes,ranks,call,state,rank,start_ns,end_ns
//! allreduce,8,2,0,valid,0,1000,1370
//! allreduce,8,2,0,valid,1,1002,1375
//! # end allreduce,8,2 valid=1 late=0 long=0
//! # complete
//! ```
//!
//! Times are those of the clock that all ranks share, or else of each rank's own. Where a series of calls was timed,
//! the start is 0, and the end is the mean.

use std::io::{self, Read, Write};

use super::content::LaunchBuilder;
use super::csv;
use super::error::RecordFlaw;
use crate::{CallTimes, GroupKey, MeasuredGroup, Observation, Observations};
use downbeat_files::Lines;

pub(super) const COLUMNS: &str = "operation,bytes,ranks,call,state,rank,start_ns,end_ns";
const LONGEST_LINE: usize = 1 << 20;

/// All lines of a group.
pub(super) fn write_group(
    to: &mut impl Write,
    group: &MeasuredGroup,
    seen: &Observations,
) -> io::Result<()> {
    let key = csv::key(&group.key);
    for (call, state) in seen.states().iter().enumerate() {
        for rank in 0..seen.ranks() {
            let place = call * seen.ranks() + rank;
            write!(to, "{key},{call},{},{rank},", state.name())?;
            match seen.call_times() {
                CallTimes::Global(all) => stamps(to, &all[place])?,
                CallTimes::Local(all) => stamps(to, &all[place])?,
                CallTimes::Means(all) => writeln!(to, "0,{}", all[place])?,
            }
        }
    }
    let without_figures = MeasuredGroup {
        figures: vec![],
        nanos: vec![],
        ..group.clone()
    };
    writeln!(to, "# end {key} {}", csv::summary(&without_figures))
}

fn stamps<D: downbeat_clock_core::Domain>(
    to: &mut impl Write,
    seen: &Observation<D>,
) -> io::Result<()> {
    writeln!(to, "{},{}", seen.start.as_nanos(), seen.end.as_nanos())
}

/// How many bytes the head and the groups have that the record has, too.
pub(super) fn end_of(file: impl Read, groups: &[GroupKey]) -> Result<u64, RecordFlaw> {
    let mut lines = Lines::new(file, LONGEST_LINE);
    csv::read_header(&mut lines, &mut LaunchBuilder::default(), COLUMNS)?;
    for key in groups {
        let expected = format!("# end {} ", csv::key(key));
        loop {
            let found = match lines.next_line()? {
                Some(line) if line.starts_with(expected.as_bytes()) => true,
                Some(line) if line.starts_with(b"# end ") => {
                    return Err(lines
                        .flaw(0, format!("the record's next group is {key}"))
                        .into());
                }
                Some(_) => false,
                None => {
                    return Err(lines
                        .flaw(
                            1,
                            format!("the group of {key} is not there, but the record has it"),
                        )
                        .into());
                }
            };
            if found {
                break;
            }
        }
    }
    Ok(lines.offset())
}
