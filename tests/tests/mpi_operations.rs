//! A program for `mpirun`: every operation, with every setting, gives the right result; and a wrong one is noticed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, that is how a failure is told")]

mod job;

use std::fmt::Debug;

use downbeat_measure::{
    Datatype, MpiGroup, MpiOperation, Operation, OperationError, OperationKind, OperationSettings, Reduction, Root,
    Together,
};
use downbeat_sync::{Comm, CommError, MpiComm, MpiError, block_on_ready};
use job::job;
use mpi::Threading;

fn main() {
    let survivors = job(Threading::Single, |world| {
        let comm = MpiComm::duplicate(world).unwrap();
        let group = MpiGroup::all(&comm).unwrap();
        assert_eq!((group.rank(), group.size()), (comm.rank(), comm.size()));
        ranks_come_together(&group);
        every_operation_is_right_with_every_size_and_root(&group);
        every_reduction_of_every_datatype_is_right(&group);
        the_first_ranks_are_a_group(&comm);
        (MpiOperation::prepare(kind("allreduce"), &group, 8, &SETTINGS).unwrap(), group)
    });
    nothing_happens_after_the_end(survivors);
}

const SETTINGS: OperationSettings = OperationSettings {
    datatype: Datatype::Byte,
    reduction: Reduction::Bor,
    root: Root::Rank(0),
    in_place: false,
    alignment: 64,
    memory: 1 << 24,
};

fn kind(name: &str) -> OperationKind {
    name.parse().unwrap()
}

fn ranks_come_together(group: &MpiGroup) {
    let (rank, ranks) = (u64::from(group.rank()), u64::from(group.size()));
    for _ in 0..10 {
        block_on_ready(group.barrier()).unwrap();
        assert_eq!(block_on_ready(group.broadcast(u64::MAX - rank)), Ok(u64::MAX));
        assert_eq!(block_on_ready(group.union(1 << rank)), Ok((1 << ranks) - 1));
        assert_eq!(block_on_ready(group.union(0)), Ok(0));
    }
}

/// Prepares it and wants it to be right, before and after it was called for measurement.
fn assert_right(kind: OperationKind, group: &MpiGroup, bytes: u64, settings: &OperationSettings) {
    let context = || format!("{kind}, {bytes} bytes, {settings:?}");
    let mut operation =
        MpiOperation::prepare(kind, group, bytes, settings).unwrap_or_else(|why| panic!("{}: {why}", context()));
    assert_eq!(operation.kind(), kind);
    for _ in 0..2 {
        operation.verify().unwrap_or_else(|why| panic!("{}: {why}", context()));
        for number in 0..3 {
            Operation::prepare(&mut operation);
            block_on_ready(operation.call(number)).unwrap();
        }
    }
}

fn every_operation_is_right_with_every_size_and_root(group: &MpiGroup) {
    let ranks = group.size();
    for kind in OperationKind::all().filter(|kind| kind.least_ranks() <= ranks) {
        let roots: Vec<Root> = if kind.has_root() {
            (0..ranks).map(Root::Rank).chain([Root::Rotating]).collect()
        } else {
            vec![Root::Rank(0)]
        };
        let sizes: &[u64] = if kind.has_message() { &[0, 4, 12, 28, 4 * 257, 4 * 20_001] } else { &[0] };
        for root in roots {
            for in_place in [false, true].into_iter().filter(|in_place| !in_place || kind.has_in_place()) {
                for &bytes in sizes {
                    // The largest is for the ways of large messages, which do not depend on the root.
                    if bytes < 10_000 || root == Root::Rank(0) {
                        let settings = OperationSettings {
                            datatype: Datatype::Int32,
                            reduction: Reduction::Sum,
                            root,
                            in_place,
                            ..SETTINGS
                        };
                        assert_right(kind, group, bytes, &settings);
                    }
                }
            }
        }
    }
}

fn every_reduction_of_every_datatype_is_right(group: &MpiGroup) {
    for kind in OperationKind::all().filter(|kind| kind.least_ranks() <= group.size() && kind.has_message()) {
        for datatype in Datatype::ALL {
            for reduction in Reduction::ALL {
                let settings = OperationSettings { datatype, reduction, ..SETTINGS };
                let bytes = datatype.bytes() * 13;
                if !kind.has_reduction() || datatype.allows(reduction) {
                    // Once is enough where nothing is combined.
                    if kind.has_reduction() || reduction == Reduction::Sum {
                        assert_right(kind, group, bytes, &settings);
                    }
                } else {
                    let refused = MpiOperation::prepare(kind, group, bytes, &settings);
                    assert_eq!(refused.unwrap_err(), OperationError::Reduction { datatype, reduction });
                }
            }
        }
    }
}

fn the_first_ranks_are_a_group(comm: &MpiComm) {
    for ranks in 0..=comm.size() {
        let group = MpiGroup::first(comm, ranks).unwrap();
        assert_eq!(group.is_some(), comm.rank() < ranks);
        let Some(group) = group else { continue };
        assert_eq!((group.rank(), group.size()), (comm.rank(), ranks));
        assert_right(kind("allgather"), &group, 8, &SETTINGS);
    }
    let (size, too_many) = (comm.size(), comm.size() + 1);
    assert_eq!(MpiGroup::first(comm, too_many).unwrap_err(), CommError::NoSuchRank { rank: size, size });
}

fn nothing_happens_after_the_end((mut operation, group): (MpiOperation, MpiGroup)) {
    let ended = CommError::Mpi(MpiError::Finalized);
    fn assert_ended<T: Debug + PartialEq>(found: Result<T, CommError>) {
        assert_eq!(found, Err(CommError::Mpi(MpiError::Finalized)));
    }
    assert_ended(block_on_ready(operation.call(0)));
    assert_ended(block_on_ready(group.barrier()));
    assert_ended(block_on_ready(group.broadcast(1)));
    assert_ended(block_on_ready(group.union(1)));
    assert_eq!(operation.verify().unwrap_err().to_string(), ended.to_string());
    let refused = MpiOperation::prepare(kind("barrier"), &group, 0, &SETTINGS);
    assert_eq!(refused.unwrap_err(), OperationError::Finalized);
    drop((operation, group));
}
