//! Reports: the merged profiles of all ranks, in about the size of one profile.

use downbeat_clock_core::Duration;

use super::error::RegionError;
use super::groups::{self, HistogramGroup, RankCount, RankFigure};
use super::paths::{self, PathReport};
use super::profile::{Profile, RegionProfile, ReportRemarks, ThreadEvent, ThreadTotal};
use super::ranks::RankSet;
use super::setup::Overhead;

/// Merged profiles of all ranks, as made by `gather` (feature `ranks`).
///
/// Its size does not depend on the number of ranks, except for lists of ranks, which are bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileReport {
    /// Number of ranks.
    pub ranks: u32,
    /// Name of the clock on the lowest rank.
    pub clock: String,
    /// Length of a tick.
    pub tick: Duration,
    /// Cost of timing, maximum over all ranks.
    pub overhead: Overhead,
    /// A reason to doubt the settings, of the lowest rank that has one.
    pub warning: Option<String>,
    /// Regions by name.
    pub(super) regions: Vec<RegionReport>,
}

/// A region on all ranks; lengths are in ticks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RegionReport {
    /// Name of the region.
    pub name: String,
    /// Misuse and running regions, summed over all ranks.
    pub remarks: ReportRemarks,
    /// The lowest rank with such remarks.
    pub remarked: Option<u32>,
    /// Events; `None` if no rank has completed one.
    pub events: Option<EventReport>,
    /// Events by the regions around them, in the order of their names; none if call paths are not recorded.
    #[cfg_attr(
        feature = "json",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub paths: Vec<PathReport>,
}

/// Events of a region on all ranks. Of equal values, that of the lowest rank is kept.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct EventReport {
    /// Ranks with events.
    pub ranks: RankSet,
    /// Largest number of events on a rank.
    pub most: RankCount,
    /// Smallest number of events on a rank with events.
    pub fewest: RankCount,
    /// Number of events on all ranks.
    pub count: u64,
    /// The longest event.
    pub longest: RankEvent,
    /// The longest of the second longest events of the ranks: the first event of a rank often
    /// includes initialization.
    pub second_longest: Option<RankEvent>,
    /// The shortest event.
    pub shortest: RankEvent,
    /// Rank with the longest average event.
    pub longest_average: RankTotal,
    /// Rank with the shortest average event.
    pub shortest_average: RankTotal,
    /// Rank with the greatest total length of events.
    pub greatest_total: RankTotal,
    /// Rank with the least total length of events.
    pub least_total: RankTotal,
    /// Total length of the events of all ranks.
    pub total: u128,
    /// Maximum number of threads of a rank that have events.
    pub threads: u32,
    /// Number of threads with events, on all ranks.
    pub all_threads: u64,
    /// Thread with the greatest total length of events: the totals of ranks add up their threads.
    pub greatest_thread: Option<RankThread>,
    /// Thread with the least total length of events.
    pub least_thread: Option<RankThread>,
    /// Every thread, in a report of a single rank with several threads.
    #[cfg_attr(
        feature = "json",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub by_thread: Vec<ThreadTotal>,
    /// Groups of ranks by histograms, those with the longest events first.
    pub groups: Vec<HistogramGroup>,
}

/// An event of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RankEvent {
    /// Length in ticks.
    pub length: u64,
    /// The rank.
    pub rank: u32,
    /// Number of the thread on the rank.
    pub thread: u32,
    /// Number of the event in the thread, from 1.
    pub number: u64,
}

/// All events of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RankTotal {
    /// Total length in ticks.
    pub total: u64,
    /// Number of events.
    pub events: u64,
    /// The rank.
    pub rank: u32,
}

/// All events of a thread of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RankThread {
    /// Total length in ticks.
    pub total: u64,
    /// Number of events.
    pub events: u64,
    /// The rank.
    pub rank: u32,
    /// Number of the thread on the rank.
    pub thread: u32,
}

impl RankThread {
    fn new(rank: u32, thread: &ThreadTotal) -> Self {
        Self {
            total: thread.total,
            events: thread.events,
            rank,
            thread: thread.thread,
        }
    }
}

impl RankEvent {
    fn new(rank: u32, ThreadEvent { event, thread }: ThreadEvent) -> Self {
        Self {
            length: event.length,
            rank,
            thread,
            number: event.number,
        }
    }
}

