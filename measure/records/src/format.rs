//! File formats of records.

use core::fmt;
use core::str::FromStr;
use std::path::Path;

use super::RecordError;

/// File format of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFormat {
    /// CSV: one line for each observation.
    #[default]
    Csv,
    /// Parquet. Its index is at the end of the file; while a launch runs, it writes
    /// [`Csv`](Self::Csv).
    #[cfg(feature = "parquet")]
    Parquet,
}

impl RecordFormat {
    /// Formats that this library was built with.
    pub const ALL: &[Self] = &[
        Self::Csv,
        #[cfg(feature = "parquet")]
        Self::Parquet,
    ];

    /// Name of the format, and file name extension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
        }
    }

    /// Format of a file, by its extension.
    pub(super) fn from_path(path: &Path) -> Result<Self, RecordError> {
        let end = path.extension().unwrap_or_default().to_string_lossy();
        Self::find(&end).ok_or_else(|| RecordError::content(path, unknown(&end)))
    }

    fn find(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|format| format.name() == name)
    }
}

/// Extension of records in JSON lines, which are refused and not overlooked.
const JSON_LINES: &str = "jsonl";

/// Extensions of all record files, including formats that this library was built without.
pub(super) const ENDS: [&str; 3] = ["csv", JSON_LINES, "parquet"];

fn unknown(name: &str) -> String {
    if name == JSON_LINES {
        return "records in JSON lines are not supported; a record is CSV or Parquet".to_owned();
    }
    let known: Vec<&str> = RecordFormat::ALL
        .iter()
        .map(|format| format.name())
        .collect();
    let known = known.join(", ");
    if ENDS.contains(&name) {
        return format!("this program was built without the format \"{name}\": it has {known}");
    }
    format!("unknown format \"{name}\"; known are {known}")
}

/// Writes the name.
impl fmt::Display for RecordFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RecordFormat {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<Self, RecordError> {
        Self::find(text).ok_or_else(|| RecordError::Format(unknown(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_named() {
        for format in RecordFormat::ALL {
            assert_eq!(format.to_string().parse::<RecordFormat>().unwrap(), *format);
        }
        let error = "xml".parse::<RecordFormat>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown format \"xml\"; known are csv"),
            "{error}"
        );
        assert_eq!(
            RecordFormat::from_path(Path::new("a/b.c.csv")).unwrap(),
            RecordFormat::Csv
        );
        assert!(RecordFormat::from_path(Path::new("csv")).is_err());
    }

    #[test]
    fn records_in_json_lines_are_refused() {
        let refused = "records in JSON lines are not supported; a record is CSV or Parquet";
        let error = "jsonl".parse::<RecordFormat>().unwrap_err();
        assert_eq!(error.to_string(), refused);
        let error = RecordFormat::from_path(Path::new("a.jsonl")).unwrap_err();
        assert_eq!(error.to_string(), format!("a.jsonl: {refused}"));
    }

    #[cfg(not(feature = "parquet"))]
    #[test]
    fn formats_that_were_not_built_are_recognized() {
        let error = "parquet".parse::<RecordFormat>().unwrap_err().to_string();
        assert!(
            error.starts_with("this program was built without the format \"parquet\""),
            "{error}"
        );
    }
}
