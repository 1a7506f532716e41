//! Edge of the cube: chains of messages between two ranks.
//!
//! Each answer is the next question, so that no side is idle, and both have the same stamps in the end. The higher rank's clock is *ahead*
//! by `theta` of the lower one's time; a message upwards arrives at least as late as it was sent, which limits `theta` from above, and one
//! downwards from below.

use downbeat_clock_core::{
    Clock, ClockModel, Counter, FitError, Global, TickRate, Ticks, Timestamp,
};

use super::edge_line::{ClockLimits, EdgeLine, EdgePoint, LineSums, line, residuals};
use crate::stated_error::BatchMeans;
use crate::{Comm, CommError};

/// Share of the differences of a turn that is averaged: the lowest, of messages that nothing delayed.
const SHARE: f64 = 0.05;

/// Most differences for which memory is taken before they are measured: no program waits for as many as a label may ask for.
const MOST_RESERVED: usize = 1_000;

/// Clock in nanoseconds with fractions: whole nanoseconds would limit the slope.
pub(crate) struct FineClock<'a, K> {
    clock: &'a K,
    pub(crate) epoch: Ticks,
    /// Time that it shows at its epoch.
    pub(crate) at_epoch: f64,
    nanos_per_tick: f64,
}

impl<'a, K: Clock> FineClock<'a, K> {
    /// Creates a clock that shows 0 now.
    pub(crate) fn new(clock: &'a K, rate: TickRate) -> Self {
        Self {
            clock,
            epoch: clock.ticks(),
            at_epoch: 0.0,
            nanos_per_tick: rate.nanos_per_tick(),
        }
    }

    /// Creates a clock that shows the time of a model since an origin.
    pub(crate) fn of_model(
        clock: &'a K,
        model: &ClockModel<Counter, Global>,
        origin: Timestamp<Global>,
    ) -> Self {
        let clock = Self::new(clock, model.rate());
        Self {
            at_epoch: (model.apply(clock.epoch) - origin).as_nanos() as f64,
            ..clock
        }
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> f64 {
        let since = self.clock.ticks().signed_since(self.epoch);
        self.at_epoch + since as f64 * self.nanos_per_tick
    }
}

/// Edge to another rank, with what was measured in each turn.
#[derive(Debug)]
pub(crate) struct CubeEdge {
    pub(crate) peer: u32,
    /// Bit in which the numbers of both ranks differ.
    pub(crate) dimension: u32,
    is_low: bool,
    points: Vec<EdgePoint>,
    sums: LineSums,
    /// Mean duration of an exchange in the quickest turn, in nanoseconds; infinite before
    /// the first.
    pub(crate) quickest_exchange: f64,
}

impl CubeEdge {
    pub(crate) fn new(rank: u32, dimension: u32) -> Self {
        let peer = rank ^ 1 << dimension;
        Self {
            peer,
            dimension,
            is_low: rank < peer,
            points: Vec::new(),
            sums: LineSums::default(),
            quickest_exchange: f64::INFINITY,
        }
    }

    /// Plays a turn: exchanges messages with the other rank. Returns the limits that they set.
    pub(crate) async fn play<K: Clock, M: Comm>(
        &mut self,
        clock: &FineClock<'_, K>,
        comm: &M,
        turn: u32,
        exchanges: u32,
    ) -> Result<TurnLimits, CommError> {
        let (peer, is_low) = (self.peer, self.is_low);
        // A fixed beginner would leave the bias of its path through the software.
        let begins = is_low == (turn.wrapping_add(self.dimension) % 2 == 0);
        let mut turn = EdgeTurn::new(is_low, exchanges, self.sums.slope());
        let mut sent = None;
        if begins {
            let now = clock.now();
            comm.send(peer, now).await?;
            sent = Some(now);
        }
        for _ in 0..exchanges {
            let theirs: f64 = comm.recv(peer).await?;
            let now = clock.now();
            // The other rank waits: the arithmetic comes after the answer.
            comm.send(peer, now).await?;
            if let Some(sent) = sent {
                turn.add(true, sent, theirs);
            }
            turn.add(false, theirs, now);
            sent = Some(now);
        }
        if let (Some(sent), false) = (sent, begins) {
            let theirs: f64 = comm.recv(peer).await?;
            turn.add(true, sent, theirs);
        }
        // The first message waits for the other rank, so that the shortest turn tells most.
        let took = (turn.limits.last - turn.limits.first) / f64::from(exchanges);
        self.quickest_exchange = self.quickest_exchange.min(took);
        if let Some(point) = turn.point() {
            self.sums.push(point.at, point.ahead);
            self.points.push(point);
        }
        Ok(turn.limits)
    }

