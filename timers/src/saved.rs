//! Calibration files, for programs that should not spend time on their own calibration.
//!
//! The file is valid TOML. It holds the brackets, so that no information is lost, and the machine where they were taken,
//! because the counter of another machine, or of the same one after a reboot, can have another rate:
//!
//! ```toml
//! # 2600000012.000 ticks per second of CLOCK_MONOTONIC_RAW, steady to 0.8 ppm, certain to 4.1 ppm
//! version = 1
//! counter = "tsc"
//! reference = "CLOCK_MONOTONIC_RAW"
//! boot_id = "dccc1f75-e110-493e-b032-7dd8331eb070"
//! cpu_model = "AMD EPYC"
//! start = [1000, 500, 1100]
//! end = [261000, 100500, 261080]
//! crc32 = "36cd6d96"
//! ```
//!
//! The last line is the CRC-32 of all bytes before it.

use core::fmt;
use core::str::FromStr;
use std::fs;
use std::io;
use std::path::Path;

use downbeat_clock_core::Ticks;
use downbeat_files::checksum::{MISSING_CHECKSUM, WRONG_CHECKSUM};
use downbeat_files::{ChecksumLine, Checksums, Crc32, FileError, NewFile};

use crate::bracket::Bracket;
use crate::calibrate::{Calibration, CalibrationError};
use crate::{ClockName, SystemClockId};

const VERSION: &str = "1";
const CHECKSUM: ChecksumLine = ChecksumLine {
    before: "crc32 = \"",
    after: "\"",
};

/// Counters of processors.
const COUNTERS: [ClockName; 2] = [ClockName::Tsc, ClockName::Cntvct];

/// The machine that a calibration is valid for: one processor until the next reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's identifier of the current boot.
    pub boot_id: String,
    /// Model name of the processor; `unknown` where the kernel gives none, as on aarch64.
    pub cpu_model: String,
}

impl Machine {
    /// The machine that this program runs on.
    ///
    /// # Errors
    /// If the files of Linux that tell this cannot be read.
    pub fn this() -> io::Result<Self> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?
            .trim()
            .to_owned();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .unwrap_or("unknown");
        let cpu_model = model.trim_start_matches([' ', '\t', ':']).trim().to_owned();
        Ok(Self { boot_id, cpu_model })
    }
}

/// A calibration of a counter and the machine it is valid for.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedCalibration {
    /// The counter, which is that of the processor.
    pub counter: ClockName,
    /// The calibration.
    pub calibration: Calibration,
    /// Reference clock of the calibration.
    pub reference: SystemClockId,
    /// Machine that the calibration is valid for.
    pub machine: Machine,
}

impl SavedCalibration {
    /// Reads a calibration of this machine from a file. One that was edited by hand needs [`Checksums::Ignore`].
    ///
    /// # Errors
    /// If the file cannot be read, is malformed, or was made on another machine or before the last reboot.
    pub fn load(path: impl AsRef<Path>, checksums: Checksums) -> Result<Self, CalibrationError> {
        // A pipe or a device might never end.
        if !fs::metadata(&path)?.is_file() {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "it is not a file");
            return Err(why.into());
        }
        let saved = Self::parse(&fs::read_to_string(path)?, checksums)?;
        saved.check(&Machine::this()?)?;
        Ok(saved)
    }

    /// Writes the calibration to a file, which is replaced only when all is written.
    ///
    /// # Errors
    /// If the file cannot be written; the old file is still there then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        NewFile::replace(path.as_ref(), self.to_string().into_bytes())
    }

    fn check(&self, here: &Machine) -> Result<(), CalibrationError> {
        if self.machine.cpu_model != here.cpu_model {
            return Err(CalibrationError::OtherCpu(self.machine.cpu_model.clone()));
        }
        if self.machine.boot_id != here.boot_id {
            return Err(CalibrationError::OtherBoot);
        }
        Ok(())
    }
}

