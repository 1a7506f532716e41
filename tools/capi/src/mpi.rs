//! Synchronization of the clocks of an MPI program.

use core::ffi::{c_char, c_int};

use downbeat::regions::report_over;
use downbeat::{
    Algorithm, AnyClock, ClockName, Comm, CommError, GlobalClock, GlobalClockError, LocalTime,
    MpiComm, SessionLimits, block_on_ready, collective::agree_blocking,
};
use downbeat_clock_core::{Clock as _, parse_share};
use downbeat_timers::skew::SkewSpec;
use mpi::environment;
use mpi::ffi::{MPI_Comm, RSMPI_COMM_NULL, RSMPI_Comm_f2c};

use crate::boundary::{boundary, boundary_of_all, check_place, report as keep, text, write};
use crate::clock::{current, get, make_current, open};
use crate::environment::{CALIBRATION, parse_variable, setting};
use crate::failure::Failure;
use crate::library::{check_version, first_with_mpi};
use crate::objects::ClockHandle;
use crate::status::{DOWNBEAT_ERROR_MPI, DOWNBEAT_ERROR_RANKS};
use crate::timers::give;
use crate::tracer::{as_own, sample};

/// Does a call in the library that the process uses, if that is another one.
macro_rules! in_first_library_with_mpi {
    ($function:ident($($argument:expr),*)) => {
        match first_with_mpi() {
            Ok(None) => {}
            // SAFETY: the caller guarantees what the function requires.
            Ok(Some(first)) => return unsafe { (first.$function)($($argument),*) },
            Err(why) => return keep(&why),
        }
    };
}
pub(crate) use in_first_library_with_mpi;

/// Synchronizes the clocks of all ranks of a communicator, which all call this with the same label, and opens a clock that shows the
/// same time on all of them: nanoseconds since now by the clock of rank 0. It becomes the one of calls that name none. `label` names
/// the algorithm, as `hca3` or `h2hca(hca3/500/skampi/100,prop)`; NULL stands for the environment variable `DOWNBEAT_ALGORITHM`, or
/// `auto/300ms`. The clock that each rank reads is that of `DOWNBEAT_CLOCK`. `header`
/// must be `DOWNBEAT_ABI`. Collective: a failure of one rank is `DOWNBEAT_ERROR_RANKS` on
/// all, with one message. Only threads that may call MPI may call it.
///
/// # Safety
/// `comm` must be a communicator, `label` NULL or a text, and `clock` NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_synchronize_abi(
    comm: MPI_Comm,
    label: *const c_char,
    clock: *mut *mut ClockHandle,
    header: u32,
) -> c_int {
    in_first_library_with_mpi!(downbeat_synchronize_abi(comm, label, clock, header));
    boundary_of_all(|| {
        // SAFETY: the caller guarantees a communicator.
        let comm = unsafe { duplicate(comm) }?;
        let arguments = || {
            check_version(header)?;
            check_place(clock, "clock")?;
            // SAFETY: the caller guarantees a text.
            Settings::new(unsafe { text(label, "label") }?)
        };
        let settings = together(&comm, arguments())?;
        let opened = open(settings.synchronize(&comm).map_err(ranks_failed)?);
        make_current(opened);
        // SAFETY: the caller guarantees a place.
        unsafe { write(clock, "clock", opened) }
    })
}

/// Synchronizes a clock again, over a communicator whose ranks all call this with a clock that was synchronized; the time of its rank 0 is
/// the reference. Other threads can read the clock meanwhile. The time steps by what the clock was wrong. Collective, as
/// `downbeat_synchronize`.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and `comm` a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_resynchronize(
    clock: *const ClockHandle,
    comm: MPI_Comm,
) -> c_int {
    in_first_library_with_mpi!(downbeat_resynchronize(clock, comm));
    boundary_of_all(|| {
        // SAFETY: the caller guarantees a communicator.
        let comm = unsafe { duplicate(comm) }?;
        // SAFETY: the caller guarantees a clock.
        let clock = together(&comm, unsafe { get(clock) })?;
        clock.resynchronize_over(&comm).map_err(ranks_failed)
    })
}

