//! Messages of one channel: from one process to another, in one communicator, with one tag.
//! They do not overtake each other. Where several threads of a process send or receive in
//! one channel, they are in the order of their times.
//!
//! While events are added, every location only notes the peer, communicator and tag of each message.
//! Messages of a process are then sorted by channel. The `i`-th send of a channel belongs to its
//! `i`-th receive, so both lists are read in order. Processes in turn meet the channels of another
//! process in the order of that list, so channels are not searched for either.

use rustc_hash::FxHashMap;

use super::definitions::ChannelEnd;
use super::posts::{Posts, Turn};
use super::trace::{Location, Mark, Role};
use super::{Array, ArrayStore, LocationId, NoRoom};

/// A mark, given by its location and its index there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MarkId {
    pub(super) location: u32,
    pub(super) mark: u32,
}

/// Events of one location.
#[derive(Debug)]
pub(super) struct LocationEvents {
    pub(super) id: LocationId,
    pub(super) events: Location,
    pub(super) messages: LocationMessages,
}

/// Communicator and tag of messages.
type Label = (u32, i32);

/// Messages of a location while its events are added, as far as its marks have no room for them.
#[derive(Debug)]
pub(super) struct LocationMessages {
    /// Numbers of labels. The mark of a message has one of them in the place of its partner.
    labels: FxHashMap<Label, u32>,
    last: Option<(Label, u32)>,
    /// Number of messages.
    count: u32,
    /// Messages whose receives were posted before they completed, by their indices.
    pub(super) posted: Array<(u32, Turn)>,
}

impl LocationMessages {
    /// Returns no messages.
    pub(super) fn new(store: &ArrayStore) -> Self {
        Self {
            labels: FxHashMap::default(),
            last: None,
            count: 0,
            posted: Array::new(store.clone()),
        }
    }

    /// Returns the mark of the next message.
    #[inline]
    pub(super) fn add(&mut self, event: u32, end: ChannelEnd) -> Mark {
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
        self.count += 1;
        let role = if end.sends { Role::Send } else { Role::Receive };
        Mark::new(event, role, end.peer, number)
    }

    /// Takes the turn of the next message from the post of its receive, if it has a request whose
    /// post is known by now.
    #[inline]
    pub(super) fn complete_post(
        &mut self,
        posts: &mut Posts,
        request: Option<u64>,
        location: u32,
    ) -> Result<(), NoRoom> {
        let turn = request.and_then(|request| posts.complete(request, [location, self.count]));
        match turn {
            Some(turn) => self.posted.push((self.count, turn)),
            None => Ok(()),
        }
    }

    /// Returns all labels by their numbers.
    fn labels(&self) -> Vec<Label> {
        let mut labels = vec![Label::default(); self.labels.len()];
        for (label, number) in &self.labels {
            labels[*number as usize] = *label;
        }
        labels
    }
}

impl LocationEvents {
    /// Returns the messages, with the numbers of their channels.
    fn messages(&self) -> impl Iterator<Item = (u32, MarkId)> {
        let location = self.id.0;
        let marks = (0..).zip(&self.events.marks);
        let messages = marks.filter(|(_, mark)| is_message(**mark));
        messages.map(move |(mark, found)| (found.partner, MarkId { location, mark }))
    }

    /// Returns the turns of the messages: those of their posts, or else their own.
    fn turns(&self) -> impl Iterator<Item = Turn> {
        let events = self.events.marks.iter().filter(|mark| is_message(**mark));
        let own = events.map(|mark| (self.events.times[mark.event as usize], mark.event));
        let mut posted = self.messages.posted.iter().peekable();
        (0..).zip(own).map(move |(message, own)| {
            let post = posted.next_if(|(of, _)| *of == message);
            post.map_or(own, |(_, turn)| *turn)
        })
    }
}

fn is_message(mark: Mark) -> bool {
    matches!(mark.role(), Role::Send | Role::Receive)
}

/// Messages of a process, by channel and in order.
#[derive(Debug)]
pub(super) struct ProcessChannels {
    /// Channel ends in order, each with the end of its messages.
    ends: Vec<(ChannelEnd, usize)>,
    messages: Array<MarkId>,
}

