//! Traces as lines of text.
//!
//! Everything has one spelling: numbers without leading zeros, one blank between fields. So reading
//! and writing a trace reproduces it to the byte.
//!
//! The last line holds the checksum of all bytes before it.

use crate::{CollectiveKind, Place};
use downbeat_clock_core::Timestamp;

use super::definitions::FileDefinitions;
use super::item::{AccessKind, DATA, Item, KINDS, What, kind_number};
use downbeat_files::number::whole;
use downbeat_files::{ChecksumLine, shown};

pub(super) const MAGIC: &str = "# downbeat trace ";
pub(super) const VERSION: &str = "6";
/// First version, without a checksum; also for traces that are written by hand, which may have
/// everything.
pub(super) const UNSEALED: &str = "1";
pub(super) const CHECKSUM: ChecksumLine = ChecksumLine {
    before: "crc32 ",
    after: "",
};

/// Maximum length of a line, enough for a communicator of a million members.
pub(super) const LONGEST_LINE: usize = 1 << 23;

/// Unread rest of a line.
struct Fields<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    fn next(&mut self, what: &str) -> Result<&'a [u8], String> {
        let rest = self.rest.ok_or_else(|| format!("{what} is missing"))?;
        let end = rest.iter().position(|byte| *byte == b' ');
        let (field, rest) = match end {
            Some(end) => (&rest[..end], Some(&rest[end + 1..])),
            None => (rest, None),
        };
        self.rest = rest;
        Ok(field)
    }

    fn u64(&mut self, what: &str) -> Result<u64, String> {
        let field = self.next(what)?;
        number(field).ok_or_else(|| no(field, what))
    }

    fn u32(&mut self, what: &str) -> Result<u32, String> {
        let field = self.next(what)?;
        number(field)
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| no(field, what))
    }

    fn i64(&mut self, what: &str) -> Result<i64, String> {
        let field = self.next(what)?;
        signed(field).ok_or_else(|| no(field, what))
    }

    fn i32(&mut self, what: &str) -> Result<i32, String> {
        let field = self.next(what)?;
        signed(field)
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| no(field, what))
    }

    /// Returns the index of the next field among `words`.
    fn one_of<'w>(
        &mut self,
        what: &str,
        words: impl IntoIterator<Item = &'w str>,
    ) -> Result<usize, String> {
        let field = self.next(what)?;
        words
            .into_iter()
            .position(|word| word.as_bytes() == field)
            .ok_or_else(|| no(field, what))
    }

    /// Returns the number of bytes of a message, which ends a line that has it.
    #[inline]
    fn bytes(&mut self) -> Result<Option<u64>, String> {
        match self.rest {
            None => Ok(None),
            Some(_) => self.u64("a number of bytes").map(Some),
        }
    }

    /// Returns the rest of the line, including blanks.
    fn text(&mut self) -> Result<&'a str, String> {
        let rest = self.rest.take().ok_or("there is no name")?;
        core::str::from_utf8(rest).map_err(|_| "it is no UTF-8".to_owned())
    }

    fn end(&self) -> Result<(), String> {
        self.rest.map_or(Ok(()), |rest| {
            Err(format!("\"{}\" is too much", shown(rest)))
        })
    }
}

fn no(field: &[u8], what: &str) -> String {
    format!("\"{}\" is not {what}", shown(field))
}

/// Parses a number in its only valid spelling.
#[inline]
fn number(text: &[u8]) -> Option<u64> {
    let (number, rest) = whole(text)?;
    (rest.is_empty() && (text.len() == 1 || text[0] != b'0')).then_some(number)
}

#[inline]
fn signed(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => number(digits)
            .filter(|digits| *digits != 0)
            .and_then(|digits| 0_i64.checked_sub_unsigned(digits)),
        digits => i64::try_from(number(digits)?).ok(),
    }
}

/// Returns the number of events, if this is the last line.
pub(super) fn end(line: &[u8]) -> Result<Option<u64>, String> {
    if !line.starts_with(b"end") {
        return Ok(None);
    }
    let mut fields = Fields { rest: Some(line) };
    if fields.next("what it is")? != b"end" {
        return Ok(None);
    }
    let events = fields.u64("a number of events")?;
    fields.end()?;
    Ok(Some(events))
}

