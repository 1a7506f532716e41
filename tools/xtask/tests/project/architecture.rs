//! Every path that the documents name exists, and every function in their tables.

use std::fs;
use std::path::Path;

use downbeat_launch::{Outcome, all_passed};

const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Checks all documents.
pub(crate) fn check_documents() -> Outcome {
    all_passed(DOCUMENTS.iter().filter_map(|name| check(name).err()))
}

fn check(document: &str) -> Outcome {
    let text = fs::read_to_string(document).map_err(|why| format!("{document}: {why}"))?;
    let paths = find_paths(&text);
    if paths.is_empty() {
        return Err(format!("{document} names no path"));
    }
    let missing = paths.iter().filter(|path| !Path::new(path).exists());
    let missing = missing.map(|path| format!("{document}: {path} does not exist"));
    let functions = find_functions(&text).into_iter();
    let unknown = functions.filter_map(|(function, file)| find_in(Path::new(file), function).err());
    all_passed(missing.chain(unknown.map(|why| format!("{document}: {why}"))))
}

/// Returns the functions in the rows of tables that name a function, then a file of Rust,
/// with the files.
fn find_functions(text: &str) -> Vec<(&str, &str)> {
    let cells = text.lines().map(|line| line.split('|').map(str::trim));
    let pairs = cells.filter_map(|cells| {
        let mut words = cells.filter_map(|cell| cell.strip_prefix('`')?.split('`').next());
        let (function, file) = (words.next()?, words.next()?);
        (!function.contains('/') && file.ends_with(".rs")).then_some((function, file))
    });
    pairs.collect()
}

/// Checks that a file defines a function, which may be one of a type in it.
fn find_in(file: &Path, function: &str) -> Outcome {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|why| format!("{shown}: {why}"))?;
    let (kind, name) = function.rsplit_once("::").unwrap_or(("", function));
    let is_defined = |line: &str| {
        let after = line
            .split_once(&format!("fn {name}"))
            .map(|(_, after)| after);
        after.is_some_and(|after| after.starts_with(['(', '<']))
    };
    let is_of_type = |line: &str| {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        line.starts_with("impl") && words.into_iter().any(|word| word == kind)
    };
    if text.lines().any(is_defined) && (kind.is_empty() || text.lines().any(is_of_type)) {
        return Ok(());
    }
    Err(format!("{shown} has no function {function}"))
}

/// Returns all words in backticks that are relative paths: made of the characters of
/// paths, with a slash.
fn find_paths(text: &str) -> Vec<&str> {
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
        assert_eq!(find_paths(text), ["tools/xtask/src/", "tests/src/lib.rs"]);
    }

    #[test]
    fn functions_in_tables_are_found_with_their_files() {
        let text = "| 1 | `send`, and more | `calls/message.rs` | a |\n| `a/b.rs` | `c/d.rs` |\n|---|\n`a` `b.rs`";
        assert_eq!(find_functions(text), [("send", "calls/message.rs")]);
    }

    #[test]
    fn each_way_passes_at_most_14_functions_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let ways = text
            .split("\n## ")
            .filter(|part| part.starts_with("Way of "));
        let ways: Vec<&str> = ways.collect();
        assert_eq!(ways.len(), 2);
        for way in ways {
            let functions = find_functions(way);
            assert!((10..=14).contains(&functions.len()), "{functions:?}");
            for (function, file) in functions {
                find_in(&root.join(file), function).unwrap();
            }
        }
        let file = root.join("measure/recording/src/packed.rs");
        for other in ["PackedBlock::unpack", "Packed::pack", "pac"] {
            assert!(find_in(&file, other).is_err(), "{other}");
        }
    }
}
