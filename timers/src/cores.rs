//! Cores: listing, pinning threads, the current core, and the comparison of their counters.

#[cfg(feature = "std")]
mod compare;

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
pub use compare::{ALL_PAIRS_UP_TO, CoreOffset, compare_cores, compare_pair};
#[cfg(feature = "std")]
pub use with_std::{
    CAN_PIN, CoreError, allow_cores, allowed_cores, available_cores, core_of_rank, current_core,
    pin_rank, pin_to, socket_of,
};

#[cfg(feature = "std")]
mod with_std {
    #[cfg(target_os = "linux")]
    use core::mem::size_of_val;
    use std::path::PathBuf;

    use downbeat_clock_core::FitError;

    use super::{CoreId, fmt};

    /// Reason why a thread could not be pinned, two cores could not be compared, or the
    /// caches of a core are unknown.
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
        /// The counter ran backwards on a core, or the counters of the two cores moved
        /// against each other.
        Readings(FitError),
        /// The system lists no caches, as on systems other than Linux, or there is no
        /// such core.
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

    /// One bit for each core: eight times as many as the C library's own type has, for
    /// machines with more than 1,024 cores.
    #[cfg(target_os = "linux")]
    struct CoreSet([usize; 8_192 / usize::BITS as usize]);

    #[cfg(target_os = "linux")]
    impl CoreSet {
        const EMPTY: Self = Self([0; 8_192 / usize::BITS as usize]);
        const ALL: Self = Self([usize::MAX; 8_192 / usize::BITS as usize]);

        /// Returns the word and the bit of a core.
        fn place(core: u32) -> (usize, usize) {
            ((core / usize::BITS) as usize, 1 << (core % usize::BITS))
        }

        fn of_this_thread() -> Self {
            let mut set = Self::EMPTY;
            let size = size_of_val(&set.0);
            // SAFETY: the call writes at most `size` bytes to the set, which has this
            // many, all of whose values are valid.
            let result = unsafe { libc::sched_getaffinity(0, size, set.0.as_mut_ptr().cast()) };
            if result == 0 { set } else { Self::EMPTY }
        }

        fn set_for_this_thread(&self) -> bool {
            let size = size_of_val(&self.0);
            // SAFETY: the call reads at most `size` bytes of the set, which has this many.
            unsafe { libc::sched_setaffinity(0, size, self.0.as_ptr().cast()) == 0 }
        }
    }

    /// Number of cores from which `core_affinity` fails: it lists none, and aborts when
    /// it pins to one beyond.
    const MANY_CORES: u32 = 1_024;

    /// The cores that this thread may run on, in ascending order; empty if the system
    /// does not list them.
    ///
    /// Windows lists the cores of the process, at most 64, also for a pinned thread.
    /// macOS lists all cores.
    pub fn allowed_cores() -> Vec<CoreId> {
        let found = core_affinity::get_core_ids();
        let number = |core: core_affinity::CoreId| CoreId(core.id as u32);
        found.map_or_else(many_allowed_cores, |cores| {
            cores.into_iter().map(number).collect()
        })
    }

