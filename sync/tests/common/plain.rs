//! A simulated network on which every time can be told by adding.

use downbeat_clock_core::Duration;
use downbeat_sync::{Network, NetworkLink};

/// Nothing takes time but the way between two nodes, a microsecond.
pub(crate) fn plain() -> Network {
    let free = NetworkLink::steady(Duration::ZERO);
    let switch = NetworkLink::steady(Duration::from_micros(1));
    let none = Duration::ZERO;
    let node = free.clone();
    Network {
        socket: free,
        node,
        switch,
        send_overhead: none,
        receive_overhead: none,
        header: 0,
        card: None,
    }
}
