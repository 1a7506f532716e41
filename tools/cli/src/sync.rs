//! `downbeat sync`: a global clock for threads with skewed clocks, and its true error.

use std::fmt::Write as _;

use clap::Args;
use downbeat_clock_core::{Clock, ClockModel, Timestamp};
use downbeat_common::cli::not_negative;
use downbeat_common::records::all_or_first_failure;
use downbeat_common::{CalibrationOptions, Failure, PrintOptions, Table, Text};
use downbeat_sync::{Algorithm, Comm as _, LocalClock, Synchronized, ThreadCluster};
use downbeat_timers::skew::{SkewSpec, SkewedClock, Truth};
use downbeat_timers::{Duration, SystemClock, SystemClockId, TickRate, TscClock};
use serde::Serialize;

use crate::threads;

#[derive(Args, Debug)]
#[command(
    after_help = "All ranks read one counter, each through a clock with a known skew. So the error printed is the true error \
                  of the global clock, not a measured one, and can be computed for future times, too.\n\n\
                  Example:\n  downbeat sync --ranks 4 --algorithm hca3/100/skampi/50 \\\n    \
                  --skew offset=1s,drift=20ppm --check 0,10s"
)]
pub(crate) struct ThreadSyncOptions {
    /// Number of ranks; each is a thread
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=i64::from(ThreadCluster::MAX_RANKS)), allow_hyphen_values = true)]
    pub(crate) ranks: u32,
    /// Synchronization algorithm: ALGORITHM/FIT POINTS/OFFSET ALGORITHM/EXCHANGES
    #[arg(long, value_name = "LABEL", default_value = "hca3/100/skampi/50")]
    pub(crate) algorithm: Algorithm,
    #[arg(long, value_name = "SPEC", default_value = "offset=1s,drift=20ppm", help = SkewSpec::HELP)]
    pub(crate) skew: SkewSpec,
    /// Times after the synchronization at which to compute the error
    #[arg(long, value_name = "TIMES", default_value = "0,10s", value_delimiter = ',', value_parser = not_negative, allow_hyphen_values = true)]
    pub(crate) check: Vec<Duration>,
    #[command(flatten)]
    pub(crate) calibration: CalibrationOptions,
    #[command(flatten)]
    pub(crate) print: PrintOptions,
}

/// Result of one synchronization, printed as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadSyncReport {
    schema: &'static str,
    version: u32,
    algorithm: String,
    ranks: usize,
    pub(crate) duration_ms: f64,
    /// Part of the duration in which the clocks were compared for their bounds.
    closing_ms: f64,
    closing_messages: u64,
    pub(crate) checks: Vec<SyncCheck>,
    pub(crate) clocks: Vec<RankReport>,
}

/// Largest error of any rank at one time.
#[derive(Debug, Serialize)]
pub(crate) struct SyncCheck {
    after_s: f64,
    pub(crate) largest_error_ns: i64,
}

#[derive(Debug, Serialize)]
pub(crate) struct RankReport {
    pub(crate) rank: usize,
    /// Deviation of the rank's own clock from that of rank 0 before the synchronization.
    pub(crate) offset_ns: i64,
    pub(crate) drift_ppm: f64,
    /// Standard deviation of the residuals of the fit, if the algorithm makes one.
    residual_deviation_ns: Option<f64>,
    /// Stated bound of the error at the end of the synchronization.
    half_width_ns: i64,
    left_out: u32,
    /// True error of the global clock, for each check.
    errors_ns: Vec<i64>,
}

pub(crate) fn run(options: &ThreadSyncOptions) -> Result<(), Failure> {
    let report = measure(options)?;
    options.print.print(|| &report, || render(&report))
}

/// Synchronizes once and computes the errors.
pub(crate) fn measure(options: &ThreadSyncOptions) -> Result<ThreadSyncReport, Failure> {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(Failure::run)?;
    let tsc = TscClock::detect();
    let known = options
        .calibration
        .calibrate(&tsc, &raw, Duration::from_millis(20))?;
    match (tsc, known) {
        (Ok(tsc), Some(known)) => synchronize(options, tsc, known.calibration.rate()),
        // The system clock is then the truth.
        _ => synchronize(options, raw, SystemClock::RATE),
    }
}

