//! Second pass over a stream: an order in which every event follows those that it waits for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::teams::{Progress, Statement, Track};
use super::super::trace::Instance;
use super::super::{CollectiveKind, EventId, LocationId, Pattern, TraceError};
use super::census::{StreamError, StreamedOperation, Which};
use super::clock_merge::ClockMerge;
use super::messages::Messages;
use super::{Census, Link, Linked, SurveyedEvent};

/// Puts the events of all locations in an order in which each follows those that it waits for, and
/// the events of each clock are in theirs. Messages under way and unfinished operations are in memory.
#[derive(Debug)]
pub struct CausalOrder {
    census: Census,
    messages: Messages,
    /// For each process, given by the location that represents it, its clock if it has only one.
    clocks: Vec<Option<u32>>,
    /// For each clock, given by its first location, true if it has others.
    is_shared: Vec<bool>,
    /// Messages under way, with their numbers among those.
    sent: FxHashMap<u64, u32>,
    /// Messages that were received before they were sent: the clock at both ends, and their numbers.
    early: FxHashMap<u64, (u32, u32)>,
    /// Numbers of messages that are not under way any longer.
    free: Vec<u32>,
    operations: FxHashMap<Which, Ongoing>,
    /// Message that may be received before it is sent.
    allowed: Option<u64>,
    /// Clocks that wait for messages.
    waiting: FxHashMap<u64, Turn>,
    /// Clocks that wait for nothing.
    ready: BinaryHeap<Reverse<Turn>>,
    /// First operation that is incomplete, and the error.
    incomplete: Option<(Which, TraceError)>,
}

/// Clock, and the time of its next event since its first one, by which clocks advance together.
type Turn = (i64, u32);

/// Time by which a clock may be ahead of others.
const AHEAD: i64 = 1_000_000;

/// Operation of which some events have come, but not all.
#[derive(Debug)]
struct Ongoing {
    instance: Instance,
    progress: Progress,
    /// Enters of all members.
    enters: Vec<Option<EventId>>,
    /// Rank before which exits wait for no member.
    next: u32,
    /// Ranks that clocks wait for.
    waiting: Vec<(u32, Turn)>,
    /// Number of events still to come.
    missing: u32,
    /// True as long as no event has come.
    is_new: bool,
}

/// Clock in the order.
#[derive(Debug)]
struct OrderedClock {
    merge: ClockMerge,
    next: Option<SurveyedEvent>,
    /// Time of the first event.
    begins: i64,
}

impl CausalOrder {
    pub(super) fn new(census: Census, messages: Messages) -> Self {
        let mut clocks: Vec<Option<u32>> = census.clocks().iter().copied().map(Some).collect();
        let processes = census.definitions.processes.iter();
        for (process, clock) in processes.zip(census.clocks()) {
            let of = &mut clocks[*process as usize];
            *of = of.filter(|of| of == clock);
        }
        Self {
            is_shared: census.shared_clocks(),
            census,
            messages,
            clocks,
            sent: FxHashMap::default(),
            early: FxHashMap::default(),
            free: vec![],
            allowed: None,
            operations: FxHashMap::default(),
            waiting: FxHashMap::default(),
            ready: BinaryHeap::new(),
            incomplete: None,
        }
    }

