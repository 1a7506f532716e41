//! Verification of times that ranks share: by each rank for its own times, independent of the data
//! structures of the correction.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::check::late::{LateCounter, Party};
use super::super::trace::Slot;
use super::super::{CollectiveKind, EventId, Fault, Latencies, LocationId, Message, Verdict};
use super::backward::{foreign_sends, sends_abroad};
use super::exchange::{Boxes, boxes, exchange, gather_everywhere};
use super::operations::{Teller, Told, go_through};
use super::part::{event_of, word_of};
use super::totals::{agree_on_fit, total};
use super::{PartError, TracePart};
use downbeat_sync::{Comm, CommError};

/// Fault, and its position among those of a single rank.
#[derive(Clone, Copy, Debug)]
struct Placed {
    place: [u64; 2],
    fault: Fault,
}

impl Verdict {
    /// Does the same as [`new`](Self::new) for a trace that ranks share; collective, with the same
    /// result on all ranks. `times` are those of this rank's locations, and empty for others.
    ///
    /// # Errors
    /// If the number of times is not that of events on any rank, or a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]>, C: Comm>(
        part: &TracePart,
        times: &[T],
        latencies: &Latencies,
        comm: &C,
    ) -> Result<Self, PartError> {
        agree_on_fit(part, times, comm).await?;
        let trace = &part.trace;
        let mut all = Self {
            events: trace.events(),
            ..Self::default()
        };
        for location in part.own().map(LocationId) {
            all.order(
                location,
                trace.locations()[location.index()].times(),
                times[location.index()].as_ref(),
            );
        }
        let mut faults: Vec<Placed> = placed(all.faults.drain(..), 0).collect();
        let sent = sent_elsewhere(part, times, comm).await?;
        for (message, ends) in messages(part, times, &sent) {
            let latency = latencies.between(trace, message.send.location, message.receive.location);
            let fault = all.message(message, ends, latency);
            all.add_fault(fault);
        }
        faults.extend(placed(all.faults.drain(..), 0));
        let mut judge = Judge {
            part,
            times,
            latencies,
            all,
            faults,
            counter: LateCounter::default(),
        };
        for instance in
            (0..trace.instances.len() as u32).filter(|instance| !part.is_shared(*instance))
        {
            judge.hear(instance, &vec![]);
        }
        go_through(part, &mut judge, comm).await?;
        let Judge {
            mut all, faults, ..
        } = judge;
        total(&mut all, comm).await?;
        all.faults = first_of_all(faults, comm).await?;
        Ok(all)
    }
}

/// Returns, for locations of other ranks, the times of their sends to this rank, by mark; entries
/// of other marks are undefined.
pub(super) async fn sent_elsewhere<T: AsRef<[Timestamp<Global>]>, C: Comm>(
    part: &TracePart,
    times: &[T],
    comm: &C,
) -> Result<Vec<Vec<Timestamp<Global>>>, CommError> {
    let (mut out, mut inbox): (Boxes, Boxes) = (boxes(comm), boxes(comm));
    for (location, receiver, mark) in sends_abroad(part) {
        let event = part.trace.locations[location as usize].marks[mark as usize].event;
        let time = times[location as usize].as_ref()[event as usize];
        out[receiver as usize].push(time.as_nanos() as u64);
    }
    exchange(comm, &part.neighbours, &mut out, &mut inbox).await?;
    let marks = (0..).zip(&part.trace.locations);
    let marks = marks.map(|(location, of)| {
        if part.is_own(location) {
            0
        } else {
            of.marks.len()
        }
    });
    let mut sent: Vec<_> = marks.map(|marks| vec![Timestamp::ORIGIN; marks]).collect();
    let mut found: Vec<_> = inbox.iter().map(|words| words.iter()).collect();
    for (location, owner, mark) in foreign_sends(part) {
        if let Some(time) = found[owner as usize].next() {
            sent[location as usize][mark as usize] = Timestamp::from_nanos(*time as i64);
        }
    }
    Ok(sent)
}

/// Returns the messages that are received here, with their send and receive times.
pub(super) fn messages<'a, T: AsRef<[Timestamp<Global>]>>(
    part: &'a TracePart,
    times: &'a [T],
    sent: &'a [Vec<Timestamp<Global>>],
) -> impl Iterator<Item = (Message, [Timestamp<Global>; 2])> + 'a {
    let time = |event: EventId| times[event.location.index()].as_ref()[event.event as usize];
    part.own()
        .flat_map(move |location| part.trace.received_by(LocationId(location)))
        .map(move |(message, mark)| {
            let from = message.send.location;
            let sent = if part.is_own(from.0) {
                time(message.send)
            } else {
                sent[from.index()][mark as usize]
            };
            (message, [sent, time(message.receive)])
        })
}

/// Attaches positions to faults: those of one location are in its order, as are those of one
/// operation, identified by its name.
fn placed(faults: impl Iterator<Item = Fault>, name: u64) -> impl Iterator<Item = Placed> {
    faults.map(move |fault| {
        let place = match fault {
            Fault::Decreasing(event) | Fault::Merged(event) => [0, word_of(event)],
            Fault::Early {
                receive,
                kind: None,
                ..
            } => [1, word_of(receive)],
            Fault::Early { kind: Some(_), .. } => [2, name],
        };
        Placed { place, fault }
    })
}

/// Checks collective operations: those of this rank alone, and its share of the others.
struct Judge<'a, T> {
    part: &'a TracePart,
    times: &'a [T],
    latencies: &'a Latencies,
    all: Verdict,
    faults: Vec<Placed>,
    counter: LateCounter,
}

