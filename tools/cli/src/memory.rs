//! Memory that a command may take, to refuse a size before the system ends the program.

use std::fs;

use downbeat_common::Failure;

/// Refuses a size, given by an option, that takes more memory than this process can have.
pub(crate) fn require(option: &str, bytes: u64) -> Result<(), Failure> {
    match available() {
        Some(available) if bytes > available => {
            let gigabytes = |bytes: u64| bytes as f64 / 1e9;
            let why = format!(
                "this takes {:.1} GB of memory, and {:.1} GB are available",
                gigabytes(bytes),
                gigabytes(available)
            );
            Err(Failure::option(option, why))
        }
        _ => Ok(()),
    }
}

/// Returns the free memory of the machine or the rest of this process's limit, whatever is less;
/// `None` if neither is known.
fn available() -> Option<u64> {
    let free = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kilobytes.checked_mul(1024)
    });
    free.into_iter().chain(limit()).min()
}

/// Returns the limit of this process's addresses.
#[cfg(unix)]
fn limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::As).current
}

#[cfg(not(unix))]
fn limit() -> Option<u64> {
    None
}
