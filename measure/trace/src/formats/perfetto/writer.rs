//! Writer of Perfetto files.

use std::collections::HashMap;
use std::path::Path;

use crate::kind::data_index;
use crate::{AccessKind, Event, Place, Quantity};
use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::PerfettoSurvey;
use super::flows::Flows;
use super::packets::{self, Annotation, Category, FixedName, InternedName, TrackEvent};
use super::summary::PerfettoSummary;
use super::timeline::{EventShape, Timeline, TimelineSlice};
use crate::formats::Item;
use crate::formats::definitions::FileDefinitions;
use downbeat_files::FileError;
use downbeat_files::{CHUNK, NewFile};

/// Maximum number and length of notes that are interned.
const MOST_NOTES: usize = 1 << 12;
const LONGEST_NOTE: usize = 1 << 8;

/// Writes a trace for Perfetto, item by item. The file appears when [`finish`](Self::finish)
/// returns; an existing file is kept until then.
#[derive(Debug)]
pub struct PerfettoWriter {
    definitions: FileDefinitions,
    flows: Flows,
    /// First location of each process.
    processes: FxHashMap<Place, u32>,
    places: Vec<Place>,
    timelines: Vec<Timeline>,
    notes: HashMap<Box<str>, InternedName<'static>>,
    /// Names and units.
    metrics: Vec<[String; 2]>,
    /// Counters by location and metric.
    counters: FxHashMap<(u32, u32), u32>,
    /// Those of the current event.
    annotations: Vec<Annotation>,
    summary: PerfettoSummary,
    buffer: Vec<u8>,
    file: NewFile,
}

impl PerfettoWriter {
    /// Begins a file at `path` for a trace that passed through a survey.
    ///
    /// # Errors
    /// When the file cannot be created, or something other than a file is there; when times are so
    /// far apart that Perfetto cannot represent them.
    pub fn create(path: &Path, survey: PerfettoSurvey) -> Result<Self, FileError> {
        let summary = PerfettoSummary {
            shift: survey.shift()?,
            ..PerfettoSummary::default()
        };
        let mut buffer = Vec::with_capacity(CHUNK);
        packets::begin(&mut buffer);
        Ok(Self {
            definitions: FileDefinitions::default(),
            flows: survey.flows.finish(),
            processes: FxHashMap::default(),
            places: vec![],
            timelines: vec![],
            notes: HashMap::new(),
            metrics: vec![],
            counters: FxHashMap::default(),
            annotations: vec![],
            summary,
            buffer,
            file: NewFile::create(path)?,
        })
    }

    /// Writes the next item, which must be the one that came next in the survey.
    ///
    /// # Errors
    /// When it cannot be written, or is not valid here.
    pub fn write(&mut self, item: &Item<'_>) -> Result<(), FileError> {
        self.definitions.take(item).map_err(FileError::Unwritable)?;
        let flow = self.flows.next_flow(item);
        match *item {
            Item::Location { place, name } => self.add_location(place, name),
            Item::Thread { rank, name } => self.add_location(self.places[rank as usize], name),
            Item::Region { name } => {
                packets::name(
                    &mut self.buffer,
                    InternedName::region(self.definitions.regions() - 1),
                    name,
                );
            }
            Item::Metric { name, unit } => {
                self.metrics.push([name, unit].map(str::to_owned));
            }
            // An exported trace has one clock.
            Item::Communicator { .. } | Item::Master { .. } | Item::Sample { .. } => {}
            Item::Event {
                location,
                time,
                event,
            } => {
                let time = self.shifted(time)?;
                match event {
                    Event::Metric { metric, value } => {
                        self.add_value((location, metric), time, value);
                    }
                    _ => self.add_event(location, time, event, flow),
                }
            }
        }
        if self.buffer.len() >= CHUNK {
            self.file.write(&mut self.buffer)
        } else {
            Ok(())
        }
    }

    /// Ends the file, and replaces an existing one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<PerfettoSummary, FileError> {
        for timeline in &mut self.timelines {
            timeline.finish(&mut self.buffer, &mut self.summary);
        }
        self.file.write(&mut self.buffer)?;
        self.file.finish()?;
        let (locations, events) = (self.definitions.locations().into(), self.definitions.events);
        Ok(PerfettoSummary {
            locations,
            events,
            unmatched: self.flows.unmatched(),
            ..self.summary
        })
    }

    fn add_location(&mut self, place: Place, name: &str) {
        let location = self.timelines.len() as u32;
        let first = *self.processes.entry(place).or_insert(location);
        // The name of a thread of an MPI rank begins with that of the rank.
        let of_rank = name.split_once(", ");
        let of_rank = of_rank.filter(|(rank, _)| rank.starts_with("rank "));
        let (process, thread) = of_rank.unwrap_or((name, name));
        if first == location {
            let process = format!("{process} (node {})", place.node);
            packets::process(&mut self.buffer, first, &process);
        }
        packets::thread(&mut self.buffer, location, first, [name, thread]);
        self.places.push(place);
        self.timelines.push(Timeline::new(location));
    }

    fn shifted(&self, time: Timestamp<Global>) -> Result<u64, FileError> {
        let other =
            || FileError::Unwritable("the trace has changed since it was first read".into());
        let time = (time + self.summary.shift).as_nanos();
        u64::try_from(time).map_err(|_| other())
    }

    /// Adds the value of a metric, and the counter of its location, if it is the first one.
    fn add_value(&mut self, (location, metric): (u32, u32), time: u64, value: Quantity) {
        let next = self.counters.len() as u32;
        let counter = *self.counters.entry((location, metric)).or_insert(next);
        if counter == next {
            let metric = &self.metrics[metric as usize];
            packets::counter(&mut self.buffer, counter, location, metric);
        }
        packets::value(&mut self.buffer, counter, time, value);
        self.summary.values += 1;
    }

    fn add_event(&mut self, location: u32, time: u64, event: Event<'_>, flow: Option<u64>) {
        let (shape, category) = shape_of(event);
        let name = match event {
            Event::Note(text) => note(&mut self.notes, &mut self.buffer, text),
            event => name_of(event),
        };
        annotate(event, &mut self.annotations);
        let event = TrackEvent {
            time,
            name: (name, category),
            annotations: &self.annotations,
            flow,
        };
        let timeline = &mut self.timelines[location as usize];
        timeline.add(&mut self.buffer, shape, &event, &mut self.summary);
    }
}

