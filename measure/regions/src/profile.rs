//! Profiles: the regions of one rank.

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;
use downbeat_clock_core::region::{MisuseCounts, RegionEvent, RegionStatistics, TickScale};

use super::setup::Overhead;

/// Regions of one rank, over all its threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name of the clock.
    pub clock: String,
    /// Length of a tick.
    pub tick: Duration,
    /// Cost of timing.
    pub overhead: Overhead,
    /// A reason to doubt the settings, for people to read.
    pub warning: Option<String>,
    /// Regions by name; names are unique.
    regions: Vec<RegionProfile>,
}

/// Events of one region on one rank; lengths are in ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionProfile {
    /// Name of the region.
    pub name: String,
    /// Number of threads with events.
    pub threads: u32,
    /// Number of events.
    pub events: u64,
    /// Total length of all events.
    pub total: u64,
    /// The longest event.
    pub longest: Option<ThreadEvent>,
    /// The second longest event.
    pub second_longest: Option<ThreadEvent>,
    /// The shortest event.
    pub shortest: Option<ThreadEvent>,
    /// Number of events in each bin that is not empty, the shortest first.
    pub bins: Vec<(DecimalBin, u64)>,
    /// Events of each thread, by its number; of the first [`MOST_THREADS`](Self::MOST_THREADS) threads with events.
    pub by_thread: Vec<ThreadTotal>,
    /// Events by the regions around them; none if call paths are not recorded.
    pub paths: Vec<PathProfile>,
    /// Misuse and running regions.
    pub remarks: ReportRemarks,
}

/// Events of a region in one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct ThreadTotal {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Number of events.
    pub events: u64,
    /// Total length in ticks.
    pub total: u64,
}

/// Events of a region inside certain others, over all threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathProfile {
    /// Names of the regions around it, the outermost first.
    pub callers: Vec<String>,
    /// Number of events.
    pub events: u64,
    /// Total length in ticks.
    pub total: u64,
    /// Part of the total that is not in regions inside it.
    pub own: u64,
}

/// An event and its thread. Threads are numbered in the order of their first regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadEvent {
    /// Length, and number among the events of the thread.
    pub event: RegionEvent,
    /// Number of the thread, from 0.
    pub thread: u32,
}

/// Counts of misuse and of unusual situations in a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct ReportRemarks {
    /// Starts while it was running.
    pub started_while_running: u64,
    /// Stops while it was not running.
    pub stopped_while_stopped: u64,
    /// Events that ended before they began, by the clock.
    pub clock_ran_backwards: u64,
    /// Entries while it was running.
    pub recursions: u64,
    /// Threads in which it was running when the profile was made.
    pub running: u64,
}

impl ReportRemarks {
    /// Descriptions and counts.
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
    /// Makes a profile; adds up regions with the same name.
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
            warning: None,
            regions,
        }
    }

    /// Regions in the order of their names.
    pub fn regions(&self) -> &[RegionProfile] {
        &self.regions
    }

    /// Region with this name.
    pub fn region(&self, name: &str) -> Option<&RegionProfile> {
        let place = self
            .regions
            .binary_search_by(|region| region.name.as_str().cmp(name));
        place.ok().map(|place| &self.regions[place])
    }
}

impl RegionProfile {
    /// Number of threads that are listed, so that a program with a thread for every task needs no more memory for each.
    pub const MOST_THREADS: usize = 1_024;

    /// Makes a region without events.
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
            by_thread: vec![],
            paths: vec![],
            remarks: ReportRemarks::default(),
        }
    }

    /// Own time in ticks: that which is not in regions inside it; `None` if call paths are not recorded.
    pub fn own(&self) -> Option<u64> {
        let own = self.paths.iter().map(|path| path.own);
        (!self.paths.is_empty()).then(|| own.fold(0, u64::saturating_add))
    }

    /// Adds the statistics of a thread.
    pub fn add(&mut self, thread: u32, statistics: &RegionStatistics) {
        let event = |event: Option<RegionEvent>| event.map(|event| ThreadEvent { event, thread });
        let MisuseCounts {
            started_while_running,
            stopped_while_stopped,
            clock_ran_backwards,
        } = statistics.misuse;
        let values = [
            started_while_running,
            stopped_while_stopped,
            clock_ran_backwards,
            statistics.recursions,
            statistics.is_running.into(),
        ];
        let bins = (0..).zip(&statistics.bins).filter(|(_, count)| **count > 0);
        self.absorb(&Self {
            name: String::new(),
            threads: (statistics.events > 0).into(),
            events: statistics.events,
            total: statistics.total,
            longest: event(statistics.longest),
            second_longest: event(statistics.second_longest),
            shortest: event(statistics.shortest),
            bins: bins
                .filter_map(|(index, count)| Some((DecimalBin::from_index(index)?, *count)))
                .collect(),
            by_thread: (statistics.events > 0)
                .then_some(ThreadTotal {
                    thread,
                    events: statistics.events,
                    total: statistics.total,
                })
                .into_iter()
                .collect(),
            paths: vec![],
            remarks: ReportRemarks::from_values(values),
        });
    }

    /// Adds events inside certain regions.
    pub fn add_path(&mut self, added: PathProfile) {
        let place = self
            .paths
            .binary_search_by(|path| path.callers.cmp(&added.callers));
        match place {
            Ok(place) => {
                let path = &mut self.paths[place];
                path.events = path.events.saturating_add(added.events);
                path.total = path.total.saturating_add(added.total);
                path.own = path.own.saturating_add(added.own);
            }
            Err(place) => self.paths.insert(place, added),
        }
    }

    fn add_thread(&mut self, added: ThreadTotal) {
        let place = self
            .by_thread
            .binary_search_by_key(&added.thread, |total| total.thread);
        match place {
            Ok(place) => {
                let total = &mut self.by_thread[place];
                total.events = total.events.saturating_add(added.events);
                total.total = total.total.saturating_add(added.total);
            }
            Err(place) if self.by_thread.len() < Self::MOST_THREADS => {
                self.by_thread.insert(place, added);
            }
            Err(_) => {}
        }
    }

    /// Adds the events of other threads.
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
        for total in &other.by_thread {
            self.add_thread(*total);
        }
        for path in &other.paths {
            self.add_path(path.clone());
        }
        self.remarks.add(&other.remarks);
    }

    /// Converts ticks of the clock to ticks of the program.
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
        for thread in &mut self.by_thread {
            thread.total = scale.apply(thread.total);
        }
        for path in &mut self.paths {
            path.total = scale.apply(path.total);
            path.own = scale.apply(path.own);
        }
    }

    /// Returns true if there are no events and no remarks.
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.remarks == ReportRemarks::default()
    }
}
