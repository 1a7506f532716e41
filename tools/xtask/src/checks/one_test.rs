//! Steps that run one test each: rules of the project, which are tests of this package,
//! and tests of an installation, which `downbeat-tests` holds.

use std::fs;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, OPEN_MPI};
use downbeat_launch::{Outcome, environment};

use crate::args::{Depth, Installation};
use crate::checks::setup::COMPONENTS;
use crate::install::{Builds, Installer};
use crate::mpi_builds::{INSTALLED_TESTS, programs, yielding};
use crate::programs::restore_environment;
use crate::steps::{Lane, Step};
use crate::workspace::Workspace;

/// The test target with the rules of the project.
pub(crate) const PROJECT_TESTS: &str = "project";

/// Names of steps of one lane, with the least extent of a run that has them.
type NamedTests = (Lane, Depth, &'static [&'static str]);

/// Rules for texts, which need nothing that is built.
const TEXTS: [NamedTests; 2] = [
    (
        Lane::Compute,
        Depth::Quick,
        &[
            "paths in the documents exist",
            "links of the documents",
            "doc comments",
            "import cycles",
            "project: helpers of its tests",
        ],
    ),
    (Lane::Compute, Depth::Long, &["book"]),
];

/// Rules for crates.
const CRATES: [NamedTests; 3] = [
    (
        Lane::Compile,
        Depth::Quick,
        &[
            "no_std: the probe names every crate that promises it",
            "no_std: the probe links without std",
            "no_std: the probe fails with a dependency on std",
            "no_std: checked where there is only core",
            "no_std: that check fails for a crate with std",
        ],
    ),
    (
        Lane::Compile,
        Depth::Normal,
        &[
            "published packages: contents",
            "published packages: lock file of a user",
        ],
    ),
    (
        Lane::Compile,
        Depth::Long,
        &[
            "published packages: front pages",
            "published packages: dry run, verified",
            "published packages: dry run with MPI, verified",
        ],
    ),
];

const INSTALL: &str = "libdownbeat: install";
const DEBIAN: &str = "package: Debian";
/// It waits for [`DEBIAN`], which makes its Debian.
const CONTAINER: &str = "package: container";

/// Tests of an installation, and of packages. Those that mostly wait, and those on emulated
/// hosts, are in the lane that waits.
const INSTALLED: [NamedTests; 5] = [
    (
        Lane::Ranks,
        Depth::Normal,
        &[
            "libdownbeat: helpers of its tests",
            "libdownbeat: programs without MPI",
            "libdownbeat: CMake",
            "libdownbeat: programs over Open MPI",
            "libdownbeat: programs traced over Open MPI",
            "libdownbeat: real programs traced",
            "libdownbeat: regions of a traced program",
            "libdownbeat: traced with artificial errors",
            "libdownbeat: traced with little memory",
            "libdownbeat: the mini application recorded",
            "libdownbeat: traces of programs that are killed",
            "libdownbeat: traced without memory or a disk",
            "libdownbeat: calls that fail under the tracer",
        ],
    ),
    (
        Lane::Wait,
        Depth::Normal,
        &[
            "libdownbeat: MPI_Wtime of several hosts",
            "libdownbeat: traced over several hosts",
        ],
    ),
    (
        Lane::Ranks,
        Depth::Long,
        &[
            "libdownbeat: programs over MPICH",
            "libdownbeat: programs traced over MPICH",
            "libdownbeat: memory of programs without MPI",
            "libdownbeat: memory of programs over Open MPI",
            "libdownbeat: memory of programs over MPICH",
            "libdownbeat: traced over Open MPI under valgrind",
            "libdownbeat: traced over MPICH under valgrind",
            "libdownbeat: traced over Open MPI with sanitizers",
            "libdownbeat: traced over MPICH with sanitizers",
        ],
    ),
    (
        Lane::Wait,
        Depth::Long,
        &[
            "libdownbeat: lines of the documents",
            "libdownbeat: starts of the README",
            "libdownbeat: traced under Slurm",
            "libdownbeat: pictures of a traced program",
            CONTAINER,
        ],
    ),
    (
        Lane::Compile,
        Depth::Long,
        &["package: static", DEBIAN, "OTF2's Python module"],
    ),
];

