//! Sums of lost time by location and by region.

use std::collections::BTreeMap;

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::pattern::WaitPattern;

/// Waits of one pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSum {
    /// Number of calls that waited.
    pub calls: u64,
    /// Time that they lost.
    pub lost: Duration,
    /// Most time that one of them lost.
    pub most: Duration,
}

impl WaitSum {
    fn join(&mut self, other: &Self) {
        self.calls += other.calls;
        self.lost += other.lost;
        self.most = self.most.max(other.most);
    }
}

/// Waits of all patterns, by location and region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitSums {
    sums: FxHashMap<(WaitPattern, u32, u32), WaitSum>,
    /// Time of the first and the last event of each location.
    extents: Vec<Option<[Timestamp<Global>; 2]>>,
}

impl WaitSums {
    /// Adds a wait, unless it lost nothing.
    pub(super) fn add(&mut self, pattern: WaitPattern, location: u32, region: u32, lost: Duration) {
        if lost > Duration::ZERO {
            let key = (pattern, location, region);
            self.sums.entry(key).or_default().join(&WaitSum {
                calls: 1,
                lost,
                most: lost,
            });
        }
    }

    /// Takes the time of an event.
    pub(super) fn extend(&mut self, location: u32, time: Timestamp<Global>) {
        let place = location as usize;
        if self.extents.len() <= place {
            self.extents.resize(place + 1, None);
        }
        let extent = self.extents[place].get_or_insert([time; 2]);
        extent[1] = extent[1].max(time);
    }

    /// Returns the time from the first to the last event of a location.
    pub fn time_of(&self, location: u32) -> Duration {
        let extent = self.extents.get(location as usize).copied().flatten();
        extent.map_or(Duration::ZERO, |[first, last]| last - first)
    }

    /// Returns the time of all locations together.
    pub fn time(&self) -> Duration {
        (0..self.extents.len() as u32)
            .map(|location| self.time_of(location))
            .sum()
    }

    /// Returns the waits by pattern.
    pub fn by_pattern(&self) -> BTreeMap<WaitPattern, WaitSum> {
        self.sum_by(|pattern, _, _| pattern)
    }

    /// Returns the waits by location and pattern.
    pub fn by_location(&self) -> BTreeMap<(u32, WaitPattern), WaitSum> {
        self.sum_by(|pattern, location, _| (location, pattern))
    }

    /// Returns the waits by region and pattern.
    pub fn by_region(&self) -> BTreeMap<(u32, WaitPattern), WaitSum> {
        self.sum_by(|pattern, _, region| (region, pattern))
    }

    /// Returns the waits by a key of their pattern, location and region.
    pub fn sum_by<K: Ord>(&self, key: impl Fn(WaitPattern, u32, u32) -> K) -> BTreeMap<K, WaitSum> {
        let mut sums: BTreeMap<K, WaitSum> = BTreeMap::new();
        for ((pattern, location, region), sum) in &self.sums {
            let of = sums.entry(key(*pattern, *location, *region)).or_default();
            of.join(sum);
        }
        sums
    }
}
