//! What all ranks have seen of their regions, in as little space as one of them needs.

use core::cmp::Ordering;

use downbeat_clock_core::Duration;

use super::error::RegionError;
use super::groups::{self, HistogramGroup, RankCount};
use super::profile::{Profile, RegionProfile, Remarks, ThreadEvent};
use super::ranks::RankSet;
use super::setup::Overhead;

/// What all ranks have seen of their regions: [`gather`](super::gather()) makes it of their profiles.
///
/// Its size does not depend on the number of ranks, but for lists of ranks, which are bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileReport {
    /// How many ranks there are.
    pub ranks: u32,
    /// By which clock; of several, that of the lowest rank.
    pub clock: String,
    /// What a tick is.
    pub tick: Duration,
    /// What timing costs itself, where it costs the most.
    pub overhead: Overhead,
    /// In the order of their names.
    pub(super) regions: Vec<RegionReport>,
}

/// What all ranks have seen of a region; lengths are in ticks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RegionReport {
    /// What it is called.
    pub name: String,
    /// What went wrong, and what is not over, on all ranks together.
    pub remarks: Remarks,
    /// The lowest rank that has such remarks.
    pub remarked: Option<u32>,
    /// Nothing if no rank ran through it to its end.
    pub events: Option<EventReport>,
}

/// What all ranks have seen of the events of a region. Where several ranks have the same, the lowest is named.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct EventReport {
    /// Those that ran through it.
    pub ranks: RankSet,
    /// How many there were, on the rank that had the most.
    pub most: RankCount,
    /// How many there were, on the rank that had the fewest.
    pub fewest: RankCount,
    /// How many there were on all ranks.
    pub count: u64,
    /// The longest of all.
    pub longest: RankEvent,
    /// The longest among the second longest of each rank: the first event often does what the others need not.
    pub second_longest: Option<RankEvent>,
    /// The shortest of all.
    pub shortest: RankEvent,
    /// The rank whose events took the longest on average.
    pub longest_average: RankTotal,
    /// The rank whose events took the shortest on average.
    pub shortest_average: RankTotal,
    /// The rank whose events took the longest together.
    pub greatest_total: RankTotal,
    /// The rank whose events took the shortest together.
    pub least_total: RankTotal,
    /// How long the events of all ranks took together.
    pub total: u128,
    /// The most threads of one rank that ran through it.
    pub threads: u32,
    /// The ranks by their histograms, those with the longest events first.
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
    /// How long it took, in ticks.
    pub length: u64,
    /// Which rank.
    pub rank: u32,
    /// Which of its threads.
    pub thread: u32,
    /// Which of the thread's events, from 1.
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
    /// How long they took together, in ticks.
    pub total: u64,
    /// How many there were.
    pub events: u64,
    /// Which rank.
    pub rank: u32,
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

impl RankTotal {
    /// In whole ticks.
    pub fn average(&self) -> u64 {
        self.total.checked_div(self.events).unwrap_or(0)
    }

    /// Whether its events take longer on average: compared exactly.
    fn is_longer_than(&self, other: &Self) -> bool {
        u128::from(self.total) * u128::from(other.events)
            > u128::from(other.total) * u128::from(self.events)
    }
}

impl ProfileReport {
    /// Of a program with a single rank.
    pub fn new(profile: &Profile) -> Self {
        Self {
            regions: RegionReport::for_rank(profile, 0).collect(),
            ..Self::head_of(profile)
        }
    }

    /// Of one rank, without its regions.
    pub(super) fn head_of(profile: &Profile) -> Self {
        let Profile {
            clock,
            tick,
            overhead,
            ..
        } = profile;
        Self {
            ranks: 1,
            clock: clock.clone(),
            tick: *tick,
            overhead: *overhead,
            regions: vec![],
        }
    }

    /// The regions, as they are listed: the one that takes the longest on a rank first.
    pub fn regions(&self) -> Vec<&RegionReport> {
        let mut regions: Vec<_> = self.regions.iter().collect();
        // Those of equal totals stay in the order of their names, and those without events come last.
        let total = |region: &&RegionReport| {
            region
                .events
                .as_ref()
                .map(|events| events.greatest_total.total)
        };
        regions.sort_by_key(|region| core::cmp::Reverse(total(region)));
        regions
    }

    /// The region of this name.
    pub fn region(&self, name: &str) -> Option<&RegionReport> {
        let place = self
            .regions
            .binary_search_by(|region| region.name.as_str().cmp(name));
        place.ok().map(|place| &self.regions[place])
    }

    /// Adds the report of another program, whose ranks are counted on from those of this one.
    ///
    /// # Errors
    /// When they count in different units, or the ranks cannot be numbered.
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
        self.append_head(other.ranks, &other.overhead);
        let mut appending = RegionAppender::to(&mut self.regions);
        other
            .regions
            .iter()
            .for_each(|region| appending.add(region));
        appending.finish();
        Ok(self)
    }

    /// What is added to this report once for all regions.
    pub(super) fn append_head(&mut self, ranks: u32, overhead: &Overhead) {
        self.ranks = self.ranks.saturating_add(ranks);
        self.overhead.within_picos = self.overhead.within_picos.max(overhead.within_picos);
        self.overhead.whole_picos = self.overhead.whole_picos.max(overhead.whole_picos);
        self.overhead.subtracted |= overhead.subtracted;
    }
}

