//! Timestamps of every rank in every call, for records in any format.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::append_file::AppendFile;
use super::content::{LaunchBuilder, RecordEnd};
use super::csv;
use super::error::{RecordError, RecordFlaw};
use super::experiment::check_launch_name;
use crate::{GroupKey, Observation, ObservationState, Observations};
use downbeat_files::{Checksums, Lines, create_folder};

pub(super) const COLUMNS: &str = "operation,bytes,ranks,call,state,rank,start_ns,end_ns";
const LONGEST_LINE: usize = 1 << 20;
/// Size from which on a piece of a group is written.
const PIECE: usize = 1 << 20;

/// Contents of the file of a launch on which those of all nodes agree. The process that has the [`Journal`](crate::Journal) gets it from
/// that, and sends it to the others as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPlan {
    name: String,
    groups: Vec<GroupKey>,
    header: String,
}

impl RawPlan {
    pub(super) fn new(name: &str, groups: &[GroupKey], header: String) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.to_vec(),
            header,
        }
    }

    /// Writes the plan as text.
    pub fn to_text(&self) -> String {
        let groups: String = self.groups.iter().map(|key| csv::key(key) + "\n").collect();
        format!("{}\n{groups}\n{}", self.name, self.header)
    }

    /// Reads the text of [`to_text`](Self::to_text); `None` if it is something else.
    pub fn from_text(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('\n')?;
        let (mut groups, mut rest) = (Vec::new(), rest);
        loop {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            if line.is_empty() {
                break;
            }
            groups.push(csv::read_key(line)?);
        }
        check_launch_name(name).ok()?;
        Some(Self {
            name: name.to_owned(),
            groups,
            header: rest.to_owned(),
        })
    }
}

/// Returns the path of the file of a node.
pub(super) fn path(dir: &Path, name: &str, node: u32) -> PathBuf {
    dir.join(match node {
        0 => format!("{name}.raw.csv"),
        _ => format!("{name}.node{node}.raw.csv"),
    })
}

/// Writer of the times of the ranks of one node: `NAME.raw.csv`.
///
/// ```text
/// # downbeat launch 1
/// # factor ranks = 2
/// operation,bytes,ranks,call,state,rank,start_ns,end_ns
/// # crc32 3d927380
/// allreduce,8,2,0,valid,0,1000,1370
/// allreduce,8,2,0,valid,1,1002,1375
/// # end allreduce,8,2 valid=1 late=0 long=0 drifted=0
/// # crc32 c81abc4a
/// # complete
/// # crc32 e7c66ac9
/// ```
///
/// Times are those of the global clock, or else of the rank's own clock. For a series of calls, the
/// start is 0 and the end is the mean.
///
/// Of ranks on several nodes, those of the first are in this file, and those of the others in `NAME.node1.raw.csv` and so on, with
/// equal headers and groups: nodes need no common folder. A piece of a large group has a checksum of its own.
#[derive(Debug)]
pub struct RawJournal {
    plan: RawPlan,
    file: AppendFile,
    /// End of the groups before the last one that was begun.
    before: RecordEnd,
    /// Group that is written, and the numbers of its calls in each state.
    group: Option<(GroupKey, [(ObservationState, u64); 4])>,
    /// Lines that are not written yet.
    lines: Vec<u8>,
}

impl RawJournal {
    /// Begins or continues the file of a node; that of the first belongs to the [`Journal`](crate::Journal).
    ///
    /// # Errors
    /// If it cannot be written, or misses groups of the record.
    pub fn open(dir: &Path, plan: &RawPlan, node: u32) -> Result<Self, RecordError> {
        create_folder(dir)?;
        let path = path(dir, &plan.name, node);
        if !plan.groups.is_empty() && !path.exists() {
            let why = "the file is missing, but the record has groups: it was begun on other nodes";
            return Err(RecordError::content(&path, why));
        }
        let mut file = AppendFile::open(&path)?;
        if plan.groups.is_empty() {
            file.append(plan.header.clone().into_bytes())?;
        } else {
            // It may have one more group, which is cut off.
            let end = shared_end(&file.file, &plan.groups);
            file.end = end.map_err(|flaw| flaw.in_file(&path))?;
        }
        Ok(Self {
            plan: plan.clone(),
            before: file.end.clone(),
            file,
            group: None,
            lines: vec![],
        })
    }

