//! Places of the pages of memory on machines with several NUMA nodes.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "a system call"))]

use std::fs;

use crate::cores::CoreId;

/// Number of pages of memory, and of those that are not on the NUMA node of the core that asked. Of large memory, at most 4,096 evenly
/// spaced pages are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagePlacement {
    /// Number of pages that were looked at and are anywhere; pages that were never written are nowhere yet.
    pub pages: u64,
    /// Number of pages on other NUMA nodes.
    pub remote: u64,
}

impl PagePlacement {
    /// Returns the placement of the pages of this memory relative to the core that runs this thread; `None` if the system does not
    /// tell.
    ///
    /// ```
    /// use downbeat_timers::PagePlacement;
    ///
    /// let message = vec![1_u8; 100_000];
    /// if let Some(found) = PagePlacement::of_memory(&message) {
    ///     println!("{} of {} pages are remote", found.remote, found.pages);
    /// }
    /// ```
    pub fn of_memory(memory: &[u8]) -> Option<Self> {
        let own = numa_of(crate::cores::current_core()?)?;
        Some(Self::among(&nodes_of_pages(memory)?, own as i32))
    }

    /// Counts pages by the numbers of their nodes; negative ones are errors, as of pages that are nowhere.
    fn among(nodes: &[i32], own: i32) -> Self {
        let placed = || nodes.iter().filter(|node| **node >= 0);
        Self {
            pages: placed().count() as u64,
            remote: placed().filter(|node| **node != own).count() as u64,
        }
    }

    /// Adds other memory.
    pub fn and(self, other: Self) -> Self {
        Self {
            pages: self.pages + other.pages,
            remote: self.remote + other.remote,
        }
    }
}

/// Returns the number of NUMA nodes with memory; `None` if the system does not tell.
pub fn numa_nodes() -> Option<usize> {
    let entries = fs::read_dir("/sys/devices/system/node").ok()?;
    let is_node = |name: &str| {
        let number = name.strip_prefix("node");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let nodes = names
        .filter(|name| name.to_str().is_some_and(is_node))
        .count();
    (nodes > 0).then_some(nodes)
}

/// Returns the NUMA node of a core; `None` if the system does not tell.
pub fn numa_of(core: CoreId) -> Option<u32> {
    // A link in the folder of the core.
    let entries = fs::read_dir(format!("/sys/devices/system/cpu/cpu{core}")).ok()?;
    let number = |name: &str| name.strip_prefix("node")?.parse().ok();
    entries
        .flatten()
        .find_map(|entry| number(entry.file_name().to_str()?))
}

/// Maximum number of pages that are looked at.
#[cfg(target_os = "linux")]
const MOST: usize = 4_096;

/// Returns the node of each page, or an error of the system.
#[cfg(target_os = "linux")]
fn nodes_of_pages(memory: &[u8]) -> Option<Vec<i32>> {
    if memory.is_empty() {
        return Some(Vec::new());
    }
    // SAFETY: no memory is involved.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
    let first = memory.as_ptr().addr() / size * size;
    let pages = (memory.as_ptr().addr() + memory.len()).div_ceil(size) - first / size;
    let every = pages.div_ceil(MOST);
    let pages: Vec<usize> = (0..pages)
        .step_by(every)
        .map(|page| first + page * size)
        .collect();
    let mut nodes = vec![-1; pages.len()];
    let nowhere = std::ptr::null::<i32>();
    // SAFETY: both lists have this number of elements. Without wanted nodes, no page moves.
    let code = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len(),
            pages.as_ptr(),
            nowhere,
            nodes.as_mut_ptr(),
            0,
        )
    };
    (code == 0).then_some(nodes)
}

/// Only Linux is asked.
#[cfg(not(target_os = "linux"))]
fn nodes_of_pages(_: &[u8]) -> Option<Vec<i32>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_on_other_nodes_are_remote() {
        // Two are nowhere.
        let found = PagePlacement::among(&[0, 1, 1, -2, 2, -14, 1], 1);
        assert_eq!(
            found,
            PagePlacement {
                pages: 5,
                remote: 2
            }
        );
        let both = found.and(PagePlacement {
            pages: 2,
            remote: 1,
        });
        assert_eq!(
            both,
            PagePlacement {
                pages: 7,
                remote: 3
            }
        );
        assert_eq!(PagePlacement::among(&[], 0), PagePlacement::default());
    }

    /// Where the system tells, each page that was written is somewhere.
    #[test]
    fn written_pages_are_counted() {
        let memory = vec![1_u8; 300_000];
        if let Some(found) = PagePlacement::of_memory(&memory) {
            assert!(found.pages >= 4 && found.remote <= found.pages, "{found:?}");
        }
        if let Some(found) = PagePlacement::of_memory(&[]) {
            assert_eq!(found, PagePlacement::default());
        }
    }
}
