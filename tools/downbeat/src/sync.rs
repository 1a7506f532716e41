//! `downbeat sync`: one global clock for threads whose clocks are wrong, and by how much it is off in truth.

use std::fmt::Write as _;
use std::str::FromStr;

use clap::Args;
use downbeat_clock_core::{Clock, ClockModel, Counter, Timestamp};
use downbeat_sync::{Algorithm, Comm as _, SyncError, Synchronized, ThreadCluster, Timekeeper};
use downbeat_timers::{
    Duration, Skew, SkewError, SkewedClock, SystemClock, SystemClockId, TickRate, Truth, TscClock, Wander,
    allowed_cores, pin_to,
};
use serde::Serialize;

use crate::calibration::CalibrationOptions;
use crate::failure::Failure;
use crate::output::{self, Table};

#[derive(Args, Debug)]
#[command(
    after_help = "All ranks read one counter, each through a clock that is wrong in a known way. So what is shown is the true \
                  error of the global clock, not a measured one, and also for times to come.\n\n\
                  Example:\n  downbeat sync --ranks 4 --algorithm hca3/100/skampi/50 --skew offset=1s,drift=20ppm --check 0,10s"
)]
pub(crate) struct Options {
    /// How many ranks; each is a thread
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=i64::from(ThreadCluster::MOST_RANKS)), allow_hyphen_values = true)]
    ranks: u32,
    /// How to synchronize: ALGORITHM/FIT POINTS/OFFSET ALGORITHM/EXCHANGES
    #[arg(long, value_name = "LABEL", default_value = "hca3/100/skampi/50")]
    algorithm: Algorithm,
    /// How wrong the clocks are at most: offset=TIME, drift=NUMBERppm, wander=NUMBERppm (after a second), seed=NUMBER
    #[arg(long, default_value = "offset=1s,drift=20ppm")]
    skew: SkewSpec,
    /// When to look at the error: times after the synchronization
    #[arg(long, value_name = "TIMES", default_value = "0,10s", value_delimiter = ',', value_parser = not_negative, allow_hyphen_values = true)]
    check: Vec<Duration>,
    #[command(flatten)]
    calibration: CalibrationOptions,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn not_negative(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|why: downbeat_clock_core::ParseDurationError| why.to_string())?;
    if time < Duration::ZERO { Err("must not be negative".to_owned()) } else { Ok(time) }
}

/// The largest skew; every rank but the first gets one of its own below that, and rank 0 is right.
#[derive(Clone, Copy, Debug, Default)]
struct SkewSpec {
    offset: Duration,
    drift_ppm: f64,
    wander_ppm: f64,
    seed: u64,
}

impl FromStr for SkewSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut spec = Self::default();
        for part in text.split(',').filter(|part| *part != "none") {
            let (key, value) = part.split_once('=').ok_or(format!("\"{part}\" is not of the form KEY=VALUE"))?;
            match key {
                "offset" => spec.offset = value.parse().map_err(|why| format!("offset: {why}"))?,
                "drift" => spec.drift_ppm = ppm(value).ok_or(format!("drift: \"{value}\" is no number of ppm"))?,
                "wander" => spec.wander_ppm = ppm(value).ok_or(format!("wander: \"{value}\" is no number of ppm"))?,
                "seed" => spec.seed = value.parse().map_err(|why| format!("seed: {why}"))?,
                _ => return Err(format!("there is no \"{key}\": there are offset, drift, wander and seed")),
            }
        }
        Ok(spec)
    }
}

/// A clock may run 10 % fast or slow; anything beyond is a mistake.
fn ppm(text: &str) -> Option<f64> {
    text.strip_suffix("ppm")?.trim().parse().ok().filter(|ppm: &f64| (-1e5..=1e5).contains(ppm))
}

