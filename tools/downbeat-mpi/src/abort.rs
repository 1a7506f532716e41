//! Ends all ranks of the job.

use std::panic;
use std::thread;
use std::time::Duration;

use downbeat_common::Failure;
use downbeat_common::output::report_failure;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;

/// Name of the program, with which its messages begin.
pub(crate) const NAME: &str = "downbeat-mpi";

/// Ends all ranks when one panics; the others would wait for it forever.
pub(crate) fn abort_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        SimpleCommunicator::world().abort(101);
    }));
}

/// Ends the job because one rank failed while the others wait for it.
pub(crate) fn abort_all_ranks(failure: Failure) -> ! {
    // If all ranks failed, rank 0 reports first and ends the others.
    if SimpleCommunicator::world().rank() > 0 {
        thread::sleep(Duration::from_millis(500));
    }
    report_failure(failure, NAME);
    // A launcher that ends with the job would drop what it has not read yet.
    thread::sleep(Duration::from_millis(100));
    SimpleCommunicator::world().abort(1)
}
