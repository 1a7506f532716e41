//! Probes of the state of the machine.

/// Name of the factor of launches whose observations have probes.
pub const PROBES: &str = "probes";

/// Round trips between neighbouring ranks, measured between two observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Index of the next observation.
    pub before: usize,
    /// Results of the probe.
    pub round_trips: RoundTrips,
}

/// Round trips of the slowest pairs of neighbouring ranks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// Within a node; `None` if no two neighbours are on one.
    pub within: Option<f64>,
    /// Between nodes; `None` if no two neighbours are on different ones.
    pub between: Option<f64>,
}

impl RoundTrips {
    /// Names of the two in records.
    pub(crate) const NAMES: [&str; 2] = ["within", "between"];

    /// Returns both, in the order of their names.
    pub(crate) fn each(self) -> [Option<f64>; 2] {
        [self.within, self.between]
    }
}
