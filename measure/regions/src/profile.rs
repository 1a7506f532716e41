//! What one rank has seen of its regions, all threads together.

use downbeat_clock_core::{
    DecimalBin, Duration, MisuseCounts, RegionEvent, RegionStatistics, TickScale,
};

use super::setup::Overhead;

/// What one rank, which may have several threads, has seen of its regions.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// By which clock.
    pub clock: String,
    /// What a tick is.
    pub tick: Duration,
    /// What timing costs itself.
    pub overhead: Overhead,
    /// In the order of their names, each of which there is once.
    regions: Vec<RegionProfile>,
}

/// What one rank has seen of a region; lengths are in ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionProfile {
    /// What it is called.
    pub name: String,
    /// How many threads ran through it.
    pub threads: u32,
    /// How often.
    pub events: u64,
    /// How long all events took together.
    pub total: u64,
    /// The longest.
    pub longest: Option<ThreadEvent>,
    /// The longest but for that one.
    pub second_longest: Option<ThreadEvent>,
    /// The shortest.
    pub shortest: Option<ThreadEvent>,
    /// How many events there are in each bin that has any, the shortest first.
    pub bins: Vec<(DecimalBin, u64)>,
    /// What went wrong, and what is not over.
    pub remarks: Remarks,
}

/// An event, and which of the rank's threads saw it, in the order in which they used their first region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadEvent {
    /// Its length, and its number among the thread's events.
    pub event: RegionEvent,
    /// Counted from 0.
    pub thread: u32,
}

/// What besides its events is worth knowing of a region: how often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Remarks {
    /// It was started while it ran.
    pub started_while_running: u64,
    /// It was stopped while it did not run.
    pub stopped_while_stopped: u64,
    /// The clock showed less at the end of an event than at its beginning.
    pub clock_ran_backwards: u64,
    /// It was entered once more while it ran.
    pub recursions: u64,
    /// Threads in which it was running when the report was made.
    pub running: u64,
}

impl Remarks {
    /// All of them, and what to say of each.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("started while running", self.started_while_running),
            ("stopped while not running", self.stopped_while_stopped),
            ("clock ran backwards", self.clock_ran_backwards),
            ("entered recursively", self.recursions),
            ("still running", self.running),
        ]
    }

    pub(super) fn values(&self) -> [u64; 5] {
        self.named().map(|(_, count)| count)
    }

    pub(super) fn from_values(values: [u64; 5]) -> Self {
        let [
            started_while_running,
            stopped_while_stopped,
            clock_ran_backwards,
            recursions,
            running,
        ] = values;
        Self {
            started_while_running,
            stopped_while_stopped,
            clock_ran_backwards,
            recursions,
            running,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        let (mine, theirs) = (self.values(), other.values());
        *self = Self::from_values(core::array::from_fn(|i| mine[i].saturating_add(theirs[i])));
    }
}

impl Profile {
    /// Regions of one name are added up.
    pub fn new(
        clock: &str,
        tick: Duration,
        overhead: Overhead,
        mut regions: Vec<RegionProfile>,
    ) -> Self {
        regions.sort_by(|a, b| a.name.cmp(&b.name));
        regions.dedup_by(|later, kept| {
            let same = later.name == kept.name;
            if same {
                kept.absorb(later);
            }
            same
        });
        Self {
            clock: clock.to_owned(),
            tick,
            overhead,
            regions,
        }
    }

    /// In the order of their names.
    pub fn regions(&self) -> &[RegionProfile] {
        &self.regions
    }

    /// The region of this name.
    pub fn region(&self, name: &str) -> Option<&RegionProfile> {
        let place = self
            .regions
            .binary_search_by(|region| region.name.as_str().cmp(name));
        place.ok().map(|place| &self.regions[place])
    }
}

impl RegionProfile {
    /// Of which nothing was seen so far.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            threads: 0,
            events: 0,
            total: 0,
            longest: None,
            second_longest: None,
            shortest: None,
            bins: vec![],
            remarks: Remarks::default(),
        }
    }

    /// Adds what a thread has seen.
    pub fn add(&mut self, thread: u32, seen: &RegionStatistics) {
        let event = |event: Option<RegionEvent>| event.map(|event| ThreadEvent { event, thread });
        let MisuseCounts {
            started_while_running,
            stopped_while_stopped,
            clock_ran_backwards,
        } = seen.misuse;
        let values = [
            started_while_running,
            stopped_while_stopped,
            clock_ran_backwards,
            seen.recursions,
            seen.is_running.into(),
        ];
        let bins = (0..).zip(&seen.bins).filter(|(_, count)| **count > 0);
        self.absorb(&Self {
            name: String::new(),
            threads: (seen.events > 0).into(),
            events: seen.events,
            total: seen.total,
            longest: event(seen.longest),
            second_longest: event(seen.second_longest),
            shortest: event(seen.shortest),
            bins: bins
                .filter_map(|(index, count)| Some((DecimalBin::from_index(index)?, *count)))
                .collect(),
            remarks: Remarks::from_values(values),
        });
    }

    /// Adds what other threads have seen.
    fn absorb(&mut self, other: &Self) {
        self.threads = self.threads.saturating_add(other.threads);
        self.events = self.events.saturating_add(other.events);
        self.total = self.total.saturating_add(other.total);
        let mut longest: Vec<ThreadEvent> = [
            self.longest,
            other.longest,
            self.second_longest,
            other.second_longest,
        ]
        .into_iter()
        .flatten()
        .collect();
        longest.sort_by_key(|found| core::cmp::Reverse(found.event.length));
        self.longest = longest.first().copied();
        self.second_longest = longest.get(1).copied();
        self.shortest = self
            .shortest
            .into_iter()
            .chain(other.shortest)
            .min_by_key(|found| found.event.length);
        for (bin, count) in &other.bins {
            match self.bins.binary_search_by_key(bin, |(bin, _)| *bin) {
                Ok(place) => self.bins[place].1 = self.bins[place].1.saturating_add(*count),
                Err(place) => self.bins.insert(place, (*bin, *count)),
            }
        }
        self.remarks.add(&other.remarks);
    }

    /// From ticks of the clock to those of the program.
    pub(super) fn scale(&mut self, scale: TickScale) {
        self.total = scale.apply(self.total);
        for found in [
            &mut self.longest,
            &mut self.second_longest,
            &mut self.shortest,
        ]
        .into_iter()
        .flatten()
        {
            found.event.length = scale.apply(found.event.length);
        }
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.remarks == Remarks::default()
    }
}
