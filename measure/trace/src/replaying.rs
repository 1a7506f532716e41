//! Interface of the replay for loom tests. Threads run by loom have no scope, so the shared state
//! has a static lifetime.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::forward::{Forward, Shared};
use super::stamps::{Stamps, tell};
use super::{ControlledLogicalClock, Trace};

/// State that the workers of one forward pass share.
#[derive(Debug)]
pub struct Replaying {
    shared: Shared<'static>,
}

impl Replaying {
    /// Returns the state for a trace, given the locations of every worker.
    pub fn new(
        trace: &'static Trace,
        clock: &ControlledLogicalClock,
        groups: &'static [Range<usize>],
    ) -> Self {
        let forward = Forward {
            trace,
            rule: clock.rule,
            latencies: clock.latencies,
            groups,
        };
        let times = trace.locations.iter().map(|_| vec![]).collect();
        let stamps = Box::leak(Box::new(Stamps::new(trace)));
        Self {
            shared: forward.begin(stamps, times, |_| 0),
        }
    }

    /// Does the work of one worker; the first one ends it when all locations wait.
    pub fn work(&self, worker: usize) {
        let mut ready = self.shared.forward.clocks(worker).collect();
        self.shared.work(worker, &mut ready);
        if worker == 0 {
            self.shared.post.end();
        }
    }

    /// Does what happens when a worker panics.
    pub fn abandon(&self) {
        self.shared.post.end();
    }

    /// Publishes the time of a mark; returns true if its receiver waits for it.
    pub fn tell(&self, location: u32, mark: u32, time: i64) -> bool {
        tell(self.shared.stamps.of(location, mark), time)
    }

    /// Returns the time of a mark for its receiver; if there is none yet, marks it as awaited.
    pub fn get_or_wait(&self, location: u32, mark: u32) -> Option<i64> {
        self.shared.stamps.get_or_wait(location, mark)
    }

    /// Returns the stamps of all locations, as seen by a thread without other synchronization.
    pub fn words(&self) -> Vec<Vec<i64>> {
        let words_of = |location| {
            self.shared
                .stamps
                .all_of(location)
                .iter()
                .map(|word| word.load(Ordering::Relaxed))
        };
        (0..self.shared.replays.len())
            .map(|location| words_of(location).collect())
            .collect()
    }

    /// Returns the corrected times of all locations as far as they were replayed, after all workers
    /// have stopped.
    pub fn end(self) -> Vec<Vec<i64>> {
        let (_, times) = self.shared.end();
        times
            .iter()
            .map(|times| times.iter().map(|time| time.as_nanos()).collect())
            .collect()
    }
}
