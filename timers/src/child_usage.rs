//! Processor time and memory of a child process.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};

use downbeat_clock_core::Duration;

/// Resources that a child process used, with those of its own children for which it waited.
///
/// ```
/// use downbeat_timers::ChildUsage;
///
/// let child = std::process::Command::new("true").spawn()?;
/// let (status, usage) = ChildUsage::wait(child)?;
/// assert!(status.success() && usage.peak_memory > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildUsage {
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the kernel on behalf of the program.
    pub system: Duration,
    /// Largest memory that one of the processes occupied at any time, in bytes. Linux counts that of the parent when it
    /// started the child, too.
    pub peak_memory: u64,
}

impl ChildUsage {
    /// Waits for the end of a child.
    ///
    /// # Errors
    /// If there is no such child any more.
    pub fn wait(mut child: Child) -> io::Result<(ExitStatus, Self)> {
        // A child that reads from this process would wait in turn.
        drop(child.stdin.take());
        let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        loop {
            // SAFETY: both pointers are valid for writing during the call.
            #[expect(unsafe_code, reason = "the standard library does not tell resources")]
            let ended = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
            if ended == pid {
                break;
            }
            let why = io::Error::last_os_error();
            if why.kind() != io::ErrorKind::Interrupted {
                return Err(why);
            }
        }
        // SAFETY: all of it is numbers, so that zeros are valid, and the call succeeded.
        #[expect(unsafe_code, reason = "the system has written it")]
        let usage = unsafe { usage.assume_init() };
        let found = Self {
            user: duration(usage.ru_utime.tv_sec, usage.ru_utime.tv_usec),
            system: duration(usage.ru_stime.tv_sec, usage.ru_stime.tv_usec),
            peak_memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * MEMORY_UNIT,
        };
        Ok((ExitStatus::from_raw(status), found))
    }
}

/// Bytes in the system's unit of memory.
const MEMORY_UNIT: u64 = if cfg!(target_vendor = "apple") {
    1
} else {
    1024
};

/// Converts a time, whose fields have 32 bits on some platforms.
fn duration(seconds: impl Into<i64>, micros: impl Into<i64>) -> Duration {
    Duration::from_nanos(seconds.into() * 1_000_000_000 + micros.into() * 1_000)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn work_of_a_child_and_its_end_are_known() {
        let sh = |text: &str| {
            let child = Command::new("sh").args(["-c", text]).spawn();
            ChildUsage::wait(child.expect("a shell starts")).expect("it can be waited for")
        };
        let (status, usage) = sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 7");
        assert_eq!(status.code(), Some(7));
        assert!(usage.user + usage.system > Duration::ZERO && usage.peak_memory > 100_000);
        let (status, _) = sh("kill -TERM $$");
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn a_child_that_reads_until_the_end_is_not_waited_for_in_vain() {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn();
        let (status, _) = ChildUsage::wait(child.expect("cat starts")).expect("it ends");
        assert!(status.success());
    }
}
