//! Links of the documents lead somewhere, and the book has all pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::{Outcome, all_passed};

const BOOK: &str = "docs";
const CONTENTS: &str = "SUMMARY.md";

/// Builds the book, where mdBook is installed: installing that takes longer than all
/// other checks of the documents together.
pub(crate) fn build_book() -> Outcome {
    // Versions of mdBook differ in what a relative folder begins at.
    let out = std::path::absolute("target/book").map_err(|why| why.to_string())?;
    shell::run(command("mdbook build docs --dest-dir").arg(out))
}

/// Checks the links of all documents, and the contents of the book.
pub(crate) fn check_links() -> Outcome {
    let mut pages = documents(Path::new("."))?;
    let in_book = documents(Path::new(BOOK))?;
    pages.extend(in_book.iter().cloned());
    let mut failures = vec![];
    for page in &pages {
        failures.extend(broken_links(page)?);
    }
    let contents = Path::new(BOOK).join(CONTENTS);
    let listed: BTreeSet<PathBuf> = targets(&read(&contents)?)
        .map(|target| Path::new(BOOK).join(target))
        .collect();
    let unlisted = in_book
        .iter()
        .filter(|page| **page != contents && !listed.contains(*page));
    failures.extend(unlisted.map(|page| format!("{}: not in {CONTENTS}", page.display())));
    all_passed(failures)
}

/// Lists the documents in a folder.
fn documents(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let found: Vec<PathBuf> = paths.collect();
    if found.is_empty() {
        return Err(format!("{}: no documents", folder.display()));
    }
    Ok(found)
}

fn read(page: &Path) -> Result<String, String> {
    fs::read_to_string(page).map_err(|why| format!("{}: {why}", page.display()))
}

fn broken_links(page: &Path) -> Result<Vec<String>, String> {
    let text = read(page)?;
    let folder = page.parent().unwrap_or(Path::new(""));
    let mut broken = vec![];
    for target in targets(&text) {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() {
            page.to_owned()
        } else {
            folder.join(file)
        };
        let shown = page.display();
        if !path.exists() {
            broken.push(format!("{shown}: {target} does not exist"));
        } else if folder == Path::new(BOOK) && file.starts_with("..") {
            broken.push(format!("{shown}: {target} is not in the book"));
        } else if !anchor.is_empty() && !anchors(&read(&path)?).any(|known| known == anchor) {
            broken.push(format!("{shown}: {target}: no such heading"));
        }
    }
    Ok(broken)
}

/// Returns the targets of links and pictures, outside of code, that are not on other
/// sites.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let links = prose.flat_map(|part| part.split("](").skip(1));
    let targets = links.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://"))
}

/// Returns the anchors of headings.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_found() {
        let text = "# A `b_c` of d's\nSee [x](a.md#b) and ![y](z.svg), [z](https://a.b/c).\n```c\nf[1](2);\n```\n[last](#e)";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["a.md#b", "z.svg", "#e"]);
        assert_eq!(anchors(text).collect::<Vec<_>>(), ["a-b_c-of-ds"]);
    }
}