/// Compares the clocks of all ranks of a communicator, which all call this: the one that
/// was synchronized last. It can be called at any time in the run of a program, any
/// number of times. The clock stays as it is, but `downbeat_clock_past` knows better
/// afterwards what it showed. Rank 0 exchanges a message with each other rank in turn,
/// until each had `DOWNBEAT_SYNC_MAX_MESSAGES` of them (a variable of the environment;
/// 100 by default) or `DOWNBEAT_SYNC_MAX_DURATION` has passed (`60s`).
/// `DOWNBEAT_SYNC_RULE` names the rule that condenses them: `lowest`, the default, is the
/// mean of the lowest 5 % of the time differences in each direction; `trace-collector` is
/// the mean of all exchanges except the slowest tenth. If the last synchronization was by
/// `auto`, and proved that the ranks of each node read one counter, only the first rank
/// of each node exchanges messages, and the others take its session. Collective, as
/// `downbeat_synchronize`.
///
/// # Safety
/// `comm` must be a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_timesync(comm: MPI_Comm) -> c_int {
    in_first_library_with_mpi!(downbeat_timesync(comm));
    boundary_of_all(|| {
        // SAFETY: the caller guarantees a communicator.
        let comm = unsafe { duplicate(comm) }?;
        // SAFETY: the current clock is a handle.
        let clock = current().and_then(|clock| unsafe { get(clock) });
        let (clock, limits) = together(&comm, clock.and_then(|clock| Ok((clock, limits()?))))?;
        clock.timesync_over(&comm, limits).map_err(ranks_failed)?;
        sample(|| {
            let ticks = clock.clock().ticks();
            (ticks.0, clock.past(ticks).as_nanos(), comm.size())
        });
        Ok(())
    })
}

/// Limits and rule of a session, from the environment.
fn limits() -> Result<SessionLimits, Failure> {
    let exchanges = parse_variable("DOWNBEAT_SYNC_MAX_MESSAGES", str::parse)?;
    let duration = parse_variable("DOWNBEAT_SYNC_MAX_DURATION", str::parse)?;
    let rule = parse_variable("DOWNBEAT_SYNC_RULE", str::parse)?;
    let usual = SessionLimits::default();
    Ok(SessionLimits {
        exchanges: exchanges.unwrap_or(usual.exchanges),
        duration: duration.unwrap_or(usual.duration),
        rule: rule.unwrap_or(usual.rule),
    })
}

/// Merges the timers of all ranks of a communicator, which all call this, and writes a report of them on its rank 0, as a text that
/// `downbeat_free_text` frees; NULL on the others. Collective, as `downbeat_synchronize`.
///
/// # Safety
/// `comm` must be a communicator, and `report` NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_report_timers_over(
    comm: MPI_Comm,
    report: *mut *mut c_char,
) -> c_int {
    in_first_library_with_mpi!(downbeat_report_timers_over(comm, report));
    let work = || {
        // SAFETY: the caller guarantees a communicator.
        let comm = unsafe { duplicate(comm) }?;
        together(&comm, check_place(report, "report"))?;
        let merged = report_over(&comm).map_err(Failure::of(DOWNBEAT_ERROR_RANKS))?;
        let text = merged.map_or(core::ptr::null_mut(), |merged| give(&merged));
        // SAFETY: the caller guarantees a place.
        unsafe { write(report, "report", text) }
    };
    boundary(|| as_own(c"(report of timers)", work))
}

/// The same as `downbeat_report_timers_over`, for a communicator of Fortran.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_report_timers_over_f(
    comm: c_int,
    report: *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller guarantees what the function requires.
    unsafe { downbeat_report_timers_over(from_fortran(comm), report) }
}

/// The same as `downbeat_timesync`, for a communicator of Fortran.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_timesync_f(comm: c_int) -> c_int {
    // SAFETY: the caller guarantees what the function requires.
    unsafe { downbeat_timesync(from_fortran(comm)) }
}

/// The same as `downbeat_synchronize_abi`, for a communicator of Fortran; an empty label is none.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_synchronize_f(
    comm: c_int,
    label: *const c_char,
    clock: *mut *mut ClockHandle,
    header: u32,
) -> c_int {
    // SAFETY: a label is NULL or has at least its final NUL.
    let empty = !label.is_null() && unsafe { *label } == 0;
    let label = if empty { core::ptr::null() } else { label };
    // SAFETY: the caller guarantees what the function requires.
    unsafe { downbeat_synchronize_abi(from_fortran(comm), label, clock, header) }
}

