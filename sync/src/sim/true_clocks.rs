//! Clocks of a simulated cluster after the simulation.

use core::cell::RefCell;

use downbeat_clock_core::{Ticks, Timestamp};

use super::node_clock::{Clocks, NodeClock, VirtualTime};

/// Clocks of the ranks of a cluster without the simulation: each shows the same as its
/// [`SimClock`](super::SimClock) at any true time.
///
/// A rank that the cluster does not have has the clock of its last node.
#[derive(Debug)]
pub struct TrueClocks {
    /// Clocks of the nodes. They remember their walks, so that later readings are cheap.
    nodes: RefCell<Vec<NodeClock>>,
    clocks: Clocks,
    ranks_per_node: u32,
}

impl TrueClocks {
    pub(super) fn new(nodes: Vec<NodeClock>, clocks: Clocks, ranks_per_node: u32) -> Self {
        Self {
            nodes: RefCell::new(nodes),
            clocks,
            ranks_per_node,
        }
    }

    /// Returns the reading of the clock of a rank at a true time.
    pub fn ticks_at(&self, rank: u32, at: Timestamp<VirtualTime>) -> Ticks {
        self.of_rank(rank, |clock| clock.ticks_at(at.as_nanos(), &self.clocks))
    }

    /// Returns the exact drift of the clock of a rank at a true time: `1e-6` gains a microsecond in
    /// a second.
    pub fn drift_at(&self, rank: u32, at: Timestamp<VirtualTime>) -> f64 {
        self.of_rank(rank, |clock| clock.drift_at(at.as_nanos(), &self.clocks))
    }

    fn of_rank<R>(&self, rank: u32, read: impl FnOnce(&mut NodeClock) -> R) -> R {
        let mut nodes = self.nodes.borrow_mut();
        let node = (rank / self.ranks_per_node) as usize;
        let last = nodes.len() - 1;
        read(&mut nodes[node.min(last)])
    }
}
