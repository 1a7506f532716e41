//! Settings of a recording, from variables of the environment.

use std::num::NonZeroU64;
use std::path::PathBuf;

/// Settings of the tracer in a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// `DOWNBEAT_TRACE_SPOOL`: folder of shared memory for the blocks of this rank;
    /// nothing is recorded without it. Set by `downbeat record-rank`.
    pub spool: PathBuf,
    /// `DOWNBEAT_TRACE_FILES`: folder for blocks in files, where there is no shared
    /// memory for them. Set by `downbeat record-rank`.
    pub files: PathBuf,
    /// `DOWNBEAT_TRACE_SHARED`: bytes of shared memory that blocks may take. Set by
    /// `downbeat record-rank`, which knows what there is.
    pub shared: u64,
    /// `DOWNBEAT_TRACE_MEMORY`: most memory for blocks that are not on disk yet, in MiB.
    pub memory: usize,
    /// `DOWNBEAT_TRACE_OVERFLOW`: what happens when that is used up.
    pub overflow: Overflow,
    /// `DOWNBEAT_TRACE_RESYNC`: clocks are compared again after each such number of
    /// collective operations of all ranks.
    pub resync: Option<NonZeroU64>,
    /// `DOWNBEAT_TRACE_SKIP`: groups of calls that are not recorded.
    pub skip: Vec<Group>,
}

/// Treatment of calls when blocks use all memory that they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// `flush`: the program waits until blocks are on disk.
    #[default]
    Flush,
    /// `drop`: calls are counted, but not recorded, until there is memory again.
    Drop,
}

/// Group of calls that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Group {
    /// `p2p`: sends, receives, probes, waits and tests.
    Messages,
    /// `tests`: `MPI_Test*`, `MPI_Iprobe` and `MPI_Improbe` that find nothing.
    Tests,
    /// `collectives`: collective operations.
    Collectives,
    /// `rma`: one-sided communication.
    OneSided,
    /// `io`: files.
    Files,
    /// `others`: datatypes, groups, attributes and the like.
    Others,
}

impl Group {
    /// All groups, with their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Messages, "p2p"),
        (Self::Tests, "tests"),
        (Self::Collectives, "collectives"),
        (Self::OneSided, "rma"),
        (Self::Files, "io"),
        (Self::Others, "others"),
    ];
}

/// Wrong value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongSetting(String);

/// Variables by which launchers tell a process its rank.
const RANKS: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_PROCID",
];

/// Returns true in the first rank, and where the rank is unknown: it prints what concerns
/// all ranks.
pub fn is_first_rank(variable: impl Fn(&str) -> Option<String>) -> bool {
    let rank = RANKS.into_iter().find_map(variable);
    rank.is_none_or(|rank| rank == "0")
}

/// File in the folder of a rank's blocks with the number of the process that records,
/// which holds it locked.
pub const OWNER: &str = "owner";

/// File in that folder that the parent of the rank holds locked while it lives.
pub const PARENT: &str = "parent";

/// File in that folder that the rank makes when it waits for memory; its parent removes
/// it, and collects the blocks that are full.
pub const WAITING: &str = "waiting";

/// File in that folder that the parent makes when it can write no more: no rank waits for
/// memory from then on.
pub const STOPPED: &str = "stopped";

/// Variable with the path of libdownbeat_mpi, which synchronizes the clocks.
pub const LIBRARY: &str = "DOWNBEAT_TRACE_LIBRARY";

/// Variable with the folder of a rank's blocks.
pub const SPOOL: &str = "DOWNBEAT_TRACE_SPOOL";
/// Variable with the folder of a rank's blocks in files.
pub const FILES: &str = "DOWNBEAT_TRACE_FILES";
/// Variable with the bytes of shared memory for a rank's blocks.
pub const SHARED: &str = "DOWNBEAT_TRACE_SHARED";
const MEMORY: &str = "DOWNBEAT_TRACE_MEMORY";
const OVERFLOW: &str = "DOWNBEAT_TRACE_OVERFLOW";
const RESYNC: &str = "DOWNBEAT_TRACE_RESYNC";
const SKIP: &str = "DOWNBEAT_TRACE_SKIP";

