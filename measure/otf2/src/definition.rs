//! Global definitions of all kinds.

use std::borrow::Cow;

use crate::codes::{
    self, Base, CartPeriodicity, CommFlag, GroupFlag, GroupType, InterruptGeneratorMode,
    IoAccessMode, IoHandleFlag, IoParadigmClass, IoParadigmFlag, IoParadigmProperty, IoStatusFlag,
    LocationGroupType, LocationType, MetricMode, MetricOccurrence, MetricScope, MetricType,
    ParadigmClass, ParameterType, RecorderKind, RegionFlag, RegionRole, RmaWinFlag,
    SystemTreeDomain,
};
use crate::field::{Field, List, ShortList};
use crate::raw::{Decoder, Order};
use crate::records::records;
use crate::references::{
    AttributeRef, CallingContextRef, CallpathRef, CallsiteRef, CartDimensionRef, CartTopologyRef,
    CommRef, GroupRef, InterruptGeneratorRef, IoFileRef, IoHandleRef, IoParadigmRef,
    LocationGroupRef, LocationRef, MetricMemberRef, MetricRef, ParameterRef, RegionRef, RmaWinRef,
    SourceCodeLocationRef, StringRef, SystemTreeNodeRef,
};
use crate::value::{Value, ValueType};

records! {
    /// Global definition of an archive. Records of older versions have the fields of the current one.
    Definition {
        /// Clock: ticks per second, first time and duration of the trace in ticks, and the first time in
        /// nanoseconds since 1970.
        5 ClockProperties { resolution: u64, offset: u64, length: u64, real_time: u64 = u64::MAX }
        /// Programming model in use.
        6 Paradigm { paradigm: codes::Paradigm, name: StringRef, class: ParadigmClass }
        /// Property of a programming model.
        7 ParadigmProperty { paradigm: codes::Paradigm, property: codes::ParadigmProperty, value: Value }
        /// Interface of input and output.
        8 IoParadigm<'a> {
            reference: IoParadigmRef, identification: StringRef, name: StringRef, class: IoParadigmClass,
            flags: IoParadigmFlag, properties: ShortList<'a, (IoParadigmProperty, Value)>,
        }
        /// String.
        10 String<'a> { reference: StringRef, text: Cow<'a, str> }
        /// Attribute of events.
        11 Attribute {
            reference: AttributeRef, name: StringRef, value_type: ValueType, description: StringRef = StringRef::UNDEFINED,
        }
        /// Node of the system tree: a machine, a host, a socket.
        12 SystemTreeNode { reference: SystemTreeNodeRef, name: StringRef, class: StringRef, parent: SystemTreeNodeRef }
        /// Location group: a process, or an accelerator.
        13 LocationGroup {
            reference: LocationGroupRef, name: StringRef, group_type: LocationGroupType, parent: SystemTreeNodeRef,
            creator: LocationGroupRef = LocationGroupRef::UNDEFINED,
        }
        /// Location: a thread, a stream of an accelerator, or a source of metrics.
        14 Location {
            reference: LocationRef, name: StringRef, location_type: LocationType, events: u64, group: LocationGroupRef,
        }
        /// Region of the program.
        15 Region by hand {
            reference: RegionRef, name: StringRef, canonical_name: StringRef, description: StringRef,
            role: RegionRole, paradigm: codes::Paradigm, flags: RegionFlag, file: StringRef, begin_line: u32, end_line: u32,
        }
        /// Call site, of older versions.
        16 Callsite { reference: CallsiteRef, file: StringRef, line: u32, entered: RegionRef, left: RegionRef }
        /// Call path.
        17 Callpath { reference: CallpathRef, parent: CallpathRef, region: RegionRef }
        /// Group of locations, ranks, regions or metrics. The members of a group of ranks are indices among
        /// the locations of its paradigm, which are a group of their own.
        18 Group<'a> by hand {
            reference: GroupRef, name: StringRef, group_type: GroupType, paradigm: codes::Paradigm, flags: GroupFlag,
            members: List<'a, u64>,
        }
        /// Metric.
        19 MetricMember {
            reference: MetricMemberRef, name: StringRef, description: StringRef, metric_type: MetricType, mode: MetricMode,
            value_type: ValueType, base: Base, exponent: i64, unit: StringRef,
        }
        /// Metrics that are recorded together.
        20 MetricClass<'a> {
            reference: MetricRef, members: ShortList<'a, MetricMemberRef>, occurrence: MetricOccurrence,
            recorder_kind: RecorderKind = RecorderKind::UNKNOWN,
        }
        /// Metrics that a location records about something else.
        21 MetricInstance {
            reference: MetricRef, class: MetricRef, recorder: LocationRef, scope_type: MetricScope, scope: u64,
        }
        /// Communicator, or team of threads.
        22 Comm {
            reference: CommRef, name: StringRef, group: GroupRef, parent: CommRef, flags: CommFlag = CommFlag::NONE,
        }
        /// Parameter.
        23 Parameter { reference: ParameterRef, name: StringRef, parameter_type: ParameterType }
        /// Window of one-sided communication.
        24 RmaWin { reference: RmaWinRef, name: StringRef, comm: CommRef, flags: RmaWinFlag = RmaWinFlag::CREATE_DESTROY_EVENTS }
        /// Location that records a class of metrics.
        25 MetricClassRecorder { metric: MetricRef, recorder: LocationRef }
        /// Property of a node of the system tree.
        26 SystemTreeNodeProperty { node: SystemTreeNodeRef, name: StringRef, value: PropertyValue }
        /// Meaning of a node of the system tree.
        27 SystemTreeNodeDomain { node: SystemTreeNodeRef, domain: SystemTreeDomain }
        /// Property of a location group.
        28 LocationGroupProperty { group: LocationGroupRef, name: StringRef, value: PropertyValue }
        /// Property of a location.
        29 LocationProperty { location: LocationRef, name: StringRef, value: PropertyValue }
        /// Dimension of a Cartesian topology.
        30 CartDimension { reference: CartDimensionRef, name: StringRef, size: u32, periodicity: CartPeriodicity }
        /// Cartesian topology.
        31 CartTopology<'a> {
            reference: CartTopologyRef, name: StringRef, communicator: CommRef, dimensions: ShortList<'a, CartDimensionRef>,
        }
        /// Coordinates of a rank.
        32 CartCoordinate<'a> { topology: CartTopologyRef, rank: u32, coordinates: ShortList<'a, u32> }
        /// Line of a source file.
        33 SourceCodeLocation { reference: SourceCodeLocationRef, file: StringRef, line: u32 }
        /// Calling context.
        34 CallingContext {
            reference: CallingContextRef, region: RegionRef, source_code_location: SourceCodeLocationRef,
            parent: CallingContextRef,
        }
        /// Property of a calling context.
        35 CallingContextProperty { calling_context: CallingContextRef, name: StringRef, value: Value }
        /// Generator of samples.
        36 InterruptGenerator {
            reference: InterruptGeneratorRef, name: StringRef, mode: InterruptGeneratorMode, base: Base, exponent: i64,
            period: u64,
        }
        /// Property of a file.
        37 IoFileProperty { file: IoFileRef, name: StringRef, value: Value }
        /// File.
        38 IoRegularFile { reference: IoFileRef, name: StringRef, scope: SystemTreeNodeRef }
        /// Directory.
        39 IoDirectory { reference: IoFileRef, name: StringRef, scope: SystemTreeNodeRef }
        /// Handle of a file.
        40 IoHandle {
            reference: IoHandleRef, name: StringRef, file: IoFileRef, paradigm: IoParadigmRef, flags: IoHandleFlag,
            comm: CommRef, parent: IoHandleRef,
        }
        /// State of a handle at the begin of the program.
        41 IoPreCreatedHandleState { handle: IoHandleRef, mode: IoAccessMode, status_flags: IoStatusFlag }
        /// Value of a parameter in a call path.
        42 CallpathParameter { callpath: CallpathRef, parameter: ParameterRef, value: Value }
        /// Communicator between two groups.
        43 InterComm {
            reference: CommRef, name: StringRef, group_a: GroupRef, group_b: GroupRef, common: CommRef,
            flags: CommFlag = CommFlag::CREATE_DESTROY_EVENTS,
        }
    }
}

