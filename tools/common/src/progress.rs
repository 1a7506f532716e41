//! A bar on standard error for what takes longer than a second.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write as _};
use std::thread;
use std::time::Instant;

use downbeat_clock_core::Duration;

/// Shows how much of a known stretch of time has passed. Draws nothing when that is a second or less, or when standard
/// error is not a terminal.
#[derive(Debug)]
pub struct ProgressBar {
    began: Instant,
    seconds: f64,
    drawn: Cell<bool>,
}

impl ProgressBar {
    const WIDTH: usize = 40;

    /// The beginning of so many seconds.
    pub fn new(seconds: f64) -> Self {
        Self {
            began: Instant::now(),
            seconds,
            drawn: Cell::new(false),
        }
    }

    /// Says what is going on, where nobody knows how long it takes.
    pub fn say(&self, what: &str) {
        if io::stderr().is_terminal() {
            self.drawn.set(true);
            // As below.
            let _ = write!(io::stderr(), "\r\x1b[K{what}");
        }
    }

    /// Sleeps, and keeps the bar moving.
    pub fn sleep(&self, time: Duration) {
        const LONGEST: u64 = 100_000_000;
        let mut left = u64::try_from(time.as_nanos()).unwrap_or(0);
        while left > 0 {
            let now = left.min(LONGEST);
            thread::sleep(std::time::Duration::from_nanos(now));
            left -= now;
            self.show();
        }
    }

    /// Draws the bar as it stands now.
    pub fn show(&self) {
        if self.seconds <= 1.0 || !io::stderr().is_terminal() {
            return;
        }
        self.drawn.set(true);
        let passed = self.began.elapsed().as_secs_f64().min(self.seconds);
        let full = (passed / self.seconds * Self::WIDTH as f64) as usize;
        let bar = "#".repeat(full) + &".".repeat(Self::WIDTH - full);
        // A bar that cannot be drawn is not missed.
        let _ = write!(
            io::stderr(),
            "\r[{bar}] {passed:.0} s of {:.0} s",
            self.seconds
        );
    }
}

impl ProgressBar {
    /// Takes away what was drawn.
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
