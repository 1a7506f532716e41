//! Regions that are open on a location.

use downbeat_clock_core::{Global, Timestamp};

use super::finding::{Call, CallSegment};

/// Maximum depth of open regions; deeper ones are counted and not shown.
const DEEPEST: usize = 4_096;

/// Open regions of one location, from the outermost.
#[derive(Debug)]
pub(super) struct OpenCalls {
    calls: Vec<Call>,
    /// Number of open regions that are nested too deeply.
    beyond: u64,
    /// Begin of the part of the innermost call that follows the last change.
    since: Timestamp<Global>,
    /// Number of events when the last call was entered.
    entered: u64,
    /// Number of events, and the time of the last one.
    pub(super) events: u64,
    pub(super) last: Timestamp<Global>,
}

impl Default for OpenCalls {
    fn default() -> Self {
        Self {
            calls: vec![],
            beyond: 0,
            since: Timestamp::ORIGIN,
            entered: 0,
            events: 0,
            last: Timestamp::ORIGIN,
        }
    }
}

impl OpenCalls {
    /// Returns the innermost call.
    pub(super) fn innermost(&self) -> Option<&Call> {
        self.calls.last()
    }

    /// Returns the part of the innermost call up to the last event.
    pub(super) fn unfinished(&self) -> Option<CallSegment> {
        self.ended(self.last, true)
    }

    /// Enters a region. Returns the part of the call around it that ends here.
    pub(super) fn enter(&mut self, call: Call) -> Option<CallSegment> {
        if self.calls.len() >= DEEPEST {
            self.beyond += 1;
            return None;
        }
        let ended = self.ended(call.enter, false);
        self.since = call.enter;
        self.entered = self.events;
        self.calls.push(call);
        ended
    }

    /// Leaves the innermost call of a region, and all inside it. Returns it, with its last part.
    pub(super) fn leave(
        &mut self,
        region: u32,
        time: Timestamp<Global>,
    ) -> Option<(Call, Option<CallSegment>)> {
        if self.beyond > 0 {
            self.beyond -= 1;
            return None;
        }
        let place = self.calls.iter().rposition(|call| call.region == region)?;
        let ended = self.ended(time, true);
        self.since = time;
        let call = self.calls[place];
        self.calls.truncate(place);
        Some((call, ended))
    }

    /// Sets the number of calls that the innermost one stands for, if the event before
    /// was its enter.
    pub(super) fn fold_innermost(&mut self, calls: u64) {
        if self.events == self.entered + 1
            && let Some(call) = self.calls.last_mut()
        {
            call.calls = calls;
        }
    }

    /// Gives the innermost call its region, which was not known before.
    pub(super) fn name_innermost(&mut self, region: u32) {
        if let Some(call) = self.calls.last_mut() {
            call.region = region;
        }
    }

    /// Returns the part of the innermost call up to this time. Calls that took no time have one part.
    fn ended(&self, until: Timestamp<Global>, is_left: bool) -> Option<CallSegment> {
        let call = self.calls.last()?;
        let is_seen = until > self.since || is_left && until == call.enter;
        is_seen.then_some(CallSegment {
            location: call.location,
            region: call.region,
            times: [self.since, until],
            last: self.events.saturating_sub(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(region: u32, enter: i64) -> Call {
        let enter = Timestamp::from_nanos(enter);
        Call {
            location: 0,
            region,
            number: 0,
            enter,
            calls: 1,
        }
    }

    fn part(segment: Option<CallSegment>) -> Option<(u32, [i64; 2])> {
        segment.map(|found| (found.region, found.times.map(Timestamp::as_nanos)))
    }

    fn at(nanos: i64) -> Timestamp<Global> {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn parts_of_calls_exclude_the_calls_inside() {
        let mut open = OpenCalls::default();
        assert_eq!(part(open.enter(call(0, 10))), None);
        assert_eq!(part(open.enter(call(1, 15))), Some((0, [10, 15])));
        let (left, ended) = open.leave(1, at(20)).unwrap();
        assert_eq!((left.region, part(ended)), (1, Some((1, [15, 20]))));
        // No time passes before the next call inside, which takes none.
        assert_eq!(part(open.enter(call(1, 20))), None);
        let (_, ended) = open.leave(1, at(20)).unwrap();
        assert_eq!(part(ended), Some((1, [20, 20])));
        let (left, ended) = open.leave(0, at(30)).unwrap();
        assert_eq!((left.enter, part(ended)), (at(10), Some((0, [20, 30]))));
        assert_eq!(open.innermost(), None);
    }

    #[test]
    fn leaves_need_not_fit() {
        let mut open = OpenCalls::default();
        assert!(open.leave(3, at(5)).is_none());
        open.enter(call(0, 10));
        open.enter(call(1, 20));
        assert!(open.leave(3, at(25)).is_none());
        // The leave of the inner region is missing.
        let (left, ended) = open.leave(0, at(30)).unwrap();
        assert_eq!((left.region, part(ended)), (0, Some((1, [20, 30]))));
        for _ in 0..DEEPEST + 5 {
            open.enter(call(0, 40));
        }
        for _ in 0..5 {
            assert!(open.leave(0, at(50)).is_none());
        }
        assert_eq!(open.calls.len(), DEEPEST);
        assert!(open.leave(0, at(50)).is_some());
    }
}
