//! Convex hulls of the messages between two clocks (Duda 1987). No message arrives before it
//! is sent, so the offset between the clocks is below the apparent duration of each message there,
//! and above the negative one of each message back. A line between the hulls of both is one that
//! the clocks can have had.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use crate::encoding::{Merge, encoded, merged};
use crate::latencies::Site;
use crate::latencies::stays::Stay;
use crate::{EventId, Latencies, Message, Trace};

/// Point of a hull: a time of the first clock, and a limit of what the second one is ahead of it
/// then.
pub(super) type HullPoint = (i64, i64);

/// Points of which only those on the lower convex hull are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct LowerHull {
    points: Vec<HullPoint>,
    /// Number of points at which to look for those that are not on the hull.
    limit: usize,
}

const FEW: usize = 64;

/// Hulls of the messages between two clocks.
#[derive(Clone, Debug, Default)]
pub(super) struct PairHulls {
    /// Limits from above: of messages from the first clock to the second one.
    above: LowerHull,
    /// Negative limits from below: of messages back.
    below: LowerHull,
}

/// Messages between clocks, of which only the convex hulls are kept, as a
/// [`PreSynchronization`](super::PreSynchronization) with [`Hull`](super::Interpolation::Hull) needs
/// them.
#[derive(Clone, Debug, Default)]
pub struct MessageHulls {
    pairs: FxHashMap<[u32; 2], PairHulls>,
    /// First and last time of a message by each clock.
    spans: FxHashMap<u32, ClockSpan>,
    /// True if a message seems to arrive before it is sent.
    pub(super) are_reversed: bool,
}

/// First and last time of a message by a clock.
#[derive(Clone, Copy, Debug)]
struct ClockSpan {
    first: i64,
    last: i64,
}

merged! {
    MessageHulls { pairs, spans, are_reversed }
    PairHulls { above, below }
}

encoded! {
    LowerHull { points, limit }
    ClockSpan { first, last }
}

impl MessageHulls {
    /// Removes all points that are not vertices of their hulls.
    pub(crate) fn reduce(&mut self) {
        let pairs = self.pairs.values_mut();
        let hulls = pairs.flat_map(|pair| [&mut pair.above, &mut pair.below]);
        hulls.for_each(LowerHull::reduce);
    }
}

impl Merge for LowerHull {
    fn merge(&mut self, other: Self) {
        other.points.into_iter().for_each(|point| self.push(point));
    }
}

impl Merge for ClockSpan {
    fn merge(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// Line of offsets of the second clock of a pair, at times of the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OffsetLine {
    /// Time and offset of a point of the line.
    at: HullPoint,
    /// Part of a nanosecond at that point.
    beyond: f64,
    slope: f64,
    /// First and last time of a message of the first clock with any other.
    pub(super) span: [i64; 2],
    /// Part of this time without messages between these two.
    uncovered: i64,
    /// Upper limit of the error in this span if the offset is a line; none if no line fits.
    pub(super) bound: Option<f64>,
    /// By what all limits are kept; negative if no line fits.
    pub(super) margin: f64,
}

/// Steepest line that is considered: clocks gain less than 1 % on each other.
const STEEPEST: f64 = 0.01;

impl LowerHull {
    fn push(&mut self, point: HullPoint) {
        self.points.push(point);
        if self.points.len() >= self.limit.max(FEW) {
            self.reduce();
        }
    }

