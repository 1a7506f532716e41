//! Plan of an experiment: all launches in their order, stored before the first one, so that a run can be continued.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downbeat_common::Failure;
use downbeat_files::NewFile;
use serde::{Deserialize, Serialize};

use super::alike::{all_complete, binding};
use super::command::{PLAN_FILE, Variant, quoted};
use super::programs;
use super::timing::Timing;

const SCHEMA: &str = "downbeat.run";
const VERSION: u32 = 1;

/// Schema and version of a plan, whatever else it contains.
#[derive(Deserialize)]
struct PlanSchema {
    schema: String,
    version: u32,
}

/// All launches of an experiment. The order of a plan with fewer launches is the beginning of that with more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchPlan {
    schema: String,
    version: u32,
    /// Number of launches of each variant.
    n: u32,
    /// Seed of the order.
    seed: u64,
    /// True if all launches must run on the same hosts.
    same_hosts: bool,
    variants: Vec<Variant>,
    /// Names of launches, which are also their paths in the folder: `launch-001`, or `VARIANT/launch-001`.
    order: Vec<String>,
}

/// A launch of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedLaunch {
    /// Index of the variant.
    pub(super) variant: usize,
    /// Name of the record.
    pub(super) name: String,
    /// Name of the record, with that of the variant.
    pub(super) label: String,
}

impl LaunchPlan {
    /// Makes a plan of blocks in which every variant is launched once, each block in a random order, so that drift during
    /// the experiment affects all variants equally.
    pub(super) fn new(n: u32, seed: u64, same_hosts: bool, variants: Vec<Variant>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut order = Vec::new();
        for number in 1..=n {
            let mut block: Vec<String> = (0..variants.len())
                .map(|i| planned(&variants, i, number).label)
                .collect();
            random.shuffle(&mut block);
            order.extend(block);
        }
        Self {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            n,
            seed,
            same_hosts,
            variants,
            order,
        }
    }

    /// Loads the plan of a folder; `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or is not a valid plan.
    pub(super) fn load(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = folder.join(PLAN_FILE);
        let invalid = |why: &dyn std::fmt::Display| {
            Err(Failure::option(
                "--out",
                format!("{}: {why}", path.display()),
            ))
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(why) => return invalid(&why),
        };
        // Plans of earlier programs lack fields.
        if let Ok(PlanSchema { schema, version }) = serde_json::from_str(&text)
            && (schema != SCHEMA || version != VERSION)
        {
            return invalid(&format!(
                "schema {schema} {version}, expected {SCHEMA} {VERSION}"
            ));
        }
        let plan: Self = match serde_json::from_str(&text) {
            Ok(plan) => plan,
            Err(why) => return invalid(&why),
        };
        let sorted = |mut labels: Vec<String>| {
            labels.sort();
            labels
        };
        // The length is compared first, so that a huge `n` costs nothing.
        let is_complete = plan.order.len() as u64 == u64::from(plan.n) * plan.variants.len() as u64
            && sorted(plan.order.clone())
                == sorted(Self::new(plan.n, 0, false, plan.variants.clone()).order);
        if is_complete {
            Ok(Some(plan))
        } else {
            invalid(&"the order does not contain every launch once")
        }
    }

    /// Returns the command of a variant, quoted for a shell.
    pub(super) fn command(&self, name: Option<&str>) -> Option<String> {
        let mut variants = self.variants.iter();
        let variant = variants.find(|variant| variant.name.as_deref() == name)?;
        Some(quoted(&variant.command))
    }

