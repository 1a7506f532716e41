//! Passes the compiler and its options on, which records of results state.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=DOWNBEAT_COMPILER={}", compiler());
}

/// Describes the compiler, its target and its options in one line.
fn compiler() -> String {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let rustc = Command::new(variable("RUSTC")).arg("--version").output();
    let version = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    // Options are separated by a character that none contains.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    let parts = [
        version.unwrap_or_else(|_| "unknown rustc".to_owned()),
        variable("TARGET"),
        format!("opt-level {}", variable("OPT_LEVEL")),
        flags,
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .map(|part| part.replace('\n', " "))
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("; ")
}
