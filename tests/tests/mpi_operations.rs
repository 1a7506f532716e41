//! A program for `mpirun`: every operation, with every setting, computes the right result.
//!
//! On oversubscribed cores a call may take milliseconds: not all settings are combined, and fewer with more ranks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod job;
mod kinds;

use std::time::Instant;

use downbeat_clock_core::Duration;
use downbeat_launch::environment::is_long;
use downbeat_measure::mpi::{
    Datatype, Epoch, MessageLayout, MpiGroup, MpiOperation, OperationError, OperationKind,
    OperationSettings, Reduction, Root, WindowMemory,
};
use downbeat_measure::{Alignment, BufferError, CacheState, Coordinator, Operation};
use downbeat_sync::{Comm, CommError, MpiComm, MpiError, block_on_ready};
use job::job;
use kinds::kinds;
use mpi::Threading;

fn main() {
    let survivors = job(Threading::Single, |world| {
        let comm = MpiComm::duplicate(world).unwrap();
        let group = MpiGroup::all(&comm).unwrap();
        assert_eq!((group.rank(), group.size()), (comm.rank(), comm.size()));
        ranks_agree(&group);
        every_operation_is_right_with_every_size_and_root(&group);
        every_reduction_of_every_datatype_is_right(&group);
        one_sided_operations_are_right_in_every_epoch(&group);
        derived_datatypes_are_right(&group);
        operations_are_right_during_a_computation(&group);
        results_are_right_in_every_cache_state(&group);
        requests_that_differ_between_ranks_are_refused(&group);
        impossible_requests_are_refused_on_all_ranks(&group);
        the_first_ranks_are_a_group(&comm);
        // An operation keeps its communicator.
        let own = MpiGroup::all(&comm).unwrap();
        let operation = MpiOperation::prepare(kind("allreduce"), &own, 8, &SETTINGS).unwrap();
        drop((own, comm));
        (operation, group)
    });
    nothing_happens_after_the_end(survivors);
}

const SETTINGS: OperationSettings = OperationSettings {
    datatype: Datatype::Int32,
    layout: MessageLayout::Contiguous,
    reduction: Reduction::Sum,
    root: Root::Rotating,
    in_place: false,
    alignment: Alignment::CACHE_LINE,
    cache: CacheState::Warm,
    cache_bytes: 0,
    memory: 1 << 24,
    in_flight: 5,
    threads: 1,
    partitions: 1,
    radius: 2,
    epoch: Epoch::Flush,
    window_memory: WindowMemory::Allocate,
};

fn kind(name: &str) -> OperationKind {
    name.parse().unwrap()
}

/// Returns true if there are many ranks, for which fewer combinations are tested.
fn has_many_ranks(group: &MpiGroup) -> bool {
    group.size() > if is_long() { 3 } else { 2 }
}

fn ranks_agree(group: &MpiGroup) {
    let (rank, ranks) = (u64::from(group.rank()), u64::from(group.size()));
    for _ in 0..10 {
        block_on_ready(group.barrier()).unwrap();
        assert_eq!(
            block_on_ready(group.broadcast(u64::MAX - rank)),
            Ok(u64::MAX)
        );
        assert_eq!(
            block_on_ready(group.bitwise_or(1 << rank)),
            Ok((1 << ranks) - 1)
        );
        assert_eq!(block_on_ready(group.bitwise_or(0)), Ok(0));
    }
}

fn prepared(
    kind: OperationKind,
    group: &MpiGroup,
    bytes: u64,
    settings: &OperationSettings,
) -> MpiOperation {
    MpiOperation::prepare(kind, group, bytes, settings)
        .unwrap_or_else(|why| panic!("{kind}, {bytes} bytes, {settings:?}: {why}"))
}

fn assert_right(kind: OperationKind, group: &MpiGroup, bytes: u64, settings: &OperationSettings) {
    let mut operation = prepared(kind, group, bytes, settings);
    assert_eq!(operation.kind(), kind);
    operation
        .verify()
        .unwrap_or_else(|why| panic!("{kind}, {bytes} bytes, {settings:?}: {why}"));
    assert_eq!(operation.finish(), Ok(()));
}

/// Short messages with every root; very short and long ones with one.
fn every_operation_is_right_with_every_size_and_root(group: &MpiGroup) {
    // More than libraries send eagerly within a node; to verify longer ones takes as
    // long.
    let long = if is_long() { 20_001 } else { 2_001 };
    for kind in kinds(group.size()) {
        for in_place in [false, true]
            .into_iter()
            .filter(|in_place| !in_place || kind.has_in_place())
        {
            let settings = OperationSettings {
                in_place,
                ..SETTINGS
            };
            if !kind.has_message() {
                assert_right(kind, group, 0, &settings);
                continue;
            }
            let short = if kind.is_single_element() { 1 } else { 7 };
            assert_right(kind, group, 4 * short, &settings);
            // MPICH 4.0.2 crashes where long messages are reduced in place by another root than rank 0.
            let root = Root::Rank(if in_place { 0 } else { group.size() - 1 });
            let lengths: &[u64] = if kind.is_single_element() {
                &[]
            } else if has_many_ranks(group) {
                &[long]
            } else {
                &[0, 1, 257, long]
            };
            for elements in lengths {
                assert_right(
                    kind,
                    group,
                    4 * elements,
                    &OperationSettings { root, ..settings },
                );
            }
        }
    }
}

