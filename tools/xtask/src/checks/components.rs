//! The parts of the Rust toolchain that a minimal installation leaves out.

use crate::steps::Step;
use downbeat_launch::command::{self as shell, command};

pub(crate) const STEP: &str = "setup: rustfmt and clippy";

pub(crate) fn step<'a>() -> Step<'a> {
    Step::new(STEP, || {
        let present = || {
            let fmt = shell::run(&mut command("cargo fmt --version"));
            fmt.and_then(|()| shell::run(&mut command("cargo clippy --version")))
        };
        present()
            .or_else(|_| {
                shell::run(&mut command("rustup component add rustfmt clippy"))
                    .and_then(|()| present())
            })
            .map_err(|why| format!("{why}; run: rustup component add rustfmt clippy"))
    })
}
