//! Global definitions of an archive: locations, communicators, regions, the clock.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustc_hash::FxHashMap;

use downbeat_otf2::definition::{
    Group, Location, LocationGroup, LocationGroupProperty, LocationProperty, MetricInstance,
    MetricMember, Region, SystemTreeNode,
};
use downbeat_otf2::{
    Base, Definition, Definitions, GroupFlag, GroupType, MetricScope, Paradigm, PropertyValue,
    RegionRole, SystemTreeDomain, Value,
};

use super::Otf2Error;
use super::exact::{ExactTrace, NODE, PROCESS};
use super::samples::{SAMPLES, sessions_of};
use crate::Place;
use crate::presync::ClockSample;

/// Global definitions that are used, by their references in the archive.
#[derive(Debug, Default)]
pub(super) struct Otf2Definitions {
    /// File of the definitions.
    pub(super) path: PathBuf,
    /// Ticks per second; 0 if the archive does not define it.
    pub(super) resolution: u64,
    pub(super) strings: FxHashMap<u32, String>,
    nodes: FxHashMap<u32, Otf2Node>,
    processes: FxHashMap<u32, Otf2Process>,
    pub(super) locations: Vec<Location>,
    /// Regions with a meaning for other locations.
    regions: FxHashMap<u32, Otf2Region>,
    /// All regions with the references of their names.
    pub(super) region_names: Vec<(u32, u32)>,
    groups: FxHashMap<u32, Otf2Group>,
    /// Locations by their ranks, for every paradigm.
    ranks: FxHashMap<Paradigm, Vec<u64>>,
    pub(super) communicators: BTreeMap<u32, Otf2Communicator>,
    /// Metrics by their references.
    metric_members: FxHashMap<u32, MetricMember>,
    /// References of the metrics that are recorded together.
    metric_classes: BTreeMap<u32, Vec<u32>>,
    /// Metrics that are recorded about something else.
    metric_instances: BTreeMap<u32, MetricInstance>,
    /// Communicators of RMA windows.
    pub(super) windows: BTreeMap<u32, u32>,
    /// Number of definitions with the reference of an earlier one, which they replace.
    pub(super) redefined: usize,
    /// Texts of the properties of locations: the location, and the references of name and
    /// text.
    location_texts: Vec<(u64, u32, u32)>,
    /// Statements of an archive of a whole trace.
    pub(super) exact: Option<ExactTrace>,
    /// Numbers of definitions that are not used, by their kinds.
    pub(super) left_out: BTreeMap<String, u64>,
}

/// Metric of a class, or of an instance of one.
#[derive(Clone, Debug)]
pub(super) struct Otf2Metric<'a> {
    pub(super) name: String,
    pub(super) unit: &'a str,
    /// Factor of the recorded values; 1 if there is none.
    pub(super) scale: f64,
}

/// Node of the system tree.
#[derive(Debug)]
pub(super) struct Otf2Node {
    definition: SystemTreeNode,
    /// True if everything below it shares memory.
    shares_memory: bool,
}

#[derive(Debug)]
pub(super) struct Otf2Process {
    definition: LocationGroup,
    /// Numbers of node and process that the archive states.
    stated: [Option<u32>; 2],
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
    pub(super) kind: GroupType,
    pub(super) paradigm: Paradigm,
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

impl Otf2Definitions {
    /// Takes all definitions. Those of other kinds are skipped.
    ///
    /// # Errors
    /// If the file does not consist of whole records, or a record cannot be decoded.
    pub(super) fn of(file: &Definitions) -> Result<Self, Otf2Error> {
        let mut found = Self {
            path: file.path().to_owned(),
            ..Self::default()
        };
        // A string may be defined after the definition that it is the name of.
        for definition in file.iter() {
            if let Definition::String(string) = definition? {
                let text = string.text.into_owned();
                let replaced = found.strings.insert(string.reference.0, text);
                found.redefined += usize::from(replaced.is_some());
            }
        }
        let mut indices = FxHashMap::default();
        for definition in file.iter() {
            found.take(definition?, &mut indices);
        }
        Ok(found)
    }

    /// Takes that every event is one of the trace, so that no region is also an
    /// operation.
    pub(super) fn set_exact(&mut self, exact: ExactTrace) {
        self.regions.clear();
        self.left_out.clear();
        self.exact = Some(exact);
    }

