//! Launches the commands of a plan sequentially.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use downbeat_common::output;
use downbeat_common::{Failure, ProgressBar};

use super::alike::{LaunchRecords, complete, file};
use super::attempt::{AttemptEnd, LaunchAttempt};
use super::command::{Variant, quoted};
use super::events::{RunEvent, RunEvents};
use super::log::{self, say};
use super::plan::{LaunchPlan, PlannedLaunch};
use super::programs;

/// Settings common to all launches.
#[derive(Debug)]
pub(super) struct Launcher<'a> {
    pub(super) out: &'a Path,
    pub(super) plan: &'a LaunchPlan,
    pub(super) events: &'a RunEvents,
    /// Number of times to repeat a failed launch.
    pub(super) retries: u32,
    /// Pauses before repetitions, of which the last one precedes all further ones.
    pub(super) pauses: &'a [Duration],
    pub(super) timeout: Option<Duration>,
    pub(super) verbose: bool,
    /// True if the folder is removed afterwards, so that nothing can be continued.
    pub(super) is_temporary: bool,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
struct Pace {
    total: usize,
    complete: usize,
    /// Number of the complete launches that this run made, and their total duration.
    launched: u32,
    took: Duration,
}

impl Launcher<'_> {
    /// Launches all that is not complete.
    ///
    /// # Errors
    /// If a launch fails too often or has other factors, or on a signal.
    pub(super) fn run(&self) -> Result<(), Failure> {
        let launches = self.plan.launches();
        self.await_earlier_runs(&launches)?;
        let mut records = self.records(&launches)?;
        let remaining = self.plan.remaining(self.out)?;
        let launched = self
            .set_up(&remaining)
            .and_then(|()| self.launch_all(&remaining, launches.len(), &mut records));
        let cleaned = self.clean_up(&remaining);
        if let (Err(_), Err(Failure::Run(why))) = (&launched, &cleaned) {
            say(&format!("downbeat: {why}"));
        }
        launched.and(cleaned)
    }

    fn launch_all(
        &self,
        remaining: &[PlannedLaunch],
        total: usize,
        records: &mut [LaunchRecords],
    ) -> Result<(), Failure> {
        let mut pace = Pace {
            total,
            complete: total - remaining.len(),
            launched: 0,
            took: Duration::ZERO,
        };
        for launch in remaining {
            let began = Instant::now();
            self.launch(launch, &pace)?;
            records[launch.variant].add(&launch.name)?;
            pace.complete += 1;
            pace.launched += 1;
            pace.took += began.elapsed();
            let seconds = began.elapsed().as_secs_f64();
            self.announce(&format!(
                "{}  {seconds:.1} s  ({} of {total})\n",
                launch.label, pace.complete
            ))?;
        }
        let launches = if total == 1 {
            "1 launch is".to_owned()
        } else {
            format!("{total} launches are")
        };
        self.announce(&format!("{launches} complete, in {}\n", self.out.display()))
    }

    /// Prints lines on launches, unless a table of their results follows.
    fn announce(&self, lines: &str) -> Result<(), Failure> {
        let is_timed = |variant: &Variant| variant.timing.is_some();
        match self.plan.variants().iter().any(is_timed) {
            true => Ok(()),
            false => output::print(lines),
        }
    }

    fn set_up(&self, remaining: &[PlannedLaunch]) -> Result<(), Failure> {
        self.variants_of(remaining).try_for_each(|variant| {
            let text = variant
                .timing
                .as_ref()
                .and_then(|timing| timing.setup.as_deref());
            self.shell(variant, "setup", text)
        })
    }

    /// Cleans up after all variants, also if one of them fails.
    fn clean_up(&self, remaining: &[PlannedLaunch]) -> Result<(), Failure> {
        let clean = |variant: &Variant| {
            let text = variant
                .timing
                .as_ref()
                .and_then(|timing| timing.cleanup.as_deref());
            self.shell(variant, "cleanup", text)
        };
        self.variants_of(remaining)
            .map(clean)
            .fold(Ok(()), Result::and)
    }

    /// Returns the variants of these launches, in the order of the plan.
    fn variants_of(&self, launches: &[PlannedLaunch]) -> impl Iterator<Item = &Variant> {
        let variants = self.plan.variants().iter().enumerate();
        variants
            .filter(|(index, _)| launches.iter().any(|launch| launch.variant == *index))
            .map(|(_, variant)| variant)
    }

    /// Runs a command of the user by a shell; its output goes to a log of this name.
    fn shell(&self, variant: &Variant, name: &str, text: Option<&str>) -> Result<(), Failure> {
        let Some(text) = text else { return Ok(()) };
        let words = ["sh", "-c", text].map(str::to_owned);
        let folder = variant.folder(self.out);
        let path = folder.join(format!("{name}.log"));
        let label = match &variant.name {
            Some(variant) => format!("{variant}: --{name}"),
            None => format!("--{name}"),
        };
        let attempt = self.attempt(&label, &path, &words, None, |passed| {
            format!("{label} for {}", about(passed))
        })?;
        match attempt.ended {
            AttemptEnd::Signal(signal) => Err(self.stopped_by(signal)),
            AttemptEnd::Itself(status) if !status.success() => {
                say(&attempt.tail);
                Err(Failure::Run(format!(
                    "{label}: {status}{}",
                    self.see(&path)
                )))
            }
            // It has no time limit.
            AttemptEnd::Itself(_) | AttemptEnd::Late => Ok(()),
        }
    }

    /// Waits until no program of an earlier run is left.
    fn await_earlier_runs(&self, launches: &[PlannedLaunch]) -> Result<(), Failure> {
        for path in launches
            .iter()
            .map(|launch| self.log(launch))
            .filter(|path| path.exists())
        {
            self.open_log(&path)?;
        }
        Ok(())
    }

    fn records(&self, launches: &[PlannedLaunch]) -> Result<Vec<LaunchRecords>, Failure> {
        let check = |(i, folder): (usize, PathBuf)| {
            let names: Vec<&str> = launches
                .iter()
                .filter(|launch| launch.variant == i)
                .map(|launch| launch.name.as_str())
                .collect();
            LaunchRecords::check(&folder, &names, self.plan.same_hosts())
        };
        self.plan
            .folders(self.out)
            .into_iter()
            .enumerate()
            .map(check)
            .collect()
    }

    fn log(&self, launch: &PlannedLaunch) -> PathBuf {
        self.out.join(format!("{}.log", launch.label))
    }

    fn open_log(&self, path: &Path) -> Result<File, Failure> {
        let opened = log::open(path, self.events)
            .map_err(|why| Failure::run(format!("{}: {why}", path.display())))?;
        opened.map_err(|signal| self.stopped_by(signal))
    }

    /// Waits until no rank of an earlier launch writes to the record.
    fn await_record(&self, folder: &Path, name: &str) -> Result<(), Failure> {
        let Some(path) = file(folder, name)? else {
            return Ok(());
        };
        let unlocked = log::await_unlocked(&path, self.events);
        let unlocked =
            unlocked.map_err(|why| Failure::run(format!("{}: {why}", path.display())))?;
        unlocked.map_err(|signal| self.stopped_by(signal))
    }

    /// Launches a command until its record is complete.
    fn launch(&self, launch: &PlannedLaunch, pace: &Pace) -> Result<(), Failure> {
        let (label, path) = (&launch.label, self.log(launch));
        let variant = &self.plan.variants()[launch.variant];
        let folder = variant.folder(self.out);
        for failed in 1.. {
            check_programs(variant, label)?;
            self.await_record(&folder, &launch.name)?;
            let Attempt {
                ended,
                tail,
                refusal,
            } = self.attempt(
                label,
                &path,
                &variant.words(self.out, &launch.name),
                self.timeout,
                |passed| pace.line(label, passed),
            )?;
            let complete = complete(&folder, &launch.name)?;
            let why = match ended {
                AttemptEnd::Signal(signal) => return Err(self.stopped_by(signal)),
                AttemptEnd::Itself(status) if status.success() && complete => return Ok(()),
                AttemptEnd::Itself(status) if status.success() => {
                    if file(&folder, &launch.name)?.is_none() {
                        say(&tail);
                        return Err(self.no_record(label, &path));
                    }
                    format!("{status}, but its record is not complete")
                }
                AttemptEnd::Itself(status) => status.to_string(),
                AttemptEnd::Late => self.too_long(),
            };
            let why = format!("{label}: {why}{}", self.see(&path));
            if complete {
                // It failed after the measurement, and would find nothing to do.
                say(&format!("{tail}downbeat: {why}; its record is complete"));
                return Ok(());
            }
            if let Some(refusal) = refusal {
                say(&tail);
                return Err(Failure::Input(format!(
                    "{why}; not repeated, since the program refuses its input: {refusal}"
                )));
            }
            if failed > self.retries {
                say(&tail);
                return Err(self.final_failure(&why));
            }
            let pause = pause_before(self.pauses, failed);
            say(&format!(
                "{tail}downbeat: {why}; repeating after {} s ({failed} of {}), complete groups are kept",
                pause.as_secs_f64(),
                self.retries
            ));
            self.pause(pause)?;
        }
        Ok(())
    }

    /// Waits before a repetition: what failed because its job ends receives a signal meanwhile.
    fn pause(&self, pause: Duration) -> Result<(), Failure> {
        let end = Instant::now() + pause;
        while Instant::now() < end {
            if let Some(RunEvent::Signal(signal)) = self.events.next(Some(end)) {
                return Err(self.stopped_by(signal));
            }
        }
        Ok(())
    }

    /// Launches once.
    fn attempt(
        &self,
        label: &str,
        path: &Path,
        words: &[String],
        timeout: Option<Duration>,
        progress_line: impl Fn(Duration) -> String,
    ) -> Result<Attempt, Failure> {
        let log = self.open_log(path)?;
        if let Some(RunEvent::Signal(signal)) = self.events.next(Some(Instant::now())) {
            return Err(self.stopped_by(signal));
        }
        let begun =
            begin(&log, words).map_err(|why| Failure::run(format!("{}: {why}", path.display())))?;
        let progress = ProgressBar::new(0);
        let show = |passed| {
            // The progress line would overwrite the output.
            if !self.verbose {
                progress.say(&progress_line(passed));
            }
        };
        show(Duration::ZERO);
        let attempt = LaunchAttempt {
            words,
            path,
            log,
            timeout,
            verbose: self.verbose,
        };
        let ended = attempt.run(self.events, show);
        let ended = ended.map_err(|why| Failure::run(format!("{label}: {}: {why}", words[0])))?;
        let tail = log::tail(path, begun);
        Ok(Attempt {
            ended,
            refusal: find_refusal(ended, &tail),
            // With `verbose` the output is on the terminal already.
            tail: if self.verbose { String::new() } else { tail },
        })
    }

    /// Returns the failure of a launch whose program took no notice of its record; a
    /// repetition would end alike.
    fn no_record(&self, label: &str, log: &Path) -> Failure {
        Failure::Run(format!(
            "{label}: the program wrote no record{}; its arguments --out and --launch, or {{out}} and \
             {{launch}} in the command, must reach the program that measures",
            self.see(log)
        ))
    }

    /// Returns the failure of a launch that is not repeated again.
    fn final_failure(&self, why: &str) -> Failure {
        let continues = match self.is_temporary {
            true => "",
            false => "; the same command line continues with it",
        };
        Failure::Run(format!("{why}{continues}"))
    }

    fn too_long(&self) -> String {
        let seconds = self.timeout.unwrap_or_default().as_secs_f64();
        format!("took longer than {seconds} s")
    }

    /// Refers to a log, if it is there afterwards.
    fn see(&self, log: &Path) -> String {
        match self.is_temporary {
            true => String::new(),
            false => format!("; see {}", log.display()),
        }
    }

    fn stopped_by(&self, signal: i32) -> Failure {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        let out = self.out.display();
        let line = if self.is_temporary {
            format!("stopped by {name}; with --out, another run would continue from here")
        } else {
            format!(
                "stopped by {name}; the results so far are in {out}, and the same command line continues from there; \
                 of an interrupted launch, only the group that it was measuring is lost"
            )
        };
        Failure::Signal(u8::try_from(signal).unwrap_or(0), line)
    }
}

