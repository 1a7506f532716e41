//! Clocks that locations share.
//!
//! Threads of a process read one clock, and so do all processes of a node where it is synchronized
//! there. A correction moves clocks, not locations, so that events of one clock keep their order.

use rustc_hash::FxHashMap;

use super::Place;

/// Group of locations that share a clock: their events keep their order in a correction, and it
/// suffices to compare one of them with the master.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockOwner {
    /// No group: every location has its own clock.
    Location,
    /// Threads of a process.
    #[default]
    Process,
    /// Processes of a node.
    Node,
    /// All locations: there is nothing to correct.
    Cluster,
}

/// Clocks of locations, each given by the first location that reads it.
///
/// ```
/// use downbeat_trace::{ClockOwner, Clocks, Place};
///
/// let places = [(0, 0), (0, 0), (0, 1)].map(|(node, process)| Place { node, process });
/// assert_eq!(Clocks::new(ClockOwner::Process, places).readers(), [0, 0, 2]);
/// assert_eq!(Clocks::new(ClockOwner::Node, places).readers(), [0, 0, 0]);
/// ```
#[derive(Clone, Debug)]
pub struct Clocks {
    owner: ClockOwner,
    /// For every location, the first one with the same clock.
    readers: Vec<u32>,
    first: FxHashMap<(u32, u32), u32>,
}

impl Clocks {
    /// Returns the clocks of locations at these places.
    pub fn new(owner: ClockOwner, places: impl IntoIterator<Item = Place>) -> Self {
        let mut clocks = Self {
            owner,
            readers: vec![],
            first: FxHashMap::default(),
        };
        for place in places {
            clocks.add(place);
        }
        clocks
    }

    /// Adds the next location, and returns the first one with the same clock.
    pub(super) fn add(&mut self, place: Place) -> u32 {
        let location = self.readers.len() as u32;
        let key = match self.owner {
            ClockOwner::Location => (location, 0),
            ClockOwner::Process => (place.node, place.process),
            ClockOwner::Node => (place.node, 0),
            ClockOwner::Cluster => (0, 0),
        };
        let reader = *self.first.entry(key).or_insert(location);
        self.readers.push(reader);
        reader
    }

    /// Returns the group of locations that share a clock; none if no clock has several.
    pub(super) fn groups(&self) -> ClockOwner {
        if self.first.len() == self.readers.len() {
            return ClockOwner::Location;
        }
        self.owner
    }

    /// Returns, for every location, the index of the first one with the same clock.
    pub fn readers(&self) -> &[u32] {
        &self.readers
    }
}
