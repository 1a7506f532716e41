//! Every path that the documents name exists.

use std::fs;
use std::path::Path;

use downbeat_launch::Outcome;

use crate::steps::{Step, all_passed};

const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

pub(crate) fn step<'a>() -> Step<'a> {
    Step::new("paths in the documents exist", || {
        all_passed(DOCUMENTS.iter().filter_map(|name| check(name).err()))
    })
}

fn check(document: &str) -> Outcome {
    let text = fs::read_to_string(document).map_err(|why| format!("{document}: {why}"))?;
    let paths = paths(&text);
    if paths.is_empty() {
        return Err(format!("{document} names no path"));
    }
    let missing = paths.iter().filter(|path| !Path::new(path).exists());
    all_passed(missing.map(|path| format!("{document}: {path} does not exist")))
}

/// Returns all words in backticks that are relative paths: made of the characters of
/// paths, with a slash.
fn paths(text: &str) -> Vec<&str> {
    let in_backticks = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    in_backticks
        .filter(|word| word.contains('/') && !word.starts_with('/') && word.chars().all(plain))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_in_backticks_are_found() {
        let text = "| a | `tools/xtask/src/`, `args.rs`; not/this, `/proc/cpuinfo`, `cargo a/b` |\nand `tests/src/lib.rs`";
        assert_eq!(paths(text), ["tools/xtask/src/", "tests/src/lib.rs"]);
    }
}
