//! A program for `mpirun`: a failed operation returns an error that names the call, and wrong results are detected.
//!
//! Both are simulated: this program defines functions with the names of MPI's, which the linker prefers, and which call
//! MPI's through the profiling interface (`PMPI_`).

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

mod job;
mod kinds;

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use downbeat_measure::mpi::{
    Epoch, MpiGroup, MpiOperation, OperationError, OperationKind, OperationSettings,
};
use downbeat_measure::{Coordinator, Operation};
use downbeat_sync::{CommError, MpiComm, MpiError, block_on_ready};
use job::job;
use kinds::kinds;
use mpi::Threading;
use mpi::ffi::{
    self, MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Group, MPI_Op, MPI_Request, MPI_Status, MPI_Win,
};

type In = *const c_void;
type Out = *mut c_void;
type Of = MPI_Datatype;
type Counts = *const c_int;
type Offsets = *const MPI_Aint;

/// Fault of a function.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Does nothing and returns an error; a waiting function waits first.
    Fails,
    /// Does nothing and returns success.
    DoesNothing,
    /// Changes the last byte that the last rank receives.
    Spoils,
    /// Changes the second byte of the last rank's buffer, which is no element.
    SpoilsGap,
    /// Changes the first byte that the last rank sends.
    Overwrites,
}

/// Functions with faults from now on.
static FAULTS: Mutex<Vec<(String, Fault)>> = Mutex::new(Vec::new());

fn fault(name: &str) -> Option<Fault> {
    FAULTS
        .lock()
        .unwrap()
        .iter()
        .find(|(faulty, _)| faulty == name)
        .map(|(_, fault)| *fault)
}

/// Runs a program with these faults.
fn with_faults<T>(names: &[String], fault: Fault, program: impl FnOnce() -> T) -> T {
    *FAULTS.lock().unwrap() = names.iter().map(|name| (name.clone(), fault)).collect();
    let result = program();
    FAULTS.lock().unwrap().clear();
    result
}

