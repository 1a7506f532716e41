//! Conversion of the events of one location to actions of a trace.

use std::collections::VecDeque;
use std::path::Path;

use crate::formats::What;
use crate::formats::text::parse_event;
use crate::{Action, CollectiveKind, CommunicatorId, LocationId};
use downbeat_clock_core::{Global, Timestamp};
use downbeat_otf2::{CollectiveOp, MetricValue};
use rustc_hash::FxHashMap;

use super::Otf2Error;
use super::definitions::{Otf2Definitions, Otf2Region};
use super::events::{Otf2Event, Otf2Operation, Otf2Signal};
use super::exact::ExactTrace;
use super::sink::{EventSink, ReadError};
use super::teams::Otf2Teams;
use super::unexamined::{Relation, Unexamined};

/// Kind of an event that is held back until a later event tells its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Collective,
    RmaCollective,
    /// Non-blocking collective operation, with its request.
    Request(u64),
    /// `MPI_Init` or `MPI_Finalize`, inside of which a collective operation may take precedence.
    Start(CommunicatorId),
    Fork,
}

/// Actions of events that begin operations of at least [`MOST_HELD`] events, by the
/// indices of the events in their file.
pub(super) type LongOperations = FxHashMap<u64, Action>;

/// Maximum number of events that are held back until a later one tells what the first of
/// them is. Behind a longer operation, [`LongOperations`] are searched for.
pub(super) const MOST_HELD: usize = 1 << 12;

/// Conversion of the events of a location.
pub(super) struct LocationStream<'a, S> {
    pub(super) location: LocationId,
    /// File of the events, and index of the current one, for errors.
    pub(super) path: &'a Path,
    pub(super) event: u64,
    pub(super) definitions: &'a Otf2Definitions,
    pub(super) teams: &'a mut Otf2Teams,
    pub(super) sink: &'a mut S,
    /// If true, forks, joins and barriers of threads are dependences.
    pub(super) threads: bool,
    /// If true, `MPI_Init` and `MPI_Finalize` are barriers.
    pub(super) init: bool,
    /// Position of the next event in the archive.
    pub(super) position: u64,
    /// Events that are held back.
    pub(super) held: HeldEvents,
    /// Operations that were searched for.
    pub(super) long: LongOperations,
    /// True while long operations are searched for: events are neither held nor passed
    /// on.
    pub(super) searches: bool,
    /// Relations that are not examined.
    pub(super) unexamined: Unexamined,
}

/// State of a [`LocationStream`].
#[derive(Debug, Default)]
pub(super) struct HeldEvents {
    /// Events that wait for the action of the first of them, up to the current one.
    events: VecDeque<HeldEvent>,
    /// Index in the file and kind of the events whose actions a later event tells, in
    /// order.
    begun: Vec<(u64, Begun)>,
    /// True if a later event tells the action of the current one.
    is_begun: bool,
    /// Teams of the forks that were not joined yet, if known.
    forks: Vec<Option<CommunicatorId>>,
    /// Teams that this location is in.
    teams: Vec<Option<CommunicatorId>>,
    /// Teams of the barriers that this location is in.
    barriers: Vec<Option<CommunicatorId>>,
    /// Values of metrics whose events were not passed on yet, in their order.
    values: VecDeque<MetricValue>,
}

/// Event that is held back; its action is not known before a later event tells it.
#[derive(Debug)]
struct HeldEvent {
    time: Timestamp<Global>,
    action: Option<Action>,
    event: Otf2Event,
}