/// Adds regions of higher ranks to those of a report, in the order of their names, which both are in.
pub(super) struct RegionAppender<'a> {
    regions: &'a mut Vec<RegionReport>,
    /// So many were there; new ones come behind them.
    known: usize,
    /// None before this one is added to any more.
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
        while let Some(region) = self.regions[..self.known].get_mut(self.place) {
            match region.name.cmp(&higher.name) {
                Ordering::Less => self.place += 1,
                Ordering::Equal => return region.append(higher),
                Ordering::Greater => break,
            }
        }
        self.regions.push(higher.clone());
    }

    /// Puts the new ones into their places.
    pub(super) fn finish(self) {
        if self.regions.len() > self.known {
            self.regions.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
}

impl RegionReport {
    /// The part of a rank among others.
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
            remarked: (region.remarks != Remarks::default()).then_some(rank),
            events: EventReport::new(rank, region),
        }
    }

    /// Adds what higher ranks have seen.
    fn append(&mut self, higher: &Self) {
        self.remarks.add(&higher.remarks);
        self.remarked = self.remarked.or(higher.remarked);
        match (&mut self.events, &higher.events) {
            (Some(events), Some(higher)) => events.append(higher),
            (none @ None, some) => none.clone_from(some),
            (Some(_), None) => {}
        }
    }

    fn shift(&mut self, by: u32) {
        self.remarked = self.remarked.map(|rank| rank.saturating_add(by));
        if let Some(events) = &mut self.events {
            events.shift(by);
        }
    }
}

impl EventReport {
    fn new(rank: u32, region: &RegionProfile) -> Option<Self> {
        let count = RankCount {
            count: region.events,
            rank,
        };
        let total = RankTotal {
            total: region.total,
            events: region.events,
            rank,
        };
        Some(Self {
            ranks: RankSet::single(rank),
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
            groups: HistogramGroup::single_rank(rank, &region.bins)
                .into_iter()
                .collect(),
        })
    }

    /// Adds what higher ranks have seen: of equals, what is there already stays.
    fn append(&mut self, higher: &Self) {
        self.ranks.append(&higher.ranks);
        self.most = self.most.most(higher.most);
        self.fewest = self.fewest.least(higher.fewest);
        self.count = self.count.saturating_add(higher.count);
        replace_if(&mut self.longest, higher.longest, |old, new| {
            new.length > old.length
        });
        self.second_longest = match (self.second_longest, higher.second_longest) {
            (Some(old), Some(new)) if new.length > old.length => Some(new),
            (old, new) => old.or(new),
        };
        replace_if(&mut self.shortest, higher.shortest, |old, new| {
            new.length < old.length
        });
        replace_if(
            &mut self.longest_average,
            higher.longest_average,
            |old, new| new.is_longer_than(old),
        );
        replace_if(
            &mut self.shortest_average,
            higher.shortest_average,
            RankTotal::is_longer_than,
        );
        replace_if(
            &mut self.greatest_total,
            higher.greatest_total,
            |old, new| new.total > old.total,
        );
        replace_if(&mut self.least_total, higher.least_total, |old, new| {
            new.total < old.total
        });
        self.total = self.total.saturating_add(higher.total);
        self.threads = self.threads.max(higher.threads);
        groups::append(&mut self.groups, &higher.groups);
    }

    /// All ranks that it names.
    pub(super) fn named_ranks(&mut self) -> impl Iterator<Item = &mut u32> {
        let events = [&mut self.longest, &mut self.shortest]
            .into_iter()
            .chain(&mut self.second_longest);
        let averages = [&mut self.longest_average, &mut self.shortest_average];
        let totals = averages
            .into_iter()
            .chain([&mut self.greatest_total, &mut self.least_total]);
        let counts = [&mut self.most, &mut self.fewest]
            .into_iter()
            .map(|count| &mut count.rank);
        events
            .map(|event| &mut event.rank)
            .chain(totals.map(|total| &mut total.rank))
            .chain(counts)
    }

    fn shift(&mut self, by: u32) {
        self.named_ranks()
            .for_each(|rank| *rank = rank.saturating_add(by));
        self.ranks = self.ranks.shifted(by);
        self.groups.iter_mut().for_each(|group| group.shift(by));
    }

    /// How long an event takes on average, in whole ticks, over all ranks.
    pub fn average(&self) -> u128 {
        self.total.checked_div(self.count.into()).unwrap_or(0)
    }

    /// How long all events of a rank take on average, in whole ticks.
    pub fn average_total(&self) -> u128 {
        self.total.checked_div(self.ranks.len().into()).unwrap_or(0)
    }
}

fn replace_if<T: Copy>(old: &mut T, new: T, is_better: impl Fn(&T, &T) -> bool) {
    if is_better(old, &new) {
        *old = new;
    }
}
