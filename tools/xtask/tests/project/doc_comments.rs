//! Doc comments open with a verb or a noun, not with a question word.

use std::fs;

use downbeat_launch::Outcome;

use crate::workspace::{Workspace, rust_files};

/// Largest share of doc comments that open with a question word, in percent.
const LIMIT_PERCENT: usize = 5;

const QUESTION_WORDS: [&str; 8] = [
    "What", "Whether", "How", "Which", "Who", "Where", "Why", "When",
];

/// Counts the doc comments of all packages.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let (mut all, mut questions) = (0, 0);
    for package in &workspace.packages {
        let (mut here, mut of_these) = (0, 0);
        for folder in ["src", "tests", "examples", "benches"] {
            for file in rust_files(&package.root.join(folder)) {
                let text = fs::read_to_string(&file)
                    .map_err(|why| format!("{}: {why}", file.display()))?;
                let openings = openings(&text);
                here += openings.len();
                of_these += openings.iter().filter(|line| is_question(line)).count();
            }
        }
        println!(
            "   {}: {of_these} of {here} doc comments open with a question word",
            package.name
        );
        all += here;
        questions += of_these;
    }
    println!("   {questions} of {all} in the workspace");
    if questions * 100 > all * LIMIT_PERCENT {
        Err(format!(
            "{questions} of {all} doc comments open with a question word, more than {LIMIT_PERCENT} %"
        ))
    } else {
        Ok(())
    }
}

/// Returns the first line of every doc comment.
fn openings(text: &str) -> Vec<&str> {
    let doc = |line: &'_ str| line.starts_with("///") || line.starts_with("//!");
    let mut openings = Vec::new();
    let mut within = false;
    for line in text.lines().map(str::trim_start) {
        if doc(line) && !within {
            openings.push(&line[3..]);
        }
        within = doc(line);
    }
    openings
}

fn is_question(opening: &str) -> bool {
    let first = opening.split_whitespace().next().unwrap_or_default();
    QUESTION_WORDS.contains(&first.trim_end_matches(|c: char| !c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_of_doc_comments_are_judged() {
        let text = "//! What it is.\n//! Which.\nfn f() {}\n    /// Returns how.\n    /// Why?\n// How\n/// Why? So.\n";
        let found = openings(text);
        assert_eq!(found, [" What it is.", " Returns how.", " Why? So."]);
        let questions: Vec<bool> = found.iter().map(|line| is_question(line)).collect();
        assert_eq!(questions, [true, false, true]);
    }
}
