//! Events of new archives: their records, and statements beside these.

use downbeat_otf2::{
    self as otf2, CommRef, EventWriter, List, MetricRef, MetricValue, Paradigm, RegionRef,
    RmaWinRef, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::exact::{EVENT, EVENT_ATTRIBUTE, NO_ROOT, NOTE};
use super::super::operations::{Otf2Operation, operation_of};
use super::super::{Otf2Error, windows};
use super::contents::{NewDefinitions, StringTable};
use crate::formats::Item;
use crate::formats::text::write_event as write_line;
use crate::{CollectiveKind, Event, Quantity};

impl NewDefinitions<'_> {
    /// Returns the rank of a process in a communicator, given by the location that represents it.
    fn rank(&self, communicator: u32, location: u32) -> Option<u32> {
        let members = self.all.communicators.get(communicator as usize)?;
        // All ranks are mostly in order.
        if members.get(location as usize) == Some(&location) {
            return Some(location);
        }
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
    pub(super) fn unpaired(&self, location: u32) -> Result<FxHashSet<u64>, Otf2Error> {
        let (mut open, mut unpaired) = (vec![], FxHashSet::default());
        self.items
            .each_of(location, |(this, _), event| -> Result<(), Otf2Error> {
                match event {
                    Event::CollectiveBegin { communicator, .. } => {
                        open.push((self.pairing(event), communicator, this));
                    }
                    Event::CollectiveEnd { communicator, .. } => {
                        let pairing = self.pairing(event);
                        let last = open.iter().rposition(|(of, ..)| *of == pairing);
                        match last.filter(|last| open[*last].1 == communicator) {
                            Some(last) => {
                                let (.., begin) = open.remove(last);
                                // A reader takes neither of them from OTF2.
                                let record = self.record_of(event);
                                if record.is_none_or(|record| self.lacks(event, &record)) {
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
    pub(super) fn signal_numbers(&self) -> Result<Vec<FxHashMap<u64, u32>>, Otf2Error> {
        let mut numbers = vec![FxHashMap::default(); self.all.locations.len()];
        if !self.items.has_signals() {
            return Ok(numbers);
        }
        let mut positions = vec![0; self.all.locations.len()];
        let mut next = vec![0_u32; self.all.processes.len()];
        // Ends without a partner by process and id, as `Signals` has them.
        let mut open: FxHashMap<(usize, u64), (u32, bool, u32)> = FxHashMap::default();
        self.items.for_each_item(|item| -> Result<(), Otf2Error> {
            let Item::Event {
                location, event, ..
            } = *item
            else {
                return Ok(());
            };
            let position = positions[location as usize];
            positions[location as usize] += 1;
            let (id, signals) = match event {
                Event::Signal { id } => (id, true),
                Event::Wait { id } => (id, false),
                _ => return Ok(()),
            };
            let process = self.all.locations[location as usize].process;
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
    fn pairing(&self, event: Event<'_>) -> (Option<u64>, bool) {
        let window = event.communicator().and_then(|of| self.window(of));
        let request = event.id();
        (request, request.is_none() && window.is_some())
    }

    /// Returns true if a record does not tell all of this event.
    fn lacks(&self, event: Event<'_>, record: &otf2::Event<'_>) -> bool {
        match event {
            Event::CollectiveEnd {
                communicator,
                kind,
                root,
                request,
                bytes,
                ..
            } => {
                let is_fence = kind == CollectiveKind::Barrier
                    && request.is_none()
                    && self.window(communicator).is_some();
                let read = Otf2Operation::of(record);
                is_fence
                    || !kind.has_root() && root != 0
                    || read.is_none_or(|read| read.bytes(Some(self.exact), kind) != bytes)
            }
            // The team is that of the thread that begins next.
            Event::Fork { .. } | Event::Join { .. } => true,
            _ => {
                event.has_bytes()
                    && event.bytes() != self.exact.bytes_of(event.bytes().unwrap_or(0))
            }
        }
    }

    /// Returns the record of an event; `None` if OTF2 has none.
    fn record_of(&self, event: Event<'_>) -> Option<otf2::Event<'static>> {
        let length = event.bytes().unwrap_or(0);
        Some(match event {
            Event::Enter { region } => otf2::Event::Enter(otf2::event::Enter {
                region: RegionRef(region),
            }),
            Event::Leave { region } => otf2::Event::Leave(otf2::event::Leave {
                region: RegionRef(region),
            }),
            // Signals have numbers beside their ids, notes texts, and metrics values.
            Event::Note(_)
            | Event::Opaque(_)
            | Event::Metric { .. }
            | Event::Signal { .. }
            | Event::Wait { .. } => return None,
            Event::Send {
                to,
                communicator,
                tag,
                request,
                ..
            } => {
                let receiver = self.rank(communicator, to)?;
                let (communicator, tag) = (CommRef(communicator), tag as u32);
                match request {
                    Some(request) => otf2::Event::MpiIsend(otf2::event::MpiIsend {
                        receiver,
                        communicator,
                        tag,
                        length,
                        request,
                    }),
                    None => otf2::Event::MpiSend(otf2::event::MpiSend {
                        receiver,
                        communicator,
                        tag,
                        length,
                    }),
                }
            }
            Event::CompleteSend { request } => {
                otf2::Event::MpiIsendComplete(otf2::event::MpiIsendComplete { request })
            }
            Event::Receive {
                from,
                communicator,
                tag,
                request,
                ..
            } => {
                let sender = self.rank(communicator, from)?;
                let (communicator, tag) = (CommRef(communicator), tag as u32);
                match request {
                    Some(request) => otf2::Event::MpiIrecv(otf2::event::MpiIrecv {
                        sender,
                        communicator,
                        tag,
                        length,
                        request,
                    }),
                    None => otf2::Event::MpiRecv(otf2::event::MpiRecv {
                        sender,
                        communicator,
                        tag,
                        length,
                    }),
                }
            }
            Event::PostReceive { request } => {
                otf2::Event::MpiIrecvRequest(otf2::event::MpiIrecvRequest { request })
            }
            Event::CancelReceive { request } => {
                otf2::Event::MpiRequestCancelled(otf2::event::MpiRequestCancelled { request })
            }
            Event::Access {
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
            Event::AccessComplete {
                communicator,
                request: matching_id,
            } => otf2::Event::RmaOpCompleteNonBlocking(otf2::event::RmaOpCompleteNonBlocking {
                win: RmaWinRef(self.window(communicator)?),
                matching_id,
            }),
            Event::CollectiveBegin {
                request: Some(request),
                ..
            } => otf2::Event::NonBlockingCollectiveRequest(
                otf2::event::NonBlockingCollectiveRequest { request },
            ),
            Event::CollectiveBegin { communicator, .. } => match self.window(communicator) {
                Some(_) => otf2::Event::RmaCollectiveBegin(otf2::event::RmaCollectiveBegin {}),
                None => otf2::Event::MpiCollectiveBegin(otf2::event::MpiCollectiveBegin {}),
            },
            Event::CollectiveEnd { .. } => self.record_of_operation(event)?,
            Event::Fork { team } => otf2::Event::ThreadFork(otf2::event::ThreadFork {
                model: Paradigm::OPENMP,
                requested_threads: self
                    .all
                    .communicators
                    .get(team as usize)
                    .map_or(0, Vec::len) as u32,
            }),
            Event::ThreadBegin { team } => {
                otf2::Event::ThreadTeamBegin(otf2::event::ThreadTeamBegin {
                    team: CommRef(team),
                })
            }
            Event::ThreadEnd { team } => otf2::Event::ThreadTeamEnd(otf2::event::ThreadTeamEnd {
                team: CommRef(team),
            }),
            Event::Join { .. } => otf2::Event::ThreadJoin(otf2::event::ThreadJoin {
                model: Paradigm::OPENMP,
            }),
        })
    }

    /// Returns the record of the end of a collective operation.
    fn record_of_operation(&self, event: Event<'_>) -> Option<otf2::Event<'static>> {
        let Event::CollectiveEnd {
            communicator,
            kind,
            root,
            sent,
            received,
            request,
            bytes,
        } = event
        else {
            return None;
        };
        let root = if kind.has_root() { root } else { NO_ROOT };
        let size_sent = if sent { bytes.unwrap_or(0).max(1) } else { 0 };
        let size_received = received.into();
        let operation = operation_of(kind);
        Some(match (request, self.window(communicator)) {
            (Some(request), _) => otf2::Event::NonBlockingCollectiveComplete(
                otf2::event::NonBlockingCollectiveComplete {
                    operation,
                    communicator: CommRef(communicator),
                    root,
                    size_sent,
                    size_received,
                    request,
                },
            ),
            (None, Some(window)) => {
                windows::collective_end(window, kind, root, [size_sent, size_received])
            }
            (None, None) => otf2::Event::MpiCollectiveEnd(otf2::event::MpiCollectiveEnd {
                operation,
                communicator: CommRef(communicator),
                root,
                size_sent,
                size_received,
            }),
        })
    }
}

/// Writer of the events of a location.
pub(super) struct LocationWriter<'a> {
    pub(super) definitions: &'a NewDefinitions<'a>,
    /// Positions of events whose operations readers would not find.
    pub(super) unpaired: FxHashSet<u64>,
    /// Numbers of signals and waits by their positions.
    pub(super) signals: FxHashMap<u64, u32>,
    pub(super) texts: &'a mut StringTable,
    pub(super) events: EventWriter,
}

impl LocationWriter<'_> {
    /// Writes the events of a location.
    pub(super) fn write(&mut self, location: u32) -> Result<(), Otf2Error> {
        let NewDefinitions { items, exact, .. } = self.definitions;
        let shift = exact.shift;
        // Fork before the current event, and teams that the location is in without a
        // statement.
        let (mut forked, mut within) = (None, vec![]);
        items.each_of(location, |(this, time), event| -> Result<(), Otf2Error> {
            // The shift was checked.
            let time = time.saturating_add(shift) as u64;
            // In OTF2, the thread that forks a team is in it.
            if let Some((time, team)) = forked.take().filter(|(_, team)| !is_begin(event, *team)) {
                within.push(team);
                let team = CommRef(team);
                self.write_stated(
                    time,
                    &otf2::Event::ThreadTeamBegin(otf2::event::ThreadTeamBegin { team }),
                    "",
                )?;
            }
            match event {
                Event::Fork { team } => forked = Some((time, team)),
                Event::Join { team } if within.last() == Some(&team) => {
                    within.pop();
                    let team = CommRef(team);
                    self.write_stated(
                        time,
                        &otf2::Event::ThreadTeamEnd(otf2::event::ThreadTeamEnd { team }),
                        "",
                    )?;
                }
                _ => {}
            }
            self.write_event(time, event, this)
        })
    }

    fn write_event(&mut self, time: u64, event: Event<'_>, position: u64) -> Result<(), Otf2Error> {
        let line = || {
            let mut line = vec![];
            write_line(&mut line, event);
            String::from_utf8_lossy(&line).into_owned()
        };
        let record = match event {
            Event::Note(text) => {
                let string = self.texts.reference(text);
                let parameter = NOTE;
                let record = otf2::Event::ParameterString(otf2::event::ParameterString {
                    parameter,
                    string,
                });
                return Ok(self.events.write(time, &record)?);
            }
            Event::Metric { metric, value } => {
                let values = [match value {
                    Quantity::Whole(value) => MetricValue::I64(value),
                    Quantity::Real(value) => MetricValue::F64(value),
                }];
                let metric = MetricRef(metric);
                let values = List::from(&values[..]);
                let record = otf2::Event::Metric(otf2::event::Metric { metric, values });
                return Ok(self.events.write(time, &record)?);
            }
            Event::Signal { .. } | Event::Wait { .. } => {
                let number = self.signals.get(&position);
                number.and_then(|number| signal_event(event, *number))
            }
            _ => self.definitions.record_of(event),
        };
        match record {
            None => {
                let (parameter, string) = (EVENT, self.texts.reference(&line()));
                let record = otf2::Event::ParameterString(otf2::event::ParameterString {
                    parameter,
                    string,
                });
                Ok(self.events.write(time, &record)?)
            }
            Some(record)
                if self.unpaired.contains(&position) || self.definitions.lacks(event, &record) =>
            {
                self.write_stated(time, &record, &line())
            }
            Some(record) => Ok(self.events.write(time, &record)?),
        }
    }

    /// Writes an event with an attribute that states what it is in the trace.
    fn write_stated(
        &mut self,
        time: u64,
        event: &otf2::Event<'_>,
        line: &str,
    ) -> Result<(), Otf2Error> {
        let stated = [(EVENT_ATTRIBUTE, Value::String(self.texts.reference(line)))];
        Ok(self
            .events
            .write_with(time, event, &List::from(&stated[..]))?)
    }
}

/// Returns the event of a signal or wait whose number no other pair of the process has;
/// `None` if the id is too large for a lock.
fn signal_event(event: Event<'_>, number: u32) -> Option<otf2::Event<'static>> {
    let model = Paradigm::USER;
    Some(match event {
        Event::Signal { id } => otf2::Event::ThreadReleaseLock(otf2::event::ThreadReleaseLock {
            model,
            lock: id.try_into().ok()?,
            acquisition_order: number,
        }),
        // The acquisition after the one that was released.
        Event::Wait { id } => otf2::Event::ThreadAcquireLock(otf2::event::ThreadAcquireLock {
            model,
            lock: id.try_into().ok()?,
            acquisition_order: number.checked_add(1)?,
        }),
        _ => return None,
    })
}

/// Returns true if the event is the beginning of a thread in this team.
fn is_begin(event: Event<'_>, team: u32) -> bool {
    event == Event::ThreadBegin { team }
}
