//! A program for `mpirun`: operations that several threads of each rank call at once have the right results.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod job;
mod kinds;

use downbeat_clock_core::Duration;
use downbeat_measure::Operation;
use downbeat_measure::mpi::{MpiGroup, MpiOperation, OperationSettings};
use downbeat_sync::{MpiComm, block_on_ready};
use job::job;
use kinds::kinds;
use mpi::Threading;

fn main() {
    job(Threading::Multiple, |world| {
        let group = MpiGroup::all(&MpiComm::duplicate(world).unwrap()).unwrap();
        every_operation_is_right_in_each_thread(&group);
        threads_compute_at_once(&group);
    });
}

/// With few threads, as cores are few.
fn settings(threads: u32) -> OperationSettings {
    OperationSettings {
        threads,
        in_flight: 4,
        ..OperationSettings::default()
    }
}

fn every_operation_is_right_in_each_thread(group: &MpiGroup) {
    for kind in kinds(group.size()) {
        let bytes = match kind {
            _ if kind.is_single_element() => 1,
            _ if kind.has_message() => 40,
            _ => 0,
        };
        let mut operation = MpiOperation::prepare(kind, group, bytes, &settings(2)).unwrap();
        for number in 0..2 {
            block_on_ready(operation.call(number)).unwrap();
        }
        operation
            .verify()
            .unwrap_or_else(|why| panic!("{kind}: {why}"));
        assert_eq!(operation.finish(), Ok(()), "{kind}");
    }
}

fn threads_compute_at_once(group: &MpiGroup) {
    let kind = "iallgather+compute".parse().unwrap();
    let mut operation = MpiOperation::prepare(kind, group, 40, &settings(3)).unwrap();
    operation.compute_for(Duration::from_micros(20), 2);
    for number in 0..5 {
        block_on_ready(operation.call(number)).unwrap();
    }
    assert_eq!(operation.verify(), Ok(()));
}
