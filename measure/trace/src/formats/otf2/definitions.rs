//! Global definitions of an archive: locations, communicators, regions, the clock.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxHashMap;

use super::record::{Fields, TRUNCATED, order, parts, records};

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
    pub(super) groups: BTreeMap<u32, Otf2Group>,
    /// Locations by their ranks, for every paradigm.
    ranks: BTreeMap<u8, Vec<u64>>,
    pub(super) communicators: BTreeMap<u32, Otf2Communicator>,
    /// Communicators of RMA windows.
    pub(super) windows: BTreeMap<u32, u32>,
    /// Definitions with the reference of an earlier one, which they replace: the kind and the
    /// reference.
    pub(super) redefined: Vec<(&'static str, u64)>,
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
    pub(super) name: u32,
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
const GROUP_GLOBAL_MEMBERS: u32 = 1;
const PARADIGM_UNKNOWN: u8 = 0;
pub(super) const PARADIGM_OPENMP: u8 = 3;
pub(super) const PARADIGM_MPI: u8 = 4;
pub(super) const ROLE_BARRIER: u8 = 15;
pub(super) const ROLE_IMPLICIT_BARRIER: u8 = 16;

/// Kinds of records of global definitions.
pub(super) mod kind {
    pub(in super::super) const CLOCK_PROPERTIES: u8 = 5;
    pub(in super::super) const STRING: u8 = 10;
    pub(in super::super) const SYSTEM_TREE_NODE: u8 = 12;
    pub(in super::super) const LOCATION_GROUP: u8 = 13;
    pub(in super::super) const LOCATION: u8 = 14;
    pub(in super::super) const REGION: u8 = 15;
    pub(in super::super) const GROUP: u8 = 18;
    pub(in super::super) const COMM: u8 = 22;
    pub(in super::super) const RMA_WIN: u8 = 24;
    pub(in super::super) const SYSTEM_TREE_NODE_DOMAIN: u8 = 27;
    pub(in super::super) const INTER_COMM: u8 = 43;
}

/// State of a file that is parsed.
#[derive(Default)]
struct Seen {
    /// Indices of locations.
    locations: FxHashMap<u64, usize>,
    regions: Vec<DefinedRegion>,
}

/// Region as it is defined. Its name may be defined later.
struct DefinedRegion {
    reference: u32,
    name: u32,
    role: u8,
    paradigm: u8,
}

impl Otf2Definitions {
    /// Parses a file of global definitions. Records of other kinds are skipped, and so are fields
    /// that later versions added at the end of a record.
    ///
    /// # Errors
    /// If the file does not consist of whole records, or a record cannot be decoded.
    pub(super) fn parse(file: &[u8], chunk: usize) -> Result<Self, String> {
        let order = order(file).ok_or(TRUNCATED)?;
        let (mut found, mut seen) = (Self::default(), Seen::default());
        for (number, record) in (0..).zip(records(file, order, chunk)) {
            let (kind, data) = parts(record?, order);
            let taken = found.take(kind, data, &mut seen);
            taken.ok_or_else(|| format!("definition {number} (kind {kind}) cannot be decoded"))?;
        }
        for region in seen.regions {
            found.add_region(&region);
        }
        Ok(found)
    }

    /// Takes a record; `None` if its data cannot be decoded.
    fn take(&mut self, kind: u8, mut data: Fields<'_>, seen: &mut Seen) -> Option<()> {
        let before = match kind {
            kind::CLOCK_PROPERTIES => {
                self.resolution = data.number()?;
                None
            }
            kind::STRING => {
                let reference = data.half()?;
                let before = self.strings.insert(reference, data.string()?).is_some();
                before.then_some(("string", reference.into()))
            }
            kind::SYSTEM_TREE_NODE => {
                let (reference, _name) = (data.half()?, data.half()?);
                let node = Otf2Node {
                    class: data.half()?,
                    parent: data.half()?,
                    shares_memory: false,
                };
                let before = self.nodes.insert(reference, node).is_some();
                before.then_some(("system tree node", reference.into()))
            }
            kind::SYSTEM_TREE_NODE_DOMAIN => {
                let (node, domain) = (data.half()?, data.byte()?);
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.shares_memory |= domain == DOMAIN_SHARED_MEMORY;
                }
                None
            }
            kind::LOCATION_GROUP => {
                let (reference, name, _type) = (data.half()?, data.half()?, data.byte()?);
                let process = Otf2Process {
                    name,
                    node: data.half()?,
                };
                let before = self.processes.insert(reference, process).is_some();
                before.then_some(("location group", reference.into()))
            }
            kind::LOCATION => {
                let (id, name, _type) = (data.number()?, data.half()?, data.byte()?);
                let location = Otf2Location {
                    id,
                    name,
                    events: data.number()?,
                    process: data.half()?,
                };
                let index = *seen.locations.entry(id).or_insert(self.locations.len());
                match self.locations.get_mut(index) {
                    Some(before) => {
                        *before = location;
                        Some(("location", id))
                    }
                    None => {
                        self.locations.push(location);
                        None
                    }
                }
            }
            kind::REGION => {
                seen.regions.push(DefinedRegion::decode(&mut data)?);
                None
            }
            kind::GROUP => {
                let (reference, group) = Otf2Group::decode(&mut data)?;
                if group.kind == GROUP_COMM_LOCATIONS {
                    self.ranks.insert(group.paradigm, group.members.clone());
                }
                let before = self.groups.insert(reference, group).is_some();
                before.then_some(("group", reference.into()))
            }
            kind::COMM => {
                let (reference, _name) = (data.half()?, data.half()?);
                let within = Otf2Communicator::Within(data.half()?);
                let before = self.communicators.insert(reference, within).is_some();
                before.then_some(("communicator", reference.into()))
            }
            kind::RMA_WIN => {
                let (reference, _name) = (data.half()?, data.half()?);
                let before = self.windows.insert(reference, data.half()?).is_some();
                before.then_some(("RMA window", reference.into()))
            }
            kind::INTER_COMM => {
                let (reference, _name) = (data.half()?, data.half()?);
                let between = Otf2Communicator::Between([data.half()?, data.half()?]);
                let before = self.communicators.insert(reference, between).is_some();
                before.then_some(("communicator", reference.into()))
            }
            _ => None,
        };
        self.redefined.extend(before);
        Some(())
    }

    pub(super) fn string(&self, string: u32) -> &str {
        self.strings.get(&string).map_or("", String::as_str)
    }

    /// Returns the name of a location, after that of its location group where that tells the MPI
    /// rank: a thread has the same name on all ranks.
    pub(super) fn location_name(&self, location: &Otf2Location) -> String {
        let name = self.string(location.name);
        let process = self.processes.get(&location.process);
        let process = process.map_or("", |process| self.string(process.name));
        match process.strip_prefix("MPI Rank ") {
            Some(rank) => format!("rank {rank}, {name}"),
            None => name.to_owned(),
        }
    }

    fn add_region(&mut self, region: &DefinedRegion) {
        let DefinedRegion {
            reference,
            name,
            role,
            paradigm,
        } = *region;
        self.region_names.push((reference, name));
        let kind = match (paradigm, role) {
            // The oldest regions of functions have no paradigm.
            (PARADIGM_MPI | PARADIGM_UNKNOWN, _) => match self.string(name) {
                "MPI_Init" | "MPI_Init_thread" => Otf2Region::MpiInit,
                "MPI_Finalize" => Otf2Region::MpiFinalize,
                _ => Otf2Region::Other,
            },
            (PARADIGM_OPENMP, ROLE_BARRIER | ROLE_IMPLICIT_BARRIER) => Otf2Region::ThreadBarrier,
            _ => Otf2Region::Other,
        };
        if kind != Otf2Region::Other {
            self.regions.insert(reference, kind);
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
        let Some(Otf2Process { node: start, .. }) = self.processes.get(&process).copied() else {
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
        self.ranks.get(&paradigm).map_or(&[], Vec::as_slice)
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

impl DefinedRegion {
    /// Decodes a record, which consists of the fields of the first version, and those that replaced
    /// some of them since.
    fn decode(data: &mut Fields<'_>) -> Option<Self> {
        let (reference, name) = (data.half()?, data.half()?);
        let (_description, first_type) = (data.half()?, data.byte()?);
        let (_file, _begin, _end) = (data.half()?, data.half()?, data.half()?);
        let (mut role, mut paradigm) = match first_type {
            14 => (ROLE_BARRIER, PARADIGM_OPENMP),
            15 => (ROLE_IMPLICIT_BARRIER, PARADIGM_OPENMP),
            _ => (0, PARADIGM_UNKNOWN),
        };
        if !data.is_over() {
            let _canonical_name = data.half()?;
            (role, paradigm) = (data.byte()?, data.byte()?);
        }
        Some(Self {
            reference,
            name,
            role,
            paradigm,
        })
    }
}

impl Otf2Group {
    /// Decodes a record with its reference, as that of a region.
    fn decode(data: &mut Fields<'_>) -> Option<(u32, Self)> {
        let (reference, _name, first_type) = (data.half()?, data.half()?, data.byte()?);
        let count = data.half()?;
        // A member has a byte at least, so a wrong count takes no memory.
        let members: Option<Vec<u64>> = (0..count).map(|_| data.number()).collect();
        let members = members?;
        let (mut kind, mut paradigm) = match first_type {
            4 => (GROUP_COMM_GROUP, PARADIGM_MPI),
            5 => (GROUP_COMM_SELF, PARADIGM_MPI),
            6 => (GROUP_COMM_LOCATIONS, PARADIGM_MPI),
            other => (other, PARADIGM_UNKNOWN),
        };
        let mut flags = 0;
        if !data.is_over() {
            (kind, paradigm, flags) = (data.byte()?, data.byte()?, data.half()?);
        }
        let group = Self {
            kind,
            paradigm,
            of_locations: kind == GROUP_COMM_LOCATIONS || flags & GROUP_GLOBAL_MEMBERS != 0,
            members,
        };
        Some((reference, group))
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunks::RecordWriter;
    use super::super::record::Order;
    use super::*;

    const CHUNK: usize = 4096;

    /// Field of a record.
    enum F {
        /// Number of variable length.
        N(u64),
        Undefined,
        /// Byte.
        B(u8),
        Text(&'static str),
    }
    use F::{B, N, Text, Undefined};

    fn file(order: Order, definitions: &[(u8, Vec<F>)]) -> Vec<u8> {
        let mut to = RecordWriter::new(vec![], CHUNK, order);
        for (kind, fields) in definitions {
            let mut data = vec![];
            for field in fields {
                match *field {
                    N(number) => order.put(number, &mut data),
                    Undefined => data.push(0xff),
                    B(byte) => data.push(byte),
                    Text(text) => {
                        data.extend(text.as_bytes());
                        data.push(0);
                    }
                }
            }
            to.add(&[&[*kind, data.len() as u8], &data[..]].concat())
                .unwrap();
        }
        to.end().unwrap()
    }

    fn string(reference: u64, text: &'static str) -> (u8, Vec<F>) {
        (kind::STRING, vec![N(reference), Text(text)])
    }

    /// Records of the first version of OTF2, and those of version 3 with a field that is not known.
    fn definitions(first: bool) -> Vec<(u8, Vec<F>)> {
        let with = |mut fields: Vec<F>, since: Vec<F>| {
            if !first {
                fields.extend(since);
                fields.push(N(70_000));
            }
            fields
        };
        let group = |reference, first_type, members: &[u64], since| {
            let mut fields = vec![N(reference), N(1), B(first_type), N(members.len() as u64)];
            fields.extend(members.iter().map(|member| N(*member)));
            (kind::GROUP, with(fields, since))
        };
        let region = |reference, name, first_type, role, paradigm| {
            let fields = vec![
                N(reference),
                N(name),
                N(0),
                B(first_type),
                Undefined,
                N(0),
                N(9),
            ];
            let since = vec![N(name), B(role), B(paradigm), N(0)];
            (kind::REGION, with(fields, since))
        };
        let types = |kind, of_first: u8| if first { of_first } else { kind };
        vec![
            (
                kind::CLOCK_PROPERTIES,
                with(vec![N(2_000_000_000), N(5), N(600)], vec![Undefined]),
            ),
            (99, vec![N(1), Text("of an unknown kind")]),
            region(0, 10, 1, 0, types(PARADIGM_MPI, 0)),
            region(1, 11, 14, ROLE_BARRIER, PARADIGM_OPENMP),
            string(10, "MPI_Init"),
            string(11, "!$omp barrier"),
            string(12, "node"),
            string(13, "MPI Rank 3"),
            string(14, "Master thread"),
            string(15, "elsewhere"),
            (kind::SYSTEM_TREE_NODE, vec![N(0), N(15), N(15), Undefined]),
            (kind::SYSTEM_TREE_NODE, vec![N(1), N(15), N(12), N(0)]),
            (
                kind::LOCATION_GROUP,
                with(vec![N(0), N(13), B(1), N(1)], vec![Undefined]),
            ),
            (
                kind::LOCATION_GROUP,
                with(vec![N(1), N(15), B(1), N(0)], vec![Undefined]),
            ),
            (kind::LOCATION, vec![N(300), N(14), B(1), N(79), N(0)]),
            (kind::LOCATION, vec![N(4), N(15), B(1), N(2), N(1)]),
            group(
                0,
                6,
                &[4, 300],
                vec![B(GROUP_COMM_LOCATIONS), B(PARADIGM_MPI), N(0)],
            ),
            group(1, 4, &[1], vec![B(GROUP_COMM_GROUP), B(PARADIGM_MPI), N(0)]),
            group(2, 5, &[], vec![B(GROUP_COMM_SELF), B(PARADIGM_MPI), N(0)]),
            (
                kind::COMM,
                with(vec![N(7), N(15), N(1), Undefined], vec![N(0)]),
            ),
            (
                kind::INTER_COMM,
                with(vec![N(8), N(15), N(1), N(0), N(7)], vec![N(0)]),
            ),
        ]
    }

    #[test]
    fn definitions_of_all_versions_and_byte_orders_are_the_same() {
        for order in [Order::Little, Order::Big] {
            for first in [true, false] {
                let found = Otf2Definitions::parse(&file(order, &definitions(first)), CHUNK);
                let found = found.unwrap();
                assert_eq!(found.resolution, 2_000_000_000);
                assert_eq!(found.region(0), Otf2Region::MpiInit);
                assert_eq!(found.region(1), Otf2Region::ThreadBarrier);
                assert_eq!((found.node_of(0), found.node_of(1)), (1, 0));
                let names = found.locations.iter();
                let names: Vec<_> = names
                    .map(|of| (of.id, of.events, found.location_name(of)))
                    .collect();
                let expected = [(300, 79, "rank 3, Master thread"), (4, 2, "elsewhere")];
                assert_eq!(
                    names,
                    expected.map(|(id, events, name)| (id, events, name.to_owned()))
                );
                assert_eq!(found.ranks(PARADIGM_MPI), [4, 300]);
                assert_eq!(found.members(1), Some(vec![300]));
                assert_eq!(found.members(2), None);
                let [within, between] = [7, 8].map(|reference| found.communicators[&reference]);
                assert!(matches!(within, Otf2Communicator::Within(1)));
                assert!(matches!(between, Otf2Communicator::Between([1, 0])));
                assert!(found.redefined.is_empty());
            }
        }
    }

    /// As EZTrace writes them: the ranks of MPI, and the group of the world, have one reference.
    #[test]
    fn a_later_definition_replaces_an_earlier_one() {
        let mut all = definitions(false);
        let fields = vec![
            N(0),
            N(1),
            B(0),
            N(1),
            N(1),
            B(GROUP_COMM_GROUP),
            B(PARADIGM_MPI),
            N(0),
        ];
        all.push((kind::GROUP, fields));
        let found = Otf2Definitions::parse(&file(Order::Little, &all), CHUNK).unwrap();
        assert_eq!(found.redefined, [("group", 0)]);
        assert_eq!(found.members(0), Some(vec![300]));
    }

    #[test]
    fn damaged_definitions_are_errors() {
        let whole = file(Order::Little, &definitions(false));
        for length in 0..whole.len() {
            assert!(
                Otf2Definitions::parse(&whole[..length], CHUNK).is_err(),
                "{length}"
            );
        }
        let short = [(kind::LOCATION, vec![N(300), N(14), B(1), N(79)])];
        let found = Otf2Definitions::parse(&file(Order::Little, &short), CHUNK).unwrap_err();
        assert_eq!(found, "definition 0 (kind 14) cannot be decoded");
        // A count that would take all memory.
        let many = [(
            kind::GROUP,
            vec![N(0), N(1), B(0), N(u64::from(u32::MAX)), N(1)],
        )];
        assert!(Otf2Definitions::parse(&file(Order::Little, &many), CHUNK).is_err());
    }
}
