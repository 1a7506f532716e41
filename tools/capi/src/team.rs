//! Teams: the ranks of a communicator, with what they know of each other between calls that keep their clock or let them return together.

use core::cell::RefCell;
use core::ffi::c_int;
use core::ptr::NonNull;

use downbeat::{AnyClock, ClockKeeper, Duration, GlobalClock, Meeting, Meetings, MpiComm};
use mpi::ffi::MPI_Comm;

use crate::boundary::{boundary_of_all, check_place, report as keep, write};
use crate::clock::get;
use crate::failure::Failure;
use crate::handle::{ClosedHandles, Handle, Held};
use crate::library::first_with_mpi;
use crate::mpi::{duplicate, from_fortran, in_first_library_with_mpi, ranks_failed, together};
use crate::objects::{ClockHandle, TeamHandle};
use crate::status::DOWNBEAT_ERROR_HANDLE;

impl Held for TeamOfThread {
    const OPEN: u64 = 0xd0_b3a7_7ea3_7d0b;
}

static CLOSED: ClosedHandles<TeamOfThread> = ClosedHandles::new();

thread_local! {
    static HERE: u8 = const { 0 };
}

/// Number of the running thread, different from that of all others. That of the standard library leaves a block behind that leak detectors
/// report.
fn this_thread() -> usize {
    HERE.with(|here| core::ptr::from_ref(here).addr())
}

/// A team, which only the thread that opened it uses: it calls MPI.
#[derive(Debug)]
pub(crate) struct TeamOfThread {
    owner: usize,
    /// None once it is closed.
    team: RefCell<Option<Team>>,
}

// SAFETY: other threads than the owner compare their identity with its, and do nothing else.
unsafe impl Send for TeamOfThread {}
// SAFETY: as above.
unsafe impl Sync for TeamOfThread {}

/// Parts that refer to the communicator are dropped before it.
#[derive(Debug)]
struct Team {
    keeping: Option<ClockKeeper<'static, AnyClock, MpiComm>>,
    meetings: Option<Meetings<'static, AnyClock, MpiComm>>,
    clock: *const ClockHandle,
    comm: LeakedComm,
}

/// Communicator that other parts refer to, which are dropped before it.
#[derive(Debug)]
struct LeakedComm(NonNull<MpiComm>);

impl LeakedComm {
    fn get(&self) -> &'static MpiComm {
        // SAFETY: it is freed after all that refer to it.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for LeakedComm {
    fn drop(&mut self) {
        // SAFETY: it was made of a box, and nothing refers to it any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Team {
    /// Clock of the team, which must be open still.
    fn clock(&self) -> Result<&'static GlobalClock<AnyClock>, Failure> {
        // SAFETY: it was a clock when the team was opened.
        unsafe { get(self.clock) }
    }

    fn keep(&mut self, period: Duration) -> Result<bool, Failure> {
        let (clock, comm) = (self.clock()?, self.comm.get());
        let keeping = match &mut self.keeping {
            Some(keeping) => keeping,
            none => none.insert(clock.keeping(comm, period).map_err(ranks_failed)?),
        };
        // That of rank 0 decides.
        let kept = if period > Duration::ZERO {
            keeping.every(period);
            keeping.keep()
        } else {
            keeping.keep_now()
        };
        Ok(kept.map_err(ranks_failed)?.is_some())
    }

    fn harmonize(&mut self, max_error: Duration) -> Result<Duration, Failure> {
        let (clock, comm) = (self.clock()?, self.comm.get());
        let meetings = self
            .meetings
            .get_or_insert_with(|| clock.meetings(comm, max_error));
        meetings.within(max_error);
        match meetings.harmonize().map_err(ranks_failed)? {
            Meeting::Met => Ok(Duration::ZERO),
            Meeting::Missed { by } => Ok(by),
        }
    }
}

