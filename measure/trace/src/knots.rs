//! Corrections as a few offsets between which readers interpolate, so that events need not be
//! rewritten.

use core::cmp::Ordering;

use crate::presync::ClockOffsetError;

/// Offset that a reader adds to one time of a location; it interpolates between neighbouring knots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetKnot {
    /// Time as recorded.
    pub at: i64,
    /// Offset that is added to it.
    pub offset: i64,
}

/// Range of times to which an event may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeWindow {
    /// Time as recorded.
    pub at: i64,
    /// Earliest allowed time.
    pub earliest: i64,
    /// Latest allowed time.
    pub latest: i64,
}

/// Clock offsets of a location, as an OTF2 archive stores them: linear from one knot to the next.
///
/// ```
/// use downbeat_trace::knots::{Knots, TimeWindow};
///
/// // 10 ns are missing at first; later the clock gains 1 ns in 100.
/// let to = |at: i64| at + 10 + (at - 2_000).max(0) / 100;
/// let window = |at| TimeWindow { at, earliest: to(at), latest: to(at) };
/// let knots = Knots::through([0, 500, 2_000, 2_500, 4_000, 9_000].map(window), 1_000)?;
/// let found: Vec<_> = knots.knots().iter().map(|knot| (knot.at, knot.offset)).collect();
/// assert_eq!(found, [(0, 10), (2_000, 10), (9_000, 80)]);
/// assert_eq!(knots.apply(2_500), 2_515);
/// # Ok::<(), downbeat_trace::presync::ClockOffsetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knots(Vec<OffsetKnot>);

impl Knots {
    /// Takes these knots.
    ///
    /// # Errors
    /// When their times do not increase.
    pub fn new(knots: Vec<OffsetKnot>) -> Result<Self, ClockOffsetError> {
        match knots.windows(2).position(|pair| pair[0].at >= pair[1].at) {
            Some(before) => Err(ClockOffsetError::Decreasing(before + 1)),
            None => Ok(Self(knots)),
        }
    }

    /// Returns all knots, in order.
    pub fn knots(&self) -> &[OffsetKnot] {
        &self.0
    }

    /// Corrects a time exactly as OTF2's reader does: along the line between the knots around it,
    /// or outside of all knots with the offset of the nearest one. OTF2 ignores a single knot,
    /// which changes nothing.
    pub fn apply(&self, time: i64) -> i64 {
        let [_, inner @ .., _] = &self.0[..] else {
            return time;
        };
        let line = inner.partition_point(|knot| knot.at < time);
        let [from, to] = [self.0[line], self.0[line + 1]];
        downbeat_otf2::interpolated([(from.at, from.offset), (to.at, to.offset)], time)
    }

    /// Finds few knots that move every event into its window and no event back past another. Their
    /// number is minimal up to rounding, under the condition that all knots are at events. There
    /// are at least two knots, unless there are no windows.
    ///
    /// The lines from a knot through all windows so far form a cone, which narrows with every
    /// event. When it becomes empty, the next knot is placed on a line of the last cone. Takes time
    /// proportional to the number of windows, and memory for those between two knots.
    ///
    /// # Errors
    /// When times decrease, when offsets cannot move the events into their windows, or when more
    /// than `most` knots are needed. Events after that point are not examined.
    pub fn through(
        windows: impl IntoIterator<Item = TimeWindow>,
        most: usize,
    ) -> Result<Self, ClockOffsetError> {
        let mut windows = Merged::new(windows.into_iter());
        let Some(first) = windows.get(0)? else {
            return Ok(Self::default());
        };
        let mut knots = vec![knot(first.at, middle(first.earliest, first.latest))];
        let mut at = 0;
        while let Some((next, knot)) = farthest(&mut windows, at, knots[knots.len() - 1])? {
            knots.push(knot);
            at = next;
            if knots.len() > most {
                return Err(ClockOffsetError::TooMany(windows.event(at)));
            }
        }
        if let [only] = knots[..] {
            knots.push(OffsetKnot {
                at: only.at.saturating_add(1),
                ..only
            });
        }
        Self::new(knots)
    }
}

