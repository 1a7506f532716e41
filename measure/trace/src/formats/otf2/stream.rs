//! Conversion of the records of one location to events of a trace.

use std::collections::VecDeque;

use crate::formats::text::parse_event;
use crate::{AccessKind, CollectiveKind, CommunicatorId, Event, LocationId};
use downbeat_clock_core::{Global, Timestamp};
use downbeat_otf2::{
    CommRef, Event as Record, EventRecord, MetricValue, RegionRef, RmaWinRef, StringRef, event,
};
use rustc_hash::FxHashMap;

use super::definitions::Otf2Region;
use super::exact::{ExactTrace, Statement};
use super::operations::{Begun, Otf2Operation, kind_of};
use super::signals::Otf2Signal;
use super::teams::Otf2Teams;
use super::unexamined::{Relation, UnexaminedRelations};
use super::{Archive, Otf2Error, ReadOptions};

/// Meanings of events that begin operations of at least [`MOST_HELD`] events, by the
/// indices of the events in their file.
pub(super) type LongOperations = FxHashMap<u64, Option<Event<'static>>>;

/// Maximum number of events that are held back until a later one tells what the first of
/// them is. Behind a longer operation, [`LongOperations`] are searched for.
pub(super) const MOST_HELD: usize = 1 << 12;

/// Takes the events of a location.
pub(super) trait EventSink {
    /// Reason of a refusal.
    type Error: From<Otf2Error>;

    /// Takes an event by itself, and what it means to other locations.
    fn event(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        event: Event<'_>,
        meaning: Option<Event<'_>>,
    ) -> Result<(), Self::Error>;

    /// Takes an event with values of the metrics of a class or instance of the archive.
    fn values(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        metric: u32,
        values: &mut dyn Iterator<Item = MetricValue>,
    ) -> Result<(), Self::Error>;
}

/// Conversion of the events of a location.
pub(super) struct LocationStream<'a, S> {
    archive: &'a Archive,
    /// Index of the location in the archive.
    index: usize,
    location: LocationId,
    /// Index of the current event in the file.
    pub(super) event: u64,
    teams: &'a Otf2Teams,
    /// Receiver of the events; none while long operations are searched for: events are
    /// not held either then.
    sink: Option<&'a mut S>,
    /// If true, forks, joins and barriers of threads are dependences.
    threads: bool,
    /// If true, `MPI_Init` and `MPI_Finalize` are barriers.
    init: bool,
    /// Events that are held back.
    held: HeldEvents<'a>,
    /// Operations that were searched for.
    long: LongOperations,
    /// Relations that are not examined.
    pub(super) unexamined: UnexaminedRelations,
}

/// State of a [`LocationStream`].
#[derive(Debug, Default)]
struct HeldEvents<'a> {
    /// Events that wait for the meaning of the first of them, up to the current one.
    events: VecDeque<HeldEvent<'a>>,
    /// Index in the file and kind of the events whose meanings a later event tells, in
    /// order.
    begun: Vec<(u64, Begun)>,
    /// True if a later event tells the meaning of the current one.
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

/// Event that is held back; its meaning is not known before a later event tells it.
#[derive(Debug)]
struct HeldEvent<'a> {
    time: Timestamp<Global>,
    meaning: Option<Option<Event<'a>>>,
    content: RecordContent<'a>,
}

/// Content of a record by itself.
#[derive(Clone, Copy, Debug)]
enum RecordContent<'a> {
    /// Event, or a note that its meaning takes the place of.
    Event(Event<'a>),
    /// Values of metrics, by the class or instance, with their number.
    Values { metric: u32, count: usize },
}

/// Event of a record by itself, and what it means to other locations.
type Converted<'a> = (Event<'a>, Option<Event<'a>>);

/// Name of an access that is left out.
const UNDEFINED_ACCESS: &str = "access with an undefined window or target";

