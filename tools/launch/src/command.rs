//! Commands: each is printed as a person would type it, and each has a time limit.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::process;

/// Default time limit: longer than any command takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Multiple of its time limit that a command may take if it only gets the time that all
/// others leave.
const IDLE: u32 = 6;

/// Exit code and output of a command that may fail.
#[derive(Debug)]
pub struct FinishedCommand {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Makes a command of words that contain no blanks.
pub fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Runs a command, which must succeed.
///
/// In a log, the reason of a failure has the last lines of output, as the summary of a
/// log is often all that is kept of it.
pub fn run(command: &mut Command) -> Outcome {
    run_within(LIMIT, command)
}

/// Runs a command with another time limit, as [`run`] does.
pub fn run_within(limit: Duration, command: &mut Command) -> Outcome {
    if io::stdout().is_terminal() {
        command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
        return output_within(limit, command).and_then(|output| succeeded(&output));
    }
    show_and_read_all(limit, command).map(drop)
}

/// Runs a command, which must succeed, and prints and returns all it writes; a failure
/// has the last lines, as of [`run`].
pub fn show_and_read_all(limit: Duration, command: &mut Command) -> Result<String, String> {
    let (reader, writer) = io::pipe().map_err(|why| format!("cannot make a pipe: {why}"))?;
    let again = writer.try_clone();
    let again = again.map_err(|why| format!("cannot share a pipe: {why}"))?;
    command.stdout(writer).stderr(again);
    let (done, copied) = mpsc::channel();
    thread::spawn(move || done.send(copy_lines(reader)));
    let output = output_within(limit, command);
    // Closes this process's ends of the pipe, so that the copy ends with the command,
    // unless that leaves others behind.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let copied = copied.recv_timeout(Duration::from_secs(5));
    let copied = copied.unwrap_or_default();
    match output.and_then(|output| succeeded(&output)) {
        Ok(()) => Ok(copied),
        Err(why) => Err(after_last_lines(&why, &copied)),
    }
}

/// Prints all lines and returns them.
fn copy_lines(reader: impl Read) -> String {
    let mut copied = String::new();
    for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
        let line = text(&line);
        println!("{line}");
        copied += &line;
        copied.push('\n');
    }
    copied
}

/// Adds the last lines of output to the reason of a failure.
pub fn after_last_lines(why: &str, output: &str) -> String {
    const SHOWN: usize = 100;
    let lines: Vec<&str> = output.lines().collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    match last.is_empty() {
        true => why.to_owned(),
        false => format!("{why}, after these lines:\n{last}"),
    }
}

/// Runs a command, which must succeed, and returns its standard output.
pub fn read(command: &mut Command) -> Result<String, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = output_within(LIMIT, command)?;
    succeeded(&output)?;
    Ok(text(&output.stdout))
}

/// Runs a command, which must succeed, and prints and returns its standard output; a
/// failure has its last lines, as of [`run`].
pub fn show_and_read(limit: Duration, command: &mut Command) -> Result<String, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = output_within(limit, command)?;
    let written = text(&output.stdout);
    print!("{written}");
    match succeeded(&output) {
        Ok(()) => Ok(written),
        Err(why) => Err(after_last_lines(&why, &written)),
    }
}

/// Runs a command, which may fail, and returns all it writes.
pub fn finish(limit: Duration, command: &mut Command) -> Result<FinishedCommand, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = output_within(limit, command)?;
    Ok(FinishedCommand {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

/// Converts output to text; what is not UTF-8 is replaced.
pub fn text(written: &[u8]) -> String {
    String::from_utf8_lossy(written).into_owned()
}

/// Runs a command; ends it with all its descendants after the time limit.
pub fn output_within(limit: Duration, command: &mut Command) -> Result<Output, String> {
    println!("   {}", shown(command));
    let limit = if is_idle() { limit * IDLE } else { limit };
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
            late.then(|| {
                let family = process::describe_family(root);
                process::end(root);
                family
            })
        });
        let output = child.wait_with_output();
        drop(finished);
        let output = output.map_err(|why| format!("lost `{program}`: {why}"))?;
        let family = match guard.join() {
            Ok(None) => return Ok(output),
            Ok(Some(family)) => family,
            Err(_) => "   the thread that ends it panicked\n".to_owned(),
        };
        // Shows where it was stuck.
        print!("{}{}{family}", text(&output.stdout), text(&output.stderr));
        Err(format!(
            "`{program}` was ended: it took more than {} s",
            limit.as_secs_f64()
        ))
    })
}

/// Returns true if this process, and so what it starts, is scheduled as SCHED_IDLE.
fn is_idle() -> bool {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields behind the name, which can hold anything; the policy is field 41 of all.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().nth(41 - 3) == Some("5")
}

/// Runs a command without its output; returns true if it succeeds.
pub fn succeeds_quietly(words: &str) -> bool {
    command(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Waits until something is true, or returns what is missing after a time.
///
/// # Errors
/// If it is not true by then.
pub fn await_true(what: &str, limit: Duration, is_true: impl Fn() -> bool) -> Outcome {
    let began = Instant::now();
    while began.elapsed() < limit {
        if is_true() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(format!("no {what} after {} s", limit.as_secs()))
}

/// Turns a failed exit status into an error.
pub fn succeeded(output: &Output) -> Outcome {
    if output.status.success() {
        Ok(())
    } else {
        Err(output.status.to_string())
    }
}

/// Appends a command, with its environment, to the arguments of another command that
/// starts it.
pub fn started_by(mut starter: Command, command: &Command) -> Command {
    starter.arg(command.get_program()).args(command.get_args());
    starter.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    starter
}

/// Formats a command as a person would type it.
pub fn shown(command: &Command) -> String {
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
    fn a_command_is_shown_as_typed() {
        let mut command = command("cargo test -p it");
        command.arg("two words").env("RUSTFLAGS", "--cfg loom");
        assert_eq!(
            shown(&command),
            "RUSTFLAGS='--cfg loom' cargo test -p it 'two words'"
        );
    }

    #[test]
    fn a_hanging_command_is_ended_with_its_children() {
        // The children keep the pipe open: the call returns only when they are gone too.
        let mut hanging = command("sh -c");
        hanging
            .arg("trap '' TERM; sleep 600 & sleep 600 & wait")
            .stdout(Stdio::piped());
        let ended =
            output_within(Duration::from_millis(200), &mut hanging).expect_err("it never ends");
        let limit = if is_idle() { "1.2" } else { "0.2" };
        assert!(ended.contains(&format!("more than {limit} s")), "{ended}");
    }

    #[test]
    fn a_failure_names_its_reason() {
        assert_eq!(run(&mut command("false")), Err("exit status: 1".into()));
        let mut loud = command("sh -c");
        loud.arg("seq 102; echo why >&2; exit 3");
        let failure = run(&mut loud).expect_err("exit code 3");
        assert!(
            failure.starts_with("exit status: 3, after these lines:\n4\n"),
            "{failure}"
        );
        assert!(failure.ends_with("\n102\nwhy"), "{failure}");
        assert!(
            run(&mut command("no-such-program")).is_err_and(|why| why.contains("no-such-program"))
        );
        assert_eq!(read(&mut command("echo heard")), Ok("heard\n".into()));
    }
}
