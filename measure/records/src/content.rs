//! Rules for the content of a record, common to all formats.

use std::collections::HashSet;

use downbeat_files::Crc32;

use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState};

/// Maximum number of factors, and of facts, of a record.
const MOST_NAMES: usize = 4_096;
/// Maximum number of figures of a group.
const MOST_FIGURES: usize = 256;

/// Part of a record that a reader keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The factors and facts of the header; reading stops there.
    Header,
    /// The run-times of the valid observations.
    Valid,
    /// All rows of the file.
    #[cfg(feature = "parquet")]
    Rows,
}

/// The rows of a group, as columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GroupRows {
    pub(super) calls: Vec<u64>,
    pub(super) states: Vec<ObservationState>,
    pub(super) nanos: Vec<f64>,
}

/// Number of rows in each state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    counts: [u64; ObservationState::ALL.len()],
    next_call: u64,
}

impl Tally {
    /// Counts one row.
    #[inline]
    pub(super) fn add(&mut self, call: u64, state: ObservationState) -> Result<(), String> {
        if call < self.next_call {
            return Err(format!(
                "call {call} comes after call {}",
                self.next_call - 1
            ));
        }
        self.next_call = call.saturating_add(1);
        self.counts[state as usize] += 1;
        Ok(())
    }

    /// Checks the rows against the counts of the group.
    pub(super) fn check(&self, counts: &[(ObservationState, u64)]) -> Result<(), String> {
        for (state, count) in counts {
            let (rows, name) = (self.counts[*state as usize], state.name());
            // Rows of invalid observations may be left out.
            if rows > *count || *state == ObservationState::Valid && rows < *count {
                return Err(format!(
                    "there are {rows} rows in state {name}, but their count is {count}"
                ));
            }
        }
        let all = counts
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        if self.next_call > all {
            return Err(format!(
                "there is a call {}, but the counts add up to {all} calls",
                self.next_call - 1
            ));
        }
        Ok(())
    }
}

/// Builds a launch from a file and rejects invalid content.
#[derive(Debug, Default)]
pub(super) struct LaunchBuilder {
    launch: Launch,
    rows: Vec<GroupRows>,
    names: [HashSet<String>; 2],
    keys: HashSet<GroupKey>,
    /// Facts between groups. They are added with the next group.
    later_facts: Vec<(String, String)>,
    /// Number of groups that are certainly whole, and true if the end of the record is, too.
    whole: (usize, bool),
    /// End of what is certainly whole.
    end: RecordEnd,
}

impl LaunchBuilder {
    pub(super) fn factor(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.name(0, name)?;
        self.launch.factors.push(name, value);
        Ok(())
    }

    pub(super) fn fact(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.name(1, name)?;
        self.launch.facts.push(name, value);
        Ok(())
    }

    /// Adds a fact that stands between groups.
    pub(super) fn later_fact(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.name(1, name)?;
        self.later_facts.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    fn name(&mut self, kind: usize, name: &str) -> Result<(), String> {
        let kind_name = ["factor", "fact"][kind];
        if name.is_empty() {
            return Err(format!("a {kind_name} has no name"));
        }
        if self.names[kind].len() >= MOST_NAMES {
            return Err(format!("there are more than {MOST_NAMES} {kind_name}s"));
        }
        if !self.names[kind].insert(name.to_owned()) {
            return Err(format!("there is a second {kind_name} \"{name}\""));
        }
        Ok(())
    }

    /// Checks that a group with this key can be added.
    pub(super) fn check_key(&self, key: &GroupKey) -> Result<(), String> {
        check_operation(&key.operation)?;
        if self.keys.contains(key) {
            Err(format!("there is a second group of {key}"))
        } else {
            Ok(())
        }
    }

    /// Adds a complete group. `counts` has each state once.
    pub(super) fn group(
        &mut self,
        group: MeasuredGroup,
        tally: &Tally,
        rows: Option<GroupRows>,
    ) -> Result<(), String> {
        self.check_key(&group.key)?;
        check_figures(&group.figures)?;
        tally.check(&group.counts)?;
        self.keys.insert(group.key.clone());
        self.launch.groups.push(group);
        self.rows.extend(rows);
        Ok(())
    }

    pub(super) fn complete(&mut self) {
        self.launch.complete = true;
    }

    pub(super) fn is_complete(&self) -> bool {
        self.launch.complete
    }

    /// Keeps what was added so far: it is certainly whole, up to this end.
    pub(super) fn commit(&mut self, end: RecordEnd) {
        for (name, value) in self.later_facts.drain(..) {
            self.launch.facts.push(&name, &value);
        }
        self.whole = (self.launch.groups.len(), self.launch.complete);
        self.end = end;
    }

    /// Finishes the launch, without what was added after the last [`commit`](Self::commit).
    pub(super) fn found(mut self) -> LaunchContent {
        let (groups, complete) = self.whole;
        self.launch.groups.truncate(groups);
        self.rows.truncate(groups);
        self.launch.complete = complete;
        LaunchContent {
            launch: self.launch,
            rows: self.rows,
            end: self.end,
        }
    }
}

/// End of the complete part of a record, where it can be continued; by default that of an empty
/// file.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordEnd {
    pub(super) bytes: u64,
    /// Checksum of these bytes.
    pub(super) checksum: Crc32,
}

/// Content of a record file.
#[derive(Debug)]
pub(super) struct LaunchContent {
    pub(super) launch: Launch,
    /// The rows of each group, for `Keep::Rows`.
    #[cfg_attr(
        not(feature = "parquet"),
        expect(dead_code, reason = "only the conversion to Parquet needs all rows")
    )]
    pub(super) rows: Vec<GroupRows>,
    /// End of the complete part.
    pub(super) end: RecordEnd,
}

/// Checks that both formats can store this name of an operation.
pub(super) fn check_operation(name: &str) -> Result<(), String> {
    let odd = |c: char| c == ',' || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.starts_with('#') || name.contains(odd) {
        return Err(format!(
            "\"{}\" is not a valid operation name",
            name.escape_debug()
        ));
    }
    Ok(())
}

/// Checks that factors or facts can be written and read again.
pub(super) fn check_names(all: &Factors) -> Result<(), String> {
    let mut builder = LaunchBuilder::default();
    all.iter().try_for_each(|(name, value)| {
        builder.factor(name, value)?;
        let odd = name.contains('=');
        if odd {
            Err(format!("\"{name}\" contains \"=\" and cannot be written"))
        } else {
            Ok(())
        }
    })
}

/// Checks that figures can be written and read again.
pub(super) fn check_figures(all: &[(String, f64)]) -> Result<(), String> {
    if all.len() > MOST_FIGURES {
        return Err(format!("there are more than {MOST_FIGURES} figures"));
    }
    for (i, (name, nanos)) in all.iter().enumerate() {
        let odd = |c: char| c == '=' || c.is_whitespace() || c.is_control();
        if name.is_empty() || name.contains(odd) {
            return Err(format!(
                "\"{}\" is not a valid figure name",
                name.escape_debug()
            ));
        }
        if !nanos.is_finite() {
            return Err(format!("the figure {name} is {nanos}"));
        }
        if all[..i].iter().any(|(other, _)| other == name) {
            return Err(format!("there is a second figure {name}"));
        }
    }
    Ok(())
}
