//! Encoding of events with their links, for files between two passes.

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::varint::{from_signed, to_signed};

use super::super::teams::Track;
use super::super::{CollectiveKind, EventId, LocationId};
use super::{Link, Linked, StreamedOperation, SurveyedEvent};
use crate::formats::bytes::{put, take};

/// State of one end of a sequence of encoded events. Both ends begin with the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventCodec {
    time: i64,
    position: u64,
    location: u32,
    event: u32,
}

/// Kinds of links, in the low bits of the first byte.
mod kind {
    pub(super) const NOTHING: u8 = 0;
    pub(super) const SEND: u8 = 1;
    pub(super) const RECEIVE: u8 = 2;
    pub(super) const EARLY_RECEIVE: u8 = 3;
    pub(super) const LATE_SEND: u8 = 4;
    pub(super) const ENTER: u8 = 5;
    pub(super) const EXIT: u8 = 6;
    pub(super) const ALL: u8 = 7;
}

/// Flag of the first byte: the location, or else the position, is not the expected one.
const ELSEWHERE: u8 = 1 << 3;
/// Place of the width of the time in the first byte: the logarithm of its number of bytes.
const WIDTH: u8 = 4;
/// Flags of operations in the first byte.
const FIRST: u8 = 1 << 6;
const LAST: u8 = 1 << 7;
/// Flags of exits in a byte of their own, and the places of the track and the kind there.
const SENDS: u8 = 1;
const RECEIVES: u8 = 2;
const TRACK: u8 = 2;
const KIND: u8 = 4;

impl EventCodec {
    /// Encodes the next event of one location.
    #[inline]
    pub fn put_surveyed(&mut self, event: &SurveyedEvent, to: &mut Vec<u8>) {
        let gap = event.position.wrapping_sub(self.position);
        self.position = event.position + 1;
        let time = event.time.as_nanos();
        // Times of a location do not decrease.
        let elapsed = time.wrapping_sub(self.time) as u64;
        self.time = time;
        put_start(event.link, gap != 0, elapsed, to);
        if gap != 0 {
            put(to, gap);
        }
        match message(event.link) {
            Some(message) => to.extend_from_slice(&message.to_le_bytes()),
            None => put_operation(event.link, to),
        }
    }

    /// Decodes the next event of a location; `None` if the bytes are not one.
    #[inline]
    pub fn take_surveyed(
        &mut self,
        location: LocationId,
        from: &mut &[u8],
    ) -> Option<SurveyedEvent> {
        let (first, elapsed) = take_start(from)?;
        self.time = self.time.wrapping_add(elapsed as i64);
        if first & ELSEWHERE != 0 {
            self.position = self.position.wrapping_add(take(from)?);
        }
        let link = take_link(first, from, |from| {
            let (bytes, rest) = from.split_first_chunk()?;
            *from = rest;
            Some(u64::from_le_bytes(*bytes))
        })?;
        let position = self.position;
        self.position += 1;
        let event = self.event;
        self.event += 1;
        Some(SurveyedEvent {
            id: EventId { location, event },
            time: Timestamp::from_nanos(self.time),
            position,
            link,
        })
    }

    /// Encodes the next event of all locations, whose messages have 32-bit numbers.
    #[inline]
    pub fn put_linked(&mut self, event: Linked, time: Timestamp<Global>, to: &mut Vec<u8>) {
        let EventId {
            location,
            event: number,
        } = event.id;
        let is_next = location.0 == self.location && number == self.event;
        let elapsed = time.as_nanos().wrapping_sub(self.time);
        let elapsed = from_signed(elapsed);
        put_start(event.link, !is_next, elapsed, to);
        if !is_next {
            put(to, location.0.into());
            put(to, number.into());
        }
        match message(event.link) {
            Some(message) => to.extend_from_slice(&(message as u32).to_le_bytes()),
            None => put_operation(event.link, to),
        }
        (self.time, self.location, self.event) =
            (time.as_nanos(), location.0, number.wrapping_add(1));
    }