    /// Returns the plan by which other nodes write their files.
    pub fn plan(&self) -> &RawPlan {
        &self.plan
    }

    /// Adds the observations of the next calls of a group, the first of which is call `first`, on
    /// these ranks: as many on each, in the same states. A group that was begun and not
    /// [ended](Self::finish_group) is cut off first if it is another one.
    ///
    /// # Errors
    /// If the ranks have not as many calls, or the file cannot be written.
    pub fn add(
        &mut self,
        key: &GroupKey,
        first: usize,
        ranks: &[(u32, Observations)],
    ) -> Result<(), RecordError> {
        let Some((_, of_first)) = ranks.first() else {
            return Ok(());
        };
        if ranks.iter().any(|(_, own)| own.len() != of_first.len()) {
            let why = format!("{key}: the ranks have not as many calls");
            return Err(RecordError::unwritable(why));
        }
        self.begin(key);
        let text = csv::key(key);
        for (call, Observation { state, .. }) in of_first.iter().enumerate() {
            for (rank, own) in ranks {
                // Writing to memory cannot fail.
                let _ = write!(
                    self.lines,
                    "{text},{},{},{rank},",
                    first + call,
                    state.name()
                );
                let _ = match own[call].begin {
                    // A mean may have a fraction.
                    0 => writeln!(self.lines, "0,{}", own[call].nanos),
                    begin => writeln!(self.lines, "{begin},{}", own[call].end()),
                };
            }
            if self.lines.len() >= PIECE {
                self.file.append(std::mem::take(&mut self.lines))?;
            }
        }
        if let Some((_, counts)) = &mut self.group {
            for (state, count) in counts {
                *count += of_first.count(*state) as u64;
            }
        }
        Ok(())
    }

    /// Ends a group, also one of which no rank of this node has times. The record must have it then: a file that has one group more
    /// is [continued](Self::open) without it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish_group(&mut self, key: &GroupKey) -> Result<(), RecordError> {
        self.begin(key);
        let counts = self
            .group
            .take()
            .map_or_else(no_calls, |(_, counts)| counts);
        let (mut lines, key) = (std::mem::take(&mut self.lines), csv::key(key));
        lines.extend(format!("# end {key} {}\n", csv::summary(&counts, &[])).bytes());
        self.file.append(lines)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn complete(&mut self) -> Result<(), RecordError> {
        if self.group.is_some() {
            self.cut();
        }
        self.before = self.file.end.clone();
        self.file
            .append(format!("{}\n", csv::COMPLETE).into_bytes())
    }

    /// Returns true if times of this group were added.
    pub(super) fn has_begun(&self, key: &GroupKey) -> bool {
        self.group.as_ref().is_some_and(|(begun, _)| begun == key)
    }

    /// Cuts off the group or the end that was begun last: the record does not have it.
    pub(super) fn cut(&mut self) {
        self.file.end = self.before.clone();
        self.group = None;
        self.lines.clear();
    }

    fn begin(&mut self, key: &GroupKey) {
        if self.has_begun(key) {
            return;
        }
        if self.group.is_some() {
            self.cut();
        }
        self.before = self.file.end.clone();
        self.group = Some((key.clone(), no_calls()));
    }
}

/// Returns the numbers of calls in each state, before there are any.
fn no_calls() -> [(ObservationState, u64); 4] {
    ObservationState::ALL.map(|state| (state, 0))
}

