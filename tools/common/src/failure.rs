//! Failures that end the program.

use std::fmt::Display;
use std::process::ExitCode;

use downbeat_sync::{ClusterError, CommError};

/// Reason for which the program ends early, in one line.
#[derive(Debug)]
pub enum Failure {
    /// Invalid input of the user: exit code 2.
    Input(String),
    /// Error at run time: exit code 1.
    Run(String),
    /// A signal with this number ended the program, which could still report the consequences, if there are any: exit code 128
    /// plus the number.
    Signal(u8, String),
    /// Text of the help that the user asked for; this is not an error.
    Help(String),
}

/// Failure for options of a simulated cluster that cannot be.
impl From<ClusterError> for Failure {
    fn from(why: ClusterError) -> Self {
        Self::Input(why.to_string())
    }
}

/// Failure of ranks that cannot reach each other.
impl From<CommError> for Failure {
    fn from(why: CommError) -> Self {
        Self::run(why)
    }
}

impl Failure {
    /// Creates a failure for an invalid value of an option.
    pub fn option(option: &str, why: impl Display) -> Self {
        Self::Input(format!("{option}: {why}"))
    }

    /// Creates a failure for an error at run time.
    pub fn run(why: impl Display) -> Self {
        Self::Run(why.to_string())
    }

    /// Returns the exit code of a program that ends for this reason.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Help(_) => ExitCode::SUCCESS,
            Self::Input(_) => ExitCode::from(2),
            Self::Run(_) => ExitCode::FAILURE,
            Self::Signal(number, _) => ExitCode::from(128 | number),
        }
    }
}
