//! Content of the records of `downbeat time`.

use downbeat_records::{GroupKey, Launch, WALL};

/// Name of the fact that states how the command ended.
pub(super) const EXIT: &str = "exit";

/// Name of the fact that states the largest memory of the command, in bytes.
pub(super) const PEAK_MEMORY: &str = "peak_memory_bytes";

/// Name of the fact that states the time that an empty process takes, in nanoseconds.
pub(super) const EMPTY_TIME: &str = "empty_process_ns";

/// Name of the fact that states the memory that an empty process seems to take, in bytes: a command that seems to take no more may
/// take less.
pub(super) const LEAST_MEMORY: &str = "least_memory_bytes";

/// Value of that fact after success.
pub(super) const SUCCESS: &str = "exit status: 0";

/// A time of a run, which is a group of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Time from the start to the end.
    Wall,
    /// Processor time in the program.
    User,
    /// Processor time in the kernel.
    System,
}

impl Figure {
    pub(super) const ALL: [Self; 3] = [Self::Wall, Self::User, Self::System];

    /// Key of the group.
    pub(super) fn key(self) -> GroupKey {
        let operation = match self {
            Self::Wall => WALL,
            Self::User => "user",
            Self::System => "system",
        };
        GroupKey {
            operation: operation.to_owned(),
            bytes: 0,
            ranks: 1,
        }
    }
}

/// Returns the number that a fact of a launch states. A launch that was interrupted while its record was written states it again.
pub(super) fn stated(launch: &Launch, fact: &str) -> Option<u64> {
    launch.distinct(fact).last()?.parse().ok()
}

/// Returns true if the command failed in this launch, and was counted nevertheless.
pub(super) fn has_failed(launch: &Launch) -> bool {
    launch
        .distinct(EXIT)
        .last()
        .is_some_and(|exit| *exit != SUCCESS)
}
