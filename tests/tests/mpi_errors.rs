//! A program for `mpirun`: every failed MPI call is reported as an error.
//!
//! No invalid argument reaches MPI, so failures are simulated: this program defines functions with the names of MPI's,
//! which the linker prefers, and which call MPI's through the profiling interface (`PMPI_`).

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

mod job;
mod messages;

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use downbeat_sync::{Comm, CommError, MpiComm, MpiError, block_on_ready};
use job::job;
use messages::{recv, send};
use mpi::Threading;
use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_Status};
use mpi::topology::SimpleCommunicator;
use mpi::traits::AsRaw;

/// The function that fails from now on.
static BROKEN: Mutex<&str> = Mutex::new("");

fn is_broken(name: &str) -> bool {
    *BROKEN.lock().unwrap() == name
}

/// Defines functions that fail if selected, and else call MPI's.
macro_rules! breakable {
    ($($name:ident = $own:ident($($argument:ident: $type:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> c_int {
            if is_broken(stringify!($name)) {
                return ffi::MPI_ERR_OTHER as c_int;
            }
            // SAFETY: the caller keeps MPI's contract.
            unsafe { ffi::$own($($argument),*) }
        }
    )* };
}

breakable! {
    MPI_Send = PMPI_Send(buffer: *const c_void, n: c_int, of: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm);
    MPI_Ssend = PMPI_Ssend(buffer: *const c_void, n: c_int, of: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm);
    MPI_Recv = PMPI_Recv(
        buffer: *mut c_void, n: c_int, of: MPI_Datatype, from: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status
    );
    MPI_Get_count = PMPI_Get_count(status: *const MPI_Status, of: MPI_Datatype, count: *mut c_int);
    MPI_Comm_test_inter = PMPI_Comm_test_inter(comm: MPI_Comm, is: *mut c_int);
    MPI_Comm_dup = PMPI_Comm_dup(comm: MPI_Comm, new: *mut MPI_Comm);
    MPI_Comm_rank = PMPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int);
    MPI_Comm_size = PMPI_Comm_size(comm: MPI_Comm, size: *mut c_int);
    MPI_Comm_split = PMPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int, new: *mut MPI_Comm);
    MPI_Comm_set_errhandler = PMPI_Comm_set_errhandler(comm: MPI_Comm, handler: MPI_Errhandler);
}

fn main() {
    job(Threading::Single, |world| {
        let comm = MpiComm::duplicate(world).unwrap();
        every_call_that_fails_is_named(world, &comm);
        an_error_can_be_read(&comm);
        a_communicator_between_groups_is_refused(world, &comm);
        errors_of_the_program_stay_with_it(&comm);
    });
}

/// Makes one function fail, and checks that the error names it.
fn assert_named<T: std::fmt::Debug, E: Into<CommError>>(
    call: &'static str,
    program: impl FnOnce() -> Result<T, E>,
) {
    *BROKEN.lock().unwrap() = call;
    let failure = program().unwrap_err().into();
    *BROKEN.lock().unwrap() = "";
    assert!(
        matches!(failure, CommError::Mpi(MpiError::Failed { call: named, .. }) if named == call),
        "{failure:?}"
    );
}

/// On all ranks at once: otherwise some would wait.
fn every_call_that_fails_is_named(world: &SimpleCommunicator, comm: &MpiComm) {
    let (next, previous) = (
        (comm.rank() + 1) % comm.size(),
        (comm.rank() + comm.size() - 1) % comm.size(),
    );
    if comm.size() > 1 {
        assert_named("MPI_Send", || send(comm, next, ()));
        assert_named("MPI_Ssend", || block_on_ready(comm.send_sync(next, ())));
        assert_named("MPI_Recv", || recv::<()>(comm, previous));
        // This one receives the message.
        send(comm, next, ()).unwrap();
        assert_named("MPI_Get_count", || recv::<()>(comm, previous));
    }
    for call in [
        "MPI_Comm_split",
        "MPI_Comm_set_errhandler",
        "MPI_Comm_rank",
        "MPI_Comm_size",
    ] {
        assert_named(call, || block_on_ready(comm.split(Some(0), 0)));
    }
    for call in [
        "MPI_Comm_test_inter",
        "MPI_Comm_dup",
        "MPI_Comm_set_errhandler",
        "MPI_Comm_rank",
        "MPI_Comm_size",
    ] {
        assert_named(call, || MpiComm::duplicate(world));
    }
    for call in ["MPI_Comm_split", "MPI_Comm_set_errhandler"] {
        assert_named(call, || comm.node());
    }
    // No message is left.
    send(comm, next, 1_u64).unwrap();
    assert_eq!((recv(comm, previous), comm.node()), (Ok(1_u64), Ok(0)));
}

fn an_error_can_be_read(comm: &MpiComm) {
    *BROKEN.lock().unwrap() = "MPI_Comm_split";
    let Err(CommError::Mpi(why)) = block_on_ready(comm.split(Some(0), 0)) else {
        unreachable!("the call is broken")
    };
    *BROKEN.lock().unwrap() = "";
    assert_eq!(
        why.to_string(),
        format!(
            "MPI_Comm_split failed: MPI_ERR_OTHER, code {}",
            ffi::MPI_ERR_OTHER
        )
    );
    let text = why.text().unwrap();
    assert!(text.to_lowercase().contains("other"), "{text}");
    assert_eq!(MpiError::Finalized.text(), None);
}

fn a_communicator_between_groups_is_refused(world: &SimpleCommunicator, comm: &MpiComm) {
    if comm.size() == 1 {
        return;
    }
    // The first rank in one group, all others in the other.
    let first = comm.rank() == 0;
    let (mut side, mut between) = (world.as_raw(), world.as_raw());
    // SAFETY: the world is a communicator, and `side` can be written to.
    unsafe { ffi::PMPI_Comm_split(world.as_raw(), first.into(), 0, &raw mut side) };
    // SAFETY: `side` is a communicator, its first rank is that of the world or the next, and `between` can be written to.
    unsafe {
        ffi::MPI_Intercomm_create(side, 0, world.as_raw(), first.into(), 0, &raw mut between)
    };
    // SAFETY: `between` is a communicator.
    let refused = unsafe { MpiComm::duplicate_raw(between) };
    assert_eq!(refused.unwrap_err(), MpiError::InterCommunicator);
    // SAFETY: `side` is a communicator, and so is its duplicate.
    let comm = unsafe { MpiComm::duplicate_raw(side) }.unwrap();
    assert_eq!(
        comm.size() as i32,
        if first {
            1
        } else {
            mpi::traits::Communicator::size(world) - 1
        }
    );
}

/// The communicator returns its errors; errors of the program's own communicators still end it.
fn errors_of_the_program_stay_with_it(comm: &MpiComm) {
    // SAFETY: a constant.
    let world = unsafe { ffi::RSMPI_COMM_WORLD };
    // SAFETY: a constant.
    let fatal = unsafe { ffi::RSMPI_ERRORS_ARE_FATAL };
    let mut handler = fatal;
    // SAFETY: the world is a communicator, and `handler` can be written to.
    unsafe { ffi::MPI_Comm_get_errhandler(world, &raw mut handler) };
    assert!(handler == fatal);
    drop(block_on_ready(comm.split(Some(0), 0)).unwrap());
}
