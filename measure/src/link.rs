//! Links between neighbouring ranks, whose latency shows the state of the machine.

use core::sync::atomic::AtomicU64;

/// Link between two neighbouring ranks.
#[derive(Clone, Copy, Debug)]
pub enum Link<'a> {
    /// Memory that they share, on a cache line of its own.
    Memory(&'a AtomicU64),
    /// Messages within a node.
    Node,
    /// Messages between nodes.
    Network,
}

/// A number on cache lines of its own: two, as processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct LinkCell(pub(crate) AtomicU64);