/// All combinations for one operation, since all share the code; and some for each operation.
fn every_reduction_of_every_datatype_is_right(group: &MpiGroup) {
    let allreduce = kind("allreduce");
    let all = Datatype::ALL
        .into_iter()
        .flat_map(|datatype| Reduction::ALL.map(|reduction| (datatype, reduction)));
    for (datatype, reduction) in all.step_by(if has_many_ranks(group) { 7 } else { 1 }) {
        let settings = OperationSettings {
            datatype,
            reduction,
            ..SETTINGS
        };
        if datatype.allows(reduction) {
            assert_right(allreduce, group, datatype.bytes() * 13, &settings);
        } else {
            let refused = MpiOperation::prepare(allreduce, group, datatype.bytes() * 13, &settings);
            assert_eq!(
                refused.unwrap_err(),
                OperationError::Reduction {
                    datatype,
                    reduction
                }
            );
        }
    }
    let mut datatypes = Datatype::ALL.into_iter().cycle();
    let mut reductions = Reduction::ALL.into_iter().cycle();
    for kind in kinds(group.size()).filter(|kind| kind.has_message()) {
        for _ in 0..if has_many_ranks(group) { 1 } else { 3 } {
            let datatype = datatypes.next().unwrap();
            // MPI_Get_accumulate of Open MPI 4.1 does nothing with logical ones.
            let is_done = |reduction: &Reduction| {
                let logical = [Reduction::Land, Reduction::Lor, Reduction::Lxor];
                !(kind.is_one_sided() && logical.contains(reduction))
            };
            let allowed = |reduction: &Reduction| {
                !kind.has_reduction() || datatype.allows(*reduction) && is_done(reduction)
            };
            let Some(reduction) = reductions.by_ref().take(Reduction::ALL.len()).find(allowed)
            else {
                continue;
            };
            let settings = OperationSettings {
                datatype,
                reduction,
                root: Root::Rank(0),
                // Open MPI 4.1 crashes where 8 bytes are compared in memory that it allocated.
                window_memory: WindowMemory::Create,
                ..SETTINGS
            };
            let elements = if kind.is_single_element() { 1 } else { 5 };
            let not_comparable = kind.name() == "compare_and_swap" && !datatype.can_be_compared();
            if !not_comparable {
                assert_right(kind, group, datatype.bytes() * elements, &settings);
            }
        }
    }
}

/// Also after calls as in a measurement.
fn one_sided_operations_are_right_in_every_epoch(group: &MpiGroup) {
    let all: Vec<_> = if has_many_ranks(group) && !is_long() {
        // Each epoch once, with each memory in turn.
        let memory = WindowMemory::ALL.into_iter().cycle();
        Epoch::ALL.into_iter().zip(memory).collect()
    } else {
        let with_all = |epoch| WindowMemory::ALL.map(|window| (epoch, window));
        Epoch::ALL.into_iter().flat_map(with_all).collect()
    };
    for kind in kinds(group.size()).filter(|kind| kind.is_one_sided()) {
        for &(epoch, window) in &all {
            let settings = OperationSettings {
                epoch,
                window_memory: window,
                // No element is aligned so by itself.
                alignment: "64".parse().unwrap(),
                ..SETTINGS
            };
            let elements = if kind.is_single_element() { 1 } else { 33 };
            let mut operation = prepared(kind, group, 4 * elements, &settings);
            for number in 0..3 {
                block_on_ready(operation.call(number)).unwrap();
            }
            let verified = operation.verify();
            verified.unwrap_or_else(|why| panic!("{kind}, {epoch}, {window}: {why}"));
            block_on_ready(operation.call(0)).unwrap();
            assert_eq!(operation.finish(), Ok(()));
        }
    }
}

/// Every operation that takes them, with one layout; some with all.
fn derived_datatypes_are_right(group: &MpiGroup) {
    let layouts = ["indexed/3/8", "vector/1/2", "struct/4/5", "vector/12/12"];
    let taken = kinds(group.size()).filter(|kind| kind.takes_derived() && kind.has_message());
    for kind in taken {
        let is_one_of = ["alltoallv", "bcast", "put"].contains(&kind.name());
        for layout in &layouts[..if is_one_of { 4 } else { 1 }] {
            let settings = OperationSettings {
                layout: layout.parse().unwrap(),
                ..SETTINGS
            };
            for elements in [12, 0] {
                assert_right(kind, group, 4 * elements, &settings);
            }
        }
    }
}