    /// Passes all events to `see`; `read` returns the next event of a location as the [`Survey`]
    /// returned it, and `None` after the last one. Returns the census.
    ///
    /// # Errors
    /// Those of `read` and `see`; as [`TraceBuilder::finish`]; and if events wait for each other in a
    /// cycle.
    ///
    /// [`Survey`]: super::Survey
    /// [`TraceBuilder::finish`]: super::super::TraceBuilder::finish
    pub fn run<E: From<StreamError>>(
        mut self,
        mut read: impl FnMut(LocationId) -> Result<Option<SurveyedEvent>, E>,
        mut see: impl FnMut(Linked, Timestamp<Global>) -> Result<(), E>,
    ) -> Result<Census, E> {
        let lenient = self.census.definitions.matching.lenient;
        let left_out = self.census.left_out;
        if !lenient && (left_out.sends > 0 || left_out.receives > 0) {
            return Err(self.first_unmatched(read)?.into());
        }
        let messages = std::mem::take(&mut self.messages);
        let mut read = |location| -> Result<_, E> {
            let event = read(location)?;
            Ok(event.map(|event| resolved(&messages, event)))
        };
        let mut clocks = self.begin(&mut read)?;
        loop {
            let Some(Reverse((_, number))) = self.ready.pop() else {
                match self.stuck(&messages, &clocks) {
                    Some(event) => return Err(StreamError::Cycle(event).into()),
                    None if self.ready.is_empty() => break,
                    None => continue,
                }
            };
            let OrderedClock {
                merge,
                next,
                begins,
            } = &mut clocks[number as usize];
            while let Some(event) = *next {
                let key = event.time.as_nanos().saturating_sub(*begins);
                let first = self.ready.peek();
                if first.is_some_and(|Reverse((first, _))| key.saturating_sub(AHEAD) > *first) {
                    self.ready.push(Reverse((key, number)));
                    break;
                }
                let mut link = Some(event.link);
                if event.link != Link::Nothing {
                    link = self.take(&messages, event, (key, number))?;
                }
                let Some(link) = link else { break };
                see(Linked { id: event.id, link }, event.time)?;
                *next = merge.next(&self.census, &mut read)?;
            }
        }
        match self.incomplete {
            Some((_, why)) if !lenient => Err(StreamError::Trace(why).into()),
            _ => Ok(self.census),
        }
    }

    /// Returns all clocks, which are ready.
    fn begin<E>(
        &mut self,
        read: &mut impl FnMut(LocationId) -> Result<Option<SurveyedEvent>, E>,
    ) -> Result<Vec<OrderedClock>, E> {
        let mut locations = vec![vec![]; self.census.clocks().len()];
        for (location, clock) in (0..).zip(self.census.clocks()) {
            locations[*clock as usize].push(location);
        }
        let mut clocks = Vec::with_capacity(locations.len());
        for (number, locations) in (0..).zip(locations) {
            let mut merge = ClockMerge::new(locations, read)?;
            let next = merge.next(&self.census, read)?;
            let begins = next.map_or(0, |next| next.time.as_nanos());
            self.ready.extend(next.map(|_| Reverse((0, number))));
            clocks.push(OrderedClock {
                merge,
                next,
                begins,
            });
        }
        Ok(clocks)
    }

    /// Goes on after no clock is ready: with a receive that may be before its send, or else returns an
    /// event that waits in a cycle, if there is any.
    fn stuck(&mut self, messages: &Messages, clocks: &[OrderedClock]) -> Option<EventId> {
        let definitions = &self.census.definitions;
        let is_early = |message: u64, clock: u32| {
            let receiver = definitions.processes[clock as usize];
            let sender = messages.sender(message, receiver);
            let processes = definitions.processes.iter().zip(self.census.clocks());
            processes.into_iter().any(|both| both == (&sender, &clock))
        };
        let early = self.waiting.iter();
        let early = early.filter(|(message, (_, clock))| is_early(**message, *clock));
        if let Some((turn, message)) = early.map(|(message, turn)| (*turn, *message)).min() {
            self.waiting.remove(&message);
            self.allowed = Some(message);
            self.ready.push(Reverse(turn));
            return None;
        }
        let left = clocks.iter().filter_map(|clock| clock.next);
        left.map(|next| next.id).min()
    }

