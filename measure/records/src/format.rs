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
    /// JSON Lines: one object for each group.
    #[cfg(feature = "json")]
    JsonLines,
    /// Parquet. Its index is at the end of the file; while a launch runs, it writes
    /// [`Csv`](Self::Csv).
    #[cfg(feature = "parquet")]
    Parquet,
}

impl RecordFormat {
    /// Formats that this library was built with.
    pub const ALL: &[Self] = &[
        Self::Csv,
        #[cfg(feature = "json")]
        Self::JsonLines,
        #[cfg(feature = "parquet")]
        Self::Parquet,
    ];

    /// Name of the format, and file name extension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            #[cfg(feature = "json")]
            Self::JsonLines => "jsonl",
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
        }
    }

    /// Format of a file, by its extension.
    pub(super) fn from_path(path: &Path) -> Result<Self, RecordError> {
        let end = path.extension().unwrap_or_default().to_string_lossy();
        let known = Self::ALL
            .iter()
            .copied()
            .find(|format| format.name() == end);
        known.ok_or_else(|| RecordError::content(path, unknown(&end)))
    }
}

/// Extensions of all record files, including formats that this library was built without.
pub(super) const ENDS: [&str; 3] = ["csv", "jsonl", "parquet"];

fn unknown(name: &str) -> String {
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
        let known = Self::ALL
            .iter()
            .copied()
            .find(|format| format.name() == text);
        known.ok_or_else(|| RecordError::Format(unknown(text)))
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

    #[cfg(not(feature = "json"))]
    #[test]
    fn formats_that_were_not_built_are_recognized() {
        let error = "jsonl".parse::<RecordFormat>().unwrap_err().to_string();
        assert!(
            error.starts_with("this program was built without the format \"jsonl\""),
            "{error}"
        );
    }
}
