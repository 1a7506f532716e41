//! Texts of help, in which examples stay commands that can be pasted at any width.

use clap::{Command, Error};

use crate::table::{broken, length, wrapped};

/// Columns where the width is not known, as clap has it.
const USUAL: usize = 100;
/// Blanks before a command at most.
const DEEPEST_COMMAND: usize = 10;

/// Returns the help that the command line asks for, in lines of at most this number of columns.
pub(crate) fn of(command: Command, width: Option<usize>) -> Option<Error> {
    within(command, width.unwrap_or(USUAL))
        .try_get_matches()
        .err()
}

/// Limits the help of a command, and of those below it, to this number of columns.
fn within(command: Command, width: usize) -> Command {
    let examples = command
        .get_after_help()
        .map(|text| continued(&text.to_string(), width));
    let command = command
        .term_width(width)
        .mut_subcommands(|inner| within(inner, width));
    match examples {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// Breaks lines of a text that begin with blanks and are too long: commands so that a shell reads the parts as one, which
/// clap would not do, and lists of names and meanings within the column of the meanings.
fn continued(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| {
        let words = line.trim_start_matches(' ');
        let indent = line.len() - words.len();
        if indent < 2 || length(line) <= width {
            return line.to_owned();
        }
        match words.split_once("  ") {
            Some((name, meaning)) => {
                let meaning = meaning.trim_start_matches(' ');
                let column = line.len() - meaning.len();
                hanging(&format!("{:indent$}{name}", ""), meaning, column, width)
            }
            None if indent > DEEPEST_COMMAND => hanging("", words, indent, width),
            None => continued_line(words, indent, width),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes a name, and in a column beside it what it means.
fn hanging(name: &str, meaning: &str, column: usize, width: usize) -> String {
    let lines = wrapped(meaning, width.saturating_sub(column));
    format!("{name:<column$}") + &lines.join(&format!("\n{:column$}", ""))
}

fn continued_line(words: &str, indent: usize, width: usize) -> String {
    const CONTINUES: &str = " \\";
    const DEEPER: usize = 4;
    let room = width.saturating_sub(indent + CONTINUES.len());
    let lines = broken(words, room, room.saturating_sub(DEEPER));
    let next = format!("{CONTINUES}\n{:1$}", "", indent + DEEPER);
    format!("{:indent$}{}", "", lines.join(&next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_continue_on_the_next_line() {
        let text = "Some prose that is long.\n  downbeat run -n 10 --out quick -- mpirun -np 2 bench\n    --more \\\n  NAME  what it means in words";
        assert_eq!(
            continued(text, 24),
            "Some prose that is long.\n  downbeat run -n 10 \\\n      --out quick -- \\\n      mpirun -np 2 \\\n      bench\n    --more \\\n  \
             NAME  what it means in\n        words"
        );
        assert_eq!(continued(text, 60), text);
    }
}
