//! Global definitions of new archives.

use downbeat_otf2::definition;
use downbeat_otf2::{
    ArchiveWriter, Base, CommFlag, CommRef, Definition, GroupFlag, GroupRef, GroupType, List,
    LocationGroupRef, LocationGroupType, LocationRef, LocationType, MetricMemberRef, MetricMode,
    MetricOccurrence, MetricRef, MetricType, Paradigm, ParameterType, PropertyValue, RecorderKind,
    RegionFlag, RegionRef, RegionRole, RmaWinFlag, RmaWinRef, StringRef, SystemTreeDomain,
    SystemTreeNodeRef, Value, ValueType,
};

use super::super::Otf2Error;
use super::super::definitions::names_rank;
use super::super::exact::{EVENT, EVENT_ATTRIBUTE, NODE, NOTE, PROCESS};
use super::super::samples::{SAMPLES, texts_of};
use super::contents::{NewDefinitions, StringTable};
use crate::Place;
use crate::formats::definitions::DefinedProcess;

/// Writer of global definitions.
struct Definer<'a> {
    archive: &'a mut ArchiveWriter,
    strings: u32,
    /// Empty string.
    empty: StringRef,
}

impl Definer<'_> {
    fn define(&mut self, definition: &Definition<'_>) -> Result<(), Otf2Error> {
        Ok(self.archive.define(definition)?)
    }

    /// Defines a string, and returns its reference.
    fn string(&mut self, text: &str) -> Result<StringRef, Otf2Error> {
        let reference = StringRef(self.strings);
        self.strings += 1;
        self.define(&Definition::String(definition::String {
            reference,
            text: text.into(),
        }))?;
        Ok(reference)
    }

    /// Defines a group without a name.
    fn group(
        &mut self,
        reference: u32,
        group_type: GroupType,
        paradigm: Paradigm,
        members: &[u64],
    ) -> Result<(), Otf2Error> {
        self.define(&Definition::Group(definition::Group {
            reference: GroupRef(reference),
            name: self.empty,
            group_type,
            paradigm,
            flags: GroupFlag::NONE,
            members: List::from(members),
        }))
    }
}

/// Defines the strings of events, in the order of their references.
fn define_texts(archive: &mut ArchiveWriter, texts: &StringTable) -> Result<(), Otf2Error> {
    let mut all: Vec<_> = texts.0.iter().collect();
    all.sort_unstable_by_key(|(_, reference)| **reference);
    for (text, reference) in all {
        archive.define(&Definition::String(definition::String {
            reference: StringRef(*reference),
            text: text.into(),
        }))?;
    }
    Ok(())
}

