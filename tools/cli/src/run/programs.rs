//! Programs that a command names: one that is rebuilt during an experiment makes another experiment of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use downbeat_common::digest;

use super::command::{Variant, find};

/// Digests of the programs among the words of a command, and of the MPI libraries that they load. Of a command that is timed, only
/// the first word is a program, as others may name what it builds.
///
/// Programs that only other hosts have, or that a script names, are not found.
pub(super) fn digests(variant: &Variant) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let most = if variant.timing.is_some() {
        1
    } else {
        usize::MAX
    };
    for word in variant.command.iter().take(most) {
        // Launchers look for a program in the working folder, too.
        let here = || find(&format!("./{word}"));
        let Some(path) = find(word).or_else(here) else {
            continue;
        };
        if let Ok(digest) = digest::of_file(&path) {
            found.insert(word.clone(), digest);
        }
        if let Some(digest) = digest::of_mpi_libraries(&libraries(&path)) {
            found.insert(format!("the MPI library of {word}"), digest);
        }
    }
    found
}

/// Libraries of a program, as `ldd` lists them; nothing if it cannot tell.
fn libraries(program: &Path) -> String {
    let listed = Command::new("ldd")
        .arg(program)
        .stdin(Stdio::null())
        .output();
    listed.map_or_else(
        |_| String::new(),
        |listed| String::from_utf8_lossy(&listed.stdout).into_owned(),
    )
}

/// Describes the first program with another digest than before.
pub(super) fn changed(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Option<String> {
    let (name, before, now) = before
        .iter()
        .filter_map(|(name, before)| Some((name, before, now.get(name)?)))
        .find(|(_, before, now)| before != now)?;
    Some(format!(
        "{name} was replaced: its checksum was {before}, and is {now} now"
    ))
}
