//! Distribution of processes over ranks.

use super::super::workers::balanced;
use super::super::{ClockOwner, Clocks, Place};

/// Number of events of a location, and what its events share with those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocationLoad {
    /// Number of the location that represents its process, mostly its own.
    pub process: u32,
    /// Place of the location, which determines its clock.
    pub place: Place,
    /// Number of events.
    pub events: u64,
}

/// Assignment of locations to ranks: contiguous processes with all of their threads, and all
/// locations that share a clock, so that all ranks have similar numbers of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationShares {
    /// Rank of every location.
    owners: Vec<u32>,
}

impl LocationShares {
    /// Distributes locations over `ranks` ranks. Processes and clocks are not split: with fewer of
    /// them than ranks, some ranks get none.
    pub fn new(ranks: u32, clock_of: ClockOwner, locations: &[LocationLoad]) -> Self {
        let clocks = Clocks::new(clock_of, locations.iter().map(|load| load.place));
        // The first location of the group of each location.
        let mut groups: Vec<usize> = (0..locations.len()).collect();
        let first = |groups: &[usize], mut location: usize| {
            while groups[location] != location {
                location = groups[location];
            }
            location
        };
        for (location, (load, clock)) in locations.iter().zip(clocks.readers()).enumerate() {
            for other in [load.process, *clock] {
                // A process that is not known is of no other location.
                let other = (other as usize).min(location);
                let [one, other] = [location, other].map(|location| first(&groups, location));
                groups[one.max(other)] = one.min(other);
            }
        }
        let mut events = vec![0; locations.len()];
        for (location, load) in locations.iter().enumerate() {
            let group = first(&groups, location);
            groups[location] = group;
            events[group] += load.events;
        }
        let firsts: Vec<usize> = (0..locations.len())
            .filter(|location| groups[*location] == *location)
            .collect();
        let loads: Vec<u64> = firsts.iter().map(|group| events[*group]).collect();
        let mut owners = vec![0; locations.len()];
        for (rank, group) in (0..).zip(balanced(&loads, ranks as usize)) {
            firsts[group].iter().for_each(|group| owners[*group] = rank);
        }
        let owners = groups.iter().map(|group| owners[*group]).collect();
        Self { owners }
    }

    /// Returns the rank that keeps the events of a process, given by the location that represents
    /// it; rank 0 if it is unknown.
    pub(crate) fn owner(&self, process: u32) -> u32 {
        self.owners.get(process as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_distributed_with_their_threads() {
        let owners = |ranks, locations: &[(u32, u64)]| {
            let load = |(process, events): &(u32, u64)| LocationLoad {
                process: *process,
                place: Place {
                    node: process / 2,
                    process: *process,
                },
                events: *events,
            };
            let loads: Vec<LocationLoad> = locations.iter().map(load).collect();
            let shares = |owner| LocationShares::new(ranks, owner, &loads).owners;
            assert_eq!(shares(ClockOwner::Process), shares(ClockOwner::Location));
            let whole_nodes = shares(ClockOwner::Node);
            for (one, rank) in loads.iter().zip(&whole_nodes) {
                let mut others = loads.iter().zip(&whole_nodes);
                assert!(others.all(|(other, on)| one.place.node != other.place.node || rank == on));
            }
            shares(ClockOwner::Process)
        };
        assert_eq!(owners(2, &[(0, 5), (1, 5), (2, 5), (3, 5)]), [0, 0, 1, 1]);
        // The threads of the last two processes are at the end.
        assert_eq!(
            owners(2, &[(0, 30), (1, 5), (2, 5), (1, 10), (2, 10)]),
            [0, 1, 1, 1, 1]
        );
        assert_eq!(owners(4, &[(0, 1), (1, 1), (0, 9)]), [0, 1, 0]);
        assert_eq!(owners(3, &[]), [0; 0]);
        assert_eq!(owners(2, &[(0, 1), (0, 1), (2, 2), (1, 2)]), [0, 0, 1, 0]);
    }
}