/// Value of a property. Before version 2.0 of OTF2, all of them were strings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PropertyValue(
    /// The value with its type.
    pub Value,
);

impl Field<'_> for PropertyValue {
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let string = StringRef::decode(from)?;
        if from.is_over() {
            return Some(Self(Value::String(string)));
        }
        Value::decode(from).map(Self)
    }

    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        let string = match self.0 {
            Value::String(string) => string,
            _ => StringRef::UNDEFINED,
        };
        string.encode(order, to);
        self.0.encode(order, to);
    }
}

/// Regions. In the first version, one code told the kind of a region; since then, it is followed by
/// what replaced it.
mod region {
    use super::*;
    use crate::codes::Paradigm;

    type FirstType = (u8, RegionRole, Paradigm, RegionFlag);

    const BOTH: RegionFlag = RegionFlag(RegionFlag::DYNAMIC.0 | RegionFlag::PHASE.0);

    /// Codes of the first version, each with the role, paradigm and flags that replaced it. Readers and
    /// writers take the first match, as OTF2 does.
    const FIRST_TYPES: [FirstType; 39] = [
        (1, RegionRole::FUNCTION, Paradigm::UNKNOWN, NONE),
        (1, RegionRole::FUNCTION, Paradigm::COMPILER, NONE),
        (1, RegionRole::CODE, Paradigm::USER, NONE),
        (2, RegionRole::LOOP, Paradigm::USER, NONE),
        (3, RegionRole::FUNCTION, Paradigm::UNKNOWN, NONE),
        (3, RegionRole::FUNCTION, Paradigm::USER, NONE),
        (4, RegionRole::FILE_IO, Paradigm::USER, NONE),
        (5, RegionRole::PARALLEL, Paradigm::OPENMP, NONE),
        (6, RegionRole::LOOP, Paradigm::OPENMP, NONE),
        (7, RegionRole::SECTIONS, Paradigm::OPENMP, NONE),
        (8, RegionRole::SECTION, Paradigm::OPENMP, NONE),
        (9, RegionRole::WORKSHARE, Paradigm::OPENMP, NONE),
        (10, RegionRole::SINGLE, Paradigm::OPENMP, NONE),
        (11, RegionRole::MASTER, Paradigm::OPENMP, NONE),
        (12, RegionRole::CRITICAL, Paradigm::OPENMP, NONE),
        (13, RegionRole::ATOMIC, Paradigm::OPENMP, NONE),
        (14, RegionRole::BARRIER, Paradigm::OPENMP, NONE),
        (15, RegionRole::IMPLICIT_BARRIER, Paradigm::OPENMP, NONE),
        (16, RegionRole::FLUSH, Paradigm::OPENMP, NONE),
        (17, RegionRole::CRITICAL_SBLOCK, Paradigm::OPENMP, NONE),
        (18, RegionRole::SINGLE_SBLOCK, Paradigm::OPENMP, NONE),
        (19, RegionRole::WRAPPER, Paradigm::OPENMP, NONE),
        (20, RegionRole::TASK, Paradigm::OPENMP, NONE),
        (21, RegionRole::TASK_WAIT, Paradigm::OPENMP, NONE),
        (22, RegionRole::BARRIER, Paradigm::MPI, NONE),
        (23, RegionRole::COLL_ONE2ALL, Paradigm::MPI, NONE),
        (24, RegionRole::COLL_ALL2ONE, Paradigm::MPI, NONE),
        (25, RegionRole::COLL_ALL2ALL, Paradigm::MPI, NONE),
        (26, RegionRole::COLL_OTHER, Paradigm::MPI, NONE),
        (27, RegionRole::CODE, Paradigm::USER, NONE),
        (27, RegionRole::CODE, Paradigm::USER, RegionFlag::PHASE),
        (28, RegionRole::CODE, Paradigm::USER, RegionFlag::DYNAMIC),
        (29, RegionRole::CODE, Paradigm::USER, BOTH),
        (30, RegionRole::LOOP, Paradigm::USER, RegionFlag::DYNAMIC),
        (
            31,
            RegionRole::FUNCTION,
            Paradigm::USER,
            RegionFlag::DYNAMIC,
        ),
        (32, RegionRole::LOOP, Paradigm::USER, BOTH),
        (33, RegionRole::TASK_CREATE, Paradigm::OPENMP, NONE),
        (34, RegionRole::ORDERED, Paradigm::OPENMP, NONE),
        (35, RegionRole::ORDERED_SBLOCK, Paradigm::OPENMP, NONE),
    ];

