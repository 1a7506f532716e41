//! Backward amortization: what came before a receive that was moved forward is moved, too, the more the closer it was.

use std::sync::atomic::{AtomicI64, Ordering};

use downbeat_clock_core::{Global, Timestamp};

use super::trace::{Mark, Role};

/// How much the intervals before a receive that was moved forward are stretched, where nothing stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// How often the jump goes into the interval, in units of 2^-20.
    inverse: u64,
}

impl Gradient {
    /// By one percent.
    pub const PERCENT: Self = Self { inverse: 100 << 20 };

    /// The nearest one to a share of more than a billionth and up to 1; `None` for others.
    pub fn new(share: f64) -> Option<Self> {
        (share > 1e-9 && share <= 1.0).then(|| Self { inverse: ((1_u64 << 20) as f64 / share) as u64 })
    }

    /// Over how long a jump is spread: at most 146 years, so that what is so far before a time is a time.
    fn spread(self, jump: i64) -> i64 {
        ((i128::from(jump) * i128::from(self.inverse)) >> 20).min(1 << 62) as i64
    }
}

/// How far an event at a time is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    at: i64,
    by: i64,
}

/// Amortizes all jumps of a location, from the last to the first. `stamps` have the jumps of receives, and the limits of
/// sends.
pub(super) fn amortize(marks: &[Mark], stamps: &[AtomicI64], times: &mut [Timestamp<Global>], gradient: Gradient) {
    let mut hull = vec![];
    for (index, (mark, stamp)) in marks.iter().zip(stamps).enumerate().rev() {
        let jump = stamp.load(Ordering::Relaxed);
        if !matches!(mark.role(), Role::Receive | Role::Exit) || jump <= 0 {
            continue;
        }
        let Some((before, [received, ..])) = times.split_at_mut_checked(mark.event as usize) else { continue };
        let end = Point { at: received.as_nanos() - jump, by: jump };
        let start = Point { at: end.at - gradient.spread(jump), by: 0 };
        if before.last().is_none_or(|last| last.as_nanos() <= start.at) {
            continue;
        }
        hull.clear();
        hull.push(end);
        for (mark, stamp) in marks[..index].iter().zip(&stamps[..index]).rev() {
            let at = before[mark.event as usize].as_nanos();
            if at <= start.at {
                break;
            }
            if matches!(mark.role(), Role::Send | Role::Enter) {
                let point = Point { at, by: stamp.load(Ordering::Relaxed).saturating_sub(at) };
                if is_below(point, start, end) {
                    extend(&mut hull, point);
                }
            }
        }
        extend(&mut hull, start);
        raise(before, &hull);
    }
}

/// Whether a point is below the straight line between two others, and not before or behind them.
fn is_below(point: Point, left: Point, right: Point) -> bool {
    let (wide, high) = (right.at - left.at, right.by - left.by);
    let (along, up) = (point.at - left.at, point.by - left.by);
    i128::from(up) * i128::from(wide) < i128::from(high) * i128::from(along)
}

/// Adds a point to the left of a lower convex hull.
fn extend(hull: &mut Vec<Point>, point: Point) {
    if let Some(last) = hull.last().filter(|last| last.at == point.at) {
        if last.by <= point.by {
            return;
        }
        hull.pop();
    }
    while let [.., right, middle] = hull[..] {
        if is_below(middle, point, right) {
            break;
        }
        hull.pop();
    }
    hull.push(point);
}

/// Moves events by what a hull, whose first point is the rightmost, says; those to its left stay.
fn raise(times: &mut [Timestamp<Global>], hull: &[Point]) {
    let mut parts = hull.windows(2);
    let Some([mut right, mut left]) = parts.next().and_then(|part| <[Point; 2]>::try_from(part).ok()) else { return };
    for time in times.iter_mut().rev() {
        let at = time.as_nanos();
        while at < left.at {
            let Some(next) = parts.next().and_then(|part| <[Point; 2]>::try_from(part).ok()) else { return };
            [right, left] = next;
        }
        *time = Timestamp::from_nanos(at + left.by + part(at - left.at, right.by - left.by, right.at - left.at));
    }
}

/// `along * high / wide`, rounded down: all of them are positive, except that `wide` is not if it is all there is.
#[inline]
fn part(along: i64, high: i64, wide: i64) -> i64 {
    match along.checked_mul(high) {
        Some(product) => product.checked_div(wide).unwrap_or(0),
        None => (i128::from(along) * i128::from(high)).checked_div(i128::from(wide)).unwrap_or(0) as i64,
    }
}
