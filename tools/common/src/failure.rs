//! What ends the program early.

use std::fmt::Display;
use std::process::ExitCode;

/// Why the program ends early: one line, and whose fault it is.
#[derive(Debug)]
pub enum Failure {
    /// The user asked for what cannot be: exit code 2.
    Input(String),
    /// Something went wrong at run time: exit code 1.
    Run(String),
    /// A signal with this number ended the program, which had time to say what comes of it: exit code 128 and the number.
    Signal(u8, String),
    /// The user asked for help; this is not an error.
    Help(String),
}

impl Failure {
    /// A bad value of an option.
    pub fn option(option: &str, why: impl Display) -> Self {
        Self::Input(format!("{option}: {why}"))
    }

    /// Something that went wrong at run time.
    pub fn run(why: impl Display) -> Self {
        Self::Run(why.to_string())
    }

    /// The exit code of a program that ends for this reason.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Help(_) => ExitCode::SUCCESS,
            Self::Input(_) => ExitCode::from(2),
            Self::Run(_) => ExitCode::FAILURE,
            Self::Signal(number, _) => ExitCode::from(128 | number),
        }
    }
}
