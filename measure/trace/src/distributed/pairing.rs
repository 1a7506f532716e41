//! Matching across ranks, which tell each other the ends of their channels and summaries of their
//! operations.

use std::collections::{BTreeMap, HashMap};

use downbeat_sync::Comm;

use super::super::channels::MarkId;
use super::super::definitions::ChannelEnd;
use super::super::teams::{Operations, Summary, Track, Tracks};
use super::super::trace::{Mark, Role};
use super::super::{ArrayStore, CollectiveKind, EventId, Location, LocationId};
use super::CorrectionError;
use super::exchange::{boxes, exchange, others};
use super::part::Team;
use super::words::{event_of, word_of};

/// Messages of this rank's processes in channels to other ranks, by process and channel.
pub(super) type Abroad = BTreeMap<(u32, ChannelEnd), Vec<MarkId>>;

/// Pairs messages with other ranks, which exchange the events at their ends of shared channels. The
/// other ends become marks of locations of other ranks, in the order of their events.
pub(super) async fn pair_abroad<C: Comm>(
    locations: &mut [Location],
    unmatched: &mut Vec<MarkId>,
    abroad: &Abroad,
    owner_of: impl Fn(u32) -> u32,
    comm: &C,
) -> Result<(), CorrectionError> {
    let (mut out, mut inbox) = (boxes(comm), boxes(comm));
    for ((process, end), messages) in abroad {
        let to = &mut out[owner_of(end.peer) as usize];
        let within = u64::from(end.communicator) << 32 | u64::from(end.tag as u32);
        let count = messages.len() as u64 | u64::from(end.sends) << 63;
        to.extend([
            u64::from(*process) << 32 | u64::from(end.peer),
            within,
            count,
        ]);
        to.extend(messages.iter().map(|id| {
            let mark = locations[id.location as usize].marks[id.mark as usize];
            word_of(EventId {
                location: LocationId(id.location),
                event: mark.event,
            })
        }));
    }
    exchange(comm, &others(comm), &mut out, &mut inbox).await?;
    let mut others: HashMap<(u32, ChannelEnd), &[u64]> = HashMap::new();
    for mut words in inbox.iter().map(Vec::as_slice) {
        while let [ends, within, count, rest @ ..] = words {
            let end = ChannelEnd {
                peer: *ends as u32,
                communicator: (within >> 32) as u32,
                tag: *within as u32 as i32,
                sends: count >> 63 == 1,
            };
            let process = (ends >> 32) as u32;
            let count = ((count << 1 >> 1) as usize).min(rest.len());
            let (events, rest) = rest.split_at(count);
            // Seen from this rank's process.
            others.insert((end.peer, end.mirrored(process)), events);
            words = rest;
        }
    }
    let mut ends: Vec<(EventId, MarkId, Role)> = vec![];
    for ((process, end), messages) in abroad {
        let events = others.get(&(*process, *end)).copied().unwrap_or_default();
        let role = if end.sends { Role::Receive } else { Role::Send };
        let paired = messages.iter().zip(events);
        ends.extend(paired.map(|(id, event)| (event_of(*event), *id, role)));
        unmatched.extend(messages.iter().skip(events.len()));
    }
    ends.sort_unstable_by_key(|(event, ..)| *event);
    for (
        EventId {
            location: LocationId(location),
            event,
        },
        id,
        role,
    ) in ends
    {
        let marks = &mut locations[location as usize].marks;
        let other = marks.len() as u32;
        marks.push(Mark::new(event, role, id.location, id.mark))?;
        let mark = &mut locations[id.location as usize].marks[id.mark as usize];
        *mark = mark.with(location, other);
    }
    Ok(())
}

/// Number of integers that encode a [`Summary`].
const SUMMARY: usize = 9;

/// Merges the operations of all ranks with members in a team.
pub(super) async fn merge_tracks<C: Comm>(
    tracks: &mut Tracks,
    teams: &[Team],
    comm: &C,
) -> Result<(), CorrectionError> {
    let (mut out, mut inbox) = (boxes(comm), boxes(comm));
    let others = others(comm);
    for ((team, track), operations) in &tracks.0 {
        let of = u64::from(*team) << 32 | *track as u64;
        let mut words = vec![of, operations.summaries.len() as u64];
        words.extend(operations.summaries.iter().flat_map(words_of_summary));
        let owners = &teams[*team as usize].owners;
        for owner in owners.iter().filter(|owner| **owner != comm.rank()) {
            out[*owner as usize].extend_from_slice(&words);
        }
    }
    exchange(comm, &others, &mut out, &mut inbox).await?;
    for mut words in inbox.iter().map(Vec::as_slice) {
        while let [of, summaries, rest @ ..] = words {
            let (team, track) = ((of >> 32) as u32, Track::ALL[(*of as u32 as usize).min(2)]);
            let operations = tracks
                .0
                .entry((team, track))
                .or_insert_with(|| Operations::new(&ArrayStore::MEMORY));
            let (summaries, rest) = rest.split_at((*summaries as usize * SUMMARY).min(rest.len()));
            for (index, summary) in (0..).zip(summaries.as_chunks().0) {
                operations.merge(index, &summary_of(summary))?;
            }
            words = rest;
        }
    }
    Ok(())
}

fn words_of_summary(summary: &Summary) -> [u64; SUMMARY] {
    let stated = |stated: Option<(u64, EventId, CollectiveKind, u32)>| {
        stated.map_or([u64::MAX; 3], |(position, event, kind, root)| {
            [
                position,
                word_of(event),
                (kind as u64) << 32 | u64::from(root),
            ]
        })
    };
    let (position, event) = summary.first;
    let [s0, s1, s2] = stated(summary.stated);
    let [c0, c1, c2] = stated(summary.conflict);
    let counts = u64::from(summary.enters) << 32 | u64::from(summary.exits);
    [position, word_of(event), s0, s1, s2, c0, c1, c2, counts]
}

fn summary_of(words: &[u64; SUMMARY]) -> Summary {
    let stated = |position: u64, event: u64, says: u64| {
        let kind = CollectiveKind::from_number(says >> 32)?;
        (position != u64::MAX).then_some((position, event_of(event), kind, says as u32))
    };
    let [position, event, s0, s1, s2, c0, c1, c2, counts] = *words;
    Summary {
        first: (position, event_of(event)),
        stated: stated(s0, s1, s2),
        conflict: stated(c0, c1, c2),
        enters: (counts >> 32) as u32,
        exits: counts as u32,
    }
}
