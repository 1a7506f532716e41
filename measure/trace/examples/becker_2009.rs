//! Tables 3 and 4 of Becker et al. (2009), and what the paper could not know: the true error.
//!
//! `cargo run --release -p downbeat-trace --example becker_2009 -- full`; without an argument, of small
//! programs only.
//!
//! As in the paper, a solver on a grid runs in the middle of 20 minutes; clocks are
//! compared at both ends, and interpolated linearly. The clocks of nodes run 5 ppm fast
//! or slow, and their rates wander by 0.5 ppb per root second, so that interpolation errs
//! by about as much as on the machines of the paper (2.6 and 4.3 us). Each size is
//! measured three times; the tables have the maximum of the three, and the mean of means.

#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;

use downbeat_clock_core::Duration;
use downbeat_sync::sim::{Clocks, DriftWalk};
use downbeat_sync::{ThreadComm, block_on_ready};
use downbeat_trace::check::Verdict;
use downbeat_trace::deviation::{Deviation, IntervalChanges};
use downbeat_trace::generate::{SyntheticProgram, SyntheticTraffic};
use downbeat_trace::presync::PreSynchronization;
use downbeat_trace::{CorrectionSettings, Matching, MeasuredTrace};

/// Rounds of messages, one in 100 us.
const ROUNDS: u32 = 400;
const ROUND: i64 = 100_000;
const MEASUREMENTS: u64 = 3;
const PER_NODE: u32 = 4;

/// Figures of programs of one size.
#[derive(Default)]
struct Column {
    processes: u32,
    /// Shares of messages.
    reversed: f64,
    violated: f64,
    /// Errors of reversed messages in nanoseconds.
    mean_error: f64,
    largest_error: f64,
    mean_share: f64,
    largest_share: f64,
    /// Shares of intervals and of time above each threshold.
    above: [[f64; 2]; IntervalChanges::THRESHOLDS.len()],
    /// Errors of times in nanoseconds: before the correction, and after.
    errors: [f64; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let is_full = std::env::args().nth(1).as_deref() == Some("full");
    let sizes: &[u32] = match is_full {
        true => &[64, 128, 256, 512, 1_024],
        false => &[8, 16],
    };
    let columns: Result<Vec<Column>, _> = sizes.iter().map(|size| column(*size)).collect();
    print(&columns?);
    Ok(())
}

fn program(processes: u32, seed: u64) -> SyntheticProgram {
    let duration = Duration::from_secs(1_200);
    let active = Duration::from_nanos(ROUND * i64::from(ROUNDS));
    let any = SyntheticProgram::new(processes / PER_NODE, 0);
    let wander = any.clocks.wander.map(|wander| DriftWalk {
        drift_per_sqrt_second: 0.5e-9,
        ..wander
    });
    SyntheticProgram {
        clocks: Clocks {
            wander,
            ..any.clocks.clone()
        },
        processes: PER_NODE,
        rounds: ROUNDS,
        duration,
        idle: Duration::from_nanos((duration - active).as_nanos() / 2),
        traffic: SyntheticTraffic::Stencil,
        // As many as the clocks cause.
        violated: 1.0,
        seed,
        ..any
    }
}

fn column(processes: u32) -> Result<Column, Box<dyn Error>> {
    let mut column = Column {
        processes,
        ..Column::default()
    };
    for seed in 1..=MEASUREMENTS {
        let program = program(processes, seed);
        let source = MeasuredTrace {
            trace: program.trace(Matching::default())?.into(),
            sessions: program.sessions()?,
            truth: None,
        };
        let settings = CorrectionSettings {
            pre_synchronization: Some(PreSynchronization::new(program.master())),
            latencies: Some(program.latencies),
            ..CorrectionSettings::default()
        };
        let comm = ThreadComm::alone();
        let corrected = downbeat_trace::correct(&comm, source, &settings);
        let (report, corrected) = block_on_ready(corrected)?;
        assert!(report.corrected.holds(), "{:?}", report.corrected);
        column.add(&report.pre_synchronized, &report.deviation);
        let errors = [
            program.error(&corrected.trace.times())?.centred(),
            program.error(&corrected.times)?.centred(),
        ];
        for (all, found) in column.errors.iter_mut().zip(errors) {
            *all += found / MEASUREMENTS as f64;
        }
    }
    Ok(column)
}

impl Column {
    fn add(&mut self, before: &Verdict, deviation: &Deviation) {
        let of_all = 1.0 / MEASUREMENTS as f64;
        let messages = before.messages.total.max(1) as f64;
        self.reversed += of_all * before.messages.reversed as f64 / messages;
        self.violated += of_all * before.messages.violated as f64 / messages;
        let reversed = before.messages.reversed.max(1) as f64;
        self.mean_error += of_all * before.reversal.total as f64 / reversed;
        let largest = before.reversal.largest.as_nanos() as f64;
        self.largest_error = self.largest_error.max(largest);
        let distance = &deviation.distance;
        self.mean_share = self.mean_share.max(distance.mean_share());
        self.largest_share = self.largest_share.max(distance.largest_share);
        for (all, (intervals, time)) in self.above.iter_mut().zip(distance.shares()) {
            *all = [all[0].max(intervals), all[1].max(time)];
        }
    }
}

fn print(columns: &[Column]) {
    let row = |name: &str, figure: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(figure).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let micros = |nanos: f64| format!("{:.1}", nanos / 1e3);
    let head = |title: &str| {
        println!("\n{title}\n");
        row("processes", &|column| column.processes.to_string());
        println!("|---|{}", "---|".repeat(columns.len()));
    };
    head("Table 3: messages in reversed order after linear interpolation");
    row("reversed, %", &|column| percent(column.reversed));
    row("violated, %", &|column| percent(column.violated));
    row("mean error, us", &|column| micros(column.mean_error));
    row("largest error, us", &|column| micros(column.largest_error));
    head("Table 4: relative deviation of event distance, %");
    row("average", &|column| percent(column.mean_share));
    row("maximum", &|column| percent(column.largest_share));
    for (which, unit) in ["intervals", "time"].into_iter().enumerate() {
        for (index, threshold) in IntervalChanges::THRESHOLDS.into_iter().enumerate() {
            let name = format!("{unit} above {} %", 100.0 * threshold);
            row(&name, &|column| percent(column.above[index][which]));
        }
    }
    head("Error of times against the truth, centred");
    row("after linear interpolation, us", &|column| {
        micros(column.errors[0])
    });
    row("after the correction, us", &|column| {
        micros(column.errors[1])
    });
}
