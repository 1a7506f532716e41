//! Measurement for tests.

use downbeat_clock_core::Duration;
use downbeat_measure::Measurement;
use downbeat_measure::processing::Figure;
use downbeat_measure::stopping::StopReason;
use downbeat_records::{CallTimes, Observations};

/// Creates a measurement without observations, whose median is this.
pub(super) fn measurement(nanos: f64) -> Measurement {
    let figure = Figure {
        name: "median",
        nanos,
    };
    let none = CallTimes::Means(vec![]);
    Measurement {
        observations: Observations::new(1, vec![], none).expect("no times have no states"),
        figures: vec![figure],
        effective: Ok(0.0),
        no_interval: None,
        made: 0,
        details: vec![],
        facts: vec![],
        exits: None,
        clock_checks: None,
        stop_reason: StopReason::Count,
        elapsed: Duration::ZERO,
    }
}