impl<'a, S: EventSink> LocationStream<'a, S> {
    pub(super) fn new(
        (archive, index): (&'a Archive, usize),
        reading: &ReadOptions,
        teams: &'a Otf2Teams,
        sink: Option<&'a mut S>,
    ) -> Self {
        Self {
            archive,
            index,
            location: teams.locations[index],
            event: 0,
            teams,
            sink,
            threads: reading.threads,
            init: reading.init,
            held: HeldEvents::default(),
            long: LongOperations::default(),
            unexamined: UnexaminedRelations::default(),
        }
    }

    /// Takes the next record.
    #[inline]
    pub(super) fn take(
        &mut self,
        time: Timestamp<Global>,
        record: &EventRecord<'_>,
    ) -> Result<(), S::Error> {
        let event = record
            .event()
            .ok_or_else(|| self.error("its data cannot be decoded"))?;
        let stated = match self.archive.definitions.exact {
            Some(_) => ExactTrace::statement(record, &event)
                .ok_or_else(|| self.error("its attributes cannot be decoded"))?,
            None => None,
        };
        let (content, meaning) = match (stated, &event) {
            (Some(text), _) => {
                let (event, meaning) = self.read_statement(text)?;
                (RecordContent::Event(event), meaning)
            }
            (None, Record::Metric(of)) => {
                self.held.values.extend(of.values.iter());
                let (metric, count) = (of.metric.0, of.values.len());
                (RecordContent::Values { metric, count }, None)
            }
            (None, event) => {
                let (event, meaning) = self.convert(event);
                (RecordContent::Event(event), meaning)
            }
        };
        let is_known = !core::mem::take(&mut self.held.is_begun);
        if self.sink.is_none() {
            self.held.values.clear();
            return Ok(());
        }
        if is_known && self.held.events.is_empty() {
            return self.push(time, content, meaning);
        }
        self.held.events.push_back(HeldEvent {
            time,
            meaning: is_known.then_some(meaning),
            content,
        });
        self.pass_on()
    }

    /// Returns what a record is by itself, and what it means to other locations.
    #[inline]
    fn convert(&mut self, event: &Record<'_>) -> Converted<'a> {
        let alone = |event| (event, None);
        let meaning = |event| (event, Some(event));
        let note = |text, meaning| (Event::Note(text), meaning);
        match event {
            Record::Enter(event::Enter {
                region: RegionRef(region),
            }) => (Event::Enter { region: *region }, self.enter(*region)),
            Record::Leave(event::Leave {
                region: RegionRef(region),
            }) => (Event::Leave { region: *region }, self.leave(*region)),
            Record::MpiSend(of) => {
                self.send((of.communicator, of.receiver), of.tag, None, of.length)
            }
            Record::MpiIsend(of) => {
                let request = Some(of.request);
                self.send((of.communicator, of.receiver), of.tag, request, of.length)
            }
            Record::MpiIsendComplete(of) => alone(Event::CompleteSend {
                request: of.request,
            }),
            Record::MpiRecv(of) => {
                self.receive((of.communicator, of.sender), of.tag, None, of.length)
            }
            // It is matched there. The receive of the message follows at the same location.
            Record::MpiProbe(of) if of.message != u64::MAX => {
                self.receive((of.communicator, of.sender), of.tag, None, 0)
            }
            Record::MpiIrecv(of) => {
                let request = Some(of.request);
                self.receive((of.communicator, of.sender), of.tag, request, of.length)
            }
            Record::MpiIrecvRequest(of) => meaning(Event::PostReceive {
                request: of.request,
            }),
            Record::MpiRequestCancelled(of) => meaning(Event::CancelReceive {
                request: of.request,
            }),
            Record::MpiCollectiveBegin(_) => {
                note("collective operation", self.begin(Begun::Collective))
            }
            Record::RmaCollectiveBegin(_) => {
                note("RMA collective operation", self.begin(Begun::RmaCollective))
            }
            Record::NonBlockingCollectiveRequest(of) => note(
                "non-blocking collective operation",
                self.begin(Begun::Request(of.request)),
            ),
            Record::MpiRequestTest(_) => {
                self.count_other(event);
                note("request tested", None)
            }
            Record::ThreadFork(_) => note("fork", self.fork()),
            Record::ThreadJoin(_) => note("join", self.join()),
            Record::ThreadTeamBegin(of) => note("thread-begin", self.begin_thread(of.team.0)),
            Record::ThreadTeamEnd(of) => note("thread-end", self.end_thread(of.team.0)),
            _ => self.convert_other(event),
        }
    }

    /// Converts ends of collective operations, accesses, signals and events without a
    /// meaning.
    fn convert_other(&mut self, event: &Record<'_>) -> Converted<'a> {
        if let Some(operation) = Otf2Operation::of(event) {
            let text = match operation.begun {
                Begun::RmaCollective => "end of an RMA collective operation",
                Begun::Request(_) => "end of a non-blocking collective operation",
                _ => "end of a collective operation",
            };
            return (Event::Note(text), self.end_operation(operation));
        }
        if let Some((signal, signals)) = Otf2Signal::of(event) {
            return self.signal(signal, signals);
        }
        let access = match event {
            Record::RmaPut(of) => self.access(
                AccessKind::Put,
                (of.win, of.remote),
                of.bytes,
                of.matching_id,
            ),
            Record::RmaGet(of) => self.access(
                AccessKind::Get,
                (of.win, of.remote),
                of.bytes,
                of.matching_id,
            ),
            Record::RmaAtomic(of) => {
                let bytes = of.bytes_sent.max(of.bytes_received);
                self.access(
                    AccessKind::Atomic,
                    (of.win, of.remote),
                    bytes,
                    of.matching_id,
                )
            }
            Record::RmaOpCompleteBlocking(of) => self.access_end(of.win, of.matching_id),
            Record::RmaOpCompleteNonBlocking(of) => self.access_end(of.win, of.matching_id),
            Record::RmaOpCompleteRemote(of) => self.access_end(of.win, of.matching_id),
            _ => {
                self.count_other(event);
                return (Event::Opaque(Record::name_of(event.kind())), None);
            }
        };
        (access.unwrap_or(Event::Opaque(UNDEFINED_ACCESS)), None)
    }

    /// Counts a relation that an event without a meaning may be the end of.
    fn count_other(&mut self, event: &Record<'_>) {
        if let Some(relation) = Relation::of_event(event.kind()) {
            self.unexamined.add(relation);
        }
    }

    /// Returns the number of bytes that a number in a record stands for.
    fn bytes(&self, number: u64) -> Option<u64> {
        match self.archive.definitions.exact {
            Some(exact) => exact.bytes_of(number),
            None => Some(number),
        }
    }

    #[inline]
    fn send(
        &mut self,
        (communicator, receiver): (CommRef, u32),
        tag: u32,
        request: Option<u64>,
        length: u64,
    ) -> Converted<'a> {
        let peer = self.peer(communicator.0, receiver);
        let send = peer.map(|(to, communicator)| Event::Send {
            to: to.0,
            communicator: communicator.0,
            tag: tag as i32,
            request,
            bytes: self.bytes(length),
        });
        (Event::Note("send"), send)
    }

    #[inline]
    fn receive(
        &mut self,
        (communicator, sender): (CommRef, u32),
        tag: u32,
        request: Option<u64>,
        length: u64,
    ) -> Converted<'a> {
        let peer = self.peer(communicator.0, sender);
        let receive = peer.map(|(from, communicator)| Event::Receive {
            from: from.0,
            communicator: communicator.0,
            tag: tag as i32,
            request,
            bytes: self.bytes(length),
        });
        (Event::Note("receive"), receive)
    }

    /// Returns an access; `None` if its window or target are undefined.
    fn access(
        &mut self,
        kind: AccessKind,
        (window, remote): (RmaWinRef, u32),
        bytes: u64,
        request: u64,
    ) -> Option<Event<'a>> {
        self.unexamined.add(Relation::RmaOperation);
        let (communicator, members) = self.teams.window(window.0)?;
        Some(Event::Access {
            kind,
            target: members.get(remote as usize)?.0,
            communicator: communicator.0,
            request,
            bytes: self.bytes(bytes),
        })
    }

