//! Backward amortization: spreads the jump of a receive over the events before it, which are moved
//! the more the closer they are to the receive.

use downbeat_clock_core::{Global, Timestamp};

use super::stamps::Stamps;
use super::timeline::Timeline;
use super::trace::{Mark, Role};
use super::{Array, EventId, Trace};

/// Relative stretch of the interval before a receive that was moved forward, as long as no limit
/// prevents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// Length of the interval divided by the jump, in units of 2^-20.
    inverse: u64,
}

impl Gradient {
    /// Stretch by one percent.
    pub const PERCENT: Self = Self { inverse: 100 << 20 };

    /// Returns the nearest gradient to `share`, which must be more than a billionth and at most 1;
    /// `None` for other values.
    pub fn new(share: f64) -> Option<Self> {
        (share > 1e-9 && share <= 1.0).then(|| Self {
            inverse: ((1_u64 << 20) as f64 / share) as u64,
        })
    }

    /// Returns the length of the interval over which a jump is spread: at most 146 years, so that
    /// its begin is a valid time.
    fn spread(self, jump: i64) -> i64 {
        ((i128::from(jump) * i128::from(self.inverse)) >> 20).min(1 << 62) as i64
    }
}

/// Time of an event, and the distance by which it is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    at: i64,
    by: i64,
}

/// Amortizes all jumps of a clock, from the last to the first. `stamps` hold the jumps of receives
/// and the limits of sends, and `times` are those of the locations of its timeline.
pub(super) fn amortize(
    trace: &Trace,
    timeline: &Timeline,
    stamps: &Stamps,
    times: &mut [Array<Timestamp<Global>>],
    gradient: Gradient,
) {
    if let ([location], [times]) = (&timeline.locations[..], &mut *times) {
        let location = *location as usize;
        let (marks, words) = (&trace.locations[location].marks, stamps.words_of(location));
        return amortize_events(marks, words, times, gradient);
    }
    // The events of several locations in their order, with their marks.
    let mut merged = Vec::with_capacity(times.iter().map(|times| times.len()).sum());
    let (mut marks, mut words) = (vec![], vec![]);
    let mut next = vec![0; timeline.locations.len()];
    for (part, EventId { location, event }) in timeline.events() {
        let location = location.index();
        let mark = trace.locations[location].marks.get(next[part]);
        if let Some(mark) = mark.filter(|mark| mark.event == event) {
            marks.push((merged.len(), mark.role()));
            words.push(stamps.words_of(location)[next[part]]);
            next[part] += 1;
        }
        merged.push(times[part][event as usize]);
    }
    amortize_events(&marks, &words, &mut merged, gradient);
    for ((part, id), time) in timeline.events().zip(merged) {
        times[part][id.event as usize] = time;
    }
}

/// Event with a stamp: its index and its role.
trait Marked {
    fn place(&self) -> (usize, Role);
}

impl Marked for Mark {
    #[inline]
    fn place(&self) -> (usize, Role) {
        (self.event as usize, self.role())
    }
}

impl Marked for (usize, Role) {
    #[inline]
    fn place(&self) -> (usize, Role) {
        *self
    }
}

/// Amortizes all jumps among events in their order.
fn amortize_events(
    marks: &[impl Marked],
    words: &[i64],
    times: &mut [Timestamp<Global>],
    gradient: Gradient,
) {
    let mut hull = Hull::default();
    for (index, (mark, jump)) in marks.iter().zip(words).enumerate().rev() {
        let (event, role) = mark.place();
        if !matches!(role, Role::Receive | Role::Exit) || *jump <= 0 {
            continue;
        }
        let Some((before, [received, ..])) = times.split_at_mut_checked(event) else {
            continue;
        };
        // The interval before a receive that was moved forward is stretched to absorb the
        // jump.
        let end = Point {
            at: received.as_nanos() - *jump,
            by: *jump,
        };
        let start = Point {
            at: end.at - gradient.spread(*jump),
            by: 0,
        };
        if before.last().is_none_or(|last| last.as_nanos() <= start.at) {
            continue;
        }
        let marks = marks[..index].iter().zip(&words[..index]).rev();
        let limits = marks.map(|(mark, limit)| {
            let (event, role) = mark.place();
            let is_limited = matches!(role, Role::Send | Role::Enter);
            (before[event].as_nanos(), is_limited.then_some(*limit))
        });
        hull.bend(start, end, limits);
        hull.raise(before.iter_mut().rev());
    }
}

/// Distances by which events of an interval are moved: a lower convex hull, whose first point is
/// the rightmost. Reusable.
#[derive(Debug, Default)]
struct Hull {
    points: Vec<Point>,
}

/// Returns true if a point, which is between two others in time, is below the line between them.
fn is_below(point: Point, left: Point, right: Point) -> bool {
    let (wide, high) = (right.at - left.at, right.by - left.by);
    let (along, up) = (point.at - left.at, point.by - left.by);
    i128::from(up) * i128::from(wide) < i128::from(high) * i128::from(along)
}

impl Hull {
    /// Computes the hull of the straight line over an interval and the limits of its events, which
    /// are given from the last to the first.
    fn bend(
        &mut self,
        start: Point,
        end: Point,
        events: impl IntoIterator<Item = (i64, Option<i64>)>,
    ) {
        self.points.clear();
        self.points.push(end);
        for (at, limit) in events {
            if at <= start.at {
                break;
            }
            let Some(limit) = limit else { continue };
            let by = limit.saturating_sub(at);
            let point = Point { at, by };
            if is_below(point, start, end) {
                self.extend(point);
            }
        }
        self.extend(start);
    }