/// Does something with an open team.
///
/// # Safety
/// It must be NULL, or a team, closed or not.
unsafe fn with<T>(
    team: *const TeamHandle,
    work: impl FnOnce(&mut Option<Team>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let handle: *const Handle<TeamOfThread> = team.cast();
    // SAFETY: the caller guarantees a team.
    let team = unsafe { Handle::get(handle) }?;
    if team.owner != this_thread() {
        let why = "the team belongs to the thread that opened it";
        return Err(Failure::new(DOWNBEAT_ERROR_HANDLE, why));
    }
    work(&mut team.team.borrow_mut())
}

/// # Safety
/// As for `with`.
unsafe fn with_team<T>(
    team: *const TeamHandle,
    work: impl FnOnce(&mut Team) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let closed = || Failure::new(DOWNBEAT_ERROR_HANDLE, "the team is closed");
    // SAFETY: the caller guarantees a team.
    unsafe { with(team, |team| work(team.as_mut().ok_or_else(closed)?)) }
}

/// Opens a team of the ranks of a communicator, which all call this with a clock that was synchronized over it: for `downbeat_keep` and
/// `downbeat_harmonize`. It holds a communicator of its own, and belongs to the calling thread; with `MPI_THREAD_SERIALIZED` no other
/// thread may make collective calls meanwhile. Collective, as `downbeat_synchronize`.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, `comm` a communicator, and `team` NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_team_open(
    clock: *const ClockHandle,
    comm: MPI_Comm,
    team: *mut *mut TeamHandle,
) -> c_int {
    in_first_library_with_mpi!(downbeat_team_open(clock, comm, team));
    boundary_of_all(|| {
        // SAFETY: the caller guarantees a communicator.
        let comm = unsafe { duplicate(comm) }?;
        // SAFETY: the caller guarantees a clock.
        let checked = check_place(team, "team").and_then(|()| unsafe { get(clock) });
        together(&comm, checked)?;
        let opened = TeamOfThread {
            owner: this_thread(),
            team: RefCell::new(Some(Team {
                keeping: None,
                meetings: None,
                clock,
                comm: LeakedComm(NonNull::from(Box::leak(Box::new(comm)))),
            })),
        };
        let opened = core::ptr::from_ref(Handle::open(opened, &CLOSED));
        // SAFETY: the caller guarantees a place.
        unsafe { write(team, "team", opened.cast_mut().cast()) }
    })
}

/// Keeps the clock of a team, whose ranks all call this at points of the program that they reach about together: makes a session of at most
/// a millisecond if `period` nanoseconds have passed since the last one, or now if `period` is 0. That of rank 0 counts; the first sessions
/// are closer to each other. Mostly it costs a broadcast. The clock slews: it neither jumps nor runs backward, and other threads can read
/// it meanwhile. Writes 1 to `kept` if there was a session and 0 if not, unless it is NULL. A clock that stepped is `DOWNBEAT_ERROR_RANKS`
/// on all ranks, and must be synchronized again. Only the thread that opened the team may call it.
///
/// # Safety
/// `team` must be NULL or a team, closed or not, and `kept` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_keep(
    team: *const TeamHandle,
    period: i64,
    kept: *mut c_int,
) -> c_int {
    in_first_library_with_mpi!(downbeat_keep(team, period, kept));
    boundary_of_all(|| {
        // SAFETY: the caller guarantees a team.
        let session = unsafe { with_team(team, |team| team.keep(Duration::from_nanos(period))) }?;
        if !kept.is_null() {
            // SAFETY: the caller guarantees a place.
            unsafe { kept.write(session.into()) };
        }
        Ok(())
    })
}

/// Returns at one instant of their clock on all ranks of a team, which all call this; a rank that learns of the instant too late returns at
/// once. Writes by how many nanoseconds it missed the instant to `missed_by`, 0 if it did not, unless that is NULL. The clock is
/// synchronized again where the error of a rank may exceed the `max_error` nanoseconds that it allows. Only the thread that opened the
/// team may call it.
///
/// # Safety
/// `team` must be NULL or a team, closed or not, and `missed_by` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_harmonize(
    team: *const TeamHandle,
    max_error: i64,
    missed_by: *mut i64,
) -> c_int {
    in_first_library_with_mpi!(downbeat_harmonize(team, max_error, missed_by));
    boundary_of_all(|| {
        let max_error = Duration::from_nanos(max_error);
        // SAFETY: the caller guarantees a team.
        let missed = unsafe { with_team(team, |team| team.harmonize(max_error)) }?;
        if !missed_by.is_null() {
            // SAFETY: the caller guarantees a place.
            unsafe { missed_by.write(missed.as_nanos()) };
        }
        Ok(())
    })
}

/// Closes a team, which all its ranks do, before its clock. Only the thread that opened it may call it.
///
/// # Safety
/// `team` must be NULL or a team, closed or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_team_close(team: *mut TeamHandle) -> c_int {
    in_first_library_with_mpi!(downbeat_team_close(team));
    boundary_of_all(|| {
        // SAFETY: the caller guarantees a team.
        drop(unsafe { with(team, |team| Ok(team.take())) }?);
        // SAFETY: as above.
        unsafe { Handle::close(team.cast_const().cast::<Handle<TeamOfThread>>(), &CLOSED) }
    })
}

/// The same as `downbeat_team_open`, for a communicator of Fortran.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_team_open_f(
    clock: *const ClockHandle,
    comm: c_int,
    team: *mut *mut TeamHandle,
) -> c_int {
    // SAFETY: the caller guarantees what the function requires.
    unsafe { downbeat_team_open(clock, from_fortran(comm), team) }
}