/// Checks that no program of a command has changed since the launches were planned.
fn check_programs(variant: &Variant, label: &str) -> Result<(), Failure> {
    let programs = programs::digests(variant);
    match programs::changed(&variant.programs, &programs) {
        Some(changed) => Err(Failure::Run(format!(
            "{label}: {changed}; continue with the former one, or use another --out"
        ))),
        None => Ok(()),
    }
}

/// Result of one attempt at a launch.
struct Attempt {
    ended: AttemptEnd,
    /// Last lines of the output.
    tail: String,
    /// Message of a program of ours that refused its input, and would do so again.
    refusal: Option<String>,
}

/// Returns the message of a program of ours that ended with the exit code for bad input.
/// Other programs may mean something else by that code, but the last line of ours begins
/// with their name; launchers may put the rank before it.
fn find_refusal(ended: AttemptEnd, tail: &str) -> Option<String> {
    let is_refused = matches!(ended, AttemptEnd::Itself(status) if status.code() == Some(2));
    let message = |line: &str| {
        let names = ["downbeat-mpi: ", "downbeat: "].iter();
        let begin = names.filter_map(|name| line.find(name)).min()?;
        Some(line[begin..].to_owned())
    };
    tail.lines().rev().find_map(message).filter(|_| is_refused)
}