    /// Removes all points that are not vertices of the hull.
    fn reduce(&mut self) {
        self.points.sort_unstable();
        let mut kept: Vec<HullPoint> = vec![];
        for point in self.points.drain(..) {
            while let [.., a, b] = kept[..]
                && !turns_left(a, b, point)
            {
                kept.pop();
            }
            // Of points at one time, the first is the lowest.
            if kept.last().is_none_or(|last| last.0 < point.0) {
                kept.push(point);
            }
        }
        self.limit = 2 * kept.len();
        self.points = kept;
    }
}

fn turns_left(a: HullPoint, b: HullPoint, c: HullPoint) -> bool {
    let [ax, ay, bx, by, cx, cy] = [a.0, a.1, b.0, b.1, c.0, c.1].map(i128::from);
    (bx - ax) * (cy - ay) > (cx - ax) * (by - ay)
}

impl PairHulls {
    /// Returns the line that keeps all limits by the largest margin, or a flatter one with nine tenths
    /// of it: few messages do not tell a drift. `None` without messages in both directions.
    fn line(&mut self, span: [i64; 2]) -> Option<OffsetLine> {
        let origin = *self.above.points.iter().min()?;
        self.above.reduce();
        self.below.reduce();
        let (first, last) = (self.above.points.first()?, self.above.points.last()?);
        let (start, end) = (self.below.points.first()?, self.below.points.last()?);
        let covered = [first.0.min(start.0), last.0.max(end.0)];
        // Doubles are exact enough near the origin.
        let near = |sign: i64, (x, y): &HullPoint| {
            let x = i128::from(*x) - i128::from(origin.0);
            let y = i128::from(*y) - i128::from(sign) * i128::from(origin.1);
            (x as f64, y as f64)
        };
        // Each of two times was rounded by up to a nanosecond.
        let limit = |sign: i64, point: &HullPoint| {
            let (x, y) = near(sign, point);
            (x, y + 1.0)
        };
        let above: Vec<_> = self.above.points.iter().map(|of| limit(1, of)).collect();
        let below: Vec<_> = self.below.points.iter().map(|of| limit(-1, of)).collect();
        let lines = find_limits_by_slope(&above, &below);
        let best = lines.iter().map(Slope::margin).fold(f64::MIN, f64::max);
        let is_best = |line: &&Slope| line.margin() >= best - best.abs() / 10.0;
        let flattest = |one: &&Slope, other: &&Slope| one.slope.abs().total_cmp(&other.slope.abs());
        let found = lines.iter().filter(is_best).min_by(flattest)?;
        let middle = found.most.midpoint(found.least);
        let bound = (best >= 0.0).then(|| {
            let ends = span.map(|end| near(1, &(end, 0)).0);
            let errors = ends.map(|end| {
                let chosen = middle + found.slope * end;
                let error = |line: &Slope| {
                    let [most, least] = [line.most, line.least].map(|of| of + line.slope * end);
                    (most - chosen).max(chosen - least)
                };
                possible(&lines).iter().map(error).fold(0.0, f64::max)
            });
            errors[0].max(errors[1])
        });
        Some(OffsetLine {
            at: (origin.0, origin.1),
            beyond: middle,
            slope: found.slope,
            span,
            uncovered: (covered[0] - span[0]) + (span[1] - covered[1]),
            bound,
            margin: found.margin(),
        })
    }
}

/// Limits of the offset at the origin for lines of a slope.
#[derive(Clone, Copy)]
struct Slope {
    slope: f64,
    most: f64,
    least: f64,
}

impl Slope {
    fn margin(&self) -> f64 {
        (self.most - self.least) / 2.0
    }
}

/// Returns the limits of the offset for the slopes of all edges of both hulls, in ascending order;
/// between two of these slopes, both limits change linearly.
fn find_limits_by_slope(above: &[(f64, f64)], below: &[(f64, f64)]) -> Vec<Slope> {
    let slope_of = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
    let edges = above.windows(2).map(slope_of);
    let edges = edges.chain(below.windows(2).map(|pair| -slope_of(pair)));
    let mut slopes: Vec<f64> = edges.filter(|slope| slope.abs() < STEEPEST).collect();
    slopes.extend([-STEEPEST, 0.0, STEEPEST]);
    slopes.sort_unstable_by(f64::total_cmp);
    let limits = slopes.into_iter().map(|slope| Slope {
        slope,
        most: lowest(above, slope),
        least: -lowest(below, -slope),
    });
    limits.collect()
}

/// Returns the slopes of lines that keep all limits, and the first and the last slope with a single
/// line between them.
fn possible(lines: &[Slope]) -> Vec<Slope> {
    let mut found: Vec<Slope> = lines
        .iter()
        .filter(|of| of.margin() >= 0.0)
        .copied()
        .collect();
    for pair in lines.windows(2) {
        let [one, other] = [pair[0].margin(), pair[1].margin()];
        if (one < 0.0) == (other < 0.0) {
            continue;
        }
        let share = one / (one - other);
        let between = |a: f64, b: f64| a + (b - a) * share;
        let most = between(pair[0].most, pair[1].most);
        found.push(Slope {
            slope: between(pair[0].slope, pair[1].slope),
            most,
            least: most,
        });
    }
    found
}

/// Returns the lowest point of a hull where the axis has this slope, as the height at the origin.
fn lowest(hull: &[(f64, f64)], slope: f64) -> f64 {
    let height = |(x, y): &(f64, f64)| y - slope * x;
    // Heights fall, and then rise.
    let (mut first, mut last) = (0, hull.len() - 1);
    while first < last {
        let middle = first.midpoint(last);
        if height(&hull[middle + 1]) >= height(&hull[middle]) {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    height(&hull[first])
}

/// Change of drifts that is expected where no messages show it.
const WANDER: f64 = 1e-7;

impl OffsetLine {
    /// Returns a measure of its error: where no line fits, clocks deviate from this one by about as
    /// much as messages do.
    fn uncertainty(&self) -> f64 {
        self.bound.unwrap_or(-2.0 * self.margin) + self.uncovered as f64 * WANDER
    }

    /// Returns what the second clock shows when the first one shows `at`.
    pub(super) fn second(&self, at: i64) -> i128 {
        let elapsed = i128::from(at) - i128::from(self.at.0);
        let offset = self.beyond + self.slope * elapsed as f64;
        i128::from(at) + i128::from(self.at.1) + offset.round() as i128
    }

    /// Returns what the first clock shows when the second one shows `at`.
    pub(super) fn first(&self, at: i64) -> i128 {
        let elapsed = i128::from(at) - i128::from(self.at.1) - i128::from(self.at.0);
        let less = (self.slope * elapsed as f64 + self.beyond) / (1.0 + self.slope);
        i128::from(self.at.0) + elapsed - less.round() as i128
    }
}

impl MessageHulls {
    /// Returns the hulls of the messages of a trace, and of the collective operations in which all
    /// members wait for each other. Nothing takes less than `latencies`.
    pub fn of_trace(trace: &Trace, latencies: &Latencies) -> Self {
        Self::of_times(trace, &trace.times(), latencies)
    }

    /// Does the same by these times.
    pub(crate) fn of_times(
        trace: &Trace,
        times: &[&[Timestamp<Global>]],
        latencies: &Latencies,
    ) -> Self {
        let mut hulls = Self::default();
        let time = |of: EventId| times[of.location.index()][of.event as usize];
        let received = trace.ids().flat_map(|location| trace.received_by(location));
        for Message { send, receive } in received {
            let sites = [send, receive].map(|event| trace.site(event.location));
            hulls.add_message(sites, [send, receive].map(time), latencies);
        }
        trace.each_stay(times, |stays| hulls.add_operation(stays, latencies));
        hulls
    }

    /// Takes a message between two locations, and when it was sent and received.
    fn add_message(
        &mut self,
        [from, to]: [Site; 2],
        [sent, received]: [Timestamp<Global>; 2],
        latencies: &Latencies,
    ) {
        if from.clock != to.clock {
            self.are_reversed |= received < sent;
            let reached = received - latencies.between_sites(from, to);
            let times = [sent, reached].map(Timestamp::as_nanos);
            self.add([from.clock, to.clock], times);
        }
    }

    /// Takes a message between two clocks, given by their first locations: the time at which it was
    /// sent by one of them, and the earliest one at which it can have been sent by the other.
    fn add(&mut self, [from, to]: [u32; 2], [sent, reached]: [i64; 2]) {
        self.extend(from, sent);
        self.extend(to, reached);
        let took = reached.saturating_sub(sent);
        if from < to {
            let pair = self.pairs.entry([from, to]).or_default();
            pair.above.push((sent, took));
        } else {
            let pair = self.pairs.entry([to, from]).or_default();
            pair.below.push((reached, took));
        }
    }

    fn extend(&mut self, clock: u32, at: i64) {
        let span = ClockSpan {
            first: at,
            last: at,
        };
        self.spans.entry(clock).or_insert(span).merge(span);
    }

    /// Takes an operation: all of its members that waited for all others, and the others for them.
    /// Limits between the first clock and each other one suffice.
    fn add_operation(&mut self, stays: &[Stay], latencies: &Latencies) {
        let key = |stay: &&Stay| (stay.site.clock, stay.entered, stay.left);
        let Some(first) = stays.iter().min_by_key(key) else {
            return;
        };
        for other in stays.iter().filter(|of| of.site.clock != first.site.clock) {
            for [from, to] in [[first, other], [other, first]] {
                let sites = [from, to].map(|of| of.site);
                self.add_message(sites, [from.entered, to.left], latencies);
            }
        }
    }

    /// Returns the lines of all pairs of clocks with messages in both directions, the most certain
    /// ones first.
    pub(super) fn lines(&mut self) -> Vec<([u32; 2], OffsetLine)> {
        let (pairs, spans) = (self.pairs.iter_mut(), &self.spans);
        let lines = pairs.filter_map(|(ends, pair)| {
            let ClockSpan { first, last } = *spans.get(&ends[0])?;
            Some((*ends, pair.line([first, last])?))
        });
        let mut lines: Vec<_> = lines.collect();
        lines.sort_unstable_by(|(ends, line), (others, other)| {
            let rank = OffsetLine::uncertainty;
            rank(line).total_cmp(&rank(other)).then(ends.cmp(others))
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Messages between two clocks, of which the second one shows this.
    fn exchange(
        rng: &mut Rng,
        count: usize,
        shown: impl Fn(i64) -> i64,
        delay: impl Fn(&mut Rng) -> i64,
    ) -> MessageHulls {
        let mut hulls = MessageHulls::default();
        for _ in 0..count {
            let (at, took) = (rng.i64(0..1_000_000_000), delay(rng));
            if rng.bool() {
                hulls.add([3, 7], [at, shown(at + took)]);
            } else {
                hulls.add([7, 3], [shown(at), at + took]);
            }
        }
        hulls
    }

    #[test]
    fn a_line_between_the_hulls_is_within_its_bound() {
        let mut rng = Rng::with_seed(1);
        for _ in 0..200 {
            let (offset, drift) = (rng.i64(-1_000_000..1_000_000_000_000), rng.i64(-90..90));
            let shown = |at: i64| at + offset + at / 1_000_000 * drift;
            let count = rng.usize(40..4_000);
            let mut hulls = exchange(&mut rng, count, shown, |rng| rng.i64(500..20_000));
            let (ends, line) = hulls.lines()[0];
            assert_eq!(ends, [3, 7]);
            let bound = line.bound.unwrap();
            for at in [line.span[0], 500_000_000, line.span[1]] {
                let error = line.second(at) - i128::from(shown(at));
                assert!(error.abs() as f64 <= bound + 100.0, "{error} {bound}");
                let back = line.first(line.second(at) as i64) - i128::from(at);
                assert!(back.abs() <= 1, "{back}");
            }
            assert!(line.margin > 400.0 && bound < 20_000.0, "{line:?}");
        }
    }

    #[test]
    fn hulls_do_not_depend_on_the_order_of_messages() {
        let mut rng = Rng::with_seed(2);
        let shown = |at: i64| at - 5_000 + at / 50_000;
        let mut whole = exchange(&mut rng, 3_000, shown, |rng| rng.i64(1..9_000));
        let lines = whole.lines();
        let PairHulls { above, below } = &whole.pairs[&[3, 7]];
        let above = above.points.iter().map(|point| (true, *point));
        let below = below.points.iter().map(|point| (false, *point));
        let mut points: Vec<_> = above.chain(below).collect();
        rng.shuffle(&mut points);
        let mut again = MessageHulls {
            spans: whole.spans.clone(),
            ..MessageHulls::default()
        };
        let pair = again.pairs.entry([3, 7]).or_default();
        for (is_above, point) in &points {
            match is_above {
                true => pair.above.push(*point),
                false => pair.below.push(*point),
            }
        }
        assert_eq!(again.lines(), lines);
        assert!(points.len() < 100, "{}", points.len());
    }

    #[test]
    fn few_messages_leave_the_slope_open() {
        let mut hulls = MessageHulls::default();
        hulls.add([0, 1], [1_000, 5_900]);
        assert_eq!(hulls.lines(), []);
        hulls.add([1, 0], [7_000, 3_100]);
        let (_, line) = hulls.lines()[0];
        // Both took the same time.
        assert_eq!(
            (line.slope, line.margin, line.second(2_000)),
            (0.0, 501.0, 6_400)
        );
        // A message that arrives too early for any line.
        hulls.add([1, 0], [7_000, 1_900]);
        let (_, line) = hulls.lines()[0];
        assert!(line.bound.is_none() && line.margin < 0.0, "{line:?}");
    }
}