/// Parses a line. `members` is a buffer.
pub(super) fn parse<'a>(
    line: &'a [u8],
    definitions: &FileDefinitions,
    members: &'a mut Vec<u32>,
) -> Result<Item<'a>, String> {
    let mut fields = Fields { rest: Some(line) };
    if line.first().is_some_and(u8::is_ascii_digit) {
        let location = fields.u32("the number of a location")?;
        let time = Timestamp::from_nanos(fields.i64("a time in nanoseconds")?);
        let what = event(&mut fields)?;
        fields.end()?;
        return Ok(Item::Event {
            location,
            time,
            what,
        });
    }
    let item = match fields.next("what it is")? {
        b"location" => {
            numbered(
                &mut fields,
                "the number of a location",
                definitions.locations(),
            )?;
            let place = Place {
                node: fields.u32("the number of a node")?,
                process: fields.u32("the number of a process")?,
            };
            Item::Location {
                place,
                name: fields.text()?,
            }
        }
        b"thread" => {
            numbered(
                &mut fields,
                "the number of a location",
                definitions.locations(),
            )?;
            Item::Thread {
                rank: fields.u32("the number of a location")?,
                name: fields.text()?,
            }
        }
        b"communicator" => {
            numbered(
                &mut fields,
                "the number of a communicator",
                definitions.communicators(),
            )?;
            members.clear();
            while fields.rest.is_some() {
                members.push(fields.u32("the number of a location")?);
            }
            Item::Communicator { members }
        }
        b"region" => {
            numbered(&mut fields, "the number of a region", definitions.regions())?;
            Item::Region {
                name: fields.text()?,
            }
        }
        b"master" => Item::Master {
            location: fields.u32("the number of a location")?,
        },
        b"sample" => Item::Sample {
            location: fields.u32("the number of a location")?,
            session: fields.u32("the number of a session")?,
            local: Timestamp::from_nanos(fields.i64("a time in nanoseconds")?),
            master: Timestamp::from_nanos(fields.i64("a time in nanoseconds")?),
        },
        other => {
            return Err(format!(
                "\"{}\" is neither the number of a location, nor anything else that a line begins with",
                shown(other)
            ));
        }
    };
    fields.end()?;
    Ok(item)
}

/// Checks that a definition has the next number.
fn numbered(fields: &mut Fields<'_>, what: &str, next: u32) -> Result<(), String> {
    let found = fields.u32(what)?;
    if found == next {
        Ok(())
    } else {
        Err(format!(
            "{what} is {found}, but would have to be {next} here"
        ))
    }
}

const COMMUNICATOR: &str = "the number of a communicator";
const REQUEST: &str = "the id of a request";

/// Parses an event without its location and time.
pub(super) fn parse_event(text: &str) -> Result<What<'_>, String> {
    let mut fields = Fields {
        rest: Some(text.as_bytes()),
    };
    let what = event(&mut fields)?;
    fields.end()?;
    Ok(what)
}

