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

use std::env;
use std::process::ExitCode;

use args::{Depth, Task};
use checks::setup;

fn main() -> ExitCode {
    let task = match args::parse(env::args().skip(1)) {
        Ok(task) => task,
        Err(why) => {
            eprintln!("xtask: {why}; see `cargo xtask --help`");
            return ExitCode::from(2);
        }
    };
    match task {
        Task::Help => {
            print!("{}", args::HELP);
            ExitCode::SUCCESS
        }
        Task::Test(run) => lanes::run(&run),
        Task::Step {
            depth,
            name,
            verdict,
        } => lanes::run_named(depth, &name, &verdict),
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
        Task::Package(kind) => steps::run("", |workspace| vec![package::step(workspace, kind)]),
        Task::Fuzz { target, runs } => {
            steps::run("", |workspace| vec![fuzz::long(workspace, target, runs)])
        }
    }
}