    /// Adds a point to the left.
    fn extend(&mut self, point: Point) {
        if let Some(last) = self.points.last().filter(|last| last.at == point.at) {
            if last.by <= point.by {
                return;
            }
            self.points.pop();
        }
        while let [.., right, middle] = self.points[..] {
            if is_below(middle, point, right) {
                break;
            }
            self.points.pop();
        }
        self.points.push(point);
    }

    /// Moves events, which are given from the last to the first; events to the left of the hull
    /// stay.
    fn raise<'a>(&self, times: impl IntoIterator<Item = &'a mut Timestamp<Global>>) {
        let parts = self.points.windows(2);
        let mut parts = parts.filter_map(|part| part.first_chunk().copied());
        let Some([mut right, mut left]) = parts.next() else {
            return;
        };
        for time in times {
            let at = time.as_nanos();
            while at < left.at {
                let Some(next) = parts.next() else { return };
                [right, left] = next;
            }
            *time = Timestamp::from_nanos(
                at + left.by + part(at - left.at, right.by - left.by, right.at - left.at),
            );
        }
    }
}

/// Returns `along * high / wide`, rounded down. All arguments are positive, except that `wide` may
/// be zero if the interval is empty.
#[inline]
fn part(along: i64, high: i64, wide: i64) -> i64 {
    match along.checked_mul(high) {
        Some(product) => product.checked_div(wide).unwrap_or(0),
        None => (i128::from(along) * i128::from(high))
            .checked_div(i128::from(wide))
            .unwrap_or(0) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(nanos: &[i64]) -> Vec<Timestamp<Global>> {
        nanos.iter().copied().map(Timestamp::from_nanos).collect()
    }

    /// Amortizes the jump of the last event with a gradient of one tenth; `sends` are indices of
    /// events and their limits.
    fn amortized(before: &[i64], jump: i64, sends: &[(u32, i64)]) -> Vec<i64> {
        let last = before.len() as u32 - 1;
        let mut marks: Vec<Mark> = sends
            .iter()
            .map(|(event, _)| Mark::new(*event, Role::Send, 0, 0))
            .collect();
        marks.push(Mark::new(last, Role::Receive, 0, 0));
        let mut words: Vec<i64> = sends.iter().map(|(_, limit)| *limit).collect();
        words.push(jump);
        let mut times = times(before);
        amortize_events(&marks, &words, &mut times, Gradient::new(0.1).unwrap());
        times.iter().map(|time| time.as_nanos()).collect()
    }

    /// A receive jumps from 1,000 to 1,100; the interval before it begins at 0.
    #[test]
    fn events_without_sends_move_along_a_straight_line() {
        assert_eq!(
            amortized(&[-10, 0, 5, 100, 505, 999, 1_100], 100, &[]),
            [-10, 0, 5, 110, 555, 1_098, 1_100]
        );
    }

    #[test]
    fn a_limit_bends_the_line() {
        // The send at 500 may move by 10 instead of 50: by a fiftieth of the interval before it,
        // and by 90 in 500 after it.
        let found = amortized(&[100, 500, 750, 1_100], 100, &[(1, 510)]);
        assert_eq!(found, [102, 510, 750 + 55, 1_100]);
        // A limit above the line has no effect.
        assert_eq!(
            amortized(&[100, 500, 750, 1_100], 100, &[(1, 551)]),
            [110, 550, 825, 1_100]
        );
    }

    #[test]
    fn only_limits_on_the_hull_count() {
        // The limits are 30 at 400 and 1 at 500: the line to the second passes 400 at 0.8 already.
        let found = amortized(&[400, 500, 1_100], 100, &[(0, 430), (1, 501)]);
        assert_eq!(found, [400, 501, 1_100]);
        // Figure 2 of the paper: two limits, both on the hull.
        let found = amortized(&[300, 700, 850, 1_100], 100, &[(0, 305), (1, 720)]);
        assert_eq!(found, [305, 720, 850 + 60, 1_100]);
    }

    #[test]
    fn sends_at_one_instant_take_the_smaller_limit() {
        assert_eq!(
            amortized(&[500, 500, 500, 1_100], 100, &[(0, 520), (1, 503)]),
            [503, 503, 503, 1_100]
        );
        // An event measured at the same instant as the receive.
        assert_eq!(
            amortized(&[500, 1_000, 1_000, 1_100], 100, &[(1, 1_020)]),
            [510, 1_020, 1_020, 1_100]
        );
        assert_eq!(
            amortized(&[500, 1_000, 1_100], 100, &[(1, 1_000)]),
            [500, 1_000, 1_100]
        );
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let found = amortized(&[-(1 << 62), 0, i64::MAX], i64::MAX, &[(1, i64::MAX)]);
        assert!(found.is_sorted(), "{found:?}");
    }

    #[test]
    fn a_gradient_is_a_share() {
        assert_eq!(Gradient::new(0.01), Some(Gradient::PERCENT));
        assert_eq!(Gradient::PERCENT.spread(7), 700);
        for wrong in [0.0, -1.0, 1.5, f64::NAN] {
            assert_eq!(Gradient::new(wrong), None);
        }
    }
}
