//! `downbeat-mpi`: the program that `mpirun` starts.

mod abort;
mod bench;
mod command_line;
mod harmonize;
mod imbalance;
mod job;
mod operations;
mod overlap;
mod participants;
mod session;
mod settings;
mod trace_correct;
mod transfer;

use std::process::ExitCode;

use downbeat_common::Failure;
use downbeat_common::output::{report_failure, without_styles};
use downbeat_sync::{MpiComm, MpiError};
use mpi::traits::Communicator;

use abort::{NAME, abort_on_panic};

fn main() -> ExitCode {
    without_styles();
    downbeat_common::survive_file_size_limit();
    downbeat_common::trace::survive_lack_of_memory();
    command_line::prepare_mpi();
    let Some(universe) = command_line::initialize_mpi() else {
        return report_failure(Failure::run("MPI is already initialized"), NAME);
    };
    abort_on_panic();
    let world = universe.world();
    let outcome = MpiComm::duplicate(&world)
        .map_err(|why| match why {
            MpiError::Singleton { .. } => Failure::Input(why.to_string()),
            why => Failure::run(why),
        })
        .and_then(|comm| command_line::run(&universe, &comm));
    // All ranks fail for the same reason; rank 0 reports it. Ranks that are each a world report it each: the first of them to end can make
    // the launcher end the others.
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if world.rank() == 0 => report_failure(failure, NAME),
        Err(failure) => failure.exit_code(),
    }
}
