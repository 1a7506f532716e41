//! Encoding of events in temporary files, without their times.

use downbeat_files::Flaw;

use super::bytes::{Input, put, put_signed, put_text};
use super::definitions::LONGEST_NAME;
use super::item::{AccessKind, DATA, KINDS, What, kind_number};
use crate::CollectiveKind;

/// First byte of an item.
pub(super) mod tag {
    pub(in crate::formats) const ENTER: u8 = 16;
    pub(in crate::formats) const LEAVE: u8 = 17;
    pub(in crate::formats) const NOTE: u8 = 18;
    pub(in crate::formats) const SEND: u8 = 19;
    pub(in crate::formats) const RECEIVE: u8 = 20;
    pub(in crate::formats) const COLLECTIVE: u8 = 21;
    pub(in crate::formats) const COLLECTIVE_END: u8 = 22;
    pub(in crate::formats) const FORK: u8 = 23;
    pub(in crate::formats) const THREAD_BEGIN: u8 = 24;
    pub(in crate::formats) const THREAD_END: u8 = 25;
    pub(in crate::formats) const JOIN: u8 = 26;
    pub(in crate::formats) const POST_RECEIVE: u8 = 27;
    pub(in crate::formats) const COMPLETE_RECEIVE: u8 = 28;
    pub(in crate::formats) const CANCEL_RECEIVE: u8 = 29;
    pub(in crate::formats) const COLLECTIVE_START: u8 = 30;
    pub(in crate::formats) const COLLECTIVE_COMPLETE: u8 = 31;
    pub(in crate::formats) const SIGNAL: u8 = 32;
    pub(in crate::formats) const WAIT: u8 = 33;
    /// Put, get and atomic follow each other.
    pub(in crate::formats) const ACCESS: u8 = 34;
    pub(in crate::formats) const LAST_ACCESS: u8 = ACCESS + 2;
    pub(in crate::formats) const ACCESS_COMPLETE: u8 = 37;
    pub(in crate::formats) const START_SEND: u8 = 38;
    pub(in crate::formats) const COMPLETE_SEND: u8 = 39;
    /// Added to the byte of an event that ends with a number of bytes.
    pub(in crate::formats) const SIZED: u8 = 128;
}

pub(super) fn location(bytes: &mut impl Input) -> Result<u32, Flaw> {
    bytes.u32("the number of a location")
}

pub(super) fn unknown(offset: u64, tag: u8) -> Flaw {
    Flaw::Byte(offset, format!("nothing begins with a byte {tag}"))
}

/// Reads an event without its time.
#[inline]
pub(super) fn read_action<'a>(
    bytes: &mut impl Input,
    text: &'a mut String,
) -> Result<What<'a>, Flaw> {
    let offset = bytes.offset();
    let tag = bytes.byte()?;
    event(bytes, tag, offset, text)
}