/// Defines functions that may be faulty, and else call MPI's.
macro_rules! faulty {
    ($($name:ident = $own:ident($($argument:ident: $type:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> c_int {
            match fault(stringify!($name)) {
                Some(Fault::DoesNothing) => return ffi::MPI_SUCCESS as c_int,
                Some(Fault::Fails) if stringify!($name) != "MPI_Wait" => return ffi::MPI_ERR_OTHER as c_int,
                _ => {}
            }
            // SAFETY: the caller keeps MPI's contract.
            let code = unsafe { ffi::$own($($argument),*) };
            if fault(stringify!($name)) == Some(Fault::Fails) { ffi::MPI_ERR_OTHER as c_int } else { code }
        }
    )* };
}

faulty! {
    MPI_Barrier = PMPI_Barrier(c: MPI_Comm);
    MPI_Reduce = PMPI_Reduce(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, root: c_int, c: MPI_Comm);
    MPI_Gather = PMPI_Gather(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, root: c_int, c: MPI_Comm);
    MPI_Gatherv =
        PMPI_Gatherv(s: In, n: c_int, t: Of, r: Out, m: Counts, d: Counts, u: Of, root: c_int, c: MPI_Comm);
    MPI_Scatter = PMPI_Scatter(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, root: c_int, c: MPI_Comm);
    MPI_Scatterv =
        PMPI_Scatterv(s: In, n: Counts, d: Counts, t: Of, r: Out, m: c_int, u: Of, root: c_int, c: MPI_Comm);
    MPI_Allgather = PMPI_Allgather(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm);
    MPI_Allgatherv = PMPI_Allgatherv(s: In, n: c_int, t: Of, r: Out, m: Counts, d: Counts, u: Of, c: MPI_Comm);
    MPI_Alltoall = PMPI_Alltoall(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm);
    MPI_Alltoallv =
        PMPI_Alltoallv(s: In, n: Counts, d: Counts, t: Of, r: Out, m: Counts, e: Counts, u: Of, c: MPI_Comm);
    MPI_Alltoallw = PMPI_Alltoallw(
        s: In, n: Counts, d: Counts, t: *const Of, r: Out, m: Counts, e: Counts, u: *const Of, c: MPI_Comm
    );
    MPI_Neighbor_allgather = PMPI_Neighbor_allgather(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm);
    MPI_Neighbor_allgatherv =
        PMPI_Neighbor_allgatherv(s: In, n: c_int, t: Of, r: Out, m: Counts, d: Counts, u: Of, c: MPI_Comm);
    MPI_Neighbor_alltoall = PMPI_Neighbor_alltoall(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm);
    MPI_Neighbor_alltoallv = PMPI_Neighbor_alltoallv(
        s: In, n: Counts, d: Counts, t: Of, r: Out, m: Counts, e: Counts, u: Of, c: MPI_Comm
    );
    MPI_Neighbor_alltoallw = PMPI_Neighbor_alltoallw(
        s: In, n: Counts, d: Offsets, t: *const Of, r: Out, m: Counts, e: Offsets, u: *const Of, c: MPI_Comm
    );
    MPI_Reduce_scatter = PMPI_Reduce_scatter(s: In, r: Out, n: Counts, t: Of, o: MPI_Op, c: MPI_Comm);
    MPI_Reduce_scatter_block = PMPI_Reduce_scatter_block(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm);
    MPI_Scan = PMPI_Scan(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm);
    MPI_Exscan = PMPI_Exscan(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm);

    MPI_Ibarrier = PMPI_Ibarrier(c: MPI_Comm, q: *mut MPI_Request);
    MPI_Ibcast = PMPI_Ibcast(b: Out, n: c_int, t: Of, root: c_int, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Ireduce =
        PMPI_Ireduce(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, root: c_int, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Iallreduce = PMPI_Iallreduce(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Igather = PMPI_Igather(
        s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, root: c_int, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Igatherv = PMPI_Igatherv(
        s: In, n: c_int, t: Of, r: Out, m: Counts, d: Counts, u: Of, root: c_int, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Iscatter = PMPI_Iscatter(
        s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, root: c_int, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Iscatterv = PMPI_Iscatterv(
        s: In, n: Counts, d: Counts, t: Of, r: Out, m: c_int, u: Of, root: c_int, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Iallgather =
        PMPI_Iallgather(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Iallgatherv = PMPI_Iallgatherv(
        s: In, n: c_int, t: Of, r: Out, m: Counts, d: Counts, u: Of, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Ialltoall =
        PMPI_Ialltoall(s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Ialltoallv = PMPI_Ialltoallv(
        s: In, n: Counts, d: Counts, t: Of, r: Out, m: Counts, e: Counts, u: Of, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Ialltoallw = PMPI_Ialltoallw(
        s: In, n: Counts, d: Counts, t: *const Of, r: Out, m: Counts, e: Counts, u: *const Of, c: MPI_Comm,
        q: *mut MPI_Request
    );
    MPI_Ineighbor_allgather = PMPI_Ineighbor_allgather(
        s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Ineighbor_allgatherv = PMPI_Ineighbor_allgatherv(
        s: In, n: c_int, t: Of, r: Out, m: Counts, d: Counts, u: Of, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Ineighbor_alltoall = PMPI_Ineighbor_alltoall(
        s: In, n: c_int, t: Of, r: Out, m: c_int, u: Of, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Ineighbor_alltoallv = PMPI_Ineighbor_alltoallv(
        s: In, n: Counts, d: Counts, t: Of, r: Out, m: Counts, e: Counts, u: Of, c: MPI_Comm, q: *mut MPI_Request
    );
    MPI_Ineighbor_alltoallw = PMPI_Ineighbor_alltoallw(
        s: In, n: Counts, d: Offsets, t: *const Of, r: Out, m: Counts, e: Offsets, u: *const Of, c: MPI_Comm,
        q: *mut MPI_Request
    );
    MPI_Ireduce_scatter =
        PMPI_Ireduce_scatter(s: In, r: Out, n: Counts, t: Of, o: MPI_Op, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Ireduce_scatter_block =
        PMPI_Ireduce_scatter_block(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Iscan = PMPI_Iscan(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Iexscan = PMPI_Iexscan(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm, q: *mut MPI_Request);

    MPI_Reduce_local = PMPI_Reduce_local(s: In, r: Out, n: c_int, t: Of, o: MPI_Op);
    MPI_Start = PMPI_Start(q: *mut MPI_Request);
    MPI_Isend = PMPI_Isend(s: In, n: c_int, t: Of, to: c_int, tag: c_int, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Irecv = PMPI_Irecv(r: Out, n: c_int, t: Of, from: c_int, tag: c_int, c: MPI_Comm, q: *mut MPI_Request);
    MPI_Wait = PMPI_Wait(q: *mut MPI_Request, status: *mut MPI_Status);
    MPI_Send = PMPI_Send(s: In, n: c_int, t: Of, to: c_int, tag: c_int, c: MPI_Comm);
    MPI_Recv = PMPI_Recv(r: Out, n: c_int, t: Of, from: c_int, tag: c_int, c: MPI_Comm, status: *mut MPI_Status);
    MPI_Put = PMPI_Put(s: In, n: c_int, t: Of, to: c_int, at: MPI_Aint, m: c_int, u: Of, w: MPI_Win);
    MPI_Get = PMPI_Get(r: Out, n: c_int, t: Of, to: c_int, at: MPI_Aint, m: c_int, u: Of, w: MPI_Win);
    MPI_Accumulate =
        PMPI_Accumulate(s: In, n: c_int, t: Of, to: c_int, at: MPI_Aint, m: c_int, u: Of, o: MPI_Op, w: MPI_Win);
    MPI_Get_accumulate = PMPI_Get_accumulate(
        s: In, n: c_int, t: Of, r: Out, l: c_int, v: Of, to: c_int, at: MPI_Aint, m: c_int, u: Of, o: MPI_Op,
        w: MPI_Win
    );
    MPI_Fetch_and_op =
        PMPI_Fetch_and_op(s: In, r: Out, t: Of, to: c_int, at: MPI_Aint, o: MPI_Op, w: MPI_Win);
    MPI_Compare_and_swap =
        PMPI_Compare_and_swap(s: In, d: In, r: Out, t: Of, to: c_int, at: MPI_Aint, w: MPI_Win);
    MPI_Win_flush = PMPI_Win_flush(to: c_int, w: MPI_Win);
    MPI_Win_lock = PMPI_Win_lock(kind: c_int, to: c_int, assert: c_int, w: MPI_Win);
    MPI_Win_unlock = PMPI_Win_unlock(to: c_int, w: MPI_Win);
    MPI_Win_start = PMPI_Win_start(g: MPI_Group, assert: c_int, w: MPI_Win);
    MPI_Win_complete = PMPI_Win_complete(w: MPI_Win);
    MPI_Win_post = PMPI_Win_post(g: MPI_Group, assert: c_int, w: MPI_Win);
    MPI_Win_wait = PMPI_Win_wait(w: MPI_Win);
    MPI_Win_fence = PMPI_Win_fence(assert: c_int, w: MPI_Win);
    MPI_Sendrecv = PMPI_Sendrecv(
        s: In, n: c_int, t: Of, to: c_int, tag: c_int, r: Out, m: c_int, u: Of, from: c_int, tag_of: c_int,
        c: MPI_Comm, status: *mut MPI_Status
    );
}

#[unsafe(no_mangle)]
extern "C" fn MPI_Allreduce(s: In, r: Out, n: c_int, t: Of, o: MPI_Op, c: MPI_Comm) -> c_int {
    let fault = fault("MPI_Allreduce");
    match fault {
        Some(Fault::DoesNothing) => return ffi::MPI_SUCCESS as c_int,
        Some(Fault::Fails) => return ffi::MPI_ERR_OTHER as c_int,
        _ => {}
    }
    // SAFETY: the caller keeps MPI's contract.
    let code = unsafe { ffi::PMPI_Allreduce(s, r, n, t, o, c) };
    let (mut rank, mut size, mut width) = (0, 0, 0);
    // SAFETY: a communicator, and a number that can be written to.
    unsafe { ffi::MPI_Comm_rank(c, &raw mut rank) };
    // SAFETY: as above.
    unsafe { ffi::MPI_Comm_size(c, &raw mut size) };
    // SAFETY: a datatype, and a number that can be written to.
    unsafe { ffi::MPI_Type_size(t, &raw mut width) };
    let (sent, got): (*mut u8, *mut u8) = (s.cast_mut().cast(), r.cast());
    match fault {
        // SAFETY: the caller lets MPI write to this number of bytes.
        Some(Fault::Spoils) if width == 1 && rank == size - 1 => unsafe {
            *got.wrapping_add(n as usize - 1) ^= 1;
        },
        // SAFETY: the caller owns at least one byte, and nothing reads it meanwhile.
        Some(Fault::Overwrites) if width == 1 && rank == size - 1 => unsafe { *sent ^= 1 },
        _ => {}
    }
    code
}

#[unsafe(no_mangle)]
extern "C" fn MPI_Bcast(b: Out, n: c_int, t: Of, root: c_int, c: MPI_Comm) -> c_int {
    let fault = fault("MPI_Bcast");
    match fault {
        Some(Fault::DoesNothing) => return ffi::MPI_SUCCESS as c_int,
        Some(Fault::Fails) => return ffi::MPI_ERR_OTHER as c_int,
        _ => {}
    }
    // SAFETY: the caller keeps MPI's contract.
    let code = unsafe { ffi::PMPI_Bcast(b, n, t, root, c) };
    let (mut rank, mut size) = (0, 0);
    // SAFETY: a communicator, and a number that can be written to.
    unsafe { ffi::MPI_Comm_rank(c, &raw mut rank) };
    // SAFETY: as above.
    unsafe { ffi::MPI_Comm_size(c, &raw mut size) };
    if fault == Some(Fault::SpoilsGap) && rank == size - 1 {
        let gap = b.cast::<u8>().wrapping_add(1);
        // SAFETY: the only test with this fault leaves a gap behind the first byte.
        unsafe { *gap ^= 1 };
    }
    code
}

fn main() {
    job(Threading::Single, |world| {
        let group = MpiGroup::all(&MpiComm::duplicate(world).unwrap()).unwrap();
        every_call_that_fails_is_named(&group);
        if group.size() > 1 {
            every_epoch_that_fails_is_named(&group);
        }
        calls_without_effect_are_detected(&group);
        a_changed_byte_is_detected(&group);
        if group.size() > 1 {
            a_byte_between_elements_is_detected(&group);
        }
        a_rank_that_overwrites_its_send_buffer_is_detected(&group);
        agreement_can_fail(&group);
    });
}

fn prepared(kind: OperationKind, group: &MpiGroup) -> MpiOperation {
    let bytes = match kind {
        _ if kind.is_single_element() => 1,
        _ if kind.has_message() => 12,
        _ => 0,
    };
    MpiOperation::prepare(kind, group, bytes, &OperationSettings::default()).unwrap()
}

/// Returns the MPI functions with which the ranks begin an operation: that of the first half, of the second half, and of the last of an
/// odd number of ranks.
fn functions(kind: OperationKind) -> [Option<String>; 3] {
    let named = |name: &str| Some(name.to_owned());
    let all = |name: &str| [named(name), named(name), named(name)];
    match kind.name() {
        "empty" => [None, None, None],
        "pair-ping-pong" => [named("MPI_Send"), named("MPI_Recv"), None],
        "bandwidth" => [named("MPI_Isend"), named("MPI_Irecv"), None],
        "bidirectional" => [named("MPI_Irecv"), named("MPI_Irecv"), None],
        "persistent-ping-pong" | "partitioned-ping-pong" => all("MPI_Start"),
        "put-bandwidth" => [named("MPI_Put"), None, None],
        "get-bandwidth" => [named("MPI_Get"), None, None],
        name if kind.is_one_sided() => [
            named(&format!("MPI_{}{}", name[..1].to_uppercase(), &name[1..])),
            None,
            None,
        ],
        _ if kind.is_persistent() => all("MPI_Start"),
        name => all(&format!("MPI_{}{}", name[..1].to_uppercase(), &name[1..])),
    }
}

/// Returns the function with which this rank begins an operation.
fn first_function(kind: OperationKind, group: &MpiGroup) -> Option<String> {
    let (rank, ranks) = (group.rank(), group.size());
    let [first, second, last] = functions(kind);
    match kind.name() {
        "ping-pong" => match rank {
            0 => Some("MPI_Send".to_owned()),
            1 => Some("MPI_Recv".to_owned()),
            _ => None,
        },
        "persistent-ping-pong" | "partitioned-ping-pong" => {
            (rank < 2).then(|| "MPI_Start".to_owned())
        }
        _ if rank < ranks / 2 => first,
        _ if rank < ranks / 2 * 2 => second,
        _ => last,
    }
}

/// Returns the functions that transfer the messages of an operation.
fn transfers(kind: OperationKind) -> Vec<String> {
    match kind.name() {
        "ping-pong" => vec!["MPI_Send".to_owned(), "MPI_Recv".to_owned()],
        "bidirectional" => vec!["MPI_Isend".to_owned(), "MPI_Irecv".to_owned()],
        _ => functions(kind).into_iter().flatten().collect(),
    }
}

fn assert_named<T: std::fmt::Debug>(name: &str, failure: Result<T, CommError>) {
    let failure = failure.unwrap_err();
    assert!(
        matches!(failure, CommError::Mpi(MpiError::Failed { call, .. }) if call == name),
        "{name}: {failure:?}"
    );
}

fn every_call_that_fails_is_named(group: &MpiGroup) {
    for kind in kinds(group.size()) {
        let mut operation = prepared(kind, group);
        let broken = transfers(kind);
        let failure = with_faults(&broken, Fault::Fails, || block_on_ready(operation.call(0)));
        match first_function(kind, group) {
            Some(name) => assert_named(&name, failure),
            None => assert_eq!(failure, Ok(())),
        }
        if !kind.is_blocking() {
            let wait = "MPI_Wait";
            assert_named(
                wait,
                with_faults(&[wait.into()], Fault::Fails, || {
                    block_on_ready(operation.call(0))
                }),
            );
        }
        assert_eq!(operation.verify(), Ok(()), "{kind}");
        assert_eq!(operation.finish(), Ok(()), "{kind}");
    }
}

/// Functions that synchronize one-sided operations, in their order: those of the origin, and of the target.
const SYNCHRONIZING: [(Epoch, [&[&str]; 2]); 4] = [
    (Epoch::Flush, [&["MPI_Win_flush"], &[]]),
    (Epoch::Lock, [&["MPI_Win_lock", "MPI_Win_unlock"], &[]]),
    (
        Epoch::Pscw,
        [
            &["MPI_Win_start", "MPI_Win_complete"],
            &["MPI_Win_post", "MPI_Win_wait"],
        ],
    ),
    (Epoch::Fence, [&["MPI_Win_fence"], &["MPI_Win_fence"]]),
];

/// All functions fail, so that no rank waits for another.
fn every_epoch_that_fails_is_named(group: &MpiGroup) {
    let half = group.size() / 2;
    for (epoch, [origin, target]) in SYNCHRONIZING {
        let settings = OperationSettings {
            epoch,
            ..OperationSettings::default()
        };
        let put = "put".parse().unwrap();
        let mut operation = MpiOperation::prepare(put, group, 8, &settings).unwrap();
        let broken: Vec<String> = [origin, target]
            .concat()
            .into_iter()
            .map(String::from)
            .collect();
        let failure = with_faults(&broken, Fault::Fails, || block_on_ready(operation.call(0)));
        let is_idle = group.rank() == 2 * half && epoch != Epoch::Fence;
        let own = if group.rank() < half { origin } else { target };
        match own.first().filter(|_| !is_idle) {
            Some(first) => assert_named(first, failure),
            None => assert_eq!(failure, Ok(())),
        }
        assert_eq!(operation.verify(), Ok(()), "{epoch}");
        assert_eq!(operation.finish(), Ok(()), "{epoch}");
    }
}

fn calls_without_effect_are_detected(group: &MpiGroup) {
    // Results of reduce_local are not verified, and a request that was not started has no parts.
    let verified = |kind: &OperationKind| {
        kind.has_message() && kind.name() != "reduce_local" && !kind.is_partitioned()
    };
    for kind in kinds(group.size()).filter(verified) {
        let mut operation = prepared(kind, group);
        let found = with_faults(&transfers(kind), Fault::DoesNothing, || operation.verify());
        // A single rank has no receiver of a broadcast, and no rank before it; two ranks are neighbours twice.
        let is_one_of = |names: &[&str]| names.iter().any(|name| kind.name().contains(name));
        let alone = match group.size() {
            1 => is_one_of(&["bcast", "exscan", "neighbor_alltoall"]),
            2 => is_one_of(&["neighbor_alltoall"]),
            _ => false,
        };
        match found {
            Ok(()) => assert!(alone, "{kind}"),
            // Combined with others, an element may stay as it is.
            Err(OperationError::WrongElement {
                rank,
                root: 0,
                element,
                ..
            }) => assert!(rank == group.rank() && (element == 0 || kind.is_one_sided())),
            // Not every rank receives data.
            Err(OperationError::WrongElsewhere { .. }) => assert!(group.size() > 1, "{kind}"),
            Err(other) => unreachable!("{kind}: {other}"),
        }
        assert_eq!(operation.verify(), Ok(()), "{kind}");
        assert_eq!(operation.finish(), Ok(()), "{kind}");
    }
}

fn a_changed_byte_is_detected(group: &MpiGroup) {
    let last = group.size() - 1;
    let mut operation = prepared("allreduce".parse().unwrap(), group);
    let found = with_faults(&["MPI_Allreduce".into()], Fault::Spoils, || {
        operation.verify()
    })
    .unwrap_err();
    match &found {
        OperationError::WrongElement {
            rank,
            root: 0,
            element: 11,
            ..
        } => assert_eq!((*rank, last), (group.rank(), group.rank())),
        OperationError::WrongElsewhere { rank } => assert!(*rank == last && group.rank() < last),
        other => unreachable!("{other}"),
    }
    let text = found.to_string();
    let expected = if group.rank() < last {
        "got a wrong result"
    } else {
        "as element 11 where 0x"
    };
    assert!(
        text.starts_with(&format!("rank {last} got")) && text.contains(expected),
        "{text}"
    );
}

fn a_byte_between_elements_is_detected(group: &MpiGroup) {
    let last = group.size() - 1;
    let settings = OperationSettings {
        layout: "vector/1/2".parse().unwrap(),
        ..OperationSettings::default()
    };
    let mut operation =
        MpiOperation::prepare("bcast".parse().unwrap(), group, 12, &settings).unwrap();
    let found = with_faults(&["MPI_Bcast".into()], Fault::SpoilsGap, || {
        operation.verify()
    });
    let expected = match group.rank() == last {
        true => OperationError::GapOverwritten {
            rank: last,
            root: 0,
            element: 0,
        },
        false => OperationError::WrongElsewhere { rank: last },
    };
    assert_eq!(found, Err(expected));
    assert_eq!(operation.verify(), Ok(()));
}

fn a_rank_that_overwrites_its_send_buffer_is_detected(group: &MpiGroup) {
    let last = group.size() - 1;
    let mut operation = prepared("allreduce".parse().unwrap(), group);
    let found = with_faults(&["MPI_Allreduce".into()], Fault::Overwrites, || {
        operation.verify()
    });
    let expected = if group.rank() == last {
        OperationError::Overwritten {
            rank: last,
            root: 0,
            element: 0,
        }
    } else {
        OperationError::WrongElsewhere { rank: last }
    };
    assert_eq!(found, Err(expected));
    assert_eq!(operation.verify(), Ok(()));
}

fn agreement_can_fail(group: &MpiGroup) {
    let broken = |name: &str| [name.to_owned()];
    assert_named(
        "MPI_Barrier",
        with_faults(&broken("MPI_Barrier"), Fault::Fails, || {
            block_on_ready(group.barrier())
        }),
    );
    assert_named(
        "MPI_Bcast",
        with_faults(&broken("MPI_Bcast"), Fault::Fails, || {
            block_on_ready(group.broadcast(1))
        }),
    );
    let allreduce = broken("MPI_Allreduce");
    assert_named(
        "MPI_Allreduce",
        with_faults(&allreduce, Fault::Fails, || {
            block_on_ready(group.bitwise_or(1))
        }),
    );
    let (kind, settings) = ("bcast".parse().unwrap(), OperationSettings::default());
    let prepared = with_faults(&allreduce, Fault::Fails, || {
        MpiOperation::prepare(kind, group, 1, &settings)
    });
    match prepared.unwrap_err() {
        OperationError::Comm(why) => assert_named::<()>("MPI_Allreduce", Err(why)),
        other => unreachable!("{other}"),
    }
}