impl ProcessChannels {
    /// Sorts the messages of all locations of a process. Their marks get the numbers of their
    /// channels in the place of their partners.
    pub(super) fn new(
        locations: &mut [LocationEvents],
        store: &ArrayStore,
    ) -> Result<Self, NoRoom> {
        let mut numbers: FxHashMap<ChannelEnd, u32> = FxHashMap::default();
        let mut counts: Vec<(ChannelEnd, usize)> = vec![];
        for LocationEvents {
            messages, events, ..
        } in &mut *locations
        {
            // Those whose posts were added after them come last.
            messages.posted.sort_unstable();
            let labels = messages.labels();
            for mark in events.marks.iter_mut().filter(|mark| is_message(**mark)) {
                let (communicator, tag) = labels[mark.partner as usize];
                let end = ChannelEnd {
                    peer: mark.peer(),
                    communicator,
                    tag,
                    sends: mark.role() == Role::Send,
                };
                let next = counts.len() as u32;
                let channel = *numbers.entry(end).or_insert(next);
                if channel == next {
                    counts.push((end, 0));
                }
                counts[channel as usize].1 += 1;
                *mark = mark.with(end.peer, channel);
            }
        }
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_unstable_by_key(|channel| counts[*channel].0);
        let (mut next, mut start) = (vec![0; counts.len()], 0);
        let mut ends = Vec::with_capacity(counts.len());
        for channel in order {
            let (end, count) = counts[channel];
            next[channel] = start;
            start += count;
            ends.push((end, start));
        }
        let none = (0..start).map(|_| MarkId::default());
        let mut messages = Array::collect(store, none)?;
        each_message(locations, store, |channel, id| {
            let next = &mut next[channel as usize];
            messages[*next] = id;
            *next += 1;
        })?;
        Ok(Self { ends, messages })
    }

    fn of(&self, index: usize) -> &[MarkId] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.messages[start..self.ends[index].1]
    }

    /// Adds a channel end, which no other one may follow in order, with its messages.
    pub(super) fn push(
        &mut self,
        end: ChannelEnd,
        messages: impl Iterator<Item = MarkId>,
    ) -> Result<(), NoRoom> {
        for message in messages {
            self.messages.push(message)?;
        }
        self.ends.push((end, self.messages.len()));
        Ok(())
    }

    /// Returns all channel ends of the process in order, with their messages in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (ChannelEnd, &[MarkId])> {
        let ends = self.ends.iter().enumerate();
        ends.map(|(index, (end, _))| (*end, self.of(index)))
    }

    /// Hands over each message of `process`, which these are, with its partner, if there is one.
    /// `number` returns the number of a peer among the cursors.
    pub(super) fn pair(
        &self,
        process: u32,
        cursors: &mut [Cursor<'_>],
        number: impl Fn(u32) -> usize,
        mut paired: impl FnMut(MarkId, Option<MarkId>),
    ) {
        for (index, (end, _)) in self.ends.iter().enumerate() {
            let others = cursors[number(end.peer)].messages(end.mirrored(process));
            for (index, id) in self.of(index).iter().enumerate() {
                paired(*id, others.get(index).copied());
            }
        }
    }
}

/// Hands over the messages of a process in their order, with the numbers of their channels.
fn each_message(
    locations: &[LocationEvents],
    store: &ArrayStore,
    mut take: impl FnMut(u32, MarkId),
) -> Result<(), NoRoom> {
    if let [location] = locations
        && location.messages.posted.is_empty()
    {
        location
            .messages()
            .for_each(|(channel, id)| take(channel, id));
        return Ok(());
    }
    let mut all: Array<(Turn, (u32, MarkId))> = Array::new(store.clone());
    for location in locations {
        for message in location.turns().zip(location.messages()) {
            all.push(message)?;
        }
    }
    // In their order within a turn: a sort that needs no memory of its own.
    all.sort_unstable_by_key(|(turn, (_, id))| (*turn, id.location, id.mark));
    all.iter()
        .for_each(|(_, (channel, id))| take(*channel, *id));
    Ok(())
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
