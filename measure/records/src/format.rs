//! How records can be written.

use core::fmt;
use core::str::FromStr;
use std::path::Path;

use super::RecordError;

/// How records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFormat {
    /// A line for each observation, with commas.
    #[default]
    Csv,
    /// A JSON object for each group, on a line.
    #[cfg(feature = "json")]
    JsonLines,
    /// Columns in binary. Its index is at its end: while a launch runs there is a [`Csv`](Self::Csv) file.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl RecordFormat {
    /// All that this library was built with.
    pub const ALL: &[Self] = &[
        Self::Csv,
        #[cfg(feature = "json")]
        Self::JsonLines,
        #[cfg(feature = "parquet")]
        Self::Parquet,
    ];

    /// As users write it, and as names of files end.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            #[cfg(feature = "json")]
            Self::JsonLines => "jsonl",
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
        }
    }

    /// That of a file, by the end of its name.
    pub(super) fn from_path(path: &Path) -> Result<Self, RecordError> {
        let end = path.extension().unwrap_or_default().to_string_lossy();
        let known = Self::ALL
            .iter()
            .copied()
            .find(|format| format.name() == end);
        known.ok_or_else(|| RecordError::content(path, unknown(&end)))
    }
}

/// The ends of the names of all record files, also of those that this library was built without.
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
    format!("there is no format \"{name}\": there are {known}")
}

/// Its name.
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
            error.starts_with("there is no format \"xml\": there are csv"),
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
    fn a_format_that_was_left_out_is_known_as_such() {
        let error = "jsonl".parse::<RecordFormat>().unwrap_err().to_string();
        assert!(
            error.starts_with("this program was built without the format \"jsonl\""),
            "{error}"
        );
    }
}