    /// Extends the plan to `n` launches of each variant.
    ///
    /// # Errors
    /// If these options belong to another experiment; the message names the first difference.
    pub(super) fn extended(
        mut self,
        n: u32,
        seed: Option<u64>,
        same_hosts: bool,
        variants: &[Variant],
    ) -> Result<Self, String> {
        if let Some(difference) = difference(&self.variants, variants) {
            return Err(difference);
        }
        if let Some(seed) = seed.filter(|seed| *seed != self.seed) {
            return Err(format!(
                "--seed is {} in the plan and {seed} here",
                self.seed
            ));
        }
        if same_hosts != self.same_hosts {
            let [in_plan, here] =
                [self.same_hosts, same_hosts].map(|same| if same { "given" } else { "missing" });
            return Err(format!(
                "--same-hosts is {in_plan} in the plan and {here} here"
            ));
        }
        for (planned, given) in self.variants.iter_mut().zip(variants) {
            if let Some(changed) = programs::changed(&planned.programs, &given.programs) {
                return Err(format!(
                    "{changed}; if that does not matter, delete \"programs\" from {PLAN_FILE}"
                ));
            }
            planned.programs.extend(given.programs.clone());
        }
        if n < self.n {
            return Err(format!(
                "-n is {} in the plan and {n} here, but can only grow",
                self.n
            ));
        }
        // The stored order is kept, even if another version of this program would have made another.
        let longer = Self::new(n, self.seed, self.same_hosts, self.variants.clone());
        self.order
            .extend_from_slice(&longer.order[self.order.len()..]);
        Ok(Self { n, ..self })
    }

    /// Writes the plan into the folder atomically, unless it is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn save(&self, folder: &Path) -> Result<(), Failure> {
        if Self::load(folder)?.as_ref() == Some(self) {
            return Ok(());
        }
        let mut text = serde_json::to_vec_pretty(self).map_err(Failure::run)?;
        text.push(b'\n');
        NewFile::replace(&folder.join(PLAN_FILE), text).map_err(|why| Failure::option("--out", why))
    }

    /// Returns all launches in their order.
    pub(super) fn launches(&self) -> Vec<PlannedLaunch> {
        let launch = |label: &String| {
            let (variant, name) = label
                .rsplit_once('/')
                .map_or((None, label.as_str()), |(variant, name)| {
                    (Some(variant), name)
                });
            // Every label contains a known variant.
            let variant = self
                .variants
                .iter()
                .position(|known| known.name.as_deref() == variant)
                .unwrap_or(0);
            PlannedLaunch {
                variant,
                name: name.to_owned(),
                label: label.clone(),
            }
        };
        self.order.iter().map(launch).collect()
    }

    /// Returns the launches that are not complete, in their order.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub(super) fn remaining(&self, out: &Path) -> Result<Vec<PlannedLaunch>, Failure> {
        let complete = self
            .folders(out)
            .iter()
            .map(|folder| all_complete(folder))
            .collect::<Result<Vec<_>, _>>()?;
        let mut launches = self.launches();
        launches.retain(|launch| !complete[launch.variant].contains(&launch.name));
        Ok(launches)
    }

    /// Returns true if any launch has a record of measurements, complete or not.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub(super) fn has_records(&self, out: &Path) -> Result<bool, Failure> {
        let found = self
            .folders(out)
            .iter()
            .map(|folder| binding(folder))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(found.iter().any(Option::is_some))
    }

    /// Returns true if all launches must run on the same hosts.
    pub(super) fn same_hosts(&self) -> bool {
        self.same_hosts
    }

    /// Returns the variants.
    pub(super) fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// Returns the folders that hold the records, one for each variant.
    pub(super) fn folders(&self, out: &Path) -> Vec<PathBuf> {
        self.variants
            .iter()
            .map(|variant| variant.folder(out))
            .collect()
    }
}

fn planned(variants: &[Variant], variant: usize, number: u32) -> PlannedLaunch {
    let name = format!("launch-{number:03}");
    let label = match &variants[variant].name {
        Some(variant) => format!("{variant}/{name}"),
        None => name.clone(),
    };
    PlannedLaunch {
        variant,
        name,
        label,
    }
}

/// Describes the first difference between the variants of the plan and the given ones.
fn difference(planned: &[Variant], given: &[Variant]) -> Option<String> {
    let names = |variants: &[Variant]| {
        let names = variants.iter().map(|variant| {
            variant
                .name
                .clone()
                .unwrap_or_else(|| "one command".to_owned())
        });
        names.collect::<Vec<_>>().join(", ")
    };
    if names(planned) != names(given) {
        return Some(format!(
            "the variants are {} in the plan and {} here",
            names(planned),
            names(given)
        ));
    }
    let other_timing = planned
        .iter()
        .zip(given)
        .find_map(|(planned, given)| timing_difference(planned, given));
    if other_timing.is_some() {
        return other_timing;
    }
    let (planned, given) = planned
        .iter()
        .zip(given)
        .find(|(planned, given)| planned.command != given.command)?;
    let of_variant = of_variant(planned);
    let longest = planned.command.len().max(given.command.len());
    let word = |variant: &Variant, i: usize| variant.command.get(i).cloned();
    let i = (0..longest).find(|i| word(planned, *i) != word(given, *i))?;
    Some(format!(
        "word {} of the command{of_variant} is {} in the plan and {} here",
        i + 1,
        or_missing(word(planned, i)),
        or_missing(word(given, i))
    ))
}

