//! Conditions of a launch: load and round trips; disturbance of the processors during a
//! measurement, by the counters of the kernel, and their frequency.

use std::fs;
use std::time::Instant;

use downbeat_sync::{Comm, CommError, block_on_ready, collective};
use downbeat_timers::core_cycle;

use crate::Failure;

/// Returns the load of each processor of this node, over the last minute; `None` if the
/// kernel does not tell.
pub(super) fn load_per_core() -> Option<f64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = load.split_whitespace().next()?.parse().ok()?;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let cores = stat.lines().filter(is_core).count();
    (cores > 0).then(|| load / cores as f64)
}

/// Returns the longest round trip between two neighbouring ranks on all ranks, each the
/// median of several, in nanoseconds; `None` for a rank alone. All ranks call this.
pub(super) fn longest_round_trip<M: Comm>(comm: &M) -> Result<Option<u64>, Failure> {
    let longest = block_on_ready(async {
        let mut longest = 0;
        // Each rank is in a pair with the next one, and then with the one before.
        for first in 0..2 {
            let asks = comm.rank() % 2 == first;
            if asks && comm.rank() + 1 < comm.size() {
                longest = longest.max(median_round_trip(comm, comm.rank() + 1).await?);
            } else if !asks && comm.rank() > 0 {
                for _ in 0..TRIES {
                    let question: u64 = comm.recv(comm.rank() - 1).await?;
                    comm.send(comm.rank() - 1, question).await?;
                }
            }
        }
        collective::all_reduce(comm, longest, u64::max).await
    });
    let longest = longest.map_err(Failure::run)?;
    Ok((longest > 0).then_some(longest))
}

/// Number of round trips between two ranks: a single delay does not count.
const TRIES: usize = 101;

/// Returns the median round trip to a rank that answers, in nanoseconds.
async fn median_round_trip<M: Comm>(comm: &M, other: u32) -> Result<u64, CommError> {
    let mut took = [0; TRIES];
    for took in &mut took {
        let sent = Instant::now();
        comm.send(other, 0_u64).await?;
        let _: u64 = comm.recv(other).await?;
        *took = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }
    took.sort_unstable();
    Ok(took[TRIES / 2])
}

/// Returns the time of a cycle on the slowest core of all ranks, with its name in records; nothing on unknown processors. All ranks
/// call this, at the end of a measurement, when their cores run as they did in it.
pub(super) fn slowest_cycle<M: Comm>(comm: &M) -> Result<Option<(String, f64)>, Failure> {
    let own = core_cycle().unwrap_or(0.0);
    let nanos =
        block_on_ready(collective::all_reduce(comm, own, f64::max)).map_err(Failure::run)?;
    Ok((nanos > 0.0).then(|| ("core_cycle".to_owned(), nanos)))
}

/// Counters of the kernel for the node of rank 0, and the time at which they were read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KernelCounters {
    at: Instant,
    /// Time of all processors, and the part that the host of a virtual machine took, in the same unit.
    all: u64,
    stolen: u64,
    interrupts: u64,
}

impl KernelCounters {
    /// Reads the counters; `None` if the kernel has none.
    pub(super) fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        Self::parse(&text, Instant::now())
    }

    fn parse(text: &str, at: Instant) -> Option<Self> {
        /// Index of the stolen time among the times of all processors; those of guests, behind it, are parts of others.
        const STOLEN: usize = 7;
        let numbers = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let numbers = line.split_whitespace().map(str::parse);
            numbers.collect::<Result<Vec<u64>, _>>().ok()
        };
        let times = numbers("cpu ")?;
        Some(Self {
            at,
            all: times.get(..=STOLEN)?.iter().sum(),
            stolen: times[STOLEN],
            interrupts: *numbers("intr ")?.first()?,
        })
    }

    /// Returns what records state of the time until later counters, in nanoseconds: the time that the host took of each second of a
    /// processor, and the mean time between two interrupts of any processor, as far as there are any.
    pub(super) fn figures_until(&self, later: &Self) -> Vec<(String, f64)> {
        let all = later.all.saturating_sub(self.all).max(1) as f64;
        let stolen = later.stolen.saturating_sub(self.stolen) as f64 / all;
        let interrupts = later.interrupts.saturating_sub(self.interrupts) as f64;
        let between = later.at.duration_since(self.at).as_nanos() as f64 / interrupts;
        [
            ("stolen_per_s", (stolen > 0.0).then_some(stolen * 1e9)),
            ("between_interrupts", (interrupts > 0.0).then_some(between)),
        ]
        .into_iter()
        .filter_map(|(name, nanos)| Some((name.to_owned(), nanos?)))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::ThreadCluster;
    use std::time::Duration;

    const BEFORE: &str = "cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 2 3\nintr 5000 1 0 9\nctxt 3\n";

    #[test]
    fn counters_are_compared() {
        let after = BEFORE
            .replace("cpu  100 0 50 800 10 0 0 40", "cpu  150 0 50 830 10 0 0 60")
            .replace("intr 5000", "intr 5100");
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let before = KernelCounters::parse(BEFORE, now).unwrap();
        let after = KernelCounters::parse(&after, now + second).unwrap();
        let expected = [("stolen_per_s", 0.2e9), ("between_interrupts", 1e7)];
        let expected = expected.map(|(name, nanos)| (name.to_owned(), nanos));
        assert_eq!(before.figures_until(&after), expected);
        // Counters that were reset.
        assert_eq!(after.figures_until(&before), []);
    }

    #[test]
    fn all_ranks_know_the_longest_round_trip() {
        for ranks in [1, 2, 3] {
            let found = ThreadCluster::new(ranks).run(|comm| longest_round_trip(comm).unwrap());
            let found = found.unwrap();
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
            assert_eq!(found[0].is_some(), ranks > 1);
        }
    }

    #[test]
    fn other_kernels_have_no_counters() {
        for text in ["", "cpu  1 2 3\nintr 1\n", "cpu  1 2 3 4 5 6 7 8\nintr x\n"] {
            assert_eq!(KernelCounters::parse(text, Instant::now()), None);
        }
    }
}
