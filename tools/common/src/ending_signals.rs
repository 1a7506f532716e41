//! Signals that ask a program to end.

use std::fs;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Returns SIGINT, SIGTERM, and SIGHUP unless the program was started with it ignored, as
/// by `nohup`: then it goes on when its terminal is closed.
pub fn ending_signals() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    // Other systems than Linux have no such file.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !ignores(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Returns true if a process with this status ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.is_some_and(|bits| bits >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_recognized() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SIGHUP) && !ignores(status, SIGINT));
        assert!(!ignores("", SIGHUP));
    }
}
