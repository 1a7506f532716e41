//! What a launcher leaves behind when it is killed: its ranks, in process groups of their own.

#[cfg(target_os = "linux")]
pub(super) use linux::{adopt, end};

/// Elsewhere orphans are left to themselves.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() {}

/// As above.
#[cfg(not(target_os = "linux"))]
pub(super) fn end() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use rustix::process::{
        Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait,
    };

    /// From now on a process whose parent ends is this one's child, if this one launched its parent, or the parent of that.
    pub(in super::super) fn adopt() {
        // Without it orphans are nobody's, and most end by themselves.
        let _ = set_child_subreaper(Some(getpid()));
    }

    /// Ends all children, and whose parents they were. There must be none that is still to be waited for.
    pub(in super::super) fn end() {
        // A process that hangs in the kernel does not even end when it is killed.
        const PATIENCE: Duration = Duration::from_secs(2);
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match wait(WaitOptions::NOHANG) {
                // There may be more.
                Ok(Some(_)) => {}
                Ok(None) => {
                    for child in children() {
                        // It may have ended just now.
                        let _ = kill_process(child, Signal::KILL);
                    }
                    sleep(Duration::from_millis(1));
                }
                Err(_) => return,
            }
        }
    }

    /// Until they are waited for, their numbers are nobody else's.
    fn children() -> Vec<Pid> {
        let me = getpid().as_raw_nonzero().to_string();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // The name of the program, in parentheses, may have blanks and parentheses in it; then come a state and the parent.
        let is_mine = |number: &i32| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            stat.rsplit_once(") ")
                .and_then(|(_, rest)| rest.split(' ').nth(1))
                == Some(me.as_str())
        };
        numbers.filter(is_mine).filter_map(Pid::from_raw).collect()
    }
}