/// End of the groups that the record has, too, in bytes.
pub(super) fn shared_end(file: impl Read, groups: &[GroupKey]) -> Result<RecordEnd, RecordFlaw> {
    let mut lines = Lines::new(file, LONGEST_LINE);
    let mut builder = LaunchBuilder::default();
    csv::read_header(&mut lines, &mut builder, COLUMNS, Checksums::Verify)?;
    for key in groups {
        let expected = format!("# end {} ", csv::key(key));
        loop {
            if !lines.advance()? {
                return Err(lines.flaw(1, missing(key)).into());
            }
            if csv::CHECKSUM.check(&mut lines, Checksums::Verify)? {
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
        if !csv::end_piece(&mut lines, &mut builder, Checksums::Verify)? {
            return Err(lines.flaw(1, missing(key)).into());
        }
    }
    Ok(builder.found().end)
}

fn missing(key: &GroupKey) -> String {
    format!("the group of {key} is missing, but the record has it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use crate::{Factors, Journal, MeasuredGroup, RecordFormat};
    use downbeat_files::testing::TemporaryFolder;

    fn key(operation: &str) -> GroupKey {
        GroupKey {
            operation: operation.to_owned(),
            bytes: 8,
            ranks: 3,
        }
    }

    /// Times of each call: these ranks' numbers, and the call's number behind the point.
    fn times(ranks: &[u32], calls: usize) -> Vec<(u32, Observations)> {
        let of_rank = |rank: &u32| {
            let observe = |call: usize| Observation {
                state: ObservationState::ALL[usize::from(call == 1)],
                begin: 0,
                nanos: f64::from(*rank) + call as f64 / 1e6,
            };
            (*rank, Observations((0..calls).map(observe).collect()))
        };
        ranks.iter().map(of_rank).collect()
    }

    fn open(folder: &TemporaryFolder) -> Journal {
        let factors = Factors::default().with("ranks", &3);
        let facts = Factors::default().with("seed", &1);
        Journal::open(&folder.0, "a", RecordFormat::Csv, true, &factors, &facts).unwrap()
    }

    fn append(journal: &mut Journal, operation: &str) {
        let group = MeasuredGroup {
            key: key(operation),
            nanos: vec![],
            counts: vec![],
            figures: vec![],
        };
        journal.append(&group, &times(&[7], 2)[0].1).unwrap();
    }

    /// Opens the file of the second node as another process would.
    fn open_other(folder: &TemporaryFolder, journal: &Journal) -> Result<RawJournal, RecordError> {
        let plan = RawPlan::from_text(&journal.raw_plan().unwrap().to_text()).unwrap();
        assert_eq!(Some(&plan), journal.raw_plan());
        RawJournal::open(&folder.0, &plan, 1)
    }

    #[test]
    fn each_node_has_a_file_that_continues_with_the_record() {
        let folder = TemporaryFolder::new();
        let mut journal = open(&folder);
        let mut other = open_other(&folder, &journal).unwrap();
        let bcast = key("bcast");
        let first_node = journal.raw().unwrap();
        first_node.add(&bcast, 0, &times(&[0, 1], 2)).unwrap();
        for first in [0, 1] {
            other.add(&bcast, first, &times(&[2], 1)).unwrap();
        }
        other.finish_group(&bcast).unwrap();
        append(&mut journal, "bcast");
        let read = |name: &str| fs::read_to_string(folder.file(name)).unwrap();
        let first = read("a.raw.csv");
        let end = "# end bcast,8,3 valid=1 late=1 long=0 drifted=0\n";
        let rows = "bcast,8,3,0,valid,0,0,0\nbcast,8,3,0,valid,1,0,1\n\
                    bcast,8,3,1,late,0,0,0.000001\nbcast,8,3,1,late,1,0,1.000001\n";
        assert!(first.contains(&format!("{rows}{end}")), "{first}");
        let whole = read("a.node1.raw.csv");
        let rows = "bcast,8,3,0,valid,2,0,2\nbcast,8,3,1,valid,2,0,2\n";
        assert!(
            whole.contains(&format!("{rows}# end bcast,8,3 valid=2 ")),
            "{whole}"
        );
        let head = |text: &str| text.split("# crc32").next().unwrap().to_owned();
        assert_eq!(head(&whole), head(&first));

        // The launch ends after the other node has written a group, and before the record has it.
        other.add(&key("scan"), 0, &times(&[2], 1)).unwrap();
        other.finish_group(&key("scan")).unwrap();
        drop((journal, other));
        let mut journal = open(&folder);
        let mut other = open_other(&folder, &journal).unwrap();
        // Nor does a group stay that was not ended.
        other.add(&key("reduce"), 0, &times(&[2], 1)).unwrap();
        other.finish_group(&key("gather")).unwrap();
        append(&mut journal, "gather");
        other.complete().unwrap();
        journal.complete().unwrap();
        let text = read("a.node1.raw.csv");
        let rest = text.strip_prefix(&whole).unwrap();
        let empty = "# end gather,8,3 valid=0 late=0 long=0 drifted=0\n";
        assert!(
            rest.starts_with(empty) && rest.contains("# complete"),
            "{rest}"
        );

        // Another launch, on a node that has no file.
        drop(journal);
        fs::remove_file(folder.file("a.csv")).unwrap();
        let mut journal = open(&folder);
        append(&mut journal, "bcast");
        drop(journal);
        fs::remove_file(folder.file("a.node1.raw.csv")).unwrap();
        let why = open_other(&folder, &open(&folder)).unwrap_err().to_string();
        assert!(
            why.ends_with("a.node1.raw.csv: the file is missing, but the record has groups: it was begun on other nodes"),
            "{why}"
        );
        assert!(!folder.file("a.node1.raw.csv").exists());
    }

    #[test]
    fn rows_have_timestamps_or_means() {
        let folder = TemporaryFolder::new();
        let mut journal = open(&folder);
        let call = |begin, nanos| Observation {
            state: ObservationState::Valid,
            begin,
            nanos,
        };
        // Nanoseconds of the time of day have more digits than a floating-point number.
        let late = 1_796_040_000_123_456_789;
        let calls = [
            call(late, 370.0),
            call(-20, 15.0),
            call(0, 7.0),
            call(0, 7.25),
        ];
        let ranks = calls.map(|call| (5, Observations(vec![call])));
        let bcast = key("bcast");
        for (first, rank) in ranks.into_iter().enumerate() {
            journal.raw().unwrap().add(&bcast, first, &[rank]).unwrap();
        }
        let unequal = [
            (0, times(&[0], 1)[0].1.clone()),
            (1, Observations::default()),
        ];
        let why = journal.raw().unwrap().add(&bcast, 4, &unequal).unwrap_err();
        assert_eq!(
            why.to_string(),
            "bcast, 8 bytes, 3 ranks: the ranks have not as many calls"
        );
        append(&mut journal, "bcast");
        let text = fs::read_to_string(folder.file("a.raw.csv")).unwrap();
        let rows = "bcast,8,3,0,valid,5,1796040000123456789,1796040000123457159\n\
                    bcast,8,3,1,valid,5,-20,-5\nbcast,8,3,2,valid,5,0,7\n\
                    bcast,8,3,3,valid,5,0,7.25\n";
        assert!(text.contains(rows), "{text}");
    }

    #[test]
    fn large_groups_are_written_in_pieces() {
        let folder = TemporaryFolder::new();
        let mut journal = open(&folder);
        let many = times(&[0, 1, 2], 20_000);
        let bcast = key("bcast");
        for first in [0, 20_000] {
            journal.raw().unwrap().add(&bcast, first, &many).unwrap();
        }
        append(&mut journal, "bcast");
        drop(journal);
        let text = fs::read_to_string(folder.file("a.raw.csv")).unwrap();
        // That of the header, and those of at least two pieces.
        assert!(text.matches("# crc32").count() > 3);
        assert_eq!(text.matches("bcast,8,3,39999,valid,").count(), 3);
        let journal = open(&folder);
        assert_eq!(journal.groups(), [bcast]);
    }

    #[test]
    fn other_texts_are_no_plans() {
        for text in [
            "",
            "a",
            "a\nb",
            "a\nbcast,8\n\n",
            ".a\n\nx",
            "a\nbcast,8,2\nheader",
        ] {
            assert_eq!(RawPlan::from_text(text), None, "{text:?}");
        }
    }
}
