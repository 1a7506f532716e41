//! Encoding of events with their links, for files between two passes.

use downbeat_clock_core::{Global, Timestamp};

use super::super::teams::Track;
use super::super::{CollectiveKind, EventId, LocationId};
use super::{Link, Linked, StreamedOperation, SurveyedEvent};

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
/// Flags of operations: of the first byte.
const FIRST: u8 = 1 << 4;
const LAST: u8 = 1 << 5;
const SENDS: u8 = 1 << 6;
const RECEIVES: u8 = 1 << 7;

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
        put_link(event.link, if gap == 0 { 0 } else { ELSEWHERE }, to);
        put_number(elapsed, to);
        if gap != 0 {
            put_number(gap, to);
        }
        put_fields(event.link, to);
    }

    /// Decodes the next event of a location; `None` if the bytes are not one.
    #[inline]
    pub fn take_surveyed(
        &mut self,
        location: LocationId,
        from: &mut &[u8],
    ) -> Option<SurveyedEvent> {
        let first = byte(from)?;
        self.time = self.time.wrapping_add(number(from)? as i64);
        if first & ELSEWHERE != 0 {
            self.position = self.position.wrapping_add(number(from)?);
        }
        let link = take_link(first, from)?;
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

    /// Encodes the next event of all locations.
    #[inline]
    pub fn put_linked(&mut self, event: Linked, time: Timestamp<Global>, to: &mut Vec<u8>) {
        let EventId {
            location,
            event: number,
        } = event.id;
        let is_next = location.0 == self.location && number == self.event;
        put_link(event.link, if is_next { 0 } else { ELSEWHERE }, to);
        put_signed(time.as_nanos().wrapping_sub(self.time), to);
        if !is_next {
            put_number(location.0.into(), to);
            put_number(number.into(), to);
        }
        put_fields(event.link, to);
        (self.time, self.location, self.event) =
            (time.as_nanos(), location.0, number.wrapping_add(1));
    }

    /// Decodes the next event of all locations; `None` if the bytes are not one.
    #[inline]
    pub fn take_linked(&mut self, from: &mut &[u8]) -> Option<(Linked, Timestamp<Global>)> {
        let first = byte(from)?;
        self.time = self.time.wrapping_add(signed(from)?);
        if first & ELSEWHERE != 0 {
            self.location = number(from)? as u32;
            self.event = number(from)? as u32;
        }
        let id = EventId {
            location: LocationId(self.location),
            event: self.event,
        };
        self.event = self.event.wrapping_add(1);
        let link = take_link(first, from)?;
        Some((Linked { id, link }, Timestamp::from_nanos(self.time)))
    }
}

/// Encodes the first byte.
#[inline]
fn put_link(link: Link, flags: u8, to: &mut Vec<u8>) {
    let of_operation = |of: StreamedOperation| {
        (if of.is_first { FIRST } else { 0 }) | if of.is_last { LAST } else { 0 }
    };
    to.push(
        flags
            | match link {
                Link::Nothing => kind::NOTHING,
                Link::Send { .. } => kind::SEND,
                Link::Receive { .. } => kind::RECEIVE,
                Link::EarlyReceive { .. } => kind::EARLY_RECEIVE,
                Link::LateSend { .. } => kind::LATE_SEND,
                Link::Enter { of } => kind::ENTER | of_operation(of),
                Link::Exit {
                    of,
                    sends,
                    receives,
                    ..
                } => {
                    let sends = if sends { SENDS } else { 0 };
                    let receives = if receives { RECEIVES } else { 0 };
                    kind::EXIT | of_operation(of) | sends | receives
                }
            },
    );
}

#[inline]
fn put_fields(link: Link, to: &mut Vec<u8>) {
    match link {
        Link::Nothing => {}
        Link::Send { message }
        | Link::Receive { message }
        | Link::EarlyReceive { message }
        | Link::LateSend { message } => {
            put_number(message >> 32, to);
            put_number(message & u64::from(u32::MAX), to);
        }
        Link::Enter { of } => put_operation(of, 0, to),
        Link::Exit { of, kind, root, .. } => {
            put_operation(of, kind as u64, to);
            put_number(root.into(), to);
        }
    }
}

#[inline]
fn take_link(first: u8, from: &mut &[u8]) -> Option<Link> {
    let kind = first & kind::ALL;
    Some(match kind {
        kind::NOTHING => Link::Nothing,
        kind::SEND | kind::RECEIVE | kind::EARLY_RECEIVE | kind::LATE_SEND => {
            let message = number(from)? << 32 | number(from)?;
            match kind {
                kind::SEND => Link::Send { message },
                kind::RECEIVE => Link::Receive { message },
                kind::EARLY_RECEIVE => Link::EarlyReceive { message },
                _ => Link::LateSend { message },
            }
        }
        kind::ENTER => Link::Enter {
            of: take_operation(first, from)?.0,
        },
        _ => {
            let (of, kind) = take_operation(first, from)?;
            Link::Exit {
                of,
                kind: CollectiveKind::from_number(kind)?,
                root: number(from)? as u32,
                sends: first & SENDS != 0,
                receives: first & RECEIVES != 0,
            }
        }
    })
}

fn put_operation(of: StreamedOperation, kind: u64, to: &mut Vec<u8>) {
    let (team, track, index) = of.which;
    put_number(kind << 2 | track as u64, to);
    [team, index, of.members, of.rank]
        .into_iter()
        .for_each(|number| put_number(number.into(), to));
}

fn take_operation(first: u8, from: &mut &[u8]) -> Option<(StreamedOperation, u64)> {
    let kind_and_track = number(from)?;
    let track = *Track::ALL.get((kind_and_track & 3) as usize)?;
    let mut next = || Some(number(from)? as u32);
    let (team, index, members, rank) = (next()?, next()?, next()?, next()?);
    let of = StreamedOperation {
        which: (team, track, index),
        members,
        rank,
        is_first: first & FIRST != 0,
        is_last: first & LAST != 0,
    };
    Some((of, kind_and_track >> 2))
}

/// Encodes a number in groups of seven bits, from the lowest; all but the last have the high bit.
#[inline]
pub(crate) fn put_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Decodes such a number.
#[inline]
pub(crate) fn number(from: &mut &[u8]) -> Option<u64> {
    // Most numbers are short.
    if let [first @ 0..0x80, rest @ ..] = *from {
        *from = rest;
        return Some(u64::from(*first));
    }
    if let [first, second @ 0..0x80, rest @ ..] = *from {
        *from = rest;
        return Some(u64::from(first & 0x7f) | u64::from(*second) << 7);
    }
    long_number(from)
}

fn long_number(from: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = byte(from)?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Encodes a number whose sign is in the lowest bit.
#[inline]
fn put_signed(number: i64, to: &mut Vec<u8>) {
    put_number((number << 1 ^ number >> 63) as u64, to);
}

#[inline]
fn signed(from: &mut &[u8]) -> Option<i64> {
    let number = number(from)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[inline]
fn byte(from: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = from.split_first()?;
    *from = rest;
    Some(*byte)
}
