//! Global definitions of an archive: locations, communicators, regions, the clock.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

/// Global definitions that are used, by their references in the archive.
#[derive(Debug, Default)]
pub(super) struct Otf2Definitions {
    /// Ticks per second; 0 if the archive does not define it.
    pub(super) resolution: u64,
    pub(super) strings: HashMap<u32, String>,
    pub(super) nodes: HashMap<u32, Otf2Node>,
    pub(super) processes: HashMap<u32, Otf2Process>,
    pub(super) locations: Vec<Otf2Location>,
    /// Regions with a meaning for other locations.
    pub(super) regions: FxHashMap<u32, Otf2Region>,
    /// All regions with the references of their names.
    pub(super) region_names: Vec<(u32, u32)>,
    pub(super) groups: HashMap<u32, Otf2Group>,
    pub(super) communicators: HashMap<u32, Otf2Communicator>,
}

/// Node of the system tree: a machine, a host, a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Otf2Node {
    pub(super) class: u32,
    pub(super) parent: u32,
    /// True if everything below it shares memory.
    pub(super) shares_memory: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Otf2Process {
    pub(super) node: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Otf2Location {
    pub(super) id: u64,
    pub(super) name: u32,
    pub(super) events: u64,
    pub(super) process: u32,
}

/// Meaning of a region's enter and leave for other locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otf2Region {
    Other,
    MpiInit,
    MpiFinalize,
    /// Barrier of a team of threads.
    ThreadBarrier,
}

#[derive(Clone, Debug)]
pub(super) struct Otf2Group {
    pub(super) kind: u8,
    pub(super) paradigm: u8,
    /// True if the members are locations in any kind of group.
    pub(super) of_locations: bool,
    pub(super) members: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Otf2Communicator {
    Within(u32),
    /// Intercommunicator between two groups.
    Between([u32; 2]),
}

pub(super) const UNDEFINED: u32 = u32::MAX;

// Values from `OTF2_Definitions.h` and `OTF2_GeneralDefinitions.h`.
pub(super) const DOMAIN_SHARED_MEMORY: u8 = 1;
pub(super) const GROUP_COMM_LOCATIONS: u8 = 4;
pub(super) const GROUP_COMM_GROUP: u8 = 5;
pub(super) const GROUP_COMM_SELF: u8 = 6;
pub(super) const GROUP_GLOBAL_MEMBERS: u32 = 1;
pub(super) const PARADIGM_OPENMP: u8 = 3;
pub(super) const PARADIGM_MPI: u8 = 4;
pub(super) const ROLE_BARRIER: u8 = 15;
pub(super) const ROLE_IMPLICIT_BARRIER: u8 = 16;

impl Otf2Definitions {
    pub(super) fn string(&self, string: u32) -> &str {
        self.strings.get(&string).map_or("", String::as_str)
    }

    pub(super) fn add_region(&mut self, region: u32, name: u32, role: u8, paradigm: u8) {
        self.region_names.push((region, name));
        let kind = match (paradigm, role) {
            (PARADIGM_MPI, _) => match self.string(name) {
                "MPI_Init" | "MPI_Init_thread" => Otf2Region::MpiInit,
                "MPI_Finalize" => Otf2Region::MpiFinalize,
                _ => Otf2Region::Other,
            },
            (PARADIGM_OPENMP, ROLE_BARRIER | ROLE_IMPLICIT_BARRIER) => Otf2Region::ThreadBarrier,
            _ => Otf2Region::Other,
        };
        if kind != Otf2Region::Other {
            self.regions.insert(region, kind);
        }
    }

    pub(super) fn region(&self, region: u32) -> Otf2Region {
        self.regions
            .get(&region)
            .copied()
            .unwrap_or(Otf2Region::Other)
    }

    /// Returns the node of a process: the outermost system tree node that shares memory or is
    /// called a node; otherwise the parent of the process.
    pub(super) fn node_of(&self, process: u32) -> u32 {
        let Some(Otf2Process { node: start }) = self.processes.get(&process).copied() else {
            return UNDEFINED;
        };
        let (mut found, mut at) = (start, start);
        // Bounded, as a damaged archive may contain a cycle.
        for _ in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(&at) else {
                break;
            };
            if node.shares_memory || self.string(node.class).eq_ignore_ascii_case("node") {
                found = at;
            }
            at = node.parent;
        }
        found
    }

    /// Returns the locations by their global rank in a paradigm.
    pub(super) fn ranks(&self, paradigm: u8) -> &[u64] {
        let of_paradigm =
            |group: &&Otf2Group| group.kind == GROUP_COMM_LOCATIONS && group.paradigm == paradigm;
        self.groups
            .values()
            .find(of_paradigm)
            .map_or(&[], |group| &group.members)
    }

    /// Returns the locations of a communicator's group, by rank; `None` if there is no such group,
    /// or if it is the group of each location alone.
    pub(super) fn members(&self, group: u32) -> Option<Vec<u64>> {
        let group = self.groups.get(&group)?;
        match group.kind {
            GROUP_COMM_SELF => None,
            GROUP_COMM_GROUP if !group.of_locations => {
                let ranks = self.ranks(group.paradigm);
                group
                    .members
                    .iter()
                    .map(|&rank| ranks.get(usize::try_from(rank).ok()?).copied())
                    .collect()
            }
            _ => Some(group.members.clone()),
        }
    }
}
