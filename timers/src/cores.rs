//! Cores: listing, pinning threads, and the current core.

use core::fmt;

/// The system's number of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u32);

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(feature = "std")]
pub use with_std::{CoreError, allowed_cores, current_core, pin_to, socket_of};

#[cfg(feature = "std")]
mod with_std {
    use std::path::PathBuf;

    use downbeat_clock_core::FitError;

    use super::{CoreId, fmt};

    /// Reason why a thread could not be pinned, two cores could not be compared, or the caches of a core are unknown.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum CoreError {
        /// The machine has no such core, or this thread may not run on it.
        NotAllowed(CoreId),
        /// The system refused to pin a thread to the core.
        Refused(CoreId),
        /// The system starts no thread for the core, for this reason.
        NoThread(CoreId, String),
        /// A core cannot be compared with itself.
        SameCore(CoreId),
        /// The counter ran backwards on a core, or the counters of the two cores moved against each other.
        Readings(FitError),
        /// The system lists no caches, as on systems other than Linux, or there is no such core.
        CachesNotListed(CoreId),
        /// A file of the system about a cache cannot be read or parsed.
        CacheUnreadable(PathBuf),
        /// All caches of the core are shared with other cores.
        NoPrivateCache(CoreId),
    }

    impl fmt::Display for CoreError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::NotAllowed(core) => write!(
                    f,
                    "this process may not run on core {core}, or there is none"
                ),
                Self::Refused(core) => {
                    write!(f, "the system refuses to pin a thread to core {core}")
                }
                Self::NoThread(core, why) => {
                    write!(f, "the system starts no thread for core {core}: {why}")
                }
                Self::SameCore(core) => write!(f, "core {core} cannot be compared with itself"),
                Self::Readings(why) => why.fmt(f),
                Self::CachesNotListed(core) => {
                    write!(f, "the system does not list the caches of core {core}")
                }
                Self::CacheUnreadable(file) => write!(
                    f,
                    "{} cannot be read or does not describe a cache",
                    file.display()
                ),
                Self::NoPrivateCache(core) => {
                    write!(f, "core {core} shares all of its caches with other cores")
                }
            }
        }
    }

    impl core::error::Error for CoreError {}

    /// The cores that this thread may run on, in ascending order; empty if the system does not list them.
    pub fn allowed_cores() -> Vec<CoreId> {
        let ids = core_affinity::get_core_ids().unwrap_or_default();
        ids.into_iter()
            .filter_map(|core| u32::try_from(core.id).ok().map(CoreId))
            .collect()
    }

    /// Pins the calling thread to a core.
    ///
    /// # Errors
    /// If there is no such core, the thread may not run there, or the system refuses.
    pub fn pin_to(core: CoreId) -> Result<(), CoreError> {
        // core_affinity panics on numbers beyond the system's limit, so only pass cores that it listed.
        let listed = core_affinity::get_core_ids().unwrap_or_default();
        let found = listed
            .into_iter()
            .find(|c| c.id == core.0 as usize)
            .ok_or(CoreError::NotAllowed(core))?;
        if core_affinity::set_for_current(found) {
            Ok(())
        } else {
            Err(CoreError::Refused(core))
        }
    }

    /// The core that the calling thread is running on; `None` if the system does not tell.
    #[cfg(target_os = "linux")]
    pub fn current_core() -> Option<CoreId> {
        // SAFETY: the call has no arguments and writes no memory.
        let core = unsafe { libc::sched_getcpu() };
        u32::try_from(core).ok().map(CoreId)
    }

    /// The core that the calling thread is running on; `None` if the system does not tell.
    #[cfg(not(target_os = "linux"))]
    pub fn current_core() -> Option<CoreId> {
        None
    }

    /// The socket of a core; `None` if the system does not tell.
    pub fn socket_of(core: CoreId) -> Option<u32> {
        let path = format!("/sys/devices/system/cpu/cpu{core}/topology/physical_package_id");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_pinned_thread_runs_on_its_core() {
            for core in allowed_cores() {
                std::thread::spawn(move || {
                    pin_to(core).unwrap();
                    assert_eq!(current_core(), Some(core));
                    assert_eq!(allowed_cores(), [core]);
                    assert!(socket_of(core).is_some());
                })
                .join()
                .unwrap();
            }
        }

        #[test]
        fn a_missing_core_is_rejected() {
            for core in [CoreId(1_000), CoreId(1_024), CoreId(u32::MAX)] {
                assert_eq!(pin_to(core), Err(CoreError::NotAllowed(core)));
            }
            assert_eq!(socket_of(CoreId(u32::MAX)), None);
        }
    }
}
