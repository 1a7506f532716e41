//! Import of Chrome's JSON, the Trace Event Format, as Kineto (PyTorch), Chrome and others write it.
//!
//! | in the file | item |
//! |---|---|
//! | a process and a thread of events, such as a stream of an accelerator | a location; each process has a clock of its own |
//! | complete events (`X`), begins and ends (`B`, `E`) | enter and leave of a region |
//! | instants (`i`, `I`, `R`) | notes |
//! | counters (`C`) | values of metrics, at the first location of the process |
//! | flows (`s`, `f`), such as from the launch of a kernel to the kernel | between processes a message; inside a process a signal and a wait |
//! | names of processes and threads (`M`) | names of the locations |
//!
//! Everything else is counted as left out: events of other phases, intermediate steps of flows, flows with one
//! end only, and ends of intervals that did not begin. All events are in memory at a time.
//!
//! Times in microseconds become nanoseconds, without loss of digits. Locations are in the order of their first
//! events, those of one process together.
//!
//! ```
//! use downbeat_trace::formats::chrome::ChromeTrace;
//!
//! let text = br#"{"traceEvents": [
//!     {"ph": "X", "pid": 7, "tid": 1, "ts": 10.5, "dur": 4, "name": "cudaLaunchKernel"},
//!     {"ph": "s", "pid": 7, "tid": 1, "ts": 10.5, "id": 3, "cat": "ac2g", "name": "ac2g"},
//!     {"ph": "X", "pid": 0, "tid": 20, "ts": 16, "dur": 9, "name": "gemm"},
//!     {"ph": "f", "pid": 0, "tid": 20, "ts": 16, "id": 3, "cat": "ac2g", "name": "ac2g", "bp": "e"}
//! ]}"#;
//! let trace = ChromeTrace::read(&text[..])?;
//! let mut items = vec![];
//! trace.for_each_item(|item| {
//!     items.push(format!("{item:?}"));
//!     Ok::<_, std::io::Error>(())
//! })?;
//! assert!(items.iter().any(|item| item.contains("Send")));
//! # Ok::<_, Box<dyn core::error::Error>>(())
//! ```

mod events;
mod parse;
mod shift;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;

use downbeat_clock_core::Timestamp;
use downbeat_files::FileError;

use self::events::{Interval, ordered};
use self::parse::{Phase, RawEvent};
use super::Item;
use super::definitions::valid_name;
use crate::{Event, Place};

pub use shift::{ShiftError, ShiftedTrace, shift_times};

/// Trace in Chrome's JSON, in memory.
#[derive(Debug, Default)]
pub struct ChromeTrace {
    /// Names of processes, by their ids.
    processes: Table,
    process_names: HashMap<String, String>,
    /// Threads by the ids of the process and of the thread.
    locations: Table<(usize, String)>,
    thread_names: HashMap<(String, String), String>,
    regions: Table,
    /// Names of instants.
    notes: Table,
    metrics: Table,
    events: Vec<Events>,
    /// Processes, times and values of metrics.
    values: Vec<(usize, i64, Event<'static>)>,
    flows: HashMap<String, [Vec<FlowEnd>; 2]>,
    left_out: u64,
    is_cut_off: bool,
}

/// Numbers of keys, in the order of their first use.
#[derive(Debug, Default)]
struct Table<K = String> {
    keys: Vec<K>,
    numbers: HashMap<K, u32>,
}

impl<K: Clone + Eq + core::hash::Hash> Table<K> {
    fn number(&mut self, key: K) -> u32 {
        let next = self.keys.len() as u32;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            next
        })
    }
}

/// Events of a location.
#[derive(Debug, Default)]
struct Events {
    intervals: Vec<Interval>,
    /// Begins and ends of intervals in the order of the file: times, and regions of begins.
    edges: Vec<(i64, Option<u32>)>,
    /// Times of instants, and the numbers of their names.
    notes: Vec<(i64, u32)>,
    /// Ends of flows; the other end of a message is its process.
    flows: Vec<(i64, Event<'static>)>,
}

/// End of a flow: its time and its location.
type FlowEnd = (i64, usize);

impl ChromeTrace {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is not a trace in this format.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = fs::metadata(path).map_err(FileError::io(path))?;
        if !file.is_file() {
            return Err(FileError::content(path, "it is not a file"));
        }
        let file = fs::File::open(path).map_err(FileError::io(path))?;
        Self::read(BufReader::new(file)).map_err(|why| match why.io_error_kind() {
            Some(kind) => FileError::io(path)(kind.into()),
            None => FileError::content(path, why.to_string()),
        })
    }

