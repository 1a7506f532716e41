//! New archives of the items of any trace.

use std::path::{Path, PathBuf};

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_otf2::{
    Anchor, ArchiveWriter, Base, CommFlag, CommRef, Definition, Event, GroupFlag, GroupRef,
    GroupType, List, LocationGroupRef, LocationGroupType, LocationRef, LocationType,
    MetricMemberRef, MetricMode, MetricOccurrence, MetricRef, MetricType, MetricValue, Paradigm,
    RecorderKind, RegionFlag, RegionRef, RegionRole, RmaWinFlag, RmaWinRef, StringRef,
    SystemTreeDomain, SystemTreeNodeRef, ValueType,
};

use super::Otf2Error;
use super::stream::operation_of;
use super::windows;
use super::write::PartialCopy;
use crate::formats::{Item, MergedItems, What};
use crate::{CollectiveKind, Place};

/// Archive that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewArchive {
    /// Anchor file.
    pub anchor: PathBuf,
    /// Number of locations.
    pub locations: usize,
    /// Number of events.
    pub events: u64,
    /// Number of events that were left out: notes, and signals and waits, for which OTF2 has no
    /// general event.
    pub left_out: u64,
    /// Number of clock samples that were left out.
    pub samples: u64,
    /// Time by which all events are shifted, as OTF2 has no negative times; 0 if there are none.
    pub shift: Duration,
}

const NAME: &str = "traces";
/// Name of the first thread of an MPI rank, as Score-P has it.
const MASTER: &str = "Master thread";
const UNDEFINED: u32 = u32::MAX;

/// Location, and its files.
struct NewLocation {
    name: String,
    /// Index among the processes.
    process: usize,
    events: u64,
}

/// Process, which is a location group.
struct NewProcess {
    name: String,
    node: u32,
    /// Location that represents it.
    rank: u32,
}

/// Everything but events.
#[derive(Default)]
struct NewDefinitions {
    locations: Vec<NewLocation>,
    processes: Vec<NewProcess>,
    regions: Vec<String>,
    communicators: Vec<Vec<u32>>,
    /// Communicator of each window.
    windows: Vec<u32>,
    /// Names and units.
    metrics: Vec<[String; 2]>,
    samples: u64,
}

/// Writes a new archive into a new folder, `traces.otf2` there: messages, collective operations, accesses and
/// teams of threads become those of OTF2, a communicator with accesses also a window, with one location group for each process, and values of metrics
/// floating-point numbers. Readers see
/// the same trace, except for what [`NewArchive`] counts. The folder appears when it is complete, or
/// not at all.
///
/// # Errors
/// If the folder exists or cannot be written, or times are too far apart.
pub fn create(items: &MergedItems, folder: &Path) -> Result<NewArchive, Otf2Error> {
    let making = PartialCopy::begin(folder)?;
    let mut definitions = NewDefinitions::of(items);
    let span = items.span();
    let [first, last] = span.unwrap_or_default();
    let shift = first
        .min(0)
        .checked_neg()
        .filter(|shift| last.checked_add(*shift).is_some());
    let too_far = || {
        Otf2Error::content(
            folder,
            "some times are negative, and times are too far apart",
        )
    };
    let shift = shift.ok_or_else(too_far)?;
    let span = [first.saturating_add(shift), last.saturating_add(shift)];
    let mut anchor = Anchor::default();
    anchor.creator = "Downbeat".to_owned();
    anchor.trace_id = span[0] as u64 ^ (span[1] as u64).rotate_left(32);
    let mut archive = ArchiveWriter::create(&making.folder, NAME, anchor)?;
    let (mut all, mut left_out) = (0, 0);
    for location in 0..definitions.locations.len() as u32 {
        let counts = definitions.write_events(items, location, shift, &archive)?;
        definitions.locations[location as usize].events = counts[0];
        all += counts[0];
        left_out += counts[1];
    }
    definitions.write(span, &mut archive)?;
    let name = archive.finish()?;
    making.end(folder)?;
    Ok(NewArchive {
        anchor: folder.join(name.file_name().unwrap_or_default()),
        locations: definitions.locations.len(),
        events: all,
        left_out,
        samples: definitions.samples,
        shift: Duration::from_nanos(shift),
    })
}

impl NewDefinitions {
    fn of(items: &MergedItems) -> Self {
        let mut found = Self {
            windows: items.windows().iter().copied().collect(),
            ..Self::default()
        };
        for item in items.definitions() {
            match item {
                Item::Location { place, name } => found.add_process(place, name),
                Item::Thread { rank, name } => {
                    let process = found.locations[rank as usize].process;
                    found.add_location(process, name);
                }
                Item::Communicator { members } => found.communicators.push(members.to_vec()),
                Item::Region { name } => found.regions.push(name.to_owned()),
                Item::Metric { name, unit } => {
                    found.metrics.push([name, unit].map(str::to_owned));
                }
                Item::Sample { .. } => found.samples += 1,
                Item::Master { .. } | Item::Event { .. } | Item::Value { .. } => {}
            }
        }
        found
    }