    /// Takes the next event of a clock, and returns its link; `None` if it has to wait.
    fn take(
        &mut self,
        messages: &Messages,
        event: SurveyedEvent,
        turn: Turn,
    ) -> Result<Option<Link>, StreamError> {
        let clock = turn.1;
        Ok(match event.link {
            Link::Send { message } => {
                if let Some((early, number)) = self.early.remove(&message) {
                    self.free.push(number);
                    let message = number.into();
                    let link = (early == clock).then_some(Link::LateSend { message });
                    return link.map(Some).ok_or(StreamError::Cycle(event.id));
                }
                let number = self.number();
                self.sent.insert(message, number);
                let woken = self.waiting.remove(&message);
                self.ready.extend(woken.map(Reverse));
                let message = number.into();
                Some(Link::Send { message })
            }
            Link::Receive { message } => {
                if let Some(number) = self.sent.remove(&message) {
                    self.census.messages += 1;
                    let location = event.id.location.index();
                    self.census.received[location] += 1;
                    self.free.push(number);
                    let message = number.into();
                    return Ok(Some(Link::Receive { message }));
                }
                let receiver = self.census.definitions.process(event.id);
                let sender = messages.sender(message, receiver);
                if self.clocks[sender as usize] == Some(clock) || self.allowed == Some(message) {
                    self.census.messages += 1;
                    self.allowed = None;
                    let number = self.number();
                    self.early.insert(message, (clock, number));
                    let message = number.into();
                    return Ok(Some(Link::EarlyReceive { message }));
                }
                self.waiting.insert(message, turn);
                None
            }
            Link::Enter { of } => Some(self.enter(of, event.id)?),
            Link::Exit {
                of,
                kind,
                root,
                sends,
                receives,
            } => self.exit((of, kind, root), [sends, receives], event.id, turn)?,
            other => Some(other),
        })
    }

    /// Returns a number that no message under way has.
    fn number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let next = self.census.under_way;
            // There are fewer than 2^32 events of each location, whose messages are in memory.
            self.census.under_way += 1;
            next
        })
    }

    fn enter(&mut self, mut of: StreamedOperation, event: EventId) -> Result<Link, StreamError> {
        of.is_first = self.begin_operation(of, event);
        // It is there.
        let Some(ongoing) = self.operations.get_mut(&of.which) else {
            return Ok(Link::Nothing);
        };
        if of.which.1 == Track::Fork {
            ongoing.agree((CollectiveKind::Fork, of.rank), event)?;
        }
        ongoing.enters[of.rank as usize] = Some(event);
        ongoing.progress.enters += 1;
        let woken = ongoing.waiting.extract_if(.., |(rank, _)| *rank == of.rank);
        self.ready.extend(woken.map(|(_, turn)| Reverse(turn)));
        of.is_last = self.end_operation(of.which);
        Ok(Link::Enter { of })
    }

    fn exit(
        &mut self,
        (mut of, kind, root): (StreamedOperation, CollectiveKind, u32),
        [sends, receives]: [bool; 2],
        event: EventId,
        turn: Turn,
    ) -> Result<Option<Link>, StreamError> {
        of.is_first = self.begin_operation(of, event);
        let (_, track, _) = of.which;
        let census = &self.census;
        let Some(ongoing) = self.operations.get_mut(&of.which) else {
            return Ok(None);
        };
        if track != Track::Fork {
            ongoing.agree((kind, root), event)?;
        }
        let shared = Some(turn.1).filter(|clock| self.is_shared[*clock as usize]);
        if receives && let Some(rank) = ongoing.awaits(census, (of, kind, root), shared) {
            ongoing.waiting.push((rank, turn));
            ongoing.is_new = of.is_first;
            return Ok(None);
        }
        let own = ongoing.enters[of.rank as usize];
        if track == Track::Collective && own.is_none_or(|enter| enter.location != event.location) {
            // Another thread of the process has entered.
            return Err(TraceError::NotEntered(event).into());
        }
        ongoing.progress.exits += 1;
        let root = match track {
            // Without a fork, a thread begins on its own.
            Track::Fork => census.roles(of.which).position(|[enters, _]| enters),
            _ => Some(root as usize),
        };
        of.is_last = self.end_operation(of.which);
        let link = root.map_or(Link::Nothing, |root| Link::Exit {
            of,
            kind,
            root: root as u32,
            sends,
            receives,
        });
        Ok(Some(link))
    }

    /// Begins an operation with its first event. Returns true if that has not come yet.
    fn begin_operation(&mut self, of: StreamedOperation, event: EventId) -> bool {
        let census = &self.census;
        let ongoing = self.operations.entry(of.which).or_insert_with(|| {
            let roles = census.roles(of.which);
            let events = roles.map(|[enters, leaves]| u32::from(enters) + u32::from(leaves));
            Ongoing {
                instance: Instance {
                    kind: CollectiveKind::Barrier,
                    root: 0,
                    team: of.which.0,
                    first: 0,
                    members: of.members,
                },
                progress: Progress::new(event),
                enters: vec![None; of.members as usize],
                next: 0,
                waiting: vec![],
                missing: events.sum(),
                is_new: true,
            }
        });
        std::mem::take(&mut ongoing.is_new)
    }

    /// Counts an event of an operation. Returns true after the last one.
    fn end_operation(&mut self, which: Which) -> bool {
        let Entry::Occupied(mut entry) = self.operations.entry(which) else {
            return false;
        };
        let ongoing = entry.get_mut();
        ongoing.missing = ongoing.missing.saturating_sub(1);
        if ongoing.missing > 0 {
            return false;
        }
        let ongoing = entry.remove();
        if !ongoing.progress.is_complete(&ongoing.instance) {
            self.census.left_out.collectives += 1;
            let is_first = |(first, _): &(Which, TraceError)| which < *first;
            if self.incomplete.as_ref().is_none_or(is_first) {
                let why = ongoing.refusal(&self.census, which);
                self.incomplete = Some((which, why));
            }
        }
        true
    }

    /// Returns the error for the first message that lacks an end.
    fn first_unmatched<E: From<StreamError>>(
        &self,
        mut read: impl FnMut(LocationId) -> Result<Option<SurveyedEvent>, E>,
    ) -> Result<StreamError, E> {
        for location in self.census.ids() {
            while let Some(event) = read(location)? {
                let is_alone = |message| self.messages.is_alone(message);
                let why = match event.link {
                    Link::Send { message } if is_alone(message) => {
                        TraceError::UnmatchedSend(event.id)
                    }
                    Link::Receive { message }
                        if is_alone(self.messages.received(event.id, message)) =>
                    {
                        TraceError::UnmatchedReceive(event.id)
                    }
                    _ => continue,
                };
                return Ok(why.into());
            }
        }
        // Their numbers were counted.
        Ok(StreamError::Trace(TraceError::TooManyCollectives))
    }
}