/// Reads a variable, if it is set.
fn read_value<T>(
    variable: impl Fn(&str) -> Option<String>,
    name: &str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, WrongSetting> {
    let Some(value) = variable(name) else {
        return Ok(None);
    };
    let wrong = || WrongSetting(format!("{name}={value}: expected {expected}"));
    parse(&value).map(Some).ok_or_else(wrong)
}

impl Settings {
    /// Reads the settings through `variable`; `None` if nothing shall be recorded.
    ///
    /// # Errors
    /// The first wrong value.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, WrongSetting> {
        let settings = Self::check(&variable)?;
        let shared = variable(SHARED).and_then(|bytes| bytes.parse().ok());
        Ok(variable(SPOOL).map(|spool| Self {
            files: variable(FILES).map_or_else(|| spool.clone().into(), PathBuf::from),
            spool: spool.into(),
            shared: shared.unwrap_or_else(|| settings.most_bytes()),
            ..settings
        }))
    }

    /// Reads the settings of the user, without a folder.
    ///
    /// # Errors
    /// The first wrong value.
    pub fn check(variable: impl Fn(&str) -> Option<String>) -> Result<Self, WrongSetting> {
        let memory = read_value(
            &variable,
            MEMORY,
            "a whole number of MiB, at least 4",
            |mib| {
                // Blocks for one thread.
                mib.parse().ok().filter(|mib| *mib >= 4)
            },
        )?;
        let overflow = read_value(&variable, OVERFLOW, "flush or drop", |value| match value {
            "flush" => Some(Overflow::Flush),
            "drop" => Some(Overflow::Drop),
            _ => None,
        })?;
        let number = "a number of collective operations, at least 1";
        let resync = read_value(&variable, RESYNC, number, |value| value.parse().ok())?;
        let names = Group::ALL.map(|(_, name)| name).join(", ");
        let names = format!("names of groups, separated by commas, of {names}");
        let skip = read_value(&variable, SKIP, &names, |value| {
            let names = value.split(',').filter(|name| !name.is_empty());
            let known = |name| Group::ALL.into_iter().find(|(_, known)| *known == name);
            names.map(|name| Some(known(name)?.0)).collect()
        })?;
        Ok(Self {
            memory: memory.unwrap_or(256),
            overflow: overflow.unwrap_or_default(),
            resync,
            skip: skip.unwrap_or_default(),
            ..Self::default()
        })
    }

    /// Returns the largest number of bytes of blocks that are not on disk.
    pub const fn most_bytes(&self) -> u64 {
        (self.memory as u64) << 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let variable = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::read(variable).map_err(|why| why.to_string())
    }

    #[test]
    fn settings_have_defaults() {
        assert_eq!(read(&[]), Ok(None));
        let settings = read(&[(SPOOL, "/dev/shm/a")]).unwrap().unwrap();
        assert_eq!(
            (settings.most_bytes(), settings.shared, settings.overflow),
            (256 << 20, 256 << 20, Overflow::Flush)
        );
        let set = [
            (SPOOL, "a"),
            (MEMORY, "8"),
            (OVERFLOW, "drop"),
            (SKIP, "io,rma"),
        ];
        let settings = read(&set).unwrap().unwrap();
        assert_eq!((settings.memory, settings.overflow), (8, Overflow::Drop));
        assert_eq!(settings.skip, [Group::Files, Group::OneSided]);
    }

    #[test]
    fn the_first_rank_is_known_by_the_launcher() {
        let of = |set: &'static str, value: &'static str| {
            is_first_rank(move |name| (name == set).then(|| value.to_owned()))
        };
        assert!(of("none", "7") && of("PMI_RANK", "0") && of("SLURM_PROCID", "0"));
        assert!(!of("PMI_RANK", "1") && !of("OMPI_COMM_WORLD_RANK", "10"));
    }

    #[test]
    fn wrong_values_are_named() {
        for (variable, value, why) in [
            (MEMORY, "3", "at least 4"),
            (MEMORY, "-1", "at least 4"),
            (MEMORY, "much", "at least 4"),
            (OVERFLOW, "both", "flush or drop"),
            (RESYNC, "0", "at least 1"),
            (RESYNC, "10s", "at least 1"),
            (SKIP, "io,waits", "p2p, tests"),
        ] {
            let said = read(&[(variable, value)]).unwrap_err();
            assert!(said.starts_with(&format!("{variable}={value}: ")), "{said}");
            assert!(said.contains(why), "{said}");
        }
    }
}
