//! No file of a crate imports from a file that imports from it, directly or through
//! others.
//!
//! A path such as `crate::a::b::Name` leads to the file that defines the name: re-exports
//! and imports on the way are followed. What a file merely re-exports from its submodules
//! ties it to nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use downbeat_launch::{Outcome, all_passed};

use crate::workspace::{Workspace, rust_files};

/// Path of a module, or of an item in it, from the root of the crate.
type Names = Vec<String>;

#[derive(Default)]
struct Module {
    /// Imported names, with their paths.
    imports: BTreeMap<String, Names>,
    /// Paths that the code names, without re-exports.
    paths: BTreeSet<Names>,
}

/// Checks all packages.
pub(crate) fn check_packages(workspace: &Workspace) -> Outcome {
    let folders = workspace
        .packages
        .iter()
        .map(|package| package.root.join("src"));
    all_passed(folders.filter_map(|folder| check(&folder).err()))
}

fn check(folder: &Path) -> Outcome {
    let mut texts = BTreeMap::new();
    for file in rust_files(folder) {
        let text = fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        let name = file.with_extension("");
        let names = name.iter().skip(folder.iter().count());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let names = names.filter(|name| !["lib", "main", "mod"].contains(&name.as_str()));
        texts.insert(names.collect(), text);
    }
    all_passed(cycles(&texts).iter().map(|(from, to)| {
        let [from, to] = [from, to].map(|names| format!("crate::{}", names.join("::")));
        format!(
            "{}: {from} imports from {to}, which leads back",
            folder.display()
        )
    }))
}