    /// The allowed cores where there are more than `core_affinity` lists.
    #[cfg(target_os = "linux")]
    fn many_allowed_cores() -> Vec<CoreId> {
        let set = CoreSet::of_this_thread();
        let has = |core: &u32| {
            let (word, bit) = CoreSet::place(*core);
            set.0[word] & bit != 0
        };
        let bits = set.0.len() as u32 * usize::BITS;
        (0..bits).filter(has).map(CoreId).collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn many_allowed_cores() -> Vec<CoreId> {
        vec![]
    }

    /// The cores that this thread could run on if it asked for all: the cores of its
    /// control group, or the [allowed cores](allowed_cores) where the system does not
    /// tell.
    #[cfg(target_os = "linux")]
    pub fn available_cores() -> Vec<CoreId> {
        // A thread of its own asks: the calling thread keeps its cores, also if this
        // fails.
        let asking = std::thread::Builder::new().spawn(|| {
            // A system that refuses leaves the cores of the calling thread.
            CoreSet::ALL.set_for_this_thread();
            allowed_cores()
        });
        let available = asking.ok().and_then(|asking| asking.join().ok());
        available.unwrap_or_else(allowed_cores)
    }

    /// The cores that this thread could run on if it asked for all: the cores of its
    /// control group, or the [allowed cores](allowed_cores) where the system does not
    /// tell.
    #[cfg(not(target_os = "linux"))]
    pub fn available_cores() -> Vec<CoreId> {
        allowed_cores()
    }

    /// True where threads can be pinned: on macOS they cannot, since `core_affinity` 0.8
    /// passes a truncated address as the port of the thread.
    pub const CAN_PIN: bool = !cfg!(target_os = "macos");

    /// Pins the calling thread to a core.
    ///
    /// # Errors
    /// If there is no such core, the thread may not run there, or the system refuses, as
    /// always where threads [cannot be pinned](CAN_PIN).
    pub fn pin_to(core: CoreId) -> Result<(), CoreError> {
        if !allowed_cores().contains(&core) {
            return Err(CoreError::NotAllowed(core));
        }
        let id = core.0 as usize;
        match core.0 {
            _ if !CAN_PIN => Err(CoreError::Refused(core)),
            MANY_CORES.. => allow_cores(&[core]),
            _ if core_affinity::set_for_current(core_affinity::CoreId { id }) => Ok(()),
            _ => Err(CoreError::Refused(core)),
        }
    }

    /// The core for the thread of this rank: ranks share the allowed cores if there are
    /// too few. `None` if the system does not list them.
    pub fn core_of_rank(rank: u32) -> Option<CoreId> {
        let cores = allowed_cores();
        cores.get(rank as usize % cores.len().max(1)).copied()
    }

    /// Pins the calling thread to the [core of its rank](core_of_rank). Does nothing
    /// where the system does not list its cores.
    ///
    /// # Errors
    /// If the system refuses, as always where threads [cannot be pinned](CAN_PIN).
    pub fn pin_rank(rank: u32) -> Result<(), CoreError> {
        core_of_rank(rank).map_or(Ok(()), pin_to)
    }

    /// Lets the calling thread run on these cores only, also on cores that a launcher did
    /// not give it. Only Linux does so.
    ///
    /// # Errors
    /// If the system refuses: it has none of these cores, or keeps the process from them.
    pub fn allow_cores(cores: &[CoreId]) -> Result<(), CoreError> {
        match cores.first() {
            Some(first) if !allow(cores) => Err(CoreError::Refused(*first)),
            _ => Ok(()),
        }
    }

    #[cfg(target_os = "linux")]
    fn allow(cores: &[CoreId]) -> bool {
        let mut only = CoreSet::EMPTY;
        for core in cores {
            let (word, bit) = CoreSet::place(core.0);
            match only.0.get_mut(word) {
                Some(word) => *word |= bit,
                None => return false,
            }
        }
        only.set_for_this_thread()
    }

    #[cfg(not(target_os = "linux"))]
    fn allow(_: &[CoreId]) -> bool {
        false
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

        #[cfg(target_os = "linux")]
        #[test]
        fn a_pinned_thread_runs_on_its_core() {
            for core in allowed_cores() {
                let all = available_cores();
                std::thread::spawn(move || {
                    pin_to(core).unwrap();
                    assert_eq!(current_core(), Some(core));
                    assert_eq!(allowed_cores(), [core]);
                    assert_eq!(available_cores(), all);
                    assert_eq!(allowed_cores(), [core]);
                    assert!(socket_of(core).is_some());
                })
                .join()
                .unwrap();
            }
        }

        #[cfg(target_os = "linux")]
        #[test]
        fn cores_beyond_those_of_the_c_library_can_be_used() {
            assert_eq!(many_allowed_cores(), allowed_cores());
            assert!(allow_cores(&many_allowed_cores()).is_ok());
            for core in [CoreId(MANY_CORES), CoreId(8_191), CoreId(8_192)] {
                assert_eq!(allow_cores(&[core]), Err(CoreError::Refused(core)));
            }
        }

        #[test]
        fn a_missing_core_is_rejected() {
            for core in [CoreId(1_000), CoreId(8_192), CoreId(u32::MAX)] {
                assert_eq!(pin_to(core), Err(CoreError::NotAllowed(core)));
            }
            assert_eq!(socket_of(CoreId(u32::MAX)), None);
        }
    }
}

/// Tests of clocks on several cores.
#[cfg(test)]
#[cfg(feature = "std")]
pub(crate) mod tests {
    use std::sync::mpsc;
    use std::thread;

    use downbeat_clock_core::Clock;

    use super::{CAN_PIN, allowed_cores, pin_rank};

    /// Checks that a reading that is sent to another core is not ahead of the next
    /// reading there, where the system pins threads.
    pub(crate) fn check_order_between_cores<K>(clock: K, readings: usize)
    where
        K: Clock + Copy + Send + 'static,
    {
        if allowed_cores().len() < 2 || !CAN_PIN {
            return;
        }
        let (send, receive) = mpsc::channel();
        let sender = thread::spawn(move || {
            pin_rank(0).unwrap();
            for _ in 0..readings {
                send.send(clock.ticks()).unwrap();
            }
        });
        pin_rank(1).unwrap();
        for sent in receive {
            let here = clock.ticks();
            assert!(here >= sent, "{here:?} is behind {sent:?}");
        }
        sender.join().unwrap();
    }
}
