//! Commands to launch: one, or several named variants.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use downbeat_common::Failure;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use super::parameters::{Parameter, check_use, combinations, fits_folders, replaced};
use super::timing::Timing;

/// A command with values for its parameters, and with a name if there are several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) command: Vec<String>,
    /// Values of the parameters in the command, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) parameters: BTreeMap<String, String>,
    /// Settings of `downbeat time`. Without them the command itself writes its record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timing: Option<Timing>,
    /// Digests of the programs that the command names, and of their MPI libraries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) programs: BTreeMap<String, String>,
}

/// Name of the plan in the folder of an experiment; no variant can have it.
pub(super) const PLAN_FILE: &str = "plan.json";

const OPTION: &str = "--variant";

/// Makes the variants of an experiment: each command with each combination of parameters.
///
/// # Errors
/// If a command cannot be launched, a name is not valid, or parameters and commands do not fit each other.
pub(super) fn variants(
    first: Option<&str>,
    words: &[String],
    parameters: &[Parameter],
    timing: Option<&Timing>,
) -> Result<Vec<Variant>, Failure> {
    let combinations = combinations(parameters)?;
    let mut all = Vec::new();
    for named in Variant::split(first, words)? {
        let texts = named.command.iter().map(String::as_str);
        check_use(
            parameters,
            texts.chain(timing.iter().flat_map(|timing| timing.texts())),
        )?;
        for combination in &combinations {
            let replaced = named.command.iter().map(|word| replaced(word, combination));
            let variant = Variant {
                command: replaced.collect(),
                timing: timing.map(|timing| timing.with(combination)),
                ..named.clone()
            };
            variant.check_command()?;
            all.push(variant.at(combination));
        }
    }
    Ok(all)
}

impl Variant {
    /// Splits the words after the first `--` into commands; `first` is the name before it.
    ///
    /// If there is a name, each further `--variant NAME --` begins the next command, and no command can have a word `--variant`
    /// of its own: otherwise a forgotten `--` would join two commands.
    pub(super) fn split(first: Option<&str>, words: &[String]) -> Result<Vec<Self>, Failure> {
        let mut variants = vec![Self {
            name: first.map(str::to_owned),
            ..Self::default()
        }];
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(name) = next_name(word, &mut words.clone()) else {
                if let Some(variant) = variants.last_mut() {
                    variant.command.push(word.clone());
                }
                continue;
            };
            let separated = name.as_ref().is_some_and(|name| name.separated);
            match name {
                // The command may have an option of that name.
                _ if first.is_none() && !separated => variants[0].command.push(word.clone()),
                Some(name) if first.is_none() => {
                    let why = format!(
                        "the command before {} has no name; begin with {OPTION} NAME --",
                        name.text
                    );
                    return Err(Failure::option(OPTION, why));
                }
                Some(name) if separated => {
                    // Skip the name, unless it is part of this word, and `--`.
                    words.nth(name.words);
                    variants.push(Self {
                        name: Some(name.text),
                        ..Self::default()
                    });
                }
                _ => {
                    return Err(Failure::option(
                        OPTION,
                        "must be followed by a name, -- and a command",
                    ));
                }
            }
        }
        for (i, variant) in variants.iter().enumerate() {
            variant.check_name(&variants[..i])?;
        }
        Ok(variants)
    }

    fn bad(&self, why: &str) -> Result<(), Failure> {
        match &self.name {
            Some(name) => Err(Failure::option(OPTION, format!("{name}: {why}"))),
            None => Err(Failure::option("COMMAND", why)),
        }
    }

    fn check_name(&self, before: &[Self]) -> Result<(), Failure> {
        if let Some(name) = &self.name {
            // The name becomes that of a folder, and must not look like an option or be that of the plan.
            if !name.starts_with(|c: char| c.is_ascii_alphanumeric())
                || !name.chars().all(fits_folders)
            {
                return self.bad(
                    "a name must begin with a letter or digit, and contain only those and . _ + = @ -",
                );
            }
            if name.eq_ignore_ascii_case(PLAN_FILE) {
                return self.bad("this name is reserved for a file");
            }
            // Some file systems ignore case.
            let same = |other: &Self| {
                other
                    .name
                    .as_ref()
                    .is_some_and(|other| other.eq_ignore_ascii_case(name))
            };
            if before.iter().any(same) {
                return self.bad("this name is given twice");
            }
        }
        Ok(())
    }

    fn check_command(&self) -> Result<(), Failure> {
        match self.command.first().map(String::as_str) {
            None | Some("") => return self.bad("no command after --"),
            Some(program) if find(program).is_none() => {
                return self.bad(&format!("{program}: program not found"));
            }
            Some(_) => {}
        }
        let has = |what: &str| self.command.iter().any(|word| word.contains(what));
        if self.timing.is_none() && has(OUT) && !has(LAUNCH) {
            return self
                .bad("contains {out} but not {launch}: every launch needs a record of its own");
        }
        Ok(())
    }

    /// Names the variant by values of its parameters, too: `a,size=4,ranks=2`.
    fn at(self, combination: &[(&str, &str)]) -> Self {
        let values = combination
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let names: Vec<String> = self.name.iter().cloned().chain(values).collect();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            name: (!names.is_empty()).then(|| names.join(",")),
            parameters: combination.iter().map(owned).collect(),
            ..self
        }
    }

    /// Returns the folder of the records.
    pub(super) fn folder(&self, out: &Path) -> PathBuf {
        self.name
            .as_ref()
            .map_or_else(|| out.to_owned(), |name| out.join(name))
    }

    /// Returns the words to show for the launch of this name: those of the user, if it is timed.
    pub(super) fn shown(&self, out: &Path, launch: &str) -> Vec<String> {
        match &self.timing {
            Some(_) => self.command.clone(),
            None => self.words(out, launch),
        }
    }

    /// Returns the words of the command for the launch of this name.
    pub(super) fn words(&self, out: &Path, launch: &str) -> Vec<String> {
        let folder = self.folder(out).display().to_string();
        if let Some(timing) = &self.timing {
            return timing.words(&folder, launch, self.parameters.iter(), &self.command);
        }
        if self.command.iter().any(|word| word.contains(LAUNCH)) {
            // One pass, since the name of a folder may contain {launch}.
            let parts = |word: &String| {
                word.split(LAUNCH)
                    .map(|part| part.replace(OUT, &folder))
                    .collect::<Vec<_>>()
                    .join(launch)
            };
            return self.command.iter().map(parts).collect();
        }
        let appended = ["--out", &folder, "--launch", launch].map(str::to_owned);
        self.command.iter().cloned().chain(appended).collect()
    }
}

