//! Latest arrival among the messages of many senders, for any receiver other than the sender.

use super::latencies::{Latencies, Site};

/// Summary of any number of senders that determines when the last of their messages reaches a
/// receiver.
///
/// For senders at a certain distance level or farther from the receiver, the latest one counts,
/// with the latency of that level: as latencies do not fall with distance, senders that are even
/// farther away do no harm. Locations within one level of each other form a group. So if the latest
/// sender is in another group than the receiver, it counts; otherwise both are in one group, and
/// the latest sender outside of that group counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes {
    latest: i64,
    at: Option<Site>,
    /// Latest sender outside of the group of the latest one, by level.
    outside: [i64; Latencies::LEVELS],
}

/// Arrival time if there is nothing to wait for.
pub(super) const NEVER: i64 = i64::MIN;

impl Extremes {
    pub(super) const NONE: Self = Self {
        latest: NEVER,
        at: None,
        outside: [NEVER; Latencies::LEVELS],
    };

    /// Adds a sender.
    pub(super) fn add(&mut self, time: i64, site: Site) {
        let Some(at) = self.at else {
            (self.latest, self.at) = (time, Some(site));
            return;
        };
        let is_latest = time > self.latest;
        let other = if is_latest { self.latest } else { time };
        // Groups that contain both keep the latest sender outside.
        if let Some(apart) = site.level(at) {
            for outside in &mut self.outside[..=apart] {
                *outside = other.max(*outside);
            }
        }
        if is_latest {
            (self.latest, self.at) = (time, Some(site));
        }
    }

    /// Returns when the last message reaches a receiver; a clock does not send to itself.
    pub(super) fn reach(&self, receiver: Site, latencies: &Latencies) -> i64 {
        let Some(at) = self.at else { return NEVER };
        let apart = receiver.level(at);
        let mut reach = NEVER;
        for (level, latency) in latencies.levels().iter().enumerate() {
            let latest = if apart.is_some_and(|apart| apart >= level) {
                self.latest
            } else {
                self.outside[level]
            };
            if latest != NEVER {
                reach = reach.max(latest.saturating_add(latency.as_nanos()));
            }
        }
        reach
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;
    use downbeat_clock_core::Duration;
    use fastrand::Rng;

    /// Compares every receiver with a search over all senders.
    #[test]
    fn extremes_equal_those_of_a_search_over_all_pairs() {
        let mut rng = Rng::with_seed(3);
        for _ in 0..20_000 {
            let sites = rng.u32(1..12);
            let site = |location: u32| {
                let process = location % 5;
                Site {
                    clock: location,
                    place: Place {
                        node: process % 3,
                        process,
                    },
                }
            };
            let mut levels = [0; 3].map(|_: i64| rng.i64(0..20));
            levels.sort_unstable();
            let [process, node, other] = levels.map(Duration::from_nanos);
            let latencies = Latencies::new(process, node, other).unwrap();
            let mut senders: Vec<(i64, Site)> =
                (0..sites).map(|i| (rng.i64(-20..20), site(i))).collect();
            rng.shuffle(&mut senders);
            senders.truncate(rng.usize(0..=senders.len()));
            let mut extremes = Extremes::NONE;
            senders
                .iter()
                .for_each(|(time, site)| extremes.add(*time, *site));
            for receiver in (0..sites).map(site) {
                let others = senders
                    .iter()
                    .filter(|(_, site)| site.clock != receiver.clock);
                let expected = others
                    .map(|(time, site)| time + latencies.between_sites(*site, receiver).as_nanos())
                    .max();
                assert_eq!(
                    extremes.reach(receiver, &latencies),
                    expected.unwrap_or(NEVER)
                );
            }
        }
    }
}