fn operations_are_right_during_a_computation(group: &MpiGroup) {
    let duration = Duration::from_micros(50);
    for kind in OperationKind::all().filter(|kind| kind.is_overlapped()) {
        let bytes = if kind.has_message() { 44 } else { 0 };
        let mut operation = prepared(kind, group, bytes, &SETTINGS);
        for tests in [0, 3] {
            operation.compute_for(duration, tests);
            let begin = Instant::now();
            block_on_ready(operation.call(0)).unwrap();
            assert!(begin.elapsed() >= duration.try_into().unwrap(), "{kind}");
            operation
                .verify()
                .unwrap_or_else(|why| panic!("{kind}: {why}"));
        }
    }
}

/// Results are right for every cache state, between calls and after them, as in a measurement.
fn results_are_right_in_every_cache_state(group: &MpiGroup) {
    for cache in CacheState::ALL {
        for (name, in_place) in [
            ("alltoall", false),
            ("allreduce", true),
            ("ireduce", true),
            ("bcast", false),
        ] {
            let settings = OperationSettings {
                cache,
                cache_bytes: 300,
                in_place,
                ..SETTINGS
            };
            let mut operation = prepared(kind(name), group, 64, &settings);
            for number in 0..if has_many_ranks(group) { 3 } else { 12 } {
                Operation::prepare(&mut operation);
                block_on_ready(operation.call(number)).unwrap();
                if number % 3 == 2 {
                    operation
                        .verify()
                        .unwrap_or_else(|why| panic!("{name}, {settings:?}: {why}"));
                }
            }
        }
    }
}

fn requests_that_differ_between_ranks_are_refused(group: &MpiGroup) {
    let last = group.size() > 1 && group.rank() == group.size() - 1;
    let bytes = if last { 4 } else { 8 };
    let mine = if last { kind("scan") } else { kind("exscan") };
    let settings = OperationSettings {
        root: Root::Rank(last.into()),
        ..SETTINGS
    };
    let asked = [
        MpiOperation::prepare(kind("bcast"), group, bytes, &SETTINGS),
        MpiOperation::prepare(mine, group, 4, &SETTINGS),
        MpiOperation::prepare(kind("bcast"), group, 4, &settings),
    ];
    for found in asked {
        assert_eq!(
            found.err(),
            (group.size() > 1).then_some(OperationError::RanksDiffer)
        );
    }
}

fn impossible_requests_are_refused_on_all_ranks(group: &MpiGroup) {
    let refused = |name, bytes, settings| {
        MpiOperation::prepare(kind(name), group, bytes, &settings).unwrap_err()
    };
    let cold = OperationSettings {
        cache: CacheState::ColdByWalking,
        ..SETTINGS
    };
    assert_eq!(
        refused("bcast", 4, cold),
        OperationError::Buffer(BufferError::NoCacheSize)
    );
    let in_place = OperationSettings {
        in_place: true,
        ..SETTINGS
    };
    assert_eq!(
        refused("bcast", 4, in_place),
        OperationError::NotInPlace(kind("bcast"))
    );
    // This program initializes MPI for one thread.
    let threads = OperationSettings {
        threads: 2,
        ..SETTINGS
    };
    assert_eq!(refused("bcast", 4, threads), OperationError::NoThreads);
    // More memory than any machine has, needed by the root only.
    let settings = OperationSettings {
        datatype: Datatype::Byte,
        root: Root::Rank(0),
        memory: u64::MAX,
        ..SETTINGS
    };
    let huge = OperationSettings {
        cache: CacheState::ColdByOverwriting,
        cache_bytes: usize::MAX / 2,
        ..settings
    };
    assert!(matches!(
        refused("gather", 1, huge),
        OperationError::Buffer(BufferError::NoMemory { .. })
    ));
}

fn the_first_ranks_are_a_group(comm: &MpiComm) {
    // Some sizes, not all.
    for ranks in (0..=comm.size()).step_by(2) {
        let group = MpiGroup::first(comm, ranks).unwrap();
        assert_eq!(group.is_some(), comm.rank() < ranks);
        let Some(group) = group else { continue };
        assert_eq!((group.rank(), group.size()), (comm.rank(), ranks));
        assert_right(kind("allgather"), &group, 8, &SETTINGS);
    }
    let (size, too_many) = (comm.size(), comm.size() + 1);
    assert_eq!(
        MpiGroup::first(comm, too_many).unwrap_err(),
        CommError::NoSuchRank { rank: size, size }
    );
}

fn nothing_happens_after_the_end((mut operation, group): (MpiOperation, MpiGroup)) {
    let ended = CommError::Mpi(MpiError::Finalized);
    assert_eq!(block_on_ready(operation.call(0)), Err(ended));
    assert_eq!(block_on_ready(group.barrier()), Err(ended));
    assert_eq!(block_on_ready(group.broadcast(1)), Err(ended));
    assert_eq!(block_on_ready(group.bitwise_or(1)), Err(ended));
    assert_eq!(operation.verify(), Err(ended.into()));
    assert_eq!(
        MpiOperation::prepare(kind("barrier"), &group, 0, &SETTINGS).unwrap_err(),
        ended.into()
    );
    drop((operation, group));
}