#[inline]
pub(super) fn event<'a>(
    bytes: &mut impl Input,
    tag: u8,
    offset: u64,
    text: &'a mut String,
) -> Result<What<'a>, Flaw> {
    fn communicator(bytes: &mut impl Input) -> Result<u32, Flaw> {
        bytes.u32("the number of a communicator")
    }
    let is_sized = tag & tag::SIZED != 0;
    let sized = |bytes: &mut _| is_sized.then(|| Input::number(bytes)).transpose();
    let what = match tag & !tag::SIZED {
        tag::ENTER => What::Enter {
            region: bytes.u32("the number of a region")?,
        },
        tag::LEAVE => What::Leave {
            region: bytes.u32("the number of a region")?,
        },
        tag::NOTE => {
            bytes.text(LONGEST_NAME, text)?;
            What::Note(text)
        }
        kind @ (tag::SEND | tag::START_SEND) => What::Send {
            to: location(bytes)?,
            communicator: communicator(bytes)?,
            tag: message_tag(bytes)?,
            request: (kind == tag::START_SEND)
                .then(|| bytes.number())
                .transpose()?,
            bytes: sized(bytes)?,
        },
        tag::COMPLETE_SEND => What::CompleteSend {
            request: bytes.number()?,
        },
        tag::RECEIVE => What::Receive {
            from: location(bytes)?,
            communicator: communicator(bytes)?,
            tag: message_tag(bytes)?,
            bytes: sized(bytes)?,
        },
        tag::COLLECTIVE => What::Collective {
            communicator: communicator(bytes)?,
        },
        tag::COLLECTIVE_END => {
            let (communicator, operation) = (communicator(bytes)?, operation(bytes, offset)?);
            let (kind, root, [sent, received]) = operation;
            What::CollectiveEnd {
                communicator,
                kind,
                root,
                sent,
                received,
                bytes: sized(bytes)?,
            }
        }
        tag::POST_RECEIVE => What::PostReceive {
            request: bytes.number()?,
        },
        tag::COMPLETE_RECEIVE => What::CompleteReceive {
            from: location(bytes)?,
            communicator: communicator(bytes)?,
            tag: message_tag(bytes)?,
            request: bytes.number()?,
            bytes: sized(bytes)?,
        },
        tag::CANCEL_RECEIVE => What::CancelReceive {
            request: bytes.number()?,
        },
        tag::COLLECTIVE_START => What::CollectiveStart {
            communicator: communicator(bytes)?,
            request: bytes.number()?,
        },
        tag::COLLECTIVE_COMPLETE => {
            let (communicator, operation) = (communicator(bytes)?, operation(bytes, offset)?);
            let (kind, root, [sent, received]) = operation;
            What::CollectiveComplete {
                communicator,
                kind,
                root,
                sent,
                received,
                request: bytes.number()?,
                bytes: sized(bytes)?,
            }
        }
        kind @ tag::ACCESS..=tag::LAST_ACCESS => What::Access {
            kind: AccessKind::ALL[usize::from(kind - tag::ACCESS)],
            target: location(bytes)?,
            communicator: communicator(bytes)?,
            request: bytes.number()?,
            bytes: sized(bytes)?,
        },
        tag::ACCESS_COMPLETE => What::AccessComplete {
            communicator: communicator(bytes)?,
            request: bytes.number()?,
        },
        tag::SIGNAL => What::Signal {
            id: bytes.number()?,
        },
        tag::WAIT => What::Wait {
            id: bytes.number()?,
        },
        tag::FORK => What::Fork {
            team: communicator(bytes)?,
        },
        tag::THREAD_BEGIN => What::ThreadBegin {
            team: communicator(bytes)?,
        },
        tag::THREAD_END => What::ThreadEnd {
            team: communicator(bytes)?,
        },
        tag::JOIN => What::Join {
            team: communicator(bytes)?,
        },
        _ => return Err(unknown(offset, tag)),
    };
    // Other events have no number of bytes.
    if is_sized && what.bytes().is_none() {
        return Err(unknown(offset, tag));
    }
    Ok(what)
}

/// Reads the kind and the data of a member, encoded in one number, and the rank of the root.
fn operation(
    bytes: &mut impl Input,
    offset: u64,
) -> Result<(CollectiveKind, u32, [bool; 2]), Flaw> {
    let number = bytes.u32("a collective operation")? as usize;
    let Some((kind, _)) = KINDS.get(number / DATA.len()) else {
        return Err(Flaw::Byte(
            offset,
            format!("{number} is not a collective operation"),
        ));
    };
    let (data, _) = DATA[number % DATA.len()];
    Ok((*kind, bytes.u32("the rank of a root")?, data))
}

fn message_tag(bytes: &mut impl Input) -> Result<i32, Flaw> {
    let offset = bytes.offset();
    let tag = bytes.signed()?;
    i32::try_from(tag).map_err(|_| Flaw::Byte(offset, format!("{tag} is not a tag")))
}

