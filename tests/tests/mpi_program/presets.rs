//! The calls of every preset are those of its suite, whose sources `tests/golden/presets.py` states; and of the suites themselves, where
//! variables name the folders of their programs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::finish;

use crate::job::{Failure, Jobs, LIMIT, expect, is_long, test};

/// Presets, with options that shorten measurements whose number of calls depends on time.
const PRESETS: [(&str, &str); 9] = [
    ("osu", ""),
    ("imb", ""),
    ("imb-4.0", ""),
    ("phloem", ""),
    ("phloem-1.6", ""),
    ("skampi", "--window 20ms --reps 8"),
    ("mpptest", "--stop near/0.5/3/4/8"),
    ("reprompi", "--time-slice 500ms"),
    ("reprompi-2018", "--time-slice 500ms"),
];

#[test]
fn calls_are_those_of_the_suite() -> Result<(), Failure> {
    test("presets", |jobs| {
        let log = CallLog::build(jobs)?;
        let all = PRESETS.iter().map(|(preset, short)| {
            let golden = Golden::read(preset)?;
            let sizes = golden.sizes();
            for operations in ["bcast,reduce,allreduce,allgather,alltoall", "barrier"] {
                let arguments =
                    format!("bench --as {preset} --operation {operations} --sizes {sizes} {short}");
                let program = jobs.program().to_owned();
                let calls = log.of(jobs, &program, &arguments)?;
                golden.check(&calls, |operation| {
                    operations.split(',').any(|one| one == operation)
                })?;
            }
            Ok(())
        });
        all_passed(all)
    })
}

/// Name of the program of an operation.
type ProgramName = fn(&str) -> String;

/// Suites, the variables that name the folders of their programs, and the commands of an operation, whose name `OPERATION` is, and of
/// one size, which is `BYTES`.
const INSTALLED: [(&str, &str, &str, ProgramName); 3] = [
    ("osu", "OSU_DIR", "-m BYTES:BYTES", |operation| {
        format!("osu_{operation}")
    }),
    (
        "imb",
        "IMB_DIR",
        "OPERATION -npmin 2 -msglog LOG:LOG",
        |_| "IMB-MPI1".to_owned(),
    ),
    (
        "reprompi",
        "REPROMPI_DIR",
        "--calls-list=MPI_OPERATION --msizes-list=BYTES --nrep=50 --proc-sync=roundtime --rt-bench-time-ms=500",
        |_| "mpibenchmark".to_owned(),
    ),
];

#[test]
fn calls_of_installed_suites_are_as_stated() -> Result<(), Failure> {
    test("installed-suites", |jobs| {
        let log = CallLog::build(jobs)?;
        for (suite, variable, arguments, program) in INSTALLED {
            let Some(folder) = env::var_os(variable) else {
                continue;
            };
            let golden = Golden::read(suite)?;
            for (operation, bytes, _) in golden
                .wanted()
                .filter(|(operation, ..)| *operation != "barrier")
            {
                let mut capital = operation.to_owned();
                capital[..1].make_ascii_uppercase();
                let arguments = arguments
                    .replace("OPERATION", &capital)
                    .replace("BYTES", &bytes.to_string())
                    .replace("LOG", &bytes.ilog2().to_string());
                let program = Path::new(&folder).join(program(operation));
                let mut calls = log.of(jobs, &program, &arguments)?;
                if suite == "reprompi" {
                    // It calls its barriers by names that a log lacks.
                    calls.retain(|call| call != "barrier");
                    calls = calls
                        .iter()
                        .flat_map(|call| [call.clone(), "barrier".to_owned()])
                        .collect();
                }
                golden.check(&calls, |one| one == operation)?;
            }
        }
        Ok(())
    })
}

fn all_passed(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let failed: Vec<String> = outcomes.filter_map(Result::err).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(failed.join("; ")),
    }
}

/// Library that logs the collective calls of rank 0.
struct CallLog(PathBuf);

impl CallLog {
    fn build(jobs: &Jobs) -> Result<Self, String> {
        let library = jobs.folder.join("call_log.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("call_log/call_log.c");
        let mut compiler = Command::new(format!("mpicc.{}", jobs.library.suffix()));
        compiler.args(["-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o"]);
        compiler.arg(&library).arg(source);
        let built = finish(LIMIT, &mut compiler)?;
        expect(built.code == Some(0), &built, "a library that logs calls")?;
        Ok(Self(library))
    }

    /// Returns the calls of rank 0 of two ranks.
    fn of(&self, jobs: &Jobs, program: &Path, arguments: &str) -> Result<Vec<String>, String> {
        let log = jobs.folder.join("calls");
        let mut mpirun = jobs.mpirun_program(2, program, arguments, &self.0);
        let job = finish(LIMIT, mpirun.env("CALL_LOG", &log))?;
        expect(
            job.code == Some(0),
            &job,
            &format!("exit code 0 of `{arguments}`"),
        )?;
        let calls = fs::read_to_string(&log).map_err(|why| format!("{}: {why}", log.display()))?;
        Ok(calls.lines().map(str::to_owned).collect())
    }
}

/// Calls that a suite makes, from the first of an operation to the last.
struct Golden {
    name: String,
    text: String,
}

impl Golden {
    fn read(preset: &str) -> Result<Self, String> {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/presets/{preset}.txt"));
        let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        match text.starts_with("# downbeat calls 1\n") {
            true => Ok(Self {
                name: preset.to_owned(),
                text,
            }),
            false => Err(format!("{}: another version", path.display())),
        }
    }