macro_rules! rank_figures {
    ($($type:ident by $field:ident),*) => { $(
        impl RankFigure for $type {
            fn size(&self) -> u64 {
                self.$field
            }
        }
    )* };
}

rank_figures!(RankEvent by length, RankTotal by total, RankThread by total);

impl RankTotal {
    /// Average length in whole ticks.
    pub fn average(&self) -> u64 {
        self.total.checked_div(self.events).unwrap_or(0)
    }

    /// Compares average lengths exactly.
    fn is_longer_than(&self, other: &Self) -> bool {
        u128::from(self.total) * u128::from(other.events)
            > u128::from(other.total) * u128::from(self.events)
    }
}

impl ProfileReport {
    /// Makes the report of a program with a single rank.
    pub fn new(profile: &Profile) -> Self {
        Self {
            regions: RegionReport::for_rank(profile, 0).collect(),
            ..Self::without_regions(profile)
        }
    }

    /// Makes the report of one rank, without its regions.
    pub(super) fn without_regions(profile: &Profile) -> Self {
        let Profile {
            clock,
            tick,
            overhead,
            warning,
            ..
        } = profile;
        Self {
            ranks: 1,
            clock: clock.clone(),
            tick: *tick,
            overhead: *overhead,
            warning: warning.clone(),
            regions: vec![],
        }
    }

    /// Regions in the order of listings: by the greatest total of a rank, descending.
    pub fn regions(&self) -> Vec<&RegionReport> {
        let mut regions: Vec<_> = self.regions.iter().collect();
        // Regions with equal totals stay sorted by name; those without events come last.
        let total = |region: &&RegionReport| {
            region
                .events
                .as_ref()
                .map(|events| events.greatest_total.total)
        };
        regions.sort_by_key(|region| core::cmp::Reverse(total(region)));
        regions
    }

    /// Region with this name.
    pub fn region(&self, name: &str) -> Option<&RegionReport> {
        let place = self
            .regions
            .binary_search_by(|region| region.name.as_str().cmp(name));
        place.ok().map(|place| &self.regions[place])
    }

    /// Adds the report of another program; its ranks are numbered after those of this one.
    ///
    /// # Errors
    /// If their ticks differ, or there are more than 2^32 ranks.
    pub fn merge(mut self, mut other: Self) -> Result<Self, RegionError> {
        if self.tick != other.tick {
            return Err(RegionError::ReportTicksDiffer([self.tick, other.tick]));
        }
        self.ranks
            .checked_add(other.ranks)
            .ok_or(RegionError::TooManyRanks)?;
        other
            .regions
            .iter_mut()
            .for_each(|region| region.shift(self.ranks));
        self.append_summary(other.ranks, &other.overhead);
        self.warn(other.warning);
        let mut appending = RegionAppender::to(&mut self.regions);
        other
            .regions
            .iter()
            .for_each(|region| appending.add(region));
        appending.finish();
        Ok(self)
    }

    /// Adds everything but the regions of a report of other ranks.
    pub(super) fn append_summary(&mut self, ranks: u32, overhead: &Overhead) {
        self.ranks = self.ranks.saturating_add(ranks);
        self.overhead.within_picos = self.overhead.within_picos.max(overhead.within_picos);
        self.overhead.whole_picos = self.overhead.whole_picos.max(overhead.whole_picos);
        self.overhead.subtracted |= overhead.subtracted;
    }

    /// Takes over the warning of higher ranks, unless there is one.
    pub(super) fn warn(&mut self, higher: Option<String>) {
        self.warning = self.warning.take().or(higher);
    }
}

/// Merges regions of higher ranks into those of a report; both are sorted by name.
pub(super) struct RegionAppender<'a> {
    regions: &'a mut Vec<RegionReport>,
    /// Number of regions before the merge; new ones are appended.
    known: usize,
    /// Index in the known regions; those before it are merged.
    place: usize,
}

impl<'a> RegionAppender<'a> {
    pub(super) fn to(regions: &'a mut Vec<RegionReport>) -> Self {
        Self {
            known: regions.len(),
            regions,
            place: 0,
        }
    }

    pub(super) fn add(&mut self, higher: &RegionReport) {
        match self.find(&higher.name) {
            Some(region) => region.append(higher),
            None => self.regions.push(higher.clone()),
        }
    }

