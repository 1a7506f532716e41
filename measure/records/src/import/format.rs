//! Suites whose outputs can be imported.

use core::fmt;
use core::str::FromStr;

/// Benchmark suite whose output can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImportFormat {
    /// OSU Micro-Benchmarks, as printed.
    Osu,
    /// Intel MPI Benchmarks, as printed.
    Imb,
    /// Raw data of ReproMPI, with or without the times of each process.
    Reprompi,
    /// JSON export of hyperfine.
    #[cfg(feature = "json")]
    Hyperfine,
}

impl ImportFormat {
    /// Formats that this library was built with.
    pub const ALL: &[Self] = &[
        Self::Osu,
        Self::Imb,
        Self::Reprompi,
        #[cfg(feature = "json")]
        Self::Hyperfine,
    ];

    /// Name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Osu => "osu",
            Self::Imb => "imb",
            Self::Reprompi => "reprompi",
            #[cfg(feature = "json")]
            Self::Hyperfine => "hyperfine",
        }
    }

    /// Names of all formats, for messages.
    pub(super) fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
        names.join(", ")
    }
}

/// Writes the name.
impl fmt::Display for ImportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ImportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|format| format.name() == text);
        known.copied().ok_or_else(|| {
            let names = Self::names();
            format!(
                "unknown suite \"{}\"; known are {names}",
                text.escape_debug()
            )
        })
    }
}