impl<T: AsRef<[Timestamp<Global>]>> Teller for Judge<'_, T> {
    fn tell(&mut self, instance: u32, words: &mut Vec<u64>) -> Vec<u32> {
        for (rank, slot) in self.slots(instance) {
            let [enter, exit] = [slot.enter, slot.exit].map(|mark| self.event(slot, mark));
            let word = |found: Option<(EventId, i64)>| {
                found.map_or([u64::MAX, 0], |(id, at)| [word_of(id), at as u64])
            };
            words.push(rank.into());
            words.extend([enter, exit].into_iter().flat_map(word));
        }
        vec![self.judge_of(instance)]
    }

    fn hear(&mut self, instance: u32, told: &Told<'_>) {
        if self.part.is_shared(instance) && self.judge_of(instance) != self.part.rank {
            return;
        }
        let part = self.part;
        let place = |location: &u32| part.trace.locations()[*location as usize].place();
        let members = part.team(instance).members.iter();
        let mut parties: Vec<Party> = members
            .map(|member| Party {
                place: place(member),
                enter: None,
                exit: None,
            })
            .collect();
        for (rank, slot) in self.slots(instance) {
            let party = &mut parties[rank as usize];
            [party.enter, party.exit] = [slot.enter, slot.exit].map(|mark| self.event(slot, mark));
        }
        for [rank, enter, entered, exit, left] in told.iter().flat_map(|words| words.as_chunks().0)
        {
            let found = |id: u64, at: u64| (id != u64::MAX).then(|| (event_of(id), at as i64));
            let party = &mut parties[*rank as usize];
            (party.enter, party.exit) = (found(*enter, *entered), found(*exit, *left));
        }
        let kind = part.instance(instance).kind;
        self.all
            .judge(kind, &parties, &mut self.counter, self.latencies);
        let name = part.names[instance as usize];
        self.faults.extend(placed(self.all.faults.drain(..), name));
        if self.faults.len() > 100 * Verdict::MOST_FAULTS {
            keep_first(&mut self.faults);
        }
    }
}

impl<T: AsRef<[Timestamp<Global>]>> Judge<'_, T> {
    /// Returns the rank that checks an operation; ranks take turns.
    fn judge_of(&self, instance: u32) -> u32 {
        let owners = &self.part.team(instance).owners;
        owners[(self.part.names[instance as usize] % owners.len() as u64) as usize]
    }

    /// Returns the members of this rank, by their ranks in the operation.
    fn slots(&self, instance: u32) -> impl Iterator<Item = (u32, Slot)> + use<'_, T> {
        let part = self.part;
        let (slots, kept) = (
            part.trace.slots_of(part.instance(instance)),
            &part.team(instance).kept,
        );
        let in_full = slots.len() == part.team(instance).members.len();
        (0..).zip(kept).map(move |(number, rank)| {
            (*rank, slots[if in_full { *rank as usize } else { number }])
        })
    }

    fn event(&self, slot: Slot, mark: u32) -> Option<(EventId, i64)> {
        let mark = self.part.trace.locations[slot.location as usize]
            .marks
            .get(mark as usize)?;
        let time = self.times[slot.location as usize].as_ref()[mark.event as usize];
        Some((
            EventId {
                location: LocationId(slot.location),
                event: mark.event,
            },
            time.as_nanos(),
        ))
    }
}

/// Drops the faults that will not be reported.
fn keep_first(faults: &mut Vec<Placed>) {
    faults.sort_by_key(|fault| fault.place);
    faults.truncate(Verdict::MOST_FAULTS);
}

/// Returns the first of the faults that all ranks found.
async fn first_of_all<C: Comm>(mut faults: Vec<Placed>, comm: &C) -> Result<Vec<Fault>, CommError> {
    keep_first(&mut faults);
    let all = gather_everywhere(comm, faults.iter().flat_map(words_of).collect()).await?;
    let mut all: Vec<Placed> = all
        .iter()
        .flat_map(|words| words.as_chunks().0)
        .map(placed_of)
        .collect();
    keep_first(&mut all);
    Ok(all.into_iter().map(|placed| placed.fault).collect())
}

const DECREASING: u64 = 0;
const MERGED: u64 = 1;
const MESSAGE: u64 = 2;
/// Messages come first, then collective operations of all kinds.
const OPERATION: u64 = 3;

fn words_of(placed: &Placed) -> [u64; 6] {
    let [first, second] = placed.place;
    let [what, send, receive, by] = match placed.fault {
        Fault::Decreasing(event) => [DECREASING, 0, word_of(event), 0],
        Fault::Merged(event) => [MERGED, 0, word_of(event), 0],
        Fault::Early {
            send,
            receive,
            by,
            kind,
        } => [
            kind.map_or(MESSAGE, |kind| OPERATION + kind as u64),
            word_of(send),
            word_of(receive),
            by.as_nanos() as u64,
        ],
    };
    [first, second, what, send, receive, by]
}

fn placed_of([first, second, what, send, receive, by]: &[u64; 6]) -> Placed {
    let (send, receive, by) = (
        event_of(*send),
        event_of(*receive),
        Duration::from_nanos(*by as i64),
    );
    let fault = match *what {
        DECREASING => Fault::Decreasing(receive),
        MERGED => Fault::Merged(receive),
        MESSAGE => Fault::Early {
            send,
            receive,
            by,
            kind: None,
        },
        operation => Fault::Early {
            send,
            receive,
            by,
            kind: CollectiveKind::from_number(operation - OPERATION),
        },
    };
    Placed {
        place: [*first, *second],
        fault,
    }
}
