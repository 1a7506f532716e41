//! Processes: relatives, the program that each runs, and signals.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Time for a program to clean up after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Ends a process and all its descendants: SIGTERM to the process first (mpirun then ends
/// its ranks), SIGKILL to all later.
pub fn end(root: u32) {
    // Listed before the process is gone: its orphans could not be told from other
    // processes.
    let family = with_descendants(root);
    signal("TERM", &[root]);
    thread::sleep(GRACE);
    signal("KILL", &family);
}

/// Ends all descendants of a process at once.
pub fn end_descendants(root: u32) {
    let mut family = with_descendants(root);
    family.retain(|process| *process != root);
    signal("KILL", &family);
}

/// Describes a process and its descendants, one in a line: identifier, state, function of
/// the kernel in which it waits, command line.
pub fn describe_family(root: u32) -> String {
    let read = |process: u32, file: &str| {
        let text = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ")
    };
    let line = |process: u32| {
        let stat = read(process, "stat");
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let state = after_name.split_whitespace().next().unwrap_or("gone");
        let [waits_in, words] = ["wchan", "cmdline"].map(|file| read(process, file));
        format!("   {process} {state} {waits_in} {words}\n")
    };
    with_descendants(root).into_iter().map(line).collect()
}

/// Sends a signal, named without `SIG`; processes that are gone already are ignored.
pub fn signal(name: &str, processes: &[u32]) {
    // The shell's own `kill`: a small system has no other.
    let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
    let line = format!("kill -{name} {} 2>/dev/null", processes.join(" "));
    let _ = Command::new("sh").args(["-c", &line]).status();
}

/// The processes that this process has started.
pub fn children_of(process: u32) -> Vec<u32> {
    all()
        .filter(|child| parent_of(*child) == Some(process))
        .collect()
}

/// The processes that run this program, in ascending order.
pub fn running(program: &Path) -> Vec<u32> {
    let runs_it = |process: &u32| {
        fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == program)
    };
    let mut found: Vec<u32> = all().filter(runs_it).collect();
    found.sort_unstable();
    found
}

/// The topmost ancestors of these processes below this process: the launchers of ranks.
pub fn topmost_ancestors(processes: &[u32]) -> Vec<u32> {
    let this = std::process::id();
    let line = |process: u32| {
        std::iter::successors(Some(process), |child| {
            parent_of(*child).filter(|parent| *parent != this && *parent > 1)
        })
    };
    let mut top: Vec<u32> = processes
        .iter()
        .filter_map(|process| line(*process).last())
        .collect();
    top.sort_unstable();
    top.dedup();
    top
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// A process and its descendants; process groups do not help, since mpirun gives every
/// rank its own.
fn with_descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all()
        .filter_map(|process| Some((process, parent_of(process)?)))
        .collect();
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&member) = family.get(next) {
        let children = parents.iter().filter(|(_, parent)| *parent == member);
        family.extend(children.map(|(process, _)| process));
        next += 1;
    }
    family
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // `pid (name) state parent ...`, and the name may contain anything.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::await_true;

    #[test]
    fn a_family_is_described() {
        let mut child = Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep starts");
        let line = |of: &str| {
            of.starts_with(&format!("   {} S ", child.id())) && of.ends_with("sleep 600 ")
        };
        // It takes a moment until it sleeps.
        let found = await_true("sleeping child", Duration::from_secs(60), || {
            describe_family(std::process::id()).lines().any(line)
        });
        let _ = child.kill();
        let _ = child.wait();
        found.expect("the child is described");
    }
}