/// Returns the pause before a repetition, after this number of failed attempts.
fn pause_before(pauses: &[Duration], failed: u32) -> Duration {
    let pause = pauses.get(failed as usize - 1).or(pauses.last());
    pause.copied().unwrap_or_default()
}

impl Pace {
    /// Returns a progress line, with an estimate of the time left if a launch is complete.
    fn line(&self, label: &str, passed: Duration) -> String {
        let Self {
            total, complete, ..
        } = *self;
        let left = match self.took.checked_div(self.launched) {
            None => String::new(),
            Some(mean) => {
                let rest = mean.saturating_mul(u32::try_from(total - complete).unwrap_or(u32::MAX));
                format!(", {} left", about(rest.saturating_sub(passed)))
            }
        };
        format!(
            "{complete} of {total} complete{left}; {label} for {}",
            about(passed)
        )
    }
}

/// Writes the command into its log; returns where its output begins.
fn begin(mut log: &File, words: &[String]) -> io::Result<u64> {
    writeln!(log, "$ {}", quoted(words))?;
    Ok(log.metadata()?.len())
}

/// Formats a duration in whole units.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn pauses_grow_to_the_last_one() {
        let pauses = [1, 10, 60].map(Duration::from_secs);
        let all = (1..=5).map(|failed| pause_before(&pauses, failed).as_secs());
        assert_eq!(all.collect::<Vec<_>>(), [1, 10, 60, 60, 60]);
        assert_eq!(pause_before(&[], 1), Duration::ZERO);
    }

    #[test]
    fn only_programs_of_ours_refuse_their_input() {
        let exit = |code: i32| AttemptEnd::Itself(ExitStatus::from_raw(code << 8));
        let ours = "  | downbeat-mpi: --sizes: \"x\" is not a size\n  | mpirun has exited\n";
        assert_eq!(
            find_refusal(exit(2), ours).as_deref(),
            Some("downbeat-mpi: --sizes: \"x\" is not a size")
        );
        let ranked = "  | 0: downbeat: --out: is missing\n";
        assert_eq!(
            find_refusal(exit(2), ranked).as_deref(),
            Some("downbeat: --out: is missing")
        );
        for (ended, tail) in [
            (exit(1), ours),
            (exit(2), "  | cannot go on\n"),
            (AttemptEnd::Late, ours),
            (AttemptEnd::Itself(ExitStatus::from_raw(2)), ours),
        ] {
            assert_eq!(find_refusal(ended, tail), None, "{ended:?} {tail}");
        }
    }

    #[test]
    fn the_time_left_is_estimated_from_complete_launches() {
        let seconds = Duration::from_secs;
        let pace = Pace {
            total: 30,
            complete: 10,
            launched: 0,
            took: seconds(0),
        };
        assert_eq!(
            pace.line("launch-011", seconds(3)),
            "10 of 30 complete; launch-011 for 3 s"
        );
        let pace = Pace {
            complete: 12,
            launched: 2,
            took: seconds(40),
            ..pace
        };
        assert_eq!(
            pace.line("launch-013", seconds(5)),
            "12 of 30 complete, 5 min left; launch-013 for 5 s"
        );
        // A launch that takes longer than the mean.
        let pace = Pace {
            complete: 29,
            ..pace
        };
        assert_eq!(
            pace.line("x", seconds(7300)),
            "29 of 30 complete, 0 s left; x for 2 h 1 min"
        );
    }
}
