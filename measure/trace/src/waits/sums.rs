//! Sums of lost time by location and by region.

use std::collections::BTreeMap;

use downbeat_clock_core::Duration;
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
    fn add(&mut self, lost: Duration) {
        self.calls += 1;
        self.lost += lost;
        self.most = self.most.max(lost);
    }

    fn join(&mut self, other: &Self) {
        self.calls += other.calls;
        self.lost += other.lost;
        self.most = self.most.max(other.most);
    }
}

/// Waits of all patterns, by location and region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitSums(FxHashMap<(WaitPattern, u32, u32), WaitSum>);

impl WaitSums {
    /// Adds a wait, unless it lost nothing.
    pub(super) fn add(&mut self, pattern: WaitPattern, location: u32, region: u32, lost: Duration) {
        if lost > Duration::ZERO {
            self.0
                .entry((pattern, location, region))
                .or_default()
                .add(lost);
        }
    }

    /// Returns the waits by pattern.
    pub fn by_pattern(&self) -> BTreeMap<WaitPattern, WaitSum> {
        self.by(|pattern, _, _| pattern)
    }

    /// Returns the waits by location and pattern.
    pub fn by_location(&self) -> BTreeMap<(u32, WaitPattern), WaitSum> {
        self.by(|pattern, location, _| (location, pattern))
    }

    /// Returns the waits by region and pattern.
    pub fn by_region(&self) -> BTreeMap<(u32, WaitPattern), WaitSum> {
        self.by(|pattern, _, region| (region, pattern))
    }

    fn by<K: Ord>(&self, key: impl Fn(WaitPattern, u32, u32) -> K) -> BTreeMap<K, WaitSum> {
        let mut sums: BTreeMap<K, WaitSum> = BTreeMap::new();
        for ((pattern, location, region), sum) in &self.0 {
            let of = sums.entry(key(*pattern, *location, *region)).or_default();
            of.join(sum);
        }
        sums
    }
}
