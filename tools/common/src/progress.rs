//! Progress of long work, on standard error.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Instant;

use downbeat_clock_core::Duration;
use indicatif::{HumanDuration, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Bar with percentage and remaining time. Draws nothing before there is a text or a second has passed, or if standard error
/// is not a terminal.
#[derive(Debug)]
pub struct ProgressBar {
    bar: indicatif::ProgressBar,
    began: Instant,
    hidden: Cell<bool>,
}

impl ProgressBar {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
    const STEPS_PER_SECOND: f64 = 10.0;

    /// Starts a bar for this number of steps; 0 if the amount of work is unknown.
    pub fn new(steps: u64) -> Self {
        let bar = indicatif::ProgressBar::with_draw_target(
            (steps > 0).then_some(steps),
            ProgressDrawTarget::hidden(),
        );
        let form = match steps {
            0 => "{msg}",
            _ => "[{bar:30}] {percent} %{left}  {msg}",
        };
        // Both are valid, and so tested.
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style.progress_chars("##.").with_key("left", left));
        }
        Self {
            bar,
            began: Instant::now(),
            hidden: Cell::new(true),
        }
    }

    /// Starts a bar for work that takes this number of seconds, as [`Self::sleep`] lets pass; 0 if that is unknown.
    pub fn lasting(seconds: f64) -> Self {
        Self::new((seconds * Self::STEPS_PER_SECOND) as u64)
    }

    /// Starts a bar for reading this number of bytes of a file; 0 if that is unknown.
    pub(crate) fn reading(path: &Path, bytes: u64) -> Self {
        let bar = Self::new(bytes);
        bar.bar.set_message(path.display().to_string());
        bar
    }

    /// Shows a text behind the bar, at once.
    pub fn say(&self, text: &str) {
        self.reveal();
        self.bar.set_message(text.to_owned());
    }

    /// Shows which of several stages has begun, at once: `Stage 1 of 3: reading`.
    pub fn stage(&self, number: u32, of: u32, what: &str) {
        self.say(&format!("Stage {number} of {of}: {what}"));
    }

    /// Shows that this number of steps is done.
    pub fn reach(&self, steps: u64) {
        if self.began.elapsed() >= Self::PATIENCE {
            self.reveal();
        }
        self.bar.set_position(steps);
    }

    /// Sleeps, and updates the bar meanwhile.
    pub fn sleep(&self, time: Duration) {
        const INTERVAL: u64 = 100_000_000;
        let mut remaining = u64::try_from(time.as_nanos()).unwrap_or(0);
        while remaining > 0 {
            let now = remaining.min(INTERVAL);
            thread::sleep(std::time::Duration::from_nanos(now));
            remaining -= now;
            self.show();
        }
    }

    /// Shows the time that has passed.
    fn show(&self) {
        self.reach((self.began.elapsed().as_secs_f64() * Self::STEPS_PER_SECOND) as u64);
    }

    /// Erases the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn reveal(&self) {
        if self.hidden.replace(false) {
            // It hides itself where there is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

/// Reader that shows how many of its bytes were read.
#[derive(Debug)]
pub(crate) struct ProgressReader<'a, R> {
    reader: R,
    bar: &'a ProgressBar,
    done: u64,
}

impl<'a, R> ProgressReader<'a, R> {
    /// Reads from this reader.
    pub(crate) fn new(reader: R, bar: &'a ProgressBar) -> Self {
        Self {
            reader,
            bar,
            done: 0,
        }
    }
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(bytes)?;
        self.done += read as u64;
        self.bar.reach(self.done);
        Ok(read)
    }
}

/// Writes the time that is left, once it can be estimated.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.pos() > 0 {
        // The bar is drawn in any case.
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_counts_its_bytes() {
        let bar = ProgressBar::reading(Path::new("a.dbt"), 10);
        let mut reader = ProgressReader::new(&[7_u8; 10][..], &bar);
        let mut some = [0; 4];
        reader.read_exact(&mut some).expect("there are bytes");
        assert_eq!((some, bar.bar.position()), ([7; 4], 4));
        let mut rest = vec![];
        reader.read_to_end(&mut rest).expect("there are bytes");
        assert_eq!((rest.len(), bar.bar.position()), (6, 10));
        assert_eq!(bar.bar.message(), "a.dbt");
    }

    #[test]
    fn a_bar_counts_steps() {
        let bar = ProgressBar::new(8);
        bar.reach(2);
        bar.say("two");
        assert_eq!(
            (bar.bar.position(), bar.bar.length(), bar.bar.message()),
            (2, Some(8), "two".to_owned())
        );
        for steps in [0, 1] {
            let form = ProgressBar::new(steps);
            assert_eq!(form.bar.length(), (steps > 0).then_some(steps));
        }
    }
}