/// Describes the first difference between the settings with which two variants are timed.
fn timing_difference(planned: &Variant, given: &Variant) -> Option<String> {
    let [of_plan, of_given] = match [&planned.timing, &given.timing] {
        [None, None] => return None,
        [Some(of_plan), Some(of_given)] => [of_plan, of_given].map(Timing::options),
        [Some(_), None] => return Some("the plan is one of `downbeat time`".to_owned()),
        [None, Some(_)] => return Some("the plan is one of `downbeat run`".to_owned()),
    };
    let mut options = of_plan.into_iter().zip(of_given);
    let ((option, of_plan), (_, of_given)) =
        options.find(|((_, planned), (_, given))| planned != given)?;
    Some(format!(
        "{option}{} is {} in the plan and {} here",
        of_variant(planned),
        or_missing(of_plan),
        or_missing(of_given)
    ))
}

fn of_variant(variant: &Variant) -> String {
    let name = variant.name.as_ref();
    name.map_or_else(String::new, |name| format!(" of {name}"))
}

fn or_missing(word: Option<String>) -> String {
    word.map_or_else(|| "missing".to_owned(), |word| quoted(&[word]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(names: &[&str]) -> Vec<Variant> {
        let variant = |name: &&str| Variant {
            name: Some((*name).to_owned()),
            command: vec!["p".into(), (*name).into()],
            ..Variant::default()
        };
        names.iter().map(variant).collect()
    }

    #[test]
    fn every_block_has_every_variant_once_in_the_order_of_the_seed() {
        let names = ["a", "b", "c"];
        let plan = LaunchPlan::new(50, 7, false, variants(&names));
        let mut first = std::collections::BTreeSet::new();
        for (number, block) in (1..).zip(plan.order.chunks(3)) {
            let mut sorted = block.to_vec();
            sorted.sort();
            assert!(
                sorted
                    .iter()
                    .eq(&names.map(|name| format!("{name}/launch-{number:03}"))),
                "{block:?}"
            );
            first.insert(block[0].split('/').next().unwrap().to_owned());
        }
        assert_eq!(first.len(), 3);
        assert_eq!(plan, LaunchPlan::new(50, 7, false, variants(&names)));
        assert_ne!(
            plan.order,
            LaunchPlan::new(50, 8, false, variants(&names)).order
        );
        // A longer plan continues this one, even if its order was edited.
        let longer = LaunchPlan::new(80, 7, false, variants(&names));
        assert_eq!(
            plan.clone()
                .extended(80, None, false, &variants(&names))
                .unwrap(),
            longer
        );
        let mut by_hand = plan.clone();
        by_hand.order.swap(0, 149);
        let extended = by_hand
            .clone()
            .extended(80, Some(7), false, &variants(&names))
            .unwrap();
        assert_eq!(
            (&extended.order[..150], &extended.order[150..]),
            (&by_hand.order[..], &longer.order[150..])
        );
        assert_eq!(
            plan.launches()[4].variant,
            names
                .iter()
                .position(|n| plan.order[4].starts_with(n))
                .unwrap()
        );
    }

    #[test]
    fn without_variants_the_launches_are_in_order() {
        let plan = LaunchPlan::new(
            3,
            1,
            false,
            vec![Variant {
                command: vec!["p".into()],
                ..Variant::default()
            }],
        );
        assert_eq!(plan.order, ["launch-001", "launch-002", "launch-003"]);
    }

    #[test]
    fn another_experiment_is_refused_with_the_difference() {
        let plan = LaunchPlan::new(3, 1, false, variants(&["a", "b"]));
        let differs = |n, seed, variants: &[Variant]| {
            plan.clone().extended(n, seed, false, variants).unwrap_err()
        };
        assert_eq!(
            differs(3, None, &variants(&["b", "a"])),
            "the variants are a, b in the plan and b, a here"
        );
        let unnamed = [Variant {
            command: vec!["p".into()],
            ..Variant::default()
        }];
        assert_eq!(
            differs(3, None, &unnamed),
            "the variants are a, b in the plan and one command here"
        );
        assert_eq!(
            differs(2, None, &variants(&["a", "b"])),
            "-n is 3 in the plan and 2 here, but can only grow"
        );
        assert_eq!(
            differs(3, Some(2), &variants(&["a", "b"])),
            "--seed is 1 in the plan and 2 here"
        );
        assert_eq!(
            plan.clone()
                .extended(3, None, true, &variants(&["a", "b"]))
                .unwrap_err(),
            "--same-hosts is missing in the plan and given here"
        );
        let mut other = variants(&["a", "b"]);
        other[1].command.push("x y".to_owned());
        assert_eq!(
            differs(3, None, &other),
            "word 3 of the command of b is missing in the plan and 'x y' here"
        );
    }

    /// The first plans stated version 1, too, and had fewer fields.
    #[test]
    fn a_plan_of_an_earlier_program_is_refused() {
        let folder = std::env::temp_dir().join(format!("downbeat-old-plan-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = r#"{"schema": "downbeat.run", "version": 1, "n": 1, "seed": 5,
            "variants": [{"name": "a", "command": ["p", "a"]}], "order": ["a/launch-001"]}"#;
        let later = text.replace("\"version\": 1", "\"version\": 2");
        for (text, refused) in [
            (text, "plan.json: missing field `same_hosts`"),
            (
                &later,
                "plan.json: schema downbeat.run 2, expected downbeat.run 1",
            ),
        ] {
            fs::write(folder.join(PLAN_FILE), text).unwrap();
            let failure = LaunchPlan::load(&folder).unwrap_err();
            assert!(
                matches!(&failure, Failure::Input(why) if why.contains(refused)),
                "{failure:?}"
            );
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// As a plan is written, and as every later version must read it.
    const GOLDEN: &str = r#"{
  "schema": "downbeat.run",
  "version": 1,
  "n": 1,
  "seed": 7,
  "same_hosts": true,
  "variants": [
    {
      "name": "a,size=4",
      "command": [
        "sort",
        "-S",
        "4"
      ],
      "parameters": {
        "size": "4"
      },
      "timing": {
        "run": {
          "warmup": 1,
          "prepare": "sync",
          "ignore_failure": true,
          "discard_output": false
        },
        "setup": "true",
        "cleanup": "true"
      },
      "programs": {
        "sort": "63274c6a of 43888 bytes"
      }
    }
  ],
  "order": [
    "a,size=4/launch-001"
  ]
}
"#;

    #[test]
    fn the_format_is_unchanged() {
        let folder =
            std::env::temp_dir().join(format!("downbeat-golden-plan-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(PLAN_FILE);
        fs::write(&path, GOLDEN).unwrap();
        let plan = LaunchPlan::load(&folder).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        plan.save(&folder).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), GOLDEN);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_saved_plan_is_loaded_and_a_damaged_one_is_refused() {
        let folder = std::env::temp_dir().join(format!("downbeat-plan-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(LaunchPlan::load(&folder).unwrap(), None);
        let plan = LaunchPlan::new(2, u64::MAX, true, variants(&["a", "b"]));
        plan.save(&folder).unwrap();
        assert_eq!(LaunchPlan::load(&folder).unwrap(), Some(plan));
        let written = fs::read_to_string(folder.join(PLAN_FILE)).unwrap();
        for (from, to, culprit) in [
            ("\"n\": 2", "\"n\": 4000000000", "every launch once"),
            ("a/launch-001", "a/launch-002", "every launch once"),
            ("a/launch-001", "../launch-001", "every launch once"),
            ("\"version\": 1", "\"version\": 4", "downbeat.run 4"),
            ("\"seed\"", "\"sed\"", "line 5"),
            ("}", "", "line"),
        ] {
            fs::write(folder.join(PLAN_FILE), written.replace(from, to)).unwrap();
            let failure = LaunchPlan::load(&folder).unwrap_err();
            assert!(
                matches!(&failure, Failure::Input(why) if why.contains(culprit)),
                "{failure:?}"
            );
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
