//! Verification of times that ranks share: by each rank for its own times, independent of the data
//! structures of the correction.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::check::late::{LateCounter, Party};
use super::super::check::{Fault, Verdict};
use super::super::check::{Findings, findings, time_of};
use super::super::trace::Slot;
use super::super::{CollectiveKind, EventId, Latencies, LocationId};
use super::backward::{foreign_sends, sends_abroad};
use super::exchange::{Boxes, boxes, exchange, gather_everywhere};
use super::operations::{Teller, Told, go_through};
use super::totals::{agree_on_fit, total};
use super::words::{event_of, word_of};
use super::{CorrectionError, TracePart};
use downbeat_sync::{Comm, CommError};

impl Verdict {
    /// Does the same as [`new`](Self::new) for a trace that ranks share; collective, with the same
    /// result on all ranks. `times` are those of this rank's locations, and empty for others.
    ///
    /// # Errors
    /// If the number of times is not that of events on any rank, or a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]> + Sync, C: Comm>(
        part: &TracePart,
        times: &[T],
        latencies: &Latencies,
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        Self::of_part_on(part, times, latencies, 1, comm).await
    }

    /// Does the same as [`of_part`](Self::of_part) on this number of threads per rank.
    pub(crate) async fn of_part_on<T: AsRef<[Timestamp<Global>]> + Sync, C: Comm>(
        part: &TracePart,
        times: &[T],
        latencies: &Latencies,
        workers: usize,
        comm: &C,
    ) -> Result<Self, CorrectionError> {
        agree_on_fit(part, times, comm).await?;
        let sent = sent_elsewhere(part, times, comm).await?;
        let sent = |send: EventId, mark: u32| sent_at(part, times, &sent, send, mark);
        let is_own = |instance| !part.is_shared(instance);
        let found = findings(&part.trace, times, latencies, workers, sent, is_own);
        let counter = LateCounter::new(part.trace.clock_of());
        let mut judge = Judge {
            part,
            times,
            latencies,
            found,
            counter,
        };
        go_through(part, &mut judge, comm).await?;
        let mut found = judge.found;
        total(&mut found.counts, comm).await?;
        let mine = found.faults().flat_map(words_of).collect();
        let all = gather_everywhere(comm, mine).await?;
        let others = (0..).zip(&all).filter(|(rank, _)| *rank != comm.rank());
        for words in others.flat_map(|(_, words)| words.as_chunks().0) {
            let (class, (at, fault)) = fault_of(words);
            found.add(class, at, fault);
        }
        Ok(found.finish())
    }
}

/// Returns, for locations of other ranks, the times of their sends to this rank, by mark; entries
/// of other marks are undefined.
pub(super) async fn sent_elsewhere<T: AsRef<[Timestamp<Global>]>, C: Comm>(
    part: &TracePart,
    times: &[T],
    comm: &C,
) -> Result<Vec<Vec<Timestamp<Global>>>, CommError> {
    if comm.size() == 1 {
        return Ok(vec![]);
    }
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

/// Returns the time of a send, given the times of those elsewhere.
pub(super) fn sent_at<T: AsRef<[Timestamp<Global>]>>(
    part: &TracePart,
    times: &[T],
    sent: &[Vec<Timestamp<Global>>],
    send: EventId,
    mark: u32,
) -> Timestamp<Global> {
    match part.is_own(send.location.0) {
        true => time_of(times, send),
        false => sent[send.location.index()][mark as usize],
    }
}

/// Checks this rank's share of the collective operations of several ranks.
struct Judge<'a, T> {
    part: &'a TracePart,
    times: &'a [T],
    latencies: &'a Latencies,
    found: Findings,
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
        if self.judge_of(instance) != self.part.rank {
            return;
        }
        let part = self.part;
        let members = part.team(instance).members.iter();
        let mut parties: Vec<Party> = members
            .map(|member| Party {
                site: part.trace.site(LocationId(*member)),
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
        let Self {
            found,
            counter,
            latencies,
            ..
        } = self;
        found.collective(kind, &parties, counter, latencies);
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

const DECREASING: u64 = 0;
const MERGED: u64 = 1;
const REORDERED: u64 = 2;
const MESSAGE: u64 = 3;
/// Messages come first, then collective operations of all kinds.
const OPERATION: u64 = 4;

/// Violation with its kind and position.
type PlacedFault = (usize, ((u64, u32), Fault));

fn words_of((class, ((place, index), fault)): PlacedFault) -> [u64; 7] {
    let [what, send, receive, by] = match fault {
        Fault::Decreasing(event) => [DECREASING, 0, word_of(event), 0],
        Fault::Merged(event) => [MERGED, 0, word_of(event), 0],
        Fault::Reordered(event) => [REORDERED, 0, word_of(event), 0],
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
    [class as u64, place, index.into(), what, send, receive, by]
}

fn fault_of([class, place, index, what, send, receive, by]: &[u64; 7]) -> PlacedFault {
    let (send, receive) = (event_of(*send), event_of(*receive));
    let by = Duration::from_nanos(*by as i64);
    let fault = match *what {
        DECREASING => Fault::Decreasing(receive),
        MERGED => Fault::Merged(receive),
        REORDERED => Fault::Reordered(receive),
        MESSAGE => Fault::Early {
            send,
            receive,
            by,
            kind: None,
        },
        operation => {
            let kind = CollectiveKind::from_number(operation - OPERATION);
            Fault::Early {
                send,
                receive,
                by,
                kind,
            }
        }
    };
    (*class as usize, ((*place, *index as u32), fault))
}
