//! New archives of the items of any trace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use downbeat_clock_core::Duration;

use super::chunks::RecordWriter;
use super::definitions::{
    DOMAIN_SHARED_MEMORY, GROUP_COMM_GROUP, GROUP_COMM_LOCATIONS, PARADIGM_MPI, PARADIGM_OPENMP,
    kind,
};
use super::events::{THREAD_TEAM_BEGIN, THREAD_TEAM_END};
use super::files::{globals, local};
use super::record::{CHUNK_HEADER, END, Order, put_record};
use super::stream::operation_number;
use super::write::PartialCopy;
use super::{Otf2Error, events};
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

const ORDER: Order = Order::Little;
const NAME: &str = "traces.otf2";
/// Sizes of chunks that OTF2 has by default.
const EVENT_CHUNK: usize = 1 << 20;
const DEFINITION_CHUNK: usize = 4 << 20;
/// Name of the first thread of an MPI rank, as Score-P has it.
const MASTER: &str = "Master thread";
const PARADIGM_USER: u8 = 1;
const ROLE_FUNCTION: u8 = 1;
const UNDEFINED: u64 = u64::MAX;

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
    samples: u64,
}

/// Writes a new archive into a new folder, `traces.otf2` there: messages, collective operations and
/// teams of threads become those of OTF2, with one location group for each process. Readers see
/// the same trace, except for what [`NewArchive`] counts. The folder appears when it is complete, or
/// not at all.
///
/// # Errors
/// If the folder exists or cannot be written, or times are too far apart.
pub fn create(items: &MergedItems, folder: &Path) -> Result<NewArchive, Otf2Error> {
    let making = PartialCopy::begin(folder)?;
    let anchor = making.folder.join(NAME);
    let mut definitions = NewDefinitions::of(items);
    let events = anchor.with_extension("");
    fs::create_dir(&events).map_err(Otf2Error::io(&events))?;
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
    let (mut all, mut left_out) = (0, 0);
    for location in 0..definitions.locations.len() as u32 {
        let counts = definitions.write_events(items, location, shift, &anchor)?;
        definitions.locations[location as usize].events = counts[0];
        all += counts[0];
        left_out += counts[1];
    }
    let path = globals(&anchor);
    let span = [first.saturating_add(shift), last.saturating_add(shift)];
    let (file, count) = definitions.global(span).map_err(Otf2Error::io(&path))?;
    fs::write(&path, file).map_err(Otf2Error::io(&path))?;
    let content = anchor_file(definitions.locations.len() as u64, count);
    fs::write(&anchor, content).map_err(Otf2Error::io(&anchor))?;
    making.end(folder)?;
    Ok(NewArchive {
        anchor: folder.join(NAME),
        locations: definitions.locations.len(),
        events: all,
        left_out,
        samples: definitions.samples,
        shift: Duration::from_nanos(shift),
    })
}