    /// Returns the clock samples of every location that has any, by session.
    ///
    /// # Errors
    /// If a property with samples is damaged or missing.
    pub(super) fn samples(&self) -> Result<FxHashMap<u64, Vec<Vec<ClockSample>>>, Otf2Error> {
        let mut all: Vec<(u64, u64, &str)> = vec![];
        let damaged = |location: u64, name: &str, why: &str| {
            let why = format!("property {name} of location {location}: {why}");
            Otf2Error::content(&self.path, why)
        };
        for (location, name, text) in &self.location_texts {
            let name = self.string(*name);
            if let Some(number) = name.strip_prefix(SAMPLES) {
                let number = number.parse().ok();
                let number = number.ok_or_else(|| damaged(*location, name, "it has no number"))?;
                all.push((*location, number, self.string(*text)));
            }
        }
        all.sort_unstable();
        let read = |texts: &[(u64, u64, &str)]| {
            let location = texts[0].0;
            let error =
                |number: usize, why: &str| damaged(location, &format!("{SAMPLES}{number}"), why);
            if let Some((missing, _)) = (0..).zip(texts).find(|(next, of)| *next != of.1) {
                return Err(error(missing as usize, "it is missing, or there are two"));
            }
            let texts: Vec<&str> = texts.iter().map(|(.., text)| *text).collect();
            let sessions = sessions_of(&texts).map_err(|(number, why)| error(number, &why))?;
            Ok((location, sessions))
        };
        all.chunk_by(|one, next| one.0 == next.0)
            .map(read)
            .collect()
    }

    /// Takes a definition; `indices` has those of the locations so far.
    fn take(&mut self, definition: Definition<'_>, indices: &mut FxHashMap<u64, usize>) {
        let replaces = match definition {
            Definition::ClockProperties(clock) => {
                self.resolution = clock.resolution;
                false
            }
            Definition::String(_) => false,
            Definition::SystemTreeNode(definition) => {
                let reference = definition.reference.0;
                let node = Otf2Node {
                    definition,
                    shares_memory: false,
                };
                self.nodes.insert(reference, node).is_some()
            }
            Definition::SystemTreeNodeDomain(of) => {
                if let Some(node) = self.nodes.get_mut(&of.node.0) {
                    node.shares_memory |= of.domain == SystemTreeDomain::SHARED_MEMORY;
                }
                false
            }
            Definition::LocationGroup(definition) => {
                let reference = definition.reference.0;
                let process = Otf2Process {
                    definition,
                    stated: [None; 2],
                };
                self.processes.insert(reference, process).is_some()
            }
            Definition::Location(location) => {
                let next = self.locations.len();
                let index = *indices.entry(location.reference.0).or_insert(next);
                match self.locations.get_mut(index) {
                    Some(before) => *before = location,
                    None => self.locations.push(location),
                }
                index < next
            }
            Definition::Region(region) => {
                self.add_region(&region);
                false
            }
            Definition::Group(group) => self.add_group(&group),
            Definition::Comm(comm) => {
                let communicator = Otf2Communicator::Within(comm.group.0);
                let replaced = self.communicators.insert(comm.reference.0, communicator);
                replaced.is_some()
            }
            Definition::InterComm(comm) => {
                let groups = [comm.group_a.0, comm.group_b.0];
                let communicator = Otf2Communicator::Between(groups);
                let replaced = self.communicators.insert(comm.reference.0, communicator);
                replaced.is_some()
            }
            Definition::MetricMember(metric) => {
                let replaced = self.metric_members.insert(metric.reference.0, metric);
                replaced.is_some()
            }
            Definition::MetricClass(class) => {
                let members = class.members.iter().map(|member| member.0).collect();
                let replaced = self.metric_classes.insert(class.reference.0, members);
                replaced.is_some()
            }
            Definition::MetricInstance(metric) => {
                let replaced = self.metric_instances.insert(metric.reference.0, metric);
                replaced.is_some()
            }
            Definition::RmaWin(window) => {
                let replaced = self.windows.insert(window.reference.0, window.comm.0);
                replaced.is_some()
            }
            Definition::LocationGroupProperty(LocationGroupProperty {
                group,
                name,
                value: PropertyValue(Value::U32(number)),
            }) => {
                let names = [NODE, PROCESS];
                let stated = names.iter().position(|of| self.string(name.0) == *of);
                if let Some((process, stated)) = self.processes.get_mut(&group.0).zip(stated) {
                    process.stated[stated] = Some(number);
                }
                false
            }
            Definition::LocationProperty(LocationProperty {
                location,
                name,
                value: PropertyValue(Value::String(text)),
            }) => {
                self.location_texts.push((location.0, name.0, text.0));
                false
            }
            other => {
                *self.left_out.entry(other.name().to_owned()).or_default() += 1;
                false
            }
        };
        self.redefined += usize::from(replaces);
    }

