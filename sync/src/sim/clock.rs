//! The clocks of simulated nodes, which are wrong in a known way.

use core::fmt;
use std::rc::Rc;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Domain, Duration, Local, ModelError, ReadOrdering, TickRate, Ticks,
    Timestamp,
};
use fastrand::Rng;

use super::engine::World;
use super::parameter::{positive, require, require_non_negative};
use super::random::{Purpose, normal, stream};
use crate::ClusterError;

/// True time in a simulated cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualTime;

impl Domain for VirtualTime {
    const NAME: &'static str = "virtual";
}

/// How wrong the clocks of the nodes are. Each node has one, which its ranks share.
#[derive(Clone, Debug, PartialEq)]
pub struct Clocks {
    /// Each clock is ahead or behind by up to this much at the beginning.
    pub offset: Duration,
    /// The fraction of the time that passes by which each clock gains or loses.
    pub drift: Drift,
    /// How drifts change.
    pub wander: Option<DriftWalk>,
    /// What reading takes of a rank's time. The reading is that of the end of it.
    pub read_cost: Duration,
    /// Readings are multiples of this many ticks.
    pub granularity: u64,
}

/// How the drifts of the nodes are distributed: `1e-6` is one part per million.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drift {
    /// Uniformly, up to this much either way.
    Within(f64),
    /// Normally, with this standard deviation.
    Normal(f64),
}

/// A drift that walks at random: constant over each interval, then changed by a normally distributed amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftWalk {
    /// The standard deviation of the change after one second; it grows with the square root of time.
    pub drift_per_sqrt_second: f64,
    /// How often the drift changes.
    pub interval: Duration,
    /// How long the walk goes on; after that the drift stays as it is.
    pub lasting: Duration,
}

impl DriftWalk {
    /// More would take more memory than anybody has.
    const MOST_LEGS: f64 = 1e7;
}

impl Clocks {
    /// All clocks show true time, and to read them takes none.
    pub const fn perfect() -> Self {
        Self {
            offset: Duration::ZERO,
            drift: Drift::Within(0.0),
            wander: None,
            read_cost: Duration::ZERO,
            granularity: 1,
        }
    }

    /// As the clocks of a cluster are whose nodes were started within a second: quartzes of some parts per million, which
    /// wander by a hundredth of that in a second.
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

    /// Looks for a parameter that makes no sense.
    ///
    /// # Errors
    /// With its name.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let name = |part: &str| format!("clocks.{part}");
        require_non_negative(self.offset.as_nanos() as f64, || name("offset"))?;
        require(
            self.offset < Duration::from_secs(1 << 29),
            || name("offset"),
            "less than 17 years",
        )?;
        let (Drift::Within(drift) | Drift::Normal(drift)) = self.drift;
        require_non_negative(drift, || name("drift"))?;
        require(drift < 0.1, || name("drift"), "less than a tenth")?;
        require_non_negative(self.read_cost.as_nanos() as f64, || name("read_cost"))?;
        positive(self.granularity as f64, || name("granularity"))?;
        let Some(wander) = self.wander else {
            return Ok(());
        };
        require_non_negative(wander.drift_per_sqrt_second, || {
            name("wander.drift_per_sqrt_second")
        })?;
        positive(wander.interval.as_nanos() as f64, || {
            name("wander.interval")
        })?;
        require_non_negative(wander.lasting.as_nanos() as f64, || name("wander.lasting"))?;
        let legs = wander.lasting.as_nanos() as f64 / wander.interval.as_nanos() as f64;
        require(
            legs <= DriftWalk::MOST_LEGS,
            || name("wander.lasting"),
            "at most 10 million intervals",
        )
    }
}

/// The clock of one node: it can be asked for any time, in any order, and answers the same.
#[derive(Debug)]
pub struct NodeClock {
    offset: i64,
    /// The drift at the beginning, and all there is without a wander.
    drift: f64,
    legs: Vec<Leg>,
    /// Where the next leg comes from.
    random: Rng,
}