    /// Decodes the next event of all locations; `None` if the bytes are not one.
    #[inline]
    pub fn take_linked(&mut self, from: &mut &[u8]) -> Option<(Linked, Timestamp<Global>)> {
        let (first, elapsed) = take_start(from)?;
        let elapsed = to_signed(elapsed);
        self.time = self.time.wrapping_add(elapsed);
        if first & ELSEWHERE != 0 {
            self.location = take(from)? as u32;
            self.event = take(from)? as u32;
        }
        let id = EventId {
            location: LocationId(self.location),
            event: self.event,
        };
        self.event = self.event.wrapping_add(1);
        let link = take_link(first, from, |from| half(from).map(u64::from))?;
        Some((Linked { id, link }, Timestamp::from_nanos(self.time)))
    }
}

/// Encodes the first byte, and a time.
#[inline]
fn put_start(link: Link, is_elsewhere: bool, time: u64, to: &mut Vec<u8>) {
    let mut first = match link {
        Link::Nothing => kind::NOTHING,
        Link::Send { .. } => kind::SEND,
        Link::Receive { .. } => kind::RECEIVE,
        Link::EarlyReceive { .. } => kind::EARLY_RECEIVE,
        Link::LateSend { .. } => kind::LATE_SEND,
        Link::Enter { of } => kind::ENTER | flags(of),
        Link::Exit { of, .. } => kind::EXIT | flags(of),
    };
    if is_elsewhere {
        first |= ELSEWHERE;
    }
    let width = match time {
        0..0x100 => 0,
        0x100..0x1_0000 => 1,
        0x1_0000..0x1_0000_0000 => 2,
        _ => 3,
    };
    to.push(first | width << WIDTH);
    to.extend_from_slice(&time.to_le_bytes()[..1 << width]);
}

const fn flags(of: StreamedOperation) -> u8 {
    (if of.is_first { FIRST } else { 0 }) | if of.is_last { LAST } else { 0 }
}

#[inline]
fn take_start(from: &mut &[u8]) -> Option<(u8, u64)> {
    let (first, rest) = from.split_first()?;
    let width = 1_usize << (first >> WIDTH & 3);
    // Mostly, more bytes follow.
    let time = match rest.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes) & (u64::MAX >> (64 - 8 * width)),
        None => {
            let mut bytes = [0; size_of::<u64>()];
            bytes[..width].copy_from_slice(rest.get(..width)?);
            u64::from_le_bytes(bytes)
        }
    };
    *from = rest.get(width..)?;
    Some((*first, time))
}

#[inline]
const fn message(link: Link) -> Option<u64> {
    match link {
        Link::Send { message }
        | Link::Receive { message }
        | Link::EarlyReceive { message }
        | Link::LateSend { message } => Some(message),
        Link::Nothing | Link::Enter { .. } | Link::Exit { .. } => None,
    }
}

#[inline]
fn put_operation(link: Link, to: &mut Vec<u8>) {
    match link {
        Link::Enter { of } => {
            to.push((of.which.1 as u8) << TRACK);
            put_member(of, to);
        }
        Link::Exit {
            of,
            kind,
            root,
            sends,
            receives,
        } => {
            let sends = if sends { SENDS } else { 0 };
            let receives = if receives { RECEIVES } else { 0 };
            to.push(sends | receives | (of.which.1 as u8) << TRACK | (kind as u8) << KIND);
            put_member(of, to);
            to.extend_from_slice(&root.to_le_bytes());
        }
        _ => {}
    }
}

#[inline]
fn take_link(
    first: u8,
    from: &mut &[u8],
    message: impl FnOnce(&mut &[u8]) -> Option<u64>,
) -> Option<Link> {
    let kind = first & kind::ALL;
    Some(match kind {
        kind::NOTHING => Link::Nothing,
        kind::SEND | kind::RECEIVE | kind::EARLY_RECEIVE | kind::LATE_SEND => {
            let message = message(from)?;
            match kind {
                kind::SEND => Link::Send { message },
                kind::RECEIVE => Link::Receive { message },
                kind::EARLY_RECEIVE => Link::EarlyReceive { message },
                _ => Link::LateSend { message },
            }
        }
        kind::ENTER => Link::Enter {
            of: take_member(first, byte(from)?, from)?,
        },
        _ => {
            let flags = byte(from)?;
            Link::Exit {
                of: take_member(first, flags, from)?,
                kind: CollectiveKind::from_number((flags >> KIND).into())?,
                root: half(from)?,
                sends: flags & SENDS != 0,
                receives: flags & RECEIVES != 0,
            }
        }
    })
}

