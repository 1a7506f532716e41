//! Barriers that are studied: ours, and algorithms of the library's own barrier.

use std::fmt;

use downbeat_common::{Failure, agree_blocking};
use downbeat_measure::mpi::{BarrierAlgorithms, MpiGroup};
use downbeat_measure::{Barrier, Coordinator};
use downbeat_sync::block_on_ready;

use crate::job::JobRanks;

/// Barrier that is studied.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StudiedBarrier {
    /// One that can be selected everywhere.
    Known(Barrier),
    /// Algorithm of the library's own barrier.
    Algorithm(String),
}

/// Written as in records.
impl fmt::Display for StudiedBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(barrier) => barrier.fmt(f),
            Self::Algorithm(name) => write!(f, "{}:{name}", Barrier::Library),
        }
    }
}

impl StudiedBarrier {
    /// Returns the barrier that ranks call.
    pub(super) fn called(&self) -> Barrier {
        match self {
            Self::Known(barrier) => *barrier,
            Self::Algorithm(_) => Barrier::Library,
        }
    }

    /// Gives the group whose barrier it is to `run`, after one trial; returns why the trial failed otherwise. All ranks call this.
    pub(super) fn with_group<R>(
        &self,
        ranks: &JobRanks<'_>,
        usual: &MpiGroup,
        algorithms: Option<&BarrierAlgorithms>,
        run: impl FnOnce(&MpiGroup) -> Result<R, Failure>,
    ) -> Result<Result<R, String>, Failure> {
        let (Self::Algorithm(name), Some(algorithms)) = (self, algorithms) else {
            return run(usual).map(Ok);
        };
        let selected = algorithms.select(name).map_err(|why| ranks.failure(why));
        // Held until the end of the measurement.
        let _selected = agree_blocking(ranks.all, selected)?;
        // Communicators take the algorithm when they are created.
        let group = agree_blocking(
            ranks.all,
            MpiGroup::all(usual.comm()).map_err(|why| ranks.failure(why)),
        )?;
        let tried = block_on_ready(group.barrier()).map_err(Failure::run);
        match agree_blocking(ranks.all, tried) {
            Ok(()) => run(&group).map(Ok),
            Err(Failure::Run(why)) => Ok(Err(why)),
            Err(other) => Err(other),
        }
    }
}

/// Algorithms that the user wants to study: all that the library has, or these.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WantedAlgorithms {
    All,
    These(Vec<String>),
}

impl WantedAlgorithms {
    /// Parses a list with commas.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) {
            return Err("expected all, or names of algorithms separated by commas".to_owned());
        }
        Ok(match names.as_slice() {
            [all] if all == "all" => Self::All,
            _ => Self::These(names),
        })
    }

    /// Selects them from those of the library.
    pub(super) fn select(
        &self,
        library: &BarrierAlgorithms,
    ) -> Result<Vec<StudiedBarrier>, Failure> {
        let known: Vec<&str> = library.names().collect();
        let selected = match self {
            Self::All => known.clone(),
            Self::These(names) => names.iter().map(String::as_str).collect(),
        };
        if let Some(unknown) = selected.iter().find(|name| !known.contains(*name)) {
            return Err(Failure::option(
                "--algorithms",
                format!(
                    "the library has no barrier algorithm \"{unknown}\"; it has {}",
                    known.join(", ")
                ),
            ));
        }
        let algorithm = |name: &str| StudiedBarrier::Algorithm(name.to_owned());
        Ok(selected.into_iter().map(algorithm).collect())
    }

    /// Finds the algorithms of the library. All ranks call this.
    pub(super) fn find(ranks: &JobRanks<'_>) -> Result<BarrierAlgorithms, Failure> {
        let found = match BarrierAlgorithms::find() {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(Failure::option(
                "--algorithms",
                "this MPI library does not let programs select its barrier algorithm",
            )),
            Err(why) => Err(ranks.failure(why)),
        };
        agree_blocking(ranks.all, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_all_or_named() {
        assert_eq!(WantedAlgorithms::parse("all"), Ok(WantedAlgorithms::All));
        let these = ["bruck", "tree"].map(str::to_owned).to_vec();
        assert_eq!(
            WantedAlgorithms::parse("bruck,tree"),
            Ok(WantedAlgorithms::These(these))
        );
        for wrong in ["", "bruck,", ",", "a,,b"] {
            assert!(WantedAlgorithms::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn algorithms_have_other_names_than_our_barriers() {
        let algorithm = StudiedBarrier::Algorithm("tree".to_owned());
        assert_eq!(algorithm.to_string(), "library:tree");
        assert_eq!(StudiedBarrier::Known(Barrier::Tree).to_string(), "tree");
        assert_eq!(algorithm.called(), Barrier::Library);
    }
}