    /// Returns the completion of an access; `None` if its window is undefined.
    fn access_end(&self, window: RmaWinRef, request: u64) -> Option<Event<'a>> {
        let (communicator, _) = self.teams.window(window.0)?;
        Some(Event::AccessComplete {
            communicator: communicator.0,
            request,
        })
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
            held.meaning = held.meaning.or_else(|| long.get(&event).copied());
        }
        self.long = long;
        self.pass_on()
    }

    /// Returns the long operations after the last event. One that does not end is
    /// internal.
    pub(super) fn into_long_operations(mut self) -> LongOperations {
        let open = self.held.begun.iter();
        self.long.extend(open.map(|(event, _)| (*event, None)));
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
            held.meaning.get_or_insert(None);
        }
        self.pass_on()
    }

    /// Passes on the events before the first one whose meaning is not known.
    fn pass_on(&mut self) -> Result<(), S::Error> {
        while let Some(&HeldEvent {
            time,
            meaning: Some(meaning),
            content,
        }) = self.held.events.front()
        {
            self.held.events.pop_front();
            self.push(time, content, meaning)?;
        }
        Ok(())
    }

    #[inline]
    fn push(
        &mut self,
        time: Timestamp<Global>,
        content: RecordContent<'a>,
        meaning: Option<Event<'a>>,
    ) -> Result<(), S::Error> {
        let Some(sink) = &mut self.sink else {
            return Ok(());
        };
        match content {
            RecordContent::Event(event) => sink.event(self.location, time, event, meaning),
            RecordContent::Values { metric, count } => {
                let mut values = self.held.values.drain(..count);
                sink.values(self.location, time, metric, &mut values)
            }
        }
    }

    /// Begins an operation with the current event, which is held back until a later event
    /// tells its meaning, unless that is known.
    fn begin(&mut self, begun: Begun) -> Option<Event<'static>> {
        self.held.begun.push((self.event, begun));
        let known = self.long.get(&self.event).copied();
        self.held.is_begun = known.is_none();
        known.flatten()
    }

    /// Sets the meaning of the last event that began this. Returns false if there is none.
    fn resolve(&mut self, reason: impl Fn(Begun) -> bool, meaning: Option<Event<'static>>) -> bool {
        let begun = &mut self.held.begun;
        let Some(last) = begun.iter().rposition(|(_, begun)| reason(*begun)) else {
            return false;
        };
        let (begin, _) = begun.remove(last);
        if self.sink.is_none() {
            if self.event - begin >= MOST_HELD as u64 {
                self.long.insert(begin, meaning);
            }
            return true;
        }
        // The current event is not held yet, and the begin of a long operation not any
        // more.
        let first = self.event - self.held.events.len() as u64;
        let at = begin.checked_sub(first);
        if let Some(held) = at.and_then(|at| self.held.events.get_mut(at as usize)) {
            held.meaning = Some(meaning);
        }
        true
    }

    #[inline]
    fn enter(&mut self, region: u32) -> Option<Event<'static>> {
        let start = match self.archive.definitions.region(region) {
            Otf2Region::Other => return None,
            Otf2Region::ThreadBarrier => {
                let team = self.held.teams.last().copied().flatten();
                self.held.barriers.push(team);
                return team.map(enter_operation);
            }
            Otf2Region::MpiInit => self.teams.starts,
            Otf2Region::MpiFinalize => self.teams.ends,
        };
        match start.filter(|_| self.init && self.teams.is_rank(self.location)) {
            Some(all) => self.begin(Begun::Start(all.0)),
            None => None,
        }
    }

    #[inline]
    fn leave(&mut self, region: u32) -> Option<Event<'static>> {
        let communicator = match self.archive.definitions.region(region) {
            Otf2Region::Other => return None,
            Otf2Region::ThreadBarrier => return self.held.barriers.pop()?.map(leave_barrier),
            Otf2Region::MpiInit => self.teams.starts,
            Otf2Region::MpiFinalize => self.teams.ends,
        }?;
        let is_begun = |begun| begun == Begun::Start(communicator.0);
        let is_entered = self.resolve(is_begun, Some(enter_operation(communicator)));
        is_entered.then(|| leave_barrier(communicator))
    }

    /// Returns the end of a collective operation, whose begin gets its meaning.
    fn end_operation(&mut self, of: Otf2Operation) -> Option<Event<'static>> {
        let is_rma = of.begun == Begun::RmaCollective;
        let within = match is_rma {
            true => self.teams.window(of.communicator).map(|(id, _)| id),
            false => self.teams.within(of.communicator),
        };
        let kind = kind_of(of.operation);
        let known = within.zip(kind);
        if known.is_none() {
            let relation = match kind {
                None => Some(Relation::OtherCollective),
                Some(_) if is_rma => Some(Relation::RmaCollective),
                Some(_) => self.teams.unexamined(of.communicator),
            };
            if let Some(relation) = relation {
                self.unexamined.add(relation);
            }
        }
        let request = of.begun.request();
        let begin = known.map(|(communicator, _)| Event::CollectiveBegin {
            communicator: communicator.0,
            request,
        });
        if !self.resolve(|begun| begun == of.begun, begin) {
            self.unexamined.add(Relation::Unbegun);
            return None;
        }
        let (communicator, kind) = known?;
        if request.is_none() {
            self.resolve(|begun| matches!(begun, Begun::Start(_)), None);
        }
        let exact = self.archive.definitions.exact;
        Some(Event::CollectiveEnd {
            communicator: communicator.0,
            kind,
            root: of.root(exact, kind),
            sent: of.sent > 0,
            received: of.received,
            request,
            bytes: of.bytes(exact, kind),
        })
    }

    /// Returns one end of a signal, and its meaning.
    fn signal(&mut self, signal: Otf2Signal, signals: bool) -> Converted<'a> {
        let end = |id| match signals {
            true => Event::Signal { id },
            false => Event::Wait { id },
        };
        // In an exact trace, the number differs from all other signals of the process.
        if self.archive.definitions.exact.is_some() {
            return (end(signal.of.into()), Some(end(signal.number)));
        }
        let id = signal.id();
        if id.is_none() {
            self.unexamined.add(signal.relation());
        }
        (signal.note(signals), id.map(end))
    }

    /// Returns the event that an exact trace states, and its meaning.
    fn read_statement(&mut self, statement: Statement) -> Result<Converted<'a>, Otf2Error> {
        let definitions = &self.archive.definitions;
        let text = match statement {
            Statement::Note(text) => return Ok((Event::Note(definitions.string(text.0)), None)),
            Statement::Event(StringRef(text)) => text,
        };
        let line = definitions.strings.get(&text);
        let line = line.ok_or_else(|| self.error(&format!("string {text} is not defined")))?;
        // The trace has no such event.
        if line.is_empty() {
            return Ok((Event::Opaque(""), None));
        }
        let event =
            parse_event(line).map_err(|why| self.error(&format!("string {text}: {why}")))?;
        if !self.teams.has_ends_of(event) {
            let why = "it refers to a location or communicator that is not defined";
            return Err(self.error(why));
        }
        let meaning = match event {
            Event::Enter { .. } | Event::Leave { .. } => {
                let why = "a region is entered or left by an event without a region";
                return Err(self.error(why));
            }
            Event::Access { .. } => {
                self.unexamined.add(Relation::RmaOperation);
                None
            }
            Event::Note(_) => None,
            Event::Fork { .. }
            | Event::ThreadBegin { .. }
            | Event::ThreadEnd { .. }
            | Event::Join { .. }
                if !self.threads =>
            {
                None
            }
            event => Some(event),
        };
        Ok((event, meaning))
    }

    fn fork(&mut self) -> Option<Event<'static>> {
        self.held.forks.push(None);
        self.begin(Begun::Fork)
    }

    fn join(&mut self) -> Option<Event<'static>> {
        match self.held.forks.pop()? {
            Some(team) => Some(Event::Join { team: team.0 }),
            None => {
                self.resolve(|begun| begun == Begun::Fork, None);
                None
            }
        }
    }

    /// Returns a team whose threads wait for each other.
    fn team(&self, team: u32) -> Option<CommunicatorId> {
        self.teams.within(team).filter(|_| self.threads)
    }

    fn begin_thread(&mut self, team: u32) -> Option<Event<'static>> {
        let team = self.team(team);
        self.held.teams.push(team);
        let team = team?;
        if let Some(fork @ None) = self.held.forks.last_mut() {
            *fork = Some(team);
            let meaning = Event::Fork { team: team.0 };
            self.resolve(|begun| begun == Begun::Fork, Some(meaning));
        }
        Some(Event::ThreadBegin { team: team.0 })
    }

    fn end_thread(&mut self, team: u32) -> Option<Event<'static>> {
        self.held.teams.pop();
        let team = self.team(team)?;
        Some(Event::ThreadEnd { team: team.0 })
    }

    /// Creates an error of the current event.
    pub(super) fn error(&self, why: &str) -> Otf2Error {
        let path = self.archive.path_of(self.index, "evt");
        Otf2Error::content(&path, format!("event {}: {why}", self.event))
    }

    fn peer(&mut self, communicator: u32, rank: u32) -> Option<(LocationId, CommunicatorId)> {
        let found = self.teams.peer(self.location, communicator, rank);
        if found.is_none() {
            self.unexamined.add(Relation::UndefinedPeer);
        }
        found
    }
}

const fn enter_operation(CommunicatorId(communicator): CommunicatorId) -> Event<'static> {
    Event::CollectiveBegin {
        communicator,
        request: None,
    }
}

const fn leave_barrier(CommunicatorId(communicator): CommunicatorId) -> Event<'static> {
    Event::CollectiveEnd {
        communicator,
        kind: CollectiveKind::Barrier,
        root: 0,
        sent: true,
        received: true,
        request: None,
        bytes: None,
    }
}
