//! `downbeat clocks`: all time sources of a machine, their properties, and their state over time.

mod gather;
mod recommend;
mod report;
mod text;

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Instant;

use clap::Args;
use downbeat_common::health::{
    ClockHealth, GaugeValues, NODE_GAUGES, NodeWatch, RequirementOptions, WatchOptions,
};
use downbeat_common::{CalibrationOptions, Failure, PrintOptions, now};
use downbeat_timers::Duration;

use gather::Yardsticks;

#[derive(Args, Debug)]
#[command(
    after_help = "With --require or --max-ppm, the exit code is 1 where clocks are not good enough, and standard error names the \
                  reason; so a job can begin with a check of its nodes.\n\n\
                  Examples:\n  \
                  downbeat clocks --json | jq .recommended\n  \
                  downbeat clocks --require tsc,invariant,synchronized --max-ppm 100\n  \
                  downbeat clocks --watch 10s --log clocks.csv\n  \
                  downbeat clocks --watch 1min --log-form openmetrics \\\n    \
                  --log /var/lib/node_exporter/downbeat.prom"
)]
pub(crate) struct ClocksOptions {
    /// Cores to compare, such as 0,2,4 [default: all cores that this process may use]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    cores: Option<Vec<u32>>,
    #[command(flatten)]
    calibration: CalibrationOptions,
    #[command(flatten)]
    requirements: RequirementOptions,
    #[command(flatten)]
    watch: WatchOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &ClocksOptions) -> Result<(), Failure> {
    options.requirements.check()?;
    let yardsticks = Yardsticks::calibrate(&options.calibration, &options.requirements)?;
    if let Some(period) = options.watch.watch {
        return watch(options, period, yardsticks);
    }
    let report = gather::gather(options.cores.as_deref(), yardsticks)?;
    let text = || text::render(&report, io::stdout().is_terminal());
    options.print.print(|| &report, text)?;
    options.requirements.verify(&[report.health])
}

/// Logs the state of the clocks once in each period; fails at the end if they did not always meet the requirements.
fn watch(options: &ClocksOptions, period: Duration, yardsticks: Yardsticks) -> Result<(), Failure> {
    let Yardsticks {
        counter,
        known,
        raw,
    } = yardsticks;
    let health = ClockHealth::gather(&counter, known.as_ref());
    let mut log = options.watch.log.open(&NODE_GAUGES)?;
    let mut node = NodeWatch::new(counter.ok(), raw, health);
    let mut outcome = Ok(());
    let mut next = Instant::now();
    for _ in 0..options.watch.most_samples() {
        // A machine that slept is measured once, not once for each period that it missed.
        next = (next + std::time::Duration::from_nanos(period.as_nanos().unsigned_abs()))
            .max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let sample = node.measure()?;
        let met = options
            .requirements
            .verify(std::slice::from_ref(node.health()));
        let values = GaugeValues {
            host: node.health().host.clone(),
            values: sample.values(node.health(), met.is_ok()),
        };
        log.write(&now(), &[values])?;
        outcome = outcome.and(met);
    }
    outcome
}