/// An interval of constant drift.
#[derive(Clone, Copy, Debug)]
struct Leg {
    /// The deviation at the beginning, in nanoseconds.
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
            // No quartz runs backwards.
            Drift::Normal(deviation) => (deviation * normal(&mut random)).max(-0.5),
        };
        Self {
            offset,
            drift,
            legs: Vec::new(),
            random,
        }
    }

    /// What the clock shows at a true time.
    pub fn ticks_at(&mut self, at: i64, clocks: &Clocks) -> Ticks {
        let smooth = match &clocks.wander {
            Some(wander) if at > 0 => self.wandered(at as f64, wander),
            _ => self.drift * at as f64,
        };
        // To the nearest; `round` is a call on a processor of the oldest kind, for which we compile.
        let smooth = (smooth + 0.5_f64.copysign(smooth)) as i64;
        let ticks = SimClock::ZERO
            .0
            .saturating_add_signed(at.saturating_add(self.offset).saturating_add(smooth));
        // A division for nothing would be a quarter of what a reading costs.
        Ticks(if clocks.granularity == 1 {
            ticks
        } else {
            ticks - ticks % clocks.granularity
        })
    }

    /// What drift has made of the time from the beginning to `at`.
    fn wandered(&mut self, at: f64, wander: &DriftWalk) -> f64 {
        let interval = wander.interval.as_nanos() as f64;
        let mut index = (at / interval) as usize;
        if index >= self.legs.len() {
            index = self.walk_on(index, wander);
        }
        let leg = self.legs[index];
        leg.deviation + leg.drift * (at - index as f64 * interval)
    }

    /// Walks as far as that leg, or to the last one, and returns which of them.
    #[cold]
    fn walk_on(&mut self, wanted: usize, wander: &DriftWalk) -> usize {
        let interval = wander.interval.as_nanos() as f64;
        let last = (wander.lasting.as_nanos() as f64 / interval) as usize;
        let change = wander.drift_per_sqrt_second * (interval / 1e9).sqrt();
        while self.legs.len() <= wanted.min(last) {
            let leg = self.legs.last().map_or(
                Leg {
                    deviation: 0.0,
                    drift: self.drift,
                },
                |leg| Leg {
                    deviation: leg.deviation + leg.drift * interval,
                    drift: (leg.drift + change * normal(&mut self.random)).max(-0.5),
                },
            );
            self.legs.push(leg);
        }
        wanted.min(last)
    }
}

/// The clock that a simulated rank reads: that of its node. Ranks of one node read the same.
///
/// Every reading takes the rank the time that [`Clocks::read_cost`] says; [`ticks_at`](Self::ticks_at) is the truth about
/// it and takes none. It can be kept and asked after the simulation.
#[derive(Clone)]
pub struct SimClock {
    pub(super) world: Rc<World>,
    pub(super) rank: u32,
}

impl fmt::Debug for SimClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the clock of the simulated rank {}", self.rank)
    }
}

impl SimClock {
    /// What a perfect clock shows at the beginning; so a clock that is behind has no negative ticks.
    pub const ZERO: Ticks = Ticks(1 << 60);

    /// How long a tick lasts by this clock.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// What this clock shows at a true time, also in the past and in the future.
    pub fn ticks_at(&self, at: Timestamp<VirtualTime>) -> Ticks {
        self.world
            .engine
            .borrow_mut()
            .ticks_at(self.rank, at.as_nanos())
    }

    /// The time that a rank with this clock believes in: its ticks taken at their word.
    ///
    /// # Errors
    /// None in fact: the constants of this type are in range.
    pub fn nominal_model() -> Result<ClockModel<Counter, Local>, ModelError> {
        ClockModel::through(Self::ZERO, Timestamp::ORIGIN, Self::RATE)
    }
}

impl Clock for SimClock {
    fn ticks(&self) -> Ticks {
        self.world.engine.borrow_mut().read_clock(self.rank)
    }

    /// A simulated rank does one thing after the other.
    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Fenced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(clock: &mut NodeClock, clocks: &Clocks, at: i64) -> i64 {
        clock.ticks_at(at, clocks).0 as i64 - SimClock::ZERO.0 as i64
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
    fn a_walk_is_continuous_and_the_same_in_whatever_order_it_is_asked() {
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
        let zero = SimClock::ZERO.0;
        for at in [0, 5, 99, 100, 12_345] {
            let wanted = zero + at as u64;
            assert_eq!(clock.ticks_at(at, &clocks).0, wanted - wanted % 100);
        }
    }
}
