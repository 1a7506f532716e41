//! The code is as rustfmt writes it.

use crate::checks::no_std::PROBE;
use crate::steps::Step;
use downbeat_launch::command::command;

pub(crate) fn steps<'a>() -> [Step<'a>; 2] {
    [
        Step::command("format", command("cargo fmt --all --check")),
        Step::command(
            "format: no_std probe",
            command(&format!("cargo fmt --manifest-path {PROBE} --check")),
        ),
    ]
}
