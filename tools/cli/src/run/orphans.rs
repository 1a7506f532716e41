//! Ranks that a killed launcher leaves behind, in process groups of their own.

#[cfg(target_os = "linux")]
pub(super) use linux::{adopt, end};

/// Does nothing: only Linux has subreapers.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() {}

/// Does nothing: only Linux has subreapers.
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

    /// Makes this process a subreaper: a descendant whose parent ends becomes its child.
    pub(in super::super) fn adopt() {
        // On failure, orphans go to init; most end by themselves.
        let _ = set_child_subreaper(Some(getpid()));
    }

    /// Kills all children and their descendants. The caller must have waited for all children that it started.
    pub(in super::super) fn end() {
        // A process that hangs in the kernel does not end when it is killed.
        const PATIENCE: Duration = Duration::from_secs(2);
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match wait(WaitOptions::NOHANG) {
                // There may be more children.
                Ok(Some(_)) => {}
                Ok(None) => {
                    for child in children() {
                        // The child may have just ended.
                        let _ = kill_process(child, Signal::KILL);
                    }
                    sleep(Duration::from_millis(1));
                }
                Err(_) => return,
            }
        }
    }

    /// Returns the children of this process. Their process ids stay valid until they are waited for.
    fn children() -> Vec<Pid> {
        let me = getpid().as_raw_nonzero().to_string();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // The name of the program, in parentheses, may contain blanks and parentheses; then follow the state and the parent.
        let is_mine = |number: &i32| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            stat.rsplit_once(") ")
                .and_then(|(_, rest)| rest.split(' ').nth(1))
                == Some(me.as_str())
        };
        numbers.filter(is_mine).filter_map(Pid::from_raw).collect()
    }
}