#[inline]
fn event<'a>(fields: &mut Fields<'a>) -> Result<What<'a>, String> {
    let what = match fields.next("the kind of an event")? {
        b"enter" => What::Enter {
            region: fields.u32("the number of a region")?,
        },
        b"leave" => What::Leave {
            region: fields.u32("the number of a region")?,
        },
        b"note" => What::Note(fields.text()?),
        b"send" => What::Send {
            to: fields.u32("the number of a location")?,
            communicator: fields.u32(COMMUNICATOR)?,
            tag: fields.i32("a tag")?,
            request: None,
            bytes: fields.bytes()?,
        },
        b"send-start" => What::Send {
            to: fields.u32("the number of a location")?,
            communicator: fields.u32(COMMUNICATOR)?,
            tag: fields.i32("a tag")?,
            request: Some(fields.u64(REQUEST)?),
            bytes: fields.bytes()?,
        },
        b"send-complete" => What::CompleteSend {
            request: fields.u64(REQUEST)?,
        },
        b"receive" => What::Receive {
            from: fields.u32("the number of a location")?,
            communicator: fields.u32(COMMUNICATOR)?,
            tag: fields.i32("a tag")?,
            bytes: fields.bytes()?,
        },
        b"collective" => What::Collective {
            communicator: fields.u32(COMMUNICATOR)?,
        },
        b"collective-end" => {
            let communicator = fields.u32(COMMUNICATOR)?;
            let (kind, root, [sent, received]) = operation(fields)?;
            What::CollectiveEnd {
                communicator,
                kind,
                root,
                sent,
                received,
                bytes: fields.bytes()?,
            }
        }
        b"receive-post" => What::PostReceive {
            request: fields.u64(REQUEST)?,
        },
        b"receive-complete" => What::CompleteReceive {
            from: fields.u32("the number of a location")?,
            communicator: fields.u32(COMMUNICATOR)?,
            tag: fields.i32("a tag")?,
            request: fields.u64(REQUEST)?,
            bytes: fields.bytes()?,
        },
        b"receive-cancel" => What::CancelReceive {
            request: fields.u64(REQUEST)?,
        },
        b"collective-start" => What::CollectiveStart {
            communicator: fields.u32(COMMUNICATOR)?,
            request: fields.u64(REQUEST)?,
        },
        b"collective-complete" => {
            let communicator = fields.u32(COMMUNICATOR)?;
            let (kind, root, [sent, received]) = operation(fields)?;
            What::CollectiveComplete {
                communicator,
                kind,
                root,
                sent,
                received,
                request: fields.u64(REQUEST)?,
                bytes: fields.bytes()?,
            }
        }
        b"put" => access(fields, AccessKind::Put)?,
        b"get" => access(fields, AccessKind::Get)?,
        b"atomic" => access(fields, AccessKind::Atomic)?,
        b"access-complete" => What::AccessComplete {
            communicator: fields.u32(COMMUNICATOR)?,
            request: fields.u64(REQUEST)?,
        },
        b"signal" => What::Signal {
            id: fields.u64("the id of a signal")?,
        },
        b"wait" => What::Wait {
            id: fields.u64("the id of a signal")?,
        },
        b"fork" => What::Fork {
            team: fields.u32(COMMUNICATOR)?,
        },
        b"thread-begin" => What::ThreadBegin {
            team: fields.u32(COMMUNICATOR)?,
        },
        b"thread-end" => What::ThreadEnd {
            team: fields.u32(COMMUNICATOR)?,
        },
        b"join" => What::Join {
            team: fields.u32(COMMUNICATOR)?,
        },
        other => return Err(no(other, "the kind of an event")),
    };
    Ok(what)
}

