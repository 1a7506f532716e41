//! The two formats of trace files.

use std::path::Path;

/// Format of a trace file. When a file is read, its first bytes tell its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceFormat {
    /// Lines of text, `*.dbt`.
    Text,
    /// Binary, a third of the size, `*.dbtb`.
    Binary,
}

impl TraceFormat {
    /// Returns the format that the extension of a file names; `None` for other extensions.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "dbt" => Some(Self::Text),
            "dbtb" => Some(Self::Binary),
            _ => None,
        }
    }
}
