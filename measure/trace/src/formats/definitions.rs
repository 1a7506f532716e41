//! Definitions of a trace that were read or written so far.

use super::item::{Item, What, kind_number};

/// Maximum length of names and notes in bytes.
pub(super) const LONGEST_NAME: usize = 1 << 16;

/// Numbers of definitions of each kind, and the state needed to validate the next item.
#[derive(Debug, Default)]
pub(super) struct FileDefinitions {
    /// Number of the last session of each location.
    sessions: Vec<Option<u32>>,
    known: Known,
    has_master: bool,
    pub(super) events: u64,
}

/// Numbers of locations, communicators and regions that events can refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    locations: u32,
    communicators: u32,
    regions: u32,
    metrics: u32,
}

impl FileDefinitions {
    pub(super) fn locations(&self) -> u32 {
        self.known.locations
    }

    pub(super) fn communicators(&self) -> u32 {
        self.known.communicators
    }

    pub(super) fn regions(&self) -> u32 {
        self.known.regions
    }

    /// Checks that this item may come next, and counts it.
    pub(super) fn take(&mut self, item: &Item<'_>) -> Result<(), String> {
        match *item {
            Item::Location { name, .. } => self.add_location(name),
            Item::Thread { rank, name } => {
                self.location(rank)?;
                self.add_location(name)
            }
            Item::Communicator { members } => {
                members
                    .iter()
                    .try_for_each(|member| self.location(*member))?;
                self.known.communicators = self
                    .known
                    .communicators
                    .checked_add(1)
                    .ok_or("there are more than 2^32 communicators")?;
                Ok(())
            }
            Item::Region { name } => {
                check_name(name)?;
                self.known.regions = self
                    .known
                    .regions
                    .checked_add(1)
                    .ok_or("there are more than 2^32 regions")?;
                Ok(())
            }
            Item::Metric { name, .. } => {
                check_name(name)?;
                let metrics = self.known.metrics.checked_add(1);
                self.known.metrics = metrics.ok_or("there are more than 2^32 metrics")?;
                Ok(())
            }
            Item::Value {
                location, metric, ..
            } => {
                self.location(location)?;
                check_defined("metric", metric, self.known.metrics)
            }
            Item::Master { location } => {
                self.location(location)?;
                if core::mem::replace(&mut self.has_master, true) {
                    return Err("a second master is defined".to_owned());
                }
                Ok(())
            }
            Item::Sample {
                location, session, ..
            } => self.sample(location, session),
            Item::Event { location, what, .. } => {
                self.known.event(location, what)?;
                self.events += 1;
                Ok(())
            }
        }
    }

    fn add_location(&mut self, name: &str) -> Result<(), String> {
        check_name(name)?;
        if self.sessions.len() >= u32::MAX as usize {
            return Err("there are more than 2^32 locations".to_owned());
        }
        self.sessions.push(None);
        self.known.locations += 1;
        Ok(())
    }

    fn sample(&mut self, location: u32, session: u32) -> Result<(), String> {
        self.location(location)?;
        let last = &mut self.sessions[location as usize];
        let next = last.map_or(0, |last| last.saturating_add(1));
        if session != next && *last != Some(session) {
            return Err(match *last {
                Some(last) => {
                    format!("session {session} of location {location} comes after session {last}")
                }
                None => format!(
                    "session {session} of location {location} is its first, which must have number 0"
                ),
            });
        }
        *last = Some(session);
        Ok(())
    }

    fn location(&self, location: u32) -> Result<(), String> {
        self.known.location(location)
    }
}

impl Known {
    /// Checks that an event of a location refers to what is known.
    #[inline]
    pub(super) fn event(&self, location: u32, what: What<'_>) -> Result<(), String> {
        self.location(location)?;
        match what {
            What::Enter { region } | What::Leave { region } => {
                check_defined("region", region, self.regions)
            }
            What::Note(text) => check_name(text),
            What::Send {
                to: peer,
                communicator,
                ..
            }
            | What::Receive {
                from: peer,
                communicator,
                ..
            }
            | What::CompleteReceive {
                from: peer,
                communicator,
                ..
            }
            | What::Access {
                target: peer,
                communicator,
                ..
            } => {
                self.location(peer)?;
                self.communicator(communicator)
            }
            What::CollectiveEnd { kind, .. } | What::CollectiveComplete { kind, .. }
                if kind_number(kind).is_none() =>
            {
                Err("a fork or join is not a collective operation".to_owned())
            }
            What::CompleteSend { .. }
            | What::PostReceive { .. }
            | What::CancelReceive { .. }
            | What::Signal { .. }
            | What::Wait { .. } => Ok(()),
            What::Collective { communicator }
            | What::CollectiveEnd { communicator, .. }
            | What::CollectiveStart { communicator, .. }
            | What::CollectiveComplete { communicator, .. }
            | What::AccessComplete { communicator, .. }
            | What::Fork { team: communicator }
            | What::ThreadBegin { team: communicator }
            | What::ThreadEnd { team: communicator }
            | What::Join { team: communicator } => self.communicator(communicator),
        }
    }

    fn location(&self, location: u32) -> Result<(), String> {
        check_defined("location", location, self.locations)
    }

    fn communicator(&self, communicator: u32) -> Result<(), String> {
        check_defined("communicator", communicator, self.communicators)
    }
}

fn check_defined(what: &str, number: u32, count: u32) -> Result<(), String> {
    if number < count {
        Ok(())
    } else {
        Err(format!("{what} {number} is not defined before this"))
    }
}

/// Checks that a name can be read back as it was written, and does not corrupt text output.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("there is no name".to_owned());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("a name is longer than {LONGEST_NAME} bytes"));
    }
    if name.contains(|c: char| c.is_control()) {
        return Err(format!(
            "a name has a control character, {:?}",
            name.chars().find(|c| c.is_control()).unwrap_or(' ')
        ));
    }
    Ok(())
}

/// Returns a valid name for a trace file; an empty name is replaced by the type and number.
pub(super) fn valid_name(text: &str, what: &str, number: u64) -> String {
    if text.is_empty() {
        return format!("{what} {number}");
    }
    let mut name = text.replace(|c: char| c.is_control(), "\u{fffd}");
    let end = (0..=LONGEST_NAME)
        .rev()
        .find(|end| name.is_char_boundary(*end));
    name.truncate(end.filter(|end| *end < name.len()).unwrap_or(name.len()));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_valid() {
        assert_eq!(valid_name("main()", "region", 3), "main()");
        assert_eq!(valid_name("", "region", 3), "region 3");
        assert_eq!(valid_name("a\nb\t", "region", 3), "a\u{fffd}b\u{fffd}");
        let long = "ä".repeat(LONGEST_NAME);
        assert_eq!(valid_name(&long, "region", 3).len(), LONGEST_NAME);
        assert_eq!(
            valid_name(&format!("x{long}"), "region", 3).len(),
            LONGEST_NAME - 1
        );
    }
}
