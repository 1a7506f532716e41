//! Error and fidelity of the controlled logical clock over its control factor, for six
//! programs whose true times are known: `cargo run --release -p downbeat-trace --example
//! control_factor`.

#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;

use downbeat_clock_core::Duration;
use downbeat_trace::check::Verdict;
use downbeat_trace::deviation::{Deviation, IntervalChanges};
use downbeat_trace::generate::{SyntheticProgram, SyntheticTraffic};
use downbeat_trace::logical::ControlVariable;
use downbeat_trace::presync::PreSynchronization;
use downbeat_trace::{ControlledLogicalClock, Matching};

/// Losses of speed, 1 less the factor.
const LOSSES: [f64; 11] = [
    1e-2, 1e-3, 1e-4, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 1e-8, 1e-9, 0.0,
];

fn programs() -> [(&'static str, SyntheticProgram); 6] {
    let any = |nodes, events| SyntheticProgram {
        violated: 1.0,
        ..SyntheticProgram::new(nodes, events)
    };
    let minutes = |minutes: i64| Duration::from_secs(60 * minutes);
    [
        ("4 nodes, 20 min", any(4, 10_000)),
        ("32 nodes, 20 min", any(32, 40_000)),
        (
            "8 nodes of 4, 20 min, 5 sessions",
            SyntheticProgram {
                processes: 4,
                sessions: 5,
                ..any(8, 1)
            }
            .with_events(40_000),
        ),
        (
            "8 nodes, 2 h, 9 sessions",
            SyntheticProgram {
                duration: minutes(120),
                sessions: 9,
                ..any(8, 20_000)
            },
        ),
        (
            "16 nodes, a grid, 10 s",
            SyntheticProgram {
                duration: Duration::from_secs(10),
                traffic: SyntheticTraffic::Stencil,
                ..any(16, 40_000)
            },
        ),
        (
            "16 nodes of 4, a grid, 40 ms in 20 min",
            SyntheticProgram {
                processes: 4,
                traffic: SyntheticTraffic::Stencil,
                idle: Duration::from_nanos(minutes(10).as_nanos() - 20_000_000),
                ..any(16, 1)
            }
            .with_events(100_000),
        ),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    for (name, program) in programs() {
        let mut trace = program.trace(Matching::default())?;
        PreSynchronization::new(program.master())
            .maps(&trace.clocks(), &program.sessions()?)?
            .correct(&mut trace)?;
        let before = Verdict::new(&trace, &trace.times(), &program.latencies)?;
        let span = trace
            .span()
            .map_or(0, |[first, last]| (last - first).as_nanos());
        println!(
            "\n{name}: {} messages of {} violated, reversed by {} at most; {:.1} us centred error; span {:.3} s",
            before.messages.violated,
            before.messages.total,
            before.reversal.largest,
            program.error(&trace.times())?.centred() / 1e3,
            span as f64 * 1e-9,
        );
        println!(
            "| 1 - c | centred error, us | intervals changed by > 0.01 %, % | largest displacement |\n|---|---|---|---|"
        );
        let sessions = i64::from(program.sessions);
        let distance = program.duration / (sessions - 1);
        let derived = ControlVariable::for_errors(
            before.largest_violation,
            distance,
            ControlVariable::LEAST_COMPARED,
        );
        let given =
            LOSSES.map(|loss| ControlVariable::new(1.0 - loss).unwrap_or(ControlVariable::ONE));
        for (name, control) in given
            .map(|given| ("", given))
            .into_iter()
            .chain([(" derived", derived)])
        {
            let loss = 1.0 - control.get();
            let mut clock = ControlledLogicalClock::new(program.latencies);
            clock.rule.control = control;
            let corrected = clock.correct(&trace)?;
            let error = program.error(corrected.times())?.centred() / 1e3;
            let deviation = Deviation::between(&trace, corrected.times())?;
            let above = IntervalChanges::THRESHOLDS
                .iter()
                .position(|above| *above == 1e-4);
            let changed = above.map_or(0.0, |at| deviation.distance.shares()[at].0);
            let moved = corrected
                .passes()
                .last()
                .map_or(Duration::ZERO, |pass| pass.error);
            println!(
                "| {loss:.1e}{name} | {error:.3} | {:.2} | {moved} |",
                100.0 * changed
            );
        }
    }
    Ok(())
}