    /// Reads from any source.
    ///
    /// # Errors
    /// If the source fails, or is not a trace in this format.
    pub fn read(from: impl Read) -> Result<Self, serde_json::Error> {
        let mut trace = Self::default();
        let is_cut_off = parse::each_event(from, |event| trace.take(event))?;
        trace.is_cut_off = is_cut_off;
        trace.end_edges();
        trace.end_flows();
        // A process of which there are only counters has no location.
        let known: HashSet<usize> = trace.locations.keys.iter().map(|(of, _)| *of).collect();
        let all = trace.values.len();
        trace.values.retain(|(process, ..)| known.contains(process));
        trace.left_out += (all - trace.values.len()) as u64;
        Ok(trace)
    }

    /// Returns true if the file is an array without an end, as a writer that was killed
    /// leaves it.
    pub const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Returns the number of events that were left out.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn take(&mut self, event: &RawEvent) -> Result<(), String> {
        let Some(phase) = event.phase() else {
            self.left_out += 1;
            return Ok(());
        };
        let (pid, tid) = (event.pid(), event.tid());
        if phase == Phase::Metadata {
            match (event.name(), event.named()) {
                ("process_name", Some(name)) => drop(self.process_names.insert(pid, name)),
                ("thread_name", Some(name)) => drop(self.thread_names.insert((pid, tid), name)),
                _ => {}
            }
            return Ok(());
        }
        let time = event.time()?;
        let process = self.processes.number(pid) as usize;
        if phase == Phase::Counter {
            for (key, value) in event.values() {
                let name = match key.as_str() {
                    "" | "value" => event.name().to_owned(),
                    key => format!("{} {key}", event.name()),
                };
                let metric = self.metrics.number(name);
                let value = Event::Metric { metric, value };
                self.values.push((process, time, value));
            }
            return Ok(());
        }
        let location = self.locations.number((process, tid)) as usize;
        if self.events.len() <= location {
            self.events.resize_with(location + 1, Events::default);
        }
        let of = &mut self.events[location];
        match phase {
            Phase::Complete => of.intervals.push(Interval {
                begin: time,
                end: Some(time.saturating_add(event.duration()?)),
                region: self.regions.number(event.name().to_owned()),
            }),
            Phase::Begin => {
                let region = self.regions.number(event.name().to_owned());
                of.edges.push((time, Some(region)));
            }
            Phase::End => of.edges.push((time, None)),
            Phase::Instant => {
                let name = self.notes.number(event.name().to_owned());
                of.notes.push((time, name));
            }
            Phase::FlowStart | Phase::FlowEnd => {
                let ends = self.flows.entry(event.flow()).or_default();
                ends[usize::from(phase == Phase::FlowEnd)].push((time, location));
            }
            Phase::Metadata | Phase::Counter => {}
        }
        Ok(())
    }

    /// Makes intervals of begins and ends.
    fn end_edges(&mut self) {
        for of in &mut self.events {
            of.edges.sort_by_key(|(time, _)| *time);
            let mut open: Vec<usize> = vec![];
            for (time, begun) in of.edges.drain(..) {
                match (begun, open.pop()) {
                    (None, None) => self.left_out += 1,
                    (None, Some(interval)) => of.intervals[interval].end = Some(time),
                    (Some(region), last) => {
                        open.extend(last);
                        open.push(of.intervals.len());
                        of.intervals.push(Interval {
                            begin: time,
                            end: None,
                            region,
                        });
                    }
                }
            }
        }
    }

