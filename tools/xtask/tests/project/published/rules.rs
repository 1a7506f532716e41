//! Rules for the manifest and the files of a published package.

use crate::workspace::Package;

/// Files that each package has for itself: a reader of an archive has no other.
const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Returns what is wrong with a package that contains these files.
pub(crate) fn flaws(package: &Package, files: &[String]) -> Vec<String> {
    let entry = &package.registry;
    let mut flaws = vec![];
    let texts = [
        ("description", &entry.description),
        ("repository", &entry.repository),
        ("documentation", &entry.documentation),
        ("readme", &entry.readme),
        ("license", &entry.license),
        ("rust-version", &entry.rust_version),
    ];
    let lists = [
        ("keywords", &entry.keywords),
        ("categories", &package.categories),
    ];
    let empty_texts = texts.iter().filter(|(_, text)| text.is_empty());
    let empty_lists = lists.iter().filter(|(_, list)| list.is_empty());
    let missing = empty_texts
        .map(|(field, _)| *field)
        .chain(empty_lists.map(|(field, _)| *field));
    flaws.extend(missing.map(|field| format!("its manifest has no {field}")));
    let left_out = FILES
        .iter()
        .filter(|wanted| !files.iter().any(|file| file == *wanted));
    flaws.extend(left_out.map(|file| format!("its archive has no {file}")));
    if package.is_library() {
        flaws.extend(flaws_of_documentation(package));
    }
    flaws
}

/// A library is documented with all features that its users choose, so that their items
/// are visible; those that others enable need not be named.
fn flaws_of_documentation(package: &Package) -> Vec<String> {
    let documented = &package.registry.documented_features;
    let enabled = |feature: &str| {
        documented.iter().any(|name| {
            let enables = package.features.get(name);
            name == feature || enables.is_some_and(|names| names.iter().any(|one| one == feature))
        })
    };
    let default = package.features.get("default");
    let hidden = package
        .choices()
        .filter(|name| !enabled(name))
        .filter(|name| !default.is_some_and(|names| names.iter().any(|one| one == name)));
    hidden
        .map(|name| format!("docs.rs does not show its feature {name}"))
        .collect()
}

/// Returns what is wrong with the root of a library.
pub(crate) fn flaws_of_library(text: &str) -> Vec<String> {
    let wanted = [
        (
            "#![doc = include_str!(\"../README.md\")]",
            "its documentation does not begin with README.md",
        ),
        (
            "#![cfg_attr(docsrs, feature(doc_cfg))]",
            "docs.rs does not tell which items need a feature: src/lib.rs enables no doc_cfg",
        ),
    ];
    let missing = wanted.iter().filter(|(line, _)| !text.contains(line));
    missing.map(|(_, flaw)| (*flaw).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{MPI, RegistryEntry};

    fn package() -> Package {
        Package {
            name: "it".into(),
            root: ".".into(),
            published: true,
            categories: vec!["science".into()],
            registry: RegistryEntry {
                description: "Something".into(),
                repository: "https://example.org".into(),
                documentation: "https://docs.rs/it".into(),
                readme: "README.md".into(),
                license: "MIT".into(),
                keywords: vec!["clock".into()],
                rust_version: "1.88".into(),
                documented_features: vec![MPI.into()],
            },
            features: [
                ("default".into(), vec!["std".into()]),
                ("std".into(), vec![]),
                (MPI.into(), vec!["ranks".into()]),
                ("ranks".into(), vec![]),
                ("otf2-tools".into(), vec![]),
            ]
            .into(),
            has_library: true,
        }
    }

    fn files() -> Vec<String> {
        FILES.map(String::from).into()
    }

    #[test]
    fn a_complete_package_has_no_flaws() {
        assert_eq!(flaws(&package(), &files()), Vec::<String>::new());
    }

    #[test]
    fn each_missing_field_is_named() {
        let empty = Package {
            categories: vec![],
            registry: RegistryEntry {
                documented_features: vec![MPI.into()],
                ..RegistryEntry::default()
            },
            ..package()
        };
        let fields = [
            "description",
            "repository",
            "documentation",
            "readme",
            "license",
            "rust-version",
            "keywords",
            "categories",
        ];
        let expected = fields.map(|field| format!("its manifest has no {field}"));
        assert_eq!(flaws(&empty, &files()), expected);
    }

    #[test]
    fn each_missing_file_is_named() {
        let expected = FILES.map(|file| format!("its archive has no {file}"));
        assert_eq!(flaws(&package(), &[]), expected);
    }

    #[test]
    fn a_feature_that_is_not_documented_is_named() {
        let mut hidden = package();
        hidden.registry.documented_features.clear();
        assert_eq!(
            flaws(&hidden, &files()),
            [
                "docs.rs does not show its feature mpi",
                "docs.rs does not show its feature ranks"
            ]
        );
        hidden.has_library = false;
        assert_eq!(flaws(&hidden, &files()), Vec::<String>::new());
    }

    #[test]
    fn the_root_of_a_library_is_checked() {
        assert_eq!(flaws_of_library("").len(), 2);
        let complete =
            "#![doc = include_str!(\"../README.md\")]\n#![cfg_attr(docsrs, feature(doc_cfg))]\n";
        assert_eq!(flaws_of_library(complete), Vec::<String>::new());
    }
}
