//! JSON export of hyperfine: a list of commands, each with the times of its runs.
//!
//! hyperfine starts a process for every run, so runs differ as launches do, and are compared as such: a run is a launch with one
//! observation. As observations of one launch, they would give one average, and nothing to test. A command is an experiment.

use std::collections::BTreeMap;
use std::io::Read;

use downbeat_files::Flaw;
use serde::Deserialize;
use serde_json::{Number, Value};

use super::format::ImportFormat;
use super::imported::{ImportSettings, Imported, ImportedLaunch};
use super::table::time;
use crate::format::ENDS;
use crate::{Factors, GroupKey, Launch, MeasuredGroup, ObservationState, WALL};

/// Bytes of an export that is read; a run has about forty.
const LONGEST: u64 = 1 << 28;
/// Characters of the name of a folder.
const LONGEST_NAME: usize = 60;

#[derive(Deserialize)]
struct Export {
    results: Vec<CommandRuns>,
}

#[derive(Deserialize)]
struct CommandRuns {
    command: String,
    times: Option<Vec<Number>>,
    user: Option<Number>,
    system: Option<Number>,
    memory_usage_byte: Option<Vec<Number>>,
    exit_codes: Option<Vec<Option<i64>>>,
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

/// Reads an export.
pub(super) fn read(input: impl Read, settings: &ImportSettings) -> Result<Imported, Flaw> {
    if settings.column.is_some() {
        return Err(Flaw::Whole(
            "hyperfine has one time of each run; there is no column to choose".to_owned(),
        ));
    }
    let mut text = Vec::new();
    input.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(Flaw::Whole(format!("it is longer than {LONGEST} bytes")));
    }
    let export: Export = serde_json::from_slice(&text).map_err(|why| {
        let why = format!("this is no JSON export of hyperfine: {why}");
        Flaw::Whole(why)
    })?;
    let mut names: Vec<(String, String)> = Vec::new();
    let mut launches = Vec::new();
    for (i, runs) in export.results.iter().enumerate() {
        let variant = runs.folder(&mut names);
        let found = runs.launches(&variant, settings);
        launches.extend(found.map_err(|why| Flaw::Whole(format!("results[{i}]: {why}")))?);
    }
    if launches.is_empty() {
        return Err(Flaw::Whole("it has no results".to_owned()));
    }
    Ok(Imported {
        format: ImportFormat::Hyperfine,
        launches,
        left_out: Vec::new(),
    })
}

impl CommandRuns {
    /// Returns the name of the folder of this command: its parameters, or else itself; `names` are those of all so far.
    fn folder(&self, names: &mut Vec<(String, String)>) -> String {
        if let Some((_, name)) = names.iter().find(|(command, _)| *command == self.command) {
            return name.clone();
        }
        let parameters = self
            .parameters
            .iter()
            .map(|(name, value)| format!("{name}={}", text(value)));
        let parameters = parameters.collect::<Vec<_>>().join(",");
        let name = folder_name(if parameters.is_empty() {
            &self.command
        } else {
            &parameters
        });
        let is_free = |name: &String| {
            !names
                .iter()
                .any(|(_, other)| other.eq_ignore_ascii_case(name))
        };
        let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
        let free = core::iter::once(name.clone())
            .chain(numbered)
            .find(is_free)
            .unwrap_or_default();
        names.push((self.command.clone(), free.clone()));
        free
    }

    fn launches(
        &self,
        variant: &str,
        settings: &ImportSettings,
    ) -> Result<Vec<ImportedLaunch>, String> {
        let times = self
            .times
            .as_ref()
            .filter(|times| !times.is_empty())
            .ok_or("the times of its runs are missing")?;
        let of_runs = [
            (
                "memory_usage_byte",
                self.memory_usage_byte.as_ref().map(Vec::len),
            ),
            ("exit_codes", self.exit_codes.as_ref().map(Vec::len)),
        ];
        if let Some((name, _)) = of_runs
            .into_iter()
            .find(|(_, runs)| runs.is_some_and(|runs| runs != times.len()))
        {
            return Err(format!("there are not as many {name} as times"));
        }
        let mut factors = Factors::default()
            .with("suite", &"hyperfine")
            .with("command", &self.command);
        for (name, value) in &self.parameters {
            factors = factors.with(
                &format!("parameter {}", name.replace('=', "-")),
                &text(value),
            );
        }
        let runs = times.iter().enumerate();
        let launch = |(run, seconds): (usize, &Number)| {
            let nanos = time(&seconds.to_string(), 9)?;
            Ok(ImportedLaunch {
                variant: Some(variant.to_owned()),
                launch: Launch {
                    factors: factors.clone(),
                    facts: self.facts(run),
                    groups: vec![group(nanos, settings.ranks.unwrap_or(1))],
                    complete: true,
                },
            })
        };
        runs.map(launch).collect()
    }

    /// Facts of a run.
    fn facts(&self, run: usize) -> Factors {
        let mut facts = Factors::default().with("run", &(run + 1));
        let means = [
            ("user time, mean of all runs", &self.user),
            ("system time, mean of all runs", &self.system),
        ];
        for (name, mean) in means {
            if let Some(mean) = mean {
                facts = facts.with(name, &format!("{mean} s"));
            }
        }
        if let Some(bytes) = self.memory_usage_byte.as_ref().and_then(|all| all.get(run)) {
            facts = facts.with("largest memory", &format!("{bytes} bytes"));
        }
        match self.exit_codes.as_ref().and_then(|codes| codes.get(run)) {
            Some(Some(code)) => facts.with("exit code", code),
            Some(None) => facts.with("exit code", &"none, killed by a signal"),
            None => facts,
        }
    }
}

fn group(nanos: f64, ranks: u32) -> MeasuredGroup {
    let count = |state| (state, u64::from(state == ObservationState::Valid));
    MeasuredGroup {
        key: GroupKey {
            operation: WALL.to_owned(),
            bytes: 0,
            ranks,
        },
        nanos: vec![nanos],
        counts: ObservationState::ALL.map(count).to_vec(),
        figures: Vec::new(),
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Makes a name that every file system takes.
fn folder_name(text: &str) -> String {
    let odd = |c: char| !c.is_ascii_alphanumeric() && !"._=+,-".contains(c);
    let words = text.split(odd).filter(|word| !word.is_empty());
    let name: String = words
        .collect::<Vec<_>>()
        .join("-")
        .chars()
        .take(LONGEST_NAME)
        .collect();
    let name = name.trim_matches(['.', '-']);
    match name.rsplit_once('.') {
        _ if name.is_empty() => "command".to_owned(),
        // A folder of records must not look like one.
        Some((stem, end)) if ENDS.contains(&end) => format!("{stem}-{end}"),
        _ => name.to_owned(),
    }
}