impl SkewSpec {
    fn of_rank(&self, rank: u32) -> Skew {
        if rank == 0 {
            return Skew::default();
        }
        // The golden ratio spreads the ranks evenly between the extremes, whatever their number.
        let spread = |salt: f64| 2.0 * ((f64::from(rank) + self.seed as f64) * 0.618_033_988_75 * salt).fract() - 1.0;
        let offset = self.offset.as_nanos() as f64 * spread(1.0);
        Skew {
            offset: Duration::from_nanos_f64(offset).unwrap_or_default(),
            drift: self.drift_ppm * 1e-6 * spread(1.7),
            wander: (self.wander_ppm != 0.0).then_some(Wander {
                drift_per_sqrt_second: self.wander_ppm.abs() * 1e-6,
                interval: Duration::from_millis(10),
                lasting: Duration::from_secs(600),
                seed: self.seed.wrapping_add(rank.into()),
            }),
            ..Skew::default()
        }
    }
}

/// What was found. Ends up as JSON as it is.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    algorithm: String,
    ranks: usize,
    duration_ms: f64,
    checks: Vec<Check>,
    clocks: Vec<RankReport>,
}

/// The largest error of any rank.
#[derive(Debug, Serialize)]
struct Check {
    after_s: f64,
    largest_error_ns: i64,
}

#[derive(Debug, Serialize)]
struct RankReport {
    rank: usize,
    /// Before the synchronization: the deviation of the rank's own clock from that of rank 0.
    offset_ns: i64,
    drift_ppm: f64,
    /// What the algorithm knows of its error.
    residual_deviation_ns: Option<f64>,
    half_width_ns: Option<i64>,
    left_out: u32,
    /// The true error of the global clock, one for each check.
    errors_ns: Vec<i64>,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(Failure::run)?;
    let report = match TscClock::detect() {
        Ok(tsc) => {
            let known = options.calibration.calibrate(&tsc, &raw, Duration::from_millis(20))?;
            synchronize(options, tsc, known.calibration.rate())?
        }
        // The truth is then what the system says.
        Err(_) => synchronize(options, raw, SystemClock::RATE)?,
    };
    if options.json { output::print_json(&report) } else { output::print(&render(&report)) }
}

fn synchronize<K: Clock + Copy + Sync>(options: &Options, counter: K, rate: TickRate) -> Result<Report, Failure> {
    let truth = ClockModel::through(counter.ticks(), Timestamp::ORIGIN, rate).map_err(Failure::run)?;
    let clocks = clocks(options, counter, truth).map_err(|why| Failure::option("--skew", why))?;
    let base = SkewedClock::<K>::believed().map_err(Failure::run)?;
    let cores = allowed_cores();
    let pin = |rank: u32| match cores.get(rank as usize % cores.len().max(1)) {
        Some(core) => pin_to(*core),
        None => Ok(()),
    };
    let began = truth.apply(counter.ticks());
    let found = ThreadCluster::new(options.ranks).pin(pin).run(|comm| {
        let clock = &clocks[comm.rank() as usize];
        options.algorithm.synchronize_blocking(&Timekeeper::new(clock, base), comm)
    });
    let ended = truth.apply(counter.ticks());
    let synchronized = all_or_first_failure(found.map_err(Failure::run)?)?;
    Ok(report(options, &clocks, &synchronized, [began, ended]))
}

fn clocks<K: Clock + Copy>(
    options: &Options,
    counter: K,
    truth: ClockModel<Counter, Truth>,
) -> Result<Vec<SkewedClock<K>>, SkewError> {
    (0..options.ranks).map(|rank| SkewedClock::new(counter, truth, options.skew.of_rank(rank))).collect()
}

/// One rank speaks for all: the one that has a failure of its own to tell of.
fn all_or_first_failure(found: Vec<Result<Synchronized, SyncError>>) -> Result<Vec<Synchronized>, Failure> {
    let of_others = |why: &SyncError| matches!(why, SyncError::OtherRank(_));
    let own =
        (0..).zip(&found).find_map(|(rank, result)| result.err().filter(|why| !of_others(why)).map(|why| (rank, why)));
    match own {
        Some((rank, why)) => Err(Failure::Run(format!("rank {rank}: {why}"))),
        None => found.into_iter().collect::<Result<_, _>>().map_err(Failure::run),
    }
}

