//! Licences, sources and versions of dependencies, by the rules of `deny.toml`.

use downbeat_launch::command::command;

use crate::steps::Step;

pub(crate) fn step<'a>() -> Step<'a> {
    let words = "cargo deny --offline --all-features check licenses bans sources";
    Step::command("licences and sources of dependencies", command(words))
}
