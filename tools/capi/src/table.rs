//! The table of the functions of this library.

use crate::boundary::{downbeat_error_message, keep_message};
use crate::clock::*;
use crate::identity::{DOWNBEAT_ABI, IDENTITY};
use crate::library::{Library, MpiFunctions};
#[cfg(feature = "mpi")]
use crate::mpi::*;
#[cfg(feature = "mpi")]
use crate::team::*;
use crate::timers::*;

static OWN: Library = Library {
    version: DOWNBEAT_ABI,
    size: size_of::<Library>() as u32,
    identity: &IDENTITY,
    keep_message,
    downbeat_error_message,
    downbeat_clock_open_abi,
    downbeat_clock_close,
    downbeat_clock_now,
    downbeat_clock_now_with_error,
    downbeat_clock_now_with_bounds,
    downbeat_clock_ticks,
    downbeat_clock_convert,
    downbeat_clock_past,
    downbeat_clock_wait_until,
    downbeat_clock_time_of_day,
    downbeat_global_clock,
    downbeat_wtime,
    downbeat_clock_model,
    downbeat_model_read,
    downbeat_get_timer_abi,
    downbeat_start_timer,
    downbeat_stop_timer,
    downbeat_report_timers,
    downbeat_free_text,
    mpi: MPI,
};

#[cfg(feature = "mpi")]
const MPI: MpiFunctions = MpiFunctions {
    downbeat_synchronize_abi,
    downbeat_resynchronize,
    downbeat_timesync,
    downbeat_report_timers_over,
    downbeat_team_open,
    downbeat_keep,
    downbeat_harmonize,
    downbeat_team_close,
};

#[cfg(not(feature = "mpi"))]
const MPI: MpiFunctions = ();

/// Returns the functions of this library, for others in the same process. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn downbeat_library() -> *const Library {
    &raw const OWN
}
