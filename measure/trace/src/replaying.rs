//! A replay as loom is shown it: threads that loom runs have no scope, so that what they share has no end.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::forward::{Forward, Shared, corrected};
use super::stamps::{Stamps, tell};
use super::{ControlledLogicalClock, Trace};

/// What the workers of one forward pass share.
#[derive(Debug)]
pub struct Replaying {
    shared: Shared<'static>,
    groups: &'static [Range<usize>],
}

impl Replaying {
    /// With the locations of every worker.
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
            shared: forward.begin(stamps, times, trace.locations.len(), |_| 0),
            groups,
        }
    }

    /// Does the part of a worker.
    pub fn work(&self, worker: usize) {
        self.shared.work(
            worker,
            self.groups[worker].clone().map(|location| location as u32),
        );
    }

    /// What becomes of a worker that panics.
    pub fn abandon(&self) {
        self.shared.post.abandon();
    }

    /// Tells the time of a mark, as its location does: whether it is waited for.
    pub fn tell(&self, location: u32, mark: u32, time: i64) -> bool {
        tell(self.shared.stamps.of(location, mark), time)
    }

    /// The time of a mark, as the receiver looks for it: if there is none, it will be told to wait for it.
    pub fn get_or_wait(&self, location: u32, mark: u32) -> Option<i64> {
        self.shared.stamps.get_or_wait(location, mark)
    }

    /// What all locations have told, or kept; as it is seen by a thread that has no other reason to see it.
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

    /// The corrected times of all locations, as far as they have come, when nobody works any more.
    pub fn end(self) -> Vec<Vec<i64>> {
        let times = corrected(self.shared.end().0);
        times
            .iter()
            .map(|times| times.iter().map(|time| time.as_nanos()).collect())
            .collect()
    }
}
