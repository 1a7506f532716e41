//! Groups of ranks, by rank.

use downbeat_clock_core::histogram::DecimalBin;

use super::ranks::RankSet;
use super::report::EventReport;

/// Membership of a rank in the groups of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RankPlace {
    /// In the group with this fullest bin.
    Group(DecimalBin),
    /// In no group: the rank has no events in the region.
    Without,
    /// Unknown: lists of ranks are bounded, and this rank is not listed.
    Unlisted,
}

impl EventReport {
    /// The groups of ranks 0 to `ranks` - 1.
    pub fn places(&self, ranks: u32) -> Vec<RankPlace> {
        let mut places = vec![RankPlace::Without; ranks as usize];
        for rank in listed(&self.ranks, ranks) {
            places[rank] = RankPlace::Unlisted;
        }
        // After the end of a bounded list, ranks may or may not have events in the region.
        if self.ranks.unlisted() > 0 {
            places
                .iter_mut()
                .skip(beyond(&self.ranks))
                .for_each(|place| *place = RankPlace::Unlisted);
        }
        for group in &self.groups {
            for rank in listed(&group.ranks, ranks) {
                places[rank] = RankPlace::Group(group.fullest);
            }
        }
        self.conclude(&mut places);
        places
    }

    /// A rank that only one list can contain is in that group.
    fn conclude(&self, places: &mut [RankPlace]) {
        let cut = self
            .groups
            .iter()
            .filter(|group| group.ranks.unlisted() > 0);
        let cut: Vec<_> = cut
            .map(|group| (beyond(&group.ranks), group.fullest))
            .collect();
        for rank in listed(&self.ranks, places.len() as u32) {
            let mut groups = cut.iter().filter(|(end, _)| rank >= *end);
            if places[rank] == RankPlace::Unlisted
                && let (Some((_, fullest)), None) = (groups.next(), groups.next())
            {
                places[rank] = RankPlace::Group(*fullest);
            }
        }
    }
}

/// Listed ranks below a limit.
fn listed(set: &RankSet, limit: u32) -> impl Iterator<Item = usize> {
    let below = move |rank: &u32| *rank < limit;
    set.runs()
        .iter()
        .flat_map(move |run| run.ranks().take_while(below))
        .map(|rank| rank as usize)
}

/// The rank after the last listed one.
fn beyond(set: &RankSet) -> usize {
    set.runs().last().map_or(0, |run| run.last() as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_reports;

    fn bin(length: u64) -> RankPlace {
        RankPlace::Group(DecimalBin::containing(length))
    }

    #[test]
    fn every_rank_is_in_its_group_or_in_none() {
        let report = test_reports::report(
            1,
            &[(
                "solve",
                &[
                    Some(&[5_100]),
                    None,
                    Some(&[7, 7, 6_262]),
                    Some(&[5_999]),
                    None,
                ],
            )],
        );
        let events = report
            .region("solve")
            .and_then(|region| region.events.as_ref())
            .unwrap();
        let expected = [
            bin(5_000),
            RankPlace::Without,
            bin(7),
            bin(5_000),
            RankPlace::Without,
        ];
        assert_eq!(events.places(5), expected);
        assert_eq!(events.places(3), expected[..3]);
        assert!(events.places(0).is_empty());
    }

    /// Squares make no runs, so that their list is cut.
    #[test]
    fn unlisted_ranks_are_inferred_or_unknown() {
        let squares: Vec<u32> = (0..1_200).map(|i| i * i).collect();
        let ranks = 1_440_000;
        let mut events = test_reports::report(1, &[("r", &[Some(&[50])])])
            .region("r")
            .unwrap()
            .events
            .clone()
            .unwrap();
        events.ranks = squares.iter().copied().collect();
        events.groups[0].ranks = events.ranks.clone();
        let end = 1_000 * 1_000;
        let places = events.places(ranks);
        // The first two squares, 0 and 1, are one run of the thousand.
        assert_eq!(
            (places[end], places[end + 1], places[2]),
            (bin(50), RankPlace::Unlisted, RankPlace::Without)
        );
        // With all ranks known, and the others in a group of their own.
        events.ranks = (0..ranks).collect();
        let mut other = events.groups[0].clone();
        other.fullest = DecimalBin::containing(7);
        other.ranks = (2..4).collect();
        events.groups.push(other);
        let places = events.places(ranks);
        assert_eq!(
            [places[1], places[2], places[4], places[1_001 * 1_001]],
            [bin(50), bin(7), bin(50), bin(50)]
        );
        // Two lists that are cut.
        events.groups[1].ranks = squares.iter().map(|square| square + 2).collect();
        assert_eq!(events.places(ranks)[1_199 * 1_199], RankPlace::Unlisted);
    }
}
