//! Steps of the list `steps.txt`: each is one test, or some commands.

use std::fs;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, environment};

use crate::args::{Depth, Installation};
use crate::checks::mpi::{BATCH_JOBS, test_module};
use crate::checks::setup::COMPONENTS;
use crate::install::{Builds, Installer};
use crate::mpi_builds::{INSTALLED_TESTS, build_step, programs, select_everything, yielding};
use crate::programs::restore_environment;
use crate::steps::{Lane, Step, refuse_no_tests};
use crate::workspace::{Package, Workspace, host};

const LIST: &str = include_str!("steps.txt");

/// The test target with the rules of the project.
pub(crate) const PROJECT_TESTS: &str = "project";

const INSTALL: &str = "libdownbeat: install";
/// Beginning of the names of steps that need the installation.
const LIBRARY: &str = "libdownbeat: ";
/// Folder of the installation, below the target directory.
const PREFIX: &str = "installed/prefix";
/// Beginning of the names of steps that test a module of the MPI program's tests.
const MPI_MODULE: &str = "MPI program: ";
/// End of the names of steps that test what other tests call.
const HELPERS: &str = "helpers of its tests";

const DEBIAN: &str = "package: Debian";
/// It waits for [`DEBIAN`], which makes its Debian.
const CONTAINER: &str = "package: container";

/// Time limit of a test, whose commands have limits of their own.
const TEST_LIMIT: Duration = Duration::from_secs(3 * 60 * 60);
/// Time limit of a command of a long run: tests that are interpreted or instrumented are
/// slow.
const LONG_LIMIT: Duration = Duration::from_secs(40 * 60);

/// A step of the list.
struct ListedStep {
    from: Depth,
    lane: Lane,
    name: String,
    check: ListedCheck,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ListedCheck {
    /// The test of this name in the project's tests.
    Project,
    /// The test of this name in those of an installation.
    Installed,
    /// The module of this name in the MPI program's tests, with the names of libraries.
    MpiProgram(Vec<String>),
    Commands(Vec<String>),
}

/// Returns the steps of a run: those that need nothing that is built, and the others.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> [Vec<Step<'_>>; 2] {
    let wanted = read_list().into_iter().filter(|step| step.from <= depth);
    let (first, later): (Vec<_>, Vec<_>) = wanted.partition(|step| step.lane == Lane::Compute);
    [first, later].map(|listed| {
        let steps = listed.into_iter();
        steps.map(|step| step_of(workspace, depth, step)).collect()
    })
}

fn step_of(workspace: &Workspace, depth: Depth, listed: ListedStep) -> Step<'_> {
    let ListedStep {
        from,
        lane,
        name,
        check,
    } = listed;
    let limit = match from {
        Depth::Long => LONG_LIMIT,
        _ => shell::LIMIT,
    };
    let mut awaited = match &check {
        ListedCheck::Installed => vec![INSTALL.to_owned()],
        ListedCheck::MpiProgram(names) => {
            let libraries = libraries_of(names, depth).into_iter();
            libraries.map(build_step).collect()
        }
        _ if lane == Lane::Compute => vec![COMPONENTS.to_owned()],
        _ => vec![],
    };
    awaited.extend((name == CONTAINER).then(|| DEBIAN.to_owned()));
    awaited.extend(name.ends_with(BATCH_JOBS).then(|| build_step(MPICH)));
    let step = Step::new(name.clone(), move || match check {
        ListedCheck::Project => test_project(&name),
        ListedCheck::Installed => test_installed(workspace, depth, &name),
        ListedCheck::MpiProgram(names) => {
            let module = name.strip_prefix(MPI_MODULE).unwrap_or(&name);
            test_module(workspace, depth, module, &libraries_of(&names, depth))
        }
        ListedCheck::Commands(commands) => commands.iter().try_for_each(|words| {
            let mut command = expand(workspace, depth, words)?;
            let written = shell::show_and_read_all(limit, &mut command)?;
            refuse_no_tests(&format!("`{words}`"), &written)
        }),
    });
    step.in_lane(lane, &awaited)
}

/// Reads all lines of the list.
fn read_list() -> Vec<ListedStep> {
    let list = LIST.replace("\n    ", " ");
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(read_step).collect()
}

