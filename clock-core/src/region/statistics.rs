//! What a timer has seen.

use core::fmt;

use super::scale::TickScale;
use crate::DecimalBin;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionEvent {
    /// How long it took, in ticks.
    pub length: u64,
    /// The events of a timer are counted from 1.
    pub number: u64,
}

/// What a timer was asked to do, and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Misuse {
    /// It ran already, and goes on.
    StartedWhileRunning,
    /// It did not run.
    StoppedWhileStopped,
    /// The clock showed less at the end of an event than at its beginning, so that its length is not known.
    ClockRanBackwards,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StartedWhileRunning => "the timer was started while it ran",
            Self::StoppedWhileStopped => "the timer was stopped while it did not run",
            Self::ClockRanBackwards => "the clock ran backwards",
        })
    }
}

impl core::error::Error for Misuse {}

/// How often a timer was misused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MisuseCounts {
    /// [`Misuse::StartedWhileRunning`].
    pub started_while_running: u64,
    /// [`Misuse::StoppedWhileStopped`].
    pub stopped_while_stopped: u64,
    /// [`Misuse::ClockRanBackwards`].
    pub clock_ran_backwards: u64,
}

/// What a timer has seen; its lengths are in ticks of its clock, or, once [`scaled`](Self::scaled), of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatistics {
    /// How many events there were.
    pub events: u64,
    /// How long all of them took together.
    pub total: u64,
    /// The longest; of several, the first.
    pub longest: Option<RegionEvent>,
    /// The longest but for that one: the first event often does what the others need not.
    pub second_longest: Option<RegionEvent>,
    /// The shortest; of several, the first.
    pub shortest: Option<RegionEvent>,
    /// How many are in each bin: see [`count`](Self::count).
    pub bins: [u64; DecimalBin::COUNT],
    /// What is wrong with the program, or its clock.
    pub misuse: MisuseCounts,
    /// How often the region was entered while it was running.
    pub recursions: u64,
    /// Whether an event was under way.
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
    /// How many events are in a bin.
    pub fn count(&self, bin: DecimalBin) -> u64 {
        self.bins[bin.index()]
    }

    /// The same in ticks of the program. The bins are in these already.
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

    /// Takes over the extremes as a timer has them: it compares with 0, so events of length 0 have no number there.
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
        let other_than_the_longest = if self.longest.is_some_and(|longest| longest.number == 1) {
            2
        } else {
            1
        };
        self.second_longest = (self.events > 1).then_some(if second.number == 0 {
            empty_event(other_than_the_longest)
        } else {
            second
        });
        self.shortest = (self.events > 0).then_some(shortest);
    }
}