    const NONE: RegionFlag = RegionFlag::NONE;

    impl Field<'_> for Region {
        fn decode(from: &mut Decoder<'_>) -> Option<Self> {
            let (reference, name) = (Field::decode(from)?, Field::decode(from)?);
            let (description, first_type) = (Field::decode(from)?, from.u8()?);
            let (file, begin_line, end_line) = (Field::decode(from)?, from.u32()?, from.u32()?);
            let found = FIRST_TYPES.iter().find(|(code, ..)| *code == first_type);
            let (_, mut role, mut paradigm, mut flags) =
                *found.unwrap_or(&(0, RegionRole::UNKNOWN, Paradigm::UNKNOWN, NONE));
            let mut canonical_name = name;
            if !from.is_over() {
                canonical_name = Field::decode(from)?;
                role = Field::decode(from)?;
                paradigm = Field::decode(from)?;
                flags = Field::decode(from)?;
            }
            Some(Self {
                reference,
                name,
                canonical_name,
                description,
                role,
                paradigm,
                flags,
                file,
                begin_line,
                end_line,
            })
        }

        fn encode(&self, order: Order, to: &mut Vec<u8>) {
            let (role, paradigm, flags) = (self.role, self.paradigm, self.flags);
            // Some codes stand for several flags.
            let told = match (paradigm, role) {
                (Paradigm::USER, RegionRole::FUNCTION) => {
                    RegionFlag(flags.0 & RegionFlag::DYNAMIC.0)
                }
                (Paradigm::USER, RegionRole::CODE | RegionRole::LOOP) => flags,
                _ => NONE,
            };
            let is_same =
                |found: &&FirstType| (found.1, found.2, found.3) == (role, paradigm, told);
            let first_type = FIRST_TYPES.iter().find(is_same).map_or(0, |found| found.0);
            self.reference.encode(order, to);
            self.name.encode(order, to);
            self.description.encode(order, to);
            to.push(first_type);
            self.file.encode(order, to);
            self.begin_line.encode(order, to);
            self.end_line.encode(order, to);
            self.canonical_name.encode(order, to);
            role.encode(order, to);
            paradigm.encode(order, to);
            flags.encode(order, to);
        }
    }
}