    fn add_process(&mut self, place: Place, name: &str) {
        let process = self.processes.len();
        // As it is read: the name of a location of an MPI rank begins with that of its group.
        let of_rank = name.strip_prefix("rank ");
        let of_rank = of_rank.map(|rest| rest.split_once(", ").unwrap_or((rest, MASTER)));
        let of_group = match of_rank {
            Some((rank, _)) => format!("MPI Rank {rank}"),
            None => format!("process {}", place.process),
        };
        self.processes.push(NewProcess {
            name: of_group,
            node: place.node,
            rank: self.locations.len() as u32,
        });
        self.add_location(process, of_rank.map_or(name, |(_, thread)| thread));
    }

    fn add_location(&mut self, process: usize, name: &str) {
        let of_rank = self.processes[process].name.strip_prefix("MPI Rank ");
        let prefix = of_rank.map_or(String::new(), |rank| format!("rank {rank}, "));
        self.locations.push(NewLocation {
            name: name.strip_prefix(&prefix).unwrap_or(name).to_owned(),
            process,
            events: 0,
        });
    }

    /// Returns true if all members are MPI ranks.
    fn is_of_ranks(&self, members: &[u32]) -> bool {
        members
            .iter()
            .all(|member| self.process(*member).rank == *member)
    }

    fn process(&self, location: u32) -> &NewProcess {
        &self.processes[self.locations[location as usize].process]
    }

    /// Returns the rank of a process in a communicator, given by the location that represents it.
    fn rank(&self, communicator: u32, location: u32) -> Option<u32> {
        let members = self.communicators.get(communicator as usize)?;
        let rank = members.iter().position(|member| *member == location);
        rank.map(|rank| rank as u32)
    }

    /// Returns the number of the window with this communicator.
    fn window(&self, communicator: u32) -> Option<u32> {
        let found = self.windows.binary_search(&communicator).ok()?;
        Some(found as u32)
    }

    /// Writes the events of a location. Returns their number, and that of those left out.
    fn write_events(
        &self,
        items: &MergedItems,
        location: u32,
        shift: i64,
        archive: &ArchiveWriter,
    ) -> Result<[u64; 2], Otf2Error> {
        let mut events = archive.events(LocationRef(location.into()))?;
        let mut left_out = 0;
        // Fork before the current event, and teams that the location is in without a statement.
        let (mut forked, mut within) = (None, vec![]);
        items.each_of(location, |item| -> Result<(), Otf2Error> {
            // The shift was checked.
            let ticks = |time: Timestamp<Global>| time.as_nanos().saturating_add(shift) as u64;
            let (time, what) = match *item {
                Item::Event { time, what, .. } => (ticks(time), what),
                Item::Value {
                    time,
                    metric,
                    value,
                    ..
                } => {
                    let values = [MetricValue::F64(value.as_f64())];
                    let metric = MetricRef(metric);
                    let values = List::from(&values[..]);
                    return Ok(events.write(ticks(time), &Event::Metric { metric, values })?);
                }
                _ => return Ok(()),
            };
            // In OTF2, the thread that forks a team is in it.
            if let Some((time, team)) = forked.take().filter(|(_, team)| !is_begin(what, *team)) {
                within.push(team);
                let team = CommRef(team);
                events.write(time, &Event::ThreadTeamBegin { team })?;
            }
            match what {
                What::Fork { team } => forked = Some((time, team)),
                What::Join { team } if within.last() == Some(&team) => {
                    within.pop();
                    let team = CommRef(team);
                    events.write(time, &Event::ThreadTeamEnd { team })?;
                }
                _ => {}
            }
            match self.event(what) {
                Some(event) => events.write(time, &event)?,
                None => left_out += 1,
            }
            Ok(())
        })?;
        Ok([events.finish()?, left_out])
    }

