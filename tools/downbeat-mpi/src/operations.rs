//! Operations to measure: those of MPI, and those of users in shared libraries.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;

use downbeat_common::records::Factors;
use downbeat_common::{Failure, agree_blocking, digest};
use downbeat_measure::CacheState;
use downbeat_measure::mpi::{
    BufferHook, MpiOperation, OperationKind, OperationSettings, PlugIn, PlugInError, PlugInName,
    WindowMemory,
};
use downbeat_records::GroupKey;
use downbeat_sync::{Comm, MpiComm, StableHasher, block_on_ready, collective};

use crate::abort::NAME;

/// Distinct operations as they were given.
#[derive(Clone, Debug)]
pub(crate) struct OperationNames(Vec<OperationName>);

#[derive(Clone, Debug, PartialEq)]
enum OperationName {
    Mpi(OperationKind),
    User(PlugInName),
}

impl OperationNames {
    /// Parses a list with commas. Items with a colon are operations of users.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut names: Vec<OperationName> = Vec::new();
        for item in text.split(',') {
            let found = if item.contains(':') {
                let name = item.parse().map_err(|why: PlugInError| why.to_string())?;
                vec![OperationName::User(name)]
            } else if item.contains('/') {
                return Err(format!(
                    "\"{item}\" names no operation of that library: write {item}:NAME"
                ));
            } else {
                let kinds = OperationKind::list(item).map_err(|why| why.to_string())?;
                kinds.into_iter().map(OperationName::Mpi).collect()
            };
            for name in found {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let names = Self(names);
        names.check_distinct(None).map(|()| names)
    }

    /// Checks that libraries have distinct names in records, also that of `buffers`.
    pub(crate) fn check_distinct(&self, buffers: Option<&PlugInName>) -> Result<(), String> {
        let users = self.0.iter().filter_map(OperationName::user);
        let libraries: Vec<&PlugInName> = users.chain(buffers).collect();
        for (index, name) in libraries.iter().enumerate() {
            let same = |other: &&&PlugInName| {
                other.library() == name.library() && other.file() != name.file()
            };
            if let Some(other) = libraries[..index].iter().find(same) {
                let [one, two] = [other, name].map(|name| name.file().display());
                return Err(format!("{one} and {two} would have one name in records"));
            }
        }
        Ok(())
    }

    /// Loads the libraries. All ranks call this.
    pub(crate) fn load(&self, comm: &MpiComm) -> Result<Vec<BenchOperation>, Failure> {
        let load = |name: &OperationName| match name {
            OperationName::Mpi(kind) => Ok(BenchOperation::Mpi(*kind)),
            OperationName::User(name) => {
                let loaded = load(name, "--operation", comm, PlugIn::load)?;
                Ok(BenchOperation::User(Box::new(loaded)))
            }
        };
        self.0.iter().map(load).collect()
    }
}

impl OperationName {
    fn user(&self) -> Option<&PlugInName> {
        match self {
            Self::Mpi(_) => None,
            Self::User(name) => Some(name),
        }
    }
}

/// Part of a library.
#[derive(Debug)]
pub(crate) struct Loaded<T> {
    pub(crate) part: T,
    pub(crate) file: LibraryFile,
}

/// File of a library that was loaded.
#[derive(Debug)]
pub(crate) struct LibraryFile {
    name: PlugInName,
    digest: String,
}

impl LibraryFile {
    /// Adds the digests of libraries to the factors, by which a changed library is noticed.
    pub(crate) fn add_digests(libraries: &[&Self], factors: Factors) -> Factors {
        libraries.iter().fold(factors, |factors, library| {
            factors.with(
                &format!("library {}", library.name.library()),
                &library.digest,
            )
        })
    }

    /// Adds the paths of libraries to the facts: they may move.
    pub(crate) fn add_paths(libraries: &[&Self], facts: Factors) -> Factors {
        libraries.iter().fold(facts, |facts, library| {
            let name = format!("path of library {}", library.name.library());
            facts.with(&name, &library.name.file().display())
        })
    }

    /// Returns each library once.
    pub(crate) fn distinct<'a>(
        operations: &'a [BenchOperation],
        buffers: Option<&'a Loaded<BufferHook>>,
    ) -> Vec<&'a Self> {
        let of_operation = |operation: &'a BenchOperation| match operation {
            BenchOperation::Mpi(_) => None,
            BenchOperation::User(loaded) => Some(&loaded.file),
        };
        let mut distinct: Vec<&Self> = Vec::new();
        let files = operations.iter().filter_map(of_operation);
        for file in files.chain(buffers.map(|buffers| &buffers.file)) {
            if !distinct
                .iter()
                .any(|known| known.name.library() == file.name.library())
            {
                distinct.push(file);
            }
        }
        distinct
    }
}

