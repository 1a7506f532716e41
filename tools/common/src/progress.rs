//! Progress of long work, on standard error.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write as _};
use std::thread;
use std::time::Instant;

use downbeat_clock_core::Duration;

/// Progress bar over a known duration. Draws nothing if that is a second or less, or if standard error is not a terminal.
#[derive(Debug)]
pub struct ProgressBar {
    began: Instant,
    seconds: f64,
    drawn: Cell<bool>,
}

impl ProgressBar {
    const WIDTH: usize = 40;

    /// Starts a progress bar over this number of seconds; 0 if the duration is unknown.
    pub fn new(seconds: f64) -> Self {
        Self {
            began: Instant::now(),
            seconds,
            drawn: Cell::new(false),
        }
    }

    /// Shows a text instead of a bar, for work of unknown duration.
    pub fn say(&self, text: &str) {
        if io::stderr().is_terminal() {
            self.drawn.set(true);
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
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

    /// Draws the bar.
    pub fn show(&self) {
        if self.seconds <= 1.0 || !io::stderr().is_terminal() {
            return;
        }
        self.drawn.set(true);
        let passed = self.began.elapsed().as_secs_f64().min(self.seconds);
        let full = (passed / self.seconds * Self::WIDTH as f64) as usize;
        let bar = "#".repeat(full) + &".".repeat(Self::WIDTH - full);
        // A failure to draw the bar is ignored.
        let _ = write!(
            io::stderr(),
            "\r[{bar}] {passed:.0} s of {:.0} s",
            self.seconds
        );
    }

    /// Erases the bar.
    pub fn clear(&self) {
        if self.drawn.replace(false) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.clear();
    }
}
