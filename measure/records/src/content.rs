//! What a record must be, whatever the format.

use std::collections::HashSet;

use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState, Observations};

/// More factors, or facts, than this are nobody's.
const MOST_NAMES: usize = 4_096;
/// The same for figures of a group.
const MOST_FIGURES: usize = 256;

/// What a reader keeps of the observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Reads the factors and facts of the head, and no further.
    Header,
    /// The run-times of those that are valid.
    Valid,
    /// All that the file has.
    #[cfg(feature = "parquet")]
    Rows,
}

/// The rows of a group as they stand in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GroupRows {
    pub(super) calls: Vec<u64>,
    pub(super) states: Vec<ObservationState>,
    pub(super) nanos: Vec<f64>,
}

impl GroupRows {
    /// Those of observations: the valid ones, or all.
    pub(super) fn from_observations(seen: &Observations, all: bool) -> Self {
        let mut rows = Self::default();
        for (call, state) in seen.states().iter().enumerate() {
            if all || *state == ObservationState::Valid {
                rows.calls.push(call as u64);
                rows.states.push(*state);
                rows.nanos.push(seen.run_time(call));
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

/// The rows of a group, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    counts: [u64; ObservationState::ALL.len()],
    next_call: u64,
}

impl Tally {
    /// One more row.
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

    /// Whether these can be the rows of a group of so many observations.
    fn check(&self, counts: &[(ObservationState, u64)]) -> Result<(), String> {
        for (state, count) in counts {
            let (rows, name) = (self.counts[*state as usize], state.name());
            // Those that do not count may have been left out.
            if rows > *count || *state == ObservationState::Valid && rows < *count {
                return Err(format!(
                    "there are {rows} rows that are {name}, but {count} are said to be"
                ));
            }
        }
        let all = counts
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        if self.next_call > all {
            return Err(format!(
                "there is a call {}, but {all} calls are said to be",
                self.next_call - 1
            ));
        }
        Ok(())
    }
}

/// A launch while its file is read: takes nothing that cannot be.
#[derive(Debug, Default)]
pub(super) struct LaunchBuilder {
    launch: Launch,
    rows: Vec<GroupRows>,
    names: [HashSet<String>; 2],
    keys: HashSet<GroupKey>,
    /// They count when what comes after them does.
    later_facts: Vec<(String, String)>,
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

    /// A fact between groups.
    pub(super) fn later_fact(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.name(1, name)?;
        self.later_facts.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    fn name(&mut self, kind: usize, name: &str) -> Result<(), String> {
        let what = ["factor", "fact"][kind];
        if name.is_empty() {
            return Err(format!("a {what} has no name"));
        }
        if self.names[kind].len() >= MOST_NAMES {
            return Err(format!("there are more than {MOST_NAMES} {what}s"));
        }
        if !self.names[kind].insert(name.to_owned()) {
            return Err(format!("there is a second {what} \"{name}\""));
        }
        Ok(())
    }

    /// Whether such a group can still come.
    pub(super) fn check_key(&self, key: &GroupKey) -> Result<(), String> {
        check_operation(&key.operation)?;
        if self.keys.contains(key) {
            Err(format!("there is a second group of {key}"))
        } else {
            Ok(())
        }
    }

    /// A whole group. Its counts are of all states, each once.
    pub(super) fn group(
        &mut self,
        group: MeasuredGroup,
        tally: &Tally,
        rows: Option<GroupRows>,
    ) -> Result<(), String> {
        self.check_key(&group.key)?;
        check_figures(&group.figures)?;
        tally.check(&group.counts)?;
        self.settle_facts();
        self.keys.insert(group.key.clone());
        self.launch.groups.push(group);
        self.rows.extend(rows);
        Ok(())
    }

    pub(super) fn complete(&mut self) {
        self.settle_facts();
        self.launch.complete = true;
    }

    fn settle_facts(&mut self) {
        for (name, value) in self.later_facts.drain(..) {
            self.launch.facts.push(&name, &value);
        }
    }

    /// What was read until `end`: behind that, nothing was finished.
    pub(super) fn found(self, end: u64) -> LaunchContent {
        LaunchContent {
            launch: self.launch,
            rows: self.rows,
            end,
        }
    }
}

/// What a file holds.
#[derive(Debug)]
pub(super) struct LaunchContent {
    pub(super) launch: Launch,
    /// Those of each group, if they were to be kept.
    #[cfg_attr(
        not(feature = "parquet"),
        expect(dead_code, reason = "only what is converted needs all rows")
    )]
    pub(super) rows: Vec<GroupRows>,
    /// How many bytes the finished part has.
    pub(super) end: u64,
}

/// Whether this can be the name of an operation in every format.
pub(super) fn check_operation(name: &str) -> Result<(), String> {
    let odd = |c: char| c == ',' || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.starts_with('#') || name.contains(odd) {
        return Err(format!(
            "\"{}\" is no name of an operation",
            name.escape_debug()
        ));
    }
    Ok(())
}

/// Whether factors, or facts, come back from a file as they are.
pub(super) fn check_names(all: &Factors) -> Result<(), String> {
    let mut builder = LaunchBuilder::default();
    all.iter().try_for_each(|(name, value)| {
        builder.factor(name, value)?;
        let odd = name.contains('=');
        if odd {
            Err(format!("\"{name}\" cannot be written: there is a = in it"))
        } else {
            Ok(())
        }
    })
}

/// Whether these can be written, and are known by their names.
pub(super) fn check_figures(all: &[(String, f64)]) -> Result<(), String> {
    if all.len() > MOST_FIGURES {
        return Err(format!("there are more than {MOST_FIGURES} figures"));
    }
    for (i, (name, nanos)) in all.iter().enumerate() {
        let odd = |c: char| c == '=' || c.is_whitespace() || c.is_control();
        if name.is_empty() || name.contains(odd) {
            return Err(format!(
                "\"{}\" is no name of a figure",
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

/// What is written of a group: the counts complete, the rows those that count, or all.
pub(super) fn to_write(
    group: &MeasuredGroup,
    seen: &Observations,
    all: bool,
) -> Result<(MeasuredGroup, GroupRows), String> {
    check_operation(&group.key.operation)?;
    check_figures(&group.figures)?;
    let count = |state| {
        let given = group.counts.iter().find(|(known, _)| *known == state);
        (
            state,
            given.map_or(seen.count(state) as u64, |(_, count)| *count),
        )
    };
    let counts = ObservationState::ALL.map(count).to_vec();
    let rows = GroupRows::from_observations(seen, all);
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