    /// Returns an event of OTF2; `None` if it has no such event.
    fn event(&self, what: What<'_>) -> Option<Event<'static>> {
        let length = what.bytes().unwrap_or(0);
        let root_of = |kind: CollectiveKind, root: u32| match kind.has_root() {
            true => root,
            false => UNDEFINED,
        };
        let size_of = |sent: bool| match sent {
            true => length.max(1),
            false => 0,
        };
        Some(match what {
            What::Enter { region } => Event::Enter {
                region: RegionRef(region),
            },
            What::Leave { region } => Event::Leave {
                region: RegionRef(region),
            },
            What::Note(_) | What::Signal { .. } | What::Wait { .. } => return None,
            What::Send {
                to,
                communicator,
                tag,
                request,
                ..
            } => {
                let receiver = self.rank(communicator, to)?;
                let (communicator, tag) = (CommRef(communicator), tag as u32);
                match request {
                    Some(request) => Event::MpiIsend {
                        receiver,
                        communicator,
                        tag,
                        length,
                        request,
                    },
                    None => Event::MpiSend {
                        receiver,
                        communicator,
                        tag,
                        length,
                    },
                }
            }
            What::CompleteSend { request } => Event::MpiIsendComplete { request },
            What::Receive {
                from,
                communicator,
                tag,
                ..
            } => Event::MpiRecv {
                sender: self.rank(communicator, from)?,
                communicator: CommRef(communicator),
                tag: tag as u32,
                length,
            },
            What::CompleteReceive {
                from,
                communicator,
                tag,
                request,
                ..
            } => Event::MpiIrecv {
                sender: self.rank(communicator, from)?,
                communicator: CommRef(communicator),
                tag: tag as u32,
                length,
                request,
            },
            What::PostReceive { request } => Event::MpiIrecvRequest { request },
            What::CancelReceive { request } => Event::MpiRequestCancelled { request },
            What::Access {
                kind,
                target,
                communicator,
                request,
                ..
            } => {
                let remote = self.rank(communicator, target)?;
                windows::access(kind, (self.window(communicator)?, remote), length, request)
            }
            // It is certain at the origin only.
            What::AccessComplete {
                communicator,
                request: matching_id,
            } => Event::RmaOpCompleteNonBlocking {
                win: RmaWinRef(self.window(communicator)?),
                matching_id,
            },
            What::Collective { communicator } if self.window(communicator).is_some() => {
                Event::RmaCollectiveBegin {}
            }
            What::Collective { .. } => Event::MpiCollectiveBegin {},
            What::CollectiveEnd {
                communicator,
                kind,
                root,
                sent,
                received,
                ..
            } => {
                let root = root_of(kind, root);
                let [size_sent, size_received] = [size_of(sent), received.into()];
                match self.window(communicator) {
                    Some(window) => {
                        windows::collective_end(window, kind, root, [size_sent, size_received])
                    }
                    None => Event::MpiCollectiveEnd {
                        operation: operation_of(kind),
                        communicator: CommRef(communicator),
                        root,
                        size_sent,
                        size_received,
                    },
                }
            }
            What::CollectiveStart { request, .. } => {
                Event::NonBlockingCollectiveRequest { request }
            }
            What::CollectiveComplete {
                communicator,
                kind,
                root,
                sent,
                received,
                request,
                ..
            } => Event::NonBlockingCollectiveComplete {
                operation: operation_of(kind),
                communicator: CommRef(communicator),
                root: root_of(kind, root),
                size_sent: size_of(sent),
                size_received: received.into(),
                request,
            },
            What::Fork { team } => Event::ThreadFork {
                model: Paradigm::OPENMP,
                requested_threads: self.communicators.get(team as usize).map_or(0, Vec::len) as u32,
            },
            What::ThreadBegin { team } => Event::ThreadTeamBegin {
                team: CommRef(team),
            },
            What::ThreadEnd { team } => Event::ThreadTeamEnd {
                team: CommRef(team),
            },
            What::Join { .. } => Event::ThreadJoin {
                model: Paradigm::OPENMP,
            },
        })
    }

    /// Writes the global definitions.
    fn write(&self, [first, last]: [i64; 2], archive: &mut ArchiveWriter) -> Result<(), Otf2Error> {
        archive.define(&Definition::ClockProperties {
            resolution: 1_000_000_000,
            offset: first.max(0) as u64,
            length: last.saturating_sub(first).max(0) as u64,
            real_time: u64::MAX,
        })?;
        let mut to = Definer {
            archive,
            strings: 0,
        };
        let empty = to.string("")?;
        let node = to.string("node")?;
        let machine = to.string("machine")?;
        to.define(&Definition::SystemTreeNode {
            reference: SystemTreeNodeRef(0),
            name: machine,
            class: machine,
            parent: SystemTreeNodeRef::UNDEFINED,
        })?;
        let mut nodes: Vec<u32> = self.processes.iter().map(|of| of.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for (reference, number) in (1..).map(SystemTreeNodeRef).zip(&nodes) {
            let name = to.string(&format!("node {number}"))?;
            to.define(&Definition::SystemTreeNode {
                reference,
                name,
                class: node,
                parent: SystemTreeNodeRef(0),
            })?;
            to.define(&Definition::SystemTreeNodeDomain {
                node: reference,
                domain: SystemTreeDomain::SHARED_MEMORY,
            })?;
        }
        for (reference, process) in (0..).map(LocationGroupRef).zip(&self.processes) {
            let name = to.string(&process.name)?;
            let node = nodes.partition_point(|node| *node < process.node) as u32 + 1;
            to.define(&Definition::LocationGroup {
                reference,
                name,
                group_type: LocationGroupType::PROCESS,
                parent: SystemTreeNodeRef(node),
                creator: LocationGroupRef::UNDEFINED,
            })?;
        }
        for (reference, location) in (0..).map(LocationRef).zip(&self.locations) {
            let name = to.string(&location.name)?;
            to.define(&Definition::Location {
                reference,
                name,
                location_type: LocationType::CPU_THREAD,
                events: location.events,
                group: LocationGroupRef(location.process as u32),
            })?;
        }
        for (reference, region) in (0..).map(RegionRef).zip(&self.regions) {
            let name = to.string(region)?;
            let paradigm = match region.starts_with("MPI_") {
                true => Paradigm::MPI,
                false => Paradigm::USER,
            };
            to.define(&Definition::Region {
                reference,
                name,
                canonical_name: name,
                description: empty,
                role: RegionRole::FUNCTION,
                paradigm,
                flags: RegionFlag::NONE,
                file: StringRef::UNDEFINED,
                begin_line: 0,
                end_line: 0,
            })?;
        }
        for (index, [name, unit]) in (0..).zip(&self.metrics) {
            let (name, unit) = (to.string(name)?, to.string(unit)?);
            let member = MetricMemberRef(index);
            to.define(&Definition::MetricMember {
                reference: member,
                name,
                description: empty,
                metric_type: MetricType::OTHER,
                mode: MetricMode::ABSOLUTE_POINT,
                value_type: ValueType::F64,
                base: Base::DECIMAL,
                exponent: 0,
                unit,
            })?;
            to.define(&Definition::MetricClass {
                reference: MetricRef(index),
                members: List::from(&[member][..]),
                occurrence: MetricOccurrence::ASYNCHRONOUS,
                recorder_kind: RecorderKind::ABSTRACT,
            })?;
        }
        let mut group = |reference: u32, group_type, paradigm, members: &[u64]| {
            to.define(&Definition::Group {
                reference: GroupRef(reference),
                name: empty,
                group_type,
                paradigm,
                flags: GroupFlag::NONE,
                members: List::from(members),
            })
        };
        let ranks: Vec<u64> = self.processes.iter().map(|of| of.rank.into()).collect();
        group(0, GroupType::COMM_LOCATIONS, Paradigm::MPI, &ranks)?;
        let all: Vec<u64> = (0..self.locations.len() as u64).collect();
        group(1, GroupType::COMM_LOCATIONS, Paradigm::OPENMP, &all)?;
        for (index, members) in (0..).zip(&self.communicators) {
            // Members are indices among the locations of the paradigm.
            let (paradigm, members): (_, Vec<u64>) = if self.is_of_ranks(members) {
                let rank = |member: &u32| self.locations[*member as usize].process as u64;
                (Paradigm::MPI, members.iter().map(rank).collect())
            } else {
                (
                    Paradigm::OPENMP,
                    members.iter().map(|member| (*member).into()).collect(),
                )
            };
            group(index + 2, GroupType::COMM_GROUP, paradigm, &members)?;
        }
        for (index, _) in (0..).zip(&self.communicators) {
            to.define(&Definition::Comm {
                reference: CommRef(index),
                name: empty,
                group: GroupRef(index + 2),
                parent: CommRef::UNDEFINED,
                flags: CommFlag::NONE,
            })?;
        }
        for (reference, communicator) in (0..).map(RmaWinRef).zip(&self.windows) {
            to.define(&Definition::RmaWin {
                reference,
                name: empty,
                comm: CommRef(*communicator),
                flags: RmaWinFlag::NONE,
            })?;
        }
        Ok(())
    }
}

/// Returns true if the event is the beginning of a thread in this team.
fn is_begin(what: What<'_>, team: u32) -> bool {
    what == What::ThreadBegin { team }
}

/// Writer of global definitions.
struct Definer<'a> {
    archive: &'a mut ArchiveWriter,
    strings: u32,
}

impl Definer<'_> {
    fn define(&mut self, definition: &Definition<'_>) -> Result<(), Otf2Error> {
        Ok(self.archive.define(definition)?)
    }

    /// Defines a string, and returns its reference.
    fn string(&mut self, text: &str) -> Result<StringRef, Otf2Error> {
        let reference = StringRef(self.strings);
        self.strings += 1;
        self.define(&Definition::String {
            reference,
            text: text.into(),
        })?;
        Ok(reference)
    }
}