/// Reads a one-sided access.
fn access(fields: &mut Fields<'_>, kind: AccessKind) -> Result<What<'static>, String> {
    Ok(What::Access {
        kind,
        target: fields.u32("the number of a location")?,
        communicator: fields.u32(COMMUNICATOR)?,
        request: fields.u64(REQUEST)?,
        bytes: fields.bytes()?,
    })
}

/// Reads the kind of a collective operation, the rank of its root, and the data of a member.
fn operation(fields: &mut Fields<'_>) -> Result<(CollectiveKind, u32, [bool; 2]), String> {
    let kind = fields.one_of("a collective operation", KINDS.map(|(_, name)| name))?;
    let root = fields.u32("the rank of a root")?;
    let data = fields.one_of("none, sent, received or both", DATA.map(|(_, name)| name))?;
    Ok((KINDS[kind].0, root, DATA[data].0))
}

/// Appends the line of an item that was checked, without its line end.
pub(super) fn write(to: &mut Vec<u8>, item: &Item<'_>, definitions: &FileDefinitions) {
    match *item {
        Item::Location {
            place: Place { node, process },
            name,
        } => {
            words(
                to,
                "location",
                &[
                    (definitions.locations() - 1).into(),
                    node.into(),
                    process.into(),
                ],
            );
            text(to, name);
        }
        Item::Thread { rank, name } => {
            words(
                to,
                "thread",
                &[(definitions.locations() - 1).into(), rank.into()],
            );
            text(to, name);
        }
        Item::Communicator { members } => {
            words(
                to,
                "communicator",
                &[(definitions.communicators() - 1).into()],
            );
            members
                .iter()
                .for_each(|member| field(to, (*member).into()));
        }
        Item::Region { name } => {
            words(to, "region", &[(definitions.regions() - 1).into()]);
            text(to, name);
        }
        Item::Master { location } => words(to, "master", &[location.into()]),
        Item::Sample {
            location,
            session,
            local,
            master,
        } => {
            words(
                to,
                "sample",
                &[
                    location.into(),
                    session.into(),
                    local.as_nanos(),
                    master.as_nanos(),
                ],
            );
        }
        // They were refused.
        Item::Metric { .. } | Item::Value { .. } => {}
        Item::Event {
            location,
            time,
            what,
        } => {
            digits(to, location.into());
            field(to, time.as_nanos());
            to.push(b' ');
            write_event(to, what);
        }
    }
}

/// Appends an event without its location and time.
pub(super) fn write_event(to: &mut Vec<u8>, what: What<'_>) {
    match what {
        What::Enter { region } => words(to, "enter", &[region.into()]),
        What::Leave { region } => words(to, "leave", &[region.into()]),
        What::Note(note) => {
            words(to, "note", &[]);
            text(to, note);
        }
        What::Send {
            to: peer,
            communicator,
            tag,
            request,
            ..
        } => {
            let name = match request {
                Some(_) => "send-start",
                None => "send",
            };
            words(to, name, &[peer.into(), communicator.into(), tag.into()]);
            if let Some(request) = request {
                unsigned_field(to, request);
            }
        }
        What::CompleteSend { request } => id(to, "send-complete", request),
        What::Receive {
            from,
            communicator,
            tag,
            ..
        } => {
            words(
                to,
                "receive",
                &[from.into(), communicator.into(), tag.into()],
            );
        }
        What::Collective { communicator } => words(to, "collective", &[communicator.into()]),
        What::CollectiveEnd {
            communicator,
            kind,
            root,
            sent,
            received,
            ..
        } => {
            words(to, "collective-end", &[communicator.into()]);
            write_operation(to, kind, root, [sent, received]);
        }
        What::PostReceive { request } => id(to, "receive-post", request),
        What::CompleteReceive {
            from,
            communicator,
            tag,
            request,
            ..
        } => {
            let message = [from.into(), communicator.into(), tag.into()];
            words(to, "receive-complete", &message);
            unsigned_field(to, request);
        }
        What::CancelReceive { request } => id(to, "receive-cancel", request),
        What::CollectiveStart {
            communicator,
            request,
        } => {
            words(to, "collective-start", &[communicator.into()]);
            unsigned_field(to, request);
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
            words(to, "collective-complete", &[communicator.into()]);
            write_operation(to, kind, root, [sent, received]);
            unsigned_field(to, request);
        }
        What::Access {
            target,
            communicator,
            request,
            ..
        } => {
            words(to, what.name(), &[target.into(), communicator.into()]);
            unsigned_field(to, request);
        }
        What::AccessComplete {
            communicator,
            request,
        } => {
            words(to, "access-complete", &[communicator.into()]);
            unsigned_field(to, request);
        }
        What::Signal { id: of } => id(to, "signal", of),
        What::Wait { id: of } => id(to, "wait", of),
        What::Fork { team } => words(to, "fork", &[team.into()]),
        What::ThreadBegin { team } => words(to, "thread-begin", &[team.into()]),
        What::ThreadEnd { team } => words(to, "thread-end", &[team.into()]),
        What::Join { team } => words(to, "join", &[team.into()]),
    }
    if let Some(bytes) = what.bytes() {
        unsigned_field(to, bytes);
    }
}

fn write_operation(to: &mut Vec<u8>, kind: CollectiveKind, root: u32, [sent, received]: [bool; 2]) {
    // The kind is known, because the event was checked before.
    text(to, kind_number(kind).map_or("", |kind| KINDS[kind].1));
    field(to, root.into());
    text(to, DATA[usize::from(sent) + 2 * usize::from(received)].1);
}

/// Appends the last line.
pub(super) fn write_end(to: &mut Vec<u8>, events: u64) {
    to.extend_from_slice(format!("end {events}").as_bytes());
}

fn words(to: &mut Vec<u8>, word: &str, numbers: &[i64]) {
    to.extend_from_slice(word.as_bytes());
    numbers.iter().for_each(|number| field(to, *number));
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.push(b' ');
    to.extend_from_slice(text.as_bytes());
}

fn field(to: &mut Vec<u8>, number: i64) {
    to.push(b' ');
    digits(to, number);
}

fn id(to: &mut Vec<u8>, word: &str, id: u64) {
    words(to, word, &[]);
    unsigned_field(to, id);
}

fn unsigned_field(to: &mut Vec<u8>, number: u64) {
    to.push(b' ');
    unsigned(to, number);
}

fn digits(to: &mut Vec<u8>, number: i64) {
    if number < 0 {
        to.push(b'-');
    }
    unsigned(to, number.unsigned_abs());
}

/// Appends a decimal number. The formatting of the standard library would take half of the time of
/// writing a trace.
fn unsigned(to: &mut Vec<u8>, number: u64) {
    let mut buffer = [0; 20];
    let (mut at, mut rest) = (buffer.len(), number);
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    to.extend_from_slice(&buffer[at..]);
}
