//! Clocks of simulated nodes, whose errors are known.

use downbeat_clock_core::{Domain, Duration, Ticks};
use fastrand::Rng;

use super::parameter::Parameters;
use super::random::{Purpose, normal, stream};
use crate::ClusterError;

/// True time in a simulated cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualTime;

impl Domain for VirtualTime {
    const NAME: &'static str = "virtual";
}

/// Errors of the clocks of the nodes. Each node has one clock, which its ranks share.
#[derive(Clone, Debug, PartialEq)]
pub struct Clocks {
    /// Maximum offset of a clock at the beginning, in either direction.
    pub offset: Duration,
    /// Relative rate error of each clock.
    pub drift: Drift,
    /// Change of the drifts over time.
    pub wander: Option<DriftWalk>,
    /// Time that a reading takes of a rank. The reading is that of the end of this time.
    pub read_cost: Duration,
    /// Resolution of readings in ticks.
    pub granularity: u64,
}

/// Distribution of the drifts of the nodes: `1e-6` is one part per million.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Drift {
    /// Uniform, up to this magnitude.
    Within(f64),
    /// Normal, with this standard deviation.
    Normal(f64),
}

/// Random walk of a drift: constant over each interval, then changed by a normally distributed
/// amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftWalk {
    /// Standard deviation of the change after one second; it grows with the square root of time.
    pub drift_per_sqrt_second: f64,
    /// Time between changes of the drift.
    pub interval: Duration,
    /// Duration of the walk, after which the drift is constant.
    pub lasting: Duration,
}

/// Reading of a perfect clock at the beginning; large enough that a clock that is behind has no negative ticks.
pub(super) const CLOCK_ZERO: Ticks = Ticks(1 << 60);

impl DriftWalk {
    /// Maximum number of intervals; more would take too much memory.
    const MAX_SEGMENTS: f64 = 1e7;
}

impl Clocks {
    /// Returns clocks that show true time, and take no time to read.
    pub const fn perfect() -> Self {
        Self {
            offset: Duration::ZERO,
            drift: Drift::Within(0.0),
            wander: None,
            read_cost: Duration::ZERO,
            granularity: 1,
        }
    }

    /// Returns typical clocks of a cluster whose nodes were started within a second: quartzes with
    /// rate errors of some parts per million, which wander by a hundredth of that in a second.
    pub const fn typical() -> Self {
        Self {
            offset: Duration::from_millis(500),
            drift: Drift::Normal(5e-6),
            wander: Some(DriftWalk {
                drift_per_sqrt_second: 1e-8,
                interval: Duration::from_millis(100),
                lasting: Duration::from_secs(100),
            }),
            read_cost: Duration::from_nanos(20),
            granularity: 1,
        }
    }

    /// Checks that all parameters are in range.
    ///
    /// # Errors
    /// [`ClusterError::Parameter`] with the name of the parameter.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let own = Parameters("clocks.");
        own.no_negative_span("offset", self.offset)?;
        let is_near = self.offset < Duration::from_secs(1 << 29);
        own.require(is_near, "offset", "less than 17 years")?;
        let (Drift::Within(drift) | Drift::Normal(drift)) = self.drift;
        own.not_negative("drift", drift)?;
        own.require(drift < 0.1, "drift", "less than a tenth")?;
        own.no_negative_span("read_cost", self.read_cost)?;
        own.positive("granularity", self.granularity as f64)?;
        let Some(wander) = self.wander else {
            return Ok(());
        };
        let DriftWalk {
            drift_per_sqrt_second,
            interval,
            lasting,
        } = wander;
        own.not_negative("wander.drift_per_sqrt_second", drift_per_sqrt_second)?;
        own.positive("wander.interval", interval.as_nanos() as f64)?;
        own.no_negative_span("wander.lasting", lasting)?;
        let is_short = lasting / interval <= DriftWalk::MAX_SEGMENTS;
        own.require(is_short, "wander.lasting", "at most 10 million intervals")
    }
}

/// Clock of one node: can be read at any time, in any order, with the same results.
#[derive(Debug)]
pub struct NodeClock {
    offset: i64,
    /// Drift at the beginning; constant without a walk.
    pub(super) drift: f64,
    segments: Vec<DriftSegment>,
    /// Generator of the next segments.
    random: Rng,
}

/// Interval of constant drift.
#[derive(Clone, Copy, Debug)]
struct DriftSegment {
    /// Deviation at the beginning of the interval, in nanoseconds.
    deviation: f64,
    drift: f64,
}

impl NodeClock {
    /// Draws the offset and drift of a node.
    pub fn new(clocks: &Clocks, seed: u64, node: u32) -> Self {
        let mut random = stream(seed, Purpose::NodeClock, node.into());
        let offset = (clocks.offset.as_nanos() as f64 * (2.0 * random.f64() - 1.0)).round() as i64;
        let drift = match clocks.drift {
            Drift::Within(most) => most * (2.0 * random.f64() - 1.0),
            // Limits the drift, since no quartz runs backwards.
            Drift::Normal(deviation) => (deviation * normal(&mut random)).max(-0.5),
        };
        Self {
            offset,
            drift,
            segments: Vec::new(),
            random,
        }
    }

