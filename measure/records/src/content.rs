//! Rules for the content of a record, common to all formats.

use std::collections::HashSet;

use downbeat_files::checksum::DAMAGED;
use downbeat_files::{Checksums, Crc32};

use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState, Observations};

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

impl GroupRows {
    /// Makes rows of the valid observations, or of all.
    pub(super) fn from_observations(observations: &Observations, all: bool) -> Self {
        let mut rows = Self::default();
        for (call, state) in observations.states().iter().enumerate() {
            if all || *state == ObservationState::Valid {
                rows.calls.push(call as u64);
                rows.states.push(*state);
                rows.nanos.push(observations.run_time(call));
            }
        }
        rows
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, ObservationState, f64)> {
        let states = self.states.iter().copied().zip(self.nanos.iter().copied());
        self.calls
            .iter()
            .zip(states)
            .map(|(call, (state, nanos))| (*call, state, nanos))
    }
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
    fn check(&self, counts: &[(ObservationState, u64)]) -> Result<(), String> {
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
    /// True if the record may have been edited by hand.
    may_be_edited: bool,
}

impl LaunchBuilder {
    pub(super) fn new(checksums: Checksums) -> Self {
        Self {
            may_be_edited: checksums == Checksums::Ignore,
            ..Self::default()
        }
    }

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
        if !self.may_be_edited && self.launch.factors.get("processing") == Some("median") {
            check_against_rows(&group)?;
        }
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

    /// Keeps what was added so far: it is certainly whole.
    pub(super) fn commit(&mut self) {
        for (name, value) in self.later_facts.drain(..) {
            self.launch.facts.push(&name, &value);
        }
        self.whole = (self.launch.groups.len(), self.launch.complete);
    }

    /// Finishes the launch, without what was added after the last [`commit`](Self::commit).
    pub(super) fn found(mut self, end: RecordEnd) -> LaunchContent {
        let (groups, complete) = self.whole;
        self.launch.groups.truncate(groups);
        self.rows.truncate(groups);
        self.launch.complete = complete;
        LaunchContent {
            launch: self.launch,
            rows: self.rows,
            end,
        }
    }
}

/// End of the complete part of a record, where it can be continued.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordEnd {
    pub(super) bytes: u64,
    /// Checksum of these bytes; `None` in version 1, which has no checksums.
    pub(super) checksum: Option<Crc32>,
}

impl RecordEnd {
    /// The end of a file that is empty.
    pub(super) fn empty() -> Self {
        Self {
            bytes: 0,
            checksum: Some(Crc32::default()),
        }
    }
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

/// Checks that every format can store this name of an operation.
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

/// Checks figures that the processing of this name derives from the rows alone: they reveal changed
/// rows of records without checksums.
fn check_against_rows(group: &MeasuredGroup) -> Result<(), String> {
    let nanos = &group.nanos;
    if nanos.is_empty() {
        return Ok(());
    }
    let min = nanos.iter().copied().fold(f64::INFINITY, f64::min);
    let max = nanos.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let count = nanos.len() as f64;
    let mean = nanos.iter().map(|nanos| nanos / count).sum();
    let rounding = 1e-9 * min.abs().max(max.abs());
    for (name, stated) in &group.figures {
        let found = match name.as_str() {
            "min" => min,
            "max" => max,
            "mean" => mean,
            _ => continue,
        };
        if (stated - found).abs() > rounding {
            return Err(format!(
                "the figure {name} is {stated}, but that of the rows is {found}: {DAMAGED}"
            ));
        }
    }
    Ok(())
}

/// Completes the counts of a group and makes its rows: the valid ones, or all.
pub(super) fn to_write(
    group: &MeasuredGroup,
    observations: &Observations,
    all: bool,
) -> Result<(MeasuredGroup, GroupRows), String> {
    check_operation(&group.key.operation)?;
    check_figures(&group.figures)?;
    let count = |state| {
        let given = group.counts.iter().find(|(known, _)| *known == state);
        (
            state,
            given.map_or(observations.count(state) as u64, |(_, count)| *count),
        )
    };
    let counts = ObservationState::ALL.map(count).to_vec();
    let rows = GroupRows::from_observations(observations, all);
    let mut tally = Tally::default();
    rows.calls
        .iter()
        .zip(&rows.states)
        .try_for_each(|(call, state)| tally.add(*call, *state))?;
    tally.check(&counts)?;
    if let Some(place) = rows.nanos.iter().position(|nanos| !nanos.is_finite()) {
        return Err(format!(
            "call {} took {} ns",
            rows.calls[place], rows.nanos[place]
        ));
    }
    let MeasuredGroup { key, figures, .. } = group;
    Ok((
        MeasuredGroup {
            key: key.clone(),
            nanos: vec![],
            counts,
            figures: figures.clone(),
        },
        rows,
    ))
}