    /// Takes a group. Returns true if it replaces an earlier one.
    fn add_group(&mut self, group: &Group<'_>) -> bool {
        let is_of_ranks = group.group_type == GroupType::COMM_LOCATIONS;
        let found = Otf2Group {
            kind: group.group_type,
            paradigm: group.paradigm,
            of_locations: is_of_ranks || group.flags.0 & GroupFlag::GLOBAL_MEMBERS.0 != 0,
            members: group.members.iter().collect(),
        };
        if is_of_ranks {
            self.ranks.insert(group.paradigm, found.members.clone());
        }
        self.groups.insert(group.reference.0, found).is_some()
    }

    /// Returns the metrics of each class and instance, by its reference in events. The name of a metric
    /// about something else ends with the name of that.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (u32, Vec<Otf2Metric<'_>>)> {
        let classes = self.metric_classes.iter();
        let classes =
            classes.map(|(reference, members)| (*reference, self.members_of(members, "")));
        let instances = self.metric_instances.iter();
        let instances = instances.filter_map(|(reference, instance)| {
            let about = format!(" of {}", self.name_of(instance)?);
            let members = self.metric_classes.get(&instance.class.0)?;
            Some((*reference, self.members_of(members, &about)))
        });
        classes.chain(instances)
    }

    fn members_of(&self, members: &[u32], about: &str) -> Vec<Otf2Metric<'_>> {
        let metric = |member: &u32| {
            let found = self.metric_members.get(member);
            let name = found.map_or("", |found| self.string(found.name.0));
            Otf2Metric {
                name: match name {
                    "" => format!("metric {member}{about}"),
                    name => format!("{name}{about}"),
                },
                unit: found.map_or("", |found| self.string(found.unit.0)),
                scale: found.map_or(1.0, scale_of),
            }
        };
        members.iter().map(metric).collect()
    }

    /// Returns the name of what a metric is about.
    fn name_of(&self, metric: &MetricInstance) -> Option<String> {
        let reference = u32::try_from(metric.scope).ok();
        let name = match metric.scope_type {
            MetricScope::LOCATION => {
                let is_meant = |of: &&Location| of.reference.0 == metric.scope;
                let found = self.locations.iter().find(is_meant)?;
                return Some(self.location_name(found));
            }
            MetricScope::LOCATION_GROUP => self.processes.get(&reference?)?.definition.name,
            MetricScope::SYSTEM_TREE_NODE => self.nodes.get(&reference?)?.definition.name,
            _ => return Some(format!("group {}", metric.scope)),
        };
        Some(self.string(name.0).to_owned())
    }

    pub(super) fn string(&self, string: u32) -> &str {
        self.strings.get(&string).map_or("", String::as_str)
    }

    /// Returns the name of a location, after that of its location group where that tells the MPI
    /// rank: a thread has the same name on all ranks.
    pub(super) fn location_name(&self, location: &Location) -> String {
        let name = self.string(location.name.0);
        let process = self.processes.get(&location.group.0);
        let process = process.map_or("", |process| self.string(process.definition.name.0));
        match process.strip_prefix("MPI Rank ") {
            Some(rank) if !names_rank(name, rank) => format!("rank {rank}, {name}"),
            _ => name.to_owned(),
        }
    }

    fn add_region(&mut self, region: &Region) {
        let (reference, name) = (region.reference.0, region.name.0);
        self.region_names.push((reference, name));
        let kind = match (region.paradigm, region.role) {
            // The oldest regions of functions have no paradigm.
            (Paradigm::MPI | Paradigm::UNKNOWN, _) => match self.string(name) {
                "MPI_Init" | "MPI_Init_thread" => Otf2Region::MpiInit,
                "MPI_Finalize" => Otf2Region::MpiFinalize,
                _ => Otf2Region::Other,
            },
            (Paradigm::OPENMP, RegionRole::BARRIER | RegionRole::IMPLICIT_BARRIER) => {
                Otf2Region::ThreadBarrier
            }
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

    /// Returns the node and the process of the locations of a process.
    pub(super) fn place_of(&self, process: u32) -> Place {
        let [node, number] = self
            .processes
            .get(&process)
            .map_or([None; 2], |of| of.stated);
        Place {
            node: node.unwrap_or_else(|| self.node_of(process)),
            process: number.unwrap_or(process),
        }
    }

    /// Returns the node of a process: the outermost system tree node that shares memory or is
    /// called a node; otherwise the parent of the process.
    pub(super) fn node_of(&self, process: u32) -> u32 {
        let Some(process) = self.processes.get(&process) else {
            return UNDEFINED;
        };
        let mut at = process.definition.parent.0;
        let mut found = at;
        // Bounded, as a damaged archive may contain a cycle.
        for _ in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(&at) else {
                break;
            };
            if node.shares_memory
                || self
                    .string(node.definition.class.0)
                    .eq_ignore_ascii_case("node")
            {
                found = at;
            }
            at = node.definition.parent.0;
        }
        found
    }

    /// Returns the locations by their global rank in a paradigm.
    pub(super) fn ranks(&self, paradigm: Paradigm) -> &[u64] {
        self.ranks.get(&paradigm).map_or(&[], Vec::as_slice)
    }

    /// Returns the locations of a communicator's group, by rank; `None` if there is no such group,
    /// or if it is the group of each location alone.
    pub(super) fn members(&self, group: u32) -> Option<Vec<u64>> {
        let group = self.groups.get(&group)?;
        match group.kind {
            GroupType::COMM_SELF => None,
            GroupType::COMM_GROUP if !group.of_locations => {
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

/// Returns the factor of the values of a metric.
fn scale_of(metric: &MetricMember) -> f64 {
    let base: f64 = if metric.base == Base::BINARY {
        2.0
    } else {
        10.0
    };
    let exponent = metric.exponent.clamp(i32::MIN.into(), i32::MAX.into());
    base.powi(exponent as i32)
}

/// Returns true if a name of a location begins with an MPI rank, given by its digits.
pub(super) fn names_rank(name: &str, rank: &str) -> bool {
    let rest = name.strip_prefix("rank ");
    let rest = rest.and_then(|rest| rest.strip_prefix(rank));
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use downbeat_otf2::definition;
    use downbeat_otf2::raw::{Order, RecordWriter, put_record};
    use downbeat_otf2::{
        CommFlag, CommRef, GroupRef, List, LocationGroupRef, LocationGroupType, LocationRef,
        LocationType, RegionFlag, RegionRef, StringRef, SystemTreeNodeRef,
    };

    use super::*;

    const CHUNK: usize = 4096;

    fn file(definitions: &[Definition<'_>]) -> Vec<u8> {
        let mut to = RecordWriter::new(vec![], CHUNK, Order::Little);
        for definition in definitions {
            let (mut data, mut record) = (vec![], vec![]);
            definition.encode(Order::Little, &mut data);
            put_record(definition.kind(), &data, Order::Little, &mut record);
            to.add(&record).unwrap();
        }
        to.finish().unwrap()
    }

    fn parse(file: Vec<u8>) -> Result<Otf2Definitions, String> {
        let file = Definitions::new(file, CHUNK, Path::new("it"));
        Otf2Definitions::of(&file).map_err(|why| why.to_string())
    }

    fn group(reference: u32, group_type: GroupType, members: &[u64]) -> Definition<'_> {
        Definition::Group(Group {
            reference: GroupRef(reference),
            name: StringRef(15),
            group_type,
            paradigm: Paradigm::MPI,
            flags: GroupFlag::NONE,
            members: List::from(members),
        })
    }

    fn definitions() -> Vec<Definition<'static>> {
        let region = |reference, name, role, paradigm| {
            Definition::Region(Region {
                reference: RegionRef(reference),
                name: StringRef(name),
                canonical_name: StringRef(name),
                description: StringRef(15),
                role,
                paradigm,
                flags: RegionFlag::NONE,
                file: StringRef::UNDEFINED,
                begin_line: 0,
                end_line: 9,
            })
        };
        let string = |reference, text: &'static str| {
            Definition::String(definition::String {
                reference: StringRef(reference),
                text: text.into(),
            })
        };
        let node = |reference, class, parent| {
            Definition::SystemTreeNode(SystemTreeNode {
                reference: SystemTreeNodeRef(reference),
                name: StringRef(15),
                class: StringRef(class),
                parent,
            })
        };
        let process = |reference, name, parent| {
            Definition::LocationGroup(LocationGroup {
                reference: LocationGroupRef(reference),
                name: StringRef(name),
                group_type: LocationGroupType::PROCESS,
                parent: SystemTreeNodeRef(parent),
                creator: LocationGroupRef::UNDEFINED,
            })
        };
        let location = |id, name, events, group| {
            Definition::Location(Location {
                reference: LocationRef(id),
                name: StringRef(name),
                location_type: LocationType::CPU_THREAD,
                events,
                group: LocationGroupRef(group),
            })
        };
        vec![
            Definition::ClockProperties(definition::ClockProperties {
                resolution: 2_000_000_000,
                offset: 5,
                length: 600,
                real_time: u64::MAX,
            }),
            Definition::Unknown {
                kind: 99,
                data: b"of an unknown kind",
            },
            region(0, 10, RegionRole::UNKNOWN, Paradigm::MPI),
            region(1, 11, RegionRole::BARRIER, Paradigm::OPENMP),
            string(10, "MPI_Init"),
            string(11, "!$omp barrier"),
            string(12, "node"),
            string(13, "MPI Rank 3"),
            string(14, "Master thread"),
            string(15, "elsewhere"),
            node(0, 15, SystemTreeNodeRef::UNDEFINED),
            node(1, 12, SystemTreeNodeRef(0)),
            process(0, 13, 1),
            process(1, 15, 0),
            location(300, 14, 79, 0),
            location(4, 15, 2, 1),
            group(0, GroupType::COMM_LOCATIONS, &[4, 300]),
            group(1, GroupType::COMM_GROUP, &[1]),
            group(2, GroupType::COMM_SELF, &[]),
            Definition::Comm(definition::Comm {
                reference: CommRef(7),
                name: StringRef(15),
                group: GroupRef(1),
                parent: CommRef::UNDEFINED,
                flags: CommFlag::NONE,
            }),
            Definition::InterComm(definition::InterComm {
                reference: CommRef(8),
                name: StringRef(15),
                group_a: GroupRef(1),
                group_b: GroupRef(0),
                common: CommRef(7),
                flags: CommFlag::NONE,
            }),
        ]
    }

    #[test]
    fn definitions_are_taken() {
        let found = parse(file(&definitions())).unwrap();
        assert_eq!(found.resolution, 2_000_000_000);
        assert_eq!(found.region(0), Otf2Region::MpiInit);
        assert_eq!(found.region(1), Otf2Region::ThreadBarrier);
        assert_eq!((found.node_of(0), found.node_of(1)), (1, 0));
        let names = found.locations.iter();
        let names: Vec<_> = names
            .map(|of| (of.reference.0, of.events, found.location_name(of)))
            .collect();
        let expected = [(300, 79, "rank 3, Master thread"), (4, 2, "elsewhere")];
        assert_eq!(
            names,
            expected.map(|(id, events, name)| (id, events, name.to_owned()))
        );
        assert_eq!(found.ranks(Paradigm::MPI), [4, 300]);
        assert_eq!(found.members(1), Some(vec![300]));
        assert_eq!(found.members(2), None);
        let [within, between] = [7, 8].map(|reference| found.communicators[&reference]);
        assert!(matches!(within, Otf2Communicator::Within(1)));
        assert!(matches!(between, Otf2Communicator::Between([1, 0])));
        assert_eq!(found.redefined, 0);
        assert_eq!(found.left_out, [("Unknown".to_owned(), 1)].into());
    }

    /// As EZTrace writes them: the ranks of MPI, and the group of the world, have one reference.
    #[test]
    fn a_later_definition_replaces_an_earlier_one() {
        let mut all = definitions();
        all.push(group(0, GroupType::COMM_GROUP, &[1]));
        let found = parse(file(&all)).unwrap();
        assert_eq!(found.redefined, 1);
        assert_eq!(found.members(0), Some(vec![300]));
    }

    #[test]
    fn damaged_definitions_are_errors() {
        let whole = file(&definitions());
        for length in 0..whole.len() {
            assert!(parse(whole[..length].to_vec()).is_err(), "{length}");
        }
        let short = Definition::Unknown {
            kind: 14,
            data: &[1, 5, 1, 14, 1],
        };
        let found = parse(file(&[short])).unwrap_err();
        assert_eq!(found, "it: definition 0 (kind 14) cannot be decoded");
        // A count that would take all memory.
        let many = Definition::Unknown {
            kind: 18,
            data: &[0, 1, 1, 0, 4, 0xfe, 0xff, 0xff, 0xff, 1, 1],
        };
        assert!(parse(file(&[many])).is_err());
    }
}
