//! Bars around one call of a location, whose time is not known before.

use std::collections::VecDeque;

use super::bins::Bar;

/// Bars of a location before and after a call.
#[derive(Debug, Default)]
pub(super) struct BarsAround {
    /// The last bars.
    bars: VecDeque<Bar>,
    /// True if earlier bars were dropped.
    is_cut: bool,
    /// Number of bars since a call was found on any location.
    since: usize,
    /// Bars at the time at which calls were found on other locations, and whether earlier ones were dropped: they
    /// are right if this one has none.
    early: Option<(Vec<Bar>, bool)>,
    is_found: bool,
    /// True if later bars were dropped.
    is_full: bool,
}

/// Bars of a location, and whether earlier and later ones are missing.
pub(super) type AroundCall = (Vec<Bar>, [bool; 2]);

impl BarsAround {
    /// Adds the next bar; `found` is true if the call was found on any location. Keeps at most this number of bars
    /// before and after it.
    pub(super) fn add(&mut self, bar: Bar, found: bool, most: usize) {
        if self.is_found && self.since >= most {
            self.is_full = true;
            return;
        }
        self.since += usize::from(found);
        self.bars.push_back(bar);
        if self.is_found {
            return;
        }
        if found && self.since <= most {
            // Nothing is dropped as long as the others may be at the same call.
            return;
        }
        if found && self.early.is_none() {
            self.early = Some((self.bars.iter().copied().collect(), self.is_cut));
        }
        while self.bars.len() > most {
            self.bars.pop_front();
            self.is_cut = true;
        }
    }

    /// Notes that the call on this location has ended.
    pub(super) fn find(&mut self) {
        self.is_found = true;
        self.since = 0;
    }

    pub(super) fn finish(self) -> AroundCall {
        match self.early.filter(|_| !self.is_found) {
            Some((bars, is_cut)) => (bars, [is_cut, true]),
            None => (self.bars.into(), [self.is_cut, self.is_full]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(time: i64) -> Bar {
        Bar {
            region: 0,
            times: [time, time + 1],
        }
    }

    fn times((bars, missing): AroundCall) -> (Vec<i64>, [bool; 2]) {
        (bars.iter().map(|bar| bar.times[0]).collect(), missing)
    }

    #[test]
    fn the_bars_before_and_after_the_call_are_kept() {
        let mut around = BarsAround::default();
        (0..10).for_each(|time| around.add(bar(time), false, 3));
        around.find();
        (10..20).for_each(|time| around.add(bar(time), true, 3));
        let expected = (vec![7, 8, 9, 10, 11, 12], [true; 2]);
        assert_eq!(times(around.finish()), expected);
    }

    #[test]
    fn a_location_without_the_call_shows_what_it_did_meanwhile() {
        let mut around = BarsAround::default();
        (0..10).for_each(|time| around.add(bar(time), false, 3));
        (10..100).for_each(|time| around.add(bar(time), true, 3));
        let (bars, missing) = times(around.finish());
        assert_eq!((&bars[..3], missing), (&[7, 8, 9][..], [true; 2]));
        assert_eq!(bars.last(), Some(&13));
    }

    #[test]
    fn a_location_may_come_to_the_call_much_later() {
        let mut around = BarsAround::default();
        (0..4).for_each(|time| around.add(bar(time), false, 5));
        (4..50).for_each(|time| around.add(bar(time), true, 5));
        around.find();
        around.add(bar(50), true, 5);
        let expected = (vec![45, 46, 47, 48, 49, 50], [true, false]);
        assert_eq!(times(around.finish()), expected);
    }
}