/// Prints the text of the file.
impl fmt::Display for SavedCalibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            counter,
            calibration,
            reference,
            machine,
        } = self;
        let rate = calibration.rate().hz();
        let [steady, certain] =
            [calibration.uncertainty(), calibration.certain_uncertainty()].map(|error| error * 1e6);
        let mut text = format!(
            "# {rate:.3} ticks per second of {reference}, steady to {steady:.3} ppm, certain to {certain:.3} ppm\n\
             version = {VERSION}\n\
             counter = \"{counter}\"\n\
             reference = \"{reference}\"\n\
             boot_id = \"{}\"\n\
             cpu_model = \"{}\"\n",
            machine.boot_id, machine.cpu_model
        );
        for (name, bracket) in [
            ("start", calibration.start()),
            ("end", calibration.last_bracket()),
        ] {
            let (before, reference) = (bracket.before.0, bracket.reference.0);
            text += &format!("{name} = [{before}, {reference}, {}]\n", bracket.after.0);
        }
        let checksum = CHECKSUM.line_of(Crc32::of_bytes(text.as_bytes()));
        writeln!(f, "{text}{checksum}")
    }
}

/// Reads the text of a file, and verifies its checksum.
impl FromStr for SavedCalibration {
    type Err = CalibrationError;

    fn from_str(text: &str) -> Result<Self, CalibrationError> {
        Self::parse(text, Checksums::Verify)
    }
}

impl SavedCalibration {
    fn parse(text: &str, checksums: Checksums) -> Result<Self, CalibrationError> {
        let lines = KeyValueLines::read(text)?;
        let is_version = |value| (value == VERSION).then_some(());
        lines.get("version", is_version, "this program reads version 1")?;
        if checksums == Checksums::Verify {
            check_checksum(text, &lines)?;
        }
        let counter = lines.get(
            "counter",
            |value| {
                COUNTERS
                    .into_iter()
                    .find(|name| quoted(value) == Some(name.as_str()))
            },
            "the counter is neither \"tsc\" nor \"cntvct\"",
        )?;
        let reference = lines.get(
            "reference",
            |value| {
                SystemClockId::ALL
                    .into_iter()
                    .find(|id| quoted(value) == Some(id.name()))
            },
            "no such reference clock",
        )?;
        let name = |value: &str| quoted(value).map(str::to_owned);
        let machine = Machine {
            boot_id: lines.get("boot_id", name, "not in quotes")?,
            cpu_model: lines.get("cpu_model", name, "not in quotes")?,
        };
        let three = "not three whole numbers in brackets, the last no smaller than the first";
        let start = lines.get("start", bracket, three)?;
        let end = lines.get("end", bracket, three)?;
        let calibration = Calibration::between_brackets(start, end)?;
        Ok(Self {
            counter,
            calibration,
            reference,
            machine,
        })
    }
}

/// Checks the last line of a file.
fn check_checksum(text: &str, lines: &KeyValueLines<'_>) -> Result<(), CalibrationError> {
    let start = text.rfind(CHECKSUM.before).unwrap_or(text.len());
    let expected = CHECKSUM.line_of(Crc32::of_bytes(&text.as_bytes()[..start]));
    let is_right = text[start..].strip_suffix('\n') == Some(&expected);
    let checked = lines.get("crc32", |_| is_right.then_some(()), WRONG_CHECKSUM);
    checked.map_err(|why| match why {
        CalibrationError::Missing(_) => CalibrationError::Line {
            number: text.lines().count() + 1,
            fault: MISSING_CHECKSUM,
        },
        wrong => wrong,
    })
}

/// Lines of the form `key = value`: line number, key and value.
struct KeyValueLines<'a>(Vec<(usize, &'a str, &'a str)>);

impl<'a> KeyValueLines<'a> {
    const KEYS: [&'static str; 8] = [
        "version",
        "counter",
        "reference",
        "boot_id",
        "cpu_model",
        "start",
        "end",
        "crc32",
    ];

    fn read(text: &'a str) -> Result<Self, CalibrationError> {
        let mut found = Self(Vec::new());
        for (i, line) in text.lines().enumerate() {
            let error = |fault| CalibrationError::Line {
                number: i + 1,
                fault,
            };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line
                .split_once('=')
                .ok_or(error("not of the form \"key = value\""))?;
            let (key, value) = (key.trim(), value.trim());
            if !Self::KEYS.contains(&key) {
                return Err(error("no such key"));
            }
            if found.0.iter().any(|(_, earlier, _)| *earlier == key) {
                return Err(error("duplicate key"));
            }
            found.0.push((i + 1, key, value));
        }
        Ok(found)
    }

