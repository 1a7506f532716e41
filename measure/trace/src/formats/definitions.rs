//! Definitions of a trace: all of them, and what is needed to check the next item.

use std::borrow::Cow;

use downbeat_clock_core::spline::SplineKnot;

use super::Sessions;
use super::item::Item;
use super::sessions::add_sample;
use crate::{Event, Place};

/// Maximum length of names and notes in bytes.
pub(super) const LONGEST_NAME: usize = 1 << 16;

/// Location of a trace.
#[derive(Debug)]
pub(super) struct DefinedLocation {
    pub(super) name: String,
    /// Index among the processes.
    pub(super) process: usize,
}

/// Process of a trace.
#[derive(Debug)]
pub(super) struct DefinedProcess {
    pub(super) place: Place,
    /// Location that represents it.
    pub(super) rank: u32,
}

/// All definitions of a trace, and its clock samples.
#[derive(Debug, Default)]
pub(super) struct TraceDefinitions {
    pub(super) locations: Vec<DefinedLocation>,
    pub(super) processes: Vec<DefinedProcess>,
    pub(super) communicators: Vec<Vec<u32>>,
    pub(super) regions: Vec<String>,
    /// Names and units.
    pub(super) metrics: Vec<[String; 2]>,
    pub(super) master: Option<u32>,
    /// Clock samples of each location, by session.
    pub(super) sessions: Sessions,
}

impl TraceDefinitions {
    /// Takes the next item, which is valid here. Events are not definitions.
    pub(super) fn take(&mut self, item: &Item<'_>) {
        match *item {
            Item::Location { place, name } => {
                let rank = self.locations.len() as u32;
                self.processes.push(DefinedProcess { place, rank });
                self.add_location(name, self.processes.len() - 1);
            }
            Item::Thread { rank, name } => {
                self.add_location(name, self.locations[rank as usize].process);
            }
            Item::Communicator { members } => self.communicators.push(members.to_vec()),
            Item::Region { name } => self.regions.push(name.to_owned()),
            Item::Metric { name, unit } => self.metrics.push([name, unit].map(str::to_owned)),
            Item::Master { location } => self.master = Some(location),
            Item::Sample {
                location,
                session,
                local: at,
                master: image,
            } => {
                let sessions = &mut self.sessions[location as usize];
                add_sample(sessions, session, SplineKnot { at, image });
            }
            Item::Event { .. } => {}
        }
    }

    fn add_location(&mut self, name: &str, process: usize) {
        let name = name.to_owned();
        self.locations.push(DefinedLocation { name, process });
        self.sessions.push(vec![]);
    }

    /// Passes all definitions to `take`, kind by kind, and then all samples.
    pub(super) fn each<E>(
        &self,
        mut take: impl FnMut(&Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (location, DefinedLocation { name, process }) in (0..).zip(&self.locations) {
            let DefinedProcess { place, rank } = self.processes[*process];
            take(&match rank == location {
                true => Item::Location { place, name },
                false => Item::Thread { rank, name },
            })?;
        }
        for members in &self.communicators {
            take(&Item::Communicator { members })?;
        }
        for name in &self.regions {
            take(&Item::Region { name })?;
        }
        for [name, unit] in &self.metrics {
            take(&Item::Metric { name, unit })?;
        }
        if let Some(location) = self.master {
            take(&Item::Master { location })?;
        }
        for (location, sessions) in (0..).zip(&self.sessions) {
            for (session, samples) in (0..).zip(sessions) {
                for SplineKnot { at, image } in samples {
                    take(&Item::Sample {
                        location,
                        session,
                        local: *at,
                        master: *image,
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Numbers of definitions of each kind, and the state needed to validate the next item.
#[derive(Debug, Default)]
pub(super) struct FileDefinitions {
    /// Number of the last session of each location.
    sessions: Vec<Option<u32>>,
    communicators: u32,
    regions: u32,
    metrics: u32,
    has_master: bool,
    pub(super) events: u64,
}

impl FileDefinitions {
    pub(super) fn locations(&self) -> u32 {
        self.sessions.len() as u32
    }

    pub(super) fn communicators(&self) -> u32 {
        self.communicators
    }

    pub(super) fn regions(&self) -> u32 {
        self.regions
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
                add_one(&mut self.communicators, "communicators")
            }
            Item::Region { name } => {
                check_name(name)?;
                add_one(&mut self.regions, "regions")
            }
            Item::Metric { name, .. } => {
                check_name(name)?;
                add_one(&mut self.metrics, "metrics")
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
            Item::Event {
                location, event, ..
            } => {
                self.location(location)?;
                self.check(event)?;
                self.events += u64::from(!matches!(event, Event::Metric { .. }));
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
        check_defined("location", location, self.locations())
    }

    /// Checks that an event refers to what is known.
    #[inline]
    fn check(&self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Enter { region } | Event::Leave { region } => {
                check_defined("region", region, self.regions)?;
            }
            Event::Metric { metric, .. } => check_defined("metric", metric, self.metrics)?,
            Event::Note(text) => check_name(text)?,
            Event::Opaque(_) => return Err("only an archive has this event".to_owned()),
            Event::CollectiveEnd { kind, .. } if !kind.is_of_mpi() => {
                return Err("a fork or join is not a collective operation".to_owned());
            }
            _ => {}
        }
        if let Some(peer) = event.peer() {
            self.location(peer)?;
        }
        match event.communicator() {
            Some(team) => check_defined("communicator", team, self.communicators),
            None => Ok(()),
        }
    }
}

/// Counts a definition.
fn add_one(count: &mut u32, what: &str) -> Result<(), String> {
    let more = count.checked_add(1);
    *count = more.ok_or_else(|| format!("there are more than 2^32 {what}"))?;
    Ok(())
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
pub(super) fn valid_name<'a>(text: &'a str, what: &str, number: u64) -> Cow<'a, str> {
    if text.is_empty() {
        return format!("{what} {number}").into();
    }
    if check_name(text).is_ok() {
        return text.into();
    }
    let mut name = text.replace(|c: char| c.is_control(), "\u{fffd}");
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name.into()
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