fn report<K: Clock>(
    options: &Options,
    clocks: &[SkewedClock<K>],
    synchronized: &[Synchronized],
    [began, ended]: [Timestamp<Truth>; 2],
) -> Report {
    let shown = |rank: usize, at| synchronized[rank].model.apply(clocks[rank].ticks_at(at));
    let error = |rank, after| (shown(rank, ended + after) - shown(0, ended + after)).as_nanos();
    let all = || 0..synchronized.len();
    let check = |after: &Duration| Check {
        after_s: after.as_secs_f64(),
        largest_error_ns: all().map(|rank| error(rank, *after)).max_by_key(|error: &i64| error.abs()).unwrap_or(0),
    };
    let rank = |rank: usize| RankReport {
        rank,
        offset_ns: (clocks[rank].deviation(began) - clocks[0].deviation(began)).as_nanos(),
        drift_ppm: options.skew.of_rank(rank as u32).drift * 1e6,
        residual_deviation_ns: synchronized[rank].quality.residual_deviation,
        half_width_ns: synchronized[rank].quality.half_width.map(Duration::as_nanos),
        left_out: synchronized[rank].quality.left_out,
        errors_ns: options.check.iter().map(|after| error(rank, *after)).collect(),
    };
    Report {
        schema: "downbeat.sync",
        version: 1,
        algorithm: options.algorithm.to_string(),
        ranks: synchronized.len(),
        duration_ms: (ended - began).as_nanos() as f64 / 1e6,
        checks: options.check.iter().map(check).collect(),
        clocks: all().map(rank).collect(),
    }
}

/// How many ranks are shown one by one.
const SHOWN: usize = 16;

fn render(report: &Report) -> String {
    let times: Vec<String> = report.checks.iter().map(|check| format!("{} s", check.after_s)).collect();
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "{} ranks, {}: {:.1} ms\n", report.ranks, report.algorithm, report.duration_ms);
    let errors = format!("error after {}, ns", times.join(" / "));
    let mut table = Table::new(["rank", "was ahead by", "drift, ppm", "half width, ns", &errors]);
    for rank in report.clocks.iter().take(SHOWN) {
        let errors: Vec<String> = rank.errors_ns.iter().map(|error| format!("{error:+}")).collect();
        table.row([
            rank.rank.to_string(),
            Duration::from_nanos(rank.offset_ns).to_string(),
            format!("{:+.3}", rank.drift_ppm),
            rank.half_width_ns.map_or("not known".to_owned(), |width| width.to_string()),
            errors.join(" / "),
        ]);
    }
    text += &table.render();
    if report.clocks.len() > SHOWN {
        let _ = writeln!(text, "... and {} more (--json shows all)", report.clocks.len() - SHOWN);
    }
    text.push('\n');
    for check in &report.checks {
        let _ = writeln!(text, "largest error after {} s: {} ns", check.after_s, check.largest_error_ns.abs());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_is_read_and_what_is_none_is_named() {
        let spec: SkewSpec = "offset=2ms,drift=30ppm,wander=0.1ppm,seed=7".parse().unwrap();
        assert_eq!((spec.offset, spec.seed), (Duration::from_millis(2), 7));
        assert!((spec.drift_ppm - 30.0).abs() < 1e-12 && (spec.wander_ppm - 0.1).abs() < 1e-12);
        assert_eq!("none".parse::<SkewSpec>().unwrap().offset, Duration::ZERO);
        let error = |text: &str| text.parse::<SkewSpec>().unwrap_err();
        for text in ["", "offset", "speed=1ppm", "drift=1", "drift=NaNppm", "drift=infppm", "drift=8abcppm", "seed=-1"]
        {
            assert!(!error(text).is_empty(), "{text}");
        }
        assert_eq!(error("offset=8abc"), "offset: a duration needs a unit: ns, us, ms, s, min or h");
    }

    #[test]
    fn no_rank_is_more_wrong_than_it_was_asked_to_be_and_rank_0_is_right() {
        let spec: SkewSpec = "offset=1s,drift=20ppm".parse().unwrap();
        assert_eq!(spec.of_rank(0), Skew::default());
        let skews: Vec<Skew> = (1..100).map(|rank| spec.of_rank(rank)).collect();
        assert!(skews.iter().all(|skew| skew.offset.abs() <= Duration::from_secs(1) && skew.drift.abs() <= 20e-6));
        assert!(skews.iter().any(|skew| skew.drift > 10e-6) && skews.iter().any(|skew| skew.drift < -10e-6));
    }
}
