//! Clocks of a simulated cluster after the simulation.

use core::cell::RefCell;

use downbeat_clock_core::{Ticks, Timestamp};

use super::node_clock::{Clocks, NodeClock, VirtualTime};

/// Clock of a simulated rank without the simulation: shows the same as its
/// [`SimClock`](super::SimClock) at any true time.
#[derive(Debug)]
pub struct TrueClock {
    clock: RefCell<NodeClock>,
    clocks: Clocks,
}

impl TrueClock {
    pub(super) fn new(clocks: &Clocks, seed: u64, node: u32) -> Self {
        Self {
            clock: RefCell::new(NodeClock::new(clocks, seed, node)),
            clocks: clocks.clone(),
        }
    }

    /// Returns the reading of this clock at a true time.
    pub fn ticks_at(&self, at: Timestamp<VirtualTime>) -> Ticks {
        let mut clock = self.clock.borrow_mut();
        clock.ticks_at(at.as_nanos(), &self.clocks)
    }

    /// Returns the exact drift of this clock at a true time: `1e-6` gains a microsecond in a second.
    pub fn drift_at(&self, at: Timestamp<VirtualTime>) -> f64 {
        let mut clock = self.clock.borrow_mut();
        clock.drift_at(at.as_nanos(), &self.clocks)
    }
}