    /// Returns the mean over all turns by how much the clock of the higher rank is ahead.
    pub(crate) fn ahead(&self) -> f64 {
        self.sums.ahead()
    }

    /// Fits a line to all turns, given the limits of the clocks of this rank and the other one; returns it with a fault of the clocks
    /// that the measurements show.
    fn line(&self, own: ClockLimits, theirs: ClockLimits) -> (EdgeLine, Option<FitError>) {
        line(&self.points, self.low_first(own, theirs))
    }

    /// Returns what each turn deviates from the line by, with its weight: positive where
    /// the clock of this rank is further ahead of the other one than the line says.
    fn residuals(&self, line: &EdgeLine) -> impl Iterator<Item = (f64, f64)> {
        let sign = if self.is_low { -1.0 } else { 1.0 };
        residuals(&self.points, line).map(move |(residual, weight)| (sign * residual, weight))
    }

    /// Returns a value of this rank and one of the other, that of the lower rank first.
    pub(super) fn low_first<T>(&self, own: T, theirs: T) -> [T; 2] {
        match self.is_low {
            true => [own, theirs],
            false => [theirs, own],
        }
    }
}

/// Fits a line to the turns of each edge, given the limits of the clocks of this rank and of its
/// neighbours. Also returns the first fault of the clocks that this rank has to report, with the
/// place of its edge: both ranks of an edge find the same faults, and the higher one reports them.
pub(crate) fn fit_lines(
    edges: &[CubeEdge],
    own: ClockLimits,
    limits: &[ClockLimits],
) -> (Vec<EdgeLine>, Option<(usize, FitError)>) {
    let mut first_fault = None;
    let mut lines = Vec::with_capacity(edges.len());
    for (index, (edge, theirs)) in edges.iter().zip(limits).enumerate() {
        let (line, fault) = edge.line(own, *theirs);
        if let (Some(fault), false) = (fault, edge.is_low) {
            first_fault.get_or_insert((index, fault));
        }
        lines.push(line);
    }
    (lines, first_fault)
}

/// Returns the scatter of the clock of this rank at the end of the turns: by the means
/// over its edges, in which the noise of an edge counts less than what its clock wanders.
/// `None` for few turns.
pub(crate) fn scatter_at_end(edges: &[CubeEdge], lines: &[EdgeLine]) -> Option<f64> {
    let turns = edges.iter().map(|edge| edge.points.len()).min()?;
    let mut sums = vec![(0.0, 0.0); turns];
    for (edge, line) in edges.iter().zip(lines) {
        for ((sum, weights), (residual, weight)) in sums.iter_mut().zip(edge.residuals(line)) {
            *sum += weight * residual;
            *weights += weight;
        }
    }
    let mut means = BatchMeans::default();
    for (turn, (sum, weight)) in sums.into_iter().enumerate() {
        means.push(turn, turns, turn as f64, sum / weight, weight);
    }
    means.error_at_end(|_| 0.0)
}

/// Limits of `theta` that the messages of a turn set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TurnLimits {
    /// Greatest lower and least upper limit.
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    /// Times of the lower rank at the first and the last message.
    pub(crate) first: f64,
    pub(crate) last: f64,
}

/// One turn on an edge.
struct EdgeTurn {
    is_low: bool,
    /// Slope of `theta` by earlier turns, to compare values at different times.
    slope: f64,
    upwards: LowestDifferences,
    downwards: LowestDifferences,
    limits: TurnLimits,
}

impl EdgeTurn {
    fn new(is_low: bool, exchanges: u32, slope: f64) -> Self {
        let keep = (f64::from(exchanges) * SHARE).round().max(1.0) as usize;
        Self {
            is_low,
            slope,
            upwards: LowestDifferences::new(keep),
            downwards: LowestDifferences::new(keep),
            limits: TurnLimits {
                lower: f64::NEG_INFINITY,
                upper: f64::INFINITY,
                first: f64::INFINITY,
                last: f64::NEG_INFINITY,
            },
        }
    }