/// Windows keep a distance of one unit less this margin from the bounds at which a reader rounds up
/// or down: 7 of 8 halves of a unit, as a reader's floating-point numbers have errors.
const UNIT: i64 = 16;
const MARGIN: i64 = 7;

/// With offsets below this limit, errors of `f64` are below 3 * 2^-53 * 2^45, and so below a 16th.
const REACH: i64 = 1 << 45;

/// Maximum number of windows to search for a knot without success. It bounds how often the same
/// windows are examined again.
const PATIENCE: usize = 64;

fn knot(at: i64, to: i64) -> OffsetKnot {
    OffsetKnot {
        at,
        offset: to.saturating_sub(at),
    }
}

const fn middle(a: i64, b: i64) -> i64 {
    (a & b) + ((a ^ b) >> 1)
}

/// Stream of windows with one window per recorded time. Windows are narrowed so that no later one
/// requires going back. Reads ahead only as far as needed.
struct Merged<I> {
    events: std::iter::Enumerate<I>,
    /// Windows from index `base` on, each with the last event of its time.
    windows: Vec<(TimeWindow, usize)>,
    base: usize,
    /// Index of the first window that may still be narrowed.
    settled: usize,
    /// Index of the first window that may still be requested.
    needed: usize,
    /// First event at the last time.
    first: usize,
    has_ended: bool,
}

/// Minimum number of windows that are read at once. Small in tests, to cover the boundaries between
/// blocks.
const BLOCK: usize = if cfg!(test) { 3 } else { 1 << 14 };

impl<I: Iterator<Item = TimeWindow>> Merged<I> {
    fn new(events: I) -> Self {
        let events = events.enumerate();
        Self {
            events,
            windows: vec![],
            base: 0,
            settled: 0,
            needed: 0,
            first: 0,
            has_ended: false,
        }
    }

    /// Returns the window with this index, which must not have been [forgotten](Self::forget);
    /// `None` after the last.
    #[inline]
    fn get(&mut self, number: usize) -> Result<Option<TimeWindow>, ClockOffsetError> {
        while number >= self.settled {
            if self.has_ended {
                return Ok(None);
            }
            self.fill()?;
        }
        Ok(Some(self.windows[number - self.base].0))
    }

    /// Returns the last event at the time of this window.
    fn event(&self, number: usize) -> usize {
        self.windows[number - self.base].1
    }

    /// Declares that windows before this one are not needed any more.
    fn forget(&mut self, number: usize) {
        self.needed = number;
    }

    /// Reads at least as many windows as are held.
    fn fill(&mut self) -> Result<(), ClockOffsetError> {
        self.windows.drain(..self.needed - self.base);
        self.base = self.needed;
        let goal = self.windows.len() + self.windows.len().max(BLOCK);
        while self.windows.len() < goal && !self.has_ended {
            match self.events.next() {
                Some((event, window)) => self.take(event, window)?,
                None => self.has_ended = true,
            }
        }
        let mut latest = i64::MAX;
        for (window, _) in self.windows.iter_mut().rev() {
            latest = latest.min(window.latest);
            window.latest = latest;
        }
        // No later window ends before the last one begins.
        let begin = self
            .windows
            .last()
            .filter(|_| !self.has_ended)
            .map_or(i64::MAX, |(window, _)| window.earliest);
        self.settled = self.base
            + self
                .windows
                .partition_point(|(window, _)| window.latest <= begin);
        Ok(())
    }

    fn take(&mut self, event: usize, mut window: TimeWindow) -> Result<(), ClockOffsetError> {
        let mut is_same = false;
        if let Some((last, _)) = self.windows.last() {
            window.earliest = window.earliest.max(last.earliest);
            match last.at.cmp(&window.at) {
                Ordering::Greater => return Err(ClockOffsetError::Decreasing(event)),
                Ordering::Equal => {
                    (window.latest, is_same) = (window.latest.min(last.latest), true);
                }
                Ordering::Less => self.first = event,
            }
        }
        if window.earliest > window.latest {
            return Err(ClockOffsetError::Inseparable {
                first: self.first,
                last: event,
            });
        }
        if [window.earliest, window.latest]
            .iter()
            .any(|to| to.checked_sub(window.at).is_none())
        {
            return Err(ClockOffsetError::Unreachable(event));
        }
        match self.windows.last_mut().filter(|_| is_same) {
            Some(last) => *last = (window, event),
            None => self.windows.push((window, event)),
        }
        Ok(())
    }
}

