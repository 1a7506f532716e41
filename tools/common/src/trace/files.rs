//! Checks of input and output files.

use std::fs;
use std::path::Path;

use downbeat_trace::formats::{TraceFormat, TraceWriter};

use crate::Failure;

/// Checks the output of a correction of `input` as [`check_output`] does; an archive is written to a
/// new folder.
///
/// # Errors
/// As [`check_output`]; for an archive, if the folder exists or is the name of an anchor file.
pub fn check_corrected(
    option: &str,
    output: &Path,
    input: &Path,
    others: &[&Path],
) -> Result<(), Failure> {
    #[cfg(feature = "otf2")]
    if is_archive(input) {
        if is_archive(output) {
            let why = format!(
                "{}: an archive is written to a folder, not to a file",
                output.display()
            );
            return Err(Failure::option(option, why));
        }
        return downbeat_trace::formats::otf2::check_destination(output)
            .map_err(|why| Failure::option(option, why));
    }
    check_output(option, output, &[&[input], others].concat())
}

/// Checks, before hours of work, that a file can be written and is none of the input files.
///
/// # Errors
/// If it cannot be written or is an input file; the message names the option and the reason.
pub fn check_output(option: &str, output: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    if let Some(input) = inputs.iter().find(|input| is_same(input, output)) {
        let why = format!(
            "{} is the same file as {}, which is only read",
            output.display(),
            input.display()
        );
        return Err(Failure::option(option, why));
    }
    // Dropping the writer removes its temporary file.
    TraceWriter::create(output, TraceFormat::Text)
        .map(drop)
        .map_err(|why| Failure::option(option, why))
}

/// Returns true if two paths lead to the same file, also by hard or symbolic links.
fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity = |path: &Path| {
            fs::metadata(path)
                .ok()
                .map(|found| (found.dev(), found.ino()))
        };
        identity(one).is_some_and(|found| Some(found) == identity(other))
    }
    #[cfg(not(unix))]
    {
        fs::canonicalize(one)
            .is_ok_and(|found| fs::canonicalize(other).is_ok_and(|other| found == other))
    }
}

/// Returns true if this is the name of the anchor file of an OTF2 archive.
pub fn is_archive(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "otf2")
}

/// Returns the failure for an option that only applies to archives.
pub fn is_no_archive(option: &str, path: &Path) -> Failure {
    Failure::option(
        option,
        format!(
            "{} is not an OTF2 archive; this option only applies to archives",
            path.display()
        ),
    )
}

/// Returns the format that the name of the output selects, or `otherwise`.
pub fn format(output: &Path, otherwise: TraceFormat) -> TraceFormat {
    TraceFormat::from_path(output).unwrap_or(otherwise)
}
