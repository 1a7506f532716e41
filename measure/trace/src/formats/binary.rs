//! Traces as bytes: what the lines of the text say, with numbers of variable length, times as what has passed since the
//! event before, and the location of events only where it is another one than before.

use std::io::Read;

use crate::Place;
use downbeat_clock_core::Timestamp;

use super::bytes::{Bytes, put, put_signed, put_text};
use super::definitions::{Definitions, LONGEST_NAME};
use super::item::{DATA, Item, KINDS, What, kind_number};
use downbeat_files::Flaw;

/// No text begins like this, and whatever converts line ends spoils it.
pub(super) const MAGIC: [u8; 8] = *b"\x89dbt\r\n\x1a\n";
pub(super) const VERSION: u8 = 1;

/// What comes next.
mod tag {
    pub(super) const END: u8 = 0;
    pub(super) const LOCATION: u8 = 1;
    pub(super) const THREAD: u8 = 2;
    pub(super) const COMMUNICATOR: u8 = 3;
    pub(super) const REGION: u8 = 4;
    pub(super) const MASTER: u8 = 5;
    pub(super) const SAMPLE: u8 = 6;
    /// All events from here on are of this location.
    pub(super) const AT: u8 = 7;
    pub(super) const ENTER: u8 = 16;
    pub(super) const LEAVE: u8 = 17;
    pub(super) const NOTE: u8 = 18;
    pub(super) const SEND: u8 = 19;
    pub(super) const RECEIVE: u8 = 20;
    pub(super) const COLLECTIVE: u8 = 21;
    pub(super) const COLLECTIVE_END: u8 = 22;
    pub(super) const FORK: u8 = 23;
    pub(super) const THREAD_BEGIN: u8 = 24;
    pub(super) const THREAD_END: u8 = 25;
    pub(super) const JOIN: u8 = 26;
}

/// What is known from one event to the next, when reading as when writing.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Whose events come.
    at: u32,
    /// When the last event of each location was.
    last: Vec<i64>,
}

/// Memory for what is read.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    text: String,
    members: Vec<u32>,
}

/// The next thing that a file says; at its end, how many events it should have had.
pub(super) fn read<'a, R: Read>(
    bytes: &mut Bytes<R>,
    state: &mut State,
    definitions: &Definitions,
    scratch: &'a mut Scratch,
) -> Result<Result<Item<'a>, u64>, Flaw> {
    let (offset, tag) = loop {
        let offset = bytes.offset();
        let tag = bytes.next()?.ok_or_else(|| bytes.cut_off())?;
        if tag != tag::AT {
            break (offset, tag);
        }
        state.at = location(bytes)?;
    };
    if tag >= tag::ENTER {
        let time = state
            .last
            .get(state.at as usize)
            .copied()
            .unwrap_or(0)
            .wrapping_add(bytes.signed()?);
        let what = event(bytes, tag, offset, &mut scratch.text)?;
        if let Some(last) = state.last.get_mut(state.at as usize) {
            *last = time;
        }
        return Ok(Ok(Item::Event {
            location: state.at,
            time: Timestamp::from_nanos(time),
            what,
        }));
    }
    Ok(Ok(match tag {
        tag::END => return Ok(Err(bytes.number()?)),
        tag::LOCATION => {
            state.last.push(0);
            let place = Place {
                node: bytes.u32("the number of a node")?,
                process: bytes.u32("the number of a process")?,
            };
            bytes.text(LONGEST_NAME, &mut scratch.text)?;
            Item::Location {
                place,
                name: &scratch.text,
            }
        }
        tag::THREAD => {
            state.last.push(0);
            let rank = location(bytes)?;
            bytes.text(LONGEST_NAME, &mut scratch.text)?;
            Item::Thread {
                rank,
                name: &scratch.text,
            }
        }
        tag::COMMUNICATOR => {
            let members = bytes.number()?;
            if members > definitions.locations().into() {
                let why = format!(
                    "a communicator has {members} members, which is more than there are locations"
                );
                return Err(Flaw::Byte(offset, why));
            }
            scratch.members.clear();
            for _ in 0..members {
                scratch.members.push(location(bytes)?);
            }
            Item::Communicator {
                members: &scratch.members,
            }
        }
        tag::REGION => {
            bytes.text(LONGEST_NAME, &mut scratch.text)?;
            Item::Region {
                name: &scratch.text,
            }
        }
        tag::MASTER => Item::Master {
            location: location(bytes)?,
        },
        tag::SAMPLE => Item::Sample {
            location: location(bytes)?,
            session: bytes.u32("the number of a session")?,
            local: Timestamp::from_nanos(bytes.signed()?),
            master: Timestamp::from_nanos(bytes.signed()?),
        },
        _ => return Err(unknown(offset, tag)),
    }))
}

