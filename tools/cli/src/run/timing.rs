//! Settings with which `downbeat time` runs a command.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::parameters::replaced;

/// Settings of one launch, which plans keep. Commands are for a shell.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimedRun {
    /// Number of runs in each launch that precede the timed one and are not counted
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_hyphen_values = true)]
    pub(crate) warmup: u32,
    /// Command to run by `sh -c` before each run, without being timed
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prepare: Option<String>,
    /// Count runs that fail like others, and their number
    #[arg(long)]
    pub(crate) ignore_failure: bool,
    /// Send the standard output of the command to /dev/null instead of the log
    #[arg(long)]
    pub(crate) discard_output: bool,
}

impl TimedRun {
    /// Returns the options that have these values.
    fn arguments(&self) -> Vec<String> {
        let given = |is_given: bool, option: &str| is_given.then(|| option.to_owned());
        [format!("--warmup={}", self.warmup)]
            .into_iter()
            .chain(self.prepare.iter().map(|text| format!("--prepare={text}")))
            .chain(given(self.ignore_failure, "--ignore-failure"))
            .chain(given(self.discard_output, "--discard-output"))
            .collect()
    }
}

/// All settings, which plans keep.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timing {
    #[command(flatten)]
    pub(crate) run: TimedRun,
    /// Command to run by `sh -c` before the first launch, once for each variant and combination of parameters
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) setup: Option<String>,
    /// Command to run by `sh -c` after the last launch, also if one has failed, as often as --setup
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleanup: Option<String>,
}

impl Timing {
    /// Returns the words by which this program times a command in a launch.
    pub(super) fn words<'a>(
        &self,
        folder: &str,
        launch: &str,
        parameters: impl Iterator<Item = (&'a String, &'a String)>,
        command: &[String],
    ) -> Vec<String> {
        let me = std::env::current_exe();
        let me = me.map_or_else(|_| "downbeat".to_owned(), |me| me.display().to_string());
        let own = [&me, TIME_LAUNCH, "--out", folder, "--launch", launch].map(str::to_owned);
        own.into_iter()
            .chain(self.run.arguments())
            .chain(parameters.map(|(name, value)| format!("--value={name}={value}")))
            .chain(["--".to_owned()])
            .chain(command.iter().cloned())
            .collect()
    }

    /// Returns the commands that may contain parameters.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = [&self.setup, &self.run.prepare, &self.cleanup];
        texts.into_iter().flatten().map(String::as_str)
    }

    /// Puts values in the place of parameters.
    pub(super) fn with(&self, combination: &[(&str, &str)]) -> Self {
        let with = |text: &Option<String>| text.as_ref().map(|text| replaced(text, combination));
        Self {
            setup: with(&self.setup),
            cleanup: with(&self.cleanup),
            run: TimedRun {
                prepare: with(&self.run.prepare),
                ..self.run.clone()
            },
        }
    }

    /// Returns all options and their values.
    pub(super) fn options(&self) -> [(&'static str, Option<String>); 6] {
        let Self {
            run,
            setup,
            cleanup,
        } = self;
        let given = |is_given: bool| is_given.then(|| "given".to_owned());
        [
            ("--warmup", Some(run.warmup.to_string())),
            ("--setup", setup.clone()),
            ("--prepare", run.prepare.clone()),
            ("--cleanup", cleanup.clone()),
            ("--ignore-failure", given(run.ignore_failure)),
            ("--discard-output", given(run.discard_output)),
        ]
    }
}

/// Name of the hidden command that times one launch.
const TIME_LAUNCH: &str = "time-launch";
