//! Distribution of processes over ranks.

use super::super::workers::balanced;

/// Assignment of locations to ranks: contiguous processes with all of their threads, so that all
/// ranks have similar numbers of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Rank of every location that represents a process.
    owners: Vec<u32>,
}

impl Shares {
    /// Distributes processes over `ranks` ranks. `locations` has, for each location, the number of
    /// the location that represents its process, mostly its own, and its number of events.
    /// Processes are not split: with fewer processes than ranks, some ranks get none.
    pub fn new(ranks: u32, locations: &[(u32, u64)]) -> Self {
        let mut process_of: Vec<usize> = Vec::with_capacity(locations.len());
        let mut events = vec![0; locations.len()];
        for (location, (stands, count)) in locations.iter().enumerate() {
            // A location whose representative is a thread of another process belongs to that
            // process.
            let process = process_of
                .get(*stands as usize)
                .copied()
                .unwrap_or(location);
            process_of.push(process);
            events[process] += count;
        }
        let processes: Vec<usize> = (0..locations.len())
            .filter(|location| process_of[*location] == *location)
            .collect();
        let loads: Vec<u64> = processes.iter().map(|process| events[*process]).collect();
        let mut owners = vec![0; locations.len()];
        for (rank, group) in (0..).zip(balanced(&loads, ranks as usize)) {
            processes[group]
                .iter()
                .for_each(|process| owners[*process] = rank);
        }
        Self { owners }
    }

    /// Returns the rank that keeps the events of a process, given by the location that represents
    /// it; rank 0 if it is unknown.
    pub(super) fn owner(&self, process: u32) -> u32 {
        self.owners.get(process as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_distributed_with_their_threads() {
        let owners = |ranks, locations: &[(u32, u64)]| {
            let shares = Shares::new(ranks, locations);
            locations
                .iter()
                .map(|(process, _)| shares.owner(*process))
                .collect::<Vec<_>>()
        };
        assert_eq!(owners(2, &[(0, 5), (1, 5), (2, 5), (3, 5)]), [0, 0, 1, 1]);
        // The threads of the last two processes are at the end.
        assert_eq!(
            owners(2, &[(0, 30), (1, 5), (2, 5), (1, 10), (2, 10)]),
            [0, 1, 1, 1, 1]
        );
        assert_eq!(owners(4, &[(0, 1), (1, 1), (0, 9)]), [0, 1, 0]);
        assert_eq!(owners(3, &[]), [0; 0]);
        assert_eq!(
            Shares::new(2, &[(0, 1), (0, 1), (2, 2), (1, 2)]),
            Shares {
                owners: vec![0, 0, 1, 0]
            }
        );
    }
}
