//! Calibration of the processor's counter: made now, or loaded from a file that `downbeat calibrate` saved.

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_timers::calibration::{Calibration, SavedCalibration, calibrate_during};
use downbeat_timers::{
    CalibratedRate, Clock, ClockUnavailable, Duration, MachineClock, SystemClock, SystemClockId,
};

use crate::{Failure, IndependentRate, cli};

/// Option that names a saved calibration.
#[derive(Args, Clone, Debug, Default)]
pub struct CalibrationOptions {
    /// Load a saved calibration instead of calibrating
    #[arg(long = "calibration", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Do not verify the checksum of the saved calibration: accept one that was edited by hand
    #[arg(long, requires = "file")]
    no_verify: bool,
}

/// A calibration, and its origin.
#[derive(Debug)]
pub struct UsedCalibration {
    /// Calibration itself.
    pub calibration: Calibration,
    /// Clock with which the counter was compared.
    pub reference: SystemClockId,
    /// File of a saved calibration, `None` if it was made now.
    pub file: Option<String>,
    /// Frequency by a clock that does not depend on the counter, if it was measured.
    pub independent: Option<IndependentRate>,
}

impl CalibrationOptions {
    /// File of the saved calibration, which no output may replace.
    pub fn input(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Loads the calibration if a file is given, otherwise calibrates; returns `None` without a counter.
    ///
    /// # Errors
    /// When the file holds no calibration for this machine, when a file is given but there is no counter, or when the counter
    /// cannot be calibrated.
    pub fn calibrate(
        &self,
        counter: &Result<impl Clock, ClockUnavailable>,
        raw: &SystemClock,
        during: Duration,
    ) -> Result<Option<UsedCalibration>, Failure> {
        match (counter, &self.file) {
            (Err(_), None) => Ok(None),
            (Err(why), Some(_)) => Err(Failure::option(
                "--calibration",
                format!("there is no counter to which it applies: {why}"),
            )),
            (Ok(counter), None) => {
                let calibration = calibrate_during(counter, raw, during).map_err(Failure::run)?;
                Ok(Some(UsedCalibration {
                    calibration,
                    reference: raw.id(),
                    file: None,
                    independent: None,
                }))
            }
            (Ok(_), Some(path)) => {
                let name = path.display().to_string();
                let saved = SavedCalibration::load(path, cli::checksums(self.no_verify));
                let saved = saved.map_err(|why| {
                    let why = cli::unreadable(why);
                    Failure::option("--calibration", format!("{name}: {why}"))
                })?;
                Ok(Some(UsedCalibration {
                    calibration: saved.calibration,
                    reference: saved.reference,
                    file: Some(name),
                    independent: None,
                }))
            }
        }
    }

    /// Returns the rate of a clock: that of a counter by the calibration that is loaded, or made for this time.
    ///
    /// # Errors
    /// Those of `calibrate`.
    pub fn measure_rate(
        &self,
        counter: &MachineClock,
        during: Duration,
    ) -> Result<CalibratedRate, Failure> {
        if matches!(counter, MachineClock::System(_)) {
            return Ok(CalibratedRate::NANOSECONDS);
        }
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(Failure::run)?;
        let known = self.calibrate(&Ok(*counter), &raw, during)?;
        Ok(
            known.map_or(CalibratedRate::NANOSECONDS, |known| CalibratedRate {
                rate: known.calibration.rate(),
                uncertainty: known.calibration.uncertainty(),
            }),
        )
    }

    /// Calibrates as [`calibrate`](Self::calibrate) does, and measures the frequency of the
    /// counter meanwhile, unless the calibration is loaded.
    ///
    /// # Errors
    /// Those of `calibrate`.
    pub fn calibrate_with_frequency(
        &self,
        counter: &Result<impl Clock, ClockUnavailable>,
        raw: &SystemClock,
        during: Duration,
    ) -> Result<Option<UsedCalibration>, Failure> {
        let calibrate = || self.calibrate(counter, raw, during);
        let (Ok(clock), None) = (counter, &self.file) else {
            return calibrate();
        };
        let (known, independent) = IndependentRate::measure_during(clock, calibrate);
        Ok(known?.map(|known| UsedCalibration {
            independent,
            ..known
        }))
    }
}