    fn get<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&'a str) -> Option<T>,
        fault: &'static str,
    ) -> Result<T, CalibrationError> {
        let (number, _, value) = self
            .0
            .iter()
            .find(|(_, found, _)| *found == key)
            .ok_or(CalibrationError::Missing(key))?;
        parse(value).ok_or(CalibrationError::Line {
            number: *number,
            fault,
        })
    }
}

fn quoted(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

fn bracket(value: &str) -> Option<Bracket> {
    let mut numbers = value
        .strip_prefix('[')?
        .strip_suffix(']')?
        .split(',')
        .map(|number| number.trim().parse().ok());
    let mut next = || numbers.next().flatten().map(Ticks);
    let bracket = Bracket {
        before: next()?,
        reference: next()?,
        after: next()?,
    };
    (numbers.next().is_none() && bracket.after >= bracket.before).then_some(bracket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_files::testing::is_noticed;
    use proptest::prelude::*;

    fn sample() -> SavedCalibration {
        let bracket = |before, reference, after| Bracket {
            before: Ticks(before),
            reference: Ticks(reference),
            after: Ticks(after),
        };
        SavedCalibration {
            counter: ClockName::Tsc,
            calibration: Calibration::between_brackets(
                bracket(1_000, 500, 1_100),
                bracket(26_001_000, 10_000_500, 26_001_080),
            )
            .unwrap(),
            reference: SystemClockId::MonotonicRaw,
            machine: Machine {
                boot_id: "0-1".to_owned(),
                cpu_model: "A CPU @ 2 GHz".to_owned(),
            },
        }
    }

    /// The sample as it is written, and as every later version must read it.
    const GOLDEN: &str = "# 2599999000.000 ticks per second of CLOCK_MONOTONIC_RAW, steady to 0.985 ppm, certain to 3.677 ppm\n\
         version = 1\n\
         counter = \"tsc\"\n\
         reference = \"CLOCK_MONOTONIC_RAW\"\n\
         boot_id = \"0-1\"\n\
         cpu_model = \"A CPU @ 2 GHz\"\n\
         start = [1000, 500, 1100]\n\
         end = [26001000, 10000500, 26001080]\n\
         crc32 = \"bfc25d18\"\n";

    fn without_checksum() -> String {
        let text = sample().to_string();
        let lines = text.split_inclusive('\n');
        lines.filter(|line| !line.starts_with("crc32")).collect()
    }

    fn error(text: &str) -> String {
        text.parse::<SavedCalibration>().unwrap_err().to_string()
    }

    /// Error of a text that was edited.
    fn error_of_edited(text: &str) -> String {
        let read = SavedCalibration::parse(text, Checksums::Ignore);
        read.unwrap_err().to_string()
    }

    #[test]
    fn a_saved_calibration_is_loaded() {
        assert_eq!(
            sample().to_string().parse::<SavedCalibration>().unwrap(),
            sample()
        );
    }

    #[test]
    fn the_format_is_unchanged() {
        assert_eq!(sample().to_string(), GOLDEN);
    }

    #[test]
    fn a_calibration_of_the_generic_timer_is_loaded() {
        let saved = SavedCalibration {
            counter: ClockName::Cntvct,
            ..sample()
        };
        let text = saved.to_string();
        assert!(text.contains("counter = \"cntvct\"\n"));
        assert_eq!(text.parse::<SavedCalibration>().unwrap(), saved);
    }

    /// What an earlier program wrote called itself version 1, too.
    #[test]
    fn a_calibration_without_a_checksum_is_refused() {
        let missing = format!("line 9: {MISSING_CHECKSUM}");
        assert_eq!(error(&without_checksum()), missing);
    }

    #[test]
    fn every_change_of_a_file_is_noticed() {
        let text = sample().to_string();
        let is_wrong = |damaged: &[u8]| {
            let text = String::from_utf8(damaged.to_vec());
            text.map_or(true, |text| text.parse::<SavedCalibration>().is_err())
        };
        is_noticed(text.as_bytes(), is_wrong);
        for length in 0..text.len() {
            assert!(is_wrong(&text.as_bytes()[..length]), "{length}");
        }
        let edited = text.replace("26001000", "26001001");
        assert_eq!(
            error(&edited),
            "line 9: its checksum is wrong: the file was damaged or edited after it was written"
        );
        let found = SavedCalibration::parse(&edited, Checksums::Ignore).unwrap();
        assert_ne!(found, sample());
    }

    #[test]
    fn calibrations_of_other_machines_and_boots_are_rejected() {
        let saved = sample();
        let here = saved.machine.clone();
        assert!(saved.check(&here).is_ok());
        let rebooted = Machine {
            boot_id: "0-2".to_owned(),
            ..here.clone()
        };
        assert!(matches!(
            saved.check(&rebooted),
            Err(CalibrationError::OtherBoot)
        ));
        let elsewhere = Machine {
            cpu_model: "B".to_owned(),
            ..here
        };
        assert!(
            matches!(saved.check(&elsewhere), Err(CalibrationError::OtherCpu(cpu)) if cpu == "A CPU @ 2 GHz")
        );
    }

    #[test]
    fn this_machine_has_a_name() {
        let here = Machine::this().unwrap();
        assert!(!here.boot_id.is_empty() && !here.cpu_model.contains(':'));
        assert_eq!(Machine::this().unwrap(), here);
    }

    #[test]
    fn faults_are_reported_with_their_line() {
        let text = without_checksum();
        assert_eq!(error_of_edited(""), "the line \"version = ...\" is missing");
        assert_eq!(
            error_of_edited(&text.replace("end = ", "end ")),
            "line 8: not of the form \"key = value\""
        );
        assert_eq!(
            error_of_edited(&text.replace("version = 1", "version = 2")),
            "line 2: this program reads version 1"
        );
        assert_eq!(
            error_of_edited(&text.replace("\"tsc\"", "tsc")),
            "line 3: the counter is neither \"tsc\" nor \"cntvct\""
        );
        assert_eq!(
            error_of_edited(&text.replace("_RAW", "_ROW")),
            "line 4: no such reference clock"
        );
        assert_eq!(
            error_of_edited(&text.replace("1000,", "1e3,")),
            "line 7: not three whole numbers in brackets, the last no \
            smaller than the first"
        );
        assert_eq!(
            error_of_edited(&(text.clone() + "rate = 3")),
            "line 9: no such key"
        );
        assert_eq!(
            error_of_edited(&(text.clone() + "end = [1, 2, 3]")),
            "line 9: duplicate key"
        );
        let still = "the reference clock did not advance: calibrate for longer";
        assert_eq!(error_of_edited(&text.replace("10000500", "500")), still);
    }

    proptest! {
        #[test]
        fn no_truncation_and_no_changed_byte_panics(cut in 0_usize..400, at in 0_usize..400, byte in 0_u8..128) {
            let mut bytes = without_checksum().into_bytes();
            if let Some(old) = bytes.get_mut(at) {
                *old = byte;
            }
            bytes.truncate(cut);
            let _ = SavedCalibration::parse(&String::from_utf8(bytes).unwrap(), Checksums::Ignore);
        }

        #[test]
        fn no_text_panics(text: String, numbers: [u64; 6]) {
            let _ = text.parse::<SavedCalibration>();
            let [a, b, c, d, e, f] = numbers;
            let hostile = without_checksum()
                .replace("[1000, 500, 1100]", &format!("[{a}, {b}, {c}]"))
                .replace("[26001000, 10000500, 26001080]", &format!("[{d}, {e}, {f}]"));
            if let Ok(loaded) = SavedCalibration::parse(&hostile, Checksums::Ignore) {
                prop_assert!(loaded.calibration.uncertainty() >= 0.0);
                let _ = (loaded.calibration.model(), loaded.calibration.rate().hz());
            }
        }
    }
}
