//! Launches until enough of them were made in one state of the machine.

use std::path::PathBuf;

use downbeat_common::Failure;
use downbeat_common::output::{self, round_trips};
use downbeat_files::Checksums;
use downbeat_records::analysis::{SplitByState, SplitExperiment};
use downbeat_records::{Experiment, GroupKey, MeasuredGroup, read_experiment};

use crate::experiments::launches as launches_text;

/// Number of launches that are wanted in the state of the machine that was met most often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateGoal {
    pub(crate) launches: u32,
    /// Greatest number of launches of each variant, in any state.
    pub(crate) most: u32,
}

/// Launches in the state that was met most often.
pub(super) struct StateProgress {
    /// Round trips of the state.
    state: String,
    /// Number of launches of the variant that has fewest.
    fewest: u32,
}

impl StateGoal {
    /// Returns the number of further launches of each variant that are needed at least; `None` if the goal is reached. `launches` of each
    /// are complete.
    ///
    /// # Errors
    /// If the records cannot be read or have no states, or if there are as many launches as possible.
    pub(super) fn missing(
        self,
        folders: &[PathBuf],
        launches: u32,
    ) -> Result<Option<u32>, Failure> {
        let progress = StateProgress::read(folders)?;
        let missing = self.launches.saturating_sub(progress.fewest);
        let reached = format!(
            "{} of {} in the state of the machine met most often, with a round trip of {}",
            progress.fewest,
            launches_text(self.launches as usize),
            progress.state
        );
        match (missing, self.most.saturating_sub(launches)) {
            (0, _) => {
                output::print(&format!("{reached}\n"))?;
                Ok(None)
            }
            (_, 0) => Err(Failure::Run(format!(
                "--in-state: only {reached}, after {} of each variant: --most allows no more",
                launches_text(launches as usize)
            ))),
            (missing, left) => {
                output::print(&format!("{reached}: {} more\n", missing.min(left)))?;
                Ok(Some(missing.min(left)))
            }
        }
    }
}

impl StateProgress {
    fn read(folders: &[PathBuf]) -> Result<Self, Failure> {
        let read =
            |folder: &PathBuf| read_experiment(folder, Checksums::Ignore).map_err(Failure::run);
        let variants: Vec<Experiment> = folders.iter().map(read).collect::<Result<_, _>>()?;
        let launches: Vec<_> = variants.iter().map(|one| one.launches.as_slice()).collect();
        let split = SplitByState::new(&launches).ok_or_else(|| {
            Failure::Input(
                "--in-state: the launches did not measure the state of the machine: add --states to the command"
                    .to_owned(),
            )
        })?;
        let met = |state: &usize| {
            split
                .experiments
                .iter()
                .map(|one| one.counts[*state])
                .sum::<usize>()
        };
        // There is at least one.
        let most = (0..split.round_trips.len()).max_by_key(met).unwrap_or(0);
        let in_state = split.experiments.iter().map(|one| launches_in(one, most));
        Ok(Self {
            state: round_trips(split.round_trips[most]),
            fewest: in_state.min().unwrap_or(0),
        })
    }
}

/// Returns the number of launches in a state, for the group with fewest.
fn launches_in(split: &SplitExperiment, state: usize) -> u32 {
    let all = split.of_states.iter().flatten();
    let groups = all.flat_map(|(_, launch)| &launch.groups);
    let keys = GroupKey::distinct(groups.map(|group| &group.key));
    let launches = &split.of_states[state];
    let with = |key: &GroupKey| {
        let has = |group: &MeasuredGroup| group.key == *key;
        launches
            .iter()
            .filter(|(_, launch)| launch.groups.iter().any(has))
            .count()
    };
    keys.into_iter().map(with).min().unwrap_or(0) as u32
}