    /// Adds a message of this rank or of the other one.
    #[inline(always)]
    fn add(&mut self, is_mine: bool, sent: f64, received: f64) {
        if self.is_low == is_mine {
            self.upward(sent, received);
        } else {
            self.downward(sent, received);
        }
    }

    #[inline(always)]
    fn upward(&mut self, low: f64, high: f64) {
        let theta = high - low;
        self.limits.upper = self.limits.upper.min(theta);
        self.upwards.push(theta - self.slope * low, low);
        self.at(low);
    }

    #[inline(always)]
    fn downward(&mut self, high: f64, low: f64) {
        let theta = high - low;
        self.limits.lower = self.limits.lower.max(theta);
        self.downwards.push(self.slope * low - theta, low);
        self.at(low);
    }

    #[inline(always)]
    fn at(&mut self, low: f64) {
        let TurnLimits { first, last, .. } = &mut self.limits;
        *first = first.min(low);
        *last = last.max(low);
    }

    /// Returns half the difference of both directions, at the mean of their times.
    fn point(&self) -> Option<EdgePoint> {
        let ((up, up_at), (down, down_at)) = (self.upwards.mean()?, self.downwards.mean()?);
        let at = f64::midpoint(up_at, down_at);
        let limits = self.limits;
        Some(EdgePoint {
            at,
            ahead: f64::midpoint(up, -down) + self.slope * at,
            width: limits.upper - limits.lower,
            took: limits.last - limits.first,
            slope: self.slope,
        })
    }
}

/// The lowest of many differences, with the times at which they were measured.
struct LowestDifferences {
    keep: usize,
    found: Vec<(f64, f64)>,
}

impl LowestDifferences {
    fn new(keep: usize) -> Self {
        Self {
            keep,
            found: Vec::with_capacity(keep.min(MOST_RESERVED) + 1),
        }
    }

    #[inline(always)]
    fn push(&mut self, difference: f64, at: f64) {
        if self.found.len() == self.keep {
            if self
                .found
                .last()
                .is_some_and(|(most, _)| difference >= *most)
            {
                return;
            }
            self.found.pop();
        }
        let place = self
            .found
            .partition_point(|(known, _)| *known <= difference);
        self.found.insert(place, (difference, at));
    }

    /// Returns the means of the differences and of their times.
    fn mean(&self) -> Option<(f64, f64)> {
        let count = self.found.len() as f64;
        let add = |(sum, times): (f64, f64), (difference, at): &(f64, f64)| {
            (sum + difference, times + at)
        };
        let (sum, times) = self.found.iter().fold((0.0, 0.0), add);
        (count > 0.0).then(|| (sum / count, times / count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_exchanges_begins_with_little_memory() {
        let turn = EdgeTurn::new(true, u32::MAX, 0.0);
        assert!(turn.upwards.found.capacity() <= 2 * MOST_RESERVED);
    }

    #[test]
    fn the_lowest_differences_are_averaged() {
        let mut lowest = LowestDifferences::new(2);
        assert_eq!(lowest.mean(), None);
        for (at, difference) in [5.0, 3.0, 9.0, 1.0].into_iter().enumerate() {
            lowest.push(difference, at as f64);
        }
        assert_eq!(lowest.mean(), Some((2.0, 2.0)));
    }

    /// Both ranks must have the same point, bit for bit, or their equations contradict each other.
    #[test]
    fn both_ranks_have_the_same_point() {
        let delays = [310.25, 305.5, 999.0, 301.125, 302.0, 40_000.0];
        for low_begins in [true, false] {
            let [mut low, mut high] = [true, false].map(|is_low| EdgeTurn::new(is_low, 3, 1e-6));
            // Stamps of the chain by the clocks of both ranks in turns.
            let (mut time, mut stamps) = (1_000.0, Vec::new());
            for (message, delay) in delays.into_iter().enumerate() {
                let of_low = message.is_multiple_of(2) == low_begins;
                stamps.push(if of_low {
                    time
                } else {
                    1.000_001 * time + 77.0
                });
                time += delay;
            }
            for (message, pair) in stamps.windows(2).enumerate() {
                let upward = message.is_multiple_of(2) == low_begins;
                let [sent, received] = [pair[0], pair[1]];
                low.add(upward, sent, received);
                high.add(!upward, sent, received);
            }
            assert_eq!(low.point(), high.point());
            assert!(low.point().unwrap().width >= 0.0);
        }
    }
}
