//! `downbeat calibrate`: rate of the processor's counter by a clock of the system and what is certain of it, and its frequency.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat_common::cli::positive;
use downbeat_common::health::{ClockHealth, RequirementOptions};
use downbeat_common::output;
use downbeat_common::{
    Failure, IndependentRate, Outputs, PrintOptions, ProgressBar, Table, Text, UsedCalibration,
    units, write_text,
};
use downbeat_timers::calibration::{
    BracketSeries, Calibration, CalibrationError, Machine, SavedCalibration,
};
use downbeat_timers::cores::{CoreId, pin_to};
use downbeat_timers::tsc::TscFacts;
use downbeat_timers::{Clock, Duration, MachineClock, SystemClock, SystemClockId};
use serde::Serialize;

#[derive(Args, Debug)]
#[command(
    after_help = "The rate is that of the counter by a clock of the system. CLOCK_MONOTONIC_RAW is computed from the counter, by a rate \
                  that the kernel found at its start, so it says nothing about Hz: that needs a PTP clock, or a system time that a daemon \
                  keeps synchronized, and is printed where there is one.\n\n\
                  Examples:\n  downbeat calibrate --duration 1s --repeat 5 --save /tmp/tsc.toml\n  \
                  downbeat calibrate --duration 10s --require synchronized --max-ppm 100"
)]
pub(crate) struct CalibrateOptions {
    /// Duration of each calibration; longer is more precise
    #[arg(long, default_value = "10ms", value_parser = positive, allow_hyphen_values = true)]
    duration: Duration,
    /// Number of calibrations
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000), allow_hyphen_values = true)]
    repeat: u32,
    /// Reference clock: `CLOCK_MONOTONIC_RAW`, or `CLOCK_MONOTONIC`, whose rate is adjusted by NTP
    #[arg(long, value_enum, default_value_t = Against::Raw, ignore_case = true)]
    against: Against,
    /// Core to run on
    #[arg(long, allow_hyphen_values = true)]
    core: Option<u32>,
    #[command(flatten)]
    requirements: RequirementOptions,
    #[command(flatten)]
    print: PrintOptions,
    /// File to save the result to, for other programs; valid until the next reboot
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Against {
    Raw,
    Monotonic,
}

impl From<Against> for SystemClockId {
    fn from(against: Against) -> Self {
        match against {
            Against::Raw => Self::MonotonicRaw,
            Against::Monotonic => Self::Monotonic,
        }
    }
}

/// Number of parts of each calibration, which show whether the rate is constant.
const PARTS: i64 = 8;

/// Result of one calibration.
#[derive(Debug, Serialize)]
struct CalibrationRepeat {
    /// Ticks in a second of the reference clock.
    ticks_per_second: f64,
    /// Largest error of the rate, if delays changed alike.
    steady_ppm: f64,
    /// Largest error of the rate, whatever the delays were.
    certain_ppm: f64,
    /// Largest deviation of the reference clock from a constant rate in between.
    departure_ns: f64,
    /// Rate of the second half relative to the first; positive if the counter was faster.
    change_ppm: f64,
    /// Largest error of that change, if delays changed alike.
    change_steady_ppm: f64,
}

/// Results of all calibrations, printed as JSON.
#[derive(Debug, Serialize)]
struct CalibrateReport {
    schema: &'static str,
    version: u32,
    counter: &'static str,
    reference: &'static str,
    cpu_model: String,
    boot_id: String,
    /// Rate from the beginning of the first calibration to the end of the last.
    ticks_per_second: f64,
    nanos_per_tick: f64,
    steady_ppm: f64,
    certain_ppm: f64,
    duration_s: f64,
    /// Difference between the largest and the smallest rate of the repeats.
    spread_ppm: f64,
    repeats: Vec<CalibrationRepeat>,
    doubts: Vec<String>,
    health: ClockHealth,
}

pub(crate) fn run(options: &CalibrateOptions) -> Result<(), Failure> {
    if let Some(core) = options.core {
        pin_to(CoreId(core)).map_err(|why| Failure::option("--core", why))?;
    }
    if let Some(path) = &options.save {
        // Fail before the calibrations take time.
        Outputs::default().text("--save", path)?;
        refuse_other_file(path)?;
    }
    options.requirements.check()?;
    let counter = MachineClock::counter().map_err(|why| {
        Failure::run(format!("the counter of the processor is not usable: {why}"))
    })?;
    let reference = SystemClock::detect(options.against.into());
    let reference = reference.map_err(|why| Failure::option("--against", why))?;
    let machine = Machine::this()
        .map_err(|why| Failure::run(format!("cannot identify this machine: {why}")))?;

    let (calibrated, independent) =
        IndependentRate::measure_during(&counter, || calibrate(&counter, &reference, options));
    let (calibration, repeats) = calibrated.map_err(Failure::run)?;
    let known = UsedCalibration {
        calibration,
        reference: reference.id(),
        file: None,
        independent,
    };
    let health = ClockHealth::gather(&Ok(counter), Some(&known));
    let report = summarize(&counter, &known, repeats, &machine, health);
    if let Some(path) = &options.save {
        let saved = SavedCalibration {
            counter: counter.name(),
            calibration,
            reference: reference.id(),
            machine,
        };
        write_text("--save", path, &saved.to_string())?;
    }
    let text = || render(&counter, &report, options);
    options.print.print(|| &report, text)?;
    options.requirements.verify(&[report.health])
}