    /// Makes messages and signals of flows: the first start of an id belongs to its first end, and so on.
    fn end_flows(&mut self) {
        let mut flows: Vec<_> = core::mem::take(&mut self.flows).into_iter().collect();
        // Independent of the order of the table.
        flows.sort();
        let mut number = 0_u32;
        for (_, [mut starts, mut ends]) in flows {
            starts.sort_unstable();
            ends.sort_unstable();
            self.left_out += starts.len().abs_diff(ends.len()) as u64;
            for (start, end) in starts.into_iter().zip(ends) {
                let [from, to] = [start, end].map(|(_, location)| self.locations.keys[location].0);
                for (is_end, (time, location)) in [(false, start), (true, end)] {
                    // Each flow between processes is a message of its own.
                    let (communicator, tag) = (0, number as i32);
                    let (request, bytes) = (None, None);
                    let id = number.into();
                    let event = match (from == to, is_end) {
                        (true, false) => Event::Signal { id },
                        (true, true) => Event::Wait { id },
                        (false, false) => Event::Send {
                            to: to as u32,
                            communicator,
                            tag,
                            request,
                            bytes,
                        },
                        (false, true) => Event::Receive {
                            from: from as u32,
                            communicator,
                            tag,
                            request,
                            bytes,
                        },
                    };
                    self.events[location].flows.push((time, event));
                }
                number += 1;
            }
        }
    }

    /// Passes all items to `take`: the definitions, and then the events of one location after the other.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn for_each_item<E>(
        &self,
        mut take: impl FnMut(&Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Those of one process together, its first one as that to which messages are addressed.
        let mut order: Vec<usize> = (0..self.locations.keys.len()).collect();
        order.sort_by_key(|location| self.locations.keys[*location].0);
        let first_of = self.define(&order, &mut take)?;
        let mut values: Vec<Vec<(i64, Event<'_>)>> = vec![vec![]; order.len()];
        for (process, time, value) in &self.values {
            if let Some(location) = first_of[*process] {
                values[location as usize].push((*time, *value));
            }
        }
        for ((location, index), values) in (0..).zip(order).zip(values) {
            let of = &self.events[index];
            let name = |number: &u32| valid_name(&self.notes.keys[*number as usize], "instant", 0);
            let notes: Vec<_> = of.notes.iter().map(|(_, number)| name(number)).collect();
            let notes = of.notes.iter().zip(&notes);
            let notes = notes.map(|((time, _), name)| (*time, Event::Note(name)));
            let points = notes.chain(of.flows.iter().copied()).chain(values);
            for (time, mut event) in ordered(&of.intervals, points) {
                if let Event::Send { to: peer, .. } | Event::Receive { from: peer, .. } = &mut event
                {
                    *peer = first_of[*peer as usize].unwrap_or_default();
                }
                take(&Item::Event {
                    location,
                    time: Timestamp::from_nanos(time),
                    event,
                })?;
            }
        }
        Ok(())
    }

    /// Passes the definitions to `take`, those of locations in this order. Returns the first
    /// location of each process.
    fn define<E>(
        &self,
        order: &[usize],
        take: &mut impl FnMut(&Item<'_>) -> Result<(), E>,
    ) -> Result<Vec<Option<u32>>, E> {
        let mut first_of: Vec<Option<u32>> = vec![None; self.processes.keys.len()];
        for (number, location) in (0..).zip(order) {
            let (process, tid) = &self.locations.keys[*location];
            let name = self.name_of(*process, tid);
            let name = valid_name(&name, "location", number.into());
            take(&match first_of[*process] {
                Some(rank) => Item::Thread { rank, name: &name },
                None => {
                    first_of[*process] = Some(number);
                    let place = Place {
                        node: 0,
                        process: *process as u32,
                    };
                    Item::Location { place, name: &name }
                }
            })?;
        }
        let members: Vec<u32> = first_of.iter().copied().flatten().collect();
        take(&Item::Communicator { members: &members })?;
        for (number, region) in (0..).zip(&self.regions.keys) {
            let name = &valid_name(region, "region", number);
            take(&Item::Region { name })?;
        }
        for (number, metric) in (0..).zip(&self.metrics.keys) {
            let name = &valid_name(metric, "metric", number);
            take(&Item::Metric { name, unit: "" })?;
        }
        Ok(first_of)
    }

    /// Returns the name of a location: those of its process and its thread, or their ids.
    fn name_of(&self, process: usize, tid: &str) -> String {
        let pid = &self.processes.keys[process];
        let known = self.process_names.get(pid);
        let process = known.map_or(format!("process {pid}"), Clone::clone);
        let known = self.thread_names.get(&(pid.clone(), tid.to_owned()));
        let thread = known.map_or(format!("thread {tid}"), Clone::clone);
        format!("{process}, {thread}")
    }
}
