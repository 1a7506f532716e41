//! A correction as a few offsets between which readers interpolate, so that no event needs to be rewritten.

use core::cmp::Ordering;
use core::fmt;

/// What a reader adds to times of a location, at one of them; in between it interpolates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Knot {
    /// A time as it was recorded.
    pub at: i64,
    /// What is added to it.
    pub offset: i64,
}

/// Where the time of an event may be moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The time as it was recorded.
    pub at: i64,
    /// The first time that it may become.
    pub earliest: i64,
    /// The last time that it may become.
    pub latest: i64,
}

/// Offsets of a location's times, as an OTF2 archive has them: linear from one to the next.
///
/// ```
/// use downbeat_sync::postmortem::{Knots, Window};
///
/// // 10 ns are missing at first; later the clock gains 1 ns in 100.
/// let to = |at: i64| at + 10 + (at - 2_000).max(0) / 100;
/// let window = |at| Window { at, earliest: to(at), latest: to(at) };
/// let knots = Knots::through([0, 500, 2_000, 2_500, 4_000, 9_000].map(window).to_vec())?;
/// let found: Vec<_> = knots.knots().iter().map(|knot| (knot.at, knot.offset)).collect();
/// assert_eq!(found, [(0, 10), (2_000, 10), (9_000, 80)]);
/// assert_eq!(knots.apply(2_500), 2_515);
/// # Ok::<(), downbeat_sync::postmortem::KnotError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knots(Vec<Knot>);

/// Why there are no such offsets. Events are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnotError {
    /// The event was recorded before the one before it, or a knot is not after the one before it.
    Decreasing(usize),
    /// The events would have to be moved apart or to change places, but were recorded at one time; an offset moves them
    /// by the same. Of one event, the window is empty, or before those of earlier ones.
    Inseparable {
        /// The first of them.
        first: usize,
        /// The last of them.
        last: usize,
    },
    /// The offset of the event is 2^45 or more away from others: a reader could not interpolate it well enough.
    TooFar(usize),
}

impl fmt::Display for KnotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decreasing(event) => write!(f, "event {event} was recorded before the one before it"),
            Self::Inseparable { first, last } if first == last => {
                write!(f, "event {first} can be moved to no time, or only back past another")
            }
            Self::Inseparable { first, last } => {
                write!(f, "events {first} to {last} must be moved apart, which no clock offset does")
            }
            Self::TooFar(event) => write!(f, "event {event} would have to be moved by 10 hours more than others"),
        }
    }
}

impl core::error::Error for KnotError {}

impl Knots {
    /// These.
    ///
    /// # Errors
    /// When their times do not increase.
    pub fn new(knots: Vec<Knot>) -> Result<Self, KnotError> {
        match knots.windows(2).position(|pair| pair[0].at >= pair[1].at) {
            Some(before) => Err(KnotError::Decreasing(before + 1)),
            None => Ok(Self(knots)),
        }
    }

    /// All of them, in order.
    pub fn knots(&self) -> &[Knot] {
        &self.0
    }

    /// What a time becomes, exactly as OTF2's reader computes it: by the line between the knots around it, or else by
    /// the nearest one. One knot alone is none to it, and changes nothing.
    pub fn apply(&self, time: i64) -> i64 {
        let [_, inner @ .., _] = &self.0[..] else { return time };
        let line = inner.partition_point(|knot| knot.at < time);
        let [from, to] = [self.0[line], self.0[line + 1]];
        let difference = |a: i64, b: i64| (i128::from(a) - i128::from(b)) as f64;
        // To round twice, and to even, is what the reader does.
        let slope = difference(to.offset, from.offset) / difference(to.at, from.at);
        let moved = (slope * difference(time, from.at)).round_ties_even();
        time.wrapping_add(from.offset).wrapping_add(moved as i64)
    }

    /// Few knots that move every event into its window, and nothing backward past another: as few as there can be but
    /// for rounding, as all of them are at events. There are at least two, unless there are no windows.
    ///
    /// From each knot on, the lines through all windows up to the next event are a cone, which narrows until nothing is
    /// left of it; the next knot is on a line of the last cone. It takes time proportional to the number of windows.
    ///
    /// # Errors
    /// When times decrease, or events cannot be moved as they should.
    pub fn through(mut windows: Vec<Window>) -> Result<Self, KnotError> {
        merge(&mut windows)?;
        let Some(first) = windows.first() else { return Ok(Self::default()) };
        let mut knots = vec![knot(first.at, middle(first.earliest, first.latest))];
        let mut at = 0;
        while at + 1 < windows.len() {
            let (next, to) = farthest(&windows, at, knots[knots.len() - 1])?;
            knots.push(knot(windows[next].at, to));
            at = next;
        }
        if let [only] = knots[..] {
            knots.push(Knot { at: only.at.saturating_add(1), ..only });
        }
        Self::new(knots)
    }
}

/// Windows keep this share from the bounds at which a reader rounds up or down: 7 of 8 halves of a unit, as a reader's
/// floating-point numbers have errors.
const UNIT: i128 = 16;
const MARGIN: i128 = 7;