fn read_step(line: &str) -> Option<ListedStep> {
    let (words, check) = line.split_once(" = ")?;
    let (from, words) = words.split_once(' ')?;
    let (lane, name) = words.split_once(' ')?;
    let from = match from {
        "quick" => Depth::Quick,
        "normal" => Depth::Normal,
        "long" => Depth::Long,
        _ => return None,
    };
    let label = format!("lane {lane}");
    let split = |text: &str, at: &str| text.split(at).map(str::to_owned).collect();
    let check = match check.trim() {
        "project" => ListedCheck::Project,
        "installed" => ListedCheck::Installed,
        check => match check.strip_prefix("mpi_program ") {
            Some(names) => ListedCheck::MpiProgram(split(names, " ")),
            None => ListedCheck::Commands(split(check, " && ")),
        },
    };
    Some(ListedStep {
        from,
        lane: Lane::ALL.into_iter().find(|lane| lane.label() == label)?,
        name: name.to_owned(),
        check,
    })
}

/// Returns the MPI libraries under which a module is tested.
fn libraries_of(names: &[String], depth: Depth) -> Vec<MpiLibrary> {
    let names = names.iter().map(String::as_str);
    let names = names.filter_map(|name| match name.strip_prefix("long:") {
        Some(name) => (depth == Depth::Long).then_some(name),
        None => Some(name),
    });
    names.filter_map(MpiLibrary::with_suffix).collect()
}

/// Replaces the words of the list in capital letters.
fn expand(workspace: &Workspace, depth: Depth, words: &str) -> Result<Command, String> {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    let select = |command: &mut Command, is_selected: fn(&&Package) -> bool| {
        let packages = workspace.packages.iter().filter(is_selected);
        command.args(packages.flat_map(|package| ["-p", &package.name]));
    };
    for word in words {
        match word {
            "EVERYTHING" => select_everything(&mut command, workspace, depth),
            "PUBLISHED" => select(&mut command, |package| package.is_published()),
            "NO_STD" => select(&mut command, |package| package.is_no_std()),
            _ if word.contains("HOST") => {
                command.arg(word.replace("HOST", &host()?));
            }
            _ => match word.strip_prefix("TARGET/") {
                Some(folder) => drop(command.arg(workspace.built(folder))),
                None => drop(command.arg(word)),
            },
        }
    }
    Ok(command)
}

/// The installation that many tests of the list need, as tests build it, and its first
/// test.
pub(crate) fn install_step(workspace: &Workspace, depth: Depth) -> Step<'_> {
    Step::new(INSTALL, move || {
        let wanted = Installation {
            mpi: vec![OPEN_MPI, MPICH],
            fortran: true,
            ..Installation::new(workspace.absolute(PREFIX)?)
        };
        // If this fails, the steps that need it fail, too.
        let _ = fs::remove_dir_all(&wanted.prefix);
        let builds = match depth {
            Depth::Long => Builds::TestedLong,
            _ => Builds::Tested,
        };
        Installer::new(workspace, &wanted, builds).install_all()?;
        test_installed(workspace, depth, INSTALL)
    })
}

fn test_project(step: &str) -> Outcome {
    // Where cargo has built this program.
    let words = format!("cargo test --quiet --package xtask --test {PROJECT_TESTS} --");
    run_test(command(&words), step)
}

fn test_installed(workspace: &Workspace, depth: Depth, step: &str) -> Outcome {
    let tests = programs(OPEN_MPI, workspace)?.executable(INSTALLED_TESTS)?;
    let mut tests = Command::new(tests);
    if step.starts_with(LIBRARY) {
        tests.env(environment::INSTALLED, workspace.absolute(PREFIX)?);
        if let Some(library) = yielding(MPICH, &programs(MPICH, workspace)?)? {
            tests.env(environment::YIELD, library);
        }
    }
    tests.envs(depth.variable());
    run_test(tests, step)
}

/// Runs the test of a step.
fn run_test(mut tests: Command, step: &str) -> Outcome {
    if step.ends_with(HELPERS) {
        tests.arg("::tests::");
    } else {
        tests.args(["--exact", "--include-ignored", &test_name(step)]);
    }
    // Tests start cargo as a person does.
    restore_environment(&mut tests);
    let outcome = shell::run_within(TEST_LIMIT, tests.arg("--nocapture"));
    outcome.map_err(|why| begin_with_panic(&why))
}

