//! Messages of one channel: from one process to another, in one communicator, with one tag. They do
//! not overtake each other.
//!
//! Every location lists its sends and receives by channel while they are added. The `i`-th send of
//! a channel then belongs to its `i`-th receive, so both lists are read in order, by one thread for
//! each location.

use rustc_hash::FxHashMap;

use super::definitions::ChannelEnd;
use super::trace::{Mark, Role};

/// A mark, given by its location and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkId {
    pub(super) location: u32,
    pub(super) mark: u32,
}

/// Channels of a location, while its events are added.
#[derive(Debug, Default)]
pub(super) struct LocationChannels {
    numbers: FxHashMap<ChannelEnd, u32>,
    /// Channels of the last send and of the last receive.
    last: [Option<(ChannelEnd, u32)>; 2],
    /// Number of messages of each channel.
    counts: Vec<u32>,
    /// Channel of each message, in the order of the marks.
    of_messages: Vec<u32>,
    /// Positions of the messages in the whole trace, if the process has several locations. They are
    /// known for the last messages only: earlier ones were added while the process had one
    /// location.
    positions: Vec<u64>,
}

impl LocationChannels {
    #[inline]
    pub(super) fn add(&mut self, end: ChannelEnd, position: Option<u64>) {
        let last = &mut self.last[usize::from(end.sends)];
        let number = match last {
            Some((known, number)) if *known == end => *number,
            _ => {
                let next = self.counts.len() as u32;
                let number = *self.numbers.entry(end).or_insert(next);
                if number == next {
                    self.counts.push(0);
                }
                *last = Some((end, number));
                number
            }
        };
        self.counts[number as usize] += 1;
        self.of_messages.push(number);
        self.positions.extend(position);
    }

    pub(super) fn reserve(&mut self, messages: usize) {
        self.of_messages.reserve_exact(messages);
    }

    /// Sorts the messages by channel.
    fn into_lists(self, location: u32, marks: &[Mark]) -> ChannelLists {
        let Self {
            numbers,
            mut counts,
            of_messages,
            positions,
            ..
        } = self;
        let mut start = 0;
        for count in &mut counts {
            (start, *count) = (start + *count, start);
        }
        let mut lists = vec![0; of_messages.len()];
        let messages = (0..).zip(marks);
        let messages =
            messages.filter(|(_, mark)| matches!(mark.role(), Role::Send | Role::Receive));
        for ((mark, _), channel) in messages.zip(&of_messages) {
            let next = &mut counts[*channel as usize];
            lists[*next as usize] = mark;
            *next += 1;
        }
        // The start of each channel has advanced to its end.
        ChannelLists {
            location,
            numbers,
            ends: counts,
            marks: lists,
            of_messages,
            positions,
        }
    }
}

/// Marks of the messages of a location, by channel and in order.
#[derive(Debug)]
struct ChannelLists {
    location: u32,
    numbers: FxHashMap<ChannelEnd, u32>,
    ends: Vec<u32>,
    marks: Vec<u32>,
    of_messages: Vec<u32>,
    positions: Vec<u64>,
}

impl ChannelLists {
    fn list(&self, channel: u32) -> &[u32] {
        let channel = channel as usize;
        let start = channel.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.marks[start as usize..self.ends[channel] as usize]
    }

    /// Returns the positions of the messages of a channel; 0 where none was noted.
    fn positions(&self, channel: u32) -> impl Iterator<Item = u64> + '_ {
        let unknown = self.of_messages.len() - self.positions.len();
        let positions = std::iter::repeat_n(0, unknown).chain(self.positions.iter().copied());
        let all = self.of_messages.iter().zip(positions);
        all.filter(move |(of, _)| **of == channel)
            .map(|(_, position)| position)
    }
}

/// Messages of a process, by channel and in order.
#[derive(Debug, Default)]
pub(super) struct ProcessChannels {
    locations: Vec<ChannelLists>,
    /// Messages of all locations of a process with several locations, in the order in which they
    /// were added.
    merged: FxHashMap<ChannelEnd, Vec<MarkId>>,
}

