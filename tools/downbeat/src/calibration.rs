//! A calibration of the time stamp counter: made now, or loaded from a file that an earlier `downbeat calibrate` saved.

use std::path::PathBuf;

use clap::Args;
use downbeat_timers::{
    Calibration, Duration, SavedCalibration, SystemClock, SystemClockId, TscClock, calibrate_during,
};

use crate::failure::Failure;

#[derive(Args, Debug, Default)]
pub(crate) struct CalibrationOptions {
    /// Use a saved calibration instead of making one
    #[arg(long = "calibration", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A calibration, and where it comes from.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) calibration: Calibration,
    pub(crate) reference: SystemClockId,
    /// `None` if it was made now.
    pub(crate) file: Option<String>,
}

impl CalibrationOptions {
    /// Loads the calibration, if that was asked for, or makes one.
    pub(crate) fn calibrate(&self, tsc: &TscClock, raw: &SystemClock, during: Duration) -> Result<Known, Failure> {
        let Some(path) = &self.file else {
            let calibration = calibrate_during(tsc, raw, during).map_err(Failure::run)?;
            return Ok(Known { calibration, reference: raw.id(), file: None });
        };
        let name = path.display().to_string();
        let saved = SavedCalibration::load(path);
        let saved = saved.map_err(|why| Failure::option("--calibration", format!("{name}: {why}")))?;
        Ok(Known { calibration: saved.calibration, reference: saved.reference, file: Some(name) })
    }
}
