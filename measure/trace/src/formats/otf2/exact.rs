//! Statements of an archive beyond OTF2, so that all items of a trace are read from it as
//! they were.
//!
//! The table in the documentation of [`otf2`](super) lists all statements.

use downbeat_otf2::{Anchor, AttributeRef, Event, EventRecord, ParameterRef, Value};

use super::events::Otf2Event;
use crate::CollectiveKind;
use crate::formats::What;

/// Property of the anchor: the version of these statements.
const EVENTS: &str = "DOWNBEAT::EVENTS";
const VERSION: &str = "1";
/// Property of the anchor: nanoseconds that were added to all times.
const SHIFT: &str = "DOWNBEAT::SHIFT";
/// Property of the anchor: the location with the master's clock.
const MASTER: &str = "DOWNBEAT::MASTER";
/// Property of the anchor: an event without bytes is one of unknown size.
const UNSIZED: &str = "DOWNBEAT::UNSIZED";
/// Properties of a location group.
pub(super) const NODE: &str = "DOWNBEAT::NODE";
pub(super) const PROCESS: &str = "DOWNBEAT::PROCESS";

/// Parameter of notes.
pub(super) const NOTE: ParameterRef = ParameterRef(0);
/// Parameter of events without a record of their own.
pub(super) const EVENT: ParameterRef = ParameterRef(1);
/// Attribute of events whose records lack something.
pub(super) const EVENT_ATTRIBUTE: AttributeRef = AttributeRef(0);

/// Root of operations without one.
pub(super) const NO_ROOT: u32 = u32::MAX;

/// Statements about all of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExactTrace {
    /// Nanoseconds that were added to all times.
    pub(super) shift: i64,
    /// Location with the master's clock, if the trace names one.
    pub(super) master: Option<u32>,
    /// True if the size of an event without bytes is unknown; otherwise there are none.
    pub(super) is_unsized: bool,
}

impl ExactTrace {
    /// Returns the statements of an anchor file of an archive with this number of
    /// locations; `None` if the archive is one of another program.
    ///
    /// # Errors
    /// If a property is damaged, or of a later version.
    pub(super) fn of(anchor: &Anchor, locations: usize) -> Result<Option<Self>, String> {
        let value = |name: &str| {
            let found = anchor.properties.iter().find(|(found, _)| found == name);
            found.map(|(_, value)| value.as_str())
        };
        let damaged =
            |name: &str, value: &str| format!("property {name}: {value:?} is not known here");
        match value(EVENTS) {
            None => return Ok(None),
            Some(VERSION) => {}
            Some(other) => return Err(damaged(EVENTS, other)),
        }
        let number = |name: &str, most: u64| {
            let Some(text) = value(name) else {
                return Ok(None);
            };
            let number = text.parse().ok().filter(|number| *number <= most);
            number.map(Some).ok_or_else(|| damaged(name, text))
        };
        Ok(Some(Self {
            shift: number(SHIFT, i64::MAX as u64)?.unwrap_or(0) as i64,
            master: number(MASTER, (locations as u64).saturating_sub(1))?
                .map(|master| master as u32),
            is_unsized: number(UNSIZED, 1)?.is_some_and(|is_unsized| is_unsized == 1),
        }))
    }

    /// Returns the properties of the anchor file.
    pub(super) fn properties(self) -> Vec<(String, String)> {
        let mut all = vec![(EVENTS.to_owned(), VERSION.to_owned())];
        let mut add = |name: &str, number: u64| all.push((name.to_owned(), number.to_string()));
        if self.shift != 0 {
            add(SHIFT, self.shift as u64);
        }
        if let Some(master) = self.master {
            add(MASTER, master.into());
        }
        if self.is_unsized {
            add(UNSIZED, 1);
        }
        all
    }

    /// Returns what a record is in the trace, if it is not what OTF2 says; `None` if its
    /// attributes cannot be decoded.
    pub(super) fn event(record: &EventRecord<'_>, event: &Event<'_>) -> Option<Option<Otf2Event>> {
        if let Event::ParameterString { parameter, string } = event {
            match *parameter {
                NOTE => return Some(Some(Otf2Event::Note { text: string.0 })),
                EVENT => return Some(Some(Otf2Event::Stated { text: string.0 })),
                _ => {}
            }
        }
        let attributes = record.attributes()?;
        let found = attributes.iter().find(|(of, _)| *of == EVENT_ATTRIBUTE);
        Some(match found {
            Some((_, Value::String(text))) => Some(Otf2Event::Stated { text: text.0 }),
            _ => None,
        })
    }

    /// Returns the number of bytes that a record of an event states.
    pub(super) fn bytes(self, event: &Otf2Event, what: What<'_>) -> Option<u64> {
        let bytes = match *event {
            Otf2Event::Access { bytes, .. } => bytes,
            Otf2Event::RmaCollectiveEnd(operation) => operation.sent,
            other => other.bytes()?,
        };
        match what {
            // One byte only tells that the member has a part.
            What::CollectiveEnd { kind, .. } | What::CollectiveComplete { kind, .. }
                if bytes == 1 && (self.is_unsized || has_no_data(event, kind)) =>
            {
                self.bytes_of(0)
            }
            _ => self.bytes_of(bytes),
        }
    }

    /// Returns the number of bytes that a number in a record stands for.
    pub(super) const fn bytes_of(self, bytes: u64) -> Option<u64> {
        match bytes {
            0 if self.is_unsized => None,
            bytes => Some(bytes),
        }
    }

    /// Returns the root that an operation of this kind has in the trace.
    pub(super) const fn root(kind: CollectiveKind, root: u32) -> u32 {
        match root {
            NO_ROOT if !kind.has_root() => 0,
            root => root,
        }
    }
}

/// Returns true if members of an operation only wait for each other.
fn has_no_data(event: &Otf2Event, kind: CollectiveKind) -> bool {
    kind == CollectiveKind::Barrier || matches!(event, Otf2Event::RmaCollectiveEnd(_))
}