fn location<R: Read>(bytes: &mut Bytes<R>) -> Result<u32, Flaw> {
    bytes.u32("the number of a location")
}

fn unknown(offset: u64, tag: u8) -> Flaw {
    Flaw::Byte(offset, format!("nothing begins with a byte {tag}"))
}

fn event<'a, R: Read>(
    bytes: &mut Bytes<R>,
    tag: u8,
    offset: u64,
    text: &'a mut String,
) -> Result<What<'a>, Flaw> {
    fn communicator<R: Read>(bytes: &mut Bytes<R>) -> Result<u32, Flaw> {
        bytes.u32("the number of a communicator")
    }
    Ok(match tag {
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
        tag::SEND => What::Send {
            to: location(bytes)?,
            communicator: communicator(bytes)?,
            tag: message_tag(bytes)?,
        },
        tag::RECEIVE => What::Receive {
            from: location(bytes)?,
            communicator: communicator(bytes)?,
            tag: message_tag(bytes)?,
        },
        tag::COLLECTIVE => What::Collective {
            communicator: communicator(bytes)?,
        },
        tag::COLLECTIVE_END => {
            let communicator = communicator(bytes)?;
            // The kind and the data share a number.
            let number = bytes.u32("a collective operation")? as usize;
            let Some((kind, _)) = KINDS.get(number / DATA.len()) else {
                return Err(Flaw::Byte(
                    offset,
                    format!("{number} is not a collective operation"),
                ));
            };
            let ([sent, received], _) = DATA[number % DATA.len()];
            What::CollectiveEnd {
                communicator,
                kind: *kind,
                root: bytes.u32("the rank of a root")?,
                sent,
                received,
            }
        }
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
    })
}

fn message_tag<R: Read>(bytes: &mut Bytes<R>) -> Result<i32, Flaw> {
    let offset = bytes.offset();
    let tag = bytes.signed()?;
    i32::try_from(tag).map_err(|_| Flaw::Byte(offset, format!("{tag} is not a tag")))
}

/// Adds something that has been defined.
pub(super) fn write(to: &mut Vec<u8>, item: &Item<'_>, state: &mut State) {
    match *item {
        Item::Location {
            place: Place { node, process },
            name,
        } => {
            state.last.push(0);
            numbers(to, tag::LOCATION, &[node, process]);
            put_text(to, name);
        }
        Item::Thread { rank, name } => {
            state.last.push(0);
            numbers(to, tag::THREAD, &[rank]);
            put_text(to, name);
        }
        Item::Communicator { members } => {
            to.push(tag::COMMUNICATOR);
            put(to, members.len() as u64);
            members.iter().for_each(|member| put(to, (*member).into()));
        }
        Item::Region { name } => {
            to.push(tag::REGION);
            put_text(to, name);
        }
        Item::Master { location } => numbers(to, tag::MASTER, &[location]),
        Item::Sample {
            location,
            session,
            local,
            master,
        } => {
            numbers(to, tag::SAMPLE, &[location, session]);
            put_signed(to, local.as_nanos());
            put_signed(to, master.as_nanos());
        }
        Item::Event {
            location,
            time,
            what,
        } => {
            if location != state.at {
                numbers(to, tag::AT, &[location]);
                state.at = location;
            }
            let last = &mut state.last[location as usize];
            let passed = time.as_nanos().wrapping_sub(*last);
            *last = time.as_nanos();
            write_event(to, passed, what);
        }
    }
}

fn write_event(to: &mut Vec<u8>, passed: i64, what: What<'_>) {
    let mut begin = |tag: u8| {
        to.push(tag);
        put_signed(to, passed);
    };
    match what {
        What::Note(text) => {
            begin(tag::NOTE);
            put_text(to, text);
        }
        What::Send {
            to: peer,
            communicator,
            tag,
        } => {
            begin(tag::SEND);
            put(to, peer.into());
            put(to, communicator.into());
            put_signed(to, tag.into());
        }
        What::Receive {
            from,
            communicator,
            tag,
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
        } => {
            begin(tag::COLLECTIVE_END);
            put(to, communicator.into());
            // What has been defined is among the kinds.
            let kind = kind_number(kind).unwrap_or(0);
            put(
                to,
                (kind * DATA.len() + usize::from(sent) + 2 * usize::from(received)) as u64,
            );
            put(to, root.into());
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
}

/// Adds the last thing.
pub(super) fn write_end(to: &mut Vec<u8>, events: u64) {
    to.push(tag::END);
    put(to, events);
}

fn numbers(to: &mut Vec<u8>, tag: u8, numbers: &[u32]) {
    to.push(tag);
    numbers.iter().for_each(|number| put(to, (*number).into()));
}