#[inline]
fn put_member(of: StreamedOperation, to: &mut Vec<u8>) {
    let (team, _, index) = of.which;
    for number in [team, index, of.members, of.rank] {
        to.extend_from_slice(&number.to_le_bytes());
    }
}

#[inline]
fn take_member(first: u8, flags: u8, from: &mut &[u8]) -> Option<StreamedOperation> {
    let track = *Track::ALL.get(usize::from(flags >> TRACK & 3))?;
    let (team, index) = (half(from)?, half(from)?);
    Some(StreamedOperation {
        which: (team, track, index),
        members: half(from)?,
        rank: half(from)?,
        is_first: first & FIRST != 0,
        is_last: first & LAST != 0,
    })
}

#[inline]
fn half(from: &mut &[u8]) -> Option<u32> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u32::from_le_bytes(*bytes))
}

#[inline]
fn byte(from: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = from.split_first()?;
    *from = rest;
    Some(*byte)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    fn random_link(rng: &mut Rng, most: u64) -> Link {
        let message = rng.u64(..=most) >> rng.u32(0..64);
        let of = StreamedOperation {
            which: (rng.u32(..), Track::ALL[rng.usize(0..3)], rng.u32(..)),
            members: rng.u32(..),
            rank: rng.u32(..),
            is_first: rng.bool(),
            is_last: rng.bool(),
        };
        match rng.u8(0..7) {
            0 => Link::Nothing,
            1 => Link::Send { message },
            2 => Link::Receive { message },
            3 => Link::EarlyReceive { message },
            4 => Link::LateSend { message },
            5 => Link::Enter { of },
            _ => Link::Exit {
                of,
                kind: CollectiveKind::from_number(rng.u64(0..14)).unwrap(),
                root: rng.u32(..),
                sends: rng.bool(),
                receives: rng.bool(),
            },
        }
    }

    #[test]
    fn events_of_all_locations_come_back() {
        let mut rng = Rng::with_seed(3);
        let (mut codec, mut bytes, mut expected) = (EventCodec::default(), vec![], vec![]);
        for _ in 0..5_000 {
            let id = EventId {
                location: LocationId(rng.u32(0..3)),
                event: rng.u32(..) >> rng.u32(0..32),
            };
            let link = random_link(&mut rng, u32::MAX.into());
            let time = Timestamp::from_nanos(rng.i64(..) >> rng.u32(0..64));
            codec.put_linked(Linked { id, link }, time, &mut bytes);
            expected.push((id, link, time));
        }
        let (mut codec, mut rest) = (EventCodec::default(), &bytes[..]);
        for (id, link, time) in expected {
            let (event, found) = codec.take_linked(&mut rest).unwrap();
            assert_eq!((event.id, event.link, found), (id, link, time));
        }
        assert!(rest.is_empty() && codec.take_linked(&mut rest).is_none());
    }

    #[test]
    fn events_of_a_location_come_back() {
        let mut rng = Rng::with_seed(4);
        let location = LocationId(7);
        let (mut codec, mut bytes, mut expected) = (EventCodec::default(), vec![], vec![]);
        let (mut time, mut position) = (i64::MIN / 4, 0);
        for event in 0..5_000 {
            time += rng.i64(0..1 << 40) >> rng.u32(0..40);
            position += 1 + (rng.u64(0..1 << 40) >> rng.u32(20..64));
            let event = SurveyedEvent {
                id: EventId { location, event },
                time: Timestamp::from_nanos(time),
                position,
                link: random_link(&mut rng, u64::MAX),
            };
            codec.put_surveyed(&event, &mut bytes);
            expected.push(event);
        }
        let (mut codec, mut rest) = (EventCodec::default(), &bytes[..]);
        for event in expected {
            let found = codec.take_surveyed(location, &mut rest).unwrap();
            let both = [event, found].map(|of| (of.id, of.time, of.position, of.link));
            assert_eq!(both[0], both[1]);
        }
        assert!(rest.is_empty());
        let mut cut = &bytes[..1];
        assert!(
            EventCodec::default()
                .take_surveyed(location, &mut cut)
                .is_none()
        );
    }
}