/// Groups. In the first version, one code told the kind of a group; since then, it is followed by what
/// replaced it.
mod group {
    use super::*;
    use crate::codes::Paradigm;

    /// Codes of the first version, each with the kind and paradigm that replaced it. Readers and writers
    /// take the first match, as OTF2 does.
    const FIRST_TYPES: [(u8, GroupType, Paradigm); 7] = [
        (1, GroupType::LOCATIONS, Paradigm::UNKNOWN),
        (2, GroupType::REGIONS, Paradigm::UNKNOWN),
        (3, GroupType::REGIONS, Paradigm::UNKNOWN),
        (3, GroupType::METRIC, Paradigm::UNKNOWN),
        (4, GroupType::COMM_GROUP, Paradigm::MPI),
        (5, GroupType::COMM_SELF, Paradigm::MPI),
        (6, GroupType::COMM_LOCATIONS, Paradigm::MPI),
    ];

    impl<'a> Field<'a> for Group<'a> {
        fn decode(from: &mut Decoder<'a>) -> Option<Self> {
            let (reference, name, first_type) =
                (Field::decode(from)?, Field::decode(from)?, from.u8()?);
            let members = Field::decode(from)?;
            let found = FIRST_TYPES.iter().find(|(code, ..)| *code == first_type);
            let (_, mut group_type, mut paradigm) =
                *found.unwrap_or(&(0, GroupType::UNKNOWN, Paradigm::UNKNOWN));
            let mut flags = GroupFlag::NONE;
            if !from.is_over() {
                group_type = Field::decode(from)?;
                paradigm = Field::decode(from)?;
                flags = Field::decode(from)?;
            }
            Some(Self {
                reference,
                name,
                group_type,
                paradigm,
                flags,
                members,
            })
        }

        fn encode(&self, order: Order, to: &mut Vec<u8>) {
            let is_same = |(_, of, within): &&(u8, GroupType, Paradigm)| {
                (*of, *within, self.flags) == (self.group_type, self.paradigm, GroupFlag::NONE)
            };
            let first_type = FIRST_TYPES.iter().find(is_same).map_or(0, |found| found.0);
            self.reference.encode(order, to);
            self.name.encode(order, to);
            to.push(first_type);
            self.members.encode(order, to);
            self.group_type.encode(order, to);
            self.paradigm.encode(order, to);
            self.flags.encode(order, to);
        }
    }
}
