//! `downbeat-mpi`: the program that `mpirun` starts.

mod bench;
mod clock;
mod command_line;
mod drift;
mod factors;
mod imbalance;
mod ranks;
mod session;
mod settings;
mod sync;
mod trace_correct;
mod truth;

use std::panic;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use downbeat_common::Failure;
use downbeat_common::output::report_failure;
use downbeat_sync::MpiComm;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;

const NAME: &str = "downbeat-mpi";

fn main() -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        return report_failure(Failure::run("MPI is already initialized"), NAME);
    };
    end_all_ranks_on_panic();
    let world = universe.world();
    let outcome = MpiComm::duplicate(&world)
        .map_err(Failure::run)
        .and_then(|comm| command_line::run(&comm));
    // All ranks fail alike; one speaks.
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if world.rank() == 0 => report_failure(failure, NAME),
        Err(failure) => failure.exit_code(),
    }
}

/// A rank that panics would leave the others waiting for it.
fn end_all_ranks_on_panic() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        tell(panic);
        SimpleCommunicator::world().abort(101);
    }));
}

/// Ends the job where one rank failed while the others wait for it.
fn end_all_ranks(failure: Failure) -> ! {
    // Where all of them failed, rank 0 has the first word, and ends the others.
    if SimpleCommunicator::world().rank() > 0 {
        thread::sleep(Duration::from_millis(500));
    }
    report_failure(failure, NAME);
    SimpleCommunicator::world().abort(1)
}