/// Loads a part of a library on all ranks or none.
fn load<T>(
    name: &PlugInName,
    option: &str,
    comm: &MpiComm,
    load: impl Fn(&PlugInName, &str) -> Result<T, PlugInError>,
) -> Result<Loaded<T>, Failure> {
    let refuse =
        |why: &dyn Display| Failure::option(option, format!("{}: {why}", name.file().display()));
    // Another program would crash differently: the file is examined before its code can run.
    let digest = digest::of_file(name.file()).map_err(|why| Failure::option(option, why));
    let digest = agree_blocking(comm, digest)?;
    let same = collective::all_equal(comm, StableHasher::hash_of(&digest));
    if !block_on_ready(same).map_err(Failure::run)? {
        return Err(refuse(&"the ranks find different files"));
    }
    let prefix = format!("{NAME}: rank {}: ", comm.rank());
    let part = load(name, &prefix).map_err(|why| refuse(&why));
    Ok(Loaded {
        part: agree_blocking(comm, part)?,
        file: LibraryFile {
            name: name.clone(),
            digest,
        },
    })
}

/// Loads the memory for messages that an option names. All ranks call this.
pub(crate) fn load_buffers(
    name: Option<&PlugInName>,
    comm: &MpiComm,
) -> Result<Option<Loaded<BufferHook>>, Failure> {
    name.map(|name| load(name, "--buffers", comm, BufferHook::load))
        .transpose()
}

/// Operation that can be measured.
#[derive(Debug)]
pub(crate) enum BenchOperation {
    /// One of MPI.
    Mpi(OperationKind),
    /// One of a user.
    User(Box<Loaded<PlugIn>>),
}

/// Writes the name in records.
impl Display for BenchOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi(kind) => kind.fmt(f),
            Self::User(loaded) => loaded.file.name.fmt(f),
        }
    }
}

impl BenchOperation {
    /// Returns the kind of an operation of MPI.
    pub(crate) fn kind(&self) -> Option<OperationKind> {
        match self {
            Self::Mpi(kind) => Some(*kind),
            Self::User(_) => None,
        }
    }

    pub(crate) fn has_message(&self) -> bool {
        match self {
            Self::Mpi(kind) => kind.has_message(),
            Self::User(loaded) => loaded.part.has_message(),
        }
    }

    /// Returns true if its message is one element.
    pub(crate) fn is_single_element(&self) -> bool {
        self.kind().is_some_and(OperationKind::is_single_element)
    }

    /// Returns the numbers of ranks among which it can be called.
    pub(crate) fn allowed_ranks(&self) -> RangeInclusive<u32> {
        match self {
            Self::Mpi(kind) => kind.min_ranks()..=u32::MAX,
            Self::User(loaded) => loaded.part.min_ranks()..=loaded.part.max_ranks(),
        }
    }

    /// Checks that the operation can be prepared for its group, and verified if that is wanted, without communication.
    pub(crate) fn check(
        &self,
        key: &GroupKey,
        settings: &OperationSettings,
        verify: bool,
        has_buffers: bool,
    ) -> Result<(), Failure> {
        match self {
            Self::Mpi(kind) => {
                if has_buffers
                    && kind.is_one_sided()
                    && settings.window_memory == WindowMemory::Allocate
                {
                    let why = "MPI allocates this memory: select create for that of --buffers";
                    return Err(Failure::option("--window-memory", why));
                }
                let checked = MpiOperation::check(*kind, key.ranks, key.bytes, settings);
                checked.map_err(|why| Failure::Input(format!("{key}: {why}")))
            }
            Self::User(loaded) => {
                let part = &loaded.part;
                if settings.threads > 1 {
                    let why = format!("{self} is called by one thread, which can start others");
                    return Err(Failure::option("--threads", why));
                }
                if verify && !part.has_check() {
                    return Err(Failure::option(
                        "--verify",
                        format!("{self} has no function check"),
                    ));
                }
                if settings.cache == CacheState::ColdByWalking && !part.has_prepare() {
                    let why = "has no function prepare, which would select another message";
                    return Err(Failure::option("--cache", format!("{self} {why}")));
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, String> {
        let written = |name: &OperationName| match name {
            OperationName::Mpi(kind) => kind.to_string(),
            OperationName::User(name) => name.to_string(),
        };
        OperationNames::parse(text).map(|names| names.0.iter().map(written).collect())
    }

    #[test]
    fn operations_of_users_stand_beside_those_of_mpi() {
        let found = names("bcast,./a.so:ring,scan,bcast,./a.so:ring,/b/c.so:ring").unwrap();
        assert_eq!(found, ["bcast", "a:ring", "scan", "c:ring"]);
        assert_eq!(names("all,./a.so:x").unwrap().last().unwrap(), "a:x");
        let cases = [
            (
                "./a.so",
                "names no operation of that library: write ./a.so:NAME",
            ),
            (
                "a/x.so:y,b/x.so:z",
                "a/x.so and b/x.so would have one name in records",
            ),
            ("./a.so:", "must end with :NAME"),
            ("bcast,", "there is no operation \"\""),
        ];
        for (text, why) in cases {
            let found = names(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