/// Refuses to replace a file with other content, such as a record.
fn refuse_other_file(path: &Path) -> Result<(), Failure> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let failed = |why| Failure::option("--save", format!("{}: {why}", path.display()));
    // A calibration is shorter.
    let mut start = vec![];
    let file = File::open(path).map_err(failed)?;
    file.take(4096).read_to_end(&mut start).map_err(failed)?;
    let start = String::from_utf8_lossy(&start);
    if start
        .lines()
        .any(|line| line.trim().starts_with("counter = \""))
    {
        return Ok(());
    }
    let why = format!("{} exists and is not a calibration", path.display());
    Err(Failure::option("--save", why))
}

/// Measures all repeats, and the rate from the start of the first to the end of the last.
fn calibrate(
    counter: &impl Clock,
    reference: &SystemClock,
    options: &CalibrateOptions,
) -> Result<(Calibration, Vec<CalibrationRepeat>), CalibrationError> {
    let progress = ProgressBar::lasting(options.duration.as_secs_f64() * f64::from(options.repeat));
    let nanos = options.duration.as_nanos();
    let series = || BracketSeries::measure(counter, reference);
    let (mut repeats, mut ends) = (Vec::new(), None);
    for _ in 0..options.repeat {
        let mut run = vec![series()];
        for part in 0..PARTS {
            // The first parts are one nanosecond longer if the duration is not a multiple.
            progress.sleep(Duration::from_nanos(
                nanos / PARTS + i64::from(part < nanos % PARTS),
            ));
            run.push(series());
        }
        repeats.push(assess(&run)?);
        let first = ends.map_or_else(|| run.first().cloned(), |(first, _)| Some(first));
        ends = first.zip(run.pop());
    }
    let (first, last) = ends.ok_or(CalibrationError::NoBracket)?;
    Ok((Calibration::between(&first, &last)?, repeats))
}

fn summarize(
    counter: &MachineClock,
    known: &UsedCalibration,
    repeats: Vec<CalibrationRepeat>,
    machine: &Machine,
    health: ClockHealth,
) -> CalibrateReport {
    let whole = &known.calibration;
    let rates = repeats.iter().map(|repeat| repeat.ticks_per_second);
    let (least, most) = rates.fold((f64::MAX, f64::MIN), |(least, most), hz| {
        (least.min(hz), most.max(hz))
    });
    CalibrateReport {
        schema: "downbeat.calibration",
        version: 1,
        counter: counter.name().as_str(),
        reference: known.reference.name(),
        cpu_model: machine.cpu_model.clone(),
        boot_id: machine.boot_id.clone(),
        ticks_per_second: whole.rate().hz(),
        nanos_per_tick: whole.rate().nanos_per_tick(),
        steady_ppm: whole.uncertainty() * 1e6,
        certain_ppm: whole.certain_uncertainty() * 1e6,
        duration_s: whole.duration().as_secs_f64(),
        spread_ppm: (most - least) / least * 1e6,
        repeats,
        doubts: doubts(known.reference, &health),
        health,
    }
}

/// Lists the reasons to distrust the counter or the reference clock.
fn doubts(reference: SystemClockId, health: &ClockHealth) -> Vec<String> {
    let facts = TscFacts::gather().into_iter();
    let of_counter = facts.flat_map(|facts| facts.doubts().map(|doubt| doubt.to_string()));
    let adjusted = reference == SystemClockId::Monotonic;
    let of_reference = match &health.system_time {
        Ok(time) if !adjusted || time.synchronized => None,
        Err(_) if !adjusted => None,
        Ok(_) => Some(format!(
            "{} is not synchronized: the rate is certain relative to the kernel's estimate, and not to true time",
            reference.name()
        )),
        Err(why) => Some(format!(
            "{} may not be synchronized: {why}",
            reference.name()
        )),
    };
    of_counter.chain(of_reference).collect()
}

