//! Files outside of a package that its sources name: they are missing where the package
//! is unpacked.

/// Macros and attributes whose paths are relative to the folder of the file.
const RELATIVE_TO_FILE: [&str; 4] = ["include!", "include_str!", "include_bytes!", "#[path"];

/// Variable that contains the root of the package.
const ROOT: &str = "CARGO_MANIFEST_DIR";

/// Returns the paths in a file of a package that lead out of it; `file` is relative to
/// the root of the package.
///
/// Paths that are made while a program runs are not found.
pub(crate) fn named_in<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = &'a str> {
    let depth = file.split('/').count() - 1;
    let names_root = text.contains(ROOT);
    text.lines().flat_map(move |line| {
        let relative = RELATIVE_TO_FILE.iter().any(|word| line.contains(word));
        let inside = if relative { depth } else { 0 };
        let literals = line.split('"').skip(1).step_by(2);
        literals.filter(move |path| (relative || names_root) && leads_out(path, inside))
    })
}

/// Tells if a path leaves the root, from a folder that is `depth` folders below it.
fn leads_out(path: &str, depth: usize) -> bool {
    let mut below = depth;
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if part != ".." {
            below += 1;
        } else if below == 0 {
            return true;
        } else {
            below -= 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<String> {
        named_in(file, text).map(String::from).collect()
    }

    #[test]
    fn paths_of_macros_are_relative_to_the_file() {
        let own = "#[path = \"../examples/copy.rs\"]\nconst A: &str = include_str!(\"../a.toml\");";
        assert_eq!(found("tests/tools.rs", own), [""; 0]);
        let foreign = "#[path = \"../../x.rs\"]\nconst A: &str = include_str!(\"../../a.toml\");";
        assert_eq!(
            found("tests/tools.rs", foreign),
            ["../../x.rs", "../../a.toml"]
        );
    }

    #[test]
    fn other_paths_are_relative_to_the_root() {
        let own = "concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/tests/a.c\")";
        assert_eq!(found("tests/tools.rs", own), [""; 0]);
        let foreign = "concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/tests/../../a.c\")";
        assert_eq!(found("tests/tools.rs", foreign), ["/tests/../../a.c"]);
        // Input of a test, and no path of its own.
        assert_eq!(found("tests/run.rs", "launch(\"../x\")"), [""; 0]);
    }
}