fn synchronize<K: Clock + Copy + Sync>(
    options: &ThreadSyncOptions,
    counter: K,
    rate: TickRate,
) -> Result<ThreadSyncReport, Failure> {
    let truth =
        ClockModel::through(counter.ticks(), Timestamp::ORIGIN, rate).map_err(Failure::run)?;
    let clocks = threads::skewed(&options.skew, options.ranks, counter, truth)?;
    let base = SkewedClock::<K>::nominal_model().map_err(Failure::run)?;
    let found = threads::pinned(options.ranks).run(|comm| {
        let clock = &clocks[comm.rank() as usize];
        let began = clock.true_now();
        let synchronized = options
            .algorithm
            .synchronize_blocking(&LocalClock::new(clock, base), comm)?;
        Ok((synchronized, began, clock.true_now()))
    });
    let found = all_or_first_failure(found.map_err(Failure::run)?)?;
    let began = found
        .iter()
        .map(|(_, began, _)| *began)
        .max()
        .unwrap_or(Timestamp::ORIGIN);
    let ended = found
        .iter()
        .map(|(.., ended)| *ended)
        .max()
        .unwrap_or(Timestamp::ORIGIN);
    let synchronized: Vec<Synchronized> = found
        .into_iter()
        .map(|(synchronized, ..)| synchronized)
        .collect();
    Ok(report(options, &clocks, &synchronized, [began, ended]))
}

fn report<K: Clock>(
    options: &ThreadSyncOptions,
    clocks: &[SkewedClock<K>],
    synchronized: &[Synchronized],
    [began, ended]: [Timestamp<Truth>; 2],
) -> ThreadSyncReport {
    let global_time = |rank: usize, at| synchronized[rank].model.apply(clocks[rank].ticks_at(at));
    let error =
        |rank, after| (global_time(rank, ended + after) - global_time(0, ended + after)).as_nanos();
    let all = || 0..synchronized.len();
    let check = |after: &Duration| SyncCheck {
        after_s: after.as_secs_f64(),
        largest_error_ns: all()
            .map(|rank| error(rank, *after))
            .max_by_key(|error: &i64| error.abs())
            .unwrap_or(0),
    };
    let rank = |rank: usize| RankReport {
        rank,
        offset_ns: (clocks[rank].deviation(began) - clocks[0].deviation(began)).as_nanos(),
        drift_ppm: clocks[rank].skew().drift * 1e6,
        residual_deviation_ns: synchronized[rank].quality.residual_deviation,
        half_width_ns: synchronized[rank]
            .bound
            .at_time(global_time(rank, ended))
            .as_nanos(),
        left_out: synchronized[rank].quality.left_out,
        errors_ns: options
            .check
            .iter()
            .map(|after| error(rank, *after))
            .collect(),
    };
    ThreadSyncReport {
        schema: "downbeat.sync",
        version: 1,
        algorithm: options.algorithm.to_string(),
        ranks: synchronized.len(),
        duration_ms: (ended - began).as_nanos() as f64 / 1e6,
        closing_ms: synchronized[0].closing.took.as_nanos() as f64 / 1e6,
        closing_messages: synchronized[0].closing.messages,
        checks: options.check.iter().map(check).collect(),
        clocks: all().map(rank).collect(),
    }
}

/// Number of ranks in the table.
const SHOWN: usize = 16;

fn render(report: &ThreadSyncReport) -> Text {
    let times: Vec<String> = report
        .checks
        .iter()
        .map(|check| format!("{} s", check.after_s))
        .collect();
    let mut text = Text::default();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{} ranks, {}: {:.1} ms, of which the closing exchange took {:.1} ms and {} messages\n",
        report.ranks,
        report.algorithm,
        report.duration_ms,
        report.closing_ms,
        report.closing_messages
    );
    let errors = format!("error after {}, ns", times.join(" / "));
    let mut table = Table::new(["rank", "was ahead by", "drift, ppm", "bound, ns", &errors]);
    for rank in report.clocks.iter().take(SHOWN) {
        let errors: Vec<String> = rank
            .errors_ns
            .iter()
            .map(|error| format!("{error:+}"))
            .collect();
        table.row([
            rank.rank.to_string(),
            Duration::from_nanos(rank.offset_ns).to_string(),
            format!("{:+.3}", rank.drift_ppm),
            rank.half_width_ns.to_string(),
            errors.join(" / "),
        ]);
    }
    text += table;
    if report.clocks.len() > SHOWN {
        let _ = writeln!(
            text,
            "... and {} more (--json shows all)",
            report.clocks.len() - SHOWN
        );
    }
    text += "\n";
    for check in &report.checks {
        let _ = writeln!(
            text,
            "largest error after {} s: {} ns",
            check.after_s,
            check.largest_error_ns.abs()
        );
    }
    text
}