/// With offsets in this reach, errors of `f64` are below 3 * 2^-53 * 2^45, and so below a 16th.
const REACH: i128 = 1 << 45;

/// A knot that is looked for in vain for so many windows is no longer looked for: or else the same windows might be
/// looked at again and again.
const PATIENCE: usize = 64;

fn knot(at: i64, to: i64) -> Knot {
    Knot { at, offset: to.saturating_sub(at) }
}

const fn middle(a: i64, b: i64) -> i64 {
    (a & b) + ((a ^ b) >> 1)
}

/// One window for all events of a time, and none from which a later one could only be reached by going back.
fn merge(windows: &mut Vec<Window>) -> Result<(), KnotError> {
    let mut kept = 0;
    let mut first = 0;
    for i in 0..windows.len() {
        let mut window = windows[i];
        if i > 0 {
            let last = windows[kept];
            window.earliest = window.earliest.max(last.earliest);
            match last.at.cmp(&window.at) {
                Ordering::Greater => return Err(KnotError::Decreasing(i)),
                Ordering::Equal => window.latest = window.latest.min(last.latest),
                Ordering::Less => (kept, first) = (kept + 1, i),
            }
        }
        if window.earliest > window.latest {
            return Err(KnotError::Inseparable { first, last: i });
        }
        if i128::from(window.latest).abs_diff(i128::from(window.at)) > i64::MAX as u128
            || i128::from(window.earliest).abs_diff(i128::from(window.at)) > i64::MAX as u128
        {
            return Err(KnotError::TooFar(i));
        }
        windows[kept] = window;
    }
    windows.truncate(if windows.is_empty() { 0 } else { kept + 1 });
    let mut latest = i64::MAX;
    for window in windows.iter_mut().rev() {
        latest = latest.min(window.latest);
        window.latest = latest;
    }
    Ok(())
}

/// The lines from a knot that go through all windows so far, by how much an offset grows on them; in fractions.
#[derive(Clone, Copy, Debug)]
struct Cone {
    low: [i128; 2],
    high: Option<[i128; 2]>,
}

/// Whether the first fraction is less.
fn less(a: [i128; 2], b: [i128; 2]) -> bool {
    a[0] * b[1] < b[0] * a[1]
}

impl Cone {
    fn has(self, slope: [i128; 2]) -> bool {
        !less(slope, self.low) && self.high.is_none_or(|high| !less(high, slope))
    }

    /// Only the lines that are between these. Whether there is one.
    fn narrow(&mut self, low: [i128; 2], high: [i128; 2]) -> bool {
        if less(self.low, low) {
            self.low = low;
        }
        if self.high.is_none_or(|old| less(high, old)) {
            self.high = Some(high);
        }
        self.has(self.low)
    }

    /// The whole number in the middle of what is within the cone, so long after its knot; `None` if there is none.
    fn whole(self, after: i128, earliest: i128, latest: i128) -> Option<i128> {
        let up = |[top, bottom]: [i128; 2]| -(-(top * after)).div_euclid(bottom * UNIT);
        let down = |[top, bottom]: [i128; 2]| (top * after).div_euclid(bottom * UNIT);
        let low = earliest.max(up(self.low));
        let high = latest.min(self.high.map_or(latest, down));
        (low <= high).then(|| low + (high - low) / 2)
    }
}

/// The farthest window at which a line from this knot, which is at window `from`, may end; and where in it.
fn farthest(windows: &[Window], from: usize, knot: Knot) -> Result<(usize, i64), KnotError> {
    let start = i128::from(knot.at) + i128::from(knot.offset);
    let mut cone = Cone { low: [-UNIT, 1], high: None };
    let mut best = (from + 1, windows[from + 1].latest);
    let mut last = from + 1;
    for (i, window) in windows.iter().enumerate().skip(from + 1) {
        let after = i128::from(window.at) - i128::from(knot.at);
        let offset = |to: i128| to - i128::from(window.at) - i128::from(knot.offset);
        let [earliest, latest] = [window.earliest, window.latest].map(i128::from);
        if offset(earliest).abs() >= REACH || offset(latest).abs() >= REACH {
            return Err(KnotError::TooFar(i));
        }
        let there = i128::from(middle(window.earliest, window.latest)).max(start);
        if cone.has([UNIT * offset(there), after]) {
            best = (i, there as i64);
        }
        let low = [UNIT * offset(earliest) - MARGIN, after];
        let high = [UNIT * offset(latest) + MARGIN, after];
        let mut narrower = cone;
        if !narrower.narrow(low, high) || i - from > PATIENCE + 4 * (best.0 - from) {
            break;
        }
        (cone, last) = (narrower, i);
    }
    // On the last line that goes through all of them; or, where that is at no whole number, at the last middle on one.
    let window = windows[last];
    let after = i128::from(window.at) - i128::from(knot.at);
    let base = i128::from(window.at) + i128::from(knot.offset);
    let end = cone.whole(after, i128::from(window.earliest) - base, i128::from(window.latest) - base);
    Ok(end.map_or(best, |offset| (last, (base + offset) as i64)))
}

#[cfg(test)]
mod tests;
