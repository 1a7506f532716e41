//! Front pages: README.md is what registries show, and the beginning of a library's
//! documentation. Its lines for Cargo.toml and its example are all that a new user's
//! package needs.

use std::fs;
use std::path::Path;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::{Outcome, all_passed};

use crate::workspace::{Package, Workspace};

/// Returns what a front page lacks.
pub(crate) fn flaws(package: &Package, readme: &str) -> Vec<String> {
    let mut flaws = vec![];
    let mut demand = |holds: bool, flaw: String| {
        if !holds {
            flaws.push(format!("README.md {flaw}"));
        }
    };
    if package.is_library() {
        let dependency = format!("{} = ", package.name);
        let manifest = block(readme, "toml").unwrap_or_default();
        demand(
            manifest.contains("[dependencies]") && manifest.contains(&dependency),
            format!("has no lines for Cargo.toml with `{dependency}...`"),
        );
        let example = block(readme, "rust").unwrap_or_default();
        demand(
            example.contains("fn main()") && !example.lines().any(|line| line.starts_with("# ")),
            "has no example with `fn main()` and without hidden lines".to_owned(),
        );
    } else {
        let install = format!("cargo install {}", package.name);
        demand(
            readme.contains(&install),
            format!("does not say `{install}`"),
        );
    }
    demand(
        readme.contains("https://docs.rs/"),
        "has no link to related crates".to_owned(),
    );
    demand(
        readme.contains("**Platforms:**"),
        "names no platforms".to_owned(),
    );
    let rust = format!("**Rust:** {} or later", package.registry.rust_version);
    demand(readme.contains(&rust), format!("does not say `{rust}`"));
    flaws
}

/// Makes a package of each library's lines for Cargo.toml and its example, in a workspace
/// of their own, and checks that each compiles. One by one: cargo would give each the
/// features of all.
pub(crate) fn build(workspace: &Workspace) -> Outcome {
    let folder = workspace.built("front-pages");
    let libraries: Vec<&Package> = workspace
        .published()
        .filter(|package| package.is_library())
        .collect();
    write(&folder, workspace, &libraries).map_err(|why| format!("{}: {why}", folder.display()))?;
    let failures = libraries.iter().filter_map(|package| {
        let mut check = command("cargo check --manifest-path");
        check
            .arg(folder.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(folder.join("target"))
            .args(["-p", &user_of(package)])
            .env("RUSTFLAGS", "-D warnings");
        let failure = shell::run(&mut check).err()?;
        Some(format!("example of {}: {failure}", package.name))
    });
    all_passed(failures.collect::<Vec<_>>())
}

/// Name of the package that uses another one.
fn user_of(package: &Package) -> String {
    format!("user-of-{}", package.name)
}

fn write(folder: &Path, workspace: &Workspace, libraries: &[&Package]) -> std::io::Result<()> {
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"user-of-*\"]\n\n".to_owned();
    manifest.push_str(&super::lock_file::from_folders(workspace));
    fs::create_dir_all(folder)?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
    // The same versions of other packages, which were downloaded before.
    fs::copy("Cargo.lock", folder.join("Cargo.lock"))?;
    for package in libraries {
        let readme = fs::read_to_string(package.root.join("README.md"))?;
        let sources = folder.join(user_of(package)).join("src");
        fs::create_dir_all(&sources)?;
        let manifest = format!(
            "[package]\nname = \"{}\"\nedition = \"2024\"\n\n{}",
            user_of(package),
            block(&readme, "toml").unwrap_or_default()
        );
        fs::write(folder.join(user_of(package)).join("Cargo.toml"), manifest)?;
        fs::write(
            sources.join("main.rs"),
            block(&readme, "rust").unwrap_or_default(),
        )?;
    }
    Ok(())
}

/// Returns the text of the first block of code in this language.
fn block<'a>(text: &'a str, language: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("```{language}\n"))?;
    rest.split_once("```").map(|(block, _)| block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::RegistryEntry;

    fn package(kind: &str) -> Package {
        Package {
            name: "it".into(),
            root: ".".into(),
            published: true,
            categories: vec![],
            registry: RegistryEntry {
                rust_version: "1.88".into(),
                ..RegistryEntry::default()
            },
            features: [].into(),
            has_library: kind == "lib",
        }
    }

    const COMPLETE: &str = "A thing.\n\n```toml\n[dependencies]\nit = \"0.1\"\n```\n\n```rust\nfn main() {}\n```\n\n\
        See https://docs.rs/that.\n\n**Platforms:** all.\n\n**Rust:** 1.88 or later.\n";

    #[test]
    fn a_complete_page_has_no_flaws() {
        assert_eq!(flaws(&package("lib"), COMPLETE), [""; 0]);
    }

    #[test]
    fn each_part_of_a_page_is_demanded() {
        let parts = [
            (
                "it = \"0.1\"",
                "has no lines for Cargo.toml with `it = ...`",
            ),
            (
                "fn main() {}",
                "has no example with `fn main()` and without hidden lines",
            ),
            ("https://docs.rs/that", "has no link to related crates"),
            ("**Platforms:**", "names no platforms"),
            ("**Rust:** 1.88", "does not say `**Rust:** 1.88 or later`"),
        ];
        for (part, flaw) in parts {
            let without = COMPLETE.replace(part, "");
            assert_eq!(
                flaws(&package("lib"), &without),
                [format!("README.md {flaw}")]
            );
        }
        let hidden = COMPLETE.replace("fn main() {}", "# fn main() {}");
        assert_eq!(flaws(&package("lib"), &hidden).len(), 1);
        assert_eq!(
            flaws(&package("bin"), COMPLETE),
            ["README.md does not say `cargo install it`"]
        );
    }
}
