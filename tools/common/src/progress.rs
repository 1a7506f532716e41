//! A bar on standard error for what takes longer than a second.

use std::io::{self, IsTerminal, Write as _};
use std::time::Instant;

/// Shows how much of a known stretch of time has passed. Draws nothing when that is a second or less, or when standard
/// error is not a terminal.
#[derive(Debug)]
pub struct Progress {
    began: Instant,
    seconds: f64,
    drawn: bool,
}

impl Progress {
    const WIDTH: usize = 40;

    /// The beginning of so many seconds.
    pub fn new(seconds: f64) -> Self {
        Self { began: Instant::now(), seconds, drawn: false }
    }

    /// Draws the bar as it stands now.
    pub fn show(&mut self) {
        if self.seconds <= 1.0 || !io::stderr().is_terminal() {
            return;
        }
        self.drawn = true;
        let passed = self.began.elapsed().as_secs_f64().min(self.seconds);
        let full = (passed / self.seconds * Self::WIDTH as f64) as usize;
        let bar = "#".repeat(full) + &".".repeat(Self::WIDTH - full);
        // A bar that cannot be drawn is not missed.
        let _ = write!(io::stderr(), "\r[{bar}] {passed:.0} s of {:.0} s", self.seconds);
    }
}

/// Takes the bar away.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