/// Returns the imports that are part of a cycle.
fn cycles(texts: &BTreeMap<Names, String>) -> BTreeSet<(Names, Names)> {
    let modules: BTreeMap<&Names, Module> = texts
        .iter()
        .map(|(name, text)| (name, module(name, text, texts)))
        .collect();
    let mut edges = BTreeSet::new();
    for (name, module) in &modules {
        let targets = module.paths.iter().map(|path| definer(path, &modules, 0));
        edges.extend(
            targets
                .filter(|to| to != *name)
                .map(|to| ((*name).clone(), to)),
        );
    }
    let reaches = |from: &Names, goal: &Names| {
        let (mut reached, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(next) = waiting.pop() {
            let onward = edges.iter().filter(|(from, _)| from == next);
            waiting.extend(onward.map(|(_, to)| to).filter(|to| reached.insert(*to)));
        }
        reached.contains(goal)
    };
    let in_cycle = edges.iter().filter(|(from, to)| reaches(to, from));
    in_cycle.cloned().collect()
}

/// Returns the lines of code without tests, each import in one line, and paths in inline
/// modules as seen from the file.
fn code(text: &str) -> Vec<String> {
    let tests = text.find("#[cfg(test)]\nmod tests {");
    let mut code: Vec<String> = Vec::new();
    let (mut import, mut inline) = (false, false);
    for line in text[..tests.unwrap_or(text.len())].lines() {
        let words = line.trim_start();
        if words.starts_with("//") {
            continue;
        }
        inline = line != "}" && (inline || line.contains("mod ") && line.ends_with('{'));
        let seen = if inline {
            words.replacen("super::", "self::", 1)
        } else {
            words.to_owned()
        };
        match code.last_mut() {
            Some(last) if import => last.push_str(&seen),
            _ => code.push(seen),
        }
        import = (import || is_import(words)) && !line.ends_with(';');
    }
    code
}

fn is_import(line: &str) -> bool {
    let visibility = line.split_once("use ").map(|(before, _)| before);
    visibility.is_some_and(|before| before.is_empty() || before.starts_with("pub"))
}

fn is_separator(c: char) -> bool {
    !c.is_alphanumeric() && !"_:".contains(c)
}

/// Reads the imports and paths of a module.
fn module(name: &Names, text: &str, texts: &BTreeMap<Names, String>) -> Module {
    let mut module = Module::default();
    for line in code(text) {
        let Some((visibility, tree)) = line.split_once("use ").filter(|_| is_import(&line)) else {
            let visibility = line
                .split_once("pub(in ")
                .and_then(|(_, rest)| rest.split_once(')'));
            let line = visibility.map_or(&*line, |(_, rest)| rest);
            // Not in strings.
            let code = line.split('"').step_by(2);
            let words = code.flat_map(|code| code.split(is_separator));
            let paths = words.map(|word| word.trim_matches(':'));
            let paths = paths.filter(|path| path.contains("::"));
            module
                .paths
                .extend(paths.filter_map(|path| absolute(path, name, texts)));
            continue;
        };
        for leaf in leaves(tree) {
            let path = leaf.split(" as ").next().unwrap_or_default();
            let Some(path) = absolute(path, name, texts) else {
                continue;
            };
            if visibility.is_empty() || !path.starts_with(name) {
                module.paths.insert(path.clone());
            }
            let leaf = leaf.trim_end_matches("::self");
            let last = leaf.rsplit([' ', ':']).next().unwrap_or_default();
            module.imports.insert(last.to_owned(), path);
        }
    }
    module
}

/// Splits `a::{b, c::{d, e}};` into `a::b`, `a::c::d` and `a::c::e`.
fn leaves(tree: &str) -> Vec<String> {
    let (mut prefix, mut outer, mut leaves) = (String::new(), Vec::new(), Vec::new());
    for part in tree.split_inclusive(['{', '}', ',', ';']) {
        let name = part[..part.len() - 1].trim();
        if part.ends_with('{') {
            outer.push(prefix.clone());
            prefix += name;
        } else if !name.is_empty() {
            leaves.push(format!("{prefix}{name}"));
        }
        if part.ends_with('}') {
            prefix = outer.pop().unwrap_or_default();
        }
    }
    leaves
}

/// Converts a path to one from the root of the crate; `None` if it leads to another
/// crate.
fn absolute(path: &str, module: &Names, texts: &BTreeMap<Names, String>) -> Option<Names> {
    let mut absolute = module.clone();
    for (i, name) in path.split("::").enumerate() {
        match name {
            "crate" => absolute.clear(),
            "super" => drop(absolute.pop()),
            "self" => {}
            _ => absolute.push(name.to_owned()),
        }
        let relative = i == 0 && absolute.len() > module.len();
        if relative && !texts.contains_key(&absolute) {
            return None;
        }
    }
    Some(absolute)
}

/// Follows a path to the module that defines what it leads to.
fn definer(path: &Names, modules: &BTreeMap<&Names, Module>, depth: usize) -> Names {
    let mut here = vec![];
    for (i, name) in path.iter().enumerate() {
        let child = [&here[..], std::slice::from_ref(name)].concat();
        if modules.contains_key(&child) {
            here = child;
        } else {
            let import = modules
                .get(&here)
                .and_then(|module| module.imports.get(name));
            let import = import.filter(|import| depth < 8 && *import != path);
            return import.map_or(here, |import| {
                definer(&[import, &path[i + 1..]].concat(), modules, depth + 1)
            });
        }
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_through_re_exports() {
        let crate_of = |a: &str| {
            let root = "mod a;\nmod b;\npub use b::{B, c::C as D};\n";
            let files = [
                ("", root),
                ("a", a),
                ("b", "mod c;\nuse crate::a;\nstruct B;\n"),
                ("b/c", "struct C;\n"),
            ];
            let names = |path: &str| {
                path.split('/')
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect()
            };
            files
                .map(|(path, text)| (names(path), text.to_owned()))
                .into()
        };
        let name = |name: &str| vec![name.to_owned()];
        let both = [(name("a"), name("b")), (name("b"), name("a"))];
        assert_eq!(cycles(&crate_of("use crate::B;\n")), both.into());
        assert_eq!(
            cycles(&crate_of("fn f() {\n    super::b::f();\n}\n")).len(),
            2
        );
        for none in [
            "",
            "use crate::D;\n",
            "// crate::B\n",
            "#[cfg(test)]\nmod tests {\n    use crate::B;\n}\n",
        ] {
            assert_eq!(cycles(&crate_of(none)), BTreeSet::new(), "{none}");
        }
    }

    #[test]
    fn trees_of_imports_are_split() {
        assert_eq!(
            leaves("a::{b, c::{d, self}};"),
            ["a::b", "a::c::d", "a::c::self"]
        );
    }
}
