//! Names and definitions of a program.

use crate::formats::Item;
use crate::{CallKind, CollectiveKind};

/// Names of the locations and regions of a trace.
///
/// Collective operations outside of all calls of MPI are regions, too: their numbers come after all others.
#[derive(Clone, Debug, Default)]
pub struct ProgramNames {
    locations: Vec<String>,
    /// Location that represents the process of each location.
    processes: Vec<u32>,
    regions: Vec<NamedRegion>,
    communicators: Vec<Box<[u32]>>,
}

#[derive(Clone, Debug)]
struct NamedRegion {
    name: String,
    kind: CallKind,
    waits_for_senders: bool,
    waits_for_receivers: bool,
}

/// Number of the first region of a collective operation.
const FIRST_COLLECTIVE: u32 = u32::MAX - CollectiveKind::MPI_KINDS.len() as u32;

impl ProgramNames {
    /// Region of a collective operation whose kind is not known yet.
    pub(super) const UNKNOWN: u32 = u32::MAX;

    /// Takes a definition; returns false for any other item.
    pub(super) fn take(&mut self, item: &Item<'_>) -> bool {
        match *item {
            Item::Location { name, .. } => {
                self.processes.push(self.locations.len() as u32);
                self.locations.push(name.to_owned());
            }
            Item::Thread { rank, name } => {
                self.processes.push(rank);
                self.locations.push(name.to_owned());
            }
            Item::Communicator { members } => self.communicators.push(members.into()),
            Item::Region { name } => {
                self.regions.push(NamedRegion {
                    name: name.to_owned(),
                    kind: CallKind::of_name(name),
                    waits_for_senders: CallKind::waits_for_senders(name),
                    waits_for_receivers: CallKind::waits_for_receivers(name),
                });
            }
            _ => return false,
        }
        true
    }

    /// Returns the names of all locations.
    pub fn locations(&self) -> &[String] {
        &self.locations
    }

    /// Returns the numbers and names of all regions, and of the collective operations.
    pub fn regions(&self) -> impl Iterator<Item = (u32, &str)> {
        let regions = (0..).zip(self.regions.iter().map(|region| region.name.as_str()));
        let collectives = CollectiveKind::MPI_KINDS.map(CollectiveKind::name);
        regions.chain((FIRST_COLLECTIVE..Self::UNKNOWN).zip(collectives))
    }

    /// Returns the name of a region.
    pub fn region(&self, number: u32) -> &str {
        match self.regions.get(number as usize) {
            Some(region) => &region.name,
            None => kind_of_operation(number).map_or("collective", CollectiveKind::name),
        }
    }

    /// Returns the kind of a region.
    pub fn kind(&self, number: u32) -> CallKind {
        match self.regions.get(number as usize) {
            Some(region) => region.kind,
            None => kind_of_operation(number).map_or(CallKind::AllToAll, CallKind::of_collective),
        }
    }

    /// Returns true if calls of a region can wait until messages are sent.
    pub(crate) fn waits_for_senders(&self, number: u32) -> bool {
        let region = self.regions.get(number as usize);
        region.is_some_and(|region| region.waits_for_senders)
    }

    /// Returns true if calls of a region can wait until messages are received.
    pub(crate) fn waits_for_receivers(&self, number: u32) -> bool {
        let region = self.regions.get(number as usize);
        region.is_some_and(|region| region.waits_for_receivers)
    }

    /// Returns the region of a collective operation outside of all calls.
    pub(super) fn of_operation(kind: CollectiveKind) -> u32 {
        match kind.is_of_mpi() {
            true => FIRST_COLLECTIVE + kind as u32,
            false => Self::UNKNOWN,
        }
    }

    /// Returns the location that represents the process of a location.
    pub(super) fn process(&self, location: u32) -> u32 {
        let process = self.processes.get(location as usize);
        process.copied().unwrap_or(location)
    }

    /// Returns the location that represents another one in a communicator: itself, if it
    /// is a member, or else its process.
    pub(super) fn member(&self, communicator: u32, location: u32) -> u32 {
        let process = self.process(location);
        match process == location || !self.members(communicator).contains(&location) {
            true => process,
            false => location,
        }
    }

    /// Returns the members of a communicator.
    pub(super) fn members(&self, communicator: u32) -> &[u32] {
        let members = self.communicators.get(communicator as usize);
        members.map_or(&[], |members| members)
    }
}

/// Returns the kind of the operation whose region has this number, if it is known.
fn kind_of_operation(number: u32) -> Option<CollectiveKind> {
    let place = number.saturating_sub(FIRST_COLLECTIVE) as usize;
    CollectiveKind::MPI_KINDS.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_without_a_region_have_names() {
        let mut names = ProgramNames::default();
        assert!(names.take(&Item::Region { name: "MPI_Send" }));
        assert_eq!(
            (names.region(0), names.kind(0)),
            ("MPI_Send", CallKind::Send)
        );
        let scan = ProgramNames::of_operation(CollectiveKind::Scan);
        assert_eq!(
            (names.region(scan), names.kind(scan)),
            ("scan", CallKind::AllToAll)
        );
        let root = ProgramNames::of_operation(CollectiveKind::Reduce);
        assert_eq!(
            (names.region(root), names.kind(root)),
            ("reduce", CallKind::Rooted)
        );
        let unknown = ProgramNames::of_operation(CollectiveKind::Fork);
        assert_eq!(names.region(unknown), "collective");
        // A number without a definition, which readers refuse.
        assert_eq!(names.region(7), "barrier");
        assert_eq!(names.regions().count(), 13);
    }
}