/// Returns the event with its message, if that is complete.
fn resolved(messages: &Messages, mut event: SurveyedEvent) -> SurveyedEvent {
    let message = match &mut event.link {
        Link::Send { message } => *message,
        Link::Receive { message } => {
            *message = messages.received(event.id, *message);
            *message
        }
        _ => return event,
    };
    if !messages.is_complete(message) {
        event.link = Link::Nothing;
    }
    event
}

impl Ongoing {
    fn agree(
        &mut self,
        (kind, root): (CollectiveKind, u32),
        event: EventId,
    ) -> Result<(), TraceError> {
        let statement = Statement {
            kind,
            root,
            sent: true,
            received: true,
        };
        self.progress.agree(&mut self.instance, statement, event)
    }

    /// Returns a member for which an exit has to wait; not one with its own clock, if several
    /// locations share that.
    fn awaits(
        &mut self,
        census: &Census,
        (of, kind, root): (StreamedOperation, CollectiveKind, u32),
        shared: Option<u32>,
    ) -> Option<u32> {
        let is_late = |rank: u32| {
            let counts = census.is_awaited(of.which, kind, root, rank);
            counts && self.enters[rank as usize].is_none()
        };
        let end = match kind.pattern() {
            Pattern::ToLater => of.rank,
            _ => of.members,
        };
        while self.next < end && !is_late(self.next) {
            self.next += 1;
        }
        let is_other =
            |rank: &u32| shared.is_none() || census.clock_of_member(of.which, *rank) != shared;
        (self.next..end).find(|rank| is_late(*rank) && is_other(rank))
    }

    /// Returns the error of an incomplete operation.
    fn refusal(&self, census: &Census, which: Which) -> TraceError {
        let (team, track, index) = which;
        let members = census.definitions.members(team);
        let count = |does| index + u32::from(does);
        let counts = census
            .roles(which)
            .map(|[enters, leaves]| (count(enters), count(leaves)));
        let counts: Vec<_> = counts.collect();
        let refusal = self
            .progress
            .refusal(track, index, members, &counts, |rank| self.enters[rank]);
        refusal.unwrap_or(TraceError::NotLeft(self.progress.seen))
    }
}
