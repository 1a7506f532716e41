//! Memory that a command may take, to refuse a size before the system ends the program.

use std::fs;
use std::path::Path;

use downbeat_common::Failure;

/// Refuses a size, given by an option, that takes more memory than this process can have.
pub(crate) fn require(option: &str, bytes: u64) -> Result<(), Failure> {
    match free_memory().into_iter().chain(address_limit()).min() {
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

/// Returns the free memory of the machine or the limit of this process's control group,
/// whatever is less; `None` if neither is known.
pub(crate) fn free_memory() -> Option<u64> {
    let free = system_memory("MemAvailable:");
    free.into_iter().chain(group_limit()).min()
}

/// Returns the memory of the machine, if it is known.
#[cfg(unix)]
pub(crate) fn all_memory() -> Option<u64> {
    system_memory("MemTotal:")
}

/// Returns what the system states in a line of this name, in bytes.
fn system_memory(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Returns the limit of this process's addresses.
#[cfg(unix)]
fn address_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::As).current
}

#[cfg(not(unix))]
fn address_limit() -> Option<u64> {
    None
}

/// Returns the least limit of this process's control group and those around it.
fn group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    // `0::/GROUP`, or `NUMBER:memory:/GROUP` of the first version.
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (kind, group) = (fields.next()?, fields.next()?);
        let (root, file) = match kind {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let group = Path::new(root).join(group.trim_start_matches('/'));
        let around = group.ancestors().take_while(|path| path.starts_with(root));
        let limits = around.filter_map(|path| fs::read_to_string(path.join(file)).ok());
        limits.filter_map(|limit| limit.trim().parse().ok()).min()
    });
    limits.min()
}
