//! Which files are read and written.

use std::fs;
use std::path::Path;

use downbeat_trace::formats::{TraceFormat, TraceWriter};

use crate::Failure;

/// The same as [`check_output`] for what is made of `input`: an archive is made in a folder of its own.
///
/// # Errors
/// As that.
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

/// Says no, before hours of work, where nothing can be written, or what is there is one of the files that are read.
///
/// # Errors
/// Names the option, and why.
pub fn check_output(option: &str, output: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    if let Some(input) = inputs.iter().find(|input| is_same(input, output)) {
        let why = format!(
            "{} is the same file as {}, which is only read",
            output.display(),
            input.display()
        );
        return Err(Failure::option(option, why));
    }
    // What was made goes away with it.
    TraceWriter::create(output, TraceFormat::Text)
        .map(drop)
        .map_err(|why| Failure::option(option, why))
}

/// Whether two names are of one file, by way of whatever links.
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

/// Whether this is the name of an archive.
pub fn is_archive(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "otf2")
}

/// That an option is for archives.
pub fn is_no_archive(option: &str, path: &Path) -> Failure {
    Failure::option(
        option,
        format!(
            "{} is not an OTF2 archive; this option only applies to archives",
            path.display()
        ),
    )
}

/// That of its name, or else the one given.
pub fn format(output: &Path, otherwise: TraceFormat) -> TraceFormat {
    TraceFormat::from_path(output).unwrap_or(otherwise)
}