/// Messages at one end of a channel, in order.
#[derive(Clone, Copy, Debug)]
enum Messages<'a> {
    OfOne(u32, &'a [u32]),
    Merged(&'a [MarkId]),
}

impl Messages<'_> {
    #[inline]
    fn get(self, index: usize) -> Option<MarkId> {
        match self {
            Self::OfOne(location, marks) => marks.get(index).map(|mark| MarkId {
                location,
                mark: *mark,
            }),
            Self::Merged(marks) => marks.get(index).copied(),
        }
    }
}

impl ProcessChannels {
    /// Returns the messages of a process from the channels and marks of all of its locations.
    pub(super) fn new<'a>(
        locations: impl IntoIterator<Item = (u32, LocationChannels, &'a [Mark])>,
    ) -> Self {
        let locations: Vec<_> = locations
            .into_iter()
            .map(|(location, channels, marks)| channels.into_lists(location, marks))
            .collect();
        let mut merged: FxHashMap<ChannelEnd, Vec<(u64, MarkId)>> = FxHashMap::default();
        if locations.len() > 1 {
            for lists in &locations {
                for (end, channel) in &lists.numbers {
                    let marks = lists.list(*channel).iter();
                    let ids = marks.map(|mark| MarkId {
                        location: lists.location,
                        mark: *mark,
                    });
                    merged
                        .entry(*end)
                        .or_default()
                        .extend(lists.positions(*channel).zip(ids));
                }
            }
        }
        let in_order = |mut all: Vec<(u64, MarkId)>| {
            all.sort_by_key(|(position, _)| *position);
            all.into_iter().map(|(_, id)| id).collect()
        };
        Self {
            locations,
            merged: merged
                .into_iter()
                .map(|(end, all)| (end, in_order(all)))
                .collect(),
        }
    }

    fn messages(&self, end: ChannelEnd) -> Option<Messages<'_>> {
        match &self.locations[..] {
            [lists] => {
                let channel = lists.numbers.get(&end)?;
                Some(Messages::OfOne(lists.location, lists.list(*channel)))
            }
            _ => self.merged.get(&end).map(|marks| Messages::Merged(marks)),
        }
    }

    /// Returns all channel ends of the process in a fixed order, with their messages in order.
    pub(super) fn all(&self) -> Vec<(ChannelEnd, Vec<MarkId>)> {
        let ends: Vec<ChannelEnd> = match &self.locations[..] {
            [lists] => lists.numbers.keys().copied().collect(),
            _ => self.merged.keys().copied().collect(),
        };
        let mut all: Vec<_> = ends
            .into_iter()
            .filter_map(|end| {
                let messages = self.messages(end)?;
                Some((end, (0..).map_while(|index| messages.get(index)).collect()))
            })
            .collect();
        all.sort_unstable_by_key(|(end, _)| *end);
        all
    }

    /// Pairs the messages of one location, given by its index in `process`, with those of
    /// `peer(process)`, and hands over messages without a partner. Messages for which there is no
    /// peer are left unchanged.
    pub(super) fn pair<'a>(
        &self,
        index: usize,
        process: u32,
        marks: &mut [Mark],
        peer: impl Fn(u32) -> Option<&'a Self>,
        mut unmatched: impl FnMut(MarkId),
    ) {
        let lists = &self.locations[index];
        for (end, channel) in &lists.numbers {
            let Some(other) = peer(end.peer) else {
                continue;
            };
            let other = other.messages(end.mirrored(process));
            let mut pair = |index: usize, mark: u32| match other.and_then(|other| other.get(index))
            {
                Some(id) => {
                    let mark = &mut marks[mark as usize];
                    *mark = mark.with(id.location, id.mark);
                }
                None => unmatched(MarkId {
                    location: lists.location,
                    mark,
                }),
            };
            match self.merged.get(end) {
                None => (0..)
                    .zip(lists.list(*channel))
                    .for_each(|(i, mark)| pair(i, *mark)),
                Some(merged) => (0..)
                    .zip(merged)
                    .filter(|(_, id)| id.location == lists.location)
                    .for_each(|(i, id)| pair(i, id.mark)),
            }
        }
    }
}