/// Puts what a test said when it panicked before all other output.
fn begin_with_panic(why: &str) -> String {
    let mut lines = why.lines().skip_while(|line| !line.contains("panicked at"));
    match lines.nth(1) {
        Some(said) => format!("{said}\n{why}"),
        None => why.to_owned(),
    }
}

/// Returns the name of the test of a step: `cmake` for `libdownbeat: CMake`.
fn test_name(step: &str) -> String {
    let name = step.strip_prefix(LIBRARY).unwrap_or(step).to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Reads the names of the tests in a file that are in no module.
    fn tests_in(file: &str) -> BTreeSet<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(path).unwrap();
        let tests = text.split("#[test]\n").skip(1);
        let functions = tests.map(|rest| rest.split_once("fn ").unwrap().1);
        let names = functions.map(|rest| rest.split_once('(').unwrap().0.to_owned());
        names.collect()
    }

    fn tests_of_steps(target: &ListedCheck) -> BTreeSet<String> {
        let steps = read_list().into_iter();
        let names = steps.filter_map(|step| (step.check == *target).then_some(step.name));
        let names = names.filter(|name| !name.ends_with(HELPERS));
        names.map(|name| test_name(&name)).collect()
    }

    #[test]
    fn the_reason_of_a_failure_comes_first() {
        let why = "exit status: 101, after these lines:\nrunning\n\nthread 'a' panicked at b.rs:1:2:\nno file\nnote: c";
        assert_eq!(begin_with_panic(why), format!("no file\n{why}"));
        assert_eq!(begin_with_panic("exit status: 1"), "exit status: 1");
    }

    #[test]
    fn every_test_is_a_step() {
        let project = tests_in("tests/project/main.rs");
        assert_eq!(project, tests_of_steps(&ListedCheck::Project));
        let mut installed = tests_of_steps(&ListedCheck::Installed);
        installed.insert(test_name(INSTALL));
        assert_eq!(installed, tests_in("../../tests/tests/installed/main.rs"));
    }

    #[test]
    fn every_module_is_a_step() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = path.join("../../tests/tests/mpi_program/main.rs");
        let main = fs::read_to_string(path).unwrap();
        let modules = main.lines().filter_map(|line| line.strip_prefix("mod "));
        let modules = modules.map(|line| line.trim_end_matches(';').to_owned());
        let modules: BTreeSet<String> = modules.filter(|module| module != "job").collect();
        let steps = read_list().into_iter();
        let steps = steps.filter(|step| matches!(step.check, ListedCheck::MpiProgram(_)));
        let steps: BTreeSet<String> = steps
            .map(|step| step.name.replace(MPI_MODULE, ""))
            .collect();
        assert_eq!(modules, steps);
    }

    #[test]
    fn libraries_of_long_runs_are_left_out_in_others() {
        let step = read_step("normal ranks MPI program: a = mpi_program openmpi long:mpich");
        let ListedCheck::MpiProgram(names) = step.unwrap().check else {
            panic!("no module");
        };
        assert_eq!(libraries_of(&names, Depth::Normal), [OPEN_MPI]);
        assert_eq!(libraries_of(&names, Depth::Long), [OPEN_MPI, MPICH]);
    }

    #[test]
    fn every_line_of_the_list_is_read() {
        let joined = LIST.replace("\n    ", " ");
        let lines = joined.lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), read_list().len());
        for name in [DEBIAN, CONTAINER] {
            assert!(read_list().iter().any(|step| step.name == name), "{name}");
        }
    }

    #[test]
    fn words_in_capital_letters_are_replaced() {
        let workspace = Workspace::read().unwrap();
        let words = "cargo check --target HOST --target-dir TARGET/targets NO_STD -- -D warnings";
        let command = expand(&workspace, Depth::Normal, words).unwrap();
        let shown = shell::shown(&command);
        assert!(
            shown.ends_with("-p downbeat-clock-core -p downbeat-timers -- -D warnings"),
            "{shown}"
        );
        let host = host().unwrap();
        assert!(
            shown.starts_with(&format!("cargo check --target {host} --target-dir ")),
            "{shown}"
        );
    }
}
