//! Running commands: each is printed as a person would type it, and none can hang for ever.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::steps::Outcome;

/// Longer than anything here takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(10 * 60);

/// How long a program may take to clean up once it is told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// The command that these words make; none of them may contain a blank.
pub(crate) fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Runs a command to its end, and wants it to succeed.
pub(crate) fn run(command: &mut Command) -> Outcome {
    output_within(
        LIMIT,
        command.stdout(Stdio::inherit()).stderr(Stdio::inherit()),
    )
    .and_then(|output| succeeded(&output))
}

/// As `run`; returns what the command wrote to its standard output.
pub(crate) fn read(command: &mut Command) -> Result<String, String> {
    let output = output_within(
        LIMIT,
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()),
    )?;
    succeeded(&output)?;
    Ok(text(&output.stdout))
}

/// As `read`, for at most that long, and shows what was written, also after a failure.
pub(crate) fn show_and_read(limit: Duration, command: &mut Command) -> Result<String, String> {
    let output = output_within(
        limit,
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()),
    )?;
    print!("{}", text(&output.stdout));
    succeeded(&output)?;
    Ok(text(&output.stdout))
}

/// What a command came to that may fail.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command for at most that long, and keeps all it writes.
pub(crate) fn ended(limit: Duration, command: &mut Command) -> Result<Ended, String> {
    let output = output_within(limit, command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    Ok(Ended {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

pub(crate) fn text(written: &[u8]) -> String {
    String::from_utf8_lossy(written).into_owned()
}

/// Runs a command, whose output goes where it was told, for at most that long.
pub(crate) fn output_within(limit: Duration, command: &mut Command) -> Result<Output, String> {
    println!("   {}", shown(command));
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command
        .stdin(Stdio::null())
        .spawn()
        .map_err(|why| format!("cannot run `{program}`: {why}"))?;
    let root = child.id();

    // The process stays in this one's group, so that ^C ends it too.
    let (finished, until_finished) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let guard = scope.spawn(move || {
            let late = until_finished.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                end(root);
            }
            late
        });
        let output = child.wait_with_output();
        drop(finished);
        let output = output.map_err(|why| format!("lost `{program}`: {why}"))?;
        if let Ok(false) = guard.join() {
            return Ok(output);
        }
        // How far it came.
        print!("{}", text(&output.stdout));
        Err(format!(
            "`{program}` was ended, as it took more than {} s",
            limit.as_secs_f64()
        ))
    })
}

pub(crate) fn succeeded(output: &Output) -> Outcome {
    if output.status.success() {
        Ok(())
    } else {
        Err(output.status.to_string())
    }
}

/// Ends a process and all below it: first asks the process, which may know best how (mpirun does).
pub(crate) fn end(root: u32) {
    // Before it is gone: its orphans could not be told from others.
    let family = family_of(root);
    signal("TERM", &[root]);
    thread::sleep(GRACE);
    signal("KILL", &family);
}

pub(crate) fn signal(name: &str, processes: &[u32]) {
    // The shell's own `kill`: a small system has no other. Who is gone already is no failure.
    let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
    let line = format!("kill -{name} {} 2>/dev/null", processes.join(" "));
    let _ = Command::new("sh").args(["-c", &line]).status();
}

/// What this process has started.
pub(crate) fn children_of(process: u32) -> Vec<u32> {
    processes()
        .filter(|child| parent_of(*child) == Some(process))
        .collect()
}

/// The same command, started by another one.
pub(crate) fn behind(mut starter: Command, command: &Command) -> Command {
    starter.arg(command.get_program()).args(command.get_args());
    starter.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    starter
}

/// The processes that run this program, in the order of their numbers.
pub(crate) fn processes_of(program: &Path) -> Vec<u32> {
    let runs_it = |process: &u32| {
        fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == program)
    };
    let mut found: Vec<u32> = processes().filter(runs_it).collect();
    found.sort_unstable();
    found
}

/// Who started them, or who started those: what stands above all of them, but below this process.
pub(crate) fn parents_of(processes: &[u32]) -> Vec<u32> {
    let this = std::process::id();
    let above = |process: u32| {
        std::iter::successors(Some(process), |child| {
            parent_of(*child).filter(|p| *p != this && *p > 1)
        })
    };
    let mut top: Vec<u32> = processes
        .iter()
        .filter_map(|process| above(*process).last())
        .collect();
    top.sort_unstable();
    top.dedup();
    top
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// A process and its descendants; process groups do not help, since mpirun gives every rank its own.
fn family_of(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = processes()
        .filter_map(|process| Some((process, parent_of(process)?)))
        .collect();
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(process, _)| process),
        );
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

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(quoted);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_is_typed() {
        let mut command = command("cargo test -p it");
        command.arg("two words").env("RUSTFLAGS", "--cfg loom");
        assert_eq!(
            shown(&command),
            "RUSTFLAGS='--cfg loom' cargo test -p it 'two words'"
        );
    }

    #[test]
    fn what_hangs_is_ended_with_its_children() {
        // The children keep the pipe open: the call returns only when they are gone too.
        let mut hanging = command("sh -c");
        hanging
            .arg("trap '' TERM; sleep 600 & sleep 600 & wait")
            .stdout(Stdio::piped());
        let ended =
            output_within(Duration::from_millis(200), &mut hanging).expect_err("it never ends");
        assert!(ended.contains("more than 0.2 s"), "{ended}");
    }

    #[test]
    fn a_failure_says_how() {
        assert_eq!(run(&mut command("false")), Err("exit status: 1".into()));
        assert!(
            run(&mut command("no-such-program")).is_err_and(|why| why.contains("no-such-program"))
        );
        assert_eq!(read(&mut command("echo heard")), Ok("heard\n".into()));
    }
}
