//! `cargo xtask test` runs every check that the project promises, `cargo xtask bench`
//! prints its tables of ratios, and `cargo xtask fuzz` looks for input that a parser does
//! not survive.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "output of the program"
)]

mod args;
mod bench;
mod checks;
mod disturbance;
mod features;
mod fuzz;
mod install;
mod lanes;
mod may_not_run;
mod mpi_builds;
mod package;
mod programs;
mod steps;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Depth, Task, XtaskArguments};
use checks::setup;

fn main() -> ExitCode {
    match XtaskArguments::parse().task {
        Task::Test(run) => lanes::run(&run),
        Task::Step {
            extent,
            name,
            verdict,
        } => lanes::run_named(extent.depth(), &name, &verdict),
        Task::Bursts { core } => {
            disturbance::take_core_in_bursts(core);
            ExitCode::SUCCESS
        }
        Task::Setup { yes } => match setup::confirm_installation(Depth::Normal, yes) {
            Ok(()) => steps::run("", |_| setup::steps(Depth::Normal)),
            Err(why) => {
                eprintln!("xtask: {why}");
                ExitCode::FAILURE
            }
        },
        Task::Bench {
            gate,
            criterion,
            only,
        } => steps::run(&only, |workspace| bench::all(workspace, gate, criterion)),
        Task::Install(wanted) => steps::run("", |workspace| vec![install::step(workspace, wanted)]),
        Task::Package { kind } => steps::run("", |workspace| vec![package::step(workspace, kind)]),
        Task::Fuzz { target, runs } => {
            steps::run("", |workspace| vec![fuzz::long(workspace, target, runs)])
        }
    }
}