/// The same as `downbeat_resynchronize`, for a communicator of Fortran.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_resynchronize_f(clock: *const ClockHandle, comm: c_int) -> c_int {
    // SAFETY: the caller guarantees what the function requires.
    unsafe { downbeat_resynchronize(clock, from_fortran(comm)) }
}

/// Converts a communicator; the null communicator while MPI cannot be called.
pub(crate) fn from_fortran(comm: c_int) -> MPI_Comm {
    if !environment::is_initialized() || environment::is_finalized() {
        // SAFETY: a constant.
        return unsafe { RSMPI_COMM_NULL };
    }
    // SAFETY: MPI is running.
    unsafe { RSMPI_Comm_f2c(comm) }
}

/// Returns a communicator of our own.
///
/// # Safety
/// It must be a communicator, or the null communicator, if MPI is running.
pub(crate) unsafe fn duplicate(comm: MPI_Comm) -> Result<MpiComm, Failure> {
    // SAFETY: a constant.
    let is_null = comm == unsafe { RSMPI_COMM_NULL };
    // Before and after MPI runs, that is the reason.
    if is_null && environment::is_initialized() && !environment::is_finalized() {
        return Err(Failure::new(
            DOWNBEAT_ERROR_MPI,
            "the communicator is MPI_COMM_NULL",
        ));
    }
    // SAFETY: the caller guarantees a communicator.
    unsafe { MpiComm::duplicate_raw(comm) }.map_err(Failure::of(DOWNBEAT_ERROR_MPI))
}

/// Returns the value of this rank, or the same failure on all ranks.
pub(crate) fn together<T>(comm: &MpiComm, mine: Result<T, Failure>) -> Result<T, Failure> {
    let mine = mine.map_err(|failure| GlobalClockError::of_rank(comm, failure.message));
    agree_blocking(comm, mine).map_err(ranks_failed)
}

pub(crate) fn ranks_failed(why: GlobalClockError) -> Failure {
    let status = match why {
        GlobalClockError::Comm(CommError::Mpi(_)) => DOWNBEAT_ERROR_MPI,
        _ => DOWNBEAT_ERROR_RANKS,
    };
    Failure::new(status, why)
}

/// Settings of a synchronization, from its label and the environment.
struct Settings {
    algorithm: Algorithm,
    clock: ClockName,
    skew: Option<SkewSpec>,
    max_drift: Option<f64>,
    max_wander: Option<f64>,
}

impl Settings {
    fn new(label: Option<&str>) -> Result<Self, Failure> {
        let skew: Option<SkewSpec> = parse_variable("DOWNBEAT_SKEW", str::parse)?;
        let algorithm = setting(label, "DOWNBEAT_ALGORITHM", Algorithm::parse_single)?;
        Ok(Self {
            algorithm: algorithm.unwrap_or(Algorithm::SINGLE),
            clock: setting(None, "DOWNBEAT_CLOCK", str::parse)?.unwrap_or_default(),
            skew,
            max_drift: parse_variable("DOWNBEAT_MAX_DRIFT", parse_share)?,
            max_wander: parse_variable("DOWNBEAT_MAX_WANDER", parse_share)?,
        })
    }

    fn synchronize(self, comm: &MpiComm) -> Result<GlobalClock<AnyClock>, GlobalClockError> {
        let node = comm.node()?;
        let split = block_on_ready(comm.by_node(node))?;
        let local = LocalTime::detect(self.clock, CALIBRATION, comm, &split.node)?;
        let truth = local.model.renamed();
        let mut local: LocalTime<AnyClock> = local.into();
        if let Some(skew) = self.skew {
            let index = skew.clock_of_rank(comm.rank(), node);
            let skewed = local.skewed(&skew, index, truth);
            local = agree_blocking(
                comm,
                skewed.map_err(|why| GlobalClockError::of_rank(comm, why)),
            )?;
        }
        let mut settings = GlobalClock::builder()
            .algorithm(self.algorithm)
            .max_wander(self.max_wander);
        if let Some(drift) = self.max_drift {
            settings = settings.max_drift(drift);
        }
        settings.over_clock(local, comm, node)
    }
}
