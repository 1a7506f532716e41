//! Writer of Perfetto files.

use std::collections::HashMap;
use std::path::Path;

use crate::{CollectiveKind, Place};
use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::PerfettoSurvey;
use super::flows::Flows;
use super::packets::{self, Annotation, Category, Counter, InternedName, Word};
use super::summary::PerfettoSummary;
use super::timeline::{Timeline, TimelineSlice};
use crate::formats::definitions::FileDefinitions;
use crate::formats::item::kind_number;
use crate::formats::{Item, Quantity, What};
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
    pub fn create(path: &Path, survey: &PerfettoSurvey) -> Result<Self, FileError> {
        let summary = PerfettoSummary {
            shift: survey.shift()?,
            ..PerfettoSummary::default()
        };
        let mut buffer = Vec::with_capacity(CHUNK);
        packets::begin(&mut buffer);
        Ok(Self {
            definitions: FileDefinitions::default(),
            flows: survey.flows(),
            processes: FxHashMap::default(),
            places: vec![],
            timelines: vec![],
            notes: HashMap::new(),
            metrics: vec![],
            counters: FxHashMap::default(),
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
        let flow = self.flows.take(item);
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
            Item::Value {
                location,
                time,
                metric,
                value,
            } => {
                let time = self.shifted(time)?;
                self.add_value((location, metric), time, value);
            }
            // An exported trace has one clock.
            Item::Communicator { .. } | Item::Master { .. } | Item::Sample { .. } => {}
            Item::Event {
                location,
                time,
                what,
            } => {
                let time = self.shifted(time)?;
                self.add_event(location, time, what, flow);
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
    fn add_value(&mut self, of: (u32, u32), time: u64, value: Quantity) {
        let (location, metric) = of;
        let next = self.counters.len() as u32;
        let number = *self.counters.entry(of).or_insert(next);
        let [name, unit] = &self.metrics[metric as usize];
        let counter = Counter {
            number,
            location,
            name,
            unit,
        };
        if number == next {
            packets::counter(&mut self.buffer, counter);
        }
        packets::value(&mut self.buffer, counter, time, value);
        self.summary.values += 1;
    }

    fn add_event(&mut self, location: u32, time: u64, what: What<'_>, flow: Option<u64>) {
        let (timeline, to, summary) = (
            &mut self.timelines[location as usize],
            &mut self.buffer,
            &mut self.summary,
        );
        let mut message = |name, peer, communicator, tag| {
            let annotations = [
                peer,
                Annotation::Communicator(communicator),
                Annotation::Tag(tag),
                Annotation::Bytes(what.bytes().unwrap_or(0)),
            ];
            let known = annotations.len() - usize::from(what.bytes().is_none());
            let name = (name, Category::Message);
            timeline.instant(to, time, name, &annotations[..known], flow);
        };
        match what {
            What::Send {
                to,
                communicator,
                tag,
                ..
            } => {
                message(
                    InternedName::SEND,
                    Annotation::To(Word::location(to)),
                    communicator,
                    tag,
                );
            }
            What::Receive {
                from,
                communicator,
                tag,
                ..
            }
            | What::CompleteReceive {
                from,
                communicator,
                tag,
                ..
            } => {
                message(
                    InternedName::RECEIVE,
                    Annotation::From(Word::location(from)),
                    communicator,
                    tag,
                );
            }
            What::Enter { region } => {
                timeline.begin(to, time, TimelineSlice::Region(region), &[], summary);
            }
            What::Leave { region } => {
                timeline.end(to, time, TimelineSlice::Region(region), None, &[], summary);
            }
            What::Note(text) => {
                let name = note(&mut self.notes, to, text);
                timeline.instant(to, time, (name, Category::Note), &[], None);
            }
            What::Collective { communicator } => {
                timeline.begin(
                    to,
                    time,
                    TimelineSlice::Collective(communicator),
                    &[],
                    summary,
                );
            }
            What::CollectiveEnd {
                communicator,
                kind,
                root,
                sent,
                received,
                bytes,
            } => {
                let number = kind_number(kind).unwrap_or(0);
                let annotations = operation(communicator, kind, root, [sent, received], bytes);
                timeline.end(
                    to,
                    time,
                    TimelineSlice::Collective(communicator),
                    Some(InternedName::kind(number)),
                    annotations.as_slice(),
                    summary,
                );
            }
            // Non-blocking operations overlap with others, so they cannot be slices of their track.
            What::CollectiveStart { communicator, .. } => {
                let name = (InternedName::COLLECTIVE_START, Category::Collective);
                let annotations = [Annotation::Communicator(communicator)];
                timeline.instant(to, time, name, &annotations, None);
            }
            What::CollectiveComplete {
                communicator,
                kind,
                root,
                sent,
                received,
                bytes,
                ..
            } => {
                let name = InternedName::kind(kind_number(kind).unwrap_or(0));
                let annotations = operation(communicator, kind, root, [sent, received], bytes);
                let name = (name, Category::Collective);
                timeline.instant(to, time, name, annotations.as_slice(), None);
            }
            What::Access {
                kind,
                target,
                communicator,
                bytes,
                ..
            } => {
                let name = (InternedName::access(kind), Category::Access);
                let mut annotations = vec![
                    Annotation::To(Word::location(target)),
                    Annotation::Communicator(communicator),
                ];
                annotations.extend(bytes.map(Annotation::Bytes));
                timeline.instant(to, time, name, &annotations, None);
            }
            What::AccessComplete { communicator, .. } => {
                let name = (InternedName::ACCESS_COMPLETE, Category::Access);
                let annotations = [Annotation::Communicator(communicator)];
                timeline.instant(to, time, name, &annotations, None);
            }
            What::CompleteSend { .. } | What::PostReceive { .. } | What::CancelReceive { .. } => {
                let name = match what {
                    What::CompleteSend { .. } => InternedName::SEND_COMPLETE,
                    What::PostReceive { .. } => InternedName::POST,
                    _ => InternedName::CANCEL,
                };
                timeline.instant(to, time, (name, Category::Message), &[], None);
            }
            What::Signal { .. } | What::Wait { .. } => {
                let name = match what {
                    What::Signal { .. } => InternedName::SIGNAL,
                    _ => InternedName::WAIT,
                };
                timeline.instant(to, time, (name, Category::Thread), &[], flow);
            }
            What::Fork { team } => timeline.begin(
                to,
                time,
                TimelineSlice::Fork(team),
                &[Annotation::Team(team)],
                summary,
            ),
            What::ThreadBegin { team } => {
                timeline.begin(
                    to,
                    time,
                    TimelineSlice::Thread(team),
                    &[Annotation::Team(team)],
                    summary,
                );
            }
            What::ThreadEnd { team } => {
                timeline.end(to, time, TimelineSlice::Thread(team), None, &[], summary);
            }
            What::Join { team } => {
                timeline.end(to, time, TimelineSlice::Fork(team), None, &[], summary);
            }
        }
    }
}

/// Annotations of the end of a collective operation; `FileDefinitions::take` has checked its kind.
fn operation(
    communicator: u32,
    kind: CollectiveKind,
    root: u32,
    [sent, received]: [bool; 2],
    bytes: Option<u64>,
) -> Vec<Annotation> {
    let mut annotations = vec![
        Annotation::Kind(Word::kind(kind_number(kind).unwrap_or(0))),
        Annotation::Communicator(communicator),
        Annotation::Data(Word::data(sent, received)),
    ];
    annotations.extend(kind.has_root().then_some(Annotation::Root(root)));
    annotations.extend(bytes.map(Annotation::Bytes));
    annotations
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