/// End of the names of steps that test what other tests call.
const HELPERS: &str = "helpers of its tests";

/// Beginning of the names of steps that need the installation.
const LIBRARY: &str = "libdownbeat: ";
/// Folder of the installation, below the target directory.
const PREFIX: &str = "installed/prefix";

/// Time limit of a test, whose commands have limits of their own.
const LIMIT: Duration = Duration::from_secs(3 * 60 * 60);

/// Steps for texts.
pub(crate) fn text_steps<'a>(depth: Depth) -> impl Iterator<Item = Step<'a>> {
    selected(&TEXTS, depth).map(|(lane, name)| project_step(name).in_lane(lane, &[COMPONENTS]))
}

/// Steps for crates.
pub(crate) fn crate_steps<'a>(depth: Depth) -> impl Iterator<Item = Step<'a>> {
    selected(&CRATES, depth).map(|(_, name)| project_step(name))
}

/// The installation, and the steps that test it.
pub(crate) fn installed_steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let install = Step::new(INSTALL, move || {
        install(workspace, depth)?;
        test_installed(workspace, depth, INSTALL)
    });
    let tests = selected(&INSTALLED, depth).map(|(lane, name)| {
        let step = Step::new(name, move || test_installed(workspace, depth, name));
        match name {
            CONTAINER => step.in_lane(lane, &[INSTALL, DEBIAN]),
            _ => step.in_lane(lane, &[INSTALL]),
        }
    });
    [install].into_iter().chain(tests).collect()
}

fn selected(
    tests: &'static [NamedTests],
    depth: Depth,
) -> impl Iterator<Item = (Lane, &'static str)> {
    let tests = tests.iter().filter(move |(_, from, _)| *from <= depth);
    tests.flat_map(|(lane, _, names)| names.iter().map(|name| (*lane, *name)))
}

/// A rule, where cargo has built this program.
fn project_step<'a>(name: &'static str) -> Step<'a> {
    Step::new(name, move || {
        let words = format!("cargo test --quiet --package xtask --test {PROJECT_TESTS} --");
        run_test(command(&words), name)
    })
}

/// Installs everything, as the tests need it.
fn install(workspace: &Workspace, depth: Depth) -> Outcome {
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
    let installer = Installer {
        workspace,
        wanted: &wanted,
        builds,
    };
    installer.install_all()
}

fn test_installed(workspace: &Workspace, depth: Depth, name: &str) -> Outcome {
    let tests = programs(OPEN_MPI, workspace)?.executable(INSTALLED_TESTS)?;
    let mut tests = Command::new(tests);
    if name.starts_with(LIBRARY) {
        tests.env(environment::INSTALLED, workspace.absolute(PREFIX)?);
        if let Some(library) = yielding(MPICH, &programs(MPICH, workspace)?)? {
            tests.env(environment::YIELD, library);
        }
    }
    if depth == Depth::Long {
        tests.env(environment::LONG, "1");
    }
    run_test(tests, name)
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
    shell::run_within(LIMIT, tests.arg("--nocapture"))
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

    #[test]
    fn every_test_is_a_step() {
        let tests_of = |tests: &'static [NamedTests]| {
            let names = selected(tests, Depth::Long).map(|(_, name)| name);
            names.filter(|name| !name.ends_with(HELPERS)).map(test_name)
        };
        let project: BTreeSet<String> = tests_of(&TEXTS).chain(tests_of(&CRATES)).collect();
        assert_eq!(project, tests_in("tests/project/main.rs"));
        let installed = tests_of(&INSTALLED).chain([test_name(INSTALL)]);
        let installed: BTreeSet<String> = installed.collect();
        assert_eq!(installed, tests_in("../../tests/tests/installed/main.rs"));
    }
}