const OUT: &str = "{out}";
const LAUNCH: &str = "{launch}";

/// Name of a variant after `--variant`.
struct VariantName {
    text: String,
    /// Number of words after `--variant` that it takes.
    words: usize,
    /// True if `--` follows.
    separated: bool,
}

/// Reads the name after `--variant`. `None` if the word is not `--variant`; `Some(None)` if nothing follows it.
fn next_name<'a>(
    word: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Option<Option<VariantName>> {
    let (text, words) = match word.strip_prefix(OPTION)? {
        "" => match rest.next() {
            None => return Some(None),
            Some(name) => (name.clone(), 1),
        },
        same_word => (same_word.strip_prefix('=')?.to_owned(), 0),
    };
    Some(Some(VariantName {
        text,
        words,
        separated: rest.next().is_some_and(|word| word == "--"),
    }))
}

/// Finds a program as a shell does.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let runs = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(runs)
}

/// Quotes words for a shell.
pub(crate) fn quoted(words: &[String]) -> String {
    let quoter = shlex::Quoter::new().allow_nul(true);
    quoter
        .join(words.iter().map(String::as_str))
        .unwrap_or_else(|_| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the commands as in `a: ls -l; b: sh`, or the error.
    fn split(first: Option<&str>, text: &str) -> String {
        let shown = |variant: Variant| {
            variant.name.map(|name| name + ": ").unwrap_or_default() + &variant.command.join(" ")
        };
        match variants(first, &words(text), &[], None) {
            Ok(variants) => variants
                .into_iter()
                .map(shown)
                .collect::<Vec<_>>()
                .join("; "),
            Err(Failure::Input(why)) => why,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn commands_are_split_where_a_variant_begins() {
        assert_eq!(split(None, "ls -l -- x"), "ls -l -- x");
        assert_eq!(
            split(Some("a"), "ls -- x --variant b -- sh"),
            "a: ls -- x; b: sh"
        );
        assert_eq!(
            split(Some("a"), "ls --variant=b -- sh --variant c-1.0 -- cat"),
            "a: ls; b: sh; c-1.0: cat"
        );
        // Without a first name, `--variant` may be an option of the command.
        assert_eq!(
            split(None, "ls --variant x --variant"),
            "ls --variant x --variant"
        );
        assert_eq!(split(None, "ls --variants -- x"), "ls --variants -- x");
    }

    #[test]
    fn invalid_variants_are_refused() {
        for (first, text, why) in [
            (None, "", "COMMAND: no command after --"),
            (
                None,
                "ls --variant b -- sh",
                "--variant: the command before b has no name; begin with --variant NAME --",
            ),
            (
                Some("a"),
                "ls --variant b sh",
                "--variant: must be followed by a name, -- and a command",
            ),
            (
                Some("a"),
                "ls --variant",
                "--variant: must be followed by a name, -- and a command",
            ),
            (
                Some("a"),
                "ls --variant b --",
                "--variant: b: no command after --",
            ),
            (
                Some("a"),
                "--variant b -- ls",
                "--variant: a: no command after --",
            ),
            (
                Some("a"),
                "ls --variant A -- sh",
                "--variant: A: this name is given twice",
            ),
            (
                Some("Plan.json"),
                "ls",
                "--variant: Plan.json: this name is reserved for a file",
            ),
            (
                None,
                "no-such-program x",
                "COMMAND: no-such-program: program not found",
            ),
            (None, "/ x", "COMMAND: /: program not found"),
            (
                None,
                "ls {out}/x",
                "COMMAND: contains {out} but not {launch}: every launch needs a record of its own",
            ),
        ] {
            assert_eq!(split(first, text), why);
        }
        for name in ["", "a/b", "..", ".a", "-a", "a b", "é", "a\n"] {
            assert!(
                split(Some(name), "ls").contains("begin with a letter or digit"),
                "{name}"
            );
        }
    }

    #[test]
    fn a_command_receives_the_path_of_its_record() {
        let launched = |name: Option<&str>, text: &str, out: &str| {
            let variant = Variant {
                name: name.map(str::to_owned),
                command: words(text),
                ..Variant::default()
            };
            variant.words(Path::new(out), "launch-007").join(" ")
        };
        assert_eq!(
            launched(None, "p x", "d"),
            "p x --out d --launch launch-007"
        );
        assert_eq!(
            launched(Some("a"), "p x", "d"),
            "p x --out d/a --launch launch-007"
        );
        assert_eq!(
            launched(Some("a"), "p {out}/{launch}.csv {out}", "d"),
            "p d/a/launch-007.csv d/a"
        );
        assert_eq!(
            launched(None, "p {out}/{launch}", "{launch}/{out}"),
            "p {launch}/{out}/launch-007"
        );
    }
}
