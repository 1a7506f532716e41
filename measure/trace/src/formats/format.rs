//! The two ways to write a trace.

use std::path::Path;

/// How a trace is written. When one is read, its first bytes say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceFormat {
    /// As lines of text, `*.dbt`.
    Text,
    /// As bytes, a third as many, `*.dbtb`.
    Binary,
}

impl TraceFormat {
    /// The one that the name of a file stands for; `None`, if it ends in neither way.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "dbt" => Some(Self::Text),
            "dbtb" => Some(Self::Binary),
            _ => None,
        }
    }
}