    /// Adds a region of one higher rank.
    #[cfg(feature = "ranks")]
    pub(super) fn add_of_rank(&mut self, rank: u32, higher: &RegionProfile) {
        match self.find(&higher.name) {
            Some(region) => region.append_rank(rank, higher),
            None => self.regions.push(RegionReport::new(rank, higher)),
        }
    }

    /// Returns the known region of this name, if there is one; names are asked for in their order.
    fn find(&mut self, name: &str) -> Option<&mut RegionReport> {
        let rest = &self.regions[self.place..self.known];
        let before = rest.iter().position(|region| &*region.name >= name);
        self.place += before.unwrap_or(rest.len());
        let found = self.regions[..self.known].get_mut(self.place);
        found.filter(|region| region.name == name)
    }

    /// Sorts the new regions into their places.
    pub(super) fn finish(self) {
        if self.regions.len() > self.known {
            self.regions.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
}

impl RegionReport {
    /// Makes the regions of one rank.
    pub(super) fn for_rank(profile: &Profile, rank: u32) -> impl Iterator<Item = Self> {
        profile
            .regions()
            .iter()
            .map(move |region| Self::new(rank, region))
    }

    fn new(rank: u32, region: &RegionProfile) -> Self {
        Self {
            name: region.name.clone(),
            remarks: region.remarks,
            remarked: (region.remarks != ReportRemarks::default()).then_some(rank),
            events: EventReport::new(rank, region),
            paths: paths_of_rank(rank, region),
        }
    }

    /// Adds the events of higher ranks.
    fn append(&mut self, higher: &Self) {
        self.remarks.add(&higher.remarks);
        self.remarked = self.remarked.or(higher.remarked);
        paths::append(&mut self.paths, &higher.paths);
        match (&mut self.events, &higher.events) {
            (Some(events), Some(higher)) => events.append(higher),
            (none @ None, some) => none.clone_from(some),
            (Some(_), None) => {}
        }
    }

    /// Adds the events of one higher rank.
    #[cfg(feature = "ranks")]
    fn append_rank(&mut self, rank: u32, higher: &RegionProfile) {
        self.remarks.add(&higher.remarks);
        let has_remarks = higher.remarks != ReportRemarks::default();
        self.remarked = self.remarked.or(has_remarks.then_some(rank));
        if !higher.paths.is_empty() {
            paths::append(&mut self.paths, &paths_of_rank(rank, higher));
        }
        match &mut self.events {
            Some(events) => events.append_rank(rank, higher),
            none => *none = EventReport::new(rank, higher),
        }
    }

    fn shift(&mut self, by: u32) {
        self.remarked = self.remarked.map(|rank| rank.saturating_add(by));
        for path in &mut self.paths {
            path.own_rank = path.own_rank.saturating_add(by);
        }
        if let Some(events) = &mut self.events {
            events.shift(by);
        }
    }
}

fn paths_of_rank(rank: u32, region: &RegionProfile) -> Vec<PathReport> {
    let paths = region.paths.iter();
    paths.map(|path| PathReport::new(rank, path)).collect()
}

impl EventReport {
    fn new(rank: u32, region: &RegionProfile) -> Option<Self> {
        let mut report = Self::figures(rank, region)?;
        report.ranks = RankSet::single(rank);
        report.groups = HistogramGroup::single_rank(rank, &region.bins)
            .into_iter()
            .collect();
        Some(report)
    }

    /// Makes the report of one rank without its sets of ranks, for which it needs no memory.
    fn figures(rank: u32, region: &RegionProfile) -> Option<Self> {
        let count = RankCount {
            count: region.events,
            rank,
        };
        let total = RankTotal {
            total: region.total,
            events: region.events,
            rank,
        };
        let threads = &region.by_thread;
        let thread = |found: Option<&ThreadTotal>| found.map(|found| RankThread::new(rank, found));
        Some(Self {
            ranks: RankSet::default(),
            most: count,
            fewest: count,
            count: region.events,
            longest: RankEvent::new(rank, region.longest?),
            second_longest: region
                .second_longest
                .map(|event| RankEvent::new(rank, event)),
            shortest: RankEvent::new(rank, region.shortest?),
            longest_average: total,
            shortest_average: total,
            greatest_total: total,
            least_total: total,
            total: region.total.into(),
            threads: region.threads,
            all_threads: region.threads.into(),
            // Of equal ones, the first.
            greatest_thread: thread(threads.iter().rev().max_by_key(|thread| thread.total)),
            least_thread: thread(threads.iter().min_by_key(|thread| thread.total)),
            by_thread: if threads.len() > 1 {
                threads.clone()
            } else {
                vec![]
            },
            groups: vec![],
        })
    }

    /// Adds the events of higher ranks; of equal values, the existing one stays.
    fn append(&mut self, higher: &Self) {
        self.append_figures(higher);
        self.ranks.append(&higher.ranks);
        groups::append(&mut self.groups, &higher.groups);
    }

    /// Adds the events of one higher rank.
    #[cfg(feature = "ranks")]
    fn append_rank(&mut self, rank: u32, higher: &RegionProfile) {
        if let Some(figures) = Self::figures(rank, higher) {
            self.append_figures(&figures);
            self.ranks.add(rank);
            groups::add(&mut self.groups, rank, &higher.bins);
        }
    }

    fn append_figures(&mut self, higher: &Self) {
        self.most.keep_greater(higher.most);
        self.fewest.keep_less(higher.fewest);
        self.count = self.count.saturating_add(higher.count);
        self.longest.keep_greater(higher.longest);
        self.shortest.keep_less(higher.shortest);
        if higher.longest_average.is_longer_than(&self.longest_average) {
            self.longest_average = higher.longest_average;
        }
        if self
            .shortest_average
            .is_longer_than(&higher.shortest_average)
        {
            self.shortest_average = higher.shortest_average;
        }
        self.greatest_total.keep_greater(higher.greatest_total);
        self.least_total.keep_less(higher.least_total);
        self.total = self.total.saturating_add(higher.total);
        self.threads = self.threads.max(higher.threads);
        self.all_threads = self.all_threads.saturating_add(higher.all_threads);
        self.by_thread.clear();
        let keep_greater = RankFigure::keep_greater;
        keep_any(
            &mut self.second_longest,
            higher.second_longest,
            keep_greater,
        );
        let keep_greater = RankFigure::keep_greater;
        keep_any(
            &mut self.greatest_thread,
            higher.greatest_thread,
            keep_greater,
        );
        let keep_less = RankFigure::keep_less;
        keep_any(&mut self.least_thread, higher.least_thread, keep_less);
    }

    /// All rank numbers in fields, except the set and the groups.
    pub(super) fn named_ranks(&mut self) -> impl Iterator<Item = &mut u32> {
        let events = [&mut self.longest, &mut self.shortest]
            .into_iter()
            .chain(&mut self.second_longest);
        let averages = [&mut self.longest_average, &mut self.shortest_average];
        let totals = averages
            .into_iter()
            .chain([&mut self.greatest_total, &mut self.least_total]);
        let threads = [&mut self.greatest_thread, &mut self.least_thread]
            .into_iter()
            .flatten();
        let counts = [&mut self.most, &mut self.fewest]
            .into_iter()
            .map(|count| &mut count.rank);
        events
            .map(|event| &mut event.rank)
            .chain(totals.map(|total| &mut total.rank))
            .chain(threads.map(|thread| &mut thread.rank))
            .chain(counts)
    }

    fn shift(&mut self, by: u32) {
        self.named_ranks()
            .for_each(|rank| *rank = rank.saturating_add(by));
        self.ranks = self.ranks.shifted(by);
        self.groups.iter_mut().for_each(|group| group.shift(by));
    }

    /// Average length of an event over all ranks, in whole ticks.
    pub fn average(&self) -> u128 {
        self.total.checked_div(self.count.into()).unwrap_or(0)
    }

    /// Average total of a rank, in whole ticks.
    pub fn average_total(&self) -> u128 {
        self.total.checked_div(self.ranks.len().into()).unwrap_or(0)
    }

    /// Average total of a thread, in whole ticks.
    pub fn average_of_threads(&self) -> u128 {
        let threads = u128::from(self.all_threads);
        self.total.checked_div(threads).unwrap_or(0)
    }
}

fn keep_any<T>(old: &mut Option<T>, higher: Option<T>, keep: impl FnOnce(&mut T, T)) {
    match (old, higher) {
        (Some(old), Some(higher)) => keep(old, higher),
        (none @ None, higher) => *none = higher,
        (Some(_), None) => {}
    }
}
