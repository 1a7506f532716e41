//! New archives of the items of any trace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_otf2::{
    Anchor, ArchiveWriter, Base, ClockOffset, CommFlag, CommRef, Definition, Event, EventWriter,
    GroupFlag, GroupRef, GroupType, List, LocationGroupRef, LocationGroupType, LocationRef,
    LocationType, MetricMemberRef, MetricMode, MetricOccurrence, MetricRef, MetricType,
    MetricValue, Paradigm, ParameterType, PropertyValue, RecorderKind, RegionFlag, RegionRef,
    RegionRole, RmaWinFlag, RmaWinRef, StringRef, SystemTreeDomain, SystemTreeNodeRef, Value,
    ValueType,
};
use rustc_hash::FxHashMap;

use super::Otf2Error;
use super::definitions::names_rank;
use super::events::Otf2Event;
use super::exact::{EVENT, EVENT_ATTRIBUTE, ExactTrace, NO_ROOT, NODE, NOTE, PROCESS};
use super::integrity::write_checksums;
use super::samples::{SAMPLES, mean_time, offsets_of, texts_of};
use super::stream::operation_of;
use super::windows;
use super::write::PartialCopy;
use crate::formats::sessions::add_sample;
use crate::formats::text::write_event as write_line;
use crate::formats::{Item, MergedItems, Quantity, Sessions, What};
use crate::presync::ClockSample;
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
    /// Time by which all events are shifted for other readers, as OTF2 has no negative
    /// times; 0 if there are none.
    pub shift: Duration,
}

const NAME: &str = "traces";

/// Location, and its files.
struct NewLocation {
    name: String,
    /// Index among the processes.
    process: usize,
    events: u64,
}

/// Process, which is a location group.
struct NewProcess {
    place: Place,
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
    /// Clock samples of each location, by session.
    sessions: Sessions,
    exact: ExactTrace,
}

/// Writes a new archive into a new folder, `traces.otf2` there. Messages, collective
/// operations, accesses, teams of threads and values of metrics become those of OTF2,
/// signals and waits releases and acquisitions of locks, and notes parameters. A
/// communicator with accesses is also a window; each process is a location group. Each
/// session becomes a clock offset.
///
/// [`Archive::for_each_item`](super::Archive::for_each_item) returns the same items: what
/// OTF2 cannot express is stated in properties and attributes. Events are in the order of
/// time, and those at one time in the order of their locations. The folder appears when
/// it is complete, or not at all.
///
/// # Errors
/// If the folder exists or cannot be written, or times are too far apart.
pub fn create(items: &MergedItems, folder: &Path) -> Result<NewArchive, Otf2Error> {
    let making = PartialCopy::begin(folder)?;
    let mut definitions = NewDefinitions::of(items);
    let [first, last] = items.span().unwrap_or_default();
    let offsets = definitions.shift_times([first, last]).ok_or_else(|| {
        Otf2Error::content(
            folder,
            "some times are negative, and times are too far apart",
        )
    })?;
    let shift = definitions.exact.shift;
    let span = [first.saturating_add(shift), last.saturating_add(shift)];
    let mut anchor = Anchor::default();
    anchor.creator = "Downbeat".to_owned();
    anchor.trace_id = span[0] as u64 ^ (span[1] as u64).rotate_left(32);
    anchor.properties = definitions.exact.properties();
    let mut archive = ArchiveWriter::create(&making.folder, NAME, anchor)?;
    let mut signals = definitions.signal_numbers(items)?;
    let (mut all, mut texts) = (0, StringTable::default());
    for (location, offsets) in (0..).zip(&offsets) {
        let events = archive.events_of(LocationRef(location.into()), offsets)?;
        let mut writer = LocationWriter {
            definitions: &definitions,
            unpaired: definitions.unpaired(items, location)?,
            signals: std::mem::take(&mut signals[location as usize]),
            texts: &mut texts,
            events,
        };
        let count = writer
            .write(items, location)
            .and_then(|()| Ok(writer.events.finish()?))?;
        definitions.locations[location as usize].events = count;
        all += count;
    }
    definitions.write(span, items, (texts, &mut archive))?;
    let name = archive.finish()?;
    write_checksums(&name)?;
    making.end(folder)?;
    Ok(NewArchive {
        anchor: folder.join(name.file_name().unwrap_or_default()),
        locations: definitions.locations.len(),
        events: all,
        shift: Duration::from_nanos(shift),
    })
}