/// Returns what an event is on the timeline of its location, and its category.
fn shape_of(event: Event<'_>) -> (EventShape, Category) {
    use EventShape::{Begin, End, Instant};
    use TimelineSlice as Slice;
    match event {
        Event::Enter { region } => (Begin(Slice::Region(region)), Category::Region),
        Event::Leave { region } => (End(Slice::Region(region)), Category::Region),
        // Non-blocking operations overlap with others, so they cannot be slices of their
        // track.
        Event::CollectiveBegin {
            communicator,
            request: None,
        } => (Begin(Slice::Collective(communicator)), Category::Collective),
        Event::CollectiveEnd {
            communicator,
            request: None,
            ..
        } => (End(Slice::Collective(communicator)), Category::Collective),
        Event::CollectiveBegin { .. } | Event::CollectiveEnd { .. } => {
            (Instant, Category::Collective)
        }
        Event::Fork { team } => (Begin(Slice::Fork(team)), Category::Thread),
        Event::ThreadBegin { team } => (Begin(Slice::Thread(team)), Category::Thread),
        Event::ThreadEnd { team } => (End(Slice::Thread(team)), Category::Thread),
        Event::Join { team } => (End(Slice::Fork(team)), Category::Thread),
        Event::Signal { .. } | Event::Wait { .. } => (Instant, Category::Thread),
        Event::Access { .. } | Event::AccessComplete { .. } => (Instant, Category::Access),
        Event::Note(_) => (Instant, Category::Note),
        _ => (Instant, Category::Message),
    }
}

/// Returns the name of an event other than a note.
fn name_of(event: Event<'_>) -> InternedName<'static> {
    InternedName::Fixed(match event {
        Event::Enter { region } | Event::Leave { region } => return InternedName::region(region),
        Event::CollectiveEnd { kind, .. } => return InternedName::kind(kind),
        Event::CollectiveBegin { request: None, .. } => FixedName::Collective,
        Event::CollectiveBegin { .. } => FixedName::CollectiveStarted,
        Event::Send { .. } => FixedName::Send,
        Event::CompleteSend { .. } => FixedName::SendComplete,
        Event::Receive { .. } => FixedName::Receive,
        Event::PostReceive { .. } => FixedName::ReceivePosted,
        Event::CancelReceive { .. } => FixedName::ReceiveCancelled,
        Event::Access { kind, .. } => match kind {
            AccessKind::Put => FixedName::Put,
            AccessKind::Get => FixedName::Get,
            AccessKind::Atomic => FixedName::Atomic,
        },
        Event::AccessComplete { .. } => FixedName::AccessComplete,
        Event::Signal { .. } => FixedName::Signal,
        Event::Wait { .. } => FixedName::Wait,
        Event::Fork { .. } | Event::Join { .. } => FixedName::Fork,
        Event::ThreadBegin { .. } | Event::ThreadEnd { .. } => FixedName::Thread,
        // The others are refused, and values of counters.
        Event::Note(_) | Event::Opaque(_) | Event::Metric { .. } => return InternedName::Text(""),
    })
}

/// Lists what a viewer shows of an event besides its name.
fn annotate(event: Event<'_>, all: &mut Vec<Annotation>) {
    all.clear();
    match event {
        // Their other ends have them.
        Event::CollectiveBegin { request: None, .. }
        | Event::ThreadEnd { .. }
        | Event::Join { .. } => return,
        Event::Fork { team } | Event::ThreadBegin { team } => {
            all.push(Annotation::Team(team));
            return;
        }
        Event::Send { to, .. } | Event::Access { target: to, .. } => {
            all.push(Annotation::To(to));
        }
        Event::Receive { from, .. } => all.push(Annotation::From(from)),
        Event::CollectiveEnd { kind, .. } => all.push(Annotation::Kind(kind)),
        _ => {}
    }
    all.extend(event.communicator().map(Annotation::Communicator));
    all.extend(event.tag().map(Annotation::Tag));
    if let Event::CollectiveEnd {
        kind,
        root,
        sent,
        received,
        ..
    } = event
    {
        all.push(Annotation::Data(data_index(sent, received)));
        all.extend(kind.has_root().then_some(Annotation::Root(root)));
    }
    all.extend(event.bytes().map(Annotation::Bytes));
}

/// Returns the name of a note, which is interned if possible.
fn note<'a>(
    notes: &mut HashMap<Box<str>, InternedName<'static>>,
    to: &mut Vec<u8>,
    text: &'a str,
) -> InternedName<'a> {
    if let Some(known) = notes.get(text) {
        return *known;
    }
    if notes.len() >= MOST_NOTES || text.len() > LONGEST_NOTE {
        return InternedName::Text(text);
    }
    let name = InternedName::note(notes.len());
    packets::name(to, name, text);
    notes.insert(text.into(), name);
    name
}
