//! Messages of one channel: from one process to another, in one communicator, with one tag. They do
//! not overtake each other.
//!
//! While events are added, every location only notes the peer, communicator and tag of each message.
//! Messages of a process are then sorted by channel. The `i`-th send of a channel belongs to its
//! `i`-th receive, so both lists are read in order. Processes in turn meet the channels of another
//! process in the order of that list, so channels are not searched for either.

use rustc_hash::FxHashMap;

use super::LocationId;
use super::definitions::ChannelEnd;
use super::trace::{Mark, Role};

/// A mark, given by its location and its index there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkId {
    pub(super) location: u32,
    pub(super) mark: u32,
}

/// Communicator and tag of messages.
type Label = (u32, i32);

/// What the marks of a location's messages do not have room for, while its events are added.
#[derive(Debug, Default)]
pub(super) struct LocationMessages {
    /// Numbers of labels. The mark of a message has one in the place of its partner.
    labels: FxHashMap<Label, u32>,
    last: Option<(Label, u32)>,
    /// Positions of the messages in the whole trace, if the process has several locations. They are
    /// known for the last messages only: earlier ones were added while the process had one
    /// location.
    positions: Vec<u64>,
}

impl LocationMessages {
    /// Returns the mark of the next message.
    #[inline]
    pub(super) fn add(&mut self, event: u32, end: ChannelEnd, position: Option<u64>) -> Mark {
        let label = (end.communicator, end.tag);
        let number = match self.last {
            Some((known, number)) if known == label => number,
            _ => {
                let next = self.labels.len() as u32;
                let number = *self.labels.entry(label).or_insert(next);
                self.last = Some((label, number));
                number
            }
        };
        self.positions.extend(position);
        let role = if end.sends { Role::Send } else { Role::Receive };
        Mark::new(event, role, end.peer, number)
    }

    /// Returns the channel ends and indices of the messages among the marks of the location.
    fn ends<'a>(&self, marks: &'a [Mark]) -> impl Iterator<Item = (ChannelEnd, u32)> + use<'a> {
        let mut labels = vec![Label::default(); self.labels.len()];
        for (label, number) in &self.labels {
            labels[*number as usize] = *label;
        }
        (0..).zip(marks).filter_map(move |(index, mark)| {
            let sends = match mark.role() {
                Role::Send => true,
                Role::Receive => false,
                _ => return None,
            };
            let (communicator, tag) = labels[mark.partner as usize];
            let end = ChannelEnd {
                peer: mark.peer(),
                communicator,
                tag,
                sends,
            };
            Some((end, index))
        })
    }
}

/// Messages of a process, by channel and in order.
#[derive(Debug)]
pub(super) struct ProcessChannels {
    /// Channel ends in order, each with the end of its messages.
    ends: Vec<(ChannelEnd, usize)>,
    messages: Vec<MarkId>,
}

impl ProcessChannels {
    /// Sorts the messages of all locations of a process.
    pub(super) fn new<'a>(
        locations: impl ExactSizeIterator<Item = (LocationId, &'a LocationMessages, &'a [Mark])>,
    ) -> Self {
        let has_several = locations.len() > 1;
        let mut numbers: FxHashMap<ChannelEnd, usize> = FxHashMap::default();
        let (mut ends, mut found) = (vec![], vec![]);
        for (LocationId(location), messages, marks) in locations {
            let first = found.len();
            for (end, mark) in messages.ends(marks) {
                let channel = *numbers.entry(end).or_insert_with(|| {
                    ends.push((end, 0));
                    ends.len() - 1
                });
                ends[channel].1 += 1;
                found.push((0, channel as u32, MarkId { location, mark }));
            }
            let with_position = found.len() - messages.positions.len();
            for (message, position) in found[with_position.max(first)..]
                .iter_mut()
                .zip(&messages.positions)
            {
                message.0 = *position;
            }
        }
        if has_several {
            found.sort_by_key(|(position, ..)| *position);
        }
        let mut order: Vec<usize> = (0..ends.len()).collect();
        order.sort_unstable_by_key(|channel| ends[*channel].0);
        let (mut next, mut start) = (vec![0; ends.len()], 0);
        let in_order = order.into_iter().map(|channel| {
            let (end, count) = ends[channel];
            next[channel] = start;
            start += count;
            (end, start)
        });
        let in_order = in_order.collect();
        let mut messages = vec![MarkId::default(); found.len()];
        for (_, channel, id) in found {
            let next = &mut next[channel as usize];
            messages[*next] = id;
            *next += 1;
        }
        Self {
            ends: in_order,
            messages,
        }
    }

    fn of(&self, index: usize) -> &[MarkId] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.messages[start..self.ends[index].1]
    }

    /// Returns all channel ends of the process in order, with their messages in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (ChannelEnd, Vec<MarkId>)> + '_ {
        let ends = self.ends.iter().enumerate();
        ends.map(|(index, (end, _))| (*end, self.of(index).to_vec()))
    }

    /// Hands over each message of `process`, which these are, with its partner, if there is one.
    /// `number` returns the number of a peer among the cursors; messages with others are left out.
    pub(super) fn pair(
        &self,
        process: u32,
        cursors: &mut [Cursor<'_>],
        number: impl Fn(u32) -> Option<usize>,
        mut paired: impl FnMut(MarkId, Option<MarkId>),
    ) {
        for (index, (end, _)) in self.ends.iter().enumerate() {
            let Some(peer) = number(end.peer) else {
                continue;
            };
            let others = cursors[peer].messages(end.mirrored(process));
            for (index, id) in self.of(index).iter().enumerate() {
                paired(*id, others.get(index).copied());
            }
        }
    }
}

/// Position in the channels of a process, which all processes in turn are paired with.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    channels: &'a ProcessChannels,
    next: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(channels: &'a ProcessChannels) -> Self {
        Self { channels, next: 0 }
    }

    /// Returns the messages of a channel end, none if the process does not have it. No end of
    /// another peer, communicator or tag may follow that comes before this one.
    fn messages(&mut self, end: ChannelEnd) -> &'a [MarkId] {
        let ends = &self.channels.ends;
        let either = |end: &ChannelEnd| (end.peer, end.communicator, end.tag);
        while ends
            .get(self.next)
            .is_some_and(|(found, _)| either(found) < either(&end))
        {
            self.next += 1;
        }
        let mut both = (self.next..ends.len()).take(2);
        let found = both.find(|index| ends[*index].0 == end);
        found.map_or(&[], |index| self.channels.of(index))
    }
}