    /// Returns the reading of the clock at a true time.
    pub fn ticks_at(&mut self, at: i64, clocks: &Clocks) -> Ticks {
        let smooth = match &clocks.wander {
            Some(wander) if at > 0 => self.drift_until(at as f64, wander),
            _ => self.drift * at as f64,
        };
        // Rounds to the nearest; `round` is a function call on the baseline processor that we
        // compile for.
        let smooth = (smooth + 0.5_f64.copysign(smooth)) as i64;
        let ticks = CLOCK_ZERO
            .0
            .saturating_add_signed(at.saturating_add(self.offset).saturating_add(smooth));
        // An unnecessary division would be a quarter of the cost of a reading.
        Ticks(if clocks.granularity == 1 {
            ticks
        } else {
            ticks - ticks % clocks.granularity
        })
    }

    /// Returns the drift of the clock at a true time.
    pub(super) fn drift_at(&mut self, at: i64, clocks: &Clocks) -> f64 {
        match &clocks.wander {
            Some(wander) if at > 0 => self.segment_at(at as f64, wander).0.drift,
            _ => self.drift,
        }
    }

    /// Deviation that the drift has caused from the beginning to `at`.
    fn drift_until(&mut self, at: f64, wander: &DriftWalk) -> f64 {
        let (segment, since) = self.segment_at(at, wander);
        segment.deviation + segment.drift * since
    }

    /// Returns the segment of the walk at a true time, and the time since its beginning.
    fn segment_at(&mut self, at: f64, wander: &DriftWalk) -> (DriftSegment, f64) {
        let interval = wander.interval.as_nanos() as f64;
        let mut index = (at / interval) as usize;
        if index >= self.segments.len() {
            index = self.extend_walk(index, wander);
        }
        (self.segments[index], at - index as f64 * interval)
    }

    /// Extends the walk to that segment, or to the last one, and returns the index of the segment.
    #[cold]
    fn extend_walk(&mut self, wanted: usize, wander: &DriftWalk) -> usize {
        let interval = wander.interval.as_nanos() as f64;
        let last = (wander.lasting.as_nanos() as f64 / interval) as usize;
        let change = wander.drift_per_sqrt_second * (interval / 1e9).sqrt();
        while self.segments.len() <= wanted.min(last) {
            let segment = self.segments.last().map_or(
                DriftSegment {
                    deviation: 0.0,
                    drift: self.drift,
                },
                |segment| DriftSegment {
                    deviation: segment.deviation + segment.drift * interval,
                    drift: (segment.drift + change * normal(&mut self.random)).max(-0.5),
                },
            );
            self.segments.push(segment);
        }
        wanted.min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(clock: &mut NodeClock, clocks: &Clocks, at: i64) -> i64 {
        clock.ticks_at(at, clocks).0 as i64 - CLOCK_ZERO.0 as i64
    }

    #[test]
    fn a_clock_is_ahead_and_drifts_within_the_bounds() {
        let clocks = Clocks {
            offset: Duration::from_nanos(1_000),
            drift: Drift::Within(1e-6),
            ..Clocks::perfect()
        };
        let shown: Vec<_> = (0..1_000)
            .map(|node| {
                let mut clock = NodeClock::new(&clocks, 1, node);
                let offset = ticks(&mut clock, &clocks, 0);
                (
                    offset,
                    ticks(&mut clock, &clocks, 1_000_000_000) - 1_000_000_000 - offset,
                )
            })
            .collect();
        for part in [
            shown.iter().map(|shown| shown.0).collect::<Vec<_>>(),
            shown.iter().map(|shown| shown.1).collect(),
        ] {
            assert!(part.iter().all(|nanos| nanos.abs() <= 1_000), "{part:?}");
            assert!(
                part.iter().any(|nanos| *nanos > 900) && part.iter().any(|nanos| *nanos < -900),
                "{part:?}"
            );
        }
    }

    #[test]
    fn a_walk_is_continuous_and_independent_of_the_order_of_readings() {
        let wander = DriftWalk {
            drift_per_sqrt_second: 1e-6,
            interval: Duration::from_millis(10),
            lasting: Duration::from_secs(1),
        };
        let clocks = Clocks {
            wander: Some(wander),
            ..Clocks::perfect()
        };
        let mut forwards = NodeClock::new(&clocks, 1, 0);
        let mut backwards = NodeClock::new(&clocks, 1, 0);
        let times: Vec<i64> = (0..200).map(|i| i * 7_654_321).collect();
        let mut back: Vec<_> = times
            .iter()
            .rev()
            .map(|at| ticks(&mut backwards, &clocks, *at))
            .collect();
        back.reverse();
        assert_eq!(
            times
                .iter()
                .map(|at| ticks(&mut forwards, &clocks, *at))
                .collect::<Vec<_>>(),
            back
        );
        for i in 1..=101 {
            let knot = i * 10_000_000;
            let step =
                ticks(&mut forwards, &clocks, knot) - ticks(&mut forwards, &clocks, knot - 1);
            assert!((0..=2).contains(&step), "{step} at {knot}");
        }
        assert!(ticks(&mut forwards, &clocks, 1_000_000_000) != 1_000_000_000);
    }

    #[test]
    fn coarse_readings_are_rounded_down() {
        let clocks = Clocks {
            granularity: 100,
            ..Clocks::perfect()
        };
        let mut clock = NodeClock::new(&clocks, 1, 0);
        let zero = CLOCK_ZERO.0;
        for at in [0, 5, 99, 100, 12_345] {
            let wanted = zero + at as u64;
            assert_eq!(clock.ticks_at(at, &clocks).0, wanted - wanted % 100);
        }
    }
}