/// Strings of events, each once.
#[derive(Debug, Default)]
struct StringTable(FxHashMap<String, u32>);

impl StringTable {
    fn reference(&mut self, text: &str) -> StringRef {
        let next = self.0.len() as u32;
        // Most strings are not new.
        StringRef(match self.0.get(text) {
            Some(known) => *known,
            None => *self.0.entry(text.to_owned()).or_insert(next),
        })
    }
}

impl NewDefinitions {
    fn of(items: &MergedItems) -> Self {
        let mut found = Self {
            windows: items.windows().iter().copied().collect(),
            ..Self::default()
        };
        found.exact.is_unsized = items.is_mostly_unsized();
        for item in items.definitions() {
            match item {
                Item::Location { place, name } => {
                    let process = found.processes.len();
                    found.processes.push(NewProcess {
                        place,
                        rank: found.locations.len() as u32,
                    });
                    found.add_location(process, name);
                }
                Item::Thread { rank, name } => {
                    let process = found.locations[rank as usize].process;
                    found.add_location(process, name);
                }
                Item::Communicator { members } => found.communicators.push(members.to_vec()),
                Item::Region { name } => found.regions.push(name.to_owned()),
                Item::Metric { name, unit } => {
                    found.metrics.push([name, unit].map(str::to_owned));
                }
                Item::Sample {
                    location,
                    session,
                    local,
                    master,
                } => {
                    let (at, image) = (local, master);
                    let sessions = &mut found.sessions[location as usize];
                    add_sample(sessions, session, ClockSample { at, image });
                }
                Item::Master { location } => found.exact.master = Some(location),
                Item::Event { .. } | Item::Value { .. } => {}
            }
        }
        found
    }

    fn add_location(&mut self, process: usize, name: &str) {
        self.sessions.push(vec![]);
        self.locations.push(NewLocation {
            name: name.to_owned(),
            process,
            events: 0,
        });
    }

    /// Sets the shift of all times, of which the first and the last one are given, so
    /// that neither they nor those of sessions are negative. Returns the clock offsets of
    /// each location; `None` if there is no such shift.
    fn shift_times(&mut self, [first, last]: [i64; 2]) -> Option<Vec<Vec<ClockOffset>>> {
        let sessions = self.sessions.iter().flatten();
        let first = sessions
            .map(|samples| mean_time(samples))
            .fold(first, i64::min);
        self.exact.shift = first.min(0).checked_neg()?;
        last.checked_add(self.exact.shift)?;
        let sessions = self.sessions.iter();
        sessions
            .map(|sessions| offsets_of(sessions, self.exact.shift))
            .collect()
    }