impl NewDefinitions<'_> {
    /// Writes the global definitions, with the number of events of each location.
    pub(super) fn write(
        &self,
        [first, last]: [i64; 2],
        counts: &[u64],
        (texts, archive): (StringTable, &mut ArchiveWriter),
    ) -> Result<(), Otf2Error> {
        archive.define(&Definition::ClockProperties(definition::ClockProperties {
            resolution: 1_000_000_000,
            offset: first.max(0) as u64,
            length: last.saturating_sub(first).max(0) as u64,
            real_time: u64::MAX,
        }))?;
        define_texts(archive, &texts)?;
        let mut to = Definer {
            archive,
            strings: texts.0.len() as u32,
            empty: StringRef::UNDEFINED,
        };
        to.empty = to.string("")?;
        define_statements(&mut to)?;
        let nodes = self.write_nodes(&mut to)?;
        self.write_processes(&nodes, &mut to)?;
        self.write_locations(counts, &mut to)?;
        self.write_samples(&mut to)?;
        self.write_regions(&mut to)?;
        self.write_metrics(&mut to)?;
        self.write_communicators(&mut to)
    }

    /// Writes the machine and its nodes. Returns the numbers of the nodes, sorted.
    fn write_nodes(&self, to: &mut Definer<'_>) -> Result<Vec<u32>, Otf2Error> {
        let node = to.string("node")?;
        let machine = to.string("machine")?;
        to.define(&Definition::SystemTreeNode(definition::SystemTreeNode {
            reference: SystemTreeNodeRef(0),
            name: machine,
            class: machine,
            parent: SystemTreeNodeRef::UNDEFINED,
        }))?;
        let mut nodes: Vec<u32> = self.all.processes.iter().map(|of| of.place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for (reference, number) in (1..).map(SystemTreeNodeRef).zip(&nodes) {
            let name = to.string(&format!("node {number}"))?;
            to.define(&Definition::SystemTreeNode(definition::SystemTreeNode {
                reference,
                name,
                class: node,
                parent: SystemTreeNodeRef(0),
            }))?;
            to.define(&Definition::SystemTreeNodeDomain(
                definition::SystemTreeNodeDomain {
                    node: reference,
                    domain: SystemTreeDomain::SHARED_MEMORY,
                },
            ))?;
        }
        Ok(nodes)
    }

    fn write_processes(&self, nodes: &[u32], to: &mut Definer<'_>) -> Result<(), Otf2Error> {
        let stated = [to.string(NODE)?, to.string(PROCESS)?];
        let names = self.process_names();
        let processes = self.all.processes.iter().zip(&names);
        for (reference, (process, name)) in (0..).map(LocationGroupRef).zip(processes) {
            let name = to.string(name)?;
            let Place { node, process } = process.place;
            let numbers = [node, process];
            let node = nodes.partition_point(|other| *other < node) as u32 + 1;
            to.define(&Definition::LocationGroup(definition::LocationGroup {
                reference,
                name,
                group_type: LocationGroupType::PROCESS,
                parent: SystemTreeNodeRef(node),
                creator: LocationGroupRef::UNDEFINED,
            }))?;
            for (name, number) in stated.into_iter().zip(numbers) {
                to.define(&Definition::LocationGroupProperty(
                    definition::LocationGroupProperty {
                        group: reference,
                        name,
                        value: PropertyValue(Value::U32(number)),
                    },
                ))?;
            }
        }
        Ok(())
    }

    /// Returns the names of all processes: that of an MPI rank, if the names of all of
    /// its locations begin with the rank. Otherwise readers would put the rank in front
    /// of them.
    fn process_names(&self) -> Vec<String> {
        let digits = |process: &DefinedProcess| {
            let name = self.all.locations[process.rank as usize].name.as_str();
            let digits = name
                .strip_prefix("rank ")?
                .split(|next: char| !next.is_ascii_digit());
            digits.take(1).find(|digits| !digits.is_empty())
        };
        let mut ranks: Vec<Option<&str>> = self.all.processes.iter().map(digits).collect();
        for location in &self.all.locations {
            let rank = &mut ranks[location.process];
            *rank = rank.filter(|rank| names_rank(&location.name, rank));
        }
        let name = |(rank, process): (Option<&str>, &DefinedProcess)| match rank {
            Some(rank) => format!("MPI Rank {rank}"),
            None => format!("process {}", process.place.process),
        };
        ranks
            .into_iter()
            .zip(&self.all.processes)
            .map(name)
            .collect()
    }

    /// Returns true if all members are MPI ranks.
    fn is_of_ranks(&self, members: &[u32]) -> bool {
        members
            .iter()
            .all(|member| self.process(*member).rank == *member)
    }

    fn process(&self, location: u32) -> &DefinedProcess {
        &self.all.processes[self.all.locations[location as usize].process]
    }

    fn write_locations(&self, counts: &[u64], to: &mut Definer<'_>) -> Result<(), Otf2Error> {
        let locations = self.all.locations.iter().zip(counts);
        for (reference, (location, events)) in (0..).map(LocationRef).zip(locations) {
            let name = to.string(&location.name)?;
            to.define(&Definition::Location(definition::Location {
                reference,
                name,
                location_type: LocationType::CPU_THREAD,
                events: *events,
                group: LocationGroupRef(location.process as u32),
            }))?;
        }
        Ok(())
    }

    /// Writes the clock samples as properties of their locations.
    fn write_samples(&self, to: &mut Definer<'_>) -> Result<(), Otf2Error> {
        let mut names = vec![];
        for (location, sessions) in (0..).map(LocationRef).zip(&self.all.sessions) {
            for (number, text) in texts_of(sessions).iter().enumerate() {
                if names.len() == number {
                    names.push(to.string(&format!("{SAMPLES}{number}"))?);
                }
                let value = PropertyValue(Value::String(to.string(text)?));
                to.define(&Definition::LocationProperty(
                    definition::LocationProperty {
                        location,
                        name: names[number],
                        value,
                    },
                ))?;
            }
        }
        Ok(())
    }

    fn write_regions(&self, to: &mut Definer<'_>) -> Result<(), Otf2Error> {
        for (reference, region) in (0..).map(RegionRef).zip(&self.all.regions) {
            let name = to.string(region)?;
            let paradigm = match region.starts_with("MPI_") {
                true => Paradigm::MPI,
                false => Paradigm::USER,
            };
            to.define(&Definition::Region(definition::Region {
                reference,
                name,
                canonical_name: name,
                description: to.empty,
                role: RegionRole::FUNCTION,
                paradigm,
                flags: RegionFlag::NONE,
                file: StringRef::UNDEFINED,
                begin_line: 0,
                end_line: 0,
            }))?;
        }
        Ok(())
    }

    fn write_metrics(&self, to: &mut Definer<'_>) -> Result<(), Otf2Error> {
        for (index, [name, unit]) in (0..).zip(&self.all.metrics) {
            let (name, unit) = (to.string(name)?, to.string(unit)?);
            let member = MetricMemberRef(index);
            to.define(&Definition::MetricMember(definition::MetricMember {
                reference: member,
                name,
                description: to.empty,
                metric_type: MetricType::OTHER,
                mode: MetricMode::ABSOLUTE_POINT,
                value_type: match self.items.is_whole(index) {
                    true => ValueType::I64,
                    false => ValueType::F64,
                },
                base: Base::DECIMAL,
                exponent: 0,
                unit,
            }))?;
            to.define(&Definition::MetricClass(definition::MetricClass {
                reference: MetricRef(index),
                members: List::from(&[member][..]),
                occurrence: MetricOccurrence::ASYNCHRONOUS,
                recorder_kind: RecorderKind::ABSTRACT,
            }))?;
        }
        Ok(())
    }

    /// Writes communicators with their groups, and windows.
    fn write_communicators(&self, to: &mut Definer<'_>) -> Result<(), Otf2Error> {
        let ranks: Vec<u64> = self.all.processes.iter().map(|of| of.rank.into()).collect();
        to.group(0, GroupType::COMM_LOCATIONS, Paradigm::MPI, &ranks)?;
        let all: Vec<u64> = (0..self.all.locations.len() as u64).collect();
        to.group(1, GroupType::COMM_LOCATIONS, Paradigm::OPENMP, &all)?;
        for (group, members) in (2..).zip(&self.all.communicators) {
            // Members are indices among the locations of the paradigm.
            let (paradigm, members): (_, Vec<u64>) = match self.is_of_ranks(members) {
                true => {
                    let process = |of: &u32| self.all.locations[*of as usize].process as u64;
                    (Paradigm::MPI, members.iter().map(process).collect())
                }
                false => (
                    Paradigm::OPENMP,
                    members.iter().copied().map(u64::from).collect(),
                ),
            };
            to.group(group, GroupType::COMM_GROUP, paradigm, &members)?;
        }
        for (index, _) in (0..).zip(&self.all.communicators) {
            to.define(&Definition::Comm(definition::Comm {
                reference: CommRef(index),
                name: to.empty,
                group: GroupRef(index + 2),
                parent: CommRef::UNDEFINED,
                flags: CommFlag::NONE,
            }))?;
        }
        for (reference, communicator) in (0..).map(RmaWinRef).zip(&self.windows) {
            to.define(&Definition::RmaWin(definition::RmaWin {
                reference,
                name: to.empty,
                comm: CommRef(*communicator),
                flags: RmaWinFlag::NONE,
            }))?;
        }
        Ok(())
    }
}

/// Defines the parameters and the attribute of statements beside records.
fn define_statements(to: &mut Definer<'_>) -> Result<(), Otf2Error> {
    for (reference, name) in [(NOTE, "note"), (EVENT, "event")] {
        let name = to.string(name)?;
        to.define(&Definition::Parameter(definition::Parameter {
            reference,
            name,
            parameter_type: ParameterType::STRING,
        }))?;
    }
    let name = to.string("DOWNBEAT::EVENT")?;
    let description = to.string("the event in a text trace of Downbeat")?;
    to.define(&Definition::Attribute(definition::Attribute {
        reference: EVENT_ATTRIBUTE,
        name,
        value_type: ValueType::String,
        description,
    }))
}
