//! Programs in the documents are those that are compiled.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new("..").join(path)).unwrap()
}

/// Checks that a document has the part of a source file that begins with this line.
fn assert_shown(document: &str, source: &str, begin: &str) {
    let source = read(source);
    let shown = &source[source.find(begin).unwrap()..];
    let text = read(document);
    assert!(
        text.contains(shown.trim_end()),
        "{document} does not show this:\n{shown}"
    );
}

#[test]
fn the_program_of_the_readme_is_an_example() {
    for document in ["README.md", "docs/rust.md"] {
        assert_shown(
            document,
            "tools/downbeat/examples/global_time.rs",
            "use downbeat",
        );
    }
}

#[test]
fn the_programs_of_other_languages_are_compiled() {
    for (document, source) in [
        ("docs/c.md", "hello.c"),
        ("docs/cpp.md", "hello.cpp"),
        ("docs/fortran.md", "hello.f90"),
    ] {
        assert_shown(document, &format!("tools/capi/examples/{source}"), "");
    }
}
