//! Traces as lines of text.
//!
//! Everything has one spelling: numbers without leading zeros, one blank between fields. So reading
//! and writing a trace reproduces it to the byte.
//!
//! The last line holds the checksum of all bytes before it, unless the first one says that there is
//! none.

use crate::kind::{DATA_NAMES, data_index};
use crate::{AccessKind, CollectiveKind, Event, Place};
use downbeat_clock_core::{Domain, Timestamp};

use super::definitions::FileDefinitions;
use super::item::Item;
use downbeat_files::number::whole;
use downbeat_files::{ChecksumLine, shown};

pub(super) const MAGIC: &str = "# downbeat trace ";
pub(super) const VERSION: &str = "1";
/// Version of traces that people write: they have no checksum.
pub(super) const WITHOUT_CHECKSUM: &str = "1 without checksum";
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

    /// Parses the next field, which must be `what`.
    #[inline]
    fn parse<T>(
        &mut self,
        what: &str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, String> {
        let field = self.next(what)?;
        parse(field).ok_or_else(|| no(field, what))
    }

    fn u64(&mut self, what: &str) -> Result<u64, String> {
        self.parse(what, number)
    }

    fn u32(&mut self, what: &str) -> Result<u32, String> {
        self.parse(what, |field| number(field)?.try_into().ok())
    }

    fn time<D: Domain>(&mut self) -> Result<Timestamp<D>, String> {
        let nanos = self.parse("a time in nanoseconds", signed)?;
        Ok(Timestamp::from_nanos(nanos))
    }

    fn tag(&mut self) -> Result<i32, String> {
        self.parse("a tag", |field| signed(field)?.try_into().ok())
    }

    /// Returns the index of the next field among `words`.
    fn one_of<const N: usize>(&mut self, what: &str, words: [&str; N]) -> Result<usize, String> {
        let is = |field: &[u8]| words.iter().position(|word| word.as_bytes() == field);
        self.parse(what, is)
    }

    /// Checks that a definition has the next number.
    fn numbered(&mut self, what: &str, next: u32) -> Result<(), String> {
        let what = format!("the number of a {what}");
        match self.u32(&what)? {
            found if found == next => Ok(()),
            found => Err(format!(
                "{what} is {found}, but would have to be {next} here"
            )),
        }
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
        let location = fields.location()?;
        let time = fields.time()?;
        let event = fields.event()?;
        fields.end()?;
        return Ok(Item::Event {
            location,
            time,
            event,
        });
    }
    let item = fields.definition(definitions, members)?;
    fields.end()?;
    Ok(item)
}

/// Parses an event without its location and time.
pub(super) fn parse_event(text: &str) -> Result<Event<'_>, String> {
    let mut fields = Fields {
        rest: Some(text.as_bytes()),
    };
    let event = fields.event()?;
    fields.end()?;
    Ok(event)
}

