//! Lines for a shell in the documents, run as they stand.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{self, Command};
use std::time::Duration;

use downbeat_launch::command as shell;
use downbeat_launch::mpi::OPEN_MPI;
use downbeat_launch::{Outcome, all_passed};

use crate::tree::InstalledTree;

const LIMIT: Duration = Duration::from_secs(600);
/// Limit for lines that build both programs.
const LIMIT_OF_STARTS: Duration = Duration::from_secs(1_800);
/// Folder of recordings in the lines.
const RECORDING: &str = "run/";

/// Pages whose lines are run.
const PAGES: [&str; 7] = [
    "docs/tracing.md",
    "docs/node.md",
    "docs/benchmark.md",
    "docs/correct.md",
    "docs/regions.md",
    "docs/algorithms.md",
    "docs/clusters.md",
];

/// Runs all lines of each page in an empty home, where the installed tree is in the
/// folder that the pages install to.
pub(crate) fn lines_of_documents(tree: &InstalledTree) -> Outcome {
    let failed = PAGES.iter().filter_map(|page| {
        let why = lines_of(tree, Path::new(page)).err()?;
        Some(format!("{page}: {why}"))
    });
    all_passed(failed)
}

/// Runs the lines of the README in a new clone, as somebody who has nothing but that. It
/// is outside of this workspace, to which cargo would add the new package.
pub(crate) fn starts_of_readme() -> Outcome {
    let home = env::temp_dir().join(format!("downbeat-starts-{}", process::id()));
    let outcome = starts_in(&home);
    let _ = fs::remove_dir_all(&home);
    outcome
}

fn starts_in(home: &Path) -> Outcome {
    let clone = home.join("downbeat");
    shell::run(
        Command::new("git")
            .args(["clone", "--quiet", "."])
            .arg(&clone),
    )?;
    link_mpi(home).map_err(|why| format!("{}: {why}", home.display()))?;
    let text = fs::read_to_string("README.md").map_err(|why| why.to_string())?;
    let script = script(&text, |_| false);
    if !script.contains("mpirun") {
        return Err("README.md: no lines for a shell".to_owned());
    }
    let mut lines = in_home(home, &script);
    lines.current_dir(&clone).env("CARGO_INSTALL_ROOT", home);
    shell::show_and_read(LIMIT_OF_STARTS, &mut lines)?;
    Ok(())
}

/// Runs all lines of a page.
fn lines_of(tree: &InstalledTree, page: &Path) -> Outcome {
    let text = fs::read_to_string(page).map_err(|why| why.to_string())?;
    let home = tree
        .built
        .join("pages")
        .join(page.file_stem().unwrap_or_default());
    let script = script(&text, |line| line == INSTALL);
    if script.is_empty() {
        return Err("no lines for a shell".to_owned());
    }
    // What an earlier run left.
    let _ = fs::remove_dir_all(&home);
    set_up(tree, &home).map_err(|why| format!("{}: {why}", home.display()))?;
    let mut lines = in_home(&home, &script);
    lines.current_dir(&home).env("HOME", &home);
    shell::show_and_read(LIMIT, &mut lines)?;
    let is_empty =
        |file: &&str| fs::metadata(home.join(file)).map_or(true, |found| found.len() == 0);
    match recorded_files(&script).find(is_empty) {
        Some(file) => Err(format!("{file}: missing or empty")),
        None => Ok(()),
    }
}

/// Returns a shell for lines that find the programs in a home.
fn in_home(home: &Path, script: &str) -> Command {
    let path = env::var("PATH").unwrap_or_default();
    let [own, installed] = ["bin", "downbeat/bin"].map(|bin| home.join(bin).display().to_string());
    let mut lines = Command::new("sh");
    lines
        .args(["-e", "-c", script])
        .env("PATH", format!("{own}:{installed}:{path}"))
        // Ranks share cores, maybe as root.
        .envs(OPEN_MPI.environment())
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1");
    lines
}

/// Makes the home: the sources, the installed tree, and Open MPI.
fn set_up(tree: &InstalledTree, home: &Path) -> std::io::Result<()> {
    link_mpi(home)?;
    for sources in ["measure", "tools"] {
        symlink(env::current_dir()?.join(sources), home.join(sources))?;
    }
    symlink(&tree.prefix, home.join("downbeat"))
}

/// Gives Open MPI the names that it has where no other library is.
fn link_mpi(home: &Path) -> std::io::Result<()> {
    fs::create_dir_all(home.join("bin"))?;
    for name in ["mpicc", "mpirun"] {
        let program = format!("/usr/bin/{name}.{}", OPEN_MPI.suffix());
        symlink(program, home.join("bin").join(name))?;
    }
    Ok(())
}

/// Line that installs what was installed before. xtask tests that it understands the
/// words.
const INSTALL: &str = "cargo xtask install --prefix $HOME/downbeat --mpi openmpi";

/// Joins the lines after a prompt, with those that continue them, of all blocks of a page
/// that are for a terminal.
fn script(page: &str, is_done: impl Fn(&str) -> bool) -> String {
    let blocks = page.split("```console\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or_default());
    let lines = blocks.flat_map(str::lines);
    let lines = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line));
    let lines: Vec<&str> = lines.filter(|line| !is_done(line)).collect();
    lines.join("\n")
}

/// Lists the files of recordings that a script names.
fn recorded_files(script: &str) -> impl Iterator<Item = &str> {
    let words = script.split(|c: char| c.is_whitespace() || "'=".contains(c));
    words.filter(|word| word.len() > RECORDING.len() && word.starts_with(RECORDING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_a_terminal_are_joined() {
        let page = "Text.\n```console\n$ cargo xtask install --prefix $HOME/downbeat --mpi openmpi\n$ a -o run/x \\\n    --by 'y=run/z'\n```\n\
                    ```rust\nfn main() {}\n```\n```console\n$ b run\n```\n";
        let script = script(page, |line| line == INSTALL);
        assert_eq!(script, "a -o run/x \\\n    --by 'y=run/z'\nb run");
        assert_eq!(
            recorded_files(&script).collect::<Vec<_>>(),
            ["run/x", "run/z"]
        );
        // Anything else is run.
        for other in [
            "cargo xtask install --mpi openmpi",
            "cargo xtask install --prefix $HOME/other --mpi openmpi",
        ] {
            let page = format!("```console\n$ {other}\n```\n");
            assert_eq!(super::script(&page, |line| line == INSTALL), other);
        }
    }
}
