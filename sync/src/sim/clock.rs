//! The clock of a simulated rank.

use core::fmt;
use std::rc::Rc;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Local, ModelError, ReadOrdering, TickRate, Ticks, Timestamp,
};

use super::engine::SimWorld;
use super::node_clock::{CLOCK_ZERO, VirtualTime};

/// The clock that a simulated rank reads: that of its node. Ranks of one node read the same.
///
/// Every reading takes the rank the time that [`Clocks::read_cost`] says; [`ticks_at`](Self::ticks_at) is the truth about
/// it and takes none. It can be kept and asked after the simulation.
#[derive(Clone)]
pub struct SimClock {
    pub(super) world: Rc<SimWorld>,
    pub(super) rank: u32,
}

impl fmt::Debug for SimClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the clock of the simulated rank {}", self.rank)
    }
}

impl SimClock {
    /// What a perfect clock shows at the beginning; so a clock that is behind has no negative ticks.
    pub const ZERO: Ticks = CLOCK_ZERO;

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