impl<'a> Fields<'a> {
    /// Reads a definition or a sample. `members` is a buffer.
    fn definition<'m>(
        &mut self,
        definitions: &FileDefinitions,
        members: &'m mut Vec<u32>,
    ) -> Result<Item<'m>, String>
    where
        'a: 'm,
    {
        Ok(match self.next("what it is")? {
            b"location" => {
                self.numbered("location", definitions.locations())?;
                let place = Place {
                    node: self.u32("the number of a node")?,
                    process: self.u32("the number of a process")?,
                };
                let name = self.text()?;
                Item::Location { place, name }
            }
            b"thread" => {
                self.numbered("location", definitions.locations())?;
                let (rank, name) = (self.location()?, self.text()?);
                Item::Thread { rank, name }
            }
            b"communicator" => {
                self.numbered("communicator", definitions.communicators())?;
                members.clear();
                while self.rest.is_some() {
                    members.push(self.location()?);
                }
                Item::Communicator { members }
            }
            b"region" => {
                self.numbered("region", definitions.regions())?;
                let name = self.text()?;
                Item::Region { name }
            }
            b"master" => Item::Master {
                location: self.location()?,
            },
            b"sample" => Item::Sample {
                location: self.location()?,
                session: self.u32("the number of a session")?,
                local: self.time()?,
                master: self.time()?,
            },
            other => {
                return Err(format!(
                    "\"{}\" is neither the number of a location, nor anything else that a line begins with",
                    shown(other)
                ));
            }
        })
    }

    fn location(&mut self) -> Result<u32, String> {
        self.u32("the number of a location")
    }

    fn communicator(&mut self) -> Result<u32, String> {
        self.u32("the number of a communicator")
    }

    fn region(&mut self) -> Result<u32, String> {
        self.u32("the number of a region")
    }

    fn request(&mut self) -> Result<u64, String> {
        self.u64("the id of a request")
    }

    fn request_if(&mut self, is_there: bool) -> Result<Option<u64>, String> {
        is_there.then(|| self.request()).transpose()
    }

    fn signal(&mut self) -> Result<u64, String> {
        self.u64("the id of a signal")
    }

    /// Reads an event; its fields are evaluated in the order of the line.
    #[inline]
    fn event(&mut self) -> Result<Event<'a>, String> {
        Ok(match self.next("the kind of an event")? {
            b"enter" => Event::Enter {
                region: self.region()?,
            },
            b"leave" => Event::Leave {
                region: self.region()?,
            },
            b"note" => Event::Note(self.text()?),
            name @ (b"send" | b"send-start") => Event::Send {
                to: self.location()?,
                communicator: self.communicator()?,
                tag: self.tag()?,
                request: self.request_if(name != b"send")?,
                bytes: self.bytes()?,
            },
            b"send-complete" => Event::CompleteSend {
                request: self.request()?,
            },
            name @ (b"receive" | b"receive-complete") => Event::Receive {
                from: self.location()?,
                communicator: self.communicator()?,
                tag: self.tag()?,
                request: self.request_if(name != b"receive")?,
                bytes: self.bytes()?,
            },
            b"receive-post" => Event::PostReceive {
                request: self.request()?,
            },
            b"receive-cancel" => Event::CancelReceive {
                request: self.request()?,
            },
            name @ (b"collective" | b"collective-start") => Event::CollectiveBegin {
                communicator: self.communicator()?,
                request: self.request_if(name != b"collective")?,
            },
            b"collective-end" => self.collective_end(false)?,
            b"collective-complete" => self.collective_end(true)?,
            b"put" => self.access(AccessKind::Put)?,
            b"get" => self.access(AccessKind::Get)?,
            b"atomic" => self.access(AccessKind::Atomic)?,
            b"access-complete" => Event::AccessComplete {
                communicator: self.communicator()?,
                request: self.request()?,
            },
            b"signal" => Event::Signal { id: self.signal()? },
            b"wait" => Event::Wait { id: self.signal()? },
            b"fork" => Event::Fork {
                team: self.communicator()?,
            },
            b"thread-begin" => Event::ThreadBegin {
                team: self.communicator()?,
            },
            b"thread-end" => Event::ThreadEnd {
                team: self.communicator()?,
            },
            b"join" => Event::Join {
                team: self.communicator()?,
            },
            other => return Err(no(other, "the kind of an event")),
        })
    }

    /// Reads a one-sided access.
    fn access(&mut self, kind: AccessKind) -> Result<Event<'static>, String> {
        Ok(Event::Access {
            kind,
            target: self.location()?,
            communicator: self.communicator()?,
            request: self.request()?,
            bytes: self.bytes()?,
        })
    }

    /// Reads the end of a collective operation.
    fn collective_end(&mut self, has_request: bool) -> Result<Event<'static>, String> {
        let communicator = self.communicator()?;
        let kinds = CollectiveKind::MPI_KINDS;
        let kind = self.one_of("a collective operation", kinds.map(CollectiveKind::name))?;
        let root = self.u32("the rank of a root")?;
        let data = self.one_of("none, sent, received or both", DATA_NAMES)?;
        Ok(Event::CollectiveEnd {
            communicator,
            kind: kinds[kind],
            root,
            sent: data & 1 != 0,
            received: data & 2 != 0,
            request: self.request_if(has_request)?,
            bytes: self.bytes()?,
        })
    }
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
                &[definitions.locations() - 1, node, process],
            );
            text(to, name);
        }
        Item::Thread { rank, name } => {
            words(to, "thread", &[definitions.locations() - 1, rank]);
            text(to, name);
        }
        Item::Communicator { members } => {
            words(to, "communicator", &[definitions.communicators() - 1]);
            members
                .iter()
                .for_each(|member| field(to, (*member).into()));
        }
        Item::Region { name } => {
            words(to, "region", &[definitions.regions() - 1]);
            text(to, name);
        }
        Item::Master { location } => words(to, "master", &[location]),
        Item::Sample {
            location,
            session,
            local,
            master,
        } => {
            words(to, "sample", &[location, session]);
            field(to, local.as_nanos());
            field(to, master.as_nanos());
        }
        // It was refused.
        Item::Metric { .. } => {}
        Item::Event {
            location,
            time,
            event,
        } => {
            digits(to, location);
            field(to, time.as_nanos());
            to.push(b' ');
            write_event(to, event);
        }
    }
}

/// Appends an event without its location and time.
pub(super) fn write_event(to: &mut Vec<u8>, event: Event<'_>) {
    to.extend_from_slice(event.name().as_bytes());
    match event {
        Event::Enter { region } | Event::Leave { region } => field(to, region.into()),
        Event::Note(note) => text(to, note),
        _ => {}
    }
    if let Some(peer) = event.peer() {
        field(to, peer.into());
    }
    if let Some(communicator) = event.communicator() {
        field(to, communicator.into());
    }
    if let Some(tag) = event.tag() {
        field(to, tag.into());
    }
    if let Event::CollectiveEnd {
        kind,
        root,
        sent,
        received,
        ..
    } = event
    {
        text(to, kind.name());
        field(to, root.into());
        text(to, DATA_NAMES[data_index(sent, received)]);
    }
    for number in [event.id(), event.bytes()].into_iter().flatten() {
        to.push(b' ');
        digits(to, number);
    }
}

/// Appends the last line.
pub(super) fn write_end(to: &mut Vec<u8>, events: u64) {
    to.extend_from_slice(format!("end {events}").as_bytes());
}

fn words(to: &mut Vec<u8>, word: &str, numbers: &[u32]) {
    to.extend_from_slice(word.as_bytes());
    numbers
        .iter()
        .for_each(|number| field(to, (*number).into()));
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.push(b' ');
    to.extend_from_slice(text.as_bytes());
}

fn field(to: &mut Vec<u8>, number: i64) {
    to.push(b' ');
    digits(to, number);
}

fn digits(to: &mut Vec<u8>, number: impl itoa::Integer) {
    to.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
