//! Launches while the tables of an output are read.

use std::collections::HashMap;

use downbeat_files::number::grouped;

use super::imported::{AVERAGES, ImportSettings, ImportedLaunch};
use crate::content::check_operation;
use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState};

/// One observation of a table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: GroupKey,
    pub(super) state: ObservationState,
    pub(super) nanos: f64,
    /// All times of the row, the observation first; none if a row is one call.
    pub(super) figures: Vec<(String, f64)>,
    pub(super) calls: Calls,
}

/// Calls that an observation covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    One,
    /// Their average, of this number if it is stated.
    Average(Option<u64>),
}

/// Collector of the rows of an output. The n-th output of a group belongs to the n-th launch.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    pub(super) settings: &'a ImportSettings,
    launches: Vec<CollectedLaunch>,
    /// Number of the current output of a program, and what it stated so far.
    output: u64,
    factors: Factors,
    facts: Factors,
    /// Factors of single operations, for all launches: one that lacks an operation does not state them.
    of_operations: Factors,
    /// The outputs in which each group was found.
    outputs: HashMap<GroupKey, Vec<u64>>,
    left_out: Vec<String>,
}

#[derive(Debug)]
struct CollectedLaunch {
    launch: Launch,
    places: HashMap<GroupKey, usize>,
    /// Smallest and largest number of calls of an average; `None` if it is not stated.
    averages: Option<Option<[u64; 2]>>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(settings: &'a ImportSettings) -> Self {
        Self {
            settings,
            launches: Vec::new(),
            output: 0,
            factors: Factors::default(),
            facts: Factors::default(),
            of_operations: Factors::default(),
            outputs: HashMap::new(),
            left_out: Vec::new(),
        }
    }

    /// Begins the output of another run of a program, of this suite in this version.
    pub(super) fn begin(&mut self, suite: &str, version: &str) {
        self.output += 1;
        self.factors = Factors::default()
            .with("suite", &suite)
            .with("suite version", &version);
        self.facts = Factors::default();
    }

    /// States a factor of the current output; the first statement counts.
    pub(super) fn factor(&mut self, name: &str, value: &str) {
        add(&mut self.factors, name, value);
    }

    /// States a factor of one operation, which is the same in all outputs.
    pub(super) fn factor_of_operation(&mut self, name: &str, value: &str) -> Result<(), String> {
        agree(&self.of_operations, name, value)?;
        add(&mut self.of_operations, name, value);
        Ok(())
    }

    /// States a fact of the current output; the first statement counts.
    pub(super) fn fact(&mut self, name: &str, value: &str) {
        add(&mut self.facts, name, value);
    }

    /// Returns the number of ranks that the output states, or else that of the settings.
    pub(super) fn ranks(&self, stated: Option<u32>) -> Result<u32, String> {
        let unknown = "the output does not state the number of ranks; give it (--ranks)";
        stated
            .or(self.settings.ranks)
            .ok_or_else(|| unknown.to_owned())
    }

    /// Adds an observation.
    pub(super) fn row(&mut self, row: Row) -> Result<(), String> {
        let outputs = match self.outputs.get_mut(&row.key) {
            Some(outputs) => outputs,
            None => {
                check_operation(&row.key.operation)?;
                self.outputs.entry(row.key.clone()).or_default()
            }
        };
        if outputs.last() != Some(&self.output) {
            outputs.push(self.output);
        }
        let place = outputs.len() - 1;
        while self.launches.len() <= place {
            self.launches.push(CollectedLaunch::new());
        }
        self.launches[place].add(row, &self.factors, &self.facts)
    }

    /// Marks the launches of the current output as cut off.
    pub(super) fn cut_off(&mut self) {
        for outputs in self
            .outputs
            .values()
            .filter(|outputs| outputs.last() == Some(&self.output))
        {
            self.launches[outputs.len() - 1].launch.complete = false;
        }
    }

    /// Notes that the table of an operation has no times.
    pub(super) fn leave_out(&mut self, operation: &str) {
        if !self.left_out.iter().any(|known| known == operation) {
            self.left_out.push(operation.to_owned());
        }
    }

    /// Returns the launches, and the operations that are left out.
    pub(super) fn found(self) -> (Vec<ImportedLaunch>, Vec<String>) {
        let of_operations = &self.of_operations;
        let finish = |launch: CollectedLaunch| launch.finish(of_operations);
        let launches = self.launches.into_iter().map(finish).collect();
        (launches, self.left_out)
    }
}

fn add(to: &mut Factors, name: &str, value: &str) {
    if !name.is_empty() && to.get(name).is_none() {
        *to = core::mem::take(to).with(name, &value);
    }
}

/// Checks that a factor was not stated with another value.
fn agree(known: &Factors, name: &str, value: &str) -> Result<(), String> {
    match known.get(name).filter(|known| *known != value.trim()) {
        Some(known) => Err(format!(
            "{name} is \"{value}\" here, but \"{known}\" in the output before; split the file"
        )),
        None => Ok(()),
    }
}

impl CollectedLaunch {
    fn new() -> Self {
        let launch = Launch {
            complete: true,
            ..Launch::default()
        };
        Self {
            launch,
            places: HashMap::new(),
            averages: None,
        }
    }

    fn add(&mut self, row: Row, factors: &Factors, facts: &Factors) -> Result<(), String> {
        self.state(factors, facts)?;
        if let Calls::Average(calls) = row.calls {
            let calls = calls.map(|calls| [calls; 2]);
            self.averages = Some(match self.averages {
                None => calls,
                Some(known) => known
                    .zip(calls)
                    .map(|([low, high], [calls, _])| [low.min(calls), high.max(calls)]),
            });
        }
        let groups = &mut self.launch.groups;
        let place = *self.places.entry(row.key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(MeasuredGroup {
                key: row.key,
                nanos: Vec::new(),
                counts: ObservationState::ALL.map(|state| (state, 0)).to_vec(),
                figures: row.figures,
            });
        } else {
            // They are those of one row.
            groups[place].figures.clear();
        }
        let group = &mut groups[place];
        group.counts[row.state as usize].1 += 1;
        if row.state == ObservationState::Valid {
            group.nanos.push(row.nanos);
        }
        Ok(())
    }

    /// Adds what the output of a row states.
    fn state(&mut self, factors: &Factors, facts: &Factors) -> Result<(), String> {
        for (name, value) in factors.iter() {
            agree(&self.launch.factors, name, value)?;
            add(&mut self.launch.factors, name, value);
        }
        facts
            .iter()
            .for_each(|(name, value)| add(&mut self.launch.facts, name, value));
        Ok(())
    }

    fn finish(mut self, of_operations: &Factors) -> ImportedLaunch {
        for (name, value) in of_operations.iter() {
            add(&mut self.launch.factors, name, value);
        }
        if let Some(calls) = self.averages {
            let calls = match calls {
                None => "an unknown number of".to_owned(),
                Some([low, high]) if low == high => grouped(&low.to_string()),
                Some(ends) => ends.map(|calls| grouped(&calls.to_string())).join(" to "),
            };
            add(&mut self.launch.facts, AVERAGES, &format!("{calls} calls"));
        }
        ImportedLaunch {
            variant: None,
            launch: self.launch,
        }
    }
}
