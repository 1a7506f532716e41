//! A calibration of the time stamp counter: made now, or loaded from a file that an earlier `downbeat calibrate` saved.

use std::path::PathBuf;

use clap::Args;
use downbeat_timers::{
    Calibration, ClockUnavailable, Duration, SavedCalibration, SystemClock, SystemClockId,
    TscClock, calibrate_during,
};

use crate::Failure;

/// The options that name a saved calibration.
#[derive(Args, Clone, Debug, Default)]
pub struct CalibrationOptions {
    /// Use a saved calibration instead of making one
    #[arg(long = "calibration", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A calibration, and where it comes from.
#[derive(Debug)]
pub struct UsedCalibration {
    /// The calibration.
    pub calibration: Calibration,
    /// The clock that the counter was compared with.
    pub reference: SystemClockId,
    /// `None` if it was made now.
    pub file: Option<String>,
}

impl CalibrationOptions {
    /// Loads the calibration, if that was asked for, or makes one. Without a counter there is none.
    ///
    /// # Errors
    /// When the file holds none for this machine, when there is a file but no counter to apply it to, or when the
    /// counter cannot be calibrated.
    pub fn calibrate(
        &self,
        tsc: &Result<TscClock, ClockUnavailable>,
        raw: &SystemClock,
        during: Duration,
    ) -> Result<Option<UsedCalibration>, Failure> {
        match (tsc, &self.file) {
            (Err(_), None) => Ok(None),
            (Err(why), Some(_)) => Err(Failure::option(
                "--calibration",
                format!("there is no counter that it could be used for: {why}"),
            )),
            (Ok(tsc), None) => {
                let calibration = calibrate_during(tsc, raw, during).map_err(Failure::run)?;
                Ok(Some(UsedCalibration {
                    calibration,
                    reference: raw.id(),
                    file: None,
                }))
            }
            (Ok(_), Some(path)) => {
                let name = path.display().to_string();
                let saved = SavedCalibration::load(path);
                let saved = saved
                    .map_err(|why| Failure::option("--calibration", format!("{name}: {why}")))?;
                Ok(Some(UsedCalibration {
                    calibration: saved.calibration,
                    reference: saved.reference,
                    file: Some(name),
                }))
            }
        }
    }
}
