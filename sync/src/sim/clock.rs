//! The clock of a simulated rank.

use core::fmt;
use std::rc::Rc;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Local, ModelError, ReadOrdering, TickRate, Ticks, Timestamp,
};

use super::group::SimWorld;
use super::node_clock::{CLOCK_ZERO, VirtualTime};

/// Clock of a simulated rank, which is that of its node: ranks of one node read the same.
///
/// Every reading takes the time [`Clocks::read_cost`] of the rank; [`ticks_at`](Self::ticks_at) is
/// the exact reading at any true time, and takes none. The clock can be kept and used after the
/// simulation.
///
/// [`Clocks::read_cost`]: super::Clocks::read_cost
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
    /// Reading of a perfect clock at the beginning; large enough that a clock that is behind has no
    /// negative ticks.
    pub const ZERO: Ticks = CLOCK_ZERO;

    /// Nominal rate of this clock.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Returns the reading of this clock at a true time, in the past or in the future.
    pub fn ticks_at(&self, at: Timestamp<VirtualTime>) -> Ticks {
        self.world
            .engine
            .borrow_mut()
            .ticks_at(self.rank, at.as_nanos())
    }

    /// Returns the exact drift of this clock at a true time: `1e-6` gains a microsecond in a second.
    pub fn drift_at(&self, at: Timestamp<VirtualTime>) -> f64 {
        self.world
            .engine
            .borrow_mut()
            .drift_at(self.rank, at.as_nanos())
    }

    /// Returns the model by which a rank converts the ticks of this clock to its local time.
    ///
    /// # Errors
    /// Never: the constants of this type are in range.
    pub fn nominal_model() -> Result<ClockModel<Counter, Local>, ModelError> {
        ClockModel::through(Self::ZERO, Timestamp::ORIGIN, Self::RATE)
    }
}

impl Clock for SimClock {
    fn ticks(&self) -> Ticks {
        self.world.engine.borrow_mut().read_clock(self.rank)
    }

    /// A simulated rank executes one operation after the other.
    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Fenced
    }

    fn grain(&self) -> u64 {
        self.world.engine.borrow().clock_step()
    }
}
