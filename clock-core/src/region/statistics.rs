//! Statistics of a region timer.

use core::fmt;

use super::scale::TickScale;
use crate::histogram::DecimalBin;

/// One timed event: a run through a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionEvent {
    /// Length in ticks.
    pub length: u64,
    /// Number of the event in its timer, from 1.
    pub number: u64,
}

/// A wrong use of a timer, or a fault of its clock; the timer ignores the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimerMisuse {
    /// The timer was started while it ran; it continues.
    StartedWhileRunning,
    /// The timer was stopped while it did not run.
    StoppedWhileStopped,
    /// The clock showed less at the end of an event than at its start, so its length is unknown.
    ClockRanBackwards,
}

impl fmt::Display for TimerMisuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StartedWhileRunning => "the timer was started while it ran",
            Self::StoppedWhileStopped => "the timer was stopped while it did not run",
            Self::ClockRanBackwards => "the clock ran backwards",
        })
    }
}

impl core::error::Error for TimerMisuse {}

/// Counts of each kind of [`TimerMisuse`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MisuseCounts {
    /// Number of [`TimerMisuse::StartedWhileRunning`].
    pub started_while_running: u64,
    /// Number of [`TimerMisuse::StoppedWhileStopped`].
    pub stopped_while_stopped: u64,
    /// Number of [`TimerMisuse::ClockRanBackwards`].
    pub clock_ran_backwards: u64,
}

/// Statistics of a timer. Lengths are in ticks of its clock or, after [`scaled`](Self::scaled), of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatistics {
    /// Number of events.
    pub events: u64,
    /// Sum of the lengths.
    pub total: u64,
    /// The longest event; of equal ones, the first.
    pub longest: Option<RegionEvent>,
    /// The longest event except for that one, because the first event often includes initialization.
    pub second_longest: Option<RegionEvent>,
    /// The shortest event; of equal ones, the first.
    pub shortest: Option<RegionEvent>,
    /// Number of events in each bin; see [`count`](Self::count).
    pub bins: [u64; DecimalBin::COUNT],
    /// Faults of the program or its clock.
    pub misuse: MisuseCounts,
    /// Number of times the region was entered while it was running.
    pub recursions: u64,
    /// True while an event was running.
    pub is_running: bool,
}

impl Default for RegionStatistics {
    fn default() -> Self {
        Self {
            events: 0,
            total: 0,
            longest: None,
            second_longest: None,
            shortest: None,
            bins: [0; DecimalBin::COUNT],
            misuse: MisuseCounts::default(),
            recursions: 0,
            is_running: false,
        }
    }
}

impl RegionStatistics {
    /// Number of events in a bin.
    pub fn count(&self, bin: DecimalBin) -> u64 {
        self.bins[bin.index()]
    }

    /// The statistics in ticks of the program. The bins already are.
    pub fn scaled(&self, scale: TickScale) -> Self {
        let event = |event: RegionEvent| RegionEvent {
            length: scale.apply(event.length),
            ..event
        };
        Self {
            total: scale.apply(self.total),
            longest: self.longest.map(event),
            second_longest: self.second_longest.map(event),
            shortest: self.shortest.map(event),
            ..self.clone()
        }
    }

    /// Sets the extremes from the fields of a timer. It compares lengths with an initial 0, so events of length 0 have no
    /// number there.
    pub(super) fn set_extremes(
        &mut self,
        longest: RegionEvent,
        second: RegionEvent,
        shortest: RegionEvent,
    ) {
        let empty_event = |number| RegionEvent { length: 0, number };
        self.longest = (self.events > 0).then_some(if longest.number == 0 {
            empty_event(1)
        } else {
            longest
        });
        let second_number = if self.longest.is_some_and(|longest| longest.number == 1) {
            2
        } else {
            1
        };
        self.second_longest = (self.events > 1).then_some(if second.number == 0 {
            empty_event(second_number)
        } else {
            second
        });
        self.shortest = (self.events > 0).then_some(shortest);
    }
}