    /// Returns the names of all processes: that of an MPI rank, if the names of all of
    /// its locations begin with the rank. Otherwise readers would put the rank in front
    /// of them.
    fn process_names(&self) -> Vec<String> {
        let digits = |process: &NewProcess| {
            let name = self.locations[process.rank as usize].name.as_str();
            let digits = name
                .strip_prefix("rank ")?
                .split(|next: char| !next.is_ascii_digit());
            digits.take(1).find(|digits| !digits.is_empty())
        };
        let mut ranks: Vec<Option<&str>> = self.processes.iter().map(digits).collect();
        for location in &self.locations {
            let rank = &mut ranks[location.process];
            *rank = rank.filter(|rank| names_rank(&location.name, rank));
        }
        let name = |(rank, process): (Option<&str>, &NewProcess)| match rank {
            Some(rank) => format!("MPI Rank {rank}"),
            None => format!("process {}", process.place.process),
        };
        ranks.into_iter().zip(&self.processes).map(name).collect()
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

    /// Returns the positions among the items of a location of begins and ends of
    /// operations that readers would not pair: they take the last begin for that of an
    /// end.
    fn unpaired(&self, items: &MergedItems, location: u32) -> Result<BTreeSet<u64>, Otf2Error> {
        let (mut open, mut unpaired) = (vec![], BTreeSet::new());
        let mut position = 0;
        items.each_of(location, |item| -> Result<(), Otf2Error> {
            let this = position;
            position += 1;
            let Item::Event { what, .. } = *item else {
                return Ok(());
            };
            match what {
                What::Collective { communicator } | What::CollectiveStart { communicator, .. } => {
                    open.push((self.pairing(what), communicator, this));
                }
                What::CollectiveEnd { communicator, .. }
                | What::CollectiveComplete { communicator, .. } => {
                    let pairing = self.pairing(what);
                    let last = open.iter().rposition(|(of, ..)| *of == pairing);
                    match last.filter(|last| open[*last].1 == communicator) {
                        Some(last) => {
                            let (.., begin) = open.remove(last);
                            // A reader takes neither of them from OTF2.
                            if self
                                .event(what)
                                .is_none_or(|event| self.lacks(what, &event))
                            {
                                unpaired.extend([begin, this]);
                            }
                        }
                        None => drop(unpaired.insert(this)),
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        unpaired.extend(open.into_iter().map(|(.., position)| position));
        Ok(unpaired)
    }

    /// Returns the numbers of signals and waits of each location by their positions:
    /// those of a signal and its wait are equal. In a trace, ids are used again, which
    /// the order of the events of all locations of a process tells apart; an archive has
    /// no such order.
    fn signal_numbers(&self, items: &MergedItems) -> Result<Vec<FxHashMap<u64, u32>>, Otf2Error> {
        let mut numbers = vec![FxHashMap::default(); self.locations.len()];
        if !items.has_signals() {
            return Ok(numbers);
        }
        let mut positions = vec![0; self.locations.len()];
        let mut next = vec![0_u32; self.processes.len()];
        // Ends without a partner by process and id, as `Signals` has them.
        let mut open: FxHashMap<(usize, u64), (u32, bool, u32)> = FxHashMap::default();
        items.each(|item| -> Result<(), Otf2Error> {
            let (Item::Event { location, .. } | Item::Value { location, .. }) = *item else {
                return Ok(());
            };
            let position = positions[location as usize];
            positions[location as usize] += 1;
            let (id, signals) = match *item {
                Item::Event {
                    what: What::Signal { id },
                    ..
                } => (id, true),
                Item::Event {
                    what: What::Wait { id },
                    ..
                } => (id, false),
                _ => return Ok(()),
            };
            let process = self.locations[location as usize].process;
            let number = match open.remove(&(process, id)) {
                Some((_, true, number)) if !signals => number,
                Some((other, false, number)) if signals && other != location => number,
                _ => {
                    let number = next[process];
                    next[process] = number.saturating_add(1);
                    open.insert((process, id), (location, signals, number));
                    number
                }
            };
            numbers[location as usize].insert(position, number);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Returns what begins and ends of an operation have in common in OTF2: the request,
    /// or whether the operation is one of a window.
    fn pairing(&self, what: What<'_>) -> (Option<u64>, bool) {
        match what {
            What::CollectiveStart { request, .. } | What::CollectiveComplete { request, .. } => {
                (Some(request), false)
            }
            What::Collective { communicator } | What::CollectiveEnd { communicator, .. } => {
                (None, self.window(communicator).is_some())
            }
            _ => (None, false),
        }
    }

    /// Returns true if an event of OTF2 does not tell all of this event.
    fn lacks(&self, what: What<'_>, event: &Event<'_>) -> bool {
        let of = Otf2Event::of(event);
        let lacks_other = match what {
            What::CollectiveEnd {
                communicator,
                kind,
                root,
                ..
            } => {
                let is_fence =
                    kind == CollectiveKind::Barrier && self.window(communicator).is_some();
                is_fence || !kind.has_root() && root != 0
            }
            What::CollectiveComplete { kind, root, .. } => !kind.has_root() && root != 0,
            // The team is that of the thread that begins next.
            What::Fork { .. } | What::Join { .. } => true,
            _ => false,
        };
        lacks_other || what.bytes() != self.exact.bytes(&of, what)
    }

    /// Returns an event of OTF2; `None` if it has no such event.
    fn event(&self, what: What<'_>) -> Option<Event<'static>> {
        let length = what.bytes().unwrap_or(0);
        let root_of = |kind: CollectiveKind, root: u32| match kind.has_root() {
            true => root,
            false => NO_ROOT,
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
            // Signals have numbers beside their ids.
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
    fn write(
        &self,
        [first, last]: [i64; 2],
        items: &MergedItems,
        (texts, archive): (StringTable, &mut ArchiveWriter),
    ) -> Result<(), Otf2Error> {
        archive.define(&Definition::ClockProperties {
            resolution: 1_000_000_000,
            offset: first.max(0) as u64,
            length: last.saturating_sub(first).max(0) as u64,
            real_time: u64::MAX,
        })?;
        let mut to = Definer {
            archive,
            strings: texts.0.len() as u32,
        };
        let mut of_events: Vec<_> = texts
            .0
            .iter()
            .map(|(text, number)| (*number, text))
            .collect();
        of_events.sort_unstable();
        for (reference, text) in of_events {
            to.define(&Definition::String {
                reference: StringRef(reference),
                text: text.into(),
            })?;
        }
        let empty = to.string("")?;
        for (reference, name) in [(NOTE, "note"), (EVENT, "event")] {
            let name = to.string(name)?;
            to.define(&Definition::Parameter {
                reference,
                name,
                parameter_type: ParameterType::STRING,
            })?;
        }
        let name = to.string("DOWNBEAT::EVENT")?;
        let description = to.string("the event in a text trace of Downbeat")?;
        to.define(&Definition::Attribute {
            reference: EVENT_ATTRIBUTE,
            name,
            value_type: ValueType::String,
            description,
        })?;
        let node = to.string("node")?;
        let machine = to.string("machine")?;
        to.define(&Definition::SystemTreeNode {
            reference: SystemTreeNodeRef(0),
            name: machine,
            class: machine,
            parent: SystemTreeNodeRef::UNDEFINED,
        })?;
        let mut nodes: Vec<u32> = self.processes.iter().map(|of| of.place.node).collect();
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
        let stated = [to.string(NODE)?, to.string(PROCESS)?];
        let names = self.process_names();
        let processes = self.processes.iter().zip(&names);
        for (reference, (process, name)) in (0..).map(LocationGroupRef).zip(processes) {
            let name = to.string(name)?;
            let Place { node, process } = process.place;
            let numbers = [node, process];
            let node = nodes.partition_point(|other| *other < node) as u32 + 1;
            to.define(&Definition::LocationGroup {
                reference,
                name,
                group_type: LocationGroupType::PROCESS,
                parent: SystemTreeNodeRef(node),
                creator: LocationGroupRef::UNDEFINED,
            })?;
            for (name, number) in stated.into_iter().zip(numbers) {
                to.define(&Definition::LocationGroupProperty {
                    group: reference,
                    name,
                    value: PropertyValue(Value::U32(number)),
                })?;
            }
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
        self.write_samples(&mut to)?;
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
                value_type: match items.is_whole(index) {
                    true => ValueType::I64,
                    false => ValueType::F64,
                },
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

impl NewDefinitions {
    /// Writes the clock samples as properties of their locations.
    fn write_samples(&self, to: &mut Definer<'_>) -> Result<(), Otf2Error> {
        let mut names = vec![];
        for (location, sessions) in (0..).map(LocationRef).zip(&self.sessions) {
            for (number, text) in texts_of(sessions).iter().enumerate() {
                if names.len() == number {
                    names.push(to.string(&format!("{SAMPLES}{number}"))?);
                }
                let value = PropertyValue(Value::String(to.string(text)?));
                to.define(&Definition::LocationProperty {
                    location,
                    name: names[number],
                    value,
                })?;
            }
        }
        Ok(())
    }
}

/// Writer of the events of a location.
struct LocationWriter<'a> {
    definitions: &'a NewDefinitions,
    /// Positions of events whose operations readers would not find.
    unpaired: BTreeSet<u64>,
    /// Numbers of signals and waits by their positions.
    signals: FxHashMap<u64, u32>,
    texts: &'a mut StringTable,
    events: EventWriter,
}

impl LocationWriter<'_> {
    /// Writes the events of a location.
    fn write(&mut self, items: &MergedItems, location: u32) -> Result<(), Otf2Error> {
        let shift = self.definitions.exact.shift;
        // Fork before the current event, and teams that the location is in without a
        // statement.
        let (mut forked, mut within) = (None, vec![]);
        let mut position = 0;
        items.each_of(location, |item| -> Result<(), Otf2Error> {
            let this = position;
            position += 1;
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
                    let values = [match value {
                        Quantity::Whole(value) => MetricValue::I64(value),
                        Quantity::Real(value) => MetricValue::F64(value),
                    }];
                    let metric = MetricRef(metric);
                    let values = List::from(&values[..]);
                    let event = Event::Metric { metric, values };
                    return Ok(self.events.write(ticks(time), &event)?);
                }
                _ => return Ok(()),
            };
            // In OTF2, the thread that forks a team is in it.
            if let Some((time, team)) = forked.take().filter(|(_, team)| !is_begin(what, *team)) {
                within.push(team);
                let team = CommRef(team);
                self.write_stated(time, &Event::ThreadTeamBegin { team }, "")?;
            }
            match what {
                What::Fork { team } => forked = Some((time, team)),
                What::Join { team } if within.last() == Some(&team) => {
                    within.pop();
                    let team = CommRef(team);
                    self.write_stated(time, &Event::ThreadTeamEnd { team }, "")?;
                }
                _ => {}
            }
            self.write_event(time, what, this)
        })
    }

    fn write_event(&mut self, time: u64, what: What<'_>, position: u64) -> Result<(), Otf2Error> {
        if let What::Note(text) = what {
            let string = self.texts.reference(text);
            let parameter = NOTE;
            let event = Event::ParameterString { parameter, string };
            return Ok(self.events.write(time, &event)?);
        }
        let line = || {
            let mut line = vec![];
            write_line(&mut line, what);
            String::from_utf8_lossy(&line).into_owned()
        };
        let number = self.signals.get(&position).copied();
        let event = self.definitions.event(what);
        match event.or_else(|| signal_event(what, number?)) {
            None => {
                let (parameter, string) = (EVENT, self.texts.reference(&line()));
                let event = Event::ParameterString { parameter, string };
                Ok(self.events.write(time, &event)?)
            }
            Some(event)
                if self.unpaired.contains(&position) || self.definitions.lacks(what, &event) =>
            {
                self.write_stated(time, &event, &line())
            }
            Some(event) => Ok(self.events.write(time, &event)?),
        }
    }

    /// Writes an event with an attribute that states what it is in the trace.
    fn write_stated(&mut self, time: u64, event: &Event<'_>, line: &str) -> Result<(), Otf2Error> {
        let stated = [(EVENT_ATTRIBUTE, Value::String(self.texts.reference(line)))];
        Ok(self
            .events
            .write_with(time, event, &List::from(&stated[..]))?)
    }
}

/// Returns the event of a signal or wait whose number no other pair of the process has;
/// `None` if the id is too large for a lock.
fn signal_event(what: What<'_>, number: u32) -> Option<Event<'static>> {
    let model = Paradigm::USER;
    Some(match what {
        What::Signal { id } => Event::ThreadReleaseLock {
            model,
            lock: id.try_into().ok()?,
            acquisition_order: number,
        },
        // The acquisition after the one that was released.
        What::Wait { id } => Event::ThreadAcquireLock {
            model,
            lock: id.try_into().ok()?,
            acquisition_order: number.checked_add(1)?,
        },
        _ => return None,
    })
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