impl<S: EventSink> LocationStream<'_, S> {
    /// Takes the next event.
    #[inline]
    pub(super) fn take(
        &mut self,
        time: Timestamp<Global>,
        event: Otf2Event,
    ) -> Result<(), ReadError<S::Error>> {
        let action = match event {
            Otf2Event::Other(kind) => {
                if let Some(relation) = Relation::of_event(kind) {
                    self.unexamined.add(relation);
                }
                Action::Internal
            }
            Otf2Event::Access { .. } => {
                self.unexamined.add(Relation::RmaOperation);
                Action::Internal
            }
            Otf2Event::Metric { .. }
            | Otf2Event::AccessComplete { .. }
            | Otf2Event::CompleteSend { .. }
            | Otf2Event::Note { .. } => Action::Internal,
            Otf2Event::Stated { text } => self.stated(text)?,
            Otf2Event::Enter { region } => self.enter(region),
            Otf2Event::Leave { region } => self.leave(region),
            Otf2Event::Send {
                to,
                communicator,
                tag,
                ..
            } => {
                let peer = self.peer(communicator, to)?;
                peer.map_or(Action::Internal, |(to, communicator)| Action::Send {
                    to,
                    communicator,
                    tag: tag as i32,
                })
            }
            Otf2Event::Receive {
                from,
                communicator,
                tag,
                ..
            } => {
                let peer = self.peer(communicator, from)?;
                peer.map_or(Action::Internal, |(from, communicator)| Action::Receive {
                    from,
                    communicator,
                    tag: tag as i32,
                })
            }
            Otf2Event::PostReceive { request } => Action::PostReceive { request },
            Otf2Event::CompleteReceive {
                from,
                communicator,
                tag,
                request,
                ..
            } => {
                let peer = self.peer(communicator, from)?;
                peer.map_or(Action::Internal, |(from, communicator)| {
                    Action::CompleteReceive {
                        from,
                        communicator,
                        tag: tag as i32,
                        request,
                    }
                })
            }
            Otf2Event::CancelReceive { request } => Action::CancelReceive { request },
            Otf2Event::CollectiveBegin => self.begin(Begun::Collective),
            Otf2Event::RmaCollectiveBegin => self.begin(Begun::RmaCollective),
            Otf2Event::CollectiveStart { request } => self.begin(Begun::Request(request)),
            Otf2Event::CollectiveEnd(operation) => {
                self.collective_end(operation, Begun::Collective)
            }
            Otf2Event::RmaCollectiveEnd(operation) => {
                self.collective_end(operation, Begun::RmaCollective)
            }
            Otf2Event::CollectiveComplete { operation, request } => {
                self.collective_end(operation, Begun::Request(request))
            }
            Otf2Event::Signal(signal) => self.signal(signal, |id| Action::Signal { id }),
            Otf2Event::Wait(signal) => self.signal(signal, |id| Action::Wait { id }),
            Otf2Event::Fork
            | Otf2Event::Join
            | Otf2Event::TeamBegin { .. }
            | Otf2Event::TeamEnd { .. } => self.thread(event),
        };
        let is_known = !core::mem::take(&mut self.held.is_begun);
        if self.searches {
            return Ok(());
        }
        if is_known && self.held.events.is_empty() {
            return self.push(time, action, event).map_err(ReadError::Sink);
        }
        self.held.events.push_back(HeldEvent {
            time,
            action: is_known.then_some(action),
            event,
        });
        self.pass_on().map_err(ReadError::Sink)
    }

    /// Returns true if so many events are held that the first of them begins a long
    /// operation.
    pub(super) fn is_full(&self) -> bool {
        self.held.events.len() > MOST_HELD
    }

    /// Takes all long operations of the file, and passes on the events that waited for
    /// them.
    pub(super) fn learn(&mut self, long: LongOperations) -> Result<(), S::Error> {
        let first = self.event + 1 - self.held.events.len() as u64;
        for (event, held) in (first..).zip(&mut self.held.events) {
            held.action = held.action.or(long.get(&event).copied());
        }
        self.long = long;
        self.pass_on()
    }

    /// Returns the long operations after the last event. One that does not end is
    /// internal.
    pub(super) fn into_long_operations(mut self) -> LongOperations {
        let open = self.held.begun.iter();
        self.long
            .extend(open.map(|(event, _)| (*event, Action::Internal)));
        self.long
    }

    /// Ends the stream, and counts the collective operations that were not ended.
    pub(super) fn end(&mut self) -> Result<(), S::Error> {
        for (_, begun) in &self.held.begun {
            match begun {
                Begun::Collective | Begun::RmaCollective => {
                    self.unexamined.add(Relation::Unended);
                }
                // A program may leave its last requests to the end of MPI.
                Begun::Request(_) => self.unexamined.add(Relation::NonBlockingCollective),
                Begun::Start(_) | Begun::Fork => {}
            }
        }
        for held in &mut self.held.events {
            held.action.get_or_insert(Action::Internal);
        }
        self.pass_on()
    }

    /// Passes on the events before the first one whose action is not known.
    fn pass_on(&mut self) -> Result<(), S::Error> {
        while let Some(HeldEvent {
            time,
            action: Some(action),
            event,
        }) = self.held.events.front()
        {
            let (time, action, event) = (*time, *action, *event);
            self.held.events.pop_front();
            self.push(time, action, event)?;
        }
        Ok(())
    }

    #[inline]
    fn push(
        &mut self,
        time: Timestamp<Global>,
        action: Action,
        event: Otf2Event,
    ) -> Result<(), S::Error> {
        if let Otf2Event::Metric { metric, values } = event {
            let mut values = self.held.values.drain(..usize::from(values));
            self.sink.values(self.location, time, metric, &mut values)?;
        }
        if let Some(what) = self.access(event) {
            self.sink.access(self.location, time, what)?;
        }
        let position = self.position;
        self.position += 1;
        self.sink.push(position, self.location, time, action, event)
    }

    /// Returns what an access or its completion is in a trace, if the event is one: nothing if its window or target are undefined.
    #[inline]
    fn access(&self, event: Otf2Event) -> Option<Option<What<'static>>> {
        let number = |communicator: CommunicatorId| communicator.index() as u32;
        match event {
            Otf2Event::Access {
                kind,
                window,
                remote,
                bytes,
                request,
            } => Some(
                self.teams
                    .window(window)
                    .and_then(|(communicator, members)| {
                        Some(What::Access {
                            kind,
                            target: members.get(remote as usize)?.index() as u32,
                            communicator: number(communicator),
                            request,
                            bytes: match self.definitions.exact {
                                Some(exact) => exact.bytes_of(bytes),
                                None => Some(bytes),
                            },
                        })
                    }),
            ),
            Otf2Event::AccessComplete { window, request } => Some(self.teams.window(window).map(
                |(communicator, _)| What::AccessComplete {
                    communicator: number(communicator),
                    request,
                },
            )),
            _ => None,
        }
    }

    /// Takes the values of the event of metrics that comes next.
    pub(super) fn take_values(&mut self, values: impl Iterator<Item = MetricValue>) {
        self.held.values.extend(values);
    }

    /// Begins an operation with the current event, which is held back until a later event
    /// tells its action, unless that is known.
    fn begin(&mut self, begun: Begun) -> Action {
        self.held.begun.push((self.event, begun));
        let known = self.long.get(&self.event).copied();
        self.held.is_begun = known.is_none();
        known.unwrap_or(Action::Internal)
    }

    /// Sets the action of the last event that began this. Returns false if there is none.
    fn resolve(&mut self, reason: impl Fn(Begun) -> bool, action: Action) -> bool {
        let Some(last) = self
            .held
            .begun
            .iter()
            .rposition(|(_, begun)| reason(*begun))
        else {
            return false;
        };
        let (begin, _) = self.held.begun.remove(last);
        if self.searches {
            if self.event - begin >= MOST_HELD as u64 {
                self.long.insert(begin, action);
            }
            return true;
        }
        // The current event is not held yet, and the begin of a long operation not any
        // more.
        let first = self.event - self.held.events.len() as u64;
        let at = begin.checked_sub(first);
        if let Some(held) = at.and_then(|at| self.held.events.get_mut(at as usize)) {
            held.action = Some(action);
        }
        true
    }

    fn enter(&mut self, region: u32) -> Action {
        let start = match self.definitions.region(region) {
            Otf2Region::Other => return Action::Internal,
            Otf2Region::ThreadBarrier => {
                let team = self.held.teams.last().copied().flatten();
                self.held.barriers.push(team);
                return team.map_or(Action::Internal, |communicator| Action::Enter {
                    communicator,
                });
            }
            Otf2Region::MpiInit => self.teams.starts,
            Otf2Region::MpiFinalize => self.teams.ends,
        };
        match start.filter(|_| self.init && self.teams.is_rank(self.location)) {
            Some(all) => self.begin(Begun::Start(all)),
            None => Action::Internal,
        }
    }

    fn leave(&mut self, region: u32) -> Action {
        let communicator = match self.definitions.region(region) {
            Otf2Region::Other => return Action::Internal,
            Otf2Region::ThreadBarrier => {
                return self
                    .held
                    .barriers
                    .pop()
                    .flatten()
                    .map_or(Action::Internal, left_barrier);
            }
            Otf2Region::MpiInit => self.teams.starts,
            Otf2Region::MpiFinalize => self.teams.ends,
        };
        let Some(communicator) = communicator else {
            return Action::Internal;
        };
        let entered = Action::Enter { communicator };
        if self.resolve(|begun| begun == Begun::Start(communicator), entered) {
            left_barrier(communicator)
        } else {
            Action::Internal
        }
    }

    fn collective_end(&mut self, of: Otf2Operation, begun: Begun) -> Action {
        let Otf2Operation {
            operation,
            communicator,
            mut root,
            sent,
            received,
        } = of;
        let sent = sent > 0;
        let is_rma = begun == Begun::RmaCollective;
        let within = if is_rma {
            self.teams.window(communicator).map(|(id, _)| id)
        } else {
            self.teams.within(communicator)
        };
        let kind = kind(operation);
        let known = within.zip(kind);
        if known.is_none() {
            let relation = match kind {
                None => Some(Relation::OtherCollective),
                Some(_) if is_rma => Some(Relation::RmaCollective),
                Some(_) => self.teams.unexamined(communicator),
            };
            relation
                .into_iter()
                .for_each(|relation| self.unexamined.add(relation));
        }
        let enter = known.map_or(Action::Internal, |(communicator, _)| match begun {
            Begun::Request(request) => Action::Start {
                communicator,
                request,
            },
            _ => Action::Enter { communicator },
        });
        if !self.resolve(|other| other == begun, enter) {
            self.unexamined.add(Relation::Unbegun);
            return Action::Internal;
        }
        let Some((communicator, kind)) = known else {
            return Action::Internal;
        };
        if self.definitions.exact.is_some() {
            root = ExactTrace::root(kind, root);
        }
        if let Begun::Request(request) = begun {
            return Action::Complete {
                communicator,
                kind,
                root,
                sent,
                received,
                request,
            };
        }
        self.resolve(|begun| matches!(begun, Begun::Start(_)), Action::Internal);
        Action::Exit {
            communicator,
            kind,
            root,
            sent,
            received,
        }
    }

    /// Returns the action of one end of a signal.
    fn signal(&mut self, signal: Otf2Signal, action: impl Fn(u64) -> Action) -> Action {
        let id = match self.definitions.exact {
            // It differs from all other signals of the process.
            Some(_) => Some(signal.number),
            None => signal.id(),
        };
        match id {
            Some(id) => action(id),
            None => {
                self.unexamined.add(signal.relation());
                Action::Internal
            }
        }
    }

    /// Returns the action of an event that an exact trace states by its line.
    fn stated(&mut self, text: u32) -> Result<Action, Otf2Error> {
        let line = self.definitions.strings.get(&text);
        let line = line.ok_or_else(|| self.error(&format!("string {text} is not defined")))?;
        // The trace has no such event.
        if line.is_empty() {
            return Ok(Action::Internal);
        }
        let what = parse_event(line).map_err(|why| self.error(&format!("string {text}: {why}")))?;
        let known = self.teams.numbers.of(self.location.index() as u32, what);
        let unknown = || self.error("it refers to a location or communicator that is not defined");
        let (_, action) = known.ok_or_else(unknown)?;
        Ok(match (what, action) {
            (What::Enter { .. } | What::Leave { .. }, _) => {
                return Err(self.error("a region is entered or left by an event without a region"));
            }
            (What::Access { .. }, action) => {
                self.unexamined.add(Relation::RmaOperation);
                action
            }
            (
                _,
                Action::Fork { .. }
                | Action::Begin { .. }
                | Action::End { .. }
                | Action::Join { .. },
            ) if !self.threads => Action::Internal,
            (_, action) => action,
        })
    }

    fn thread(&mut self, event: Otf2Event) -> Action {
        let found = |team| self.teams.within(team).filter(|_| self.threads);
        match event {
            Otf2Event::Fork => {
                self.held.forks.push(None);
                self.begin(Begun::Fork)
            }
            Otf2Event::TeamBegin { team } => {
                let team = found(team);
                self.held.teams.push(team);
                let Some(team) = team else {
                    return Action::Internal;
                };
                if let Some(fork @ None) = self.held.forks.last_mut() {
                    *fork = Some(team);
                    self.resolve(|begun| begun == Begun::Fork, Action::Fork { team });
                }
                Action::Begin { team }
            }
            Otf2Event::TeamEnd { team } => {
                self.held.teams.pop();
                found(team).map_or(Action::Internal, |team| Action::End { team })
            }
            _ => match self.held.forks.pop() {
                Some(Some(team)) => Action::Join { team },
                Some(None) => {
                    self.resolve(|begun| begun == Begun::Fork, Action::Internal);
                    Action::Internal
                }
                None => Action::Internal,
            },
        }
    }

    /// Creates an error of the current event.
    pub(super) fn error(&self, why: &str) -> Otf2Error {
        Otf2Error::content(self.path, format!("event {}: {why}", self.event))
    }

    fn peer(
        &mut self,
        communicator: u32,
        rank: u32,
    ) -> Result<Option<(LocationId, CommunicatorId)>, ReadError<S::Error>> {
        let found = self
            .teams
            .peer(self.sink, self.location, communicator, rank)
            .map_err(ReadError::Sink)?;
        if found.is_none() {
            self.unexamined.add(Relation::UndefinedPeer);
        }
        Ok(found)
    }
}

