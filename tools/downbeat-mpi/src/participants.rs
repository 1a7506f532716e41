//! Ranks that take part in a measurement, selected and ordered by their nodes and sockets.

use std::collections::{HashMap, HashSet};
use std::fmt;

use clap::ValueEnum;
use downbeat_common::Failure;
use downbeat_measure::mpi::MpiGroup;
use downbeat_sync::RankPlacement;
use downbeat_sync::{Comm, MpiComm, block_on_ready, collective};

use crate::job::JobRanks;

/// Selection of ranks, which are numbered in the order of the selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RankSelection {
    /// All ranks, in their order
    #[default]
    All,
    /// The first rank of each node
    OnePerNode,
    /// The first rank of each socket
    OnePerSocket,
    /// All ranks, numbered so that neighbours are on different nodes
    AcrossNodes,
}

/// Written as in options and records.
impl fmt::Display for RankSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |value| value.get_name()))
    }
}

impl RankSelection {
    /// Selects among the ranks in these places.
    fn of(self, places: &[RankPlacement]) -> Vec<u32> {
        let mut selected = (0..).zip(places).collect::<Vec<(u32, &RankPlacement)>>();
        match self {
            Self::All => {}
            Self::OnePerNode => keep_first_of_each(&mut selected, |place| (place.node, 0)),
            Self::OnePerSocket => {
                keep_first_of_each(&mut selected, |place| (place.node, place.socket));
            }
            Self::AcrossNodes => {
                let mut on_node: HashMap<u32, u32> = HashMap::new();
                let index_on_node = places.iter().map(|place| {
                    let number = on_node.entry(place.node).or_default();
                    *number += 1;
                    *number
                });
                let index_on_node: Vec<u32> = index_on_node.collect();
                selected.sort_by_key(|(rank, _)| index_on_node[*rank as usize]);
            }
        }
        selected.into_iter().map(|(rank, _)| rank).collect()
    }

    /// Creates the communicator of the selected ranks. All ranks call this.
    pub(crate) fn select<'a>(self, ranks: &JobRanks<'a>) -> Result<Participants<'a>, Failure> {
        let all = ranks.all;
        let failed = |why| ranks.failure(why);
        if self == Self::All {
            return Ok(Participants {
                selection: self,
                size: all.size(),
                comm: Some(SelectedComm::Whole(all)),
            });
        }
        // Only rank 0 knows the places of all.
        let selected = self.of(&ranks.places);
        let selected = selected.into_iter().flat_map(u32::to_le_bytes).collect();
        let selected =
            block_on_ready(collective::broadcast_bytes(all, selected)).map_err(failed)?;
        let (selected, _) = selected.as_chunks();
        let mut numbers = (0..).zip(selected.iter().map(|rank| u32::from_le_bytes(*rank)));
        let mine = numbers.find(|(_, rank)| *rank == all.rank());
        let number = mine.map(|(number, _)| number);
        let part = block_on_ready(all.split(number.map(|_| 0), number.unwrap_or(0)));
        Ok(Participants {
            selection: self,
            size: selected.len() as u32,
            comm: part.map_err(failed)?.map(SelectedComm::Part),
        })
    }
}

fn keep_first_of_each(
    selected: &mut Vec<(u32, &RankPlacement)>,
    unit: impl Fn(&RankPlacement) -> (u32, u32),
) {
    let mut seen = HashSet::new();
    selected.retain(|(_, place)| seen.insert(unit(place)));
}

/// Selected ranks.
#[derive(Debug)]
pub(crate) struct Participants<'a> {
    selection: RankSelection,
    /// Number of the selected ranks.
    pub(crate) size: u32,
    /// Their communicator, on these.
    comm: Option<SelectedComm<'a>>,
}

#[derive(Debug)]
enum SelectedComm<'a> {
    Whole(&'a MpiComm),
    Part(MpiComm),
}

impl Participants<'_> {
    /// Creates a group of the first of them; `None` on other ranks. All ranks call this.
    pub(crate) fn first(&self, ranks: u32) -> Result<Option<MpiGroup>, Failure> {
        let comm = match &self.comm {
            Some(SelectedComm::Whole(comm)) => comm,
            Some(SelectedComm::Part(comm)) => comm,
            None => return Ok(None),
        };
        MpiGroup::first(comm, ranks).map_err(Failure::run)
    }

    /// Names the selection, if it is one, for headlines.
    pub(crate) fn description(&self) -> String {
        match self.selection {
            RankSelection::All => String::new(),
            selection => format!(", {} by --comm {selection}", self.size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_selected_by_their_places() {
        let place = |(node, socket)| RankPlacement::new(node, socket);
        // Nodes are numbered by their first ranks; the second has one socket more.
        let places = [(0, 0), (0, 0), (0, 1), (3, 0), (3, 1), (3, 2), (0, 1)].map(place);
        let select = |selection: RankSelection| selection.of(&places);
        assert_eq!(select(RankSelection::All), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(select(RankSelection::OnePerNode), [0, 3]);
        assert_eq!(select(RankSelection::OnePerSocket), [0, 2, 3, 4, 5]);
        assert_eq!(select(RankSelection::AcrossNodes), [0, 3, 1, 4, 2, 5, 6]);
    }

    #[test]
    fn selections_are_written_as_in_options() {
        let names = RankSelection::value_variants()
            .iter()
            .map(ToString::to_string);
        let names: Vec<String> = names.collect();
        assert_eq!(
            names,
            ["all", "one-per-node", "one-per-socket", "across-nodes"]
        );
    }
}