/// Evaluates the series of brackets of one calibration.
fn assess(run: &[BracketSeries]) -> Result<CalibrationRepeat, CalibrationError> {
    let (start, middle, end) = (&run[0], &run[run.len() / 2], &run[run.len() - 1]);
    let whole = Calibration::between(start, end)?;
    let (early, late) = (
        Calibration::between(start, middle)?,
        Calibration::between(middle, end)?,
    );
    let mut departure_ns: f64 = 0.0;
    for series in &run[1..] {
        let part = Calibration::between(start, series)?;
        let excess = part.rate().drift_from(whole.rate());
        let departure = excess * part.duration().as_nanos() as f64;
        departure_ns = departure_ns.max(departure.abs());
    }
    Ok(CalibrationRepeat {
        ticks_per_second: whole.rate().hz(),
        steady_ppm: whole.uncertainty() * 1e6,
        certain_ppm: whole.certain_uncertainty() * 1e6,
        departure_ns,
        // A shorter tick is a faster counter.
        change_ppm: early.rate().drift_from(late.rate()) * 1e6,
        change_steady_ppm: (early.uncertainty() + late.uncertainty()) * 1e6,
    })
}

/// Number of repeats in the table.
const SHOWN: usize = 20;

fn render(counter: &MachineClock, report: &CalibrateReport, options: &CalibrateOptions) -> Text {
    let mut text = Text::default();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{} of {} against {}: {} of {} each\n",
        output::capitalized(counter),
        report.cpu_model,
        report.reference,
        report.repeats.len(),
        options.duration
    );
    text += repeats_table(&report.repeats);
    if report.repeats.len() > SHOWN {
        let _ = writeln!(
            text,
            "... and {} more (--json shows all)",
            report.repeats.len() - SHOWN
        );
    }
    let _ = writeln!(
        text,
        "\nRate         {:.3} ticks per second of {}, {:.12} ns per tick\nSteady       to {:.4} ppm, over {:.3} s in all\n\
         Certain      to {:.4} ppm\nSpread       {:.4} ppm between the repeats",
        report.ticks_per_second,
        report.reference,
        report.nanos_per_tick,
        report.steady_ppm,
        report.duration_s,
        report.certain_ppm,
        report.spread_ppm
    );
    for doubt in &report.doubts {
        let _ = writeln!(text, "Warning      {doubt}");
    }
    if let Some(path) = &options.save {
        let _ = writeln!(
            text,
            "Saved        {} (valid until the next reboot)",
            path.display()
        );
    }
    text += "\n";
    text += report.health.kernel_text();
    text += EXPLANATION;
    text
}

const EXPLANATION: &str = "\nSteady: largest error of a rate if the delays before and behind a reading of the reference changed alike, as they usually do. \
                           Certain: largest error in any case, for a limit that must hold. Both are relative to the reference clock.\n\
                           Departure: largest deviation of the reference clock from a constant rate.\n\
                           Change: rate of the second half relative to the first; positive if the counter was faster.\n";

/// Returns the table of the first repeats.
fn repeats_table(repeats: &[CalibrationRepeat]) -> Table {
    let mut table = Table::new([
        "repeat",
        "ticks/s",
        "steady, ppm",
        "certain, ppm",
        "departure, ns",
        "change, ppm",
    ]);
    for (i, repeat) in repeats.iter().take(SHOWN).enumerate() {
        table.row([
            (i + 1).to_string(),
            format!("{:.0}", repeat.ticks_per_second),
            format!("{:.3}", repeat.steady_ppm),
            format!("{:.3}", repeat.certain_ppm),
            format!("{:.1}", repeat.departure_ns),
            format!(
                "{:+.3} +- {:.3}",
                units::without_negative_zero(repeat.change_ppm, 3),
                repeat.change_steady_ppm
            ),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_timers::Ticks;

    /// Clock that stands still, and whose reading takes 20 ticks.
    struct Still(u64);

    impl Clock for Still {
        fn ticks(&self) -> Ticks {
            Ticks(self.0)
        }
        fn open(&self) -> Ticks {
            Ticks(self.0 - 10)
        }
        fn close(&self) -> Ticks {
            Ticks(self.0 + 10)
        }
    }

    #[test]
    fn a_counter_that_speeds_up_differs_between_halves() {
        // 2 ticks per ns, then 0.1 % more.
        let run = [(1_000, 0), (2_001_000, 1_000_000), (4_003_000, 2_000_000)]
            .map(|(ticks, nanos)| BracketSeries::measure(&Still(ticks), &Still(nanos)));
        let found = assess(&run).unwrap();
        assert!((found.ticks_per_second - 2.001e9).abs() < 1e3, "{found:?}");
        assert!((found.change_ppm - 1_000.0).abs() < 1.0, "{found:?}");
        assert!((found.departure_ns - 499.75).abs() < 0.5, "{found:?}");
        assert!(
            found.change_steady_ppm > 0.0
                && found.steady_ppm < found.change_steady_ppm
                && found.steady_ppm < found.certain_ppm
        );
    }
}