impl NewDefinitions {
    fn of(items: &MergedItems) -> Self {
        let mut found = Self::default();
        for item in items.definitions() {
            match item {
                Item::Location { place, name } => found.add_process(place, name),
                Item::Thread { rank, name } => {
                    let process = found.locations[rank as usize].process;
                    found.add_location(process, name);
                }
                Item::Communicator { members } => found.communicators.push(members.to_vec()),
                Item::Region { name } => found.regions.push(name.to_owned()),
                Item::Sample { .. } => found.samples += 1,
                Item::Master { .. } | Item::Event { .. } => {}
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

    /// Returns true if the members of a communicator are MPI ranks.
    fn is_of_ranks(&self, communicator: usize) -> bool {
        let mut members = self.communicators[communicator].iter();
        members.all(|member| self.process(*member).rank == *member)
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

    /// Writes the events of a location. Returns their number, and that of those left out.
    fn write_events(
        &self,
        items: &MergedItems,
        location: u32,
        shift: i64,
        anchor: &Path,
    ) -> Result<[u64; 2], Otf2Error> {
        let path = local(anchor, location.into(), "def");
        let empty = RecordWriter::new(vec![], DEFINITION_CHUNK, ORDER).end();
        fs::write(&path, empty.map_err(Otf2Error::io(&path))?).map_err(Otf2Error::io(&path))?;
        let path = local(anchor, location.into(), "evt");
        let file = File::create_new(&path).map_err(Otf2Error::io(&path))?;
        let mut events = EventWriter {
            writer: RecordWriter::new(file, EVENT_CHUNK, ORDER),
            path: &path,
            record: vec![],
            count: 0,
        };
        let (mut left_out, mut data) = (0, Fields::default());
        // Fork before the current event, and teams that the location is in without a statement.
        let (mut forked, mut within) = (None, vec![]);
        items.each_of(location, |time, what, length| {
            // The shift was checked.
            let time = time.as_nanos().saturating_add(shift) as u64;
            // In OTF2, the thread that forks a team is in it.
            if let Some((time, team)) = forked.take().filter(|(_, team)| !is_begin(what, *team)) {
                within.push(team);
                events.add(time, THREAD_TEAM_BEGIN, data.of(team))?;
            }
            match what {
                What::Fork { team } => forked = Some((time, team)),
                What::Join { team } if within.last() == Some(&team) => {
                    within.pop();
                    events.add(time, THREAD_TEAM_END, data.of(team))?;
                }
                _ => {}
            }
            data.bytes.clear();
            match self.encode(&mut data, what, length) {
                Some(kind) => events.add(time, kind, &data),
                None => {
                    left_out += 1;
                    Ok(())
                }
            }
        })?;
        let EventWriter { writer, count, .. } = events;
        writer.end().map_err(Otf2Error::io(&path))?;
        Ok([count, left_out])
    }

    /// Encodes the data of an event, and returns its kind; `None` if OTF2 has no such event.
    fn encode(&self, data: &mut Fields, what: What<'_>, length: Option<u64>) -> Option<u8> {
        let message = |data: &mut Fields, peer: u32, communicator: u32, tag: i32| {
            let rank = self.rank(communicator, peer)?;
            data.number(rank.into()).number(communicator.into());
            data.number((tag as u32).into()).number(length.unwrap_or(0));
            Some(())
        };
        let operation = |data: &mut Fields,
                         (kind, root): (CollectiveKind, u32),
                         communicator: u32,
                         [sent, received]: [bool; 2]| {
            data.byte(operation_number(kind))
                .number(communicator.into());
            data.number(if kind.has_root() {
                root.into()
            } else {
                UNDEFINED
            });
            let bytes = length.filter(|length| *length > 0).unwrap_or(1);
            data.number(if sent { bytes } else { 0 });
            data.number(received.into());
        };
        Some(match what {
            What::Enter { region } => {
                data.number(region.into());
                events::ENTER
            }
            What::Leave { region } => {
                data.number(region.into());
                events::LEAVE
            }
            What::Note(_) | What::Signal { .. } | What::Wait { .. } => return None,
            What::Send {
                to,
                communicator,
                tag,
            } => {
                message(data, to, communicator, tag)?;
                events::MPI_SEND
            }
            What::Receive {
                from,
                communicator,
                tag,
            } => {
                message(data, from, communicator, tag)?;
                events::MPI_RECV
            }
            What::CompleteReceive {
                from,
                communicator,
                tag,
                request,
            } => {
                message(data, from, communicator, tag)?;
                data.number(request);
                events::MPI_IRECV
            }
            What::PostReceive { request } => {
                data.number(request);
                events::MPI_IRECV_REQUEST
            }
            What::CancelReceive { request } => {
                data.number(request);
                events::MPI_REQUEST_CANCELLED
            }
            What::Collective { .. } => events::MPI_COLLECTIVE_BEGIN,
            What::CollectiveEnd {
                communicator,
                kind,
                root,
                sent,
                received,
            } => {
                operation(data, (kind, root), communicator, [sent, received]);
                events::MPI_COLLECTIVE_END
            }
            What::CollectiveStart { request, .. } => {
                data.number(request);
                events::NON_BLOCKING_COLLECTIVE_REQUEST
            }
            What::CollectiveComplete {
                communicator,
                kind,
                root,
                sent,
                received,
                request,
            } => {
                operation(data, (kind, root), communicator, [sent, received]);
                data.number(request);
                events::NON_BLOCKING_COLLECTIVE_COMPLETE
            }
            What::Fork { team } => {
                let threads = self.communicators.get(team as usize).map_or(0, Vec::len);
                data.byte(PARADIGM_OPENMP).number(threads as u64);
                events::THREAD_FORK
            }
            What::ThreadBegin { team } => {
                data.number(team.into());
                THREAD_TEAM_BEGIN
            }
            What::ThreadEnd { team } => {
                data.number(team.into());
                THREAD_TEAM_END
            }
            What::Join { .. } => {
                data.byte(PARADIGM_OPENMP);
                events::THREAD_JOIN
            }
        })
    }

    /// Returns the file of global definitions, and their number.
    fn global(&self, [first, last]: [i64; 2]) -> std::io::Result<(Vec<u8>, u64)> {
        let mut file = GlobalFile {
            writer: RecordWriter::new(vec![], DEFINITION_CHUNK, ORDER),
            count: 0,
            strings: 0,
        };
        let length = last.saturating_sub(first).max(0) as u64;
        let mut clock = Fields::default();
        clock
            .number(1_000_000_000)
            .number(first.max(0) as u64)
            .number(length)
            .number(UNDEFINED);
        file.add(kind::CLOCK_PROPERTIES, &clock)?;
        let empty = file.string("")?;
        let node = file.string("node")?;
        let machine = file.string("machine")?;
        let system = |reference: u64, name, class, parent| {
            let mut fields = Fields::default();
            fields
                .number(reference)
                .number(name)
                .number(class)
                .number(parent);
            fields
        };
        file.add(
            kind::SYSTEM_TREE_NODE,
            &system(0, machine, machine, UNDEFINED),
        )?;
        let mut nodes: Vec<u32> = self.processes.iter().map(|of| of.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for (reference, number) in (1..).zip(&nodes) {
            let name = file.string(&format!("node {number}"))?;
            file.add(kind::SYSTEM_TREE_NODE, &system(reference, name, node, 0))?;
            let mut domain = Fields::default();
            domain.number(reference).byte(DOMAIN_SHARED_MEMORY);
            file.add(kind::SYSTEM_TREE_NODE_DOMAIN, &domain)?;
        }
        for (reference, process) in (0..).zip(&self.processes) {
            let name = file.string(&process.name)?;
            let node = nodes.partition_point(|node| *node < process.node) as u64 + 1;
            let mut group = Fields::default();
            // The type is a process, which no other one created.
            group
                .number(reference)
                .number(name)
                .byte(1)
                .number(node)
                .number(UNDEFINED);
            file.add(kind::LOCATION_GROUP, &group)?;
        }
        for (id, location) in (0..).zip(&self.locations) {
            let name = file.string(&location.name)?;
            let mut fields = Fields::default();
            // The type is a thread of a processor.
            fields.number(id).number(name).byte(1);
            fields
                .number(location.events)
                .number(location.process as u64);
            file.add(kind::LOCATION, &fields)?;
        }
        for (reference, region) in (0..).zip(&self.regions) {
            let name = file.string(region)?;
            let paradigm = match region.starts_with("MPI_") {
                true => PARADIGM_MPI,
                false => PARADIGM_USER,
            };
            let mut fields = Fields::default();
            fields
                .number(reference)
                .number(name)
                .number(empty)
                .byte(ROLE_FUNCTION);
            fields.number(UNDEFINED).number(0).number(0);
            fields
                .number(name)
                .byte(ROLE_FUNCTION)
                .byte(paradigm)
                .number(0);
            file.add(kind::REGION, &fields)?;
        }
        let ranks: Vec<u64> = self.processes.iter().map(|of| of.rank.into()).collect();
        file.group((0, empty), (GROUP_COMM_LOCATIONS, PARADIGM_MPI), &ranks)?;
        let all: Vec<u64> = (0..self.locations.len() as u64).collect();
        let of_threads = (GROUP_COMM_LOCATIONS, PARADIGM_OPENMP);
        file.group((1, empty), of_threads, &all)?;
        for (index, members) in self.communicators.iter().enumerate() {
            let reference = index as u64 + 2;
            // Members are indices among the locations of the paradigm.
            if self.is_of_ranks(index) {
                let rank = |member: &u32| self.locations[*member as usize].process as u64;
                let members: Vec<u64> = members.iter().map(rank).collect();
                file.group(
                    (reference, empty),
                    (GROUP_COMM_GROUP, PARADIGM_MPI),
                    &members,
                )?;
            } else {
                let members: Vec<u64> = members.iter().map(|member| (*member).into()).collect();
                let group = (GROUP_COMM_GROUP, PARADIGM_OPENMP);
                file.group((reference, empty), group, &members)?;
            }
            let mut fields = Fields::default();
            fields.number(index as u64).number(empty).number(reference);
            fields.number(UNDEFINED).number(0);
            file.add(kind::COMM, &fields)?;
        }
        Ok((file.writer.end()?, file.count))
    }
}

/// Returns true if the event is the beginning of a thread in this team.
fn is_begin(what: What<'_>, team: u32) -> bool {
    what == What::ThreadBegin { team }
}

/// Writer of the events of a location.
struct EventWriter<'a> {
    writer: RecordWriter<File>,
    path: &'a Path,
    record: Vec<u8>,
    count: u64,
}

impl EventWriter<'_> {
    fn add(&mut self, time: u64, kind: u8, data: &Fields) -> Result<(), Otf2Error> {
        self.record.clear();
        put_record(kind, &data.bytes, ORDER, &mut self.record);
        self.count += 1;
        let added = self.writer.add_event(time, &self.record);
        added.map_err(Otf2Error::io(self.path))
    }
}

/// File of global definitions.
struct GlobalFile {
    writer: RecordWriter<Vec<u8>>,
    count: u64,
    strings: u64,
}

impl GlobalFile {
    fn add(&mut self, kind: u8, fields: &Fields) -> std::io::Result<()> {
        let mut record = vec![];
        put_record(kind, &fields.bytes, ORDER, &mut record);
        self.count += 1;
        self.writer.add(&record)
    }

    /// Defines a string, and returns its reference.
    fn string(&mut self, text: &str) -> std::io::Result<u64> {
        let mut fields = Fields::default();
        fields.number(self.strings);
        // A zero byte would end it.
        fields.bytes.extend(text.bytes().filter(|byte| *byte > 0));
        fields.byte(0);
        self.add(kind::STRING, &fields)?;
        self.strings += 1;
        Ok(self.strings - 1)
    }

    fn group(
        &mut self,
        (reference, name): (u64, u64),
        (kind, paradigm): (u8, u8),
        members: &[u64],
    ) -> std::io::Result<()> {
        // Types of the first version of OTF2.
        let first_type = match kind {
            GROUP_COMM_LOCATIONS if paradigm == PARADIGM_MPI => 6,
            GROUP_COMM_GROUP if paradigm == PARADIGM_MPI => 4,
            _ => 0,
        };
        let mut fields = Fields::default();
        fields.number(reference).number(name).byte(first_type);
        fields.number(members.len() as u64);
        for member in members {
            fields.number(*member);
        }
        fields.byte(kind).byte(paradigm).number(0);
        self.add(kind::GROUP, &fields)
    }
}

/// Data of a record.
#[derive(Debug, Default)]
struct Fields {
    bytes: Vec<u8>,
}

impl Fields {
    /// Returns the data of an event that only has a reference.
    fn of(&mut self, reference: u32) -> &Self {
        self.bytes.clear();
        self.number(reference.into())
    }

    fn number(&mut self, number: u64) -> &mut Self {
        ORDER.put(number, &mut self.bytes);
        self
    }

    fn byte(&mut self, byte: u8) -> &mut Self {
        self.bytes.push(byte);
        self
    }
}

/// Returns the content of the anchor file, as OTF2 3.0 writes it.
fn anchor_file(locations: u64, definitions: u64) -> Vec<u8> {
    let mut file = vec![CHUNK_HEADER, ORDER as u8];
    file.extend(b"OTF2\0");
    // The format, and the version of OTF2.
    file.extend([3, 2, 3, 0, 2]);
    let sizes = [EVENT_CHUNK as u64, DEFINITION_CHUNK as u64];
    file.extend(sizes.map(|size| ORDER.bytes(size)).as_flattened());
    // Plain files, not compressed.
    file.extend([1, 1]);
    let counts = [locations, definitions];
    file.extend(counts.map(|count| ORDER.bytes(count)).as_flattened());
    file.extend(b"\0Downbeat\0\0");
    // No properties; the id of the trace; no snapshots and thumbnails.
    file.extend([0; 4]);
    file.extend(ORDER.bytes(locations ^ definitions << 32));
    file.extend([0; 8]);
    file.extend(END);
    file
}
