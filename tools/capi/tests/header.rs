//! The committed header is that of the sources.

use std::env;
use std::fs;
use std::path::Path;

const UPDATE: &str = "DOWNBEAT_UPDATE_HEADER";

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    config.trailer = Some(fs::read_to_string(root.join("src/inline.h")).unwrap());
    let builder = cbindgen::Builder::new().with_crate(root);
    let mut made = Vec::new();
    builder
        .with_config(config)
        .generate()
        .unwrap()
        .write(&mut made);
    let made = without_safety(&String::from_utf8(made).unwrap());
    let path = root.join("include/downbeat.h");
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == committed,
        "{} is not current: run this test with {UPDATE}=1",
        path.display()
    );
}

/// Leaves out the sections of Rust's documentation that the introduction of the header replaces.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in header.lines() {
        inside = (inside && line.starts_with("//")) || line == "// # Safety";
        if line == "// # Safety" && kept.last() == Some(&"//") {
            kept.pop();
        }
        if !inside {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}
