//! Which rank keeps the events of which process.

use super::super::workers::balanced;

/// Which rank keeps the events of which location: neighbouring processes, with all of their threads, so that all ranks have
/// about as many events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Of every location that stands for a process.
    owners: Vec<u32>,
}

impl Shares {
    /// For so many ranks. Of every location there is the number of the one that stands for its process, mostly its own, and
    /// how many events it has. Processes are not split: with fewer processes than ranks, some have nothing.
    pub fn new(ranks: u32, locations: &[(u32, u64)]) -> Self {
        let mut process_of: Vec<usize> = Vec::with_capacity(locations.len());
        let mut events = vec![0; locations.len()];
        for (location, (stands, count)) in locations.iter().enumerate() {
            // One that stands for a process of another one's is a thread of that.
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

    /// Who keeps the events of a process, which is known by the location that stands for it; rank 0, if it is not known.
    pub(super) fn owner(&self, process: u32) -> u32 {
        self.owners.get(process as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_shared_out_with_their_threads() {
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
