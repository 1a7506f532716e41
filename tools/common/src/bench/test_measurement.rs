//! Measurement for tests.

use downbeat_clock_core::Duration;
use downbeat_measure::Measurement;
use downbeat_measure::processing::Figure;
use downbeat_measure::stopping::StopReason;
use downbeat_records::Observations;

/// Creates a measurement without observations, whose median is this.
pub(super) fn measurement(nanos: f64) -> Measurement {
    let figure = Figure {
        name: "median",
        nanos,
    };
    Measurement {
        observations: Observations::default(),
        figures: vec![figure],
        effective: Ok(0.0),
        no_interval: None,
        made: 0,
        details: vec![],
        facts: vec![],
        clock_checks: None,
        stop_reason: StopReason::Count,
        elapsed: Duration::ZERO,
    }
}
