//! Launches the commands of a plan sequentially.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use downbeat_common::output;
use downbeat_common::{Failure, ProgressBar};

use super::alike::{LaunchRecords, complete, file};
use super::attempt::{AttemptEnd, LaunchAttempt};
use super::command::quoted;
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
    pub(super) timeout: Option<Duration>,
    pub(super) verbose: bool,
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
        let total = launches.len();
        let mut pace = Pace {
            total,
            complete: total - remaining.len(),
            launched: 0,
            took: Duration::ZERO,
        };
        for launch in &remaining {
            let began = Instant::now();
            self.launch(launch, &pace)?;
            records[launch.variant].add(&launch.name)?;
            pace.complete += 1;
            pace.launched += 1;
            pace.took += began.elapsed();
            let seconds = began.elapsed().as_secs_f64();
            output::print(&format!(
                "{}  {seconds:.1} s  ({} of {total})\n",
                launch.label, pace.complete
            ))?;
        }
        let launches = if total == 1 {
            "1 launch is".to_owned()
        } else {
            format!("{total} launches are")
        };
        output::print(&format!("{launches} complete, in {}\n", self.out.display()))
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
            LaunchRecords::check(&folder, &names)
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
        for failed in 1.. {
            let programs = programs::digests(&variant.command);
            if let Some(changed) = programs::changed(&variant.programs, &programs) {
                return Err(Failure::Run(format!(
                    "{label}: {changed}; continue with the former one, or use another --out"
                )));
            }
            self.await_record(&variant.folder(self.out), &launch.name)?;
            let (ended, tail) =
                self.attempt(label, &path, &variant.words(self.out, &launch.name), pace)?;
            let complete = complete(&variant.folder(self.out), &launch.name)?;
            let why = match ended {
                AttemptEnd::Signal(signal) => return Err(self.stopped_by(signal)),
                AttemptEnd::Itself(status) if status.success() && complete => return Ok(()),
                AttemptEnd::Itself(status) if status.success() => {
                    format!("{status}, but its record is not complete")
                }
                AttemptEnd::Itself(status) => status.to_string(),
                AttemptEnd::Late => format!(
                    "took longer than {} s",
                    self.timeout.unwrap_or_default().as_secs_f64()
                ),
            };
            let why = format!("{label}: {why}; see {}", path.display());
            if complete {
                // It failed after the measurement, and would find nothing to do.
                say(&format!("{tail}downbeat: {why}; its record is complete"));
                return Ok(());
            }
            if failed > self.retries {
                say(&tail);
                return Err(Failure::Run(format!(
                    "{why}; the same command line continues with it"
                )));
            }
            say(&format!(
                "{tail}downbeat: {why}; repeating ({failed} of {})",
                self.retries
            ));
        }
        Ok(())
    }

    /// Launches once; returns the outcome and the last lines of the output.
    fn attempt(
        &self,
        label: &str,
        path: &Path,
        words: &[String],
        pace: &Pace,
    ) -> Result<(AttemptEnd, String), Failure> {
        let log = self.open_log(path)?;
        if let Some(RunEvent::Signal(signal)) = self.events.next(Some(Instant::now())) {
            return Err(self.stopped_by(signal));
        }
        let begun =
            begin(&log, words).map_err(|why| Failure::run(format!("{}: {why}", path.display())))?;
        let progress = ProgressBar::new(0.0);
        let show = |passed| {
            // The progress line would overwrite the output.
            if !self.verbose {
                progress.say(&pace.line(label, passed));
            }
        };
        show(Duration::ZERO);
        let attempt = LaunchAttempt {
            words,
            path,
            log,
            timeout: self.timeout,
            verbose: self.verbose,
        };
        let ended = attempt.run(self.events, show);
        let ended = ended.map_err(|why| Failure::run(format!("{label}: {}: {why}", words[0])))?;
        // With `verbose` the output is on the terminal already.
        Ok((
            ended,
            if self.verbose {
                String::new()
            } else {
                log::tail(path, begun)
            },
        ))
    }

    fn stopped_by(&self, signal: i32) -> Failure {
        let name = if signal == signal_hook::consts::SIGINT {
            "SIGINT"
        } else {
            "SIGTERM"
        };
        let out = self.out.display();
        let line = format!(
            "stopped by {name}; the results so far are in {out}, and the same command line continues from there"
        );
        Failure::Signal(u8::try_from(signal).unwrap_or(0), line)
    }
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
    use super::*;

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