/// Appends an event without its time.
pub(super) fn write_action(to: &mut Vec<u8>, what: What<'_>) {
    let sized = match what.bytes() {
        Some(_) => tag::SIZED,
        None => 0,
    };
    let mut begin = |tag: u8| to.push(tag | sized);
    match what {
        What::Note(text) => {
            begin(tag::NOTE);
            put_text(to, text);
        }
        What::Send {
            to: peer,
            communicator,
            tag,
            request,
            ..
        } => {
            begin(match request {
                Some(_) => tag::START_SEND,
                None => tag::SEND,
            });
            put(to, peer.into());
            put(to, communicator.into());
            put_signed(to, tag.into());
            if let Some(request) = request {
                put(to, request);
            }
        }
        What::Receive {
            from,
            communicator,
            tag,
            ..
        } => {
            begin(tag::RECEIVE);
            put(to, from.into());
            put(to, communicator.into());
            put_signed(to, tag.into());
        }
        What::CollectiveEnd {
            communicator,
            kind,
            root,
            sent,
            received,
            ..
        } => {
            begin(tag::COLLECTIVE_END);
            put(to, communicator.into());
            put_operation(to, kind, root, [sent, received]);
        }
        What::CompleteReceive {
            from,
            communicator,
            tag,
            request,
            ..
        } => {
            begin(tag::COMPLETE_RECEIVE);
            put(to, from.into());
            put(to, communicator.into());
            put_signed(to, tag.into());
            put(to, request);
        }
        What::CollectiveStart {
            communicator,
            request,
        }
        | What::AccessComplete {
            communicator,
            request,
        } => {
            begin(match what {
                What::CollectiveStart { .. } => tag::COLLECTIVE_START,
                _ => tag::ACCESS_COMPLETE,
            });
            put(to, communicator.into());
            put(to, request);
        }
        What::Access {
            kind,
            target,
            communicator,
            request,
            ..
        } => {
            begin(tag::ACCESS + kind as u8);
            put(to, target.into());
            put(to, communicator.into());
            put(to, request);
        }
        What::CollectiveComplete {
            communicator,
            kind,
            root,
            sent,
            received,
            request,
            ..
        } => {
            begin(tag::COLLECTIVE_COMPLETE);
            put(to, communicator.into());
            put_operation(to, kind, root, [sent, received]);
            put(to, request);
        }
        What::CompleteSend { request: id }
        | What::PostReceive { request: id }
        | What::CancelReceive { request: id }
        | What::Signal { id }
        | What::Wait { id } => {
            begin(match what {
                What::CompleteSend { .. } => tag::COMPLETE_SEND,
                What::PostReceive { .. } => tag::POST_RECEIVE,
                What::CancelReceive { .. } => tag::CANCEL_RECEIVE,
                What::Signal { .. } => tag::SIGNAL,
                _ => tag::WAIT,
            });
            put(to, id);
        }
        What::Enter { region: number }
        | What::Leave { region: number }
        | What::Collective {
            communicator: number,
        }
        | What::Fork { team: number }
        | What::ThreadBegin { team: number }
        | What::ThreadEnd { team: number }
        | What::Join { team: number } => {
            begin(match what {
                What::Enter { .. } => tag::ENTER,
                What::Leave { .. } => tag::LEAVE,
                What::Collective { .. } => tag::COLLECTIVE,
                What::Fork { .. } => tag::FORK,
                What::ThreadBegin { .. } => tag::THREAD_BEGIN,
                What::ThreadEnd { .. } => tag::THREAD_END,
                _ => tag::JOIN,
            });
            put(to, number.into());
        }
    }
    if let Some(bytes) = what.bytes() {
        put(to, bytes);
    }
}

fn put_operation(to: &mut Vec<u8>, kind: CollectiveKind, root: u32, [sent, received]: [bool; 2]) {
    // The kind is known, because the event was checked before.
    let kind = kind_number(kind).unwrap_or(0);
    let both = kind * DATA.len() + usize::from(sent) + 2 * usize::from(received);
    put(to, both as u64);
    put(to, root.into());
}