/// Slopes of the lines from a knot that go through all windows so far, as fractions.
#[derive(Clone, Copy, Debug)]
struct Cone {
    low: [i64; 2],
    high: Option<[i64; 2]>,
}

/// Returns true if the first fraction is smaller.
fn less(a: [i64; 2], b: [i64; 2]) -> bool {
    i128::from(a[0]) * i128::from(b[1]) < i128::from(b[0]) * i128::from(a[1])
}

impl Cone {
    fn has(self, slope: [i64; 2]) -> bool {
        !less(slope, self.low) && self.high.is_none_or(|high| !less(high, slope))
    }

    /// Keeps only the lines between these two slopes. Returns true if any are left.
    fn narrow(&mut self, low: [i64; 2], high: [i64; 2]) -> bool {
        if less(self.low, low) {
            self.low = low;
        }
        if self.high.is_none_or(|old| less(high, old)) {
            self.high = Some(high);
        }
        self.has(self.low)
    }

    /// Returns the integer in the middle of the cone at a distance of `after` from its knot; `None`
    /// if there is none.
    fn whole(self, after: i64, earliest: i64, latest: i64) -> Option<i64> {
        // Offsets are below `REACH`, so products fit.
        let down = |[top, bottom]: [i64; 2], sign: i128| {
            (sign * i128::from(top) * i128::from(after))
                .div_euclid(i128::from(bottom) * i128::from(UNIT)) as i64
        };
        let low = earliest.max(-down(self.low, -1));
        let high = latest.min(self.high.map_or(latest, |high| down(high, 1)));
        (low <= high).then(|| low + (high - low) / 2)
    }
}

/// Finds the next knot after `start`, which is at window `from`: at the farthest window that a line
/// from here can reach. `None` if this is the last window.
fn farthest<I: Iterator<Item = TimeWindow>>(
    windows: &mut Merged<I>,
    from: usize,
    start: OffsetKnot,
) -> Result<Option<(usize, OffsetKnot)>, ClockOffsetError> {
    windows.forget(from);
    let Some(second) = windows.get(from + 1)? else {
        return Ok(None);
    };
    let mut cone = Cone {
        low: [-UNIT, 1],
        high: None,
    };
    let mut best = (from + 1, knot(second.at, second.latest));
    let mut last = None;
    let mut i = from + 1;
    while let Some(window) = windows.get(i)? {
        let after = window
            .at
            .checked_sub(start.at)
            .ok_or_else(|| ClockOffsetError::Unreachable(windows.event(i)))?;
        // Windows are close to their times, so the first difference fits; the second one may not.
        let offset = |to: i64| (to - window.at).saturating_sub(start.offset);
        let [earliest, latest] = [window.earliest, window.latest].map(offset);
        if !(-REACH < earliest && latest < REACH) {
            return Err(ClockOffsetError::Unreachable(windows.event(i)));
        }
        let there = middle(window.earliest, window.latest).max(start.at + start.offset);
        if cone.has([UNIT * offset(there), after]) {
            best = (i, knot(window.at, there));
            windows.forget(i);
        }
        let mut narrower = cone;
        let is_left = narrower.narrow(
            [UNIT * earliest - MARGIN, after],
            [UNIT * latest + MARGIN, after],
        );
        if !is_left || i - from > PATIENCE + 4 * (best.0 - from) {
            break;
        }
        (cone, last) = (narrower, Some((i, window.at, [after, earliest, latest])));
        i += 1;
    }
    // Prefer the last line that goes through all windows; if it has no integer there, use the last
    // window whose middle can be reached.
    let end = last.and_then(|(i, at, [after, earliest, latest])| {
        let offset = start.offset + cone.whole(after, earliest, latest)?;
        Some((i, OffsetKnot { at, offset }))
    });
    Ok(Some(end.unwrap_or(best)))
}

#[cfg(test)]
mod tests;
