//! The code is as rustfmt writes it.

use crate::checks::loom::MODELS;
use crate::checks::no_std::PROBE;
use crate::steps::Step;
use downbeat_launch::command::command;

pub(crate) fn steps<'a>() -> [Step<'a>; 3] {
    [
        Step::command("fmt", command("cargo fmt --all --check")),
        Step::command(
            "fmt: no_std probe",
            command(&format!("cargo fmt --manifest-path {PROBE} --check")),
        ),
        Step::command(
            "fmt: models of loom",
            command(&format!("cargo fmt --manifest-path {MODELS} --check")),
        ),
    ]
}