fn left_barrier(communicator: CommunicatorId) -> Action {
    Action::Exit {
        communicator,
        kind: CollectiveKind::Barrier,
        root: 0,
        sent: true,
        received: true,
    }
}

/// Operations that synchronize; others create or free objects, and need not. The first one of each kind has
/// no variable lengths.
const OPERATIONS: [(CollectiveOp, CollectiveKind); 17] = [
    (CollectiveOp::BARRIER, CollectiveKind::Barrier),
    (CollectiveOp::BCAST, CollectiveKind::Broadcast),
    (CollectiveOp::GATHER, CollectiveKind::Gather),
    (CollectiveOp::GATHERV, CollectiveKind::Gather),
    (CollectiveOp::SCATTER, CollectiveKind::Scatter),
    (CollectiveOp::SCATTERV, CollectiveKind::Scatter),
    (CollectiveOp::ALLGATHER, CollectiveKind::Allgather),
    (CollectiveOp::ALLGATHERV, CollectiveKind::Allgather),
    (CollectiveOp::ALLTOALL, CollectiveKind::Alltoall),
    (CollectiveOp::ALLTOALLV, CollectiveKind::Alltoallv),
    (CollectiveOp::ALLTOALLW, CollectiveKind::Alltoallv),
    (CollectiveOp::ALLREDUCE, CollectiveKind::Allreduce),
    (CollectiveOp::REDUCE, CollectiveKind::Reduce),
    (CollectiveOp::REDUCE_SCATTER, CollectiveKind::ReduceScatter),
    (
        CollectiveOp::REDUCE_SCATTER_BLOCK,
        CollectiveKind::ReduceScatter,
    ),
    (CollectiveOp::SCAN, CollectiveKind::Scan),
    (CollectiveOp::EXSCAN, CollectiveKind::Exscan),
];

/// Returns an operation of this kind.
pub(super) fn operation_of(kind: CollectiveKind) -> CollectiveOp {
    let found = OPERATIONS.iter().find(|(_, of)| *of == kind);
    // All kinds of MPI have one.
    found.map_or(CollectiveOp::BARRIER, |(operation, _)| *operation)
}

/// Returns the kind of an operation; `None` if it need not synchronize.
fn kind(operation: CollectiveOp) -> Option<CollectiveKind> {
    let found = OPERATIONS.iter().find(|(of, _)| *of == operation);
    found.map(|(_, kind)| *kind)
}