    /// Returns the operations, sizes, and calls; some sizes unless in a long run.
    fn wanted(&self) -> impl Iterator<Item = (&str, u64, Vec<Step<'_>>)> {
        let lines = self.text.lines().filter(|line| !line.starts_with('#'));
        let parts = lines.filter_map(|line| {
            let (key, calls) = line.split_once(": ")?;
            let (operation, bytes) = key.split_once(' ')?;
            Some((
                operation,
                bytes.parse().ok()?,
                steps(&mut calls.split_whitespace()),
            ))
        });
        parts.filter(|(_, bytes, _)| is_long() || [0, 8, 1 << 20].contains(bytes))
    }

    fn sizes(&self) -> String {
        let mut sizes: Vec<u64> = self
            .wanted()
            .map(|(_, bytes, _)| bytes)
            .filter(|bytes| *bytes > 0)
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        sizes.join(",")
    }

    /// Compares a log of several operations and sizes.
    fn check(&self, log: &[String], is_wanted: impl Fn(&str) -> bool) -> Outcome {
        let wanted = self.wanted().filter(|(operation, ..)| is_wanted(operation));
        all_passed(wanted.map(|(operation, bytes, expected)| {
            let known: Vec<&str> = expected.iter().flat_map(Step::calls).copied().collect();
            let is_call = |call: &&str| {
                known.contains(call) && (operation == "barrier" || *call != "barrier")
            };
            let of_key: Vec<&str> = log.iter().map(String::as_str).collect();
            let (first, last) = (
                of_key.iter().position(is_call),
                of_key.iter().rposition(is_call),
            );
            let found: Vec<&str> = match first.zip(last) {
                Some((first, last)) => of_key[first..=last]
                    .iter()
                    .copied()
                    .filter(|call| known.contains(call) || *call == "barrier")
                    .collect(),
                None => Vec::new(),
            };
            match matches(&expected, &found) {
                true => Ok(()),
                false => Err(format!(
                    "{}: {operation} of {bytes} bytes: the calls are {}; all: {}",
                    self.name,
                    shorten(&found),
                    shorten(&of_key)
                )),
            }
        }))
    }
}

/// Calls that must follow each other.
enum Step<'a> {
    Once(&'a str),
    AnyNumber(Vec<&'a str>),
}

impl<'a> Step<'a> {
    fn calls(&self) -> &[&'a str] {
        match self {
            Self::Once(call) => std::slice::from_ref(call),
            Self::AnyNumber(calls) => calls,
        }
    }
}

/// Parses `N( calls )`, `*( calls )` and calls up to a closing parenthesis.
fn steps<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<Step<'a>> {
    let mut found = Vec::new();
    while let Some(word) = words.next().filter(|word| *word != ")") {
        match word.strip_suffix('(') {
            None => found.push(Step::Once(word)),
            Some(count) => {
                let inner = steps(words);
                let inner: Vec<&str> = inner.iter().flat_map(Step::calls).copied().collect();
                match count.parse() {
                    Ok(count) => {
                        let all: Vec<&str> = inner.repeat(count);
                        found.extend(all.into_iter().map(Step::Once));
                    }
                    Err(_) => found.push(Step::AnyNumber(inner)),
                }
            }
        }
    }
    found
}

fn matches(mut steps: &[Step<'_>], mut calls: &[&str]) -> bool {
    while let Some((first, rest)) = steps.split_first() {
        match first {
            Step::Once(call) if calls.first() == Some(call) => calls = &calls[1..],
            Step::Once(_) => return false,
            Step::AnyNumber(repeated) => {
                let most = calls
                    .chunks(repeated.len())
                    .take_while(|chunk| chunk == repeated)
                    .count();
                let mut numbers = (0..=most).rev();
                return numbers.any(|number| matches(rest, &calls[number * repeated.len()..]));
            }
        }
        steps = rest;
    }
    calls.is_empty()
}

/// Writes repeated calls and pairs of calls once, with their number.
fn shorten(calls: &[&str]) -> String {
    let mut text = String::new();
    let mut rest = calls;
    while !rest.is_empty() && text.len() < 1_000 {
        let count = |width: usize| {
            rest.chunks(width)
                .take_while(|chunk| *chunk == &rest[..width.min(rest.len())])
                .count()
        };
        let width = if count(1) == 1 && count(2) > 1 { 2 } else { 1 };
        let times = count(width);
        text += &format!("{times}( {} ) ", rest[..width].join(" "));
        rest = &rest[times * width..];
    }
    text
}
