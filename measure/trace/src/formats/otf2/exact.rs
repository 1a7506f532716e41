//! Statements of an archive beyond OTF2, so that all items of a trace are read from it as
//! they were.
//!
//! The table in the documentation of [`otf2`](super) lists all statements.

use std::fs;
use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_otf2::{Anchor, AttributeRef, Event, EventRecord, ParameterRef, StringRef, Value};

use super::Otf2Error;

/// Property of the anchor: the version of these statements.
const EVENTS: &str = "DOWNBEAT::EVENTS";
const VERSION: &str = "1";
/// Property of the anchor: nanoseconds that were added to all times.
pub(super) const SHIFT: &str = "DOWNBEAT::SHIFT";
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

/// Statement that a record is another event in the trace than OTF2 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// Note, with its text.
    Note(StringRef),
    /// Event, with its line.
    Event(StringRef),
}

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
        let damaged =
            |name: &str, value: &str| format!("property {name}: {value:?} is not known here");
        match anchor.property(EVENTS) {
            None => return Ok(None),
            Some(VERSION) => {}
            Some(other) => return Err(damaged(EVENTS, other)),
        }
        let number = |name: &str, most: u64| {
            let Some(text) = anchor.property(name) else {
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

    /// Returns the statements about a copy that adds `shift` to all times, too.
    pub(super) fn later(self, shift: Duration) -> Self {
        Self {
            shift: self.shift.saturating_add(shift.as_nanos()),
            ..self
        }
    }

    /// Replaces the statements of an anchor file.
    pub(super) fn replace(self, anchor: &Path) -> Result<(), Otf2Error> {
        let wrong = |why| Otf2Error::content(anchor, why);
        let file = fs::read(anchor).map_err(Otf2Error::io(anchor))?;
        let mut properties = Anchor::parse(&file).map_err(wrong)?.properties;
        properties.retain(|(name, _)| ![EVENTS, SHIFT, MASTER, UNSIZED].contains(&name.as_str()));
        properties.extend(self.properties());
        let new = Anchor::with_properties(&file, &properties).map_err(wrong)?;
        fs::write(anchor, new.unwrap_or(file)).map_err(Otf2Error::io(anchor))
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

    /// Returns the statement of a record; `None` if its attributes cannot be decoded.
    pub(super) fn statement(
        record: &EventRecord<'_>,
        event: &Event<'_>,
    ) -> Option<Option<Statement>> {
        if let Event::ParameterString(of) = event {
            match of.parameter {
                NOTE => return Some(Some(Statement::Note(of.string))),
                EVENT => return Some(Some(Statement::Event(of.string))),
                _ => {}
            }
        }
        let attributes = record.attributes()?;
        let found = attributes.iter().find(|(of, _)| *of == EVENT_ATTRIBUTE);
        Some(match found {
            Some((_, Value::String(text))) => Some(Statement::Event(text)),
            _ => None,
        })
    }

    /// Returns the number of bytes that a number in a record stands for.
    pub(super) const fn bytes_of(self, bytes: u64) -> Option<u64> {
        match bytes {
            0 if self.is_unsized => None,
            bytes => Some(bytes),
        }
    }
}
