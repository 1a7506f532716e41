//! Simulated network on which all times are simple sums.

use downbeat_clock_core::Duration;
use downbeat_sync::sim::{Network, NetworkLink};

/// Only the link between two nodes takes time: a microsecond.
pub(crate) fn plain() -> Network {
    let free = NetworkLink::steady(Duration::ZERO);
    let switch = NetworkLink::steady(Duration::from_micros(1));
    let none = Duration::ZERO;
    let node = free.clone();
    Network {
        socket: free,
        node,
        switch,
        racks: None,
        send_overhead: none,
        receive_overhead: none,
        header: 0,
        card: None,
    }
}
